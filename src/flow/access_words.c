// SPDX-License-Identifier: MIT
// Expressions are collected as sums first, so that they can be written as people write them: terms with the
// same factor stand in one pair of parentheses.
#include "flow/access_words.h"

#include "flow/access_division.h"
#include "flow/judge.h"
#include "flow/launch_bind.h"

enum { TERMS = 24, FACTORS = 4, DEPTH = 10, LONG = 400, STEPS = 20000 };

// coef * the product of what the instructions stand for.
struct term {
    int64_t coef;
    unsigned n;
    uint32_t factors[FACTORS];  // instructions; of a LOOP: its counter
    bool done;
};

struct sum {
    unsigned n;
    struct term terms[TERMS];
    int64_t constant;
};

struct writer {
    struct access_words *w;
    struct out *o;
    size_t start;  // of the text
};

static const struct proof_insn *insn(const struct access_words *w, uint32_t at)
{
    return &w->p->insns[at];
}

// --- sums --------------------------------------------------------------------------------------------------

static bool same_factors(const struct term *a, const struct term *b)
{
    return a->n == b->n && memcmp(a->factors, b->factors, a->n * sizeof *a->factors) == 0;
}

static bool add_term(struct sum *s, struct term t)
{
    if (!t.n)
        return !__builtin_add_overflow(s->constant, t.coef, &s->constant);
    for (unsigned i = 0; i < s->n; i++)
        if (same_factors(&s->terms[i], &t))
            return !__builtin_add_overflow(s->terms[i].coef, t.coef, &s->terms[i].coef);
    if (s->n == TERMS)
        return false;
    s->terms[s->n++] = t;
    return true;
}

static bool add_sum(struct sum *to, const struct sum *from, int64_t scale)
{
    for (unsigned i = 0; i <= from->n; i++) {
        struct term t = i < from->n ? from->terms[i] : (struct term){.coef = from->constant};
        if (__builtin_mul_overflow(t.coef, scale, &t.coef) || !add_term(to, t))
            return false;
    }
    return true;
}

static unsigned count_terms(const struct sum *s)
{
    unsigned n = s->constant != 0;
    for (unsigned i = 0; i < s->n; i++)
        n += s->terms[i].coef != 0;
    return n;
}

// Multiplies by a number, or two terms. Other products stay as they are: (i + 1)*n is easier to read than
// i*n + n.
static bool multiply(struct sum *to, const struct sum *a, const struct sum *b)
{
    *to = (struct sum){0};
    if (a->n && b->n && (count_terms(a) > 1 || count_terms(b) > 1))
        return false;
    for (unsigned i = 0; i <= a->n; i++)
        for (unsigned j = 0; j <= b->n; j++) {
            struct term x = i < a->n ? a->terms[i] : (struct term){.coef = a->constant};
            const struct term y = j < b->n ? b->terms[j] : (struct term){.coef = b->constant};
            if (!x.coef || !y.coef)
                continue;
            if (x.n + y.n > FACTORS || __builtin_mul_overflow(x.coef, y.coef, &x.coef))
                return false;
            memcpy(x.factors + x.n, y.factors, y.n * sizeof *y.factors);
            x.n += y.n;
            if (!add_term(to, x))
                return false;
        }
    return true;
}

static bool collect(struct access_words *w, uint32_t at, unsigned depth, struct sum *to);

// Makes the sum of two operands. Returns false if that is no sum.
static bool collect_two(struct access_words *w, const struct proof_insn *i, unsigned depth, struct sum *to)
{
    struct sum a = {0}, b = {0};
    if (!collect(w, i->a, depth, &a) || !collect(w, i->b, depth, &b))
        return false;
    switch (i->op) {
    case PROOF_ADD: *to = a; return add_sum(to, &b, 1);
    case PROOF_SUB: *to = a; return add_sum(to, &b, -1);
    case PROOF_MUL: return multiply(to, &a, &b);
    case PROOF_SHL: return !b.n && b.constant >= 0 && b.constant < 62 && add_sum(to, &a, 1ll << b.constant);
    default: break;
    }
    // STEPS: a + b * counter
    struct sum counter = {.n = 1, .terms = {{.coef = 1, .n = 1, .factors = {i->c}}}}, product;
    *to = a;
    return multiply(&product, &b, &counter) && add_sum(to, &product, 1);
}

