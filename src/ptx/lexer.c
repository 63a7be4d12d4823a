// SPDX-License-Identifier: MIT
#include "ptx/lexer.h"

#include <locale.h>
#include <stdlib.h>

enum { SPACE = 1, NAME = 2, NAME_START = 4, DIGIT = 8, HEX = 16 };

static const uint8_t classes[256] = {
    [' '] = SPACE,
    ['\t'] = SPACE,
    ['\r'] = SPACE,
    ['\n'] = SPACE,
    ['\f'] = SPACE,
    ['\v'] = SPACE,
    ['0' ... '9'] = NAME | DIGIT | HEX,
    ['a' ... 'f'] = NAME | NAME_START | HEX,
    ['A' ... 'F'] = NAME | NAME_START | HEX,
    ['g' ... 'z'] = NAME | NAME_START,
    ['G' ... 'Z'] = NAME | NAME_START,
    ['_'] = NAME | NAME_START,
    ['$'] = NAME | NAME_START,
    ['%'] = NAME_START,
};

static bool is(char c, int what)
{
    return classes[(unsigned char)c] & what;
}

void lexer_init(struct lexer *l, struct str text)
{
    if (!text.ptr)
        text = STR("");
    *l = (struct lexer){.start = text.ptr, .next = text.ptr, .end = text.ptr + text.len};
    lexer_advance(l);
}

static void set(struct lexer *l, enum token_kind kind, const char *from, const char *to)
{
    l->tok.kind = (uint8_t)kind;
    l->tok.punct = 0;
    l->tok.text = (struct str){from, (size_t)(to - from)};
    l->next = to;
}

static void bad(struct lexer *l, const char *from, const char *to, const char *why)
{
    set(l, TOK_BAD, from, to);
    l->bad = why;
}

static bool skip_comment(struct lexer *l)
{
    const char *p = l->next;
    if (p[1] == '/') {
        const char *nl = memchr(p, '\n', (size_t)(l->end - p));
        l->next = nl ? nl : l->end;
        return true;
    }
    const char *close = memmem(p + 2, (size_t)(l->end - p - 2), "*/", 2);
    if (!close) {
        bad(l, p, l->end, "comment without an end");
        return false;
    }
    l->next = close + 2;
    return true;
}

static const char *skip_space(const char *p, const char *end)
{
    while (p < end && is(*p, SPACE))
        p++;
    return p;
}

// Skips comments and the space after them. Returns false at a comment without an end, which has become the
// token.
static bool skip_comments(struct lexer *l)
{
    while (l->end - l->next > 1 && l->next[0] == '/' && (l->next[1] == '/' || l->next[1] == '*')) {
        if (!skip_comment(l))
            return false;
        l->next = skip_space(l->next, l->end);
    }
    return true;
}

static const char *skip_name(const char *p, const char *end)
{
    while (p < end && is(*p, NAME))
        p++;
    return p;
}

// Skips .name or .name::name.
static const char *skip_word(const char *p, const char *end)
{
    p = skip_name(p + 1, end);
    while (end - p > 2 && p[0] == ':' && p[1] == ':' && is(p[2], NAME))
        p = skip_name(p + 2, end);
    return p;
}

static unsigned digit_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 32) - 'a' + 10);
}

// Reads digits of the given base from p on. The value wraps at 64 bits and sets *overflow.
static const char *read_digits(const char *p, const char *end, unsigned base, uint64_t *value, bool *overflow)
{
    *value = 0;
    for (; p < end && is(*p, HEX) && digit_value(*p) < base; p++) {
        uint64_t times;
        *overflow |= __builtin_mul_overflow(*value, base, &times);
        *overflow |= __builtin_add_overflow(times, digit_value(*p), value);
    }
    return p;
}

// Ends a number, which is malformed if a character of a name follows.
static void end_number(struct lexer *l, enum token_kind kind, const char *from, const char *to)
{
    if (to < l->end && is(*to, NAME))
        bad(l, from, skip_name(to, l->end), "malformed number");
    else
        set(l, kind, from, to);
}

// Lexes 0f and 8 digits, or 0d and 16: the exact bits.
static void lex_float_bits(struct lexer *l, const char *p)
{
    int digits = (p[1] | 32) == 'f' ? 8 : 16;
    bool overflow = false;
    const char *end = read_digits(p + 2, l->end, 16, &l->tok.value, &overflow);
    if (end - p - 2 != digits) {
        bad(l, p, end, digits == 8 ? "0f wants 8 hexadecimal digits" : "0d wants 16 hexadecimal digits");
        return;
    }
    end_number(l, digits == 8 ? TOK_F32 : TOK_F64, p, end);
}

static const char *skip_decimal_float(const char *p, const char *end)
{
    while (p < end && is(*p, DIGIT))
        p++;
    if (p < end && *p == '.')
        p++;
    while (p < end && is(*p, DIGIT))
        p++;
    if (p < end && (*p | 32) == 'e') {
        const char *exponent = p + 1;
        if (exponent < end && (*exponent == '+' || *exponent == '-'))
            exponent++;
        if (exponent < end && is(*exponent, DIGIT)) {
            while (exponent < end && is(*exponent, DIGIT))
                exponent++;
            return exponent;
        }
    }
    return p;
}

