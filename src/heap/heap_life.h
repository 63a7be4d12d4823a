// SPDX-License-Identifier: MIT
// The life of the heap's monitoring in a process: it starts in two steps, ends with the process, and starts
// again in the child of a fork.
#ifndef MOAT_HEAP_LIFE_H
#define MOAT_HEAP_LIFE_H

#include <stdatomic.h>
#include <stdbool.h>

struct producer;

// The first step, at the first allocation, wherever that is: the next allocator, keys, tables. Returns false
// while this thread is inside the step, or if it failed; then only next_malloc_early serves allocations.
bool heap_life_ready(void);

// The second step, before main: options, reports, the deliverer and the monitors.
void heap_life_start(void);

// At exit: checks everything once more and reports the results.
void heap_life_end(void);

// The same for _exit and its like, which may be called anywhere: in a signal handler, in the child of a
// vfork. Does what is possible there.
void heap_life_end_here(void);

// Whether this is the child of a fork that has no deliverer and monitors, and what to call now and then while
// that is so. Relaxed: a hint.
extern __attribute__((visibility("hidden"))) atomic_bool heap_life_unmonitored;
void heap_life_maybe_start(void);

// Registers the calling thread's record, so that it is retired when the thread ends.
void heap_life_thread_starts(struct producer *w);

#endif
