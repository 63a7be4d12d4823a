// SPDX-License-Identifier: MIT
#include "flow/closed.h"

#include <string.h>

#include "flow/closed_state.h"

enum { MOST_INSNS = 8192, LEAST_OPS = 256, SEARCHES = 4096 };

static uint32_t most_ops(const struct proof *p)
{
    uint32_t n = LEAST_OPS + 4 * p->head->ninsns;
    return n < CLOSED_MOST_OPS ? n : CLOSED_MOST_OPS;
}

size_t closed_size(const struct proof *p)
{
    if (p->head->ninsns > MOST_INSNS)
        return 0;
    return sizeof(struct closed) + most_ops(p) * sizeof(struct closed_insn) +
           p->head->naccesses * sizeof(struct closed_out);
}

size_t closed_regs_size(const struct proof *p)
{
    return p->head->ninsns > MOST_INSNS ? 0 : most_ops(p) * sizeof(int64_t);
}

size_t closed_used(const void *memory, const struct proof *p)
{
    const struct closed *c = memory;
    return sizeof *c + c->nops * sizeof *c->ops + p->head->naccesses * sizeof(struct closed_out);
}

// --- memory ------------------------------------------------------------------------------------------------

static void *take(char *base, size_t *at, size_t count, size_t size)
{
    void *p = base + *at;
    *at += (count * size + 7) & ~(size_t)7;
    return p;
}

// Lays out the work area of proof_eval for a construction. Returns false if it is too small.
static bool lay_out(struct closed_build *b, void *work)
{
    const struct proof_head *h = b->p->head;
    size_t at = 0, size = proof_work_size(b->p);
    b->most_ops = most_ops(b->p);
    b->most_atoms = b->most_monos = 128 + h->ninsns / 4;
    b->most_syms = 64 + h->ninsns;
    b->most_facts = 64 + h->ninsns;
    b->ops = take(work, &at, b->most_ops, sizeof *b->ops);
    b->outs = take(work, &at, h->naccesses, sizeof *b->outs);
    b->atoms = take(work, &at, b->most_atoms, sizeof *b->atoms);
    b->monos = take(work, &at, b->most_monos, sizeof *b->monos);
    b->syms = take(work, &at, b->most_syms, sizeof *b->syms);
    b->facts = take(work, &at, b->most_facts, sizeof *b->facts);
    b->blocks = take(work, &at, h->nblocks, sizeof *b->blocks);
    b->forms = take(work, &at, h->ninsns, sizeof *b->forms);
    b->truth = take(work, &at, h->ninsns, sizeof *b->truth);
    b->counters = take(work, &at, h->ninsns, sizeof *b->counters);
    b->edges = take(work, &at, h->nedges, sizeof *b->edges);
    b->bases = take(work, &at, (size_t)h->nroots * 2, sizeof *b->bases);
    if (at >= size)
        return false;
    b->terms = take(work, &at, 0, 1);
    b->most_terms = (uint32_t)((size - at) / sizeof *b->terms);
    return b->most_terms > 256;
}

static void start(struct closed_build *b)
{
    const struct proof_head *h = b->p->head;
    b->nterms = b->nmonos = b->natoms = b->nsyms = b->nfacts = b->nops = 0;
    b->monos[b->nmonos++] = (struct closed_mono){.value = 1, .least = 1, .most = 1, .reg = CLOSED_NO_REG};
    b->failed = b->pinned = b->doubtful = false;
    b->searches = SEARCHES + 2 * h->ninsns;
    memset(b->known, 0xFF, sizeof b->known);
    memset(b->forms, 0, h->ninsns * sizeof *b->forms);
    memset(b->truth, PROOF_DEAD, h->ninsns);
    memset(b->counters, 0xFF, h->ninsns * sizeof *b->counters);
    memset(b->bases, 0xFF, (size_t)h->nroots * 2 * sizeof *b->bases);
    memset(b->indices, 0xFF, sizeof b->indices);
}

// --- the result --------------------------------------------------------------------------------------------

// Whether it is the kernel, not the launch, that keeps an access from being bounded.
static bool lasting(const struct closed_build *b, uint8_t reason)
{
    switch (reason) {
    case PROOF_WHY_COUNTER:
    case PROOF_WHY_CARRIED:
    case PROOF_WHY_WRAPS: return !b->doubtful;
    case PROOF_WHY_OPERATOR:
    case PROOF_WHY_LOADED_INDEX:
    case PROOF_WHY_LOADED_BASE:
    case PROOF_WHY_ATOMIC:
    case PROOF_WHY_EXCHANGED:
    case PROOF_WHY_CONVERTED:
    case PROOF_WHY_CALLED:
    case PROOF_WHY_ARGUMENT:
    case PROOF_WHY_SPECIAL:
    case PROOF_WHY_UNDEFINED:
    case PROOF_WHY_CONTROL: return true;
    default: return false;
    }
}

// Takes over what the closed form says of an access, if it is as good as the answer. It may know less of
// exactness, alignment and contradictions, which matter only where a bound leaves its buffer; then the launch
// is evaluated anew.
static bool agrees(const struct closed_build *b, struct closed_out *from, const struct proof_bound *is,
                   const struct proof_bound *should)
{
    if (should->verdict == PROOF_UNKNOWN) {
        bool rootless = is->verdict == PROOF_UNKNOWN && is->root == PROOF_NONE && should->root == PROOF_NONE;
        *from = (struct closed_out){.verdict = PROOF_UNKNOWN,
                                    .reason = should->reason,
                                    .guarded = should->guarded,
                                    .root = should->root};
        return rootless || lasting(b, should->reason);
    }
    if (should->verdict == PROOF_UNREACHABLE)
        return is->verdict == PROOF_UNREACHABLE || (is->verdict == PROOF_BOUNDED && b->strict && !is->exact);
    return is->verdict == PROOF_BOUNDED && is->root == should->root && is->lowest == should->lowest &&
           is->highest == should->highest && is->exact <= should->exact && is->power <= should->power &&
           is->residue == (should->residue & ((1u << is->power) - 1));
}

