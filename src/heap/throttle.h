// SPDX-License-Identifier: MIT
// Limits the CPU share of our own threads. They run with low priority: a thread that wakes up preempts nobody
// and yields its core at once to others. We know that others compete for cores when we have to wait
// ourselves, at wakeup or in the middle of work, or when the kernel reports that others wait
// (cpu_pressure.h). Then the share of time that a thread works is halved, down to a fiftieth. Without
// competition it grows, up to what the option says.
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
    int64_t began, cpu;  // wall time and the thread's CPU time when the work began
    int64_t idle;        // since when there is nothing to do; 0: there is work
    int64_t asked;       // when cpu_pressure was last read
    int contended;       // checks without competition needed before the share grows again; 0: none
    struct cpu_pressure pressure;
};

// Sets up the calling thread: its name and scheduling. nicer: its nice value relative to the program's
// threads.
void throttle_become(struct throttle *p, const char *name, int nicer, unsigned percent);

void throttle_start_low(struct throttle *p);  // starts with the least share

void throttle_begin(struct throttle *p);  // work begins
// Sleeps so long that work and sleep have their proportion, within these bounds. The lower bound is for a
// thread with its full share; with a lower share it sleeps longer in proportion, and by the square of it
// while others compete, because wakeups cost them something, too.
void throttle_rest(struct throttle *p, int64_t shortest_ns, int64_t longest_ns);
// The same after a turn without work: the longer there was none, the longer the sleep.
void throttle_doze(struct throttle *p, int64_t shortest_ns, int64_t longest_ns);

// Returns whether others wanted the core, from the times that the thread waited before and within work that
// took `cpu` of CPU time.
bool throttle_disturbed(int64_t waited_before, int64_t waited_within, int64_t cpu);
// Return the total time to sleep: after work of this CPU time; after being idle for this time.
int64_t throttle_rest_ns(const struct throttle *p, int64_t cpu, int64_t shortest_ns, int64_t longest_ns);
int64_t throttle_doze_ns(int64_t idle_for, int64_t shortest_ns, int64_t longest_ns);
// Returns the next share: halved if others wanted the core, else grown; between the least share and `most`.
double throttle_adapt(double share, double most, bool disturbed);

int64_t throttle_clock(clockid_t clock);  // nanoseconds; 0 if the clock does not exist
int64_t throttle_now(void);
void throttle_sleep(int64_t ns);

#endif
