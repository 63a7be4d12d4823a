// SPDX-License-Identifier: MIT
// Values where blocks meet, selections, and counters of loops.
#include "flow/proof_state.h"

// --- one of several values ---------------------------------------------------------------------------------

// What has been seen of the values that a joined one may have.
struct join {
    struct proof_state *e;
    struct affine first;
    struct affine_range all;    // of the values
    struct affine_range apart;  // of their distances from the first
    uint32_t n;
    uint16_t root;
    bool same, near;  // all equal; distances are known, and the first exists here
};

static void widen(struct affine_range *to, struct affine_range r)
{
    to->lo = r.lo < to->lo ? r.lo : to->lo;
    to->hi = r.hi > to->hi ? r.hi : to->hi;
    to->soft |= r.soft;
    to->reason = to->reason ? to->reason : r.reason;
}

static void join_add(struct join *j, struct affine f, struct affine_place at)
{
    struct affine_state *s = &j->e->s;
    struct affine_range r = affine_bound(s, f, at);
    struct affine diff;
    if (r.lo == r.hi && !r.soft && proof_fits(r.lo)) {
        uint16_t root = f.root;
        f = affine_const((int64_t)r.lo);
        f.root = root;
    }
    if (!j->n++) {
        j->first = f;
        j->all = r;
        j->apart = (struct affine_range){0};
        j->root = f.root;
        j->same = true;
        j->near = affine_above(s, affine_block(s, f), j->e->block);
        return;
    }
    widen(&j->all, r);
    j->same &= affine_same(s, f, j->first);
    if (f.root != j->root)
        j->root = AFFINE_MIXED;
    if (j->near && affine_sum(s, 1, f, -1, j->first, &diff))
        widen(&j->apart, affine_bound(s, diff, at));
    else
        j->near = false;
}

static struct affine join_result(struct join *j)
{
    struct affine r;
    bool near = j->near && !j->apart.soft && proof_fits(j->apart.lo) && proof_fits(j->apart.hi);
    if (j->same) {
        r = j->first;
    } else if (near && (j->all.soft || j->apart.hi - j->apart.lo < j->all.hi - j->all.lo)) {
        struct affine apart = proof_within(j->e, j->apart);
        if (!affine_sum(&j->e->s, 1, j->first, 1, apart, &r))
            r = proof_within(j->e, j->all);
    } else {
        r = proof_within(j->e, j->all);
    }
    r.root = j->root;
    return r;
}

// Finds first + m * (f - v) that is the value on each way into the block, where f has the value v on the
// first one. f is known on each way: it tells the ways apart, as the remainder that says how many single
// rounds stand before an unrolled loop does. On way k f == v + d and the value is first + m * d, so the sum
// is equal to it.
static bool follows(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block,
                    struct affine f, struct affine *out)
{
    struct affine first = {0}, apart;
    affine_wide v = 0, m = 0, plus;
    bool any = false, sloped = false;
    f.c = 0;
    for (uint32_t k = 0; k < block->b; k++) {
        const struct proof_edge_state *edge = &e->edges[block->a + k];
        if (!edge->live)
            continue;
        struct affine value = e->forms[e->p->inputs[i->a + k]];
        struct affine_place at = {e->p->edges[block->a + k].block, edge->facts};
        struct affine_range r = affine_bound(&e->s, f, at);
        if (r.lo != r.hi || r.soft || !proof_fits(r.lo))
            return false;
        if (!any) {
            any = true;
            first = value;
            v = r.lo;
            continue;
        }
        affine_wide d = r.lo - v;
        if (!affine_sum(&e->s, 1, value, -1, first, &apart) || apart.n)
            return false;
        if (!sloped && d && apart.c % d == 0) {
            m = apart.c / d;
            sloped = true;
        }
        if (!proof_fits(m) || !proof_fits(d) || apart.c != m * d)
            return false;
    }
    plus = -m * v;
    return any && proof_fits(plus) && affine_sum(&e->s, 1, first, (int64_t)m, f, out) &&
           affine_scale(&e->s, *out, 1, (int64_t)plus, out);
}

