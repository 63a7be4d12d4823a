// SPDX-License-Identifier: MIT
// Looks for values of symbols that attain a bound. If there are some, no combination of facts gives a better
// one, so that affine_bound.c need not try any. Nothing rests on the answer but time and precision.
#include "flow/affine.h"

enum { MOST_ROUNDS = 4 };

// Beyond this nothing is tried: a sum of a few such numbers still fits.
#define MOST_PRODUCT ((affine_wide)1 << 110)

// What is left of the ranges of the symbols in question is in the symbols, if their `turn` is that of the
// state: `least` and `most`.
struct point {
    struct affine_state *s;
    bool failed;
};

static struct affine_sym *symbol(struct point *p, uint32_t sym)
{
    struct affine_sym *x = &p->s->syms[sym];
    if (x->turn != p->s->turn) {
        x->turn = p->s->turn;
        x->least = x->lo;
        x->most = x->hi;
    }
    return x;
}

static affine_wide times(struct point *p, int64_t a, int64_t b)
{
    affine_wide x = (affine_wide)a * b;
    p->failed |= x > MOST_PRODUCT || x < -MOST_PRODUCT;
    return x;
}

// a / b for numbers that are not negative, b > 0; most of them have 64 bits.
static affine_wide quotient(affine_wide a, affine_wide b)
{
    return (a | b) >> 63 ? a / b : (affine_wide)((uint64_t)a / (uint64_t)b);
}

static affine_wide magnitude(int64_t v)
{
    return v < 0 ? -(affine_wide)v : v;
}

static void move_down(struct point *p, struct affine_term t, affine_wide *over)
{
    struct affine_sym *x = symbol(p, t.sym);
    affine_wide c = magnitude(t.coef), steps = 0, room = (affine_wide)x->most - x->least;
    if (*over >= c)
        steps = quotient(*over, c);
    steps = steps > room ? room : steps;
    *over -= steps * c;
    if (t.coef > 0)
        x->least = x->most = (int64_t)(x->most - steps);
    else
        x->least = x->most = (int64_t)(x->least + steps);
}

// Fixes the symbols of a sum so that it has the value `at`: from its greatest value down, the largest
// coefficients first.
static bool fix(struct point *p, const struct affine_term *terms, uint32_t n, affine_wide at)
{
    affine_wide over = -at;
    uint32_t done = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct affine_sym *x = symbol(p, terms[i].sym);
        over += times(p, terms[i].coef, terms[i].coef > 0 ? x->most : x->least);
    }
    if (p->failed || over < 0)
        return false;
    for (uint32_t round = 0; round < n; round++) {
        uint32_t which = 0;
        affine_wide best = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (!(done >> i & 1) && magnitude(terms[i].coef) > best) {
                best = magnitude(terms[i].coef);
                which = i;
            }
        }
        done |= 1u << which;
        move_down(p, terms[which], &over);
    }
    return over == 0;
}

// Takes values away with which the fact cannot hold, whatever the other symbols are. Returns false if none is
// left.
static bool narrow(struct point *p, struct affine f, bool *changed, bool *open)
{
    const struct affine_term *t = p->s->terms + f.first;
    affine_wide up = f.c;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_sym *x = symbol(p, t[i].sym);
        up += times(p, t[i].coef, t[i].coef > 0 ? x->most : x->least);
        *open |= x->least != x->most;
    }
    if (up < 0 || p->failed)
        return false;
    for (uint32_t i = 0; i < f.n && *open; i++) {
        struct affine_sym *x = symbol(p, t[i].sym);
        affine_wide c = magnitude(t[i].coef), room = (affine_wide)x->most - x->least;
        if (!room || up >= c * room)
            continue;
        *changed = true;
        if (t[i].coef > 0)
            x->least = (int64_t)(x->most - quotient(up, c));
        else
            x->most = (int64_t)(x->least + quotient(up, c));
    }
    return true;
}

static bool all_hold(struct point *p, const uint32_t *facts, uint32_t n, bool high)
{
    for (uint32_t k = 0; k < n; k++) {
        struct affine f = p->s->facts[facts[k]].form;
        affine_wide v = f.c;
        for (uint32_t i = 0; i < f.n; i++) {
            const struct affine_term *t = p->s->terms + f.first + i;
            const struct affine_sym *x = symbol(p, t->sym);
            v += times(p, t->coef, high ? x->most : x->least);
        }
        if (v < 0 || p->failed)
            return false;
    }
    return true;
}

bool affine_attains(struct affine_state *s, const struct affine_term *terms, uint32_t n, affine_wide at,
                    const uint32_t *facts, uint32_t nfacts)
{
    struct point p = {s, false};
    bool changed = true, open = true;
    s->turn++;
    if (!fix(&p, terms, n, at))
        return false;
    for (unsigned round = 0; round < MOST_ROUNDS && changed; round++) {
        changed = open = false;
        for (uint32_t i = 0; i < nfacts; i++)
            if (!narrow(&p, s->facts[facts[i]].form, &changed, &open))
                return false;
    }
    // If one value is left for each symbol, each fact was looked at with these.
    return (!open && !changed) || all_hold(&p, facts, nfacts, false) || all_hold(&p, facts, nfacts, true);
}