// Collects the value of an instruction; what is no sum is a term by itself. Returns false if it is too long.
static bool collect(struct access_words *w, uint32_t at, unsigned depth, struct sum *to)
{
    const struct proof_insn *i = insn(w, at);
    *to = (struct sum){0};
    if (++w->steps > STEPS || depth > 4 * DEPTH)
        return false;
    if (i->op == PROOF_EXTEND || i->op == PROOF_CAST)
        return collect(w, i->a, depth + 1, to);
    if (i->op == PROOF_CONST) {
        to->constant = i->imm;
        return true;
    }
    bool summed = i->op == PROOF_ADD || i->op == PROOF_SUB || i->op == PROOF_MUL || i->op == PROOF_SHL ||
                  i->op == PROOF_STEPS;
    struct access_division d;
    if (summed && !access_division(w->p, at, &d) && collect_two(w, i, depth + 1, to))
        return true;
    *to = (struct sum){.n = 1, .terms = {{.coef = 1, .n = 1, .factors = {at}}}};
    return true;
}

// --- atoms -------------------------------------------------------------------------------------------------

static void write_value(struct writer *x, uint32_t at, unsigned depth, bool inside);
static void write_predicate(struct writer *x, uint32_t at, bool negated, unsigned depth, bool inside);

static bool is_full(const struct writer *x)
{
    return x->o->len - x->start > LONG;
}

static struct access_words_param param_of(const struct access_words *w, uint32_t i, uint32_t at)
{
    if (!w->f)
        return w->params[i];
    struct launch_bind_slot s = launch_bind_slot(&w->f->params[i], at);
    return (struct access_words_param){s.offset, s.size};
}

// Writes the parameter at a byte of all parameters.
static void write_param(struct writer *x, uint32_t byte)
{
    uint32_t at = 0, n = x->w->f ? x->w->f->nparams : x->w->nparams;
    for (uint32_t i = 0; i < n; i++) {
        struct access_words_param s = param_of(x->w, i, at);
        if (byte >= s.offset && byte - s.offset < s.size) {
            out_fmt(x->o, "p%u", i);
            if (byte > s.offset || s.size > 8)
                out_fmt(x->o, ".%u", byte - s.offset);
            return;
        }
        at = s.offset + s.size;
    }
    out_char(x->o, '?');
}

static void write_launch(struct writer *x, int64_t value)
{
    static const char *const names[] = {"threadIdx", "blockDim", "blockIdx", "gridDim"};
    if (value == PROOF_DYNAMIC_SHARED)
        out_lit(x->o, "dynamic shared bytes");
    else
        out_fmt(x->o, "%s.%c", names[value / 3], "xyz"[value % 3]);
}

static void write_counter(struct writer *x, uint32_t loop)
{
    struct access_words *w = x->w;
    uint32_t i = 0;
    while (i < w->nloops && w->loops[i] != loop)
        i++;
    if (i == w->nloops && i < ACCESS_WORDS_LOOPS)
        w->loops[w->nloops++] = loop;
    if (i < ACCESS_WORDS_LOOPS)
        out_fmt(x->o, "k%u", i + 1);
    else
        out_char(x->o, 'k');
}

static void write_call(struct writer *x, const char *name, const struct proof_insn *i, bool two,
                       unsigned depth)
{
    out_fmt(x->o, "%s(", name);
    write_value(x, i->a, depth, false);
    if (two) {
        out_lit(x->o, ", ");
        write_value(x, i->b, depth, false);
    }
    out_char(x->o, ')');
}

