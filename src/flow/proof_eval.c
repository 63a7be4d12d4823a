// SPDX-License-Identifier: MIT
// Walks a proof program once. Blocks stand in reverse postorder, and the program has no way back: a loop is a
// counter whose range its exit tests give before its body is looked at.
#include <errno.h>
#include <string.h>

#include "flow/proof_state.h"
#include "ptx/ptx.h"

// --- memory ------------------------------------------------------------------------------------------------

static uint32_t most_terms(const struct proof *p)
{
    return 16 * p->head->ninsns + 2048;
}

static uint32_t most_syms(const struct proof *p)
{
    return p->head->ninsns + 256;
}

static uint32_t most_facts(const struct proof *p)
{
    return 2 * p->head->ninsns + 256;
}

// Takes memory from base + *at on; base: NULL to measure only.
static void *take(char *base, size_t *at, size_t count, size_t size)
{
    void *p = base ? base + *at : NULL;
    *at += (count * size + 7) & ~(size_t)7;
    return p;
}

// Lays out the memory from `base` on, and returns its size.
static size_t lay_out(struct proof_state *e, const struct proof *p, char *base)
{
    size_t at = 0;
    const struct proof_head *h = p->head;
    e->s.most_terms = most_terms(p);
    e->s.most_syms = most_syms(p);
    e->s.most_facts = most_facts(p);
    e->s.terms = take(base, &at, e->s.most_terms, sizeof *e->s.terms);
    e->s.syms = take(base, &at, e->s.most_syms, sizeof *e->s.syms);
    e->s.facts = take(base, &at, e->s.most_facts, sizeof *e->s.facts);
    e->s.blocks = take(base, &at, h->nblocks, sizeof *e->s.blocks);
    e->forms = take(base, &at, h->ninsns, sizeof *e->forms);
    e->bits = take(base, &at, h->ninsns, sizeof *e->bits);
    e->truth = take(base, &at, h->ninsns, sizeof *e->truth);
    e->counters = take(base, &at, h->ninsns, sizeof *e->counters);
    e->edges = take(base, &at, h->nedges, sizeof *e->edges);
    e->bases = take(base, &at, (size_t)h->nroots * 2, sizeof *e->bases);
    return at;
}

size_t proof_work_size(const struct proof *p)
{
    struct proof_state e;
    return lay_out(&e, p, NULL);
}

static void start(struct proof_state *e, const struct proof *p, const struct proof_launch *l, void *work)
{
    *e = (struct proof_state){.p = p, .l = l};
    lay_out(e, p, work);
    memset(e->forms, 0, p->head->ninsns * sizeof *e->forms);
    memset(e->bits, 0xFF, p->head->ninsns * sizeof *e->bits);
    memset(e->truth, PROOF_DEAD, p->head->ninsns);
    memset(e->counters, 0xFF, p->head->ninsns * sizeof *e->counters);
    memset(e->bases, 0xFF, (size_t)p->head->nroots * 2 * sizeof *e->bases);
    memset(e->indices, 0xFF, sizeof e->indices);
    e->s.budget = 4096 + p->head->ninsns;
    e->s.cases_budget = 256;
}

// --- blocks ------------------------------------------------------------------------------------------------

static void enter_edge(struct proof_state *e, uint32_t at)
{
    const struct proof_edge *from = &e->p->edges[at];
    struct proof_edge_state *to = &e->edges[at];
    uint8_t t = from->predicate == PROOF_NONE ? PROOF_MAYBE : e->truth[from->predicate];
    *to = (struct proof_edge_state){.facts = PROOF_NONE};
    to->live = e->s.blocks[from->block].live && t != (from->negated ? PROOF_TRUE : PROOF_FALSE);
    if (!to->live || from->predicate == PROOF_NONE || t != PROOF_MAYBE)
        return;
    e->block = from->block;
    proof_facts(e, from->predicate, !from->negated, &to->facts);
}

// The conditions of a block that control enters on one way only.
static void count_guards(struct proof_state *e, struct affine_block *b, const struct proof_edge *from)
{
    const struct affine_block *up = &e->s.blocks[from->block];
    bool decided = from->predicate == PROOF_NONE || e->truth[from->predicate] != PROOF_MAYBE;
    b->guards = up->guards;
    b->guard = up->guard;
    if (decided)
        return;
    uint32_t fact = b->facts;
    while (fact != PROOF_NONE && e->s.facts[fact].follows)
        fact = e->s.facts[fact].next;
    bool one = fact != PROOF_NONE && e->s.facts[fact].next == PROOF_NONE &&
               e->p->insns[from->predicate].op == PROOF_COMPARE;
    b->guards = up->guards == AFFINE_NO_GUARD && one ? AFFINE_ONE_GUARD : AFFINE_MORE_GUARDS;
    b->guard = fact;
}

