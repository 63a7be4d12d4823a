// SPDX-License-Identifier: MIT
#include "flow/launch_text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { MOST_DEPTH = 16, NUMBER_TEXT = 64 };

struct reader {
    struct launch_text *to;
    struct diag_sink *sink;
    size_t at;
    unsigned depth;
};

static int fail(const struct reader *r, size_t at, size_t len, const char *what)
{
    diag_report(r->sink, DIAG_ERROR, &r->to->source, at, len, "%s", what);
    return -EINVAL;
}

// --- characters and words ----------------------------------------------------------------------------------

static char peek(const struct reader *r)
{
    struct str t = r->to->source.text;
    return r->at < t.len ? t.ptr[r->at] : 0;
}

static void skip_blanks(struct reader *r)
{
    while (isspace((unsigned char)peek(r)))
        r->at++;
}

static bool take(struct reader *r, const char *word)
{
    skip_blanks(r);
    if (!str_starts(str_skip(r->to->source.text, r->at), str_from(word)))
        return false;
    r->at += strlen(word);
    return true;
}

static int expect(struct reader *r, const char *word, const char *what)
{
    return take(r, word) ? 0 : fail(r, r->at, 1, what);
}

// Returns the letters, digits, points and signs of exponents from here on.
static struct str word_here(struct reader *r)
{
    skip_blanks(r);
    struct str rest = str_skip(r->to->source.text, r->at);
    size_t n = 0;
    bool hex = rest.len > 1 && rest.ptr[0] == '0' && (rest.ptr[1] | 32) == 'x';
    bool number = rest.len && !hex && (isdigit((unsigned char)rest.ptr[0]) || rest.ptr[0] == '.');
    while (n < rest.len) {
        char c = rest.ptr[n];
        bool exponent = n && number && (c == '+' || c == '-') && (rest.ptr[n - 1] | 32) == 'e';
        if (!isalnum((unsigned char)c) && c != '.' && c != '_' && !exponent)
            break;
        n++;
    }
    return (struct str){rest.ptr, n};
}

// Reads digits at the start of a word; returns how many characters they take, 0 if there are none or the
// number does not fit.
static size_t read_digits(struct str word, uint64_t *value)
{
    unsigned base = 10;
    size_t n = 0, first = 0;
    if (word.len > 2 && word.ptr[0] == '0' && (word.ptr[1] | 32) == 'x') {
        base = 16;
        n = first = 2;
    }
    *value = 0;
    for (; n < word.len; n++) {
        int c = word.ptr[n] | 32;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                         : c >= 'a'           ? (unsigned)(c - 'a' + 10)
                                              : 99;
        if (digit >= base)
            break;
        if (__builtin_mul_overflow(*value, base, value) || __builtin_add_overflow(*value, digit, value))
            return 0;
    }
    return n > first ? n : 0;
}

// --- numbers -----------------------------------------------------------------------------------------------

// Reads "4000", "16k", "1M".
static int read_bytes(struct reader *r, uint64_t *bytes)
{
    struct str word = word_here(r);
    size_t n = read_digits(word, bytes);
    unsigned shift = 0;
    if (n && n + 1 == word.len) {
        char c = word.ptr[n];
        shift = c == 'k' || c == 'K' ? 10 : c == 'M' || c == 'm' ? 20 : c == 'G' || c == 'g' ? 30 : 0;
        n += shift != 0;
    }
    if (!n || n != word.len || *bytes > UINT64_MAX >> shift >> 1)
        return fail(r, r->at, word.len ? word.len : 1,
                    "a number of bytes is expected here, such as 4000, 16k, 2M or 1G");
    *bytes <<= shift;
    r->at += word.len;
    return 0;
}

static int read_extent(struct reader *r, uint32_t *extent)
{
    struct str word = word_here(r);
    uint64_t value;
    size_t n = read_digits(word, &value);
    if (!n || n != word.len || value > UINT32_MAX)
        return fail(r, r->at, word.len ? word.len : 1, "a number of blocks or threads is expected here");
    if (!value)
        return fail(r, r->at, word.len, "no dimension of a grid or block can be 0");
    *extent = (uint32_t)value;
    r->at += word.len;
    return 0;
}

