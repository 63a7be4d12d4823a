// SPDX-License-Identifier: MIT
// Predicates and the facts that follow from them, values where blocks meet, and loops: the rules of
// proof_fact.c and proof_join.c.
#include "flow/closed_state.h"

// --- predicates --------------------------------------------------------------------------------------------

static uint8_t opposite(uint8_t t)
{
    return t == PROOF_TRUE ? PROOF_FALSE : t == PROOF_FALSE ? PROOF_TRUE : PROOF_MAYBE;
}

static struct poly minus(struct closed_build *b, struct poly f, int64_t c)
{
    return closed_sum(b, -1, f, 1, closed_const(b, c));
}

// Whether d `relation` 0 holds, for a relation that is no equality: 1, 0, or -1 if that is not known.
static uint8_t decide_order(struct closed_build *b, struct poly d, uint8_t relation)
{
    bool less = relation == PROOF_LT || relation == PROOF_LE;
    // d < 0 is -d - 1 >= 0; its opposite is d >= 0.
    struct poly yes =
        less ? minus(b, d, relation == PROOF_LT ? -1 : 0) : closed_plus(b, d, relation == PROOF_GT ? -1 : 0);
    if (closed_at_least(b, yes, 0))
        return PROOF_TRUE;
    return !b->failed && closed_at_least(b, minus(b, yes, -1), 0) ? PROOF_FALSE : PROOF_MAYBE;
}

static uint8_t decide(struct closed_build *b, struct poly d, uint8_t relation)
{
    if (relation != PROOF_EQ && relation != PROOF_NE)
        return decide_order(b, d, relation);
    uint8_t apart = relation == PROOF_EQ ? PROOF_FALSE : PROOF_TRUE;
    if (closed_at_least(b, closed_plus(b, d, -1), 0) || closed_at_least(b, minus(b, d, -1), 0))
        return apart;
    struct closed_mark m = closed_mark(b);
    if (closed_at_least(b, d, 0)) {
        if (closed_at_least(b, minus(b, d, 0), 0))
            return opposite(apart);
        if (!b->failed)
            closed_undo(b, m);
    }
    return PROOF_MAYBE;
}

static void compare(struct closed_build *b, uint32_t at, const struct proof_insn *i)
{
    struct poly d = closed_sum(b, 1, b->forms[i->a], -1, b->forms[i->b]);
    b->forms[at] = d;
    b->truth[at] = PROOF_MAYBE;
    if (!b->failed && (b->strict || closed_uniform(b, d)))
        b->truth[at] = decide(b, d, i->sign);
}

static uint8_t both(uint8_t x, uint8_t y)
{
    return x == PROOF_TRUE && y == PROOF_TRUE     ? PROOF_TRUE
           : x == PROOF_FALSE || y == PROOF_FALSE ? PROOF_FALSE
                                                  : PROOF_MAYBE;
}

static uint8_t meet(struct closed_build *b, const struct proof_insn *i, const struct proof_insn *block)
{
    uint8_t all = PROOF_DEAD;
    for (uint32_t k = 0; k < block->b; k++) {
        if (!b->edges[block->a + k].live)
            continue;
        uint8_t t = b->truth[b->p->inputs[i->a + k]];
        all = all == PROOF_DEAD || all == t ? t : PROOF_MAYBE;
    }
    return all == PROOF_DEAD ? PROOF_MAYBE : all;
}

void closed_predicate(struct closed_build *b, uint32_t at, const struct proof_insn *block)
{
    const struct proof_insn *i = &b->p->insns[at];
    uint8_t x, y;
    switch (i->op) {
    case PROOF_COMPARE: compare(b, at, i); return;
    case PROOF_BOTH: b->truth[at] = both(b->truth[i->a], b->truth[i->b]); return;
    case PROOF_EITHER:
        b->truth[at] = opposite(both(opposite(b->truth[i->a]), opposite(b->truth[i->b])));
        return;
    case PROOF_DIFFER:
        x = b->truth[i->a], y = b->truth[i->b];
        b->truth[at] = x == PROOF_TRUE ? opposite(y) : x == PROOF_FALSE ? y : PROOF_MAYBE;
        return;
    case PROOF_OPPOSITE: b->truth[at] = opposite(b->truth[i->a]); return;
    case PROOF_ALWAYS: b->truth[at] = i->imm ? PROOF_TRUE : PROOF_FALSE; return;
    case PROOF_MEET: b->truth[at] = meet(b, i, block); return;
    default: b->truth[at] = PROOF_MAYBE;
    }
}

// --- facts -------------------------------------------------------------------------------------------------