// Enters a block. Returns whether it can be reached.
static bool enter(struct proof_state *e, const struct proof_insn *i)
{
    struct affine_block *b = &e->s.blocks[i->c];
    uint32_t live = 0, up = PROOF_NONE, last = 0;
    *b = (struct affine_block){.up = PROOF_NONE, .facts = PROOF_NONE, .guard = PROOF_NONE};
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        enter_edge(e, k);
        if (!e->edges[k].live)
            continue;
        up = live++ ? affine_common(&e->s, up, e->p->edges[k].block) : e->p->edges[k].block;
        last = k;
    }
    e->block = i->c;
    b->live = live > 0 || i->c == 0;
    b->up = i->c == 0 ? PROOF_NONE : up;
    b->depth = b->up == PROOF_NONE ? 0 : e->s.blocks[up].depth + 1;
    if (live == 1) {
        b->facts = e->edges[last].facts;
        count_guards(e, b, &e->p->edges[last]);
    } else if (live > 1) {
        b->guards = AFFINE_MORE_GUARDS;
    }
    return b->live;
}

// --- accesses ----------------------------------------------------------------------------------------------

// Whether the symbols of f take every value between their ends in some thread: ordered by their coefficients,
// each one fills the gaps of the next.
static bool contiguous(const struct affine_state *s, struct affine f, int64_t unit)
{
    affine_wide filled = 0;  // multiples of the unit from 0 to this
    uint32_t done = 0;
    for (uint32_t round = 0; round < f.n; round++) {
        int64_t best = INT64_MAX;
        uint32_t which = PROOF_NONE;
        for (uint32_t i = 0; i < f.n; i++) {
            int64_t c = s->terms[f.first + i].coef;
            c = c < 0 ? -c : c;
            if (!(done >> i & 1) && c < best) {
                best = c;
                which = i;
            }
        }
        if (which == PROOF_NONE || best % unit || best / unit > filled + 1)
            return false;
        const struct affine_sym *x = &s->syms[s->terms[f.first + which].sym];
        filled += (affine_wide)(best / unit) * (x->hi - x->lo);
        done |= 1u << which;
    }
    return true;
}

// Whether f and the fact g have the same symbols in the same proportion, up to the sign.
static bool proportional(const struct affine_state *s, struct affine f, struct affine g)
{
    if (f.n != g.n || !f.n)
        return false;
    affine_wide f0 = s->terms[f.first].coef, g0 = s->terms[g.first].coef;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_term *x = &s->terms[f.first + i], *y = &s->terms[g.first + i];
        if (x->sym != y->sym || x->coef * g0 != y->coef * f0)
            return false;
    }
    return true;
}

// Whether the guard g holds where f, which is proportional to it, has the value `at`.
static bool holds_at(const struct affine_state *s, struct affine f, struct affine g, affine_wide at)
{
    affine_wide f0 = s->terms[f.first].coef, g0 = s->terms[g.first].coef, x = at - f.c;
    return x * g0 % f0 == 0 && g.c + x * g0 / f0 >= 0;
}

// Whether some thread touches both ends of a bound: its symbols are independent thread and block indices, and
// the only condition, if there is one, is a limit of the very same form, which holds at both ends.
static bool exact(const struct proof_state *e, struct affine f, const struct affine_range *r)
{
    const struct affine_state *s = &e->s;
    const struct affine_block *b = &s->blocks[e->block];
    for (uint32_t i = 0; i < f.n; i++)
        if (!s->syms[s->terms[f.first + i].sym].thread)
            return false;
    if (b->guards == AFFINE_NO_GUARD)
        return !r->facts;
    if (b->guards != AFFINE_ONE_GUARD || b->guard == PROOF_NONE)
        return false;
    struct affine g = s->facts[b->guard].form;
    int64_t unit = INT64_MAX;
    for (uint32_t i = 0; i < g.n; i++) {
        int64_t c = s->terms[g.first + i].coef;
        unit = (c < 0 ? -c : c) < unit ? (c < 0 ? -c : c) : unit;
    }
    return proportional(s, f, g) && contiguous(s, g, unit) && holds_at(s, f, g, r->lo) &&
           holds_at(s, f, g, r->hi);
}

