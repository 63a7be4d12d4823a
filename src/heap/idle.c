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
    NOISE_NS = 1500,  // less than a thread needs to wake up, more than reading a clock takes
    MOST_THREADS = 16,
    TRIES = 3
};

// Returns a thread's CPU clock, in the kernel's encoding.
static clockid_t clock_of(pid_t thread)
{
    return (clockid_t)(~(unsigned)thread << 3 | 6);
}

// Reads the clocks of some threads, which makes the kernel charge those that run.
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

// Returns the CPU time of our threads other than the caller.
static int64_t time_of_our_threads(void)
{
    pid_t tids[OWN_FDS_MOST], self = (pid_t)syscall(SYS_gettid);
    int64_t sum = 0;
    for (unsigned i = 0, n = own_fds_threads(tids); i < n; i++)
        if (tids[i] != self)
            sum += throttle_clock(clock_of(tids[i]));
    return sum;
}

// Returns the CPU time of all threads but the caller. The caller runs, so its clock is read before and after
// that of the process. An interrupt between the two is charged to the caller too, on an unknown side of the
// middle, and would count as others' time or hide some. So a reading with a long gap is repeated.
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

// Here the process is read before our threads, in idle_is our threads before the process, so the difference
// is not less than what others had, except for noise.
void idle_begin(struct idle *s)
{
    s->words = deliver_words();
    s->others = all_but_caller();
    s->others -= time_of_our_threads();
}

bool idle_is(const struct idle *s)
{
    charge_some();
    int64_t ours = time_of_our_threads();
    return all_but_caller() - ours - s->others < NOISE_NS && deliver_words() == s->words;
}
