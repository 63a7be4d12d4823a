// SPDX-License-Identifier: MIT
// How much of the machine our own threads take. They run behind everybody else: a thread that wakes up takes the core from
// nobody, and gives it up at once to whoever wants it. That others want it shows in that we wait, for a core when we wake up or
// in the middle of the work; then the share of time that a thread works halves, down to a fiftieth. While nobody is in the way it
// grows, up to what the option says.
#ifndef MOAT_HEAP_PACE_H
#define MOAT_HEAP_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
    double most, share;  // of a core, from 0 to 1
    int64_t due;         // when it should have woken up; 0: it did not sleep
    int64_t began, cpu;  // wall time and the thread's own, when the work began
};

// The calling thread gets its name and place. nicer: by how much it comes behind the program's threads.
void pace_become(struct pace *p, const char *name, int nicer, unsigned percent);

void pace_begin(struct pace *p);
// Sleeps so long that work and sleep have their proportion, but within these bounds.
void pace_rest(struct pace *p, int64_t shortest_ns, int64_t longest_ns);

// The share after some work that took `cpu` of the thread's time, before and in the middle of which it waited.
double pace_adapt(double share, double most, int64_t waited_before, int64_t waited_within, int64_t cpu);

int64_t pace_now(void);
void pace_sleep(int64_t ns);

#endif
