// SPDX-License-Identifier: MIT
// Whether the program has run since a pass over its blocks began. If no other thread of the process had a
// core since then, nothing can have changed and the pass can be skipped, so monitoring an idle process costs
// next to nothing. Computed from the CPU time of all threads less that of our own, and from the number of
// delivered words.
//
// The kernel charges a thread that runs on another core when it stops, at a tick, or when its clock is read.
// We read the clocks of the youngest threads that allocate; what other threads did is noticed at the next
// tick, not lost.
#ifndef MOAT_HEAP_IDLE_H
#define MOAT_HEAP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct idle {
    int64_t others;  // upper bound of their CPU time when the pass began
    uint64_t words;  // delivered words when the pass began
};

void idle_begin(struct idle *s);     // to be called when a pass begins
bool idle_is(const struct idle *s);  // whether nothing can have changed since then

#endif