static void write_infix(struct writer *x, const char *sign, const struct proof_insn *i, unsigned depth)
{
    out_char(x->o, '(');
    write_value(x, i->a, depth, true);
    out_cstr(x->o, sign);
    write_value(x, i->b, depth, true);
    out_char(x->o, ')');
}

// Bits imm to imm + b - 1 of a.
static void write_field(struct writer *x, const struct proof_insn *i, unsigned depth)
{
    out_char(x->o, '(');
    write_value(x, i->a, depth, true);
    if (i->imm)
        out_fmt(x->o, " >> %lld", (long long)i->imm);
    if (i->b < 32)
        out_fmt(x->o, " & %llu", (1ull << i->b) - 1);
    out_char(x->o, ')');
}

static void write_grows(struct writer *x, const struct proof_insn *i, unsigned depth)
{
    out_char(x->o, '(');
    write_value(x, i->a, depth, true);
    out_fmt(x->o, ", times %u up to ", i->c);
    write_value(x, i->b, depth, true);
    out_char(x->o, ')');
}

static void write_select(struct writer *x, const struct proof_insn *i, unsigned depth)
{
    out_char(x->o, '(');
    write_predicate(x, i->c, false, depth, true);
    out_lit(x->o, " ? ");
    write_value(x, i->a, depth, true);
    out_lit(x->o, " : ");
    write_value(x, i->b, depth, true);
    out_char(x->o, ')');
}

// Returns the number of edges of the block that an instruction is in.
static uint32_t ways_into(const struct access_words *w, uint32_t at)
{
    while (at > 0 && insn(w, at)->op != PROOF_BLOCK)
        at--;
    return insn(w, at)->op == PROOF_BLOCK ? insn(w, at)->b : 0;
}

static void write_merge(struct writer *x, uint32_t at, unsigned depth)
{
    uint32_t n = ways_into(x->w, at), first = insn(x->w, at)->a;
    out_char(x->o, '(');
    for (uint32_t i = 0; i < n && i < 3; i++) {
        out_cstr(x->o, i ? " or " : "");
        write_value(x, x->w->p->inputs[first + i], depth, true);
    }
    out_cstr(x->o, n > 3 ? " or ...)" : n ? ")" : "?)");
}

// Writes a choice by its condition, or which pointers it is one of.
static void write_choice(struct writer *x, const struct proof_insn *i, unsigned depth)
{
    char name[512];
    if (insn(x->w, i->a)->op != PROOF_OPAQUE) {
        write_value(x, i->a, depth, true);
        return;
    }
    judge_root(x->w->p, i->b, name, sizeof name);
    out_fmt(x->o, "(%s)", name);
}

static void write_atom(struct writer *x, uint32_t at, unsigned depth)
{
    const struct proof_insn *i = insn(x->w, at);
    struct access_division d;
    char name[512];
    if (access_division(x->w->p, at, &d)) {
        out_char(x->o, '(');
        write_value(x, d.dividend, depth, true);
        out_fmt(x->o, "/%lld)", (long long)d.divisor);
        return;
    }
    switch (i->op) {
    case PROOF_PARAM: write_param(x, (uint32_t)i->imm); break;
    case PROOF_LAUNCH: write_launch(x, i->imm); break;
    case PROOF_BASE:
        judge_root(x->w->p, i->a, name, sizeof name);
        out_cstr(x->o, name);
        break;
    case PROOF_CHOICE: write_choice(x, i, depth); break;
    case PROOF_LOOP: write_counter(x, at); break;
    case PROOF_BETWEEN: out_fmt(x->o, "(0 .. %lld)", (long long)i->imm); break;
    case PROOF_MUL:
        write_value(x, i->a, depth, true);
        out_char(x->o, '*');
        write_value(x, i->b, depth, true);
        break;
    case PROOF_DIV: write_infix(x, "/", i, depth); break;
    case PROOF_REM: write_infix(x, "%", i, depth); break;
    case PROOF_SHL: write_infix(x, " << ", i, depth); break;
    case PROOF_SHR: write_infix(x, " >> ", i, depth); break;
    case PROOF_AND: write_infix(x, " & ", i, depth); break;
    case PROOF_OR: write_infix(x, " | ", i, depth); break;
    case PROOF_XOR: write_infix(x, " ^ ", i, depth); break;
    case PROOF_MIN: write_call(x, "min", i, true, depth); break;
    case PROOF_MAX: write_call(x, "max", i, true, depth); break;
    case PROOF_ABS: write_call(x, "abs", i, false, depth); break;
    case PROOF_STAYS: out_fmt(x->o, "(0 to %lld)", (long long)i->imm); break;
    case PROOF_SHRINKS:
        out_char(x->o, '(');
        write_value(x, i->a, depth, true);
        out_lit(x->o, " down to 0)");
        break;
    case PROOF_GROWS: write_grows(x, i, depth); break;
    case PROOF_FIELD: write_field(x, i, depth); break;
    case PROOF_SELECT: write_select(x, i, depth); break;
    case PROOF_MERGE: write_merge(x, at, depth); break;
    default: out_char(x->o, '?'); break;
    }
}

