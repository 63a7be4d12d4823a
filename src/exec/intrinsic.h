// SPDX-License-Identifier: MIT
// Functions that the system provides to kernels. They run in a frame of their own, where their parameters lie in local
// memory as those of any function. Internal to src/exec.
#ifndef MOAT_EXEC_INTRINSIC_H
#define MOAT_EXEC_INTRINSIC_H

#include "exec/access.h"
#include "exec/sched.h"

#define FOR_LANES(mask)                                                                       \
    for (uint32_t left_ = (mask), l = 0; left_ && (l = (uint32_t)__builtin_ctz(left_), true); \
         left_ &= left_ - 1)

static inline const struct exec_host *intrinsic_host(const struct exec_warp *w)
{
    return &w->frame->func->program->host;
}

// Parameters and results start at whole words, which lie in rows, lane beside lane.
static inline uint32_t *intrinsic_words(const struct exec_warp *w, const struct exec_place *p, unsigned lane)
{
    return (uint32_t *)w->local + (size_t)(w->frame->local_base + p->offset) / 4 * EXEC_LANES + lane;
}

static inline uint64_t intrinsic_argument(const struct exec_warp *w, unsigned n, unsigned lane)
{
    const struct exec_place *p = &w->frame->func->params[n];
    const uint32_t *word = intrinsic_words(w, p, lane);
    return p->size > 4 ? word[0] | (uint64_t)word[EXEC_LANES] << 32 : word[0];
}

// Of all lanes; of those that are not active, whatever is there.
static inline void intrinsic_arguments(const struct exec_warp *w, unsigned n, uint64_t values[EXEC_LANES])
{
    const struct exec_place *p = &w->frame->func->params[n];
    const uint32_t *word = intrinsic_words(w, p, 0);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        values[l] = word[l];
    for (unsigned l = 0; p->size > 4 && l < EXEC_LANES; l++)
        values[l] |= (uint64_t)word[EXEC_LANES + l] << 32;
}

static inline void intrinsic_give(struct exec_warp *w, unsigned lane, uint64_t value)
{
    const struct exec_place *p = &w->frame->func->rets[0];
    uint32_t *word = intrinsic_words(w, p, lane);
    word[0] = (uint32_t)value;
    if (p->size > 4)
        word[EXEC_LANES] = (uint32_t)(value >> 32);
}

static inline bool intrinsic_has_signature(const struct exec_warp *w, unsigned nparams, unsigned nrets)
{
    return w->frame->func->nparams == nparams && w->frame->func->nrets == nrets;
}

// The accesses of these functions are generic.
static const struct exec_insn intrinsic_generic = {.flags = ACCESS_GENERIC << ACCESS_SPACE_SHIFT};

// Those by which kernels launch others (intrinsic_launch.c); NULL if it is none of them.
exec_fn *intrinsic_launch_find(struct str name);

#endif
