// SPDX-License-Identifier: MIT
#include "exec/cluster.h"

#include "exec/sched.h"
#include "exec/space.h"

// --- addresses ---------------------------------------------------------------------------------------------

uint32_t cluster_rank(uint64_t offset)
{
    return (uint32_t)(offset / CLUSTER_STEP);
}

uint64_t cluster_address(uint64_t offset, uint32_t rank)
{
    return offset % CLUSTER_STEP + (uint64_t)rank * CLUSTER_STEP;
}

struct exec_block *cluster_block(const struct exec_warp *w, uint64_t *offset)
{
    const struct exec_cluster *c = w->block->cluster;
    uint32_t rank = cluster_rank(*offset);
    if (*offset >= SPACE_WINDOW || rank >= c->size)
        return NULL;
    *offset %= CLUSTER_STEP;
    struct exec_block *b = c->blocks[rank];
    return b->ended == b->nthreads ? NULL : b;
}

static uint64_t get(const struct exec_warp *w, const struct exec_insn *i, uint32_t lane)
{
    return i->flags & CLUSTER_WIDE ? ((const uint64_t *)(w->regs + i->a))[lane]
                                   : ((const uint32_t *)(w->regs + i->a))[lane];
}

static uint64_t window(const struct exec_insn *i)
{
    return i->flags & CLUSTER_GENERIC ? space.shared_window : 0;
}

const struct exec_insn *cluster_mapa(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left), rank = ((const uint32_t *)(w->regs + i->b))[l];
        uint64_t to = cluster_address(get(w, i, l) - window(i), rank) + window(i);
        if (i->flags & CLUSTER_WIDE)
            ((uint64_t *)(w->regs + i->d))[l] = to;
        else
            ((uint32_t *)(w->regs + i->d))[l] = (uint32_t)to;
    }
    return i + 1;
}

const struct exec_insn *cluster_getctarank(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(left);
        ((uint32_t *)(w->regs + i->d))[l] = cluster_rank(get(w, i, l) - window(i));
    }
    return i + 1;
}

// --- barrier.cluster ---------------------------------------------------------------------------------------

// Splits wait at a barrier of their block by its number; barrier.cluster has the next number.
enum { BARRIER = EXEC_BARRIERS };

static void open_barrier(struct exec_cluster *c)
{
    c->arrived = 0;
    for (uint32_t r = 0; r < c->size; r++)
        for (uint32_t k = 0; k < c->blocks[r]->nwarps; k++) {
            struct exec_warp *w = &c->blocks[r]->warps[k];
            w->arrived = 0;
            for (uint32_t n = 0; n < w->nsplits; n++) {
                struct exec_split *s = &w->splits[n];
                if (s->state != SPLIT_BARRIER || s->wait != BARRIER)
                    continue;
                s->state = SPLIT_READY;
                s->wait = 0;
                s->pc++;
                c->blocks[r]->ready |= (uint32_t)1 << k;
            }
        }
}

// Opens the barrier if all live threads have arrived.
static void check(struct exec_cluster *c)
{
    uint32_t alive = 0;
    for (uint32_t r = 0; r < c->size; r++)
        alive += c->blocks[r]->nthreads - c->blocks[r]->ended;
    if (c->arrived && c->arrived >= alive)
        open_barrier(c);
}

void cluster_threads_ended(struct exec_warp *w, uint32_t mask)
{
    struct exec_cluster *c = w->block->cluster;
    if (!c->arrived)
        return;
    c->arrived -= (uint32_t)__builtin_popcount(w->arrived & mask);
    w->arrived &= ~mask;
    check(c);
}

const struct exec_insn *cluster_arrive(struct exec_warp *w, const struct exec_insn *i)
{
    struct exec_cluster *c = w->block->cluster;
    c->arrived += (uint32_t)__builtin_popcount(w->mask & ~w->arrived);
    w->arrived |= w->mask;
    check(c);
    return i + 1;
}

const struct exec_insn *cluster_wait(struct exec_warp *w, const struct exec_insn *i)
{
    uint32_t passed = w->mask & ~w->arrived;
    if (passed == w->mask)
        return i + 1;
    if (passed) {
        sched_push(w, i + 1, passed);
        w->mask &= ~passed;
    }
    return sched_wait(w, i, SPLIT_BARRIER, BARRIER);
}
