// SPDX-License-Identifier: MIT
// Walks a proof program for closed_build: blocks and accesses, as proof_eval.c does.
#include <string.h>

#include "flow/closed_state.h"
#include "ptx/ptx.h"

// --- blocks ------------------------------------------------------------------------------------------------

static void enter_edge(struct closed_build *b, uint32_t at)
{
    const struct proof_edge *from = &b->p->edges[at];
    struct proof_edge_state *to = &b->edges[at];
    uint8_t t = from->predicate == PROOF_NONE ? PROOF_MAYBE : b->truth[from->predicate];
    *to = (struct proof_edge_state){.facts = PROOF_NONE};
    to->live = b->blocks[from->block].live && t != (from->negated ? PROOF_TRUE : PROOF_FALSE);
    if (!to->live || from->predicate == PROOF_NONE || t != PROOF_MAYBE)
        return;
    b->block = from->block;
    closed_facts(b, from->predicate, !from->negated, &to->facts);
}

static void count_guards(struct closed_build *b, struct closed_block *to, const struct proof_edge *from)
{
    const struct closed_block *up = &b->blocks[from->block];
    to->guards = up->guards;
    to->guard = up->guard;
    if (from->predicate == PROOF_NONE || b->truth[from->predicate] != PROOF_MAYBE)
        return;
    bool one = to->facts != PROOF_NONE && b->facts[to->facts].next == PROOF_NONE &&
               b->p->insns[from->predicate].op == PROOF_COMPARE;
    to->guards = up->guards == AFFINE_NO_GUARD && one ? AFFINE_ONE_GUARD : AFFINE_MORE_GUARDS;
    to->guard = to->facts;
}

static bool enter(struct closed_build *b, const struct proof_insn *i)
{
    struct closed_block *to = &b->blocks[i->c];
    uint32_t live = 0, up = PROOF_NONE, last = 0;
    *to = (struct closed_block){.up = PROOF_NONE, .facts = PROOF_NONE, .guard = PROOF_NONE};
    for (uint32_t k = i->a; k < i->a + i->b; k++) {
        enter_edge(b, k);
        if (!b->edges[k].live)
            continue;
        up = live++ ? closed_common(b, up, b->p->edges[k].block) : b->p->edges[k].block;
        last = k;
    }
    b->block = i->c;
    to->live = live > 0 || i->c == 0;
    to->up = i->c == 0 ? PROOF_NONE : up;
    to->depth = to->up == PROOF_NONE ? 0 : b->blocks[up].depth + 1;
    if (live == 1) {
        to->facts = b->edges[last].facts;
        count_guards(b, to, &b->p->edges[last]);
    } else if (live > 1) {
        to->guards = AFFINE_MORE_GUARDS;
    }
    return to->live;
}

// --- accesses ----------------------------------------------------------------------------------------------

// The value of |coefficient| of a symbol, whose sign becomes a condition.
static struct poly magnitude(struct closed_build *b, struct poly f, uint32_t sym, bool *up)
{
    struct poly c = closed_coef(b, f, sym);
    *up = closed_sign(b, c);
    return *up ? c : closed_sum(b, -1, c, 0, c);
}

// Whether the symbols of g take every multiple of the least coefficient between their ends in some thread.
// That coefficient must be a number.
static bool contiguous(struct closed_build *b, struct poly g)
{
    struct poly filled = {0}, c[CLOSED_MOST_TERMS];
    uint32_t sym[CLOSED_MOST_TERMS], n = 0;
    bool up;
    for (uint32_t i = 0; i < g.n; i++) {
        uint32_t s = b->terms[g.first + i].sym;
        if (!s || (n && sym[n - 1] == s - 1))
            continue;
        sym[n] = s - 1;
        c[n++] = magnitude(b, g, s - 1, &up);
    }
    int64_t unit = 0;
    for (uint32_t round = 0; round < n && !b->failed; round++) {
        uint32_t best = round;
        for (uint32_t i = round + 1; i < n; i++)
            if (closed_value(b, c[i]) < closed_value(b, c[best]))
                best = i;
        struct poly x = c[best];
        uint32_t s = sym[best];
        c[best] = c[round];
        sym[best] = sym[round];
        if (!round && (!closed_is_const(b, x, &unit) || unit < 1))
            return false;
        if (!closed_divides(b, unit, x))
            return false;
        x = closed_over(b, x, unit);
        if (!closed_at_least(b, closed_plus(b, closed_sum(b, 1, filled, -1, x), 1), 0))
            return false;
        struct poly wide = closed_sum(b, 1, b->syms[s].hi, -1, b->syms[s].lo);
        filled = closed_sum(b, 1, filled, 1, closed_times(b, x, wide));
    }
    return !b->failed;
}

