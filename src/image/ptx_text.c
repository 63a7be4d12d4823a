// SPDX-License-Identifier: MIT
// Finds header and kernels of PTX text without parsing it.
#include "image/image_internal.h"

static const size_t nowhere = (size_t)-1;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
           c == '%';
}

static bool has(struct str text, size_t at, struct str what)
{
    return at <= text.len && str_starts(str_skip(text, at), what);
}

static size_t find(struct str text, size_t at, struct str what)
{
    if (at >= text.len)
        return nowhere;
    const char *p = memmem(text.ptr + at, text.len - at, what.ptr, what.len);
    return p ? (size_t)(p - text.ptr) : nowhere;
}

static size_t find_char(struct str text, size_t at, char c)
{
    if (at >= text.len)
        return nowhere;
    const char *p = memchr(text.ptr + at, c, text.len - at);
    return p ? (size_t)(p - text.ptr) : nowhere;
}

// Returns the offset after the comment that begins at `at`; `at` if there is none.
static size_t skip_comment(struct str text, size_t at)
{
    size_t end;
    if (has(text, at, STR("//")))
        end = find_char(text, at, '\n');
    else if (has(text, at, STR("/*")))
        end = find(text, at + 2, STR("*/"));
    else
        return at;
    return end == nowhere ? text.len : end + (text.ptr[end] == '\n' ? 1 : 2);
}

// Returns the offset after the string that begins at `at`. It ends with its line at the latest.
static size_t skip_string(struct str text, size_t at)
{
    for (at++; at < text.len && text.ptr[at] != '\n'; at++) {
        if (text.ptr[at] == '"')
            return at + 1;
        if (text.ptr[at] == '\\' && at + 1 < text.len && text.ptr[at + 1] != '\n')
            at++;
    }
    return at;
}

static size_t skip_blank(struct str text, size_t at)
{
    while (at < text.len) {
        size_t next = is_blank(text.ptr[at]) ? at + 1 : skip_comment(text, at);
        if (next == at)
            break;
        at = next;
    }
    return at;
}

// Returns the offset after `word` and the blanks around it if it comes next as a whole word; else nowhere.
static size_t expect(struct str text, size_t at, struct str word)
{
    at = skip_blank(text, at);
    if (!has(text, at, word))
        return nowhere;
    at += word.len;
    return at < text.len && is_name(text.ptr[at]) ? nowhere : skip_blank(text, at);
}

bool ptx_text_is(struct str text)
{
    return expect(text, 0, STR(".version")) != nowhere;
}

// Reads a number. Too many digits give a wrong number, not an overflow trap.
static size_t read_number(struct str text, size_t at, uint32_t *out)
{
    *out = 0;
    for (; at < text.len && is_digit(text.ptr[at]); at++)
        *out = *out * 10 + (uint32_t)(text.ptr[at] - '0');
    return at;
}

void ptx_text_header(struct str text, struct image_entry *e)
{
    size_t at = expect(text, 0, STR(".version"));
    if (at == nowhere)
        return;
    at = read_number(text, at, &e->version_major);
    if (!has(text, at, STR(".")))
        return;
    at = read_number(text, at + 1, &e->version_minor);
    at = expect(text, at, STR(".target"));
    if (at == nowhere || !has(text, at, STR("sm_")))
        return;
    at = read_number(text, at + 3, &e->arch);
    if (has(text, at, STR("a")) || has(text, at, STR("f")))
        e->suffix = text.ptr[at];
}

// A position that moves forward through the text, and the next quote and slash, so that each byte is scanned
// once however many comments there are.
//
//   quote, slash: the first one at or after `at`, or nowhere; stale when before `at`
struct cursor {
    struct str text;
    size_t at, quote, slash;
};

// Moves after the comments and strings that begin before `limit`. Returns false if the last of them covers
// limit.
static bool skip_hidden(struct cursor *c, size_t limit)
{
    while (c->at <= limit) {
        if (c->quote < c->at)
            c->quote = find_char(c->text, c->at, '"');
        if (c->slash < c->at)
            c->slash = find_char(c->text, c->at, '/');
        if (c->quote >= limit && c->slash >= limit)
            return true;
        if (c->quote < c->slash) {
            c->at = skip_string(c->text, c->quote);
        } else {
            size_t end = skip_comment(c->text, c->slash);
            c->at = end > c->slash ? end : end + 1;
        }
    }
    return false;
}

// Returns the offset after the parameters, if any. A list that is not closed ends where a body or a statement
// does.
static size_t skip_params(struct str text, size_t at)
{
    if (!has(text, at, STR("(")))
        return at;
    while (at < text.len && !memchr(")};{", text.ptr[at], 4))
        at = skip_blank(text, at + 1);
    return has(text, at, STR(")")) ? skip_blank(text, at + 1) : at;
}

int ptx_text_kernels(struct str text, image_visit *visit, void *ctx)
{
    const struct str entry = STR(".entry");
    struct cursor c = {.text = text, .quote = find_char(text, 0, '"'), .slash = find_char(text, 0, '/')};
    for (size_t hit; (hit = find(text, c.at, entry)) != nowhere;) {
        if (!skip_hidden(&c, hit))
            continue;
        c.at = hit + entry.len;
        size_t from = expect(text, hit, entry), end = from;
        if (from == nowhere)
            continue;
        while (end < text.len && is_name(text.ptr[end]))
            end++;
        c.at = skip_params(text, skip_blank(text, end));
        if (end == from || has(text, c.at, STR(";")))
            continue;  // no name, or only declared
        int stop = visit(ctx, (struct str){text.ptr + from, end - from});
        if (stop)
            return stop;
    }
    return 0;
}
