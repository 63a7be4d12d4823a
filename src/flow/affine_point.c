// SPDX-License-Identifier: MIT
// Looks for values of symbols that attain a bound. If there are some, no combination of facts gives a better
// one, so that affine_bound.c need not try any. Nothing rests on the answer but time and precision.
#include "flow/affine.h"

enum { MOST_VALUES = 24, MOST_ROUNDS = 4 };

// Beyond this nothing is tried: a sum of a few such numbers still fits.
#define MOST_PRODUCT ((affine_wide)1 << 110)

// What is left of the ranges of the symbols in question.
struct point {
    const struct affine_state *s;
    uint32_t n;
    uint32_t sym[MOST_VALUES];
    int64_t lo[MOST_VALUES], hi[MOST_VALUES];
    bool failed;
};

static uint32_t place_of(struct point *p, uint32_t sym)
{
    uint32_t i = 0;
    while (i < p->n && p->sym[i] != sym)
        i++;
    if (i < p->n)
        return i;
    if (i == MOST_VALUES) {
        p->failed = true;
        return 0;
    }
    p->sym[i] = sym;
    p->lo[i] = p->s->syms[sym].lo;
    p->hi[i] = p->s->syms[sym].hi;
    p->n++;
    return i;
}

static affine_wide times(struct point *p, int64_t a, int64_t b)
{
    affine_wide x = (affine_wide)a * b;
    p->failed |= x > MOST_PRODUCT || x < -MOST_PRODUCT;
    return x;
}

// Fixes the symbols of a sum so that it has the value `at`: from its greatest value down, the largest
// coefficients first.
static bool fix(struct point *p, const struct affine_term *terms, uint32_t n, affine_wide at)
{
    affine_wide most = 0;
    uint32_t done = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = place_of(p, terms[i].sym);
        most += times(p, terms[i].coef, terms[i].coef > 0 ? p->hi[k] : p->lo[k]);
    }
    affine_wide over = most - at;
    if (p->failed || over < 0)
        return false;
    for (uint32_t round = 0; round < n; round++) {
        uint32_t which = 0;
        uint64_t best = 0;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t c = terms[i].coef < 0 ? -(uint64_t)terms[i].coef : (uint64_t)terms[i].coef;
            if (!(done >> i & 1) && c > best) {
                best = c;
                which = i;
            }
        }
        done |= 1u << which;
        uint32_t k = place_of(p, terms[which].sym);
        affine_wide steps = 0, room = (affine_wide)p->hi[k] - p->lo[k];
        if (over >= (affine_wide)best)
            steps = over >> 63 ? over / (affine_wide)best : (affine_wide)((uint64_t)over / best);
        steps = steps > room ? room : steps;
        over -= steps * (affine_wide)best;
        if (terms[which].coef > 0)
            p->lo[k] = p->hi[k] = (int64_t)(p->hi[k] - steps);
        else
            p->lo[k] = p->hi[k] = (int64_t)(p->lo[k] + steps);
    }
    return over == 0;
}

// Takes values away with which the fact cannot hold, whatever the other symbols are. Returns false if none is
// left.
static bool narrow(struct point *p, struct affine f, bool *changed)
{
    const struct affine_term *t = p->s->terms + f.first;
    affine_wide up = f.c;
    uint32_t at[AFFINE_MOST_TERMS];
    for (uint32_t i = 0; i < f.n; i++) {
        at[i] = place_of(p, t[i].sym);
        up += times(p, t[i].coef, t[i].coef > 0 ? p->hi[at[i]] : p->lo[at[i]]);
    }
    if (up < 0 || p->failed)
        return false;
    for (uint32_t i = 0; i < f.n; i++) {
        uint32_t k = at[i];
        affine_wide c = t[i].coef > 0 ? t[i].coef : -(affine_wide)t[i].coef,
                    room = (affine_wide)p->hi[k] - p->lo[k];
        if (!room || up >= c * room)
            continue;
        affine_wide steps = up >> 63 || c >> 63 ? up / c : (affine_wide)((uint64_t)up / (uint64_t)c);
        *changed = true;
        if (t[i].coef > 0)
            p->lo[k] = (int64_t)(p->hi[k] - steps);
        else
            p->hi[k] = (int64_t)(p->lo[k] + steps);
    }
    return true;
}

static bool holds(struct point *p, struct affine f, bool high)
{
    affine_wide v = f.c;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_term *t = p->s->terms + f.first + i;
        uint32_t k = place_of(p, t->sym);
        v += times(p, t->coef, high ? p->hi[k] : p->lo[k]);
    }
    return v >= 0 && !p->failed;
}

static bool all_hold(struct point *p, const uint32_t *facts, uint32_t n, bool high)
{
    for (uint32_t i = 0; i < n; i++)
        if (!holds(p, p->s->facts[facts[i]].form, high))
            return false;
    return true;
}

bool affine_attains(const struct affine_state *s, const struct affine_term *terms, uint32_t n, affine_wide at,
                    const uint32_t *facts, uint32_t nfacts)
{
    struct point p;
    bool changed = true;
    p.s = s;
    p.n = 0;
    p.failed = false;
    if (!fix(&p, terms, n, at))
        return false;
    uint32_t fixed = p.n;
    for (unsigned round = 0; round < MOST_ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t i = 0; i < nfacts; i++)
            if (!narrow(&p, s->facts[facts[i]].form, &changed))
                return false;
    }
    // Without other symbols, each fact was looked at with the values that it has.
    return p.n == fixed || all_hold(&p, facts, nfacts, false) || all_hold(&p, facts, nfacts, true);
}