// Finds m, so that f and g have the same symbols and the terms of f are m times those of g.
static bool proportional(struct closed_build *b, struct poly f, struct poly g, struct poly *m)
{
    struct poly rest = closed_rest(b, f), other = closed_rest(b, g);
    f = closed_sum(b, 1, f, -1, rest);
    g = closed_sum(b, 1, g, -1, other);
    if (!f.n || !g.n || b->terms[f.first].sym != b->terms[g.first].sym)
        return false;
    uint32_t sym = b->terms[f.first].sym - 1;
    return closed_ratio(b, closed_coef(b, f, sym), closed_coef(b, g, sym), m) &&
           closed_same(b, closed_times(b, *m, g), f);
}

static bool threads_only(const struct closed_build *b, struct poly f)
{
    for (uint32_t i = 0; i < f.n; i++)
        if (b->terms[f.first + i].sym && !b->syms[b->terms[f.first + i].sym - 1].thread)
            return false;
    return true;
}

// Whether a symbol has the coefficient 1 or -1.
static bool has_unit(const struct closed_build *b, struct poly f)
{
    bool found = false;
    for (uint32_t i = 0; i < f.n; i++) {
        const struct closed_term *t = &b->terms[f.first + i];
        found |= t->sym && !t->mono && (t->coef == 1 || t->coef == -1);
    }
    return found;
}

// The ends of f, if some thread is known to have each of them: see `exact` of proof_eval.c. Under one guard
// g >= 0 the sum of g's terms takes every value from the larger one of its least value and -g's constant to
// its greatest, and f is m times that sum.
static bool exact_ends(struct closed_build *b, struct poly f, struct closed_end *lo, struct closed_end *hi)
{
    const struct closed_block *block = &b->blocks[b->block];
    struct poly m;
    if (!threads_only(b, f) || block->guards == AFFINE_MORE_GUARDS)
        return false;
    if (block->guards == AFFINE_NO_GUARD) {
        *lo = closed_box(b, f, false, CLOSED_HARD);
        *hi = closed_box(b, f, true, CLOSED_HARD);
        return !b->failed;
    }
    if (block->guard == PROOF_NONE)
        return false;
    struct poly g = b->facts[block->guard].form, rest = closed_rest(b, g);
    struct poly sum = closed_sum(b, 1, g, -1, rest), end = closed_sum(b, -1, rest, 0, rest);
    // A unit of more than 1 would miss the end.
    if (!threads_only(b, g) || !proportional(b, f, g, &m) || !has_unit(b, g) || !contiguous(b, g))
        return false;
    struct closed_end least = closed_box(b, sum, false, CLOSED_HARD),
                      most = closed_box(b, sum, true, CLOSED_HARD);
    least.at = closed_pair(b, CLOSED_MAX, least.at, end);
    if (b->failed || !closed_at_least(b, closed_sum(b, 1, most.at, -1, least.at), 0))
        return false;
    struct poly from = closed_rest(b, f);
    bool up = closed_sign(b, m);
    least.at = closed_sum(b, 1, from, 1, closed_times(b, m, least.at));
    most.at = closed_sum(b, 1, from, 1, closed_times(b, m, most.at));
    *lo = up ? least : most;
    *hi = up ? most : least;
    return !b->failed;
}

static struct closed_out unknown(uint32_t root)
{
    return (struct closed_out){.verdict = PROOF_UNKNOWN,
                               .root = root,
                               .lo = CLOSED_NO_REG,
                               .hi = CLOSED_NO_REG,
                               .coefs = CLOSED_NO_REG,
                               .c = CLOSED_NO_REG};
}

// What the alignment follows from: all bits of all coefficients, and the constant.
static void align(struct closed_build *b, struct poly f, struct closed_out *out)
{
    struct poly rest = closed_rest(b, f), all = closed_const(b, 1 << PROOF_MOST_POWER);
    for (uint32_t i = 0; i < f.n && !b->failed;) {
        uint32_t sym = b->terms[f.first + i].sym;
        while (i < f.n && b->terms[f.first + i].sym == sym)
            i++;
        if (sym)
            all = closed_pair(b, CLOSED_OR, all, closed_coef(b, f, sym - 1));
    }
    out->coefs = closed_reg(b, all, &out->coefs_add);
    out->c = closed_reg(b, rest, &out->c_add);
    if (out->coefs != CLOSED_NO_REG && out->coefs_add)
        out->coefs = closed_whole(b, all);
}