// --- values ------------------------------------------------------------------------------------------------

static void write_factors(struct writer *x, const struct term *t, unsigned depth)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (i)
            out_char(x->o, '*');
        write_atom(x, t->factors[i], depth);
    }
}

static void write_sign(struct writer *x, bool first, bool negative)
{
    if (first)
        out_cstr(x->o, negative ? "-" : "");
    else
        out_cstr(x->o, negative ? " - " : " + ");
}

// Writes the terms that have this factor, or its opposite.
static void write_group(struct writer *x, struct sum *s, unsigned from, bool first, unsigned depth)
{
    int64_t coef = s->terms[from].coef;
    unsigned count = 0, done = 0;
    uint64_t size = coef < 0 ? -(uint64_t)coef : (uint64_t)coef;
    for (unsigned i = from; i < s->n; i++)
        count += !s->terms[i].done && (s->terms[i].coef == coef || s->terms[i].coef == -coef);
    bool group = size != 1 && count > 1;
    for (unsigned i = from; i < s->n; i++) {
        struct term *t = &s->terms[i];
        if (t->done || (t->coef != coef && t->coef != -coef))
            continue;
        if (group && !done) {
            write_sign(x, first, coef < 0);
            out_fmt(x->o, "%llu*(", (unsigned long long)size);
        }
        write_sign(x, group ? !done : first && !done, group ? t->coef != coef : t->coef < 0);
        if (!group && size != 1)
            out_fmt(x->o, "%llu*", (unsigned long long)size);
        write_factors(x, t, depth);
        t->done = true;
        done++;
    }
    if (group)
        out_char(x->o, ')');
}

// Returns whether a term is what the address starts from.
static bool is_root(const struct access_words *w, const struct term *t)
{
    const struct proof_insn *i = insn(w, t->factors[0]);
    return t->n == 1 && t->coef == 1 &&
           (i->op == PROOF_BASE || i->op == PROOF_CHOICE ||
            (i->op == PROOF_PARAM && i->a == w->root && i->a != PROOF_NONE));
}

// Moves the root to the front.
static void order(const struct access_words *w, struct sum *s)
{
    for (unsigned i = 1; i < s->n; i++)
        if (is_root(w, &s->terms[i]) && !is_root(w, &s->terms[0])) {
            struct term root = s->terms[i];
            memmove(&s->terms[1], &s->terms[0], i * sizeof root);
            s->terms[0] = root;
        }
}

static void write_sum(struct writer *x, struct sum *s, unsigned depth, bool inside)
{
    order(x->w, s);
    unsigned count = count_terms(s);
    bool first = true;
    for (unsigned i = 0; i < s->n; i++)
        s->terms[i].done = !s->terms[i].coef;
    if (inside && count > 1)
        out_char(x->o, '(');
    for (unsigned i = 0; i < s->n; i++) {
        if (s->terms[i].done)
            continue;
        write_group(x, s, i, first, depth);
        first = false;
    }
    if (s->constant || first) {
        write_sign(x, first, s->constant < 0);
        out_u64(x->o, s->constant < 0 ? -(uint64_t)s->constant : (uint64_t)s->constant);
    }
    if (inside && count > 1)
        out_char(x->o, ')');
}