// Whether the values of all ways differ from the first one, which exists here, by numbers, and not all alike.
static bool are_apart(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block)
{
    const struct affine *first = NULL;
    struct affine apart;
    bool differ = false;
    uint32_t terms = e->s.nterms;
    for (uint32_t k = 0; k < block->b; k++) {
        const struct affine *value = &e->forms[e->p->inputs[i->a + k]];
        if (!e->edges[block->a + k].live)
            continue;
        if (!first && !affine_above(&e->s, affine_block(&e->s, *value), e->block))
            return false;
        first = first ? first : value;
        if (value->n != first->n || !affine_sum(&e->s, 1, *value, -1, *first, &apart) || apart.n)
            return false;
        e->s.nterms = terms;
        differ |= apart.c != 0;
    }
    return differ;
}

// Joins values that a condition of each way tells apart. A candidate for the form that does is what the facts
// of some way speak of.
static bool join_apart(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block,
                       struct affine *out)
{
    enum { MOST_TRIES = 3 };
    unsigned tries = 0;
    if (!are_apart(e, i, block))
        return false;
    for (uint32_t k = 0; k < block->b && tries < MOST_TRIES; k++) {
        const struct proof_edge_state *edge = &e->edges[block->a + k];
        if (!edge->live || edge->facts == PROOF_NONE)
            continue;
        struct affine f = e->s.facts[edge->facts].form;
        tries++;
        if (affine_above(&e->s, affine_block(&e->s, f), e->block) && follows(e, i, block, f, out))
            return true;
    }
    return false;
}

struct affine proof_merge(struct proof_state *e, const struct proof_insn *i, const struct proof_insn *block)
{
    struct join j = {.e = e};
    uint32_t live = 0, only = 0;
    for (uint32_t k = 0; k < block->b; k++) {
        if (e->edges[block->a + k].live) {
            live++;
            only = e->p->inputs[i->a + k];
        }
    }
    if (live == 1 && e->forms[only].n < 2)
        return e->forms[only];
    for (uint32_t k = 0; k < block->b; k++) {
        const struct proof_edge_state *edge = &e->edges[block->a + k];
        if (edge->live)
            join_add(&j, e->forms[e->p->inputs[i->a + k]],
                     (struct affine_place){e->p->edges[block->a + k].block, edge->facts});
    }
    struct affine apart;
    if (!j.same && j.near && join_apart(e, i, block, &apart)) {
        apart.root = j.root;
        return apart;
    }
    return j.n ? join_result(&j) : proof_opaque(e, 0, true, PROOF_WHY_UNDEFINED);
}

struct affine proof_select(struct proof_state *e, const struct proof_insn *i)
{
    uint8_t t = e->truth[i->c];
    if (t == PROOF_TRUE || t == PROOF_FALSE)
        return e->forms[t == PROOF_TRUE ? i->a : i->b];
    struct join j = {.e = e};
    uint32_t yes = PROOF_NONE, no = PROOF_NONE;
    proof_facts(e, i->c, true, &yes);
    proof_facts(e, i->c, false, &no);
    join_add(&j, e->forms[i->a], (struct affine_place){e->block, yes});
    join_add(&j, e->forms[i->b], (struct affine_place){e->block, no});
    return join_result(&j);
}

// --- loops -------------------------------------------------------------------------------------------------

struct limit {
    affine_wide rounds;  // the counter never exceeds this; negative: no limit known
    bool soft, tied;     // tied: tie_counter may be called
};