// The bound of the distance f of an access from its root.
static struct closed_out bound_of(struct closed_build *b, const struct proof_access *row, struct poly f,
                                  uint32_t root, uint32_t facts, bool certain)
{
    struct closed_out out = unknown(root);
    struct affine_place at = {b->block, facts};
    struct closed_end lo = {0}, hi = {0};
    struct closed_mark m = closed_mark(b);
    f.root = 0;
    bool is_exact = certain && !row->upto && facts == PROOF_NONE && exact_ends(b, f, &lo, &hi);
    if (!is_exact && !b->failed) {
        closed_undo(b, m);
        lo = closed_bound(b, f, false, at, CLOSED_HARD);
        hi = closed_bound(b, f, true, at, CLOSED_HARD);
    }
    if (b->failed || !lo.kind || !hi.kind)
        return out;
    const int64_t most = 1LL << (row->bits == 32 ? 30 : 62);
    // The conditions on the way here contradict each other.
    if (!closed_decide(b, closed_sum(b, 1, hi.at, -1, lo.at))) {
        out.verdict = PROOF_UNREACHABLE;
        return out;
    }
    closed_require(b, closed_plus(b, lo.at, most));
    closed_require(b, closed_sum(b, -1, hi.at, 1, closed_const(b, most)));
    align(b, f, &out);
    out.verdict = PROOF_BOUNDED;
    out.exact = is_exact;
    out.guarded = b->blocks[b->block].guards || facts != PROOF_NONE || !is_exact;
    out.lo = closed_reg(b, lo.at, &out.lo_add);
    out.hi = closed_reg(b, closed_plus(b, hi.at, (int64_t)row->bytes - 1), &out.hi_add);
    return out;
}

static uint32_t mapped_base(const struct closed_build *b, const struct proof_access *row, struct poly f,
                            uint32_t root)
{
    for (uint32_t i = 0; i < f.n; i++) {
        const struct closed_term *t = &b->terms[f.first + i];
        const struct closed_sym *x = t->sym ? &b->syms[t->sym - 1] : NULL;
        if (x && x->mapped == root + 1 && t->coef == 1 && !t->mono &&
            row->space == (x->generic ? PTX_SPACE_GENERIC : PTX_SPACE_SHARED_CLUSTER))
            return t->sym - 1;
    }
    return PROOF_NONE;
}

static struct closed_out access_bound(struct closed_build *b, const struct proof_insn *i)
{
    const struct proof_access *row = &b->p->accesses[i->c];
    struct poly f = b->forms[i->a], from;
    uint32_t facts = PROOF_NONE, root = PROOF_NONE;
    bool away_from_own = false;
    bool maybe = i->b != PROOF_NONE && b->truth[i->b] == PROOF_MAYBE;
    if (i->b != PROOF_NONE && b->truth[i->b] == (i->sign ? PROOF_TRUE : PROOF_FALSE)) {
        struct closed_out out = unknown(PROOF_NONE);
        out.verdict = PROOF_UNREACHABLE;
        return out;
    }
    if (maybe)
        closed_facts(b, i->b, !i->sign, &facts);
    if (f.root && f.root != AFFINE_MIXED)
        root = (f.root & ~AFFINE_WEAK) - 1u;
    if (row->reason || root == PROOF_NONE || b->failed)
        return unknown(root);
    const struct proof_root *r = &b->p->roots[root];
    if (r->kind == PROOF_ROOT_PARAM) {
        struct proof_insn pointer = {.op = PROOF_PARAM, .bits = 64, .a = PROOF_NONE, .imm = r->at};
        from = closed_apply(b, &pointer);
    } else {
        bool own = row->space != 0 || r->kind == PROOF_ROOT_GLOBAL || r->kind == PROOF_ROOT_CHOICE;
        uint32_t sym = mapped_base(b, row, f, root);
        away_from_own = sym != PROOF_NONE;
        sym = away_from_own ? sym : b->bases[root * 2 + !own];
        if (sym == PROOF_NONE)
            return unknown(root);
        from = closed_of_sym(b, sym);
    }
    struct poly away = closed_plus(b, closed_sum(b, 1, f, -1, from), row->offset);
    return bound_of(b, row, away, root, facts, !maybe && !away_from_own && r->kind != PROOF_ROOT_CHOICE);
}

