// SPDX-License-Identifier: MIT
// Predicates, and the facts that follow when control goes one way.
#include "flow/proof_state.h"

// --- what a predicate is -----------------------------------------------------------------------------------

static uint8_t opposite(uint8_t t)
{
    return t == PROOF_TRUE ? PROOF_FALSE : t == PROOF_FALSE ? PROOF_TRUE : PROOF_MAYBE;
}

static uint8_t truth_of(bool yes, bool no)
{
    return yes ? PROOF_TRUE : no ? PROOF_FALSE : PROOF_MAYBE;
}

// Whether d has the relation to 0, for all d of a range.
static uint8_t decide(struct affine_range d, uint8_t relation)
{
    switch (relation) {
    case PROOF_LT: return truth_of(d.hi < 0, d.lo >= 0);
    case PROOF_LE: return truth_of(d.hi <= 0, d.lo > 0);
    case PROOF_GT: return truth_of(d.lo > 0, d.hi <= 0);
    case PROOF_GE: return truth_of(d.lo >= 0, d.hi < 0);
    case PROOF_EQ: return truth_of(d.lo == 0 && d.hi == 0, d.lo > 0 || d.hi < 0);
    default: return truth_of(d.lo > 0 || d.hi < 0, d.lo == 0 && d.hi == 0);
    }
}

static void compare(struct proof_state *e, uint32_t at, const struct proof_insn *i)
{
    struct affine d;
    e->truth[at] = PROOF_MAYBE;
    e->forms[at] = affine_const(0);
    if (!affine_sum(&e->s, 1, e->forms[i->a], -1, e->forms[i->b], &d))
        return;
    e->forms[at] = d;
    e->truth[at] = decide(affine_box(&e->s, d), i->sign);
    if (e->truth[at] == PROOF_MAYBE)
        e->truth[at] = decide(affine_bound(&e->s, d, proof_here(e)), i->sign);
}

static uint8_t both(uint8_t a, uint8_t b)
{
    return truth_of(a == PROOF_TRUE && b == PROOF_TRUE, a == PROOF_FALSE || b == PROOF_FALSE);
}

// The predicate that all live ways into the block agree on.
static uint8_t meet(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block)
{
    uint8_t all = PROOF_DEAD;
    for (uint32_t k = 0; k < block->b; k++) {
        if (!e->edges[block->a + k].live)
            continue;
        uint8_t t = e->truth[e->p->inputs[i->a + k]];
        all = all == PROOF_DEAD || all == t ? t : PROOF_MAYBE;
    }
    return all == PROOF_DEAD ? PROOF_MAYBE : all;
}

void proof_predicate(struct proof_state *e, uint32_t at, const struct proof_insn *block)
{
    const struct proof_insn *i = &e->p->insns[at];
    uint8_t a, b;
    switch (i->op) {
    case PROOF_COMPARE: compare(e, at, i); return;
    case PROOF_BOTH: e->truth[at] = both(e->truth[i->a], e->truth[i->b]); return;
    case PROOF_EITHER:
        e->truth[at] = opposite(both(opposite(e->truth[i->a]), opposite(e->truth[i->b])));
        return;
    case PROOF_DIFFER:
        a = e->truth[i->a], b = e->truth[i->b];
        e->truth[at] = a == PROOF_TRUE ? opposite(b) : a == PROOF_FALSE ? b : PROOF_MAYBE;
        return;
    case PROOF_OPPOSITE: e->truth[at] = opposite(e->truth[i->a]); return;
    case PROOF_ALWAYS: e->truth[at] = i->imm ? PROOF_TRUE : PROOF_FALSE; return;
    case PROOF_MEET: e->truth[at] = meet(e, i, block); return;
    default: e->truth[at] = PROOF_MAYBE;
    }
}

// --- what follows ------------------------------------------------------------------------------------------

// A bound from above on the unsigned value u of a form's low bits says that the form is not negative, if it
// is so small that no negative value of the form could be meant: then u is the form itself.
static void unwrap(struct proof_state *e, struct affine fact, uint32_t *list)
{
    struct affine_state *s = &e->s;
    for (uint32_t i = 0; i < fact.n; i++) {
        struct affine_term t = s->terms[fact.first + i];
        const struct affine_sym *x = &s->syms[t.sym];
        if (x->kind != AFFINE_UNSIGNED || t.coef >= 0 || t.coef == INT64_MIN)
            continue;
        struct affine rest, replaced, of = x->of;
        affine_wide turn = (affine_wide)1 << x->by;
        if (!affine_sum(s, 1, fact, -t.coef, affine_of_sym(s, t.sym), &rest))
            continue;
        struct affine_range r = affine_bound(s, rest, proof_here(e)), f = affine_bound(s, of, proof_here(e));
        if (f.hi >= turn || f.lo < -turn || r.hi / -t.coef >= turn + f.lo)
            continue;
        affine_fact(s, of, list);
        if (affine_sum(s, 1, rest, t.coef, of, &replaced))
            affine_fact(s, replaced, list);
    }
}

