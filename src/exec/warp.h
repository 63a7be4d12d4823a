// SPDX-License-Identifier: MIT
// Warps, blocks and the decoded form of PTX that they run. Internal to src/exec.
//
// A register is an array of 32 lanes, at a byte offset in the registers of the running function's frame:
//
//   PTX type                slot
//   .pred                   uint32_t, one bit per lane
//   8 and 16 bits           uint16_t[32]; 8-bit values are kept extended by their signedness
//   32 bits                 uint32_t[32] or float[32]
//   64 bits                 uint64_t[32] or double[32]
//   128 bits                uint64_t[32] low halves, uint64_t[32] high halves
//
// Slots are 64-byte aligned (predicates 4). Two operands of an instruction are the same slot or do not overlap.
// Constants are slots like any other, filled when a frame is made and never written.
//
// The lanes of a warp that are at the same place make a split. One split runs; the others are in splits[].
// Which one runs is the business of sched.c.
#ifndef MOAT_EXEC_WARP_H
#define MOAT_EXEC_WARP_H

#include <stdbool.h>
#include <stdint.h>

enum { EXEC_LANES = 32, EXEC_MOST_WARPS = 32, EXEC_BARRIERS = 16 };
#define EXEC_ALL UINT32_MAX  // every lane

struct exec_warp;
struct exec_insn;
struct exec_frame;
struct exec_block;
struct exec_func;

// Executes one instruction for the lanes of w->mask, which is never 0, and leaves other lanes' registers as they
// are. Returns what to execute next, usually i + 1; NULL to leave the warp (w->state says why).
typedef const struct exec_insn *exec_fn(struct exec_warp *w, const struct exec_insn *i);

struct exec_insn {
    exec_fn *fn;
    uint32_t d, a, b, c, e;  // slots
    uint32_t flags;
    union {
        uint64_t imm;
        struct {
            uint32_t lo, hi;
        };
        const void *ptr;
        const struct exec_insn *target;
    };
};

// One activation of a function, by the lanes that made the call together.
//   references == splits in it, and frames called from it
struct exec_frame {
    const struct exec_func *func;
    struct exec_frame *caller;
    const struct exec_insn *call;  // in the caller
    char *regs;
    uint32_t depth;
    uint32_t local_base, local_top;  // its part of local memory; alloca moves the top
    uint32_t references;
    struct exec_frame *next_free;
    struct exec_frame *next_in_block;
};

enum split_state {
    SPLIT_READY,
    SPLIT_MEETS,    // at a warp instruction, for the lanes in `wait`
    SPLIT_BARRIER,  // at barrier number `wait`
};

struct exec_split {
    const struct exec_insn *pc;
    struct exec_frame *frame;
    uint32_t mask;
    uint32_t wait;
    uint64_t since;  // w->turn when it last ran
    uint8_t state;   // enum split_state
};

enum warp_state {
    WARP_READY,
    WARP_WAITS,  // no split can run before a barrier opens
    WARP_DONE,
    WARP_FAULT,  // the grid's fault is set
};

// The part of a warp that lanes need comes first.
struct exec_warp {
    uint32_t mask;   // lanes that execute now
    uint32_t carry;  // the condition code of add.cc and its relatives, a bit per lane
    char *regs;      // of the current frame
    struct exec_frame *frame;
    struct exec_block *block;
    char *local;  // local memory: word n of lane l at local + n * 128 + l * 4
    uint32_t nsplits;
    int32_t fuel;                // what is left of its turn
    const struct exec_insn *pc;  // while it does not run
    uint32_t alive;              // lanes that have not ended
    uint32_t index;              // in its block
    uint8_t state;               // enum warp_state
    bool spins;                  // it gave up its turn in a loop that only waits
    bool alternate;              // the oldest split has the turn, wherever it is
    bool released;               // the current split need not meet others at its warp instruction
    uint32_t arrived;            // lanes that have arrived at barrier.cluster, in its present phase
    uint64_t turn;
    struct exec_split splits[EXEC_LANES];
    uint32_t tid[3][EXEC_LANES];
};

struct exec_barrier {
    uint32_t arrived;        // threads
    uint32_t expected;       // 0: all of the block
    uint32_t sum, any, all;  // of the predicates of bar.red
};

struct exec_block {
    struct exec_grid *grid;
    struct exec_runner *runner;  // that ran it last
    struct exec_cluster *cluster;
    uint32_t rank;  // in its cluster
    char *shared;
    uint32_t shared_size;
    uint64_t number;  // in its grid
    uint32_t ctaid[3];
    uint32_t nwarps, nthreads;
    uint32_t ready;  // warps that can run, a bit each
    uint32_t ended;  // threads that have
    struct exec_barrier barriers[EXEC_BARRIERS];
    struct exec_frame **free_frames;  // by function, constants already in place
    struct exec_frame *frames;        // all that were made for it
    uint32_t frame_memory;            // their bytes
    struct exec_block *next;
    struct exec_warp *warps;
};

#endif
