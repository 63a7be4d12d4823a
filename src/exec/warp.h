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
// Slots are 64-byte aligned (predicates 4). Two operands of an instruction are the same slot or do not
// overlap. Constants are slots like any other, filled when a frame is created and never written.
//
// A split is the set of a warp's lanes that are at the same instruction. One split runs; the others are in
// splits[]. sched.c chooses which one runs.
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

// Executes one instruction for the lanes of w->mask, which is never 0, and does not change other lanes'
// registers. Returns the next instruction, usually i + 1, or NULL to leave the warp (w->state says why).
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
//   references == splits in it + frames called from it
struct exec_frame {
    const struct exec_func *func;
    struct exec_frame *caller;
    const struct exec_insn *call;  // the call instruction, in the caller
    char *regs;
    uint32_t depth;
    uint32_t local_base, local_top;  // its part of local memory; alloca moves the top
    uint32_t references;
    struct exec_frame *next_free;
    struct exec_frame *next_in_block;
};

enum split_state {
    SPLIT_READY,
    SPLIT_CONVERGES,  // at a warp collective, for the lanes in `wait`
    SPLIT_BARRIER,    // at barrier number `wait`
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
    WARP_WAITS,  // no split can run until a barrier opens
    WARP_DONE,
    WARP_FAULT,  // the grid's fault is set
};

// The members that instructions use most come first.
struct exec_warp {
    uint32_t mask;   // lanes that execute now
    uint32_t carry;  // the condition code of add.cc and its relatives, a bit per lane
    char *regs;      // registers of the current frame
    struct exec_frame *frame;
    struct exec_block *block;
    char *local;  // local memory: word n of lane l at local + n * 128 + l * 4
    uint32_t nsplits;
    int32_t fuel;                // left of its turn
    const struct exec_insn *pc;  // where it continues; valid while it does not run
    uint32_t alive;              // lanes that have not ended
    uint32_t index;              // in its block
    uint8_t state;               // enum warp_state
    bool spins;                  // it gave up its turn in a loop that only waits
    bool oldest_first;           // the oldest split runs next, wherever it is
    bool released;               // the current split need not wait for others at its warp collective
    uint32_t arrived;            // lanes that have arrived at barrier.cluster in its current phase
    uint64_t turn;
    struct exec_split splits[EXEC_LANES];
    uint32_t tid[3][EXEC_LANES];
};

struct exec_barrier {
    uint32_t arrived;        // threads
    uint32_t expected;       // 0: all of the block
    uint32_t sum, any, all;  // reductions of bar.red's predicates
};

struct exec_block {
    struct exec_grid *grid;
    struct exec_runner *runner;  // the runner that ran it last
    struct exec_cluster *cluster;
    uint32_t rank;  // in its cluster
    char *shared;
    uint32_t shared_base;  // address of its shared memory in the window: cluster.h
    uint32_t shared_size;
    uint64_t number;  // in its grid
    uint32_t ctaid[3];
    uint32_t nwarps, nthreads;
    uint32_t ready;  // warps that can run, a bit each
    uint32_t ended;  // threads that have ended
    struct exec_barrier barriers[EXEC_BARRIERS];
    struct exec_frame **free_frames;  // per function; their constants are filled in
    struct exec_frame *frames;        // all frames created for it
    uint32_t frame_memory;            // their bytes
    struct exec_block *next;
    struct exec_warp *warps;
};

#endif