// A multiple x of s, which is a power of 2 or 0, that is at most c is at most R - s, where R is a multiple of
// all values of s above c.
static void round_down(struct proof_state *e, struct affine fact, uint32_t *list)
{
    struct affine_state *s = &e->s;
    struct affine_term t = s->terms[fact.first];
    if (fact.n != 1 || t.coef != -1 || s->syms[t.sym].kind != AFFINE_MULTIPLE || fact.c < 0)
        return;
    int64_t power = s->syms[t.sym].by;
    affine_wide above = ((affine_wide)fact.c / power + 1) * power;
    struct affine f;
    if (proof_fits(above) && affine_sum(s, -1, s->syms[t.sym].of, -1, affine_of_sym(s, t.sym), &f) &&
        affine_scale(s, f, 1, (int64_t)above, &f))
        affine_fact(s, f, list);
}

// Where rest >= a * i for an index i of threads or blocks, i <= floor(most / a), if rest is at most `most`.
// Of tiles of a elements that begin below a limit, that is the last one.
static void round_index(struct proof_state *e, struct affine fact, uint32_t *list)
{
    struct affine_state *s = &e->s;
    for (uint32_t i = 0; i < fact.n && fact.n > 1; i++) {
        struct affine_term t = s->terms[fact.first + i];
        struct affine rest, f;
        if (t.coef >= -1 || t.coef == INT64_MIN || !s->syms[t.sym].thread ||
            !affine_sum(s, 1, fact, -t.coef, affine_of_sym(s, t.sym), &rest))
            continue;
        struct affine_range r = affine_box(s, rest);
        if (r.soft || r.hi < 0 || !proof_fits(r.hi) || r.hi / -t.coef >= s->syms[t.sym].hi)
            continue;
        uint32_t last = *list;
        if (affine_scale(s, affine_of_sym(s, t.sym), -1, (int64_t)(r.hi / -t.coef), &f))
            affine_fact(s, f, list);
        if (*list != last)
            s->facts[*list].follows = true;
    }
}

static void learn(struct proof_state *e, struct affine form, uint32_t *list)
{
    affine_fact(&e->s, form, list);
    unwrap(e, form, list);
    round_down(e, form, list);
    round_index(e, form, list);
}

// Facts from: d `relation` 0.
static void relate(struct proof_state *e, struct affine d, uint8_t relation, uint32_t *list)
{
    struct affine f;
    struct affine_range r;
    switch (relation) {
    case PROOF_LT:
    case PROOF_LE:
        if (affine_scale(&e->s, d, -1, relation == PROOF_LT ? -1 : 0, &f))
            learn(e, f, list);
        return;
    case PROOF_GT:
    case PROOF_GE:
        if (affine_scale(&e->s, d, 1, relation == PROOF_GT ? -1 : 0, &f))
            learn(e, f, list);
        return;
    case PROOF_EQ:
        relate(e, d, PROOF_LE, list);
        relate(e, d, PROOF_GE, list);
        return;
    default:
        r = affine_bound(&e->s, d, (struct affine_place){e->block, *list});
        if (r.lo == 0)
            relate(e, d, PROOF_GT, list);
        else if (r.hi == 0)
            relate(e, d, PROOF_LT, list);
    }
}

static uint8_t opposite_relation(uint8_t relation)
{
    static const uint8_t of[] = {[PROOF_LT] = PROOF_GE, [PROOF_LE] = PROOF_GT, [PROOF_GT] = PROOF_LE,
                                 [PROOF_GE] = PROOF_LT, [PROOF_EQ] = PROOF_NE, [PROOF_NE] = PROOF_EQ};
    return of[relation];
}

// The depth bounds the recursion: a predicate may be made of thousands.
static void follow(struct proof_state *e, uint32_t at, bool holds, uint32_t *list, unsigned depth)
{
    const struct proof_insn *i = &e->p->insns[at];
    if (!depth || e->truth[at] != PROOF_MAYBE)
        return;
    switch (i->op) {
    case PROOF_COMPARE: relate(e, e->forms[at], holds ? i->sign : opposite_relation(i->sign), list); return;
    case PROOF_OPPOSITE: follow(e, i->a, !holds, list, depth - 1); return;
    case PROOF_BOTH:
    case PROOF_EITHER:
        // If it is not decided by one side alone, and one side is known, then the other decides.
        if (holds == (i->op == PROOF_BOTH) || e->truth[i->a] != PROOF_MAYBE ||
            e->truth[i->b] != PROOF_MAYBE) {
            follow(e, i->a, holds, list, depth - 1);
            follow(e, i->b, holds, list, depth - 1);
        }
        return;
    case PROOF_DIFFER:
        if (e->truth[i->a] != PROOF_MAYBE)
            follow(e, i->b, holds != (e->truth[i->a] == PROOF_TRUE), list, depth - 1);
        return;
    default: return;
    }
}

void proof_facts(struct proof_state *e, uint32_t predicate, bool holds, uint32_t *list)
{
    follow(e, predicate, holds, list, 12);
}
