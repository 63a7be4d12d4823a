// SPDX-License-Identifier: MIT
// The input may be any bytes: lengths, depths and numbers are checked.
#include "report/json_in.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "report/json_shape.h"
#include "report/utf8.h"

enum { DEEPEST = 64 };  // nested brackets; ours go five deep

struct reader {
    const char *start, *p, *end;
    struct arena *arena;
    char *why;
    size_t why_size;
};

__attribute__((format(printf, 2, 3))) static int fail(struct reader *r, const char *fmt, ...)
{
    char text[120];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    snprintf(r->why, r->why_size, "column %zu: %s", (size_t)(r->p - r->start) + 1, text);
    return -EINVAL;
}

// The same, at a word that has been read already.
#define FAIL_AT(r, word, ...) ((r)->p = (word).ptr, fail(r, __VA_ARGS__))

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\r' || *r->p == '\n'))
        r->p++;
}

static bool accept(struct reader *r, char c)
{
    skip_blanks(r);
    if (r->p == r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static int expect(struct reader *r, char c)
{
    return accept(r, c) ? 0 : fail(r, "expected '%c'", c);
}

// Texts

// Reads the inside of a string with its escapes; r->p moves behind it.
static int raw_text(struct reader *r, struct str *raw)
{
    skip_blanks(r);
    if (r->p == r->end || *r->p != '"')
        return fail(r, "expected a string");
    const char *from = ++r->p;
    for (; r->p < r->end && *r->p != '"'; r->p++) {
        if ((unsigned char)*r->p < 0x20)
            return fail(r, "a control character in a string");
        if (*r->p == '\\' && ++r->p == r->end)
            break;
    }
    if (r->p == r->end)
        return fail(r, "the string does not end");
    *raw = (struct str){from, (size_t)(r->p - from)};
    r->p++;
    return 0;
}

// Returns the value of four hex digits, -1 if they are not there.
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = c >= '0' && c <= '9'                 ? c - '0'
                    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                         : -1;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

// Decodes what follows \u; *p moves behind it. A zero, which would end our texts, and half of a surrogate
// pair become '?'. \udc80 to \udcff are the bytes that are not UTF-8 (json_out.h): *byte is set.
static int unescape_unicode(const char **p, const char *end, uint32_t *c, bool *byte)
{
    int32_t v = hex4(*p, end);
    if (v < 0)
        return -EINVAL;
    *p += 4;
    *c = v ? (uint32_t)v : '?';
    *byte = v >= 0xDC80 && v <= 0xDCFF;
    if (*byte) {
        *c = (uint32_t)v & 0xFF;
        return 0;
    }
    if (v < 0xD800 || v > 0xDFFF)
        return 0;
    int32_t low = end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u' ? hex4(*p + 2, end) : -1;
    bool pair = v < 0xDC00 && low >= 0xDC00 && low <= 0xDFFF;
    *c = pair ? 0x10000 + (((uint32_t)v & 0x3FF) << 10) + ((uint32_t)low & 0x3FF) : '?';
    *p += pair ? 6 : 0;
    return 0;
}

static int unescape(struct reader *r, struct str raw, char *to)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *p = raw.ptr, *end = raw.ptr + raw.len;
    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        const char *at = p++;
        const char *letter = *p && *p != 'u' ? strchr(letters, *p) : NULL;
        uint32_t c = 0;
        bool byte = false;
        if (letter) {
            *to++ = meanings[letter - letters];
            p++;
        } else if (*p++ == 'u' && !unescape_unicode(&p, end, &c, &byte)) {
            if (byte)
                *to++ = (char)c;
            else
                to += utf8_put(to, c);
        } else {
            return FAIL_AT(r, ((struct str){at, 2}), "no such escape in the string");
        }
    }
    *to = 0;
    return 0;
}

static int read_text(struct reader *r, const char **out)
{
    struct str raw;
    int err = raw_text(r, &raw);
    if (err)
        return err;
    char *copy = arena_alloc(r->arena, raw.len + 1);
    if (!copy)
        return -ENOMEM;
    *out = copy;
    return unescape(r, raw, copy);
}

// Reads a key or word without unescaping: ours contain no escapes.
static int read_word(struct reader *r, struct str *out)
{
    return raw_text(r, out);
}

// Numbers

static int read_magnitude(struct reader *r, uint64_t most, uint64_t *out)
{
    uint64_t v = 0;
    const char *from = r->p;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        unsigned digit = (unsigned)(*r->p - '0');
        if (v > (most - digit) / 10)
            return fail(r, "the number is too large");
        v = v * 10 + digit;
    }
    if (r->p == from)
        return fail(r, "expected a number");
    if (r->p < r->end && (*r->p == '.' || (*r->p | 32) == 'e'))
        return fail(r, "expected a whole number");
    *out = v;
    return 0;
}

static int read_unsigned(struct reader *r, uint64_t most, uint64_t *out)
{
    skip_blanks(r);
    return read_magnitude(r, most, out);
}

