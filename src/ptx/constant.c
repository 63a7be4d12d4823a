// SPDX-License-Identifier: MIT
#include "ptx/constant.h"

#include "ptx/ptx.h"

enum { MOST_NESTING = 64 };

struct state {
    struct lexer *lex;
    const char *why;
    struct str where;
    unsigned nesting;
};

static void fail_at(struct state *s, struct str where, const char *why)
{
    if (s->why)
        return;
    s->why = why;
    s->where = where;
}

static void fail(struct state *s, const char *why)
{
    fail_at(s, s->lex->tok.text, s->lex->tok.kind == TOK_BAD ? s->lex->bad : why);
}

enum operation {
    ADD,
    SUB,
    MUL,
    DIV,
    REM,
    SHL,
    SHR,
    LT,
    GT,
    LE,
    GE,
    EQ,
    NE,
    AND,
    XOR,
    OR,
    ANDAND,
    OROR,
    NO_OPERATION
};

static const struct {
    const char *text;
    uint8_t precedence;
} operations[] = {
    [ADD] = {"+", 9},  [SUB] = {"-", 9},     [MUL] = {"*", 10},  [DIV] = {"/", 10}, [REM] = {"%", 10},
    [SHL] = {"<<", 8}, [SHR] = {">>", 8},    [LT] = {"<", 7},    [GT] = {">", 7},   [LE] = {"<=", 7},
    [GE] = {">=", 7},  [EQ] = {"==", 6},     [NE] = {"!=", 6},   [AND] = {"&", 5},  [XOR] = {"^", 4},
    [OR] = {"|", 3},   [ANDAND] = {"&&", 2}, [OROR] = {"||", 1},
};

// Returns the operator at the current token; two characters are tried before one. Before a name, % is lexed
// as part of the name.
static enum operation peek(const struct lexer *l)
{
    char c = l->tok.punct, d = l->next < l->end ? *l->next : 0;
    if (c == ',' || c == ';' || c == ']' || c == '}' || c == ')')  // by far the most frequent
        return NO_OPERATION;
    if (l->tok.kind == TOK_IDENT && l->tok.text.ptr[0] == '%')
        return REM;
    enum operation one = NO_OPERATION;
    for (unsigned i = 0; i < NO_OPERATION; i++) {
        const char *t = operations[i].text;
        if (t[0] == c && t[1] && t[1] == d)
            return (enum operation)i;
        if (t[0] == c && !t[1])
            one = (enum operation)i;
    }
    return one;
}

// Advances past the operator and returns it as written.
static struct str take_operator(struct lexer *l, enum operation op)
{
    struct str text = {l->tok.text.ptr, strlen(operations[op].text)};
    l->next = text.ptr + text.len;
    lexer_advance(l);
    return text;
}

// Applies op to floating-point operands: arithmetic stays floating-point, a comparison becomes an integer.
// Returns what is wrong, or NULL.
static const char *apply_double(enum operation op, struct constant *a, const struct constant *b)
{
    double x, y, r = 0;
    uint64_t truth = 0;
    memcpy(&x, &a->value, sizeof x);
    memcpy(&y, &b->value, sizeof y);
    switch (op) {
    case ADD: r = x + y; break;
    case SUB: r = x - y; break;
    case MUL: r = x * y; break;
    case DIV: r = x / y; break;
    case LT: truth = x < y; break;
    case GT: truth = x > y; break;
    case LE: truth = x <= y; break;
    case GE: truth = x >= y; break;
    case EQ: truth = x == y; break;
    case NE: truth = x != y; break;
    default: return "this operator is not for floating-point constants";
    }
    memcpy(&a->value, &r, sizeof r);
    if (op >= LT && op <= NE)
        *a = (struct constant){.kind = PTX_IMM_INT, .value = truth};
    return NULL;
}

static uint64_t divide(uint64_t x, uint64_t y, bool is_unsigned)
{
    if (is_unsigned)
        return x / y;
    if (y == UINT64_MAX)  // by -1: the one quotient that does not fit wraps
        return 0 - x;
    return (uint64_t)((int64_t)x / (int64_t)y);
}

// Shifts as ptxas does: only the lowest six bits of the distance count.
static uint64_t shift(enum operation op, uint64_t x, uint64_t y, bool is_unsigned)
{
    y &= 63;
    if (op == SHL)
        return x << y;
    return is_unsigned ? x >> y : (uint64_t)((int64_t)x >> y);
}

static uint64_t compare(enum operation op, uint64_t x, uint64_t y, bool is_unsigned)
{
    bool less = is_unsigned ? x < y : (int64_t)x < (int64_t)y;
    switch (op) {
    case LT: return less;
    case GT: return !less && x != y;
    case LE: return less || x == y;
    case GE: return !less;
    case EQ: return x == y;
    default: return x != y;
    }
}

static const char *apply_int(enum operation op, struct constant *a, const struct constant *b)
{
    uint64_t x = a->value, y = b->value;
    bool u = a->is_unsigned || b->is_unsigned;
    switch (op) {
    case ADD: x += y; break;
    case SUB: x -= y; break;
    case MUL: x *= y; break;
    case DIV:
    case REM:
        if (y == 0)
            return "division by zero";
        u |= op == REM;  // a remainder is unsigned, whatever its operands are
        x = op == REM ? x % y : divide(x, y, u);
        break;
    case SHL:
    case SHR:
        u = a->is_unsigned;
        x = shift(op, x, y, u);
        break;
    case AND: x &= y; break;
    case XOR: x ^= y; break;
    case OR: x |= y; break;
    case ANDAND: x = x && y; break;
    case OROR: x = x || y; break;
    default: x = compare(op, x, y, u); break;
    }
    a->value = x;
    a->is_unsigned = u && !(op >= LT && op <= NE) && op != ANDAND && op != OROR;
    return NULL;
}

