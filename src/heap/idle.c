// SPDX-License-Identifier: MIT
#include "heap/idle.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "heap/own_fds.h"
#include "heap/deliver.h"
#include "heap/throttle.h"
#include "heap/producer.h"

enum {
    NOISE_NS = 1500,  // less than a thread needs to wake up, and more than reading a clock takes
    MOST_THREADS = 16,
    TRIES = 3
};

// As the kernel numbers them.
static clockid_t clock_of(pid_t thread)
{
    return (clockid_t)(~(unsigned)thread << 3 | 6);
}

// Makes the kernel charge those that run.
static void charge_some(void)
{
    int threads = 0;
    for (struct producer *w = producer_all(); w && threads < MOST_THREADS;
         w = atomic_load_explicit(&w->older, memory_order_relaxed)) {
        // Relaxed: one that has just begun or ended is seen the next time.
        if (atomic_load_explicit(&w->state, memory_order_relaxed) != PRODUCER_ALIVE)
            continue;
        threads++;
        throttle_clock(clock_of(atomic_load_explicit(&w->tid, memory_order_relaxed)));
    }
}

// Ours but the caller.
static int64_t colleagues(void)
{
    pid_t tids[OWN_FDS_MOST], self = (pid_t)syscall(SYS_gettid);
    int64_t sum = 0;
    for (unsigned i = 0, n = own_fds_threads(tids); i < n; i++)
        if (tids[i] != self)
            sum += throttle_clock(clock_of(tids[i]));
    return sum;
}

// The caller runs, so its time is taken on both sides. An interrupt between the two is charged to it too, and nobody knows on which
// side of the middle it was: that would be taken for others' time, or hide it. So it is tried again.
static int64_t all_but_caller(void)
{
    int64_t others = 0, shortest = INT64_MAX;
    for (int i = 0; i < TRIES && shortest > NOISE_NS; i++) {
        int64_t before = throttle_clock(CLOCK_THREAD_CPUTIME_ID),
                all = throttle_clock(CLOCK_PROCESS_CPUTIME_ID);
        int64_t after = throttle_clock(CLOCK_THREAD_CPUTIME_ID);
        if (after - before < shortest) {
            shortest = after - before;
            others = all - (before + after) / 2;
        }
    }
    return others;
}

// All before ours here, ours before all there: so the difference is not less than what others had, but for the noise.
void idle_begin(struct idle *s)
{
    s->words = deliver_words();
    s->others = all_but_caller();
    s->others -= colleagues();
}

bool idle_is(const struct idle *s)
{
    charge_some();
    int64_t ours = colleagues();
    return all_but_caller() - ours - s->others < NOISE_NS && deliver_words() == s->words;
}