static int read_int(struct reader *r, int *out)
{
    uint64_t v;
    bool negative = accept(r, '-');
    int err = read_unsigned(r, INT32_MAX, &v);
    if (!err)
        *out = negative ? -(int)v : (int)v;
    return err;
}

static int read_address(struct reader *r, uint64_t *out)
{
    struct str s;
    int err = read_word(r, &s);
    if (err)
        return err;
    if (s.len < 3 || s.len > 18 || !str_starts(s, STR("0x")))
        return FAIL_AT(r, s, "expected an address such as \"0x7f00\"");
    uint64_t v = 0;
    for (size_t i = 2; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return FAIL_AT(r, s, "expected an address such as \"0x7f00\"");
        v = v * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *out = v;
    return 0;
}

// Unknown values

static int skip_value(struct reader *r, int depth);

static int skip_brackets(struct reader *r, char close, int depth)
{
    if (depth == DEEPEST)
        return fail(r, "nested too deep");
    r->p++;
    if (accept(r, close))
        return 0;
    do {
        struct str key;
        int err = close == '}' ? raw_text(r, &key) : 0;
        err = err || close != '}' ? err : expect(r, ':');
        err = err ? err : skip_value(r, depth + 1);
        if (err)
            return err;
    } while (accept(r, ','));
    return expect(r, close);
}

static bool is_plain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E' || c == '+' || c == '-' || c == '.';
}

static int skip_value(struct reader *r, int depth)
{
    struct str text;
    skip_blanks(r);
    if (r->p == r->end)
        return fail(r, "the line ends too early");
    if (*r->p == '"')
        return raw_text(r, &text);
    if (*r->p == '{' || *r->p == '[')
        return skip_brackets(r, *r->p == '{' ? '}' : ']', depth);
    const char *from = r->p;
    while (r->p < r->end && is_plain(*r->p))
        r->p++;
    return r->p > from ? 0 : fail(r, "expected a value");
}

// Known values

static int read_object(struct reader *r, const struct json_shape *shape, char *to);

// Counts the elements of the array that begins at r->p, which does not move.
static int count_elements(struct reader *r, uint32_t *count)
{
    const char *at = r->p;
    *count = 0;
    int err = expect(r, '[');
    if (err || accept(r, ']')) {
        r->p = err ? r->p : at;
        return err;
    }
    do {
        err = skip_value(r, 0);
        ++*count;
    } while (!err && accept(r, ','));
    err = err ? err : expect(r, ']');
    r->p = err ? r->p : at;
    return err;
}

static int read_array(struct reader *r, const struct json_field *f, char *to)
{
    uint32_t count;
    int err = count_elements(r, &count);
    if (err)
        return err;
    size_t size = f->shape ? f->shape->size : sizeof(char *);
    char *items = arena_array(r->arena, count ? count : 1, size);
    if (!items)
        return -ENOMEM;
    expect(r, '[');
    for (uint32_t i = 0; i < count && !err; i++) {
        char *item = items + i * size;
        err = f->shape ? read_object(r, f->shape, item) : read_text(r, (const char **)item);
        accept(r, ',');
    }
    err = err ? err : expect(r, ']');
    *(char **)(to + f->offset) = items;
    *(uint32_t *)(to + f->count) = err ? 0 : count;
    return err;
}

static int read_dim3(struct reader *r, uint32_t *dim)
{
    uint64_t v = 0;
    int err = expect(r, '[');
    for (int i = 0; i < 3 && !err; i++) {
        err = read_unsigned(r, UINT32_MAX, &v);
        dim[i] = (uint32_t)v;
        err = err ? err : expect(r, i < 2 ? ',' : ']');
    }
    return err;
}

static int read_type(struct reader *r, enum report_type *out)
{
    struct str s;
    int err = read_word(r, &s);
    for (int i = 0; i < REPORT_TYPES && !err; i++) {
        if (str_eq(s, str_from(report_rows[i].name))) {
            *out = (enum report_type)i;
            return 0;
        }
    }
    return err ? err : FAIL_AT(r, s, "no error is called \"%.*s\"", s.len > 60 ? 60 : (int)s.len, s.ptr);
}

static int read_access(struct reader *r, enum report_access *out)
{
    struct str s;
    int err = read_word(r, &s);
    for (int i = REPORT_READ; i <= REPORT_WRITE && !err; i++) {
        if (str_eq(s, str_from(json_shape_access[i]))) {
            *out = (enum report_access)i;
            return 0;
        }
    }
    return err ? err : FAIL_AT(r, s, "expected \"read\" or \"write\"");
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_bytes(struct reader *r, struct report_bytes *out)
{
    struct str s;
    int err = read_word(r, &s);
    if (err)
        return err;
    if (s.len % 2 || s.len / 2 > UINT32_MAX)
        return FAIL_AT(r, s, "expected pairs of hex digits");
    size_t count = s.len / 2;
    uint8_t *bytes = arena_alloc(r->arena, count), *touched = arena_alloc(r->arena, (count + 7) / 8);
    if (!bytes || !touched)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        int high = hex_digit(s.ptr[2 * i]), low = hex_digit(s.ptr[2 * i + 1]);
        if (high >= 0 && low >= 0) {
            bytes[i] = (uint8_t)(high << 4 | low);
            touched[i / 8] |= (uint8_t)(1 << (i % 8));
        } else if (s.ptr[2 * i] != '.' || s.ptr[2 * i + 1] != '.') {
            return FAIL_AT(r, s, "expected pairs of hex digits");
        }
    }
    *out = (struct report_bytes){out->base, (uint32_t)count, bytes, touched};
    return 0;
}

