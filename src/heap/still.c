// SPDX-License-Identifier: MIT
#include "heap/still.h"

#include <time.h>

#include "heap/pace.h"
#include "heap/writer.h"

enum {
    NOISE_NS = 2000,  // less than a thread needs to wake up, and more than reading clocks takes
    MOST_THREADS = 16
};

// As the kernel numbers them.
static clockid_t clock_of(pid_t thread)
{
    return (clockid_t)(~(unsigned)thread << 3 | 6);
}

// Makes the kernel charge those that run. False: there are too many.
static bool charge_all(void)
{
    int threads = 0;
    for (struct writer *w = writer_all(); w; w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        // Relaxed: one that has just begun or ended is seen the next time.
        if (atomic_load_explicit(&w->state, memory_order_relaxed) != WRITER_ALIVE)
            continue;
        if (++threads > MOST_THREADS)
            return false;
        pace_clock(clock_of(atomic_load_explicit(&w->tid, memory_order_relaxed)));
    }
    return true;
}

void still_begin(struct still *s)
{
    int64_t all = pace_clock(CLOCK_PROCESS_CPUTIME_ID);
    s->others = all - pace_clock(CLOCK_THREAD_CPUTIME_ID);
}

// Ours is read before all, there behind: so the difference is never less than what others had.
bool still_is(const struct still *s)
{
    if (!charge_all())
        return false;
    int64_t own = pace_clock(CLOCK_THREAD_CPUTIME_ID);
    return pace_clock(CLOCK_PROCESS_CPUTIME_ID) - own - s->others < NOISE_NS;
}