static void write_value(struct writer *x, uint32_t at, unsigned depth, bool inside)
{
    struct sum s;
    if (depth >= DEPTH || is_full(x) || !collect(x->w, at, 0, &s))
        out_lit(x->o, "...");
    else
        write_sum(x, &s, depth + 1, inside);
}

// --- conditions --------------------------------------------------------------------------------------------

static const char *relation_text(unsigned relation, bool negated)
{
    static const char *const texts[] = {" < ", " <= ", " > ", " >= ", " == ", " != "};
    static const uint8_t opposite[] = {PROOF_GE, PROOF_GT, PROOF_LE, PROOF_LT, PROOF_NE, PROOF_EQ};
    return texts[negated ? opposite[relation] : relation];
}

static void write_both(struct writer *x, const struct proof_insn *i, bool negated, unsigned depth,
                       bool inside)
{
    bool both = (i->op == PROOF_BOTH) != negated;
    if (inside)
        out_char(x->o, '(');
    write_predicate(x, i->a, negated, depth, true);
    out_cstr(x->o, both ? " && " : " || ");
    write_predicate(x, i->b, negated, depth, true);
    if (inside)
        out_char(x->o, ')');
}

static void write_predicate(struct writer *x, uint32_t at, bool negated, unsigned depth, bool inside)
{
    const struct proof_insn *i = insn(x->w, at);
    if (depth >= DEPTH || is_full(x)) {
        out_lit(x->o, "...");
        return;
    }
    switch (i->op) {
    case PROOF_COMPARE:
        write_value(x, i->a, depth + 1, false);
        out_cstr(x->o, relation_text(i->sign, negated));
        write_value(x, i->b, depth + 1, false);
        break;
    case PROOF_BOTH:
    case PROOF_EITHER: write_both(x, i, negated, depth + 1, inside); break;
    case PROOF_OPPOSITE: write_predicate(x, i->a, !negated, depth + 1, inside); break;
    case PROOF_ALWAYS: out_cstr(x->o, (i->imm != 0) != negated ? "true" : "false"); break;
    default: out_lit(x->o, "a condition that is not understood"); break;
    }
}

// --- an access ---------------------------------------------------------------------------------------------

bool access_words_start(struct access_words *w, const struct ranges *r, uint32_t access)
{
    const struct ranges_access *a = &r->accesses[access];
    *w = (struct access_words){.p = &r->proof, .f = r->f, .access = a->insn, .root = a->root};
    return w->access < w->p->head->ninsns && insn(w, w->access)->op == PROOF_ACCESS;
}

bool access_words_open(struct access_words *w, const struct proof *p, uint32_t row, uint32_t root,
                       const struct access_words_param *params, uint32_t nparams)
{
    uint32_t at = 0;
    while (at < p->head->ninsns && (p->insns[at].op != PROOF_ACCESS || p->insns[at].c != row))
        at++;
    *w = (struct access_words){.p = p, .params = params, .nparams = nparams, .access = at, .root = root};
    return at < p->head->ninsns;
}

void access_words_address(struct access_words *w, struct out *to)
{
    struct writer x = {w, to, to->len};
    const struct proof_insn *i = insn(w, w->access);
    struct sum s;
    if (!collect(w, i->a, 0, &s) ||
        __builtin_add_overflow(s.constant, w->p->accesses[i->c].offset, &s.constant))
        out_char(to, '?');
    else
        write_sum(&x, &s, 0, false);
}

