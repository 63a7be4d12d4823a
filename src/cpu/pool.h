// SPDX-License-Identifier: MIT
// Operations that wait for one another, and the threads that run them.
//
//   made, depends on others ── submitted ── ready: all of those have ended ── running ── done
//
//   waits     operations it depends on that have not ended, one more until it is submitted
//   refs      one of the pool until it is done, others of who looks at it later (a stream's end, an event)
//   users     threads inside a grid; a grid ends once, when the engine says so and users == 0
//   children  operations that were launched by it and have not ended: it is not done before they are. Those of the list
//             `tail`, ntail of them, are not begun yet: their turn comes when only they are left
//
// One lock for the graph and the queues: the work itself, the engine and the application run without it.
#ifndef MOAT_CPU_POOL_H
#define MOAT_CPU_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpu/cpu.h"

enum pool_kind {
    POOL_MARK,      // nothing to do: ends when it is ready
    POOL_WORK,      // a function
    POOL_CALLBACK,  // a function that may block
    POOL_GRID,      // any number of threads run blocks of it
    POOL_POLL,      // a function that is asked again and again, by one thread at a time, until it says true
};

struct pool_op;

struct pool_edge {
    struct pool_op *waiter;
    struct pool_edge *next;  // of what is waited for
};

enum { POOL_EDGES = 4 };

typedef bool pool_poll(void *arg);

struct pool_op {
    enum pool_kind kind;
    bool timed;     // note the time when it ends
    bool dropped;   // a grid that was never started, because the context was in error
    bool over;      // a grid: the engine is through
    bool slept_on;  // a host thread sleeps until it is done
    atomic_bool done;
    unsigned refs, waits, users;
    // A grid: steps in a row that only waited, and how many of them mean that all its blocks do. Relaxed:
    // hints.
    atomic_uint spins, patience;
    uint64_t turn;                // of running grids: in which order they began
    uint64_t time;                // ns, monotonic; valid once done
    struct pool_op *next, *prev;  // in a queue
    struct pool_edge *followers;
    struct pool_op *parent, *begin;    // begin: of one in its parent's tail
    struct pool_op *tail, *tail_last;  // linked by next
    unsigned children, ntail;
    bool lingers;  // done but for its children
    struct CUctx_st *ctx;
    struct CUstream_st *stream;  // NULL: of none
    // Called with the lock held when it ends; may be NULL.
    void (*ended)(struct pool_op *op);
    union {
        stream_fn *fn;
        grid_done_fn *grid_done;
        pool_poll *poll;
    };
    stream_fn *release;  // of POOL_POLL: called at its end, run says whether poll did
    void *arg;
    struct exec_grid *grid;
    struct grid_clock *began;  // of a grid: where to note when it does, or NULL
    unsigned nedges, room;
    struct pool_edge *edges;
    struct pool_edge few[POOL_EDGES];
};

// NULL when out of memory. The pool's reference is the only one.
struct pool_op *pool_op_new(enum pool_kind kind, struct CUctx_st *ctx);
// Room for n dependencies in all. Before it is submitted; 0 or -ENOMEM.
int pool_op_room(struct pool_op *op, unsigned n);
void pool_op_discard(struct pool_op *op);  // one that was never submitted

void pool_lock(void);
void pool_unlock(void);  // and wakes whom the work that became ready needs

// All of these with the lock held.
void pool_depend(struct pool_op *op, struct pool_op *on);  // on may be NULL or done
void pool_submit(struct pool_op *op);
// op, which is not ready yet, is a child of `parent`, which is not done. begin: that operation is submitted, so that op can
// be ready, when all other children of the parent have ended; or NULL.
void pool_adopt(struct pool_op *parent, struct pool_op *op, struct pool_op *begin);
static inline void pool_keep(struct pool_op *op)
{
    op->refs++;
}
void pool_release(struct pool_op *op);  // NULL is fine

// Pairs with the store when it ends: what the operation did is visible to who sees it done.
static inline bool pool_done(const struct pool_op *op)
{
    return atomic_load_explicit(&op->done, memory_order_acquire);
}

// Waits for an operation that the caller keeps, running others meanwhile. Without the lock.
void pool_wait(struct pool_op *op);

// The context is in error from now on, and all its grids that run are told to end. Without the lock.
void pool_fail(struct CUctx_st *ctx, const struct exec_fault *fault);

// Between the two no operation runs: kernels stand still between two of their steps. Callbacks may run. For one thread at
// a time, none of the pool's; it may not wait for an operation meanwhile.
void pool_pause(void);
void pool_resume(void);

// The callback thread, before the first POOL_CALLBACK is submitted. 0 or a negative errno.
int pool_start_callbacks(void);
bool pool_in_callback(void);  // whether the calling thread is that one

// At most n threads run work at the same time; 0: one for each processor that the process may use.
void pool_limit(unsigned n);
unsigned pool_width(void);

// For tests: what can be seen of the threads where no clock may be asked.
struct pool_counts {
    unsigned running;  // threads that have begun with work and not looked for more since
    uint64_t naps;     // a thread slept for a moment because all blocks only waited
};
struct pool_counts pool_counts(void);

#endif