// Marks the instructions that something needs.
static void mark_needed(const struct closed_build *b, bool *needed)
{
    memset(needed, 0, b->nops * sizeof *needed);
    for (uint32_t i = 0; i < b->p->head->naccesses; i++) {
        const struct closed_out *o = &b->outs[i];
        const uint16_t regs[] = {o->lo, o->hi, o->coefs, o->c};
        for (unsigned k = 0; k < 4 && o->verdict == PROOF_BOUNDED; k++)
            if (regs[k] != CLOSED_NO_REG)
                needed[regs[k]] = true;
    }
    for (uint32_t i = b->nops; i-- > 0;) {
        const struct closed_insn *x = &b->ops[i];
        needed[i] |= x->op >= CLOSED_GE || x->op == CLOSED_QUOT;
        if (!needed[i])
            continue;
        if (x->op > CLOSED_LAUNCH)
            needed[x->a] = true;
        if (closed_reads_b(x->op))
            needed[x->b] = true;
    }
}

// Marks the instructions that depend on no parameter.
static void mark_shape(const struct closed_build *b, bool *shape)
{
    for (uint32_t i = 0; i < b->nops; i++) {
        const struct closed_insn *x = &b->ops[i];
        shape[i] = x->op != CLOSED_PARAM && (x->op <= CLOSED_LAUNCH || shape[x->a]) &&
                   (!closed_reads_b(x->op) || shape[x->b]);
    }
}

// Leaves out instructions that nothing needs, moves those that depend on no parameter to the front, and
// closes the gap in front of the outs.
static void shrink(struct closed_build *b, struct closed *c)
{
    uint16_t *number = (uint16_t *)b->terms;  // no longer needed
    bool *needed = (bool *)(number + b->nops), *shape = needed + b->nops;
    mark_needed(b, needed);
    mark_shape(b, shape);
    c->nops = 0;
    for (int first = 1; first >= 0; first--) {
        for (uint32_t i = 0; i < b->nops; i++) {
            struct closed_insn x = b->ops[i];
            if (!needed[i] || shape[i] != first)
                continue;
            if (x.op > CLOSED_LAUNCH)
                x.a = number[x.a];
            if (closed_reads_b(x.op))
                x.b = number[x.b];
            number[i] = (uint16_t)c->nops;
            c->ops[c->nops++] = x;
        }
        c->nshape = first ? c->nops : c->nshape;
    }
    struct closed_out *to = (struct closed_out *)(c->ops + c->nops);
    for (uint32_t i = 0; i < b->p->head->naccesses; i++) {
        struct closed_out o = b->outs[i];
        uint16_t *const regs[] = {&o.lo, &o.hi, &o.coefs, &o.c};
        for (unsigned k = 0; k < 4 && o.verdict == PROOF_BOUNDED; k++)
            if (*regs[k] != CLOSED_NO_REG)
                *regs[k] = number[*regs[k]];
        to[i] = o;
    }
}

static bool finish(struct closed_build *b, const struct proof_bound *answer, struct closed *c)
{
    const struct proof_head *h = b->p->head;
    if (b->failed || b->most_terms * sizeof *b->terms <
                         b->nops * sizeof(int64_t) + h->naccesses * sizeof(struct proof_bound))
        return false;
    // Run once, with all instructions, for the launch at hand.
    int64_t *regs = (int64_t *)b->terms;
    struct proof_bound *is = (struct proof_bound *)(regs + b->nops);
    c->nops = b->nops;
    c->nshape = 0;
    memcpy(c->ops, b->ops, b->nops * sizeof *b->ops);
    memcpy(c->ops + b->nops, b->outs, h->naccesses * sizeof *b->outs);
    if (!closed_eval(c, b->p, b->l, regs, is))
        return false;
    for (uint32_t i = 0; i < h->naccesses; i++)
        if (!agrees(b, &b->outs[i], &is[i], &answer[i]))
            return false;
    shrink(b, c);
    return true;
}

static void pin(struct closed_build *b, int64_t which)
{
    struct closed_pin pin = {.op = CLOSED_LAUNCH, .imm = which};
    bool known = false;
    for (uint32_t i = 0; i < b->npins; i++)
        known |= b->pins[i].op == pin.op && b->pins[i].imm == pin.imm;
    if (!known && b->npins < CLOSED_MOST_PINS)
        b->pins[b->npins++] = pin;
}

// Fixes the sizes of a block, since coefficients that are numbers can be split, and axes with one block,
// whose index is 0.
static void fix_shape(struct closed_build *b)
{
    for (unsigned k = 0; k < 3; k++) {
        pin(b, PROOF_NTID + k);
        if (b->l->grid[k] == 1)
            pin(b, PROOF_NCTAID + k);
    }
}

bool closed_build(const struct proof *p, const struct proof_launch *l, const struct proof_bound *answer,
                  void *work, void *memory)
{
    struct closed_build b = {.p = p, .l = l};
    if (!closed_size(p) || !lay_out(&b, work))
        return false;
    for (unsigned level = 0; level < 4; level++) {
        if (level == 2)
            fix_shape(&b);
        b.split = level > 0;
        b.strict = level == 3;
        do {
            start(&b);
            closed_walk(&b);
        } while (b.pinned);
        if (finish(&b, answer, memory))
            return true;
    }
    return false;
}
