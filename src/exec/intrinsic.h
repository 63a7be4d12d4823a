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

// --- the device runtime: what kernels may call of it ----------------------------------------------------------

static inline const struct exec_launch *intrinsic_launch(const struct exec_warp *w)
{
    return &w->block->grid->launch;
}

// Errors are a grid's, not a thread's: cudaGetLastError in a kernel tells the last of any of its threads.
static inline void intrinsic_give_error(struct exec_warp *w, unsigned lane, int error)
{
    // Relaxed: a number that stands for itself.
    if (error)
        atomic_store_explicit(&w->block->grid->child_error, error, memory_order_relaxed);
    intrinsic_give(w, lane, (uint64_t)(uint32_t)error);
}

// Writes a result through the pointer that is the first argument. False: w has faulted.
static inline bool intrinsic_put(struct exec_warp *w, unsigned lane, const void *value, unsigned size)
{
    return access_write(w, &intrinsic_generic, lane, intrinsic_argument(w, 0, lane), value, size);
}

// The kernel whose address an argument is; NULL if it is no kernel's.
static inline const struct exec_kernel *intrinsic_kernel(const struct exec_warp *w, unsigned n, unsigned lane)
{
    const struct exec_func *f = code_find(intrinsic_argument(w, n, lane));
    return f ? f->kernel : NULL;
}

enum { INTRINSIC_INVALID_VALUE = 1 };

// Names of the device runtime, behind what they all begin with.
struct intrinsic_row {
    struct str name;
    exec_fn *fn;
};
#define INTRINSIC_ROW(call, fn)                  \
    {                                            \
        {"__cudaCDP2" call, sizeof call + 9}, fn \
    }

// Those by which kernels launch others (intrinsic_launch.c), and by which they ask (intrinsic_query.c); NULL if it is none
// of them.
exec_fn *intrinsic_launch_find(struct str name);
exec_fn *intrinsic_query_find(struct str name);

#endif
