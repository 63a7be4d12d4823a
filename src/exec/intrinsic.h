// SPDX-License-Identifier: MIT
// Functions that the system provides to kernels. Each runs in a frame of its own, with its parameters in
// local memory like those of any function. Internal to src/exec.
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

// Returns a lane's first word of a parameter or result. They start at whole words, which lie in rows, lane
// beside lane.
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

// Reads argument n of all lanes; those of inactive lanes are undefined.
static inline void intrinsic_arguments(const struct exec_warp *w, unsigned n, uint64_t values[EXEC_LANES])
{
    const struct exec_place *p = &w->frame->func->params[n];
    const uint32_t *word = intrinsic_words(w, p, 0);
    for (unsigned l = 0; l < EXEC_LANES; l++)
        values[l] = word[l];
    for (unsigned l = 0; p->size > 4 && l < EXEC_LANES; l++)
        values[l] |= (uint64_t)word[EXEC_LANES + l] << 32;
}

static inline void intrinsic_return(struct exec_warp *w, unsigned lane, uint64_t value)
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

// Accesses of these functions are generic.
static const struct exec_insn intrinsic_generic = {.flags = ACCESS_GENERIC << ACCESS_SPACE_SHIFT};

// --- the device runtime's functions that kernels may call --------------------------------------------------

static inline const struct exec_launch *intrinsic_launch(const struct exec_warp *w)
{
    return &w->block->grid->launch;
}

// Returns an error from a lane's call. Errors belong to the grid, not to the thread: cudaGetLastError in a
// kernel returns the last error of any of its threads.
static inline void intrinsic_return_error(struct exec_warp *w, unsigned lane, int error)
{
    // Relaxed: the number does not publish other data.
    if (error)
        atomic_store_explicit(&w->block->grid->child_error, error, memory_order_relaxed);
    intrinsic_return(w, lane, (uint64_t)(uint32_t)error);
}

// Writes a result through the pointer in argument 0. Returns false after a fault of w.
static inline bool intrinsic_put(struct exec_warp *w, unsigned lane, const void *value, unsigned size)
{
    return access_write(w, &intrinsic_generic, lane, intrinsic_argument(w, 0, lane), value, size);
}

// Returns the kernel whose address argument n holds; NULL if that is no kernel.
static inline const struct exec_kernel *intrinsic_kernel(const struct exec_warp *w, unsigned n, unsigned lane)
{
    const struct exec_func *f = code_find(intrinsic_argument(w, n, lane));
    return f ? f->kernel : NULL;
}

enum { INTRINSIC_INVALID_VALUE = 1 };

// Names of the device runtime's functions; INTRINSIC_ROW adds their common prefix.
struct intrinsic_row {
    struct str name;
    exec_fn *fn;
};
#define INTRINSIC_ROW(call, fn)                  \
    {                                            \
        {"__cudaCDP2" call, sizeof call + 9}, fn \
    }

// Look up the functions that launch kernels (intrinsic_launch.c) and the queries (intrinsic_query.c); NULL if
// the name is not among them.
exec_fn *intrinsic_launch_find(struct str name);
exec_fn *intrinsic_query_find(struct str name);

#endif