static const char *apply(enum operation op, struct constant *a, const struct constant *b)
{
    if (a->kind == PTX_IMM_F32 || b->kind == PTX_IMM_F32)
        return "a 0f constant cannot be part of an expression";
    if (a->kind != b->kind)
        return "integer and floating-point constants are mixed";
    return a->kind == PTX_IMM_INT ? apply_int(op, a, b) : apply_double(op, a, b);
}

static void parse_unary(struct state *s, struct constant *out);
static void parse_ternary(struct state *s, struct constant *out);

static void parse_literal(struct state *s, struct constant *out)
{
    const struct token *t = &s->lex->tok;
    switch (t->kind) {
    case TOK_INT: {
        bool big = t->value >> 63;
        bool suffix = t->text.ptr[t->text.len - 1] == 'U';
        *out = (struct constant){.kind = PTX_IMM_INT, .is_unsigned = suffix || big, .value = t->value};
        break;
    }
    case TOK_F32: *out = (struct constant){.kind = PTX_IMM_F32, .value = t->value}; break;
    case TOK_F64: *out = (struct constant){.kind = PTX_IMM_F64, .value = t->value}; break;
    case TOK_IDENT: fail(s, "a number is expected here, not a name"); return;
    case TOK_END: fail(s, "the text ends where an operand is expected"); return;
    default: fail(s, "an operand is missing here"); return;
    }
    lexer_advance(s->lex);
}

static void expect(struct state *s, char punct, const char *why)
{
    if (s->why)
        return;
    if (s->lex->tok.punct == punct)
        lexer_advance(s->lex);
    else
        fail(s, why);
}

// Parses a parenthesis: (.s64) and (.u64) convert, all others group.
static void parse_parenthesis(struct state *s, struct constant *out)
{
    lexer_advance(s->lex);
    if (s->lex->tok.kind != TOK_WORD) {
        parse_ternary(s, out);
        expect(s, ')', "')' is missing");
        return;
    }
    struct str word = s->lex->tok.text;
    bool u = str_eq(word, STR(".u64"));
    if (!u && !str_eq(word, STR(".s64"))) {
        fail(s, "only (.s64) and (.u64) convert constants");
        return;
    }
    lexer_advance(s->lex);
    expect(s, ')', "')' is missing");
    if (s->why)
        return;
    parse_unary(s, out);
    if (!s->why && out->kind != PTX_IMM_INT)
        fail_at(s, word, "only integers can be converted");
    out->is_unsigned = u;
}

static const char *negate(struct constant *c, char op)
{
    if (c->kind == PTX_IMM_INT) {
        c->value = op == '-' ? 0 - c->value : op == '~' ? ~c->value : op == '!' ? !c->value : c->value;
        c->is_unsigned = op == '~' || (c->is_unsigned && op != '!');
    } else if (c->kind == PTX_IMM_F32) {
        return "a 0f constant cannot be part of an expression";
    } else if (op == '-') {
        c->value ^= 0x8000000000000000u;
    } else if (op != '+') {
        return "this operator is not for floating-point constants";
    }
    return NULL;
}

static void parse_unary(struct state *s, struct constant *out)
{
    if (++s->nesting > MOST_NESTING) {
        fail(s, "this constant expression is nested too deep");
        return;
    }
    struct token t = s->lex->tok;
    if (t.punct == '-' || t.punct == '+' || t.punct == '~' || t.punct == '!') {
        lexer_advance(s->lex);
        parse_unary(s, out);
        const char *why = s->why ? NULL : negate(out, t.punct);
        if (why)
            fail_at(s, t.text, why);
    } else if (t.punct == '(') {
        parse_parenthesis(s, out);
    } else {
        parse_literal(s, out);
    }
    s->nesting--;
}

static void parse_binary(struct state *s, struct constant *out, unsigned least)
{
    parse_unary(s, out);
    while (!s->why) {
        enum operation op = peek(s->lex);
        if (op == NO_OPERATION || operations[op].precedence < least)
            return;
        struct str written = take_operator(s->lex, op);
        struct constant right;
        parse_binary(s, &right, operations[op].precedence + 1u);
        const char *why = s->why ? NULL : apply(op, out, &right);
        if (why)
            fail_at(s, written, why);
    }
}

static void parse_ternary(struct state *s, struct constant *out)
{
    parse_binary(s, out, 1);
    if (s->why || s->lex->tok.punct != '?')
        return;
    struct str mark = s->lex->tok.text;
    if (++s->nesting > MOST_NESTING) {
        fail(s, "this constant expression is nested too deep");
        return;
    }
    lexer_advance(s->lex);
    struct constant yes, no;
    parse_ternary(s, &yes);
    expect(s, ':', "':' is missing");
    if (s->why)
        return;
    parse_ternary(s, &no);
    if (s->why)
        return;
    if (out->kind != PTX_IMM_INT || yes.kind != PTX_IMM_INT || no.kind != PTX_IMM_INT)
        fail_at(s, mark, "?: is for integers");
    *out = out->value ? yes : no;
    s->nesting--;
}

const char *constant_parse(struct lexer *l, struct constant *out)
{
    struct state s = {.lex = l};
    const char *from = l->tok.text.ptr;
    *out = (struct constant){0};
    parse_ternary(&s, out);
    out->text = s.why ? s.where : (struct str){from, (size_t)(l->prev_end - from)};
    return s.why;
}