static struct proof_bound unknown(uint32_t root, uint8_t reason)
{
    return (struct proof_bound){.verdict = PROOF_UNKNOWN, .reason = reason, .root = root};
}

// Bounds the distance f of an access from its root.
static struct proof_bound bound_of(struct proof_state *e, const struct proof_access *row, struct affine f,
                                   uint32_t root, uint32_t facts)
{
    struct affine_range r = affine_bound(&e->s, f, (struct affine_place){e->block, facts});
    const affine_wide most = (affine_wide)1 << (row->bits == 32 ? 31 : 62);
    if (row->bits == 32 && !r.soft) {  // the register holds the sum modulo 2^32: take the one around the root
        affine_wide turns = (r.lo + most) >> 32, distance = turns * ((affine_wide)1 << 32);
        r.lo -= distance;
        r.hi -= distance;
    }
    if (r.soft || r.lo < -most || r.hi > most)
        return unknown(root, r.reason ? r.reason : PROOF_WHY_WRAPS);
    if (r.lo > r.hi)  // the conditions on the way here contradict each other
        return (struct proof_bound){.verdict = PROOF_UNREACHABLE, .root = root};
    return (struct proof_bound){
        .verdict = PROOF_BOUNDED,
        .exact = !row->upto && facts == PROOF_NONE && exact(e, f, &r),
        .guarded = r.facts || e->s.blocks[e->block].guards || facts != PROOF_NONE,
        .root = root,
        .lowest = (int64_t)r.lo,
        .highest = (int64_t)r.hi + (int64_t)row->bytes - 1,
    };
}

// Says modulo which power of two all values of the distance f are the same.
static void align_bound(const struct affine_state *s, struct affine f, struct proof_bound *b)
{
    uint64_t all = 1u << PROOF_MOST_POWER;
    for (uint32_t i = 0; i < f.n; i++)
        all |= (uint64_t)s->terms[f.first + i].coef;
    b->power = (uint8_t)__builtin_ctzll(all);
    b->residue = (uint8_t)((uint64_t)f.c & ((1u << b->power) - 1));
}

static uint8_t reason_without_root(struct proof_state *e, struct affine f)
{
    struct affine_range r = affine_box(&e->s, f);
    if (r.reason == PROOF_WHY_LOADED_INDEX)
        return PROOF_WHY_LOADED_BASE;
    return r.reason ? r.reason : f.root == AFFINE_MIXED ? PROOF_WHY_ROOTS : PROOF_WHY_NO_ROOT;
}

static bool shares_symbol(const struct affine_state *s, struct affine f, struct affine g)
{
    for (uint32_t i = 0; i < f.n; i++)
        for (uint32_t k = 0; k < g.n; k++)
            if (s->terms[f.first + i].sym == s->terms[g.first + k].sym)
                return true;
    return false;
}

static bool has_unknown(const struct affine_state *s, struct affine f)
{
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_sym *x = &s->syms[s->terms[f.first + i].sym];
        if (x->soft & AFFINE_SOFT_HI &&
            (x->reason == PROOF_WHY_LOADED_INDEX || x->reason == PROOF_WHY_EXCHANGED))
            return true;
    }
    return false;
}

// Whether a condition on the way here is about an index of the distance f and a number that is not known.
static bool is_vague(const struct proof_state *e, struct affine f)
{
    enum { MOST_FACTS = 256 };
    unsigned looked = 0;
    for (uint32_t b = e->block; b != PROOF_NONE; b = e->s.blocks[b].up)
        for (uint32_t at = e->s.blocks[b].facts; at != PROOF_NONE; at = e->s.facts[at].next) {
            struct affine fact = e->s.facts[at].form;
            if (looked++ == MOST_FACTS)
                return false;
            if (has_unknown(&e->s, fact) && shares_symbol(&e->s, f, fact))
                return true;
        }
    return false;
}

// Finds the symbol that is the address of a root in a block of the cluster and that f starts from.
static uint32_t mapped_base(const struct affine_state *s, const struct proof_access *row, struct affine f,
                            uint32_t root)
{
    for (uint32_t i = 0; i < f.n; i++) {
        const struct affine_term *t = &s->terms[f.first + i];
        const struct affine_sym *x = &s->syms[t->sym];
        if (x->mapped == root + 1 && t->coef == 1 &&
            row->space == (x->generic ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED_CLUSTER))
            return t->sym;
    }
    return PROOF_NONE;
}