static int read_shape(struct reader *r, uint32_t shape[3])
{
    shape[0] = shape[1] = shape[2] = 1;
    bool named = take(r, "dim3");
    if (!take(r, "(")) {
        if (named)
            return fail(r, r->at, 1, "\"(\" is expected after dim3");
        return read_extent(r, shape);
    }
    for (int i = 0; i < 3; i++) {
        int err = read_extent(r, &shape[i]);
        if (err || take(r, ")"))
            return err;
        if (i < 2 && (err = expect(r, ",", "\",\" or \")\" is expected here")))
            return err;
    }
    return fail(r, r->at, 1, "\")\" is expected here: a shape has at most three dimensions");
}

// --- values ------------------------------------------------------------------------------------------------

static struct launch_text_value *add_value(struct reader *r, enum launch_text_kind kind)
{
    struct launch_text *t = r->to;
    if (t->nvalues == LAUNCH_TEXT_VALUES) {
        fail(r, r->at, 1, "there are too many values");
        return NULL;
    }
    struct launch_text_value *v = &t->values[t->nvalues++];
    *v = (struct launch_text_value){.kind = (uint8_t)kind, .pos = (uint32_t)r->at};
    return v;
}

// Reads the letters behind an integer: u, l, ll in any order.
static bool read_suffix(struct str rest, uint8_t *bytes)
{
    unsigned l = 0, u = 0;
    for (size_t i = 0; i < rest.len; i++) {
        l += (rest.ptr[i] | 32) == 'l';
        u += (rest.ptr[i] | 32) == 'u';
    }
    *bytes = l ? 8 : 4;
    return l <= 2 && u <= 1 && l + u == rest.len;
}

static int bad_value(struct reader *r, struct str word)
{
    return fail(r, r->at, word.len ? word.len : 1,
                "a value is expected here: an integer, a number such as 2.0, a pointer such as *4000 (to a "
                "buffer of 4,000 bytes), null, or {...} for a structure");
}

static int read_float(struct reader *r, struct str word, bool negative, struct launch_text_value *v)
{
    char text[NUMBER_TEXT], *end;
    bool single = word.len > 1 && (word.ptr[word.len - 1] | 32) == 'f' && !str_eq(word, STR("inf"));
    size_t n = word.len - single;
    if (n >= sizeof text)
        return bad_value(r, word);
    memcpy(text, word.ptr, n);
    text[n] = 0;
    bool special = str_eq((struct str){text, n}, STR("inf")) || str_eq((struct str){text, n}, STR("nan"));
    if (!special && !isdigit((unsigned char)text[0]) && text[0] != '.')
        return bad_value(r, word);
    v->number = strtod(text, &end);
    if (*end || end == text)
        return bad_value(r, word);
    v->number = negative ? -v->number : v->number;
    v->kind = LAUNCH_TEXT_FLOAT;
    v->bytes = single ? 4 : 8;
    r->at += word.len;
    return 0;
}

// Reads ":1", ":2", ":4" or ":8" behind an integer.
static int read_width(struct reader *r, struct launch_text_value *v)
{
    uint64_t width;
    if (!take(r, ":"))
        return 0;
    struct str word = word_here(r);
    size_t n = read_digits(word, &width);
    if (!n || n != word.len || (width != 1 && width != 2 && width != 4 && width != 8))
        return fail(r, r->at, word.len ? word.len : 1, "a width of 1, 2, 4 or 8 bytes is expected here");
    v->bytes = (uint8_t)width;
    r->at += word.len;
    return 0;
}

static bool is_digits(struct str word)
{
    size_t n = 0;
    while (n < word.len && isdigit((unsigned char)word.ptr[n]))
        n++;
    return n && n == word.len;
}

static int read_number(struct reader *r, struct launch_text_value *v)
{
    bool negative = take(r, "-");
    struct str word = word_here(r);
    if (!negative && (str_eq(word, STR("true")) || str_eq(word, STR("false")))) {
        v->bits = word.len == 4;
        v->bytes = 1;
        r->at += word.len;
        return 0;
    }
    size_t n = read_digits(word, &v->bits);
    if (!n && is_digits(word))
        return fail(r, r->at, word.len, "the number does not fit into 64 bits");
    if (!n || !read_suffix(str_skip(word, n), &v->bytes))
        return word.len ? read_float(r, word, negative, v) : bad_value(r, word);
    if (negative && v->bits > 1ull << 63)
        return fail(r, r->at, word.len, "the number does not fit into 64 bits");
    v->negative = negative && v->bits;
    v->bits = negative ? -v->bits : v->bits;
    r->at += word.len;
    return read_width(r, v);
}

