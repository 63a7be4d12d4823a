// SPDX-License-Identifier: MIT
// Barriers of a block: bar, barrier and their reductions. Threads are counted, not warps, so lanes of a warp
// may arrive one after another.
#include "exec/barrier.h"

#include "exec/sched.h"

static uint32_t expected(const struct exec_block *b, const struct exec_barrier *bar)
{
    return bar->expected ? bar->expected : b->nthreads - b->ended;
}

// Stores the result of a reduction for the threads of a split.
static void deliver(struct exec_warp *w, const struct exec_split *s, const struct exec_barrier *bar)
{
    char *to = s->frame->regs + s->pc->d;
    switch (s->pc->flags & BARRIER_KIND) {
    case BARRIER_POPC:
        for (unsigned l = 0; l < EXEC_LANES; l++)
            if (s->mask >> l & 1)
                ((uint32_t *)to)[l] = bar->sum;
        break;
    case BARRIER_AND: *(uint32_t *)to = (*(uint32_t *)to & ~s->mask) | (bar->all ? s->mask : 0); break;
    case BARRIER_OR: *(uint32_t *)to = (*(uint32_t *)to & ~s->mask) | (bar->any ? s->mask : 0); break;
    default: break;
    }
}

static void open_barrier(struct exec_block *b, uint32_t number)
{
    struct exec_barrier *bar = &b->barriers[number];
    for (uint32_t k = 0; k < b->nwarps; k++) {
        struct exec_warp *w = &b->warps[k];
        for (uint32_t n = 0; n < w->nsplits; n++) {
            struct exec_split *s = &w->splits[n];
            if (s->state != SPLIT_BARRIER || s->wait != number)
                continue;
            deliver(w, s, bar);
            s->state = SPLIT_READY;
            s->wait = 0;
            s->pc++;
            b->ready |= (uint32_t)1 << k;
        }
    }
    *bar = (struct exec_barrier){.all = 1};
}

void barrier_threads_ended(struct exec_block *b)
{
    for (uint32_t n = 0; n < EXEC_BARRIERS; n++) {
        struct exec_barrier *bar = &b->barriers[n];
        if (bar->arrived && !bar->expected && bar->arrived >= expected(b, bar))
            open_barrier(b, n);
    }
}

static void count(struct exec_barrier *bar, const struct exec_warp *w, const struct exec_insn *i)
{
    bar->arrived += (uint32_t)__builtin_popcount(w->mask);
    if (!(i->flags & BARRIER_KIND))
        return;
    uint32_t p = *(const uint32_t *)(w->regs + i->c) & w->mask;
    bar->sum += (uint32_t)__builtin_popcount(p);
    bar->any |= p != 0;
    bar->all &= p == w->mask;
}

// Splits off the lanes that name another barrier than `number`; they arrive later.
static void split_off(struct exec_warp *w, const struct exec_insn *i, uint32_t number)
{
    const uint32_t *named = (const uint32_t *)(w->regs + i->a);
    uint32_t others = 0;
    for (unsigned l = 0; l < EXEC_LANES; l++)
        others |= (uint32_t)(named[l] != number) << l;
    others &= w->mask;
    if (!others)
        return;
    sched_push(w, i, others);
    w->mask &= ~others;
}

const struct exec_insn *barrier_arrive(struct exec_warp *w, const struct exec_insn *i)
{
    struct exec_block *b = w->block;
    unsigned lane = (unsigned)__builtin_ctz(w->mask);
    uint32_t number = ((const uint32_t *)(w->regs + i->a))[lane];
    if (number >= EXEC_BARRIERS)
        return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
    if (i->flags & BARRIER_VARIES)
        split_off(w, i, number);
    struct exec_barrier *bar = &b->barriers[number];
    if (i->flags & BARRIER_COUNTED)
        bar->expected = ((const uint32_t *)(w->regs + i->b))[lane];
    count(bar, w, i);
    bool complete = bar->arrived >= expected(b, bar);
    if (i->flags & BARRIER_NO_WAIT) {
        if (complete)
            open_barrier(b, number);
        return i + 1;
    }
    const struct exec_insn *next = sched_wait(w, i, SPLIT_BARRIER, number);
    if (!complete)
        return next;
    open_barrier(b, number);
    return next ? next : sched_next(w);
}
