// SPDX-License-Identifier: MIT
// Whether the program has run since a look at its blocks began. If no other thread of the process had a core since, nothing
// can have changed, and there is nothing to look at: a process that waits costs next to nothing. Told by the time that all threads have
// had, less that of ours, and by what the deliverer brought.
//
// A thread that runs on another core is charged by the kernel when it stops, at a tick, or when it is asked for. Those that allocate
// are asked for, the youngest; what others did is seen at the next tick, not lost.
#ifndef MOAT_HEAP_IDLE_H
#define MOAT_HEAP_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct idle {
    int64_t others;  // what they had when the look began, at most
    uint64_t words;  // that had been delivered
};

void idle_begin(struct idle *s);
bool idle_is(const struct idle *s);

#endif