static struct proof_bound access_bound(struct proof_state *e, const struct proof_insn *i)
{
    const struct proof_access *row = &e->p->accesses[i->c];
    struct affine f = e->forms[i->a], away;
    uint32_t facts = PROOF_NONE, number = (f.root & ~AFFINE_WEAK) - 1u;
    if (i->b != PROOF_NONE) {
        if (e->truth[i->b] == (i->sign ? PROOF_TRUE : PROOF_FALSE))
            return (struct proof_bound){.verdict = PROOF_UNREACHABLE, .root = PROOF_NONE};
        if (e->truth[i->b] == PROOF_MAYBE)
            proof_facts(e, i->b, !i->sign, &facts);
    }
    bool rooted = f.root && f.root != AFFINE_MIXED;
    uint32_t root = rooted ? number : PROOF_NONE;
    if (row->reason)
        return unknown(root, row->reason);
    if (!rooted)
        return unknown(PROOF_NONE, reason_without_root(e, f));
    struct affine from;
    bool away_from_own = false;
    if (e->p->roots[root].kind == PROOF_ROOT_PARAM) {
        uint64_t v;
        memcpy(&v, (const char *)e->l->params + e->p->roots[root].at, sizeof v);
        from = affine_const((int64_t)v);
    } else {
        // Addresses of global memory are the same in both spaces, and so are those of a choice.
        uint32_t kind = e->p->roots[root].kind;
        bool own = row->space != 0 || kind == PROOF_ROOT_GLOBAL || kind == PROOF_ROOT_CHOICE;
        uint32_t sym = mapped_base(&e->s, row, f, root);
        away_from_own = sym != PROOF_NONE;
        sym = away_from_own ? sym : e->bases[root * 2 + !own];
        if (sym == PROOF_NONE)
            return unknown(root, PROOF_WHY_ROOTS);
        from = affine_of_sym(&e->s, sym);
    }
    if (!affine_sum(&e->s, 1, f, -1, from, &away) || !affine_scale(&e->s, away, 1, row->offset, &away))
        return unknown(root, PROOF_WHY_WRAPS);
    struct proof_bound b = bound_of(e, row, away, root, facts);
    if (e->vague)
        e->vague[i->c] = is_vague(e, away);
    if (b.verdict == PROOF_BOUNDED)
        align_bound(&e->s, away, &b);
    if (away_from_own || (i->b != PROOF_NONE && e->truth[i->b] == PROOF_MAYBE) ||
        e->p->roots[root].kind == PROOF_ROOT_CHOICE)
        b.exact = false;
    return b;
}

// Adds the bytes that a register gives to the bound of an access. They are no address: nothing wraps.
static void extend_bound(struct proof_state *e, const struct proof_insn *i, struct proof_bound *b)
{
    struct affine_range r = affine_bound(&e->s, e->forms[i->a], proof_here(e));
    if (b->verdict != PROOF_BOUNDED)
        return;
    if (r.soft || r.lo < 0 || r.hi > INT32_MAX)
        *b = unknown(b->root, r.reason ? r.reason : PROOF_WHY_EXTENT);
    else
        b->highest += (int64_t)r.hi;
}

enum { ACCESS_BUDGET = 64 };  // combinations of facts that each access may try

// --- the walk ----------------------------------------------------------------------------------------------

static struct affine value(struct proof_state *e, uint32_t at, const struct proof_insn *block)
{
    const struct proof_insn *i = &e->p->insns[at];
    switch (i->op) {
    case PROOF_SELECT: return proof_select(e, i);
    case PROOF_MERGE: return proof_merge(e, i, block);
    case PROOF_STEPS: return proof_steps(e, i);
    case PROOF_SHRINKS: return proof_shrinks(e, i);
    case PROOF_STAYS: return proof_stays(e, i);
    case PROOF_TURNS: return proof_turns(e, i);
    case PROOF_GROWS: return proof_grows(e, i);
    default: return proof_value(e, i);
    }
}