static int read_pointer(struct reader *r, struct launch_text_value *v)
{
    v->kind = LAUNCH_TEXT_POINTER;
    v->bytes = 8;
    skip_blanks(r);
    if (!isdigit((unsigned char)peek(r)))
        return 0;
    v->sized = true;
    int err = read_bytes(r, &v->size);
    return err || !take(r, "+") ? err : read_bytes(r, &v->into);
}

static int read_value(struct reader *r);

static int read_struct(struct reader *r, struct launch_text_value *v)
{
    uint32_t before = r->to->nvalues;
    v->kind = LAUNCH_TEXT_STRUCT;
    if (++r->depth > MOST_DEPTH)
        return fail(r, r->at, 1, "structures are nested too deep");
    do {
        int err = read_value(r);
        if (err)
            return err;
    } while (take(r, ","));
    r->depth--;
    v->members = r->to->nvalues - before;
    return expect(r, "}", "\",\" or \"}\" is expected here");
}

static int read_value(struct reader *r)
{
    skip_blanks(r);
    struct launch_text_value *v = add_value(r, LAUNCH_TEXT_INT);
    int err;
    if (!v)
        return -EINVAL;
    struct str word = word_here(r);
    if (take(r, "*")) {
        err = read_pointer(r, v);
    } else if (take(r, "{")) {
        err = read_struct(r, v);
    } else if (str_eq(word, STR("null")) || str_eq(word, STR("nullptr")) || str_eq(word, STR("NULL"))) {
        v->kind = LAUNCH_TEXT_NULL;
        v->bytes = 8;
        r->at += word.len;
        err = 0;
    } else {
        err = read_number(r, v);
    }
    v->len = (uint32_t)(r->at - v->pos);
    return err;
}

static int read_values(struct reader *r)
{
    skip_blanks(r);
    r->to->args_pos = (uint32_t)r->at;
    int err = expect(r, "(", "\"(\" is expected here, with the kernel's arguments");
    if (err || take(r, ")"))
        return err;
    do {
        if ((err = read_value(r)))
            return err;
    } while (take(r, ","));
    return expect(r, ")", "\",\" or \")\" is expected here");
}

// --- the whole ---------------------------------------------------------------------------------------------

static int read_kernel(struct reader *r)
{
    struct str text = r->to->source.text;
    const char *end = memmem(text.ptr, text.len, "<<<", 3);
    skip_blanks(r);
    size_t from = r->at, to = end ? (size_t)(end - text.ptr) : text.len;
    if (!end)
        return fail(r, text.len, 1,
                    "\"<<<\" is missing: a launch looks like 'scale<<<4096,256>>>(*4000, 2.0, 1000)'");
    while (to > from && isspace((unsigned char)text.ptr[to - 1]))
        to--;
    if (to <= from)
        return fail(r, 0, 1, "the name of a kernel is expected here");
    r->to->kernel = (struct str){text.ptr + from, to - from};
    r->to->kernel_pos = (uint32_t)from;
    r->at = (size_t)(end - text.ptr) + 3;
    return 0;
}

static int read_config(struct reader *r)
{
    uint64_t shared;
    int err = read_shape(r, r->to->grid);
    if (!err)
        err = expect(r, ",", "\",\" and the shape of a block are expected here");
    if (!err)
        err = read_shape(r, r->to->block);
    if (err || take(r, ">>>"))
        return err;
    err = expect(r, ",", "\",\" or \">>>\" is expected here");
    size_t at = r->at;
    if (!err)
        err = read_bytes(r, &shared);
    if (!err && shared > UINT32_MAX)
        err = fail(r, at, 1, "no kernel can have that much shared memory");
    r->to->shared = err ? 0 : (uint32_t)shared;
    return err ? err : expect(r, ">>>", "\">>>\" is expected here");
}

int launch_text_read(struct str text, struct diag_sink *sink, struct launch_text *out)
{
    *out = (struct launch_text){.source = {"--launch", text}};
    struct reader r = {.to = out, .sink = sink};
    int err = text.len >= UINT32_MAX ? fail(&r, 0, 1, "the text is too long") : read_kernel(&r);
    if (!err)
        err = read_config(&r);
    if (!err)
        err = read_values(&r);
    take(&r, ";");
    skip_blanks(&r);
    return err || r.at == text.len ? err : fail(&r, r.at, 1, "nothing is expected after the arguments");
}
