// SPDX-License-Identifier: MIT
// What kernels did and how long they took, if the user asked: --stats counts, --times only looks at the clock.
//
// A launch that is measured has a struct kernel_stats_launch; NULL stands for one that is not, and all of these take
// it, so that a launch costs one test when nothing was asked for.
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
    struct grid_clock began;  // wall == 0: it has not
    size_t kernel;            // row of the table
    bool counts;
};

// The sums of a kernel's launches that have ended.
struct kernel_stats {
    char *name;
    uint64_t launches;
    struct grid_clock
        time;  // from a grid's first block to its end; cpu: what all of the process took meanwhile
    struct exec_stats counters;
};

// Also NULL when out of memory: then the table lacks the launch.
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

// Its grid has ended, or was never started; l is gone.
void kernel_stats_end(struct kernel_stats_launch *l);

// The table of what has ended since the last one, to standard error; nothing if that is nothing. Called where a
// context ends and at exit.
void kernel_stats_print(void);
void kernel_stats_table(const struct kernel_stats *rows, size_t n, struct out *o);

#endif
