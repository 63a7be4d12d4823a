// SPDX-License-Identifier: MIT
// Statistics of kernels, if the user asked for them: --stats counts and measures time, --times only measures
// time.
//
// A launch that is measured has a struct kernel_stats_launch. NULL stands for a launch that is not; all
// functions accept it, so that a launch costs one test when nothing is measured.
#ifndef MOAT_CPU_KERNEL_STATS_H
#define MOAT_CPU_KERNEL_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "base/str.h"
#include "cpu/cpu.h"

struct kernel_stats_launch {
    struct exec_stats counters;
    struct grid_clock began;  // wall == 0: not yet
    size_t kernel;            // row of the table
    bool counts;
};

// Sums over a kernel's launches that have ended.
struct kernel_stats {
    char *name;
    uint64_t launches;
    // From a grid's first block to its end; cpu: CPU time of the whole process meanwhile.
    struct grid_clock time;
    struct exec_stats counters;
};

// Returns NULL if nothing is measured, and if out of memory: the table lacks the launch then.
struct kernel_stats_launch *kernel_stats_begin(struct str kernel);

// For exec_grid_new and stream_push_grid.
static inline struct exec_stats *kernel_stats_counters(struct kernel_stats_launch *l)
{
    return l && l->counts ? &l->counters : NULL;
}
static inline struct grid_clock *kernel_stats_clock(struct kernel_stats_launch *l)
{
    return l ? &l->began : NULL;
}

// Ends a launch, after its grid has ended or was dropped, and frees l.
void kernel_stats_end(struct kernel_stats_launch *l);

// Prints the table of launches that have ended since the last table, to standard error; prints nothing if
// there were none. Called where a context ends and at exit.
void kernel_stats_print(void);
void kernel_stats_table(const struct kernel_stats *rows, size_t n, struct out *o);

#endif
