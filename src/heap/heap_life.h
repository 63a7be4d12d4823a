// SPDX-License-Identifier: MIT
// The watch's life in a process: it starts in two steps, ends with the process, and starts anew in the child of a fork.
#ifndef MOAT_HEAP_LIFE_H
#define MOAT_HEAP_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

struct producer;

// The first step, at the first allocation, wherever that is: the allocator below us, keys, tables. False while it is under way
// in this thread, or if it failed: then there is no heap but next_malloc_early's.
bool heap_life_ready(void);

// The second, before main: options, reports, the deliverer and the monitors.
void heap_life_start(void);

// The process ends: everything is looked at once more, what was found and seen is reported.
void heap_life_end(void);

// The same where the process ends at once, which may be anywhere: in a signal handler, in the child of a vfork. Does what can
// be done there.
void heap_life_end_here(void);

// In the child of a fork: whether it has no deliverer and monitor, and what to call now and then as long as that is so. Relaxed: a
// hint.
extern __attribute__((visibility("hidden"))) atomic_bool heap_life_alone;
void heap_life_consider(void);

void heap_life_thread_starts(struct producer *w);

#endif