static void extend_bound(struct closed_build *b, const struct proof_insn *i, struct closed_out *out)
{
    struct poly f = b->forms[i->a];
    struct closed_end hi = closed_bound(b, f, true, closed_here(b), CLOSED_HARD);
    int64_t add;
    if (out->verdict != PROOF_BOUNDED || b->failed)
        return;
    if (!hi.kind || closed_value(b, hi.at) > INT32_MAX || !closed_at_least(b, f, 0)) {
        *out = unknown(out->root);
        return;
    }
    closed_require(b, closed_sum(b, -1, hi.at, 1, closed_const(b, INT32_MAX)));
    uint16_t more = closed_reg(b, hi.at, &add);
    b->failed |= __builtin_add_overflow(out->hi_add, add, &out->hi_add);
    if (more != CLOSED_NO_REG && out->hi != CLOSED_NO_REG)
        out->hi = closed_emit(b, (struct closed_insn){.op = CLOSED_MADI, .a = out->hi, .b = more, .imm = 1});
    else if (more != CLOSED_NO_REG)
        out->hi = more;
}

static struct poly value(struct closed_build *b, const struct proof_insn *i, const struct proof_insn *block)
{
    switch (i->op) {
    case PROOF_SELECT: return closed_select(b, i);
    case PROOF_MERGE: return closed_merge(b, i, block);
    case PROOF_STEPS: return closed_steps(b, i);
    case PROOF_SHRINKS: return closed_shrinks(b, i);
    case PROOF_STAYS: return closed_stays(b, i);
    case PROOF_TURNS: return closed_turns(b, i);
    case PROOF_GROWS: return closed_grows(b, i);
    default: return closed_apply(b, i);
    }
}

static bool is_plain(uint8_t op)
{
    return op == PROOF_ADD || op == PROOF_SUB || op == PROOF_MUL || op == PROOF_SHL || op == PROOF_AND ||
           op == PROOF_OR || op == PROOF_XOR;
}

// Computes a value, and gives back the terms that were needed on the way if nothing refers to them.
static void compute(struct closed_build *b, uint32_t at, const struct proof_insn *block)
{
    uint32_t terms = b->nterms, syms = b->nsyms, facts = b->nfacts;
    struct closed_mark m = closed_mark(b);
    struct poly f = value(b, &b->p->insns[at], block);
    // A number that is too large, in an operation that makes nothing that outlives it.
    if (b->failed && !b->pinned && is_plain(b->p->insns[at].op)) {
        b->failed = false;
        b->nsyms = syms;
        b->nfacts = facts;
        closed_undo(b, m);
        f = closed_opaque(b, 0, true);
    }
    if (b->nsyms == syms && b->nfacts == facts && f.first >= terms) {
        memmove(b->terms + terms, b->terms + f.first, f.n * sizeof *b->terms);
        f.first = terms;
        b->nterms = terms + f.n;
    }
    b->forms[at] = f;
}

void closed_walk(struct closed_build *b)
{
    static const char results[] = {
#define PROOF(id, operands, result) result,
#include "flow/proof_ops.def"
    };
    const struct proof_insn *block = b->p->insns;
    bool live = false;
    for (uint32_t k = 0; k < b->p->head->naccesses; k++) {
        b->outs[k] = unknown(PROOF_NONE);
        b->outs[k].verdict = PROOF_UNREACHABLE;
    }
    for (uint32_t at = 0; at < b->p->head->ninsns && !b->failed; at++) {
        const struct proof_insn *i = &b->p->insns[at];
        if (i->op == PROOF_BLOCK) {
            block = i;
            live = enter(b, i);
        } else if (!live) {
            continue;
        } else if (i->op == PROOF_ACCESS) {
            uint32_t facts = b->nfacts, terms = b->nterms;
            b->outs[i->c] = access_bound(b, i);
            b->nfacts = facts;
            b->nterms = terms;
        } else if (i->op == PROOF_EXTENT) {
            extend_bound(b, i, &b->outs[i->c]);
        } else if (i->op == PROOF_LOOP) {
            closed_loop(b, at);
        } else if (results[i->op] == 'p') {
            closed_predicate(b, at, block);
        } else {
            compute(b, at, block);
        }
    }
}
