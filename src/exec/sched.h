// SPDX-License-Identifier: MIT
// Which lanes run: splits, frames, barriers, faults. Internal to src/exec.
//
// Blocks of a function are laid out so that a join lies behind everything that leads to it without a cycle, and
// what follows a loop behind the loop (order.c). The split that is furthest behind runs, callees before callers;
// so lanes that part meet again no later than at the post-dominator of the branch. A split that uses up its fuel
// hands the turn to the one that has waited longest, so that lanes, warps and blocks that wait for one another
// get on.
#ifndef MOAT_EXEC_SCHED_H
#define MOAT_EXEC_SCHED_H

#include <stdatomic.h>

#include "exec/exec.h"
#include "exec/exec_program.h"
#include "exec/warp.h"

enum {
    SCHED_FUEL = 2048,   // of a turn; each jump back takes some
    SCHED_STEP = 1,      // a jump back
    SCHED_SPIN = 128,    // a jump back in a loop that only waits for others
    SCHED_LOCK = 16,     // in a loop with a compare-and-swap or an exchange
    SCHED_STRETCH = 64,  // instructions that a jump back may go over before it takes more
};

// The current split parts: `mask` of it goes on at pc later.
void sched_push(struct exec_warp *w, const struct exec_insn *pc, uint32_t mask);

// The current split arrives at i, where others may meet it. What to execute.
const struct exec_insn *sched_join(struct exec_warp *w, const struct exec_insn *i);

// The current split has no fuel left and goes on at pc some time. NULL: the warp gives up its turn.
const struct exec_insn *sched_yield_turn(struct exec_warp *w, const struct exec_insn *pc);

// The current split is gone: the next one, or NULL.
const struct exec_insn *sched_next(struct exec_warp *w);

// The current split waits at i with that state.
const struct exec_insn *sched_wait(struct exec_warp *w, const struct exec_insn *i, enum split_state state,
                                   uint32_t wait);

// The lanes of mask, all of the current split's, end.
const struct exec_insn *sched_end(struct exec_warp *w, const struct exec_insn *i, uint32_t mask);

bool sched_can_run(const struct exec_warp *w);  // a split of it is ready

// All lanes of `members` that are alive have come to i, in this split or in ones that were waiting there and join
// it now. If not: false, and *next is what to execute instead.
bool sched_meet(struct exec_warp *w, const struct exec_insn *i, uint32_t members,
                const struct exec_insn **next);

// --- frames (frame.c) -----------------------------------------------------------------------------------------

struct exec_frame *frame_new(struct exec_block *b, const struct exec_func *f);  // NULL when out of memory
void frame_release(struct exec_block *b, struct exec_frame *frame);             // one reference less
void frame_free_all(struct exec_block *b);
static inline void frame_enter(struct exec_warp *w, struct exec_frame *frame)
{
    w->frame = frame;
    w->regs = frame->regs;
}

// --- barriers (barrier.c) -------------------------------------------------------------------------------------

void barrier_threads_ended(struct exec_block *b);  // fewer threads to wait for

// --- faults (fault.c) -----------------------------------------------------------------------------------------

// Ends the grid. Returns NULL for an instruction to return.
const struct exec_insn *fault_raise(struct exec_warp *w, const struct exec_insn *i,
                                    enum exec_fault_kind kind);
const struct exec_insn *fault_memory(struct exec_warp *w, const struct exec_insn *i,
                                     enum exec_fault_kind kind, unsigned lane, uint64_t address,
                                     uint32_t size, bool write, const char *space);

// --- grids (grid.c) ---------------------------------------------------------------------------------------------

enum grid_stop { GRID_RUNS, GRID_FAULTING, GRID_STOPPED };

// Blocks [next, end), which one thread starts one after the other: neighbours touch the same cache lines.
struct grid_run {
    uint64_t next, end;
};
enum { GRID_RUNS_MOST = 16 };

struct exec_grid {
    struct exec_launch launch;
    struct exec_stats *stats;
    const struct exec_func *func;
    const char *params;  // as the host sees them
    uint32_t nthreads, nwarps, local_size;
    uint32_t shared_size, dynamic_base;  // all of it, and where what the launch asks for starts
    uint32_t cluster[3], cluster_size;   // in blocks; 1 without clusters
    uint32_t nclusters[3];
    uint64_t nblocks;  // those of a cluster count as one, here and below
    _Atomic int stop;  // enum grid_stop: set by the first fault
    struct exec_fault fault;
    _Atomic int child_error;  // of the last launch that one of its threads tried; 0: none failed
    // under lock
    _Alignas(64) _Atomic int lock;
    uint64_t started, ended;  // started: given to a thread, maybe in a run that it has not come to the end of
    uint32_t resident, running;
    bool spun;              // a block gave up its turn since one was started
    uint32_t turns;         // that blocks were given since one was started or ended
    bool suspends;          // some could not end at once: no more runs are given out
    uint32_t nruns, nleft;  // runs in threads' hands, and what was left of some
    struct grid_run left[GRID_RUNS_MOST];
    struct exec_block *suspended, **suspended_end;  // first in, first out
    struct exec_block *free;
    struct exec_block
        *starved;  // their start failed for want of memory: another that ends takes their number
};

struct exec_runner {
    uint32_t number;
};

#endif