// rest - u >= 0, where u is the unsigned value of form `of`: then u is `of`, if no negative value of that
// could be meant.
static void unwrap(struct closed_build *b, struct poly fact, uint32_t *list)
{
    for (uint32_t i = 0; i < fact.n && !b->failed; i++) {
        struct closed_term t = b->terms[fact.first + i];
        int64_t by;
        if (!t.sym || t.mono || t.coef != -1 || b->syms[t.sym - 1].kind != AFFINE_UNSIGNED)
            continue;
        struct poly of = b->syms[t.sym - 1].of;
        if (!closed_is_const(b, b->syms[t.sym - 1].by, &by) || by > 61)
            continue;
        int64_t turn = 1LL << by;
        struct poly rest = closed_sum(b, 1, fact, 1, closed_of_sym(b, t.sym - 1));
        struct closed_mark m = closed_mark(b);
        struct closed_end high = closed_bound(b, rest, true, closed_here(b), CLOSED_SOFT);
        struct closed_end low = closed_bound(b, of, false, closed_here(b), CLOSED_SOFT);
        // of < turn, of >= -turn, and rest < turn + of
        bool holds = high.kind && low.kind && closed_at_least(b, minus(b, of, turn - 1), 0) &&
                     closed_at_least(b, closed_plus(b, low.at, turn), 0) &&
                     closed_at_least(b, closed_sum(b, 1, closed_plus(b, low.at, turn - 1), -1, high.at), 0);
        if (b->failed)
            return;
        if (!holds) {
            closed_undo(b, m);
            continue;
        }
        closed_fact(b, of, list);
        closed_fact(b, closed_sum(b, 1, rest, -1, of), list);
    }
}

static void learn(struct closed_build *b, struct poly f, uint32_t *list)
{
    closed_fact(b, f, list);
    unwrap(b, f, list);
}

// Facts from: d `relation` 0.
static void relate(struct closed_build *b, struct poly d, uint8_t relation, uint32_t *list)
{
    switch (relation) {
    case PROOF_LT:
    case PROOF_LE: learn(b, minus(b, d, relation == PROOF_LT ? -1 : 0), list); return;
    case PROOF_GT:
    case PROOF_GE: learn(b, closed_plus(b, d, relation == PROOF_GT ? -1 : 0), list); return;
    case PROOF_EQ:
        relate(b, d, PROOF_LE, list);
        relate(b, d, PROOF_GE, list);
        return;
    default:
        if (closed_at_least(b, d, 0))
            relate(b, d, PROOF_GT, list);
        else if (closed_at_least(b, minus(b, d, 0), 0))
            relate(b, d, PROOF_LT, list);
    }
}

static uint8_t opposite_relation(uint8_t relation)
{
    static const uint8_t of[] = {[PROOF_LT] = PROOF_GE, [PROOF_LE] = PROOF_GT, [PROOF_GT] = PROOF_LE,
                                 [PROOF_GE] = PROOF_LT, [PROOF_EQ] = PROOF_NE, [PROOF_NE] = PROOF_EQ};
    return of[relation];
}

static void follow(struct closed_build *b, uint32_t at, bool holds, uint32_t *list, unsigned depth)
{
    const struct proof_insn *i = &b->p->insns[at];
    if (!depth || b->truth[at] != PROOF_MAYBE || b->failed)
        return;
    switch (i->op) {
    case PROOF_COMPARE: relate(b, b->forms[at], holds ? i->sign : opposite_relation(i->sign), list); return;
    case PROOF_OPPOSITE: follow(b, i->a, !holds, list, depth - 1); return;
    case PROOF_BOTH:
    case PROOF_EITHER:
        if (holds == (i->op == PROOF_BOTH) || b->truth[i->a] != PROOF_MAYBE ||
            b->truth[i->b] != PROOF_MAYBE) {
            follow(b, i->a, holds, list, depth - 1);
            follow(b, i->b, holds, list, depth - 1);
        }
        return;
    case PROOF_DIFFER:
        if (b->truth[i->a] != PROOF_MAYBE)
            follow(b, i->b, holds != (b->truth[i->a] == PROOF_TRUE), list, depth - 1);
        return;
    default: return;
    }
}

void closed_facts(struct closed_build *b, uint32_t predicate, bool holds, uint32_t *list)
{
    follow(b, predicate, holds, list, 12);
}

// --- one of several values ---------------------------------------------------------------------------------

struct join {
    struct poly first;
    struct closed_end lo, hi, apart_lo, apart_hi;
    uint32_t n;
    uint16_t root;
    bool same, near;
};

