// SPDX-License-Identifier: MIT
// How much of the machine our own threads take. They run behind everybody else: a thread that wakes up takes the core from
// nobody, and gives it up at once to whoever wants it. That others want it shows in that we wait, for a core when we wake up or
// in the middle of the work. Or we need not wait, because they do: that the kernel says (cpu_pressure.h). Then the share of time that a
// thread works halves, down to a fiftieth. While nobody is in the way it grows, up to what the option says.
#ifndef MOAT_HEAP_THROTTLE_H
#define MOAT_HEAP_THROTTLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "heap/cpu_pressure.h"

struct throttle {
    double most, share;  // of a core, from 0 to 1
    int64_t due;         // when it should have woken up; 0: it did not sleep
    int64_t began, cpu;  // wall time and the thread's own, when the work began
    int64_t idle;        // since when there is nothing to do; 0: there is
    int64_t asked;       // when the kernel was last asked
    int crowded;         // so often it must say that nobody is in the way; 0: nobody is
    struct cpu_pressure crowd;
};

// The calling thread gets its name and place. nicer: by how much it comes behind the program's threads.
void throttle_become(struct throttle *p, const char *name, int nicer, unsigned percent);

void throttle_start_low(struct throttle *p);  // with the least share, not the whole

void throttle_begin(struct throttle *p);
// Sleeps so long that work and sleep have their proportion, but within these bounds. The lower one is for a thread that has its
// whole share; one that has less sleeps longer in proportion, and by the square of it while others are in the way: to wake up costs
// them something, too.
void throttle_rest(struct throttle *p, int64_t shortest_ns, int64_t longest_ns);
// The same where there was nothing to do: the longer, the longer that has been so.
void throttle_doze(struct throttle *p, int64_t shortest_ns, int64_t longest_ns);

// Whether others wanted the core: by the clocks, before and in the middle of some work that took `cpu` of the thread's time.
bool throttle_disturbed(int64_t waited_before, int64_t waited_within, int64_t cpu);
// How long to sleep, in all: for work that took so long, or for none since so long.
int64_t throttle_rest_ns(const struct throttle *p, int64_t cpu, int64_t shortest_ns, int64_t longest_ns);
int64_t throttle_doze_ns(int64_t idle_for, int64_t shortest_ns, int64_t longest_ns);
double throttle_adapt(double share, double most, bool disturbed);

int64_t throttle_clock(clockid_t clock);  // nanoseconds; 0 of a clock that is not there
int64_t throttle_now(void);
void throttle_sleep(int64_t ns);

#endif
