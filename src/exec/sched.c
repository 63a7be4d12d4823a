// SPDX-License-Identifier: MIT
#include "exec/sched.h"

#include <assert.h>

#include "exec/cluster.h"

static void drop(struct exec_warp *w, uint32_t at)
{
    w->splits[at] = w->splits[--w->nsplits];
}

static void load(struct exec_warp *w, uint32_t at)
{
    struct exec_split s = w->splits[at];
    drop(w, at);
    w->mask = s.mask;
    frame_enter(w, s.frame);
    w->pc = s.pc;
}

static void store(struct exec_warp *w, const struct exec_insn *pc, enum split_state state, uint32_t wait)
{
    assert(w->nsplits < EXEC_LANES);
    w->splits[w->nsplits++] = (struct exec_split){.pc = pc,
                                                  .frame = w->frame,
                                                  .mask = w->mask,
                                                  .wait = wait,
                                                  .since = w->turn,
                                                  .state = (uint8_t)state};
}

void sched_push(struct exec_warp *w, const struct exec_insn *pc, uint32_t mask)
{
    for (uint32_t k = 0; k < w->nsplits; k++) {
        struct exec_split *s = &w->splits[k];
        if (s->pc == pc && s->frame == w->frame && s->state == SPLIT_READY) {
            s->mask |= mask;
            return;
        }
    }
    uint32_t running = w->mask;
    w->mask = mask;
    store(w, pc, SPLIT_READY, 0);
    w->mask = running;
    w->frame->references++;
}

// Merges into the current split the splits at i in the same frame with the same state and wait.
static void merge(struct exec_warp *w, const struct exec_insn *i, enum split_state state, uint32_t wait)
{
    for (uint32_t k = 0; k < w->nsplits;) {
        struct exec_split *s = &w->splits[k];
        if (s->pc == i && s->frame == w->frame && s->state == state && s->wait == wait) {
            w->mask |= s->mask;
            w->frame->references--;
            drop(w, k);
        } else {
            k++;
        }
    }
}

static bool is_behind(const struct exec_split *s, const struct exec_frame *frame, const struct exec_insn *pc)
{
    if (s->frame->depth != frame->depth)
        return s->frame->depth > frame->depth;
    return s->pc < pc;
}

// Returns the index of the ready split that should run: the deepest with the lowest position, or, if
// w->oldest_first, the one that has waited longest; nsplits if none is ready.
static uint32_t choose(const struct exec_warp *w)
{
    uint32_t best = w->nsplits;
    for (uint32_t k = 0; k < w->nsplits; k++) {
        const struct exec_split *s = &w->splits[k], *b = &w->splits[best];
        if (s->state != SPLIT_READY)
            continue;
        if (best == w->nsplits || (w->oldest_first ? s->since < b->since : is_behind(s, b->frame, b->pc)))
            best = k;
    }
    return best;
}

const struct exec_insn *sched_join(struct exec_warp *w, const struct exec_insn *i)
{
    merge(w, i, SPLIT_READY, 0);
    if (w->oldest_first)
        return i + 1;
    uint32_t best = choose(w);
    if (best == w->nsplits || !is_behind(&w->splits[best], w->frame, i))
        return i + 1;
    store(w, i, SPLIT_READY, 0);
    // `store` appended a split, so `best` is still the same split.
    load(w, best);
    return w->pc;
}

const struct exec_insn *sched_yield_turn(struct exec_warp *w, const struct exec_insn *pc)
{
    w->turn++;
    w->fuel = SCHED_FUEL;
    store(w, pc, SPLIT_READY, 0);
    w->oldest_first = !w->oldest_first && w->nsplits > 1;
    load(w, choose(w));
    if (w->nsplits == 0)
        w->oldest_first = false;
    w->state = WARP_READY;
    return NULL;
}

// Releases splits whose missing members all wait at other warp collectives: those lanes could never arrive.
// Returns whether it released any.
static bool release(struct exec_warp *w)
{
    uint32_t waiting = 0;
    bool any = false;
    for (uint32_t k = 0; k < w->nsplits; k++)
        if (w->splits[k].state == SPLIT_CONVERGES)
            waiting |= w->splits[k].mask;
    for (uint32_t k = 0; k < w->nsplits; k++) {
        struct exec_split *s = &w->splits[k];
        if (s->state == SPLIT_CONVERGES && !(s->wait & w->alive & ~waiting)) {
            s->state = SPLIT_READY;
            s->wait = 1;
            any = true;
        }
    }
    return any;
}

const struct exec_insn *sched_next(struct exec_warp *w)
{
    if (w->nsplits == 0) {
        w->state = w->alive ? WARP_WAITS : WARP_DONE;
        w->mask = 0;
        return NULL;
    }
    uint32_t best = choose(w);
    if (best == w->nsplits && release(w))
        best = choose(w);
    if (best == w->nsplits) {
        w->state = WARP_WAITS;
        w->mask = 0;
        return NULL;
    }
    w->released = w->splits[best].wait;
    load(w, best);
    w->state = WARP_READY;
    return w->pc;
}

bool sched_can_run(const struct exec_warp *w)
{
    return choose(w) < w->nsplits;
}

const struct exec_insn *sched_wait(struct exec_warp *w, const struct exec_insn *i, enum split_state state,
                                   uint32_t wait)
{
    w->turn++;
    store(w, i, state, wait);
    return sched_next(w);
}

const struct exec_insn *sched_end(struct exec_warp *w, const struct exec_insn *i, uint32_t mask)
{
    w->alive &= ~mask;
    w->mask &= ~mask;
    w->block->ended += (uint32_t)__builtin_popcount(mask);
    const struct exec_insn *next = i + 1;
    if (!w->mask) {
        frame_release(w->block, w->frame);
        next = sched_next(w);
    }
    barrier_threads_ended(w->block);
    cluster_threads_ended(w, mask);
    return next;
}

bool sched_converge(struct exec_warp *w, const struct exec_insn *i, uint32_t members,
                    const struct exec_insn **next)
{
    if (w->released) {
        w->released = false;
        return true;
    }
    merge(w, i, SPLIT_CONVERGES, members);
    if (!(members & w->alive & ~w->mask))
        return true;
    *next = sched_wait(w, i, SPLIT_CONVERGES, members);
    return false;
}