static affine_wide round_down(affine_wide a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool divides(const struct proof_state *e, int64_t d, struct affine f)
{
    if (d == -1)  // the least number has no remainder that a processor could compute
        return true;
    if (f.c % d)
        return false;
    for (uint32_t i = 0; i < f.n; i++)
        if (e->s.terms[f.first + i].coef % d)
            return false;
    return true;
}

static affine_wide window_lo(const struct proof_test *t)
{
    return t->sign ? -((affine_wide)1 << (t->bits - 1)) : 0;
}

static affine_wide window_hi(const struct proof_test *t)
{
    unsigned bits = t->bits - (t->sign ? 1u : 0u);
    return bits > 63 ? INT64_MAX : ((affine_wide)1 << bits) - 1;
}

// The greatest value (step > 0) or the least (step < 0) with which the test lets the loop go on.
static bool last_value(struct proof_state *e, const struct proof_test *t, int64_t step, struct affine start,
                       struct affine *last)
{
    struct affine limit = e->forms[t->limit], way;
    struct affine_range r;
    bool up = step > 0;
    switch (t->relation) {
    case PROOF_LT: return up && affine_scale(&e->s, limit, 1, -1, last);
    case PROOF_LE: return up && affine_scale(&e->s, limit, 1, 0, last);
    case PROOF_GT: return !up && affine_scale(&e->s, limit, 1, 1, last);
    case PROOF_GE: return !up && affine_scale(&e->s, limit, 1, 0, last);
    case PROOF_NE:
        // The steps must meet the limit: it lies ahead, a multiple of the step away.
        if (!affine_sum(&e->s, up ? 1 : -1, limit, up ? -1 : 1, start, &way) || !divides(e, step, way))
            return false;
        r = affine_bound(&e->s, limit, proof_here(e));
        if (r.lo < window_lo(t) || r.hi > window_hi(t))
            return false;
        return affine_bound(&e->s, way, proof_here(e)).lo >= 0 && affine_scale(&e->s, limit, 1, -step, last);
    default: return false;
    }
}

// How often a test lets the loop go on. The values that it reads are start, start + step, ...: by induction
// they are exact, since none of those that passed is beyond `last`, and one more step stays inside the
// type.
static struct limit limit_of(struct proof_state *e, const struct proof_test *t)
{
    struct limit l = {.rounds = -1};
    struct affine step = e->forms[t->step], start = e->forms[t->start], end, way;
    struct affine_place here = proof_here(e);
    if (!affine_is_const(step) || !step.c || step.c == INT64_MIN)
        return l;
    struct affine_range r = affine_bound(&e->s, start, here);
    if (r.lo < window_lo(t) || r.hi > window_hi(t)) {
        start = proof_extend(e, start, t->bits, t->sign);
        r = affine_bound(&e->s, start, here);
        if (r.lo < window_lo(t) || r.hi > window_hi(t))
            return l;
    }
    if (!last_value(e, t, step.c, start, &end))
        return l;
    struct affine_range last = affine_bound(&e->s, end, here);
    bool up = step.c > 0;
    if (up ? last.hi + step.c > window_hi(t) : last.lo + step.c < window_lo(t))
        return l;
    if (!affine_sum(&e->s, up ? 1 : -1, end, up ? -1 : 1, start, &way))
        return l;
    struct affine_range w = affine_bound(&e->s, way, here);
    if (!proof_fits(w.hi))
        return l;
    int64_t size = up ? step.c : -step.c;
    l.rounds = w.hi < 0 ? 0 : round_down(w.hi, size) + 1;
    l.soft = w.soft & AFFINE_SOFT_HI;
    // In round k > 0, the value of round k - 1 has passed. For k == 0 that must be true without a test.
    l.tied = w.lo + size >= 0;
    return l;
}

// Adds what follows from a fact of integers, passed >= 0, and one about a quotient in it: if a symbol
// cancels, what is left may have a common factor that the constant does not have, and is then rounded. With
// whole rounds of 4 steps, of which a quotient is the number of all steps, that gives the number of rounds.
static void round_with_quotients(struct proof_state *e, struct affine passed)
{
    struct affine_state *s = &e->s;
    for (uint32_t i = 0; i < passed.n; i++) {
        struct affine_term t = s->terms[passed.first + i];
        uint32_t at = s->syms[t.sym].facts;
        for (unsigned k = 0; at != PROOF_NONE && k < 2; k++, at = s->facts[at].next) {
            struct affine other = s->facts[at].form, sum;
            int64_t c = 0;
            for (uint32_t j = 0; j < other.n; j++)
                if (s->terms[other.first + j].sym == t.sym)
                    c = s->terms[other.first + j].coef;
            // Other multiples than 1 would need factors, which no such loop has.
            if (!c || c == INT64_MIN || t.coef != -c || !affine_sum(s, 1, passed, 1, other, &sum))
                continue;
            int64_t common = (int64_t)affine_content(s, sum, 0);
            if (sum.n < passed.n && common > 1 && sum.c % common)
                affine_fact(s, sum, &s->blocks[e->block].facts);
        }
    }
}

// Adds the fact that the value of the round before has passed: way + size - size * counter >= 0.
static void tie_counter(struct proof_state *e, const struct proof_test *t, uint32_t sym)
{
    struct affine step = e->forms[t->step], start = e->forms[t->start], last, way;
    int64_t size = step.c > 0 ? step.c : -step.c;
    bool up = step.c > 0;
    struct affine_range r = affine_bound(&e->s, start, proof_here(e));
    if (r.lo < window_lo(t) || r.hi > window_hi(t))
        start = proof_extend(e, start, t->bits, t->sign);
    if (last_value(e, t, step.c, start, &last) &&
        affine_sum(&e->s, up ? 1 : -1, last, up ? -1 : 1, start, &way) &&
        affine_sum(&e->s, 1, way, -size, affine_of_sym(&e->s, sym), &way) &&
        affine_scale(&e->s, way, 1, size, &way)) {
        affine_fact(&e->s, way, &e->s.blocks[e->block].facts);
        round_with_quotients(e, way);
    }
}

void proof_loop(struct proof_state *e, uint32_t at)
{
    const struct proof_insn *i = &e->p->insns[at];
    const struct proof_test *tests = e->p->tests + i->a;
    struct affine_sym x = {.hi = 1LL << 62, .soft = AFFINE_SOFT_HI, .reason = PROOF_WHY_COUNTER};
    x.block = e->block;
    x.facts = PROOF_NONE;
    uint64_t tied = 0;
    e->counters[at] = PROOF_NONE;
    for (uint32_t k = 0; k < i->b; k++) {
        struct limit l = limit_of(e, &tests[k]);
        if (l.rounds < 0)
            continue;
        if (l.rounds < x.hi)
            x.hi = (int64_t)l.rounds;
        if (!l.soft)
            x.soft = 0;
        tied |= (uint64_t)l.tied << (k & 63);
    }
    if (!x.hi)
        return;
    affine_new(&e->s, x);
    if (e->s.full)
        return;
    e->counters[at] = e->s.nsyms - 1;
    for (uint32_t k = 0; k < i->b && k < 64; k++)
        if (tied >> k & 1)
            tie_counter(e, &tests[k], e->counters[at]);
}

struct affine proof_shrinks(struct proof_state *e, const struct proof_insn *i)
{
    struct affine from = e->forms[i->a], left;
    struct affine_range r = affine_bound(&e->s, from, proof_here(e));
    bool positive = r.lo >= 0;
    r.lo = r.lo > 0 ? 0 : r.lo;
    r.hi = r.hi < 0 ? 0 : r.hi;
    struct affine x = proof_within(e, r);
    if (i->imm && x.n == 1 && !e->s.full)
        e->s.syms[e->s.terms[x.first].sym].power = affine_power(&e->s, from);
    if (positive && x.n == 1 && !e->s.full && affine_sum(&e->s, 1, from, -1, x, &left))
        affine_fact(&e->s, left, &e->s.syms[e->s.terms[x.first].sym].facts);
    return x;
}

// By induction each value is in [0, most]: flipping bits that 2^n - 1 has keeps it there, and so does
// imm - x for 0 <= x <= imm.
struct affine proof_stays(struct proof_state *e, const struct proof_insn *i)
{
    struct affine_range r = affine_bound(&e->s, e->forms[i->a], proof_here(e));
    affine_wide most = r.hi > i->imm ? r.hi : i->imm, ones = 1;
    while (ones <= most && ones <= INT32_MAX)
        ones *= 2;
    affine_wide end = i->sign & STAYS_XOR ? ones - 1 : most;
    if (r.soft || r.lo < 0 || most > INT32_MAX || end >> (i->bits - 1) ||
        (i->sign & STAYS_SUB && end > i->imm))
        return proof_opaque(e, i->bits, false, PROOF_WHY_CARRIED);
    return proof_within(e, (struct affine_range){.lo = 0, .hi = end});
}

// By induction each value is at most `most`, and one step more fits: it is compared exactly, and kept if it
// is at most imm. With a test for equality, values above imm would go on for ever.
struct affine proof_turns(struct proof_state *e, const struct proof_insn *i)
{
    struct affine_range r = affine_bound(&e->s, e->forms[i->a], proof_here(e));
    affine_wide most = r.hi > i->imm ? r.hi : i->imm;
    affine_wide end = ((affine_wide)1 << (i->bits - (i->sign & TURNS_SIGNED))) - 1;
    if (r.soft || most + i->c > end || (i->sign & TURNS_NE && r.hi > i->imm))
        return proof_opaque(e, i->bits, i->sign & TURNS_SIGNED, PROOF_WHY_CARRIED);
    return proof_within(e, (struct affine_range){.lo = r.lo < 0 ? r.lo : 0, .hi = most});
}

// By induction no value wraps around: one that passed the test is at most `last`, and c times it,
// or c times the first one, still fits.
struct affine proof_grows(struct proof_state *e, const struct proof_insn *i)
{
    struct affine_range from = affine_bound(&e->s, e->forms[i->a], proof_here(e));
    struct affine_range limit = affine_bound(&e->s, e->forms[i->b], proof_here(e));
    affine_wide last = limit.hi - (i->imm & GROWS_LE ? 0 : 1), most = from.hi > last ? from.hi : last;
    affine_wide end = ((affine_wide)1 << (i->bits - i->sign)) - 1;
    if (from.lo < 0 || !proof_fits(most) || most * i->c > end)
        return proof_opaque(e, i->bits, i->sign, PROOF_WHY_CARRIED);
    affine_wide next = i->imm & GROWS_NEW ? last : last * i->c;
    struct affine_range r = {.lo = from.lo, .hi = from.hi > next ? from.hi : next};
    r.soft = (from.soft | limit.soft) & AFFINE_SOFT_HI;
    r.reason = r.soft ? PROOF_WHY_CARRIED : PROOF_WHY_NONE;
    struct affine x = proof_within(e, r);
    int64_t power = r.hi < (affine_wide)1 << 62 ? affine_power(&e->s, e->forms[i->a]) : 0;
    while (power && power * 2 <= r.hi)
        power *= 2;
    if (x.n == 1 && !e->s.full && !(i->c & (i->c - 1)))
        e->s.syms[e->s.terms[x.first].sym].power = power;
    return x;
}

struct affine proof_steps(struct proof_state *e, const struct proof_insn *i)
{
    struct affine start = e->forms[i->a], step = e->forms[i->b], r;
    uint32_t counter = e->counters[i->c];
    if (counter == PROOF_NONE)
        return start;
    if (!affine_is_const(step))
        return proof_opaque(e, i->bits, i->sign, PROOF_WHY_CARRIED);
    if (!affine_sum(&e->s, 1, start, step.c, affine_of_sym(&e->s, counter), &r))
        return proof_opaque(e, i->bits, i->sign, PROOF_WHY_WRAPS);
    r.root = start.root;
    return r;
}