static int read_bool(struct reader *r, bool *out)
{
    skip_blanks(r);
    struct str rest = {r->p, (size_t)(r->end - r->p)};
    *out = str_starts(rest, STR("true"));
    if (!*out && !str_starts(rest, STR("false")))
        return fail(r, "expected true or false");
    r->p += *out ? 4 : 5;
    return 0;
}

static int read_value(struct reader *r, const struct json_field *f, char *to)
{
    char *at = to + f->offset;
    uint64_t v = 0;
    int err;
    switch (f->kind) {
    case JSON_TEXT: return read_text(r, (const char **)at);
    case JSON_INT: return read_int(r, (int *)at);
    case JSON_U32:
        err = read_unsigned(r, UINT32_MAX, &v);
        *(uint32_t *)at = (uint32_t)v;
        return err;
    case JSON_U64: return read_unsigned(r, UINT64_MAX, (uint64_t *)at);
    case JSON_ADDRESS: return read_address(r, (uint64_t *)at);
    case JSON_BOOL: return read_bool(r, (bool *)at);
    case JSON_DIM3: return read_dim3(r, (uint32_t *)at);
    case JSON_TYPE: return read_type(r, (enum report_type *)at);
    case JSON_ACCESS: return read_access(r, (enum report_access *)at);
    case JSON_BYTES: return read_bytes(r, (struct report_bytes *)at);
    case JSON_OBJECT: return read_object(r, f->shape, at);
    case JSON_TEXTS:
    case JSON_ARRAY: return read_array(r, f, to);
    }
    return -EINVAL;
}

static int read_member(struct reader *r, const struct json_shape *shape, char *to)
{
    struct str key;
    int err = read_word(r, &key);
    err = err ? err : expect(r, ':');
    if (err)
        return err;
    for (size_t i = 0; i < shape->nfields; i++) {
        const struct json_field *f = &shape->fields[i];
        if (!str_eq(key, str_from(f->key)))
            continue;
        err = read_value(r, f, to);
        if (f->flag)
            *(bool *)(to + f->flag) = !err;
        return err;
    }
    return skip_value(r, 0);
}

static int read_object(struct reader *r, const struct json_shape *shape, char *to)
{
    int err = expect(r, '{');
    if (err || accept(r, '}'))
        return err;
    do
        err = read_member(r, shape, to);
    while (!err && accept(r, ','));
    return err ? err : expect(r, '}');
}

// Finds the text of a member of the line's object, wherever it is; r->p does not move.
static int find_word(struct reader *r, const char *wanted, struct str *out)
{
    const char *at = r->p;
    int err = expect(r, '{');
    *out = (struct str){0};
    if (!err && !accept(r, '}')) {
        do {
            struct str key;
            err = read_word(r, &key);
            err = err ? err : expect(r, ':');
            if (!err)
                err = str_eq(key, str_from(wanted)) ? read_word(r, out) : skip_value(r, 0);
        } while (!err && accept(r, ','));
        err = err ? err : expect(r, '}');
    }
    if (!err)
        r->p = at;
    return err;
}

static int read_event(struct reader *r, struct report_line *out)
{
    struct str name, type;
    int err = find_word(r, "event", &name);
    if (err)
        return err;
    int event = 0;
    while (event < JSON_SHAPE_EVENTS && !str_eq(name, str_from(json_shape_events[event].name)))
        event++;
    if (event == JSON_SHAPE_EVENTS)
        return name.ptr ? FAIL_AT(r, name, "no event is called \"%.*s\"", name.len > 60 ? 60 : (int)name.len,
                                  name.ptr)
                        : fail(r, "\"event\" is missing");
    if (event == REPORT_ERROR) {
        err = find_word(r, "type", &type);
        if (err || !type.ptr)
            return err ? err : fail(r, "\"type\" is missing");
        out->error.device = -1;
    }
    out->event = (enum report_event)event;
    const struct json_event *e = &json_shape_events[event];
    return read_object(r, &e->shape, (char *)out + e->offset);
}

int json_in_line(struct arena *a, struct str line, struct report_line *out, char *why, size_t size)
{
    struct reader r = {line.ptr, line.ptr, line.ptr + line.len, a, why, size};
    jmp_buf *on_fail = a->on_fail;
    a->on_fail = NULL;
    *out = (struct report_line){0};
    int err = read_event(&r, out);
    skip_blanks(&r);
    if (!err && r.p < r.end)
        err = fail(&r, "more text behind the object");
    a->on_fail = on_fail;
    return err;
}
