// SPDX-License-Identifier: MIT
// Operations that wait for one another, and the threads that run them.
//
//   made, depends on others ── submitted ── ready: all of those have ended ── running ── done
//
//   waits     operations it depends on that have not ended, plus one until it is submitted
//   refs      one of the pool until it is done, plus those of later readers (a stream's tail, an event)
//   users     threads inside a grid; a grid ends once, when the engine reports it done and users == 0
//   children  operations that it launched and that have not ended: it is not done before they are. The ntail
//             children in the list `tail` have not begun: they begin when only they are left
//
// One lock guards the operations and the queues. The work itself, the engine and the application run without
// it.
#ifndef MOAT_CPU_POOL_H
#define MOAT_CPU_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cpu/cpu.h"

enum pool_kind {
    POOL_MARK,      // no work: ends when it is ready
    POOL_WORK,      // a function
    POOL_CALLBACK,  // a function that may block
    POOL_GRID,      // any number of threads run blocks of it
    POOL_POLL,      // a function that one thread at a time calls again and again until it returns true
};

struct pool_op;

struct pool_edge {
    struct pool_op *waiter;
    struct pool_edge *next;  // in the list of followers
};

enum { POOL_EDGES = 4 };

typedef bool pool_poll(void *arg);

struct pool_op {
    enum pool_kind kind;
    bool timed;     // record the time when it ends
    bool dropped;   // a grid that was never started, because the context was in error
    bool over;      // a grid: the engine is done with it
    bool slept_on;  // a host thread sleeps until it is done
    atomic_bool done;
    unsigned refs, waits, users;
    // Of a grid: steps in a row that only waited, and the number of them after which all blocks are taken to
    // be waiting. Relaxed: hints.
    atomic_uint spins, patience;
    uint64_t turn;                // running grids: their order of beginning
    uint64_t time;                // ns, monotonic; valid once done
    struct pool_op *next, *prev;  // in a queue
    struct pool_edge *followers;
    struct pool_op *parent, *begin;    // begin: the operation to submit when the parent's tail begins
    struct pool_op *tail, *tail_last;  // linked by next
    unsigned children, ntail;
    bool awaits_children;  // done, except for its children
    struct CUctx_st *ctx;
    struct CUstream_st *stream;  // NULL: in no stream
    // Called with the lock held when the operation ends; may be NULL.
    void (*ended)(struct pool_op *op);
    union {
        stream_fn *fn;
        grid_done_fn *grid_done;
        pool_poll *poll;
    };
    stream_fn *release;  // POOL_POLL: called at its end; run is false if the context is in error
    void *arg;
    struct exec_grid *grid;
    struct grid_clock *began;  // a grid: receives the time of its first block; may be NULL
    unsigned nedges, room;
    struct pool_edge *edges;
    struct pool_edge few[POOL_EDGES];
};

// Makes an operation whose only reference is the pool's. Returns NULL if out of memory.
struct pool_op *pool_op_new(enum pool_kind kind, struct CUctx_st *ctx);
// Makes room for n dependencies in all, before the operation is submitted. Returns 0 or -ENOMEM.
int pool_op_room(struct pool_op *op, unsigned n);
void pool_op_discard(struct pool_op *op);  // frees an operation that was never submitted

void pool_lock(void);
void pool_unlock(void);  // also wakes the threads that newly ready work needs

// The lock must be held for these.
void pool_depend(struct pool_op *op, struct pool_op *on);  // on may be NULL or done
void pool_submit(struct pool_op *op);
// Makes op, which is not ready yet, a child of `parent`, which is not done. begin: NULL, or the operation
// that is submitted when all children of the parent outside its tail have ended; op must not become ready
// before that.
void pool_adopt(struct pool_op *parent, struct pool_op *op, struct pool_op *begin);
static inline void pool_keep(struct pool_op *op)
{
    op->refs++;
}
void pool_release(struct pool_op *op);  // NULL is fine

// Returns whether the operation is done. Pairs with the store in finish: the effects of the operation are
// visible to a caller that sees it done.
static inline bool pool_done(const struct pool_op *op)
{
    return atomic_load_explicit(&op->done, memory_order_acquire);
}

// Waits for an operation that the caller has a reference to, running others meanwhile. The lock must not be
// held.
void pool_wait(struct pool_op *op);

// Puts the context into error and cancels all its running grids. The lock must not be held.
void pool_fail(struct CUctx_st *ctx, const struct exec_fault *fault);

// Between the two calls no operation runs: kernels stop between two of their steps. Callbacks may run. Only
// one thread at a time may pause the pool, and none of the pool's own; it must not wait for an operation
// meanwhile.
void pool_pause(void);
void pool_resume(void);

// Starts the callback thread, before the first POOL_CALLBACK is submitted. Returns 0 or a negative errno.
int pool_start_callbacks(void);
bool pool_in_callback(void);  // whether the calling thread is the callback thread

// Limits the threads that run work at the same time to n; 0: one for each processor that the process may use.
void pool_limit(unsigned n);
unsigned pool_width(void);

// State of the threads, for tests that cannot use a clock.
struct pool_counts {
    unsigned running;  // threads that took work and have not looked for more since
    uint64_t naps;     // sleeps of threads because all blocks only waited
};
struct pool_counts pool_counts(void);

#endif
