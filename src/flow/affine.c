// SPDX-License-Identifier: MIT
#include "flow/affine.h"

bool affine_same(const struct affine_state *s, struct affine a, struct affine b)
{
    if (a.c != b.c || a.n != b.n)
        return false;
    for (uint32_t i = 0; i < a.n; i++) {
        const struct affine_term *x = &s->terms[a.first + i], *y = &s->terms[b.first + i];
        if (x->sym != y->sym || x->coef != y->coef)
            return false;
    }
    return true;
}

static bool room_for_terms(struct affine_state *s, uint32_t n)
{
    if (s->most_terms - s->nterms >= n)
        return true;
    s->full = true;
    return false;
}

bool affine_sum(struct affine_state *s, int64_t ca, struct affine a, int64_t cb, struct affine b,
                struct affine *out)
{
    struct affine r = {.first = s->nterms};
    int64_t x, y;
    if (__builtin_mul_overflow(ca, a.c, &x) || __builtin_mul_overflow(cb, b.c, &y) ||
        __builtin_add_overflow(x, y, &r.c) || !room_for_terms(s, (uint32_t)a.n + b.n))
        return false;
    struct affine_term *to = s->terms + s->nterms;
    uint32_t i = 0, j = 0;
    while (i < a.n || j < b.n) {
        const struct affine_term *p = i < a.n ? &s->terms[a.first + i] : NULL;
        const struct affine_term *q = j < b.n ? &s->terms[b.first + j] : NULL;
        bool from_a = p && (!q || p->sym <= q->sym), from_b = q && (!p || q->sym <= p->sym);
        uint32_t sym = from_a ? p->sym : q->sym;
        x = y = 0;
        if ((from_a && __builtin_mul_overflow(ca, p->coef, &x)) ||
            (from_b && __builtin_mul_overflow(cb, q->coef, &y)) || __builtin_add_overflow(x, y, &x))
            return false;
        i += from_a;
        j += from_b;
        if (x)
            to[r.n++] = (struct affine_term){.coef = x, .sym = sym};
    }
    if (r.n > AFFINE_MOST_TERMS)
        return false;
    s->nterms += r.n;
    *out = r;
    return true;
}

bool affine_scale(struct affine_state *s, struct affine f, int64_t by, int64_t plus, struct affine *out)
{
    return affine_sum(s, by, f, 1, affine_const(plus), out);
}

struct affine affine_of_sym(struct affine_state *s, uint32_t sym)
{
    if (!room_for_terms(s, 1))
        return affine_const(0);
    s->terms[s->nterms] = (struct affine_term){.coef = 1, .sym = sym};
    return (struct affine){.first = s->nterms++, .n = 1};
}

struct affine affine_new(struct affine_state *s, struct affine_sym sym)
{
    if (s->nsyms == s->most_syms) {
        s->full = true;
        return affine_const(0);
    }
    s->syms[s->nsyms++] = sym;
    return affine_of_sym(s, s->nsyms - 1);
}

// If f is one quotient, rounded down, of another form, stores that form and multiplies *by by the divisor:
// floor(floor(x / a) / b) == floor(x / (a * b)).
static bool of_quotient(const struct affine_state *s, struct affine *f, int64_t *by)
{
    const struct affine_term *t = &s->terms[f->first];
    if (f->n != 1 || f->c || t->coef != 1 || s->syms[t->sym].kind != AFFINE_FLOOR ||
        __builtin_mul_overflow(*by, s->syms[t->sym].by, by))
        return false;
    *f = s->syms[t->sym].of;
    return true;
}

// Whether a symbol has the value of floor(of / by), which quotients of quotients may be.
static bool is_floor(const struct affine_state *s, const struct affine_sym *x, struct affine of, int64_t by)
{
    if (x->kind != AFFINE_FLOOR)
        return false;
    struct affine f = x->of, g = of;
    int64_t d = x->by, e = by;
    return (of_quotient(s, &f, &d) && d == by && affine_same(s, f, of)) ||
           (of_quotient(s, &g, &e) && e == x->by && affine_same(s, g, x->of));
}