static void widen(struct closed_build *b, struct closed_end *to, struct closed_end from, uint8_t op)
{
    if (!to->kind || !from.kind)
        *to = (struct closed_end){0};
    else
        to->at = closed_pair(b, op, to->at, from.at);
}

static void join_add(struct closed_build *b, struct join *j, struct poly f, struct affine_place at)
{
    struct closed_end lo = closed_bound(b, f, false, at, CLOSED_HARD);
    struct closed_end hi = closed_bound(b, f, true, at, CLOSED_HARD);
    if (!j->n++) {
        *j = (struct join){.first = f, .lo = lo, .hi = hi, .n = 1, .root = f.root, .same = true};
        j->near = closed_above(b, closed_block_of(b, f), b->block);
        j->apart_lo = j->apart_hi = (struct closed_end){CLOSED_HARD, {0}};
        return;
    }
    widen(b, &j->lo, lo, CLOSED_MIN);
    widen(b, &j->hi, hi, CLOSED_MAX);
    j->same &= closed_same(b, f, j->first);
    if (f.root != j->root)
        j->root = AFFINE_MIXED;
    struct poly diff = closed_sum(b, 1, f, -1, j->first);
    widen(b, &j->apart_lo, closed_bound(b, diff, false, at, CLOSED_HARD), CLOSED_MIN);
    widen(b, &j->apart_hi, closed_bound(b, diff, true, at, CLOSED_HARD), CLOSED_MAX);
}

static affine_wide width(struct closed_build *b, struct closed_end lo, struct closed_end hi)
{
    return (affine_wide)closed_value(b, hi.at) - closed_value(b, lo.at);
}

static struct poly join_result(struct closed_build *b, struct join *j)
{
    struct poly r;
    bool ranged = j->lo.kind && j->hi.kind, near = j->near && j->apart_lo.kind && j->apart_hi.kind;
    if (b->failed)
        return (struct poly){0};
    if (j->same)
        r = j->first;
    else if (near && (!ranged || width(b, j->apart_lo, j->apart_hi) < width(b, j->lo, j->hi)))
        r = closed_sum(b, 1, j->first, 1, closed_within(b, j->apart_lo, j->apart_hi));
    else
        r = closed_within(b, j->lo, j->hi);
    r.root = j->root;
    return r;
}

struct poly closed_merge(struct closed_build *b, const struct proof_insn *i, const struct proof_insn *block)
{
    struct join j = {0};
    uint32_t live = 0, only = 0;
    for (uint32_t k = 0; k < block->b; k++) {
        if (b->edges[block->a + k].live) {
            live++;
            only = b->p->inputs[i->a + k];
        }
    }
    if (live == 1)
        return b->forms[only];
    for (uint32_t k = 0; k < block->b && !b->failed; k++) {
        const struct proof_edge_state *edge = &b->edges[block->a + k];
        if (edge->live)
            join_add(b, &j, b->forms[b->p->inputs[i->a + k]],
                     (struct affine_place){b->p->edges[block->a + k].block, edge->facts});
    }
    return j.n ? join_result(b, &j) : closed_opaque(b, 0, true);
}

struct poly closed_select(struct closed_build *b, const struct proof_insn *i)
{
    uint8_t t = b->truth[i->c];
    if (t == PROOF_TRUE || t == PROOF_FALSE)
        return b->forms[t == PROOF_TRUE ? i->a : i->b];
    struct join j = {0};
    uint32_t yes = PROOF_NONE, no = PROOF_NONE;
    closed_facts(b, i->c, true, &yes);
    closed_facts(b, i->c, false, &no);
    join_add(b, &j, b->forms[i->a], (struct affine_place){b->block, yes});
    join_add(b, &j, b->forms[i->b], (struct affine_place){b->block, no});
    return join_result(b, &j);
}

// --- loops -------------------------------------------------------------------------------------------------

static affine_wide window_lo(const struct proof_test *t)
{
    return t->sign ? -((affine_wide)1 << (t->bits - 1)) : 0;
}

static affine_wide window_hi(const struct proof_test *t)
{
    unsigned bits = t->bits - (t->sign ? 1u : 0u);
    return bits > 63 ? INT64_MAX : ((affine_wide)1 << bits) - 1;
}

// What a test says: rounds * size <= way + size, where the way is never negative but perhaps before round 0.
struct limit {
    struct poly way, size;
    bool known;
};