// Returns the last block that all ways into a block go through, PROOF_NONE for the first one. It is found by
// going back from the latest of several blocks until one is left.
static uint32_t dominator(const struct access_words *w, uint32_t block)
{
    uint64_t seen[1024] = {0};
    uint32_t number = insn(w, block)->c, open = 1, at = block;
    if (number >= 64 * 1024)
        return PROOF_NONE;
    seen[number / 64] |= 1ull << (number % 64);
    while (at != PROOF_NONE) {
        const struct proof_insn *b = insn(w, at);
        if (open == 1 && at != block)
            return at;
        open--;
        for (uint32_t e = b->a; e < b->a + b->b; e++) {
            uint32_t from = w->p->edges[e].block;
            open += !(seen[from / 64] >> (from % 64) & 1);
            seen[from / 64] |= 1ull << (from % 64);
        }
        if (!open)
            return PROOF_NONE;
        do
            at = at ? at - 1 : PROOF_NONE;
        while (at != PROOF_NONE &&
               (insn(w, at)->op != PROOF_BLOCK || !(seen[insn(w, at)->c / 64] >> (insn(w, at)->c % 64) & 1)));
    }
    return PROOF_NONE;
}

unsigned access_words_conditions(const struct access_words *w, struct access_words_condition *out)
{
    enum { MOST = ACCESS_WORDS_CONDITIONS - 1 };
    const struct proof_insn *access = insn(w, w->access);
    unsigned n = 0;
    uint32_t block = w->access;
    while (block > 0 && insn(w, block)->op != PROOF_BLOCK)
        block--;
    for (; block != PROOF_NONE && n < MOST; block = dominator(w, block)) {
        const struct proof_insn *b = insn(w, block);
        const struct proof_edge *e = b->op == PROOF_BLOCK && b->b == 1 ? &w->p->edges[b->a] : NULL;
        if (e && e->predicate != PROOF_NONE)
            out[n++] = (struct access_words_condition){e->predicate, e->negated};
    }
    for (unsigned i = 0; i < n / 2; i++) {
        struct access_words_condition c = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = c;
    }
    if (access->b != PROOF_NONE)
        out[n++] = (struct access_words_condition){access->b, access->sign};
    return n;
}

void access_words_condition(struct access_words *w, const struct access_words_condition *c, struct out *to)
{
    struct writer x = {w, to, to->len};
    write_predicate(&x, c->predicate, c->negated, 0, false);
}

const char *access_words_relation(const struct proof_insn *compare, bool negated)
{
    return relation_text(compare->sign, negated);
}

unsigned access_words_guards(struct access_words *w, struct out *to)
{
    struct access_words_condition list[ACCESS_WORDS_CONDITIONS];
    struct writer x = {w, to, to->len};
    unsigned n = access_words_conditions(w, list);
    for (unsigned i = 0; i < n; i++) {
        out_cstr(to, i ? " and " : "");
        write_predicate(&x, list[i].predicate, list[i].negated, 0, false);
    }
    return n;
}

unsigned access_words_loops(struct access_words *w, struct out *to)
{
    struct writer x = {w, to, to->len};
    // Writing a limit may name another counter, which is then listed too.
    for (uint32_t i = 0; i < w->nloops; i++) {
        const struct proof_insn *loop = insn(w, w->loops[i]);
        out_fmt(to, "%sk%u = 0, 1, ...", i ? "; " : "", i + 1);
        for (uint32_t k = loop->a; k < loop->a + loop->b; k++) {
            const struct proof_test *t = &w->p->tests[k];
            struct sum start, step,
                counter = {.n = 1, .terms = {{.coef = 1, .n = 1, .factors = {w->loops[i]}}}};
            struct sum product, left;
            out_cstr(to, k == loop->a ? " while " : " and ");
            bool known = collect(w, t->start, 0, &start) && collect(w, t->step, 0, &step) &&
                         multiply(&product, &step, &counter);
            left = start;
            if (known && add_sum(&left, &product, 1))
                write_sum(&x, &left, 0, false);
            else
                out_char(to, '?');
            out_cstr(to, relation_text(t->relation, false));
            write_value(&x, t->limit, 0, false);
        }
    }
    return w->nloops;
}