uint32_t affine_find(const struct affine_state *s, uint8_t kind, struct affine of, int64_t by)
{
    for (uint32_t i = 0; i < s->nsyms; i++) {
        const struct affine_sym *x = &s->syms[i];
        if ((x->kind == kind && x->by == by && affine_same(s, x->of, of)) ||
            (kind == AFFINE_FLOOR && is_floor(s, x, of, by)))
            return i;
    }
    return PROOF_NONE;
}

int64_t affine_power(const struct affine_state *s, struct affine f)
{
    const struct affine_term *t = &s->terms[f.first];
    if (!f.n)
        return f.c > 0 && !(f.c & (f.c - 1)) ? f.c : 0;
    int64_t power = f.n == 1 && !f.c && t->coef > 0 && !(t->coef & (t->coef - 1)) ? s->syms[t->sym].power : 0;
    return __builtin_mul_overflow(power, t->coef, &power) ? 0 : power;
}

bool affine_cases(struct affine_state *s, struct affine f, int64_t *coef, struct affine *one,
                  struct affine *other)
{
    uint32_t i = 0;
    while (i < f.n && !s->syms[s->terms[f.first + i].sym].is_least)
        i++;
    if (i == f.n)
        return false;
    struct affine_term t = s->terms[f.first + i];
    struct affine sym = affine_of_sym(s, t.sym), rest;
    *coef = t.coef;
    return t.coef != INT64_MIN && affine_sum(s, 1, f, -t.coef, sym, &rest) &&
           affine_sum(s, 1, rest, t.coef, s->syms[t.sym].one, one) &&
           affine_sum(s, 1, rest, t.coef, s->syms[t.sym].other, other);
}

uint64_t affine_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

uint64_t affine_content(const struct affine_state *s, struct affine f, uint64_t n)
{
    for (uint32_t i = 0; i < f.n && n != 1; i++) {
        int64_t c = s->terms[f.first + i].coef;
        n = affine_gcd(n, c < 0 ? -(uint64_t)c : (uint64_t)c);
    }
    return n;
}

// Divides a fact by what its coefficients have in common: g*x + c >= 0 says x + floor(c / g) >= 0.
static bool reduce(struct affine_state *s, struct affine *f)
{
    uint64_t g = affine_content(s, *f, 0);
    if (g < 2 || g > INT64_MAX)
        return true;
    if (!room_for_terms(s, f->n))
        return false;
    for (uint32_t i = 0; i < f->n; i++) {
        s->terms[s->nterms + i] = s->terms[f->first + i];
        s->terms[s->nterms + i].coef /= (int64_t)g;
    }
    f->c = f->c / (int64_t)g - (f->c % (int64_t)g < 0);
    f->first = s->nterms;
    s->nterms += f->n;
    return true;
}

void affine_fact(struct affine_state *s, struct affine form, uint32_t *list)
{
    if (s->nfacts == s->most_facts || !form.n || !reduce(s, &form))
        return;
    s->facts[s->nfacts] = (struct affine_fact){.form = form, .next = *list};
    *list = s->nfacts++;
}

// --- blocks ------------------------------------------------------------------------------------------------

uint32_t affine_common(const struct affine_state *s, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (s->blocks[a].depth >= s->blocks[b].depth)
            a = s->blocks[a].up;
        else
            b = s->blocks[b].up;
    }
    return a;
}

bool affine_above(const struct affine_state *s, uint32_t a, uint32_t b)
{
    while (s->blocks[b].depth > s->blocks[a].depth)
        b = s->blocks[b].up;
    return a == b;
}

uint32_t affine_block(const struct affine_state *s, struct affine f)
{
    uint32_t deepest = 0;
    for (uint32_t i = 0; i < f.n; i++) {
        uint32_t b = s->syms[s->terms[f.first + i].sym].block;
        if (s->blocks[b].depth > s->blocks[deepest].depth)
            deepest = b;
    }
    return deepest;
}