static bool last_value(struct closed_build *b, const struct proof_test *t, struct poly step, bool up,
                       struct poly start, struct poly *last)
{
    struct poly limit = b->forms[t->limit], way;
    int64_t size;
    switch (t->relation) {
    case PROOF_LT: *last = closed_plus(b, limit, -1); return up;
    case PROOF_LE: *last = limit; return up;
    case PROOF_GT: *last = closed_plus(b, limit, 1); return !up;
    case PROOF_GE: *last = limit; return !up;
    case PROOF_NE:
        way = closed_sum(b, up ? 1 : -1, limit, up ? -1 : 1, start);
        if (!closed_is_const(b, step, &size) || !closed_divides(b, size, way)) {
            b->doubtful = true;
            return false;
        }
        *last = closed_sum(b, 1, limit, -1, step);
        if (closed_inside(b, limit, window_lo(t), window_hi(t)) && closed_at_least(b, way, 0))
            return true;
        closed_refuse(b, limit, window_lo(t), window_hi(t));
        closed_refuse(b, way, 0, INT64_MAX);
        return false;
    default: return false;
    }
}

static struct limit limit_of(struct closed_build *b, const struct proof_test *t)
{
    struct limit l = {.known = false};
    struct poly step = b->forms[t->step], start = b->forms[t->start], last;
    if (b->failed || !closed_uniform(b, step) || !closed_value(b, step)) {
        b->doubtful |= closed_uniform(b, step);
        return l;
    }
    bool up = closed_value(b, step) > 0;
    l.size = closed_sum(b, up ? 1 : -1, step, 0, step);
    closed_require(b, closed_plus(b, l.size, -1));
    if (!closed_inside(b, start, window_lo(t), window_hi(t))) {
        start = closed_extend(b, start, t->bits, t->sign);
        if (b->failed || !closed_inside(b, start, window_lo(t), window_hi(t))) {
            closed_refuse(b, start, window_lo(t), window_hi(t));
            return l;
        }
    }
    if (!last_value(b, t, step, up, start, &last))
        return l;
    // One step more than the last value stays inside the type.
    struct poly next = closed_sum(b, 1, last, 1, step);
    struct closed_end end = closed_bound(b, next, up, closed_here(b), CLOSED_SOFT);
    affine_wide lo = up ? INT64_MIN : window_lo(t), hi = up ? window_hi(t) : INT64_MAX;
    if (b->failed || !end.kind || !closed_inside(b, end.at, lo, hi)) {
        if (end.kind)
            closed_refuse(b, end.at, lo, hi);
        return l;
    }
    l.way = closed_sum(b, up ? 1 : -1, last, up ? -1 : 1, start);
    l.known = !b->failed;
    return l;
}

// The counter of a loop is at most floor(way / size) + 1. It is one symbol for all tests; each adds the fact
// that the value of the round before has passed, if that is so for round 0 too.
void closed_loop(struct closed_build *b, uint32_t at)
{
    enum { MOST_TESTS = 8 };
    const struct proof_insn *i = &b->p->insns[at];
    struct closed_sym x = {.lo_kind = CLOSED_HARD, .block = b->block, .facts = PROOF_NONE};
    struct limit limits[MOST_TESTS];
    uint32_t n = i->b < MOST_TESTS ? i->b : MOST_TESTS;
    b->counters[at] = PROOF_NONE;
    for (uint32_t k = 0; k < n; k++) {
        limits[k] = limit_of(b, &b->p->tests[i->a + k]);
        if (b->failed)
            return;
        if (!limits[k].known)
            continue;
        struct closed_end w = closed_bound(b, limits[k].way, true, closed_here(b), CLOSED_HARD);
        if (!w.kind)
            continue;
        // No second round, at this launch; the rounds are counted from 0.
        if (!closed_decide(b, w.at))
            return;
        struct poly rounds = closed_plus(b, closed_floor(b, w.at, limits[k].size), 1);
        x.hi = x.hi_kind ? closed_pair(b, CLOSED_MIN, x.hi, rounds) : rounds;
        x.hi_kind = CLOSED_HARD;
    }
    uint32_t sym = closed_sym(b, x);
    b->counters[at] = sym;
    for (uint32_t k = 0; k < n && !b->failed; k++) {
        struct poly size = limits[k].size;
        if (limits[k].known && closed_at_least(b, closed_sum(b, 1, limits[k].way, 1, size), 0))
            closed_fact(b,
                        closed_sum(b, 1, closed_sum(b, 1, limits[k].way, 1, size), -1,
                                   closed_times(b, size, closed_of_sym(b, sym))),
                        &b->blocks[b->block].facts);
    }
}

struct poly closed_steps(struct closed_build *b, const struct proof_insn *i)
{
    struct poly start = b->forms[i->a], step = b->forms[i->b];
    uint32_t counter = b->counters[i->c];
    if (counter == PROOF_NONE)
        return start;
    if (!closed_uniform(b, step))
        return closed_opaque(b, i->bits, i->sign);
    struct poly r = closed_sum(b, 1, start, 1, closed_times(b, step, closed_of_sym(b, counter)));
    r.root = start.root;
    return r;
}

