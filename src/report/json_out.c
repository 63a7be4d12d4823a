// SPDX-License-Identifier: MIT
// Every open bracket has reserved the room of its closing one by lowering b->cap, so that closing cannot
// fail. A member or element that does not fit is removed as a whole.
#include "report/json_out.h"

#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "report/json_shape.h"
#include "report/utf8.h"

#define LAST_WORDS ",\"truncated\":true}\n"

struct writer {
    struct text_buffer *b;
    bool comma;        // before the next member
    unsigned dropped;  // number of members and elements left out
};

struct mark {
    size_t len;
    bool comma;
};

static void write_escape(struct text_buffer *b, unsigned char c)
{
    char text[6] = {'\\', 'u', '0', '0', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
    if (c == '"' || c == '\\')
        text[1] = (char)c;
    else if (c == '\n')
        text[1] = 'n';
    else if (c == '\t')
        text[1] = 't';
    text_buffer_bytes(b, text, text[1] == 'u' ? 6 : 2);
}

// Writes a byte that is not UTF-8 as half of a surrogate pair, which no character is.
static void write_byte(struct text_buffer *b, unsigned char c)
{
    char text[6] = {'\\', 'u', 'd', 'c', "0123456789abcdef"[c >> 4], "0123456789abcdef"[c & 15]};
    text_buffer_bytes(b, text, sizeof text);
}

static void write_text(struct text_buffer *b, const char *text)
{
    struct str s = str_from(text);
    text_buffer_char(b, '"');
    while (s.len && !b->cut) {
        size_t n = utf8_length(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (c < 0x20 || c == '"' || c == '\\')
            write_escape(b, c);
        else if (n)
            text_buffer_bytes(b, s.ptr, n);
        else
            write_byte(b, c);
        s = str_skip(s, n ? n : 1);
    }
    text_buffer_char(b, '"');
}

// Starts a member, or an element if key is NULL.
static struct mark begin(struct writer *w, const char *key)
{
    struct mark m = {w->b->len, w->comma};
    if (w->comma)
        text_buffer_char(w->b, ',');
    if (key) {
        write_text(w->b, key);
        text_buffer_char(w->b, ':');
    }
    return m;
}

static void take_back(struct writer *w, struct mark m)
{
    w->b->len = m.len;
    w->b->cut = false;
    w->comma = m.comma;
}

// Ends a member; removes it if it did not fit.
static void finish(struct writer *w, struct mark m)
{
    w->comma = true;
    if (w->b->cut) {
        take_back(w, m);
        w->dropped++;
    }
}

static bool open_bracket(struct writer *w, struct mark m, const char *pair)
{
    text_buffer_bytes(w->b, pair, 2);
    if (w->b->cut) {
        finish(w, m);
        return false;
    }
    w->b->len--;
    w->b->cap--;
    w->comma = false;
    return true;
}

static void close_bracket(struct writer *w, char bracket)
{
    w->b->cap++;
    text_buffer_char(w->b, bracket);
    w->comma = true;
}

static void write_members(struct writer *w, const struct json_shape *shape, const char *from);

// Writes an object. One without members is left out, unless it is an element.
static void write_object(struct writer *w, const char *key, const struct json_shape *shape, const char *from)
{
    struct mark m = begin(w, key);
    if (!open_bracket(w, m, "{}"))
        return;
    write_members(w, shape, from);
    bool empty = !w->comma;
    close_bracket(w, '}');
    if (empty && key)
        take_back(w, m);
}

// Writes an array up to the first element that does not fit whole: a stack with a gap would mislead.
static void write_array(struct writer *w, const struct json_field *f, const char *from)
{
    uint32_t count = *(const uint32_t *)(from + f->count);
    if (!count)
        return;
    struct mark m = begin(w, f->key);
    if (!open_bracket(w, m, "[]"))
        return;
    const char *items = *(const char *const *)(from + f->offset);
    unsigned dropped = w->dropped;
    for (uint32_t i = 0; i < count && w->dropped == dropped; i++) {
        if (f->shape) {
            write_object(w, NULL, f->shape, items + i * f->shape->size);
        } else {
            struct mark element = begin(w, NULL);
            write_text(w->b, ((const char *const *)items)[i]);
            finish(w, element);
        }
    }
    close_bracket(w, ']');
}

static void write_int(struct text_buffer *b, int v)
{
    if (v < 0)
        text_buffer_char(b, '-');
    text_buffer_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

static void write_bytes(struct text_buffer *b, const struct report_bytes *p)
{
    text_buffer_char(b, '"');
    for (uint32_t i = 0; i < p->count && !b->cut; i++) {
        bool touched = p->touched[i / 8] >> (i % 8) & 1;
        char pair[2] = {"0123456789abcdef"[p->bytes[i] >> 4], "0123456789abcdef"[p->bytes[i] & 15]};
        text_buffer_bytes(b, touched ? pair : "..", 2);
    }
    text_buffer_char(b, '"');
}

static bool is_there(const struct json_field *f, const char *from)
{
    const char *at = from + f->offset;
    if (f->flag)
        return *(const bool *)(from + f->flag);
    switch (f->kind) {
    case JSON_TEXT: return *(const char *const *)at;
    case JSON_INT: return f->always || *(const int *)at;
    case JSON_U32: return f->always || *(const uint32_t *)at;
    case JSON_U64:
    case JSON_ADDRESS: return f->always || *(const uint64_t *)at;
    case JSON_BOOL: return f->always || *(const bool *)at;
    case JSON_ACCESS: return *(const enum report_access *)at != REPORT_NO_ACCESS;
    case JSON_BYTES: return ((const struct report_bytes *)at)->count;
    default: return true;
    }
}

static void write_value(struct text_buffer *b, const struct json_field *f, const char *at)
{
    const uint32_t *dim = (const uint32_t *)at;
    switch (f->kind) {
    case JSON_TEXT: write_text(b, *(const char *const *)at); break;
    case JSON_INT: write_int(b, *(const int *)at); break;
    case JSON_U32: text_buffer_u64(b, *(const uint32_t *)at); break;
    case JSON_U64: text_buffer_u64(b, *(const uint64_t *)at); break;
    case JSON_ADDRESS:
        text_buffer_char(b, '"');
        text_buffer_hex(b, *(const uint64_t *)at);
        text_buffer_char(b, '"');
        break;
    case JSON_BOOL: text_buffer_cstr(b, *(const bool *)at ? "true" : "false"); break;
    case JSON_DIM3: text_buffer_fmt(b, "[%u,%u,%u]", dim[0], dim[1], dim[2]); break;
    case JSON_TYPE: write_text(b, report_rows[*(const enum report_type *)at].name); break;
    case JSON_ACCESS: write_text(b, json_shape_access[*(const enum report_access *)at]); break;
    case JSON_BYTES: write_bytes(b, (const struct report_bytes *)at); break;
    case JSON_TEXTS:
    case JSON_OBJECT:
    case JSON_ARRAY: break;
    }
}

static void write_members(struct writer *w, const struct json_shape *shape, const char *from)
{
    for (size_t i = 0; i < shape->nfields; i++) {
        const struct json_field *f = &shape->fields[i];
        if (f->kind == JSON_OBJECT) {
            write_object(w, f->key, f->shape, from + f->offset);
        } else if (f->kind == JSON_ARRAY || f->kind == JSON_TEXTS) {
            write_array(w, f, from);
        } else if (is_there(f, from)) {
            struct mark m = begin(w, f->key);
            write_value(w->b, f, from + f->offset);
            finish(w, m);
        }
    }
}

void json_out_line(struct text_buffer *b, const struct report_line *line)
{
    assert(line->event < JSON_SHAPE_EVENTS);
    const struct json_event *e = &json_shape_events[line->event];
    size_t start = b->len, cap = b->cap;
    if (b->cut)
        return;
    if (cap - b->len < sizeof LAST_WORDS) {
        b->cut = true;
        return;
    }
    b->cap -= sizeof LAST_WORDS - 1;
    struct writer w = {.b = b};
    text_buffer_char(b, '{');
    struct mark m = begin(&w, "event");
    write_text(b, e->name);
    finish(&w, m);
    if (w.dropped) {
        *b = (struct text_buffer){b->text, start, cap, true};
        return;
    }
    write_members(&w, &e->shape, (const char *)line + e->offset);
    b->cap = cap;
    text_buffer_cstr(b, w.dropped ? LAST_WORDS : "}\n");
    b->cut = w.dropped;
}