// Converts in the C locale: the host program's locale must not decide what a decimal point is.
static double to_double(const char *text)
{
    static locale_t c_locale;
    locale_t mine = __atomic_load_n(&c_locale, __ATOMIC_ACQUIRE);  // pairs with the exchange below
    if (!mine) {
        locale_t made = newlocale(LC_ALL_MASK, "C", (locale_t)0), none = (locale_t)0;
        if (__atomic_compare_exchange_n(&c_locale, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            mine = made;
        } else {
            freelocale(made);
            mine = none;
        }
    }
    return strtod_l(text, NULL, mine);
}

static void lex_decimal_float(struct lexer *l, const char *p, const char *to)
{
    char copy[128];
    size_t len = (size_t)(to - p);
    if (len >= sizeof copy) {
        bad(l, p, to, "number is too long");
        return;
    }
    memcpy(copy, p, len);
    copy[len] = 0;
    double d = to_double(copy);
    memcpy(&l->tok.value, &d, sizeof d);
    end_number(l, TOK_F64, p, to);
}

static void lex_int(struct lexer *l, const char *p)
{
    unsigned base = 10;
    const char *digits = p;
    if (p[0] == '0' && l->end - p > 1) {
        char x = p[1] | 32;
        base = x == 'x' ? 16 : x == 'b' ? 2 : is(p[1], DIGIT) ? 8 : 10;
        digits += base == 16 || base == 2 ? 2 : 0;
    }
    bool overflow = false;
    const char *to = read_digits(digits, l->end, base, &l->tok.value, &overflow);
    if (to == digits) {
        bad(l, p, to, "number without digits");
        return;
    }
    if (to < l->end && *to == 'U')
        to++;
    if (overflow)
        bad(l, p, to, "number does not fit 64 bits");
    else
        end_number(l, TOK_INT, p, to);
}

static void lex_number(struct lexer *l, const char *p)
{
    if (p[0] == '0' && l->end - p > 1 && ((p[1] | 32) == 'f' || (p[1] | 32) == 'd')) {
        lex_float_bits(l, p);
        return;
    }
    bool prefixed = p[0] == '0' && l->end - p > 1 && ((p[1] | 32) == 'x' || (p[1] | 32) == 'b');
    const char *to = prefixed ? p : skip_decimal_float(p, l->end);
    bool is_float = memchr(p, '.', (size_t)(to - p)) || memchr(p, 'e', (size_t)(to - p)) ||
                    memchr(p, 'E', (size_t)(to - p));
    if (is_float)
        lex_decimal_float(l, p, to);
    else
        lex_int(l, p);
}

static void lex_string(struct lexer *l, const char *p)
{
    const char *q = p + 1;
    while (q < l->end && *q != '"' && *q != '\n')
        q += *q == '\\' && q + 1 < l->end ? 2 : 1;
    if (q >= l->end || *q != '"')
        bad(l, p, q < l->end ? q : l->end, "string without an end");
    else
        set(l, TOK_STRING, p, q + 1);
}

// Returns whether a number begins with a point: .5 and .5e3 are numbers; .2d and .1D are words.
static bool is_fraction(const char *p, const char *end)
{
    if (end - p < 2 || !is(p[1], DIGIT))
        return false;
    const char *to = skip_decimal_float(p, end);
    return to == end || !is(*to, NAME);
}

// Accepts trailing NULs as the end: texts in fatbins end in one or several.
static void lex_nul(struct lexer *l, const char *p)
{
    const char *q = p;
    while (q < l->end && *q == 0)
        q++;
    if (q == l->end)
        set(l, TOK_END, q, q);
    else
        bad(l, p, p + 1, "NUL inside the text");
}

void lexer_advance(struct lexer *l)
{
    const char *end = l->end, *p = skip_space(l->next, end);
    l->prev_end = l->next;
    if (p < end && *p == '/') {
        l->next = p;
        if (!skip_comments(l))
            return;
        p = l->next;
    }
    if (p == end) {
        set(l, TOK_END, p, p);
        return;
    }
    char c = *p;
    if (is(c, NAME_START)) {
        set(l, TOK_IDENT, p, skip_name(p + 1, end));
        if (str_eq(l->tok.text, STR("WARP_SZ"))) {
            l->tok.kind = TOK_INT;
            l->tok.value = 32;
        }
    } else if (c == '.' && is_fraction(p, end)) {
        lex_decimal_float(l, p, skip_decimal_float(p, end));
    } else if (c == '.' && end - p > 1 && is(p[1], NAME)) {
        set(l, TOK_WORD, p, skip_word(p, end));
    } else if (is(c, DIGIT)) {
        lex_number(l, p);
    } else if (c == '"') {
        lex_string(l, p);
    } else if (c > 32 && c < 127) {
        set(l, TOK_PUNCT, p, p + 1);
        l->tok.punct = c;
    } else if (c == 0) {
        lex_nul(l, p);
    } else {
        bad(l, p, p + 1, "unexpected byte");
    }
}

char lexer_peek(const struct lexer *l)
{
    const char *p = skip_space(l->next, l->end);
    if (p == l->end || *p != '/')
        return p < l->end ? *p : 0;
    struct lexer ahead = *l;
    lexer_advance(&ahead);
    return ahead.tok.text.len ? ahead.tok.text.ptr[0] : 0;
}

struct str lexer_take_form(struct lexer *l)
{
    const char *p = l->tok.text.ptr, *q = p + l->tok.text.len;
    while (l->end - q > 1 && q[0] == '.' && is(q[1], NAME))
        q = skip_word(q, l->end);
    l->next = q;
    lexer_advance(l);
    return (struct str){p, (size_t)(q - p)};
}

struct str lexer_take_verbatim(struct lexer *l, const char *stops)
{
    const char *from = l->tok.text.ptr, *to = from;
    while (l->tok.kind != TOK_END && l->tok.kind != TOK_BAD &&
           !(l->tok.punct && strchr(stops, l->tok.punct))) {
        to = l->next;
        lexer_advance(l);
    }
    return (struct str){from, (size_t)(to - from)};
}
