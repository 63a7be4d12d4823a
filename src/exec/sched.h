// SPDX-License-Identifier: MIT
// Which lanes run: splits, frames, barriers, faults. Internal to src/exec.
//
// Blocks of a function are laid out so that a join lies after all blocks that lead to it without a cycle, and
// the code after a loop lies after the loop (order.c). The split with the lowest position runs first, callees
// before callers; so lanes that diverge reconverge no later than at the branch's post-dominator. A split that
// has used up its fuel yields to the one that has waited longest, so that lanes, warps and blocks that wait
// for one another make progress.
#ifndef MOAT_EXEC_SCHED_H
#define MOAT_EXEC_SCHED_H

#include <stdatomic.h>

#include "exec/exec.h"
#include "exec/exec_program.h"
#include "exec/warp.h"

enum {
    SCHED_FUEL = 2048,   // of a turn; each backward jump takes some
    SCHED_STEP = 1,      // fuel of a backward jump
    SCHED_SPIN = 128,    // the same in a loop that only waits for others
    SCHED_LOCK = 16,     // the same in a loop that may wait, and stores or is long
    SCHED_STRETCH = 64,  // a backward jump takes one more for each so many instructions that it spans
};

// Splits the current split: its lanes in `mask` are to continue at pc later.
void sched_push(struct exec_warp *w, const struct exec_insn *pc, uint32_t mask);

// The current split arrives at i, where other splits may join it. Returns what to execute next.
const struct exec_insn *sched_join(struct exec_warp *w, const struct exec_insn *i);

// The current split has no fuel left and is to continue at pc later. Always returns NULL: the warp
// gives up its turn.
const struct exec_insn *sched_yield_turn(struct exec_warp *w, const struct exec_insn *pc);

// The current split no longer exists. Returns the next split's instruction, or NULL if none can run.
const struct exec_insn *sched_next(struct exec_warp *w);

// The current split waits at i in that state. Returns what to execute next, or NULL.
const struct exec_insn *sched_wait(struct exec_warp *w, const struct exec_insn *i, enum split_state state,
                                   uint32_t wait);

// Ends the lanes of mask, which belong to the current split. Returns what to execute next, or NULL.
const struct exec_insn *sched_end(struct exec_warp *w, const struct exec_insn *i, uint32_t mask);

bool sched_can_run(const struct exec_warp *w);  // one of its splits is ready

// Returns true if all live lanes of `members` have arrived at i: in this split, or in splits that were
// waiting there and join it now. Otherwise returns false, and *next is what to execute instead.
bool sched_converge(struct exec_warp *w, const struct exec_insn *i, uint32_t members,
                    const struct exec_insn **next);

// --- frames (frame.c) --------------------------------------------------------------------------------------

struct exec_frame *frame_new(struct exec_block *b, const struct exec_func *f);  // NULL when out of memory
void frame_release(struct exec_block *b, struct exec_frame *frame);             // drops one reference
void frame_free_all(struct exec_block *b);
static inline void frame_enter(struct exec_warp *w, struct exec_frame *frame)
{
    w->frame = frame;
    w->regs = frame->regs;
}

// --- barriers (barrier.c) ----------------------------------------------------------------------------------

void barrier_threads_ended(struct exec_block *b);  // fewer threads are expected

// --- faults (fault.c) --------------------------------------------------------------------------------------

// Record a fault, which ends the grid. They return NULL, for the instruction to return.
const struct exec_insn *fault_raise(struct exec_warp *w, const struct exec_insn *i,
                                    enum exec_fault_kind kind);
const struct exec_insn *fault_memory(struct exec_warp *w, const struct exec_insn *i,
                                     enum exec_fault_kind kind, unsigned lane, uint64_t address,
                                     uint32_t size, bool write, const char *space);

// Reports an access that is skipped. Returns false if the grid does not skip: the access is then a fault.
bool fault_skip(struct exec_warp *w, const struct exec_insn *i, enum exec_fault_kind kind, unsigned lane,
                uint64_t address, uint32_t size, bool write, const char *space);

// --- grids (grid.c) ----------------------------------------------------------------------------------------

enum grid_stop { GRID_RUNS, GRID_FAULTING, GRID_STOPPED };

// Blocks [next, end), which one thread starts one after the other: neighbouring blocks touch the same cache
// lines.
struct grid_run {
    uint64_t next, end;
};
enum { GRID_RUNS_MOST = 16 };
enum { GRID_SKIPPED = 64 };  // instructions of a grid that are reported

struct exec_grid {
    struct exec_launch launch;
    struct exec_stats *stats;
    const struct exec_func *func;
    const char *params;  // as a host address
    uint32_t nthreads, nwarps, local_size;
    uint32_t shared_size, dynamic_base;  // all of it; where dynamic shared memory starts
    uint32_t cluster[3], cluster_size;   // in blocks; 1 without clusters
    uint32_t nclusters[3];
    uint64_t nblocks;  // here and below, a cluster counts as one block
    _Atomic int stop;  // enum grid_stop: set by the first fault
    struct exec_fault fault;
    // GRID_SKIPPED instructions that were reported; NULL: the grid skips nothing
    _Atomic(const struct exec_insn *) *skipped;
    _Atomic int child_error;  // of the last child launch that failed in any of its threads; 0: none failed
    // The members below are protected by lock.
    _Alignas(64) _Atomic int lock;
    uint64_t started, ended;  // started: handed to a thread, maybe in a run that it has not finished
    uint32_t resident, running;
    bool spun;              // a block gave up its turn since the last start
    uint32_t turns;         // turns that blocks were given since the last start or end
    bool suspends;          // some blocks could not end at once: no more runs are handed out
    uint32_t nruns, nleft;  // runs that threads hold; leftover parts of runs in left[]
    struct grid_run left[GRID_RUNS_MOST];
    struct exec_block *suspended, **suspended_end;  // a FIFO queue
    struct exec_block *free;
    // These could not start for lack of memory; a block that ends takes over their number.
    struct exec_block *starved;
};

struct exec_runner {
    uint32_t number;
};

#endif