struct poly closed_shrinks(struct closed_build *b, const struct proof_insn *i)
{
    struct poly from = b->forms[i->a], zero = {0};
    struct closed_end lo = closed_bound(b, from, false, closed_here(b), CLOSED_HARD);
    struct closed_end hi = closed_bound(b, from, true, closed_here(b), CLOSED_HARD);
    if (lo.kind)
        lo.at = closed_pair(b, CLOSED_MIN, lo.at, zero);
    if (hi.kind)
        hi.at = closed_pair(b, CLOSED_MAX, hi.at, zero);
    struct poly x = closed_within(b, lo, hi);
    if (i->imm && x.n == 1 && !b->failed && b->terms[x.first].sym && closed_uniform(b, from)) {
        b->syms[b->terms[x.first].sym - 1].halved = true;
        b->syms[b->terms[x.first].sym - 1].first = from;
    }
    return x;
}

struct poly closed_stays(struct closed_build *b, const struct proof_insn *i)
{
    struct closed_end hi = closed_bound(b, b->forms[i->a], true, closed_here(b), CLOSED_HARD);
    int64_t most = i->imm, ones = 1;
    b->doubtful |= hi.kind != CLOSED_NONE;
    if (!hi.kind || b->failed || !closed_at_least(b, b->forms[i->a], 0))
        return closed_opaque(b, i->bits, false);
    most = closed_value(b, hi.at) > most ? closed_value(b, hi.at) : most;
    while (ones <= most && ones <= INT32_MAX)
        ones *= 2;
    int64_t end = i->sign & STAYS_XOR ? ones - 1 : most;
    if (b->failed || most > INT32_MAX || end >> (i->bits - 1) || (i->sign & STAYS_SUB && end > i->imm))
        return closed_opaque(b, i->bits, false);
    closed_require(b, closed_sum(b, -1, hi.at, 1, closed_const(b, end)));
    return closed_within(b, (struct closed_end){CLOSED_HARD, {0}},
                         (struct closed_end){CLOSED_HARD, closed_const(b, end)});
}

struct poly closed_turns(struct closed_build *b, const struct proof_insn *i)
{
    struct closed_end lo = closed_bound(b, b->forms[i->a], false, closed_here(b), CLOSED_HARD);
    struct closed_end hi = closed_bound(b, b->forms[i->a], true, closed_here(b), CLOSED_HARD);
    affine_wide end = ((affine_wide)1 << (i->bits - (i->sign & TURNS_SIGNED))) - 1 - i->c;
    b->doubtful |= lo.kind && hi.kind;
    if (b->failed || !lo.kind || !hi.kind || i->imm > end ||
        !closed_inside(b, hi.at, INT64_MIN, i->sign & TURNS_NE ? i->imm : end))
        return closed_opaque(b, i->bits, i->sign & TURNS_SIGNED);
    lo.at = closed_pair(b, CLOSED_MIN, lo.at, closed_const(b, 0));
    hi.at = closed_pair(b, CLOSED_MAX, hi.at, closed_const(b, i->imm));
    return closed_within(b, lo, hi);
}

struct poly closed_grows(struct closed_build *b, const struct proof_insn *i)
{
    struct closed_end lo = closed_bound(b, b->forms[i->a], false, closed_here(b), CLOSED_HARD);
    struct closed_end hi = closed_bound(b, b->forms[i->a], true, closed_here(b), CLOSED_HARD);
    struct closed_end limit = closed_bound(b, b->forms[i->b], true, closed_here(b), CLOSED_HARD);
    affine_wide end = ((affine_wide)1 << (i->bits - i->sign)) - 1;
    b->doubtful |= lo.kind && hi.kind && limit.kind;
    if (b->failed || !lo.kind || !hi.kind || !limit.kind || !closed_at_least(b, lo.at, 0))
        return closed_opaque(b, i->bits, i->sign);
    struct poly last = closed_plus(b, limit.at, i->imm & GROWS_LE ? 0 : -1);
    struct poly most = closed_pair(b, CLOSED_MAX, hi.at, last), times = closed_const(b, i->c);
    if (b->failed || !closed_inside(b, closed_times(b, most, times), INT64_MIN, end))
        return closed_opaque(b, i->bits, i->sign);
    hi.at = closed_pair(b, CLOSED_MAX, hi.at, i->imm & GROWS_NEW ? last : closed_times(b, last, times));
    return closed_within(b, lo, hi);
}
