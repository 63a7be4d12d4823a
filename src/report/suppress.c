// SPDX-License-Identifier: MIT
#include "report/suppress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/near.h"
#include "base/vec.h"
#include "report/brief_name.h"
#include "report/fold.h"
#include "report/json_in.h"

enum { LARGEST = 256 << 20 };  // largest file of suppressions that is read

struct rule {
    int type;  // -1: any
    struct str pattern;
};

struct suppress {
    struct arena arena;  // patterns
    VEC(struct rule) rules;
    VEC(uint64_t) keys;  // of saved reports
};

struct suppress *suppress_new(void)
{
    struct suppress *s = mem_zalloc(1, sizeof *s);
    if (s)
        arena_init(&s->arena, 0);
    return s;
}

void suppress_free(struct suppress *s)
{
    if (!s)
        return;
    vec_free(&s->rules);
    vec_free(&s->keys);
    arena_free(&s->arena);
    mem_free(s);
}

// Files

struct input {
    struct suppress *suppress;
    struct diag_source source;
    struct diag_sink *sink;
};

static struct str trim(struct str s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = str_skip(s, 1);
    while (s.len && strchr(" \t\r", s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static int bad(struct input *in, struct str where, const char *message)
{
    diag_report(in->sink, DIAG_ERROR, &in->source, (size_t)(where.ptr - in->source.text.ptr), where.len, "%s",
                message);
    return -EINVAL;
}

static int bad_type(struct input *in, struct str name)
{
    struct near near;
    char message[160];
    near_init(&near, name);
    for (int i = 0; i < REPORT_TYPES; i++)
        near_offer(&near, report_rows[i].name);
    if (near.best)
        snprintf(message, sizeof message, "there is no such type of error; did you mean %s?", near.best);
    else
        snprintf(message, sizeof message, "there is no such type of error; * stands for any");
    return bad(in, name, message);
}

static int find_type(struct str name)
{
    for (int i = 0; i < REPORT_TYPES; i++)
        if (str_eq(name, str_from(report_rows[i].name)))
            return i;
    return -1;
}

static int parse_rule(struct input *in, struct str line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    if (!colon)
        return bad(in, line, "expected type:pattern");
    struct str type = trim((struct str){line.ptr, (size_t)(colon - line.ptr)});
    struct str pattern = trim((struct str){colon + 1, (size_t)(line.ptr + line.len - colon - 1)});
    struct rule rule = {.type = find_type(type)};
    if (rule.type < 0 && !str_eq(type, STR("*")))
        return bad_type(in, type);
    if (!pattern.len)
        return bad(in, (struct str){colon, 1}, "expected a pattern after the colon; * stands for any text");
    rule.pattern = arena_str(&in->suppress->arena, pattern);
    return rule.pattern.ptr && !vec_push(&in->suppress->rules, rule) ? 0 : -ENOMEM;
}

static int parse_saved(struct input *in, struct str line)
{
    struct arena arena;
    struct report_line event;
    char why[160];
    arena_init(&arena, 0);
    int err = json_in_line(&arena, line, &event, why, sizeof why);
    if (err == -EINVAL) {
        unsigned long column = 1;
        char *message = why;
        if (strncmp(why, "column ", 7) == 0)
            column = strtoul(why + 7, &message, 10);
        size_t at = column - 1 < line.len ? column - 1 : line.len;
        bad(in, (struct str){line.ptr + at, 1}, strncmp(message, ": ", 2) == 0 ? message + 2 : message);
    } else if (!err && event.event == REPORT_ERROR) {
        err = vec_push(&in->suppress->keys, fold_name_key(&event.error, true));
    }
    arena_free(&arena);
    return err;
}

int suppress_parse(struct suppress *s, const char *name, struct str text, struct diag_sink *sink)
{
    struct input in = {s, {name, text}, sink};
    int result = 0;
    for (struct str rest = text; rest.len;) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        struct str line = {rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len};
        rest = str_skip(rest, line.len + (end ? 1 : 0));
        line = trim(line);
        if (!line.len || line.ptr[0] == '#')
            continue;
        int err = line.ptr[0] == '{' ? parse_saved(&in, line) : parse_rule(&in, line);
        if (err == -ENOMEM)
            return err;
        result = err ? err : result;
    }
    return result;
}

static int read_all(int fd, char **text, size_t *len)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    size_t cap = 0;
    for (;;) {
        if (*len == cap) {
            char *grown = cap < LARGEST ? mem_realloc(*text, cap = cap ? cap * 2 : 64 << 10, 1) : NULL;
            if (!grown)
                return cap < LARGEST ? -ENOMEM : -EFBIG;
            *text = grown;
        }
        ssize_t n = read(fd, *text + *len, cap - *len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : 0;
        *len += (size_t)n;
    }
}

int suppress_load(struct suppress *s, const char *path, struct diag_sink *sink)
{
    char *text = NULL;
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = read_all(fd, &text, &len);
    close(fd);
    if (!err)
        err = suppress_parse(s, path, (struct str){text, len}, sink);
    mem_free(text);
    return err;
}

// Matching

// Matches a pattern. After a mismatch, only the last * is retried: it can match whatever an earlier one
// could.
static bool glob(struct str pattern, const char *text)
{
    size_t p = 0, star = SIZE_MAX;
    const char *resume = NULL;
    while (*text) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            resume = text;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == *text)) {
            p++;
            text++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.ptr[p] == '*')
        p++;
    return p == pattern.len;
}

// Matches a name as it is, as all formats but text show it, and as text shows it.
static bool match_name(const struct rule *rule, const char *name, const struct demangle *demangle)
{
    char buffer[8192];
    if (!name)
        return false;
    const char *readable = demangle_name(demangle, name),
               *brief = brief_name(readable, buffer, sizeof buffer);
    return glob(rule->pattern, name) || (readable != name && glob(rule->pattern, readable)) ||
           (brief != readable && glob(rule->pattern, brief));
}

// Matches a path as it is or by its last part.
static bool match_path(const struct rule *rule, const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return path && (glob(rule->pattern, path) || (slash && glob(rule->pattern, slash + 1)));
}

static bool match_stack(const struct rule *rule, const struct report_stack *s,
                        const struct demangle *demangle)
{
    for (uint32_t i = 0; i < s->count; i++) {
        const struct report_frame *f = &s->frames[i];
        if (match_name(rule, f->function, demangle) || match_path(rule, f->file) ||
            match_path(rule, f->object))
            return true;
    }
    return false;
}

static bool match_rule(const struct rule *rule, const struct report *r, const struct demangle *demangle)
{
    const struct report_place *at = &r->place;
    if (rule->type >= 0 && rule->type != (int)r->type)
        return false;
    if (str_eq(rule->pattern, STR("*")))
        return true;
    return match_name(rule, at->kernel, demangle) || match_name(rule, at->function, demangle) ||
           match_path(rule, at->file) || match_name(rule, r->call, demangle) ||
           match_stack(rule, &at->frames, demangle) || match_stack(rule, &r->stack, demangle) ||
           match_stack(rule, fold_stack(r), demangle);
}

bool suppress_match(struct suppress *s, const struct report *r, const struct demangle *demangle)
{
    if (!s)
        return false;
    uint64_t key = s->keys.len ? fold_name_key(r, true) : 0;
    for (size_t i = 0; i < s->keys.len; i++)
        if (s->keys.items[i] == key)
            return true;
    for (size_t i = 0; i < s->rules.len; i++)
        if (match_rule(&s->rules.items[i], r, demangle))
            return true;
    return false;
}