// Computes a value, and gives back the terms that were needed on the way if nothing refers to them.
static void compute(struct proof_state *e, uint32_t at, const struct proof_insn *block)
{
    struct affine_state *s = &e->s;
    uint32_t terms = s->nterms, syms = s->nsyms, facts = s->nfacts;
    struct affine f = value(e, at, block);
    if (s->nsyms == syms && s->nfacts == facts && f.first >= terms) {
        memmove(s->terms + terms, s->terms + f.first, f.n * sizeof *s->terms);
        f.first = terms;
        s->nterms = terms + f.n;
    }
    e->forms[at] = f;
    e->bits[at] = proof_bits(e, at, block);
}

static void walk(struct proof_state *e, struct proof_bound *out)
{
    static const char results[] = {
#define PROOF(id, operands, result) result,
#include "flow/proof_ops.def"
    };
    const struct proof_insn *block = e->p->insns;
    bool live = false;
    for (uint32_t at = 0; at < e->p->head->ninsns && !e->s.full; at++) {
        const struct proof_insn *i = &e->p->insns[at];
        if (i->op == PROOF_BLOCK) {
            block = i;
            live = enter(e, i);
        } else if (!live) {
            continue;
        } else if (i->op == PROOF_ACCESS) {
            uint32_t facts = e->s.nfacts;
            // What came before may have used up the budget; a guard is worth its price here.
            e->s.budget = e->s.budget < ACCESS_BUDGET ? ACCESS_BUDGET : e->s.budget;
            out[i->c] = access_bound(e, i);
            e->s.nfacts = facts;
        } else if (i->op == PROOF_EXTENT) {
            extend_bound(e, i, &out[i->c]);
        } else if (i->op == PROOF_LOOP) {
            proof_loop(e, at);
        } else if (results[i->op] == 'p') {
            proof_predicate(e, at, block);
        } else {
            compute(e, at, block);
        }
    }
}

static void sum_up(const struct proof *p, const struct proof_bound *out, struct proof_touched *roots)
{
    for (uint32_t i = 0; i < p->head->nroots; i++)
        roots[i] = (struct proof_touched){.lowest = INT64_MAX, .highest = INT64_MIN};
    for (uint32_t i = 0; i < p->head->naccesses; i++) {
        if (out[i].root == PROOF_NONE)
            continue;
        struct proof_touched *r = &roots[out[i].root];
        r->unknown += out[i].verdict == PROOF_UNKNOWN;
        r->unreachable += out[i].verdict == PROOF_UNREACHABLE;
        if (out[i].verdict == PROOF_UNREACHABLE)
            continue;
        r->reads |= p->accesses[i].does & PROOF_READS;
        r->writes |= (p->accesses[i].does & PROOF_WRITES) != 0;
        if (out[i].verdict != PROOF_BOUNDED)
            continue;
        r->bounded++;
        r->lowest = out[i].lowest < r->lowest ? out[i].lowest : r->lowest;
        r->highest = out[i].highest > r->highest ? out[i].highest : r->highest;
    }
}

bool proof_launch_valid(const struct proof *p, const struct proof_launch *l)
{
    uint64_t threads = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (!l->grid[i] || !l->block[i] || l->grid[i] > INT32_MAX || l->block[i] > 1024)
            return false;
        threads *= l->block[i];
    }
    return threads <= 1024 && l->params_size >= p->head->params && (l->params || !p->head->params);
}

static int eval(const struct proof *p, const struct proof_launch *l, void *work, struct proof_bound *out,
                bool *vague)
{
    struct proof_state e;
    if (!proof_launch_valid(p, l))
        return -EINVAL;
    start(&e, p, l, work);
    e.vague = vague;
    for (uint32_t i = 0; i < p->head->naccesses; i++)
        out[i] = (struct proof_bound){.verdict = PROOF_UNREACHABLE, .root = PROOF_NONE};
    walk(&e, out);
    for (uint32_t i = 0; i < p->head->naccesses && e.s.full; i++)
        out[i] = unknown(PROOF_NONE, PROOF_WHY_COMPLEX);
    return 0;
}

int proof_eval(const struct proof *p, const struct proof_launch *l, void *work, struct proof_bound *out,
               struct proof_touched *roots)
{
    int err = eval(p, l, work, out, NULL);
    if (!err && roots)
        sum_up(p, out, roots);
    return err;
}

int proof_eval_vague(const struct proof *p, const struct proof_launch *l, void *work, struct proof_bound *out,
                     bool *vague)
{
    for (uint32_t i = 0; i < p->head->naccesses; i++)
        vague[i] = false;
    return eval(p, l, work, out, vague);
}
