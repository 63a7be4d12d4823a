// SPDX-License-Identifier: MIT
// How much of the machine our own threads take. They run behind everybody else: a thread that wakes up takes the core from
// nobody, and gives it up at once to whoever wants it. That others want it shows in that we wait, for a core when we wake up or
// in the middle of the work. Or we need not wait, because they sleep now and then, and still every core is wanted most of the time:
// that the kernel says. Then the share of time that a thread works halves, down to a fiftieth. While nobody is in the way it grows, up
// to what the option says.
#ifndef MOAT_HEAP_PACE_H
#define MOAT_HEAP_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct pace {
    double most, share;  // of a core, from 0 to 1
    int64_t due;         // when it should have woken up; 0: it did not sleep
    int64_t began, cpu;  // wall time and the thread's own, when the work began
    int64_t doze;        // how long it slept last because there was nothing to do; 0: there was
    int load;            // where the kernel says how many threads want a core; -1: nowhere
    int64_t asked;       // when it was last asked
    long cores;
};

// The calling thread gets its name and place. nicer: by how much it comes behind the program's threads.
void pace_become(struct pace *p, const char *name, int nicer, unsigned percent);

void pace_start_low(struct pace *p);  // with the least share, not the whole

void pace_begin(struct pace *p);
// Sleeps so long that work and sleep have their proportion, but within these bounds. The lower one is for a thread that has its
// whole share; one that has less sleeps longer in proportion: to wake up costs others something, too.
void pace_rest(struct pace *p, int64_t shortest_ns, int64_t longest_ns);
// The same where there was nothing to do: longer each time, up to twice that bound.
void pace_doze(struct pace *p, int64_t shortest_ns);

// Whether others wanted the core: by the clocks, before and in the middle of some work that took `cpu` of the thread's time.
bool pace_disturbed(int64_t waited_before, int64_t waited_within, int64_t cpu);
// How many threads but the calling one want a core, by the text of /proc/loadavg; -1: it does not say.
long pace_wanted(const char *text, size_t len);
double pace_adapt(double share, double most, bool disturbed);

int64_t pace_clock(clockid_t clock);  // nanoseconds; 0 of a clock that is not there
int64_t pace_now(void);
void pace_sleep(int64_t ns);

#endif
