// SPDX-License-Identifier: MIT
// What --mode=count counts, and how the host reads it.
//
// A rewritten module has one table, the first symbol of the result. Each function of result->funcs has SLOTS
// lines of LINE counters, so that multiprocessors do not all add to one address:
//
//   table[function][slot][counter]      slot: the multiprocessor modulo SLOTS; a count is the sum over slots
//
// Each thread counts what it executes in registers, basic block by basic block: guarded accesses only where
// their guard holds. When it leaves a function, the lanes that leave together add up their counts, and one of
// them adds the sums to the table. A function that is called has a line of its own, as in a profile: its
// accesses are not in its callers' lines, and its `threads` are calls.
//
// An access counts once per thread, even where a warp makes it together, as for matrices. Atomics are a load
// and a store, and so are copies from memory to memory; a barrier in memory that they signal is one more of
// each. Parameters, constants, textures, surfaces and what wgmma reads by descriptors are not counted.
//
// A launch is counted when its first thread enters the kernel, whoever launched it: the host, a graph,
// another kernel. A thread that ends by a trap, or by an exit inside a function that it called, loses its
// callers' counts: `approximate` says where that exit is possible.
#ifndef MOAT_PASS_PASS_COUNT_H
#define MOAT_PASS_PASS_COUNT_H

#include <stdint.h>

enum pass_count_space {
    PASS_COUNT_GENERIC,
    PASS_COUNT_GLOBAL,
    PASS_COUNT_SHARED,
    PASS_COUNT_LOCAL,
    PASS_COUNT_SPACES
};
extern const char *const pass_count_spaces[PASS_COUNT_SPACES];

enum {
    PASS_COUNT_SLOTS = 8,
    PASS_COUNT_LINE = 20,                                 // counters; 2 + 4 * SPACES, and whole sectors
    PASS_COUNT_ROW = PASS_COUNT_SLOTS * PASS_COUNT_LINE,  // counters of a function
};

struct pass_count_sums {
    uint64_t launches, threads;  // launches: 0 for a function that is called
    struct {
        uint64_t loads, stores, loaded, stored;  // the last two in bytes
    } space[PASS_COUNT_SPACES];
};

// Adds the table's counts of a function, by its index in result->funcs, to *sums.
void pass_count_add(const uint64_t *table, uint32_t func, struct pass_count_sums *sums);

#endif
