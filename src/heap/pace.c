// SPDX-License-Identifier: MIT
#include "heap/pace.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SLICE_NS = 100000,
    LATE_NS = 500000
};  // timers are late by 60 microseconds where nobody is in the way
#define LEAST_SHARE 0.02

static int64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t pace_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

void pace_sleep(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

// As the kernel has it; libc has no declaration.
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

// SCHED_BATCH: does not take the core from others when it wakes up. A short slice, where the kernel knows such: others need not
// wait for its end. Not SCHED_IDLE: such a thread may starve, and the program's fork waits for locks that it holds.
void pace_become(struct pace *p, const char *name, int nicer, unsigned percent)
{
    *p = (struct pace){.most = percent / 100.0, .share = percent / 100.0};
    prctl(PR_SET_NAME, name);
    pid_t tid = (pid_t)syscall(SYS_gettid);
    errno = 0;
    int nice = getpriority(PRIO_PROCESS, (id_t)tid) + nicer;
    if (errno)
        return;
    struct attributes a = {
        .size = sizeof a, .policy = SCHED_BATCH, .nice = nice > 19 ? 19 : nice, .runtime = SLICE_NS};
    if (syscall(SYS_sched_setattr, tid, &a, 0u))
        setpriority(PRIO_PROCESS, (id_t)tid, nice);
}

void pace_begin(struct pace *p)
{
    p->began = pace_now();
    p->cpu = read_clock(CLOCK_THREAD_CPUTIME_ID);
}

double pace_adapt(double share, double most, int64_t waited_before, int64_t waited_within, int64_t cpu)
{
    bool disturbed = waited_before > LATE_NS || (waited_within > SLICE_NS && waited_within * 4 > cpu);
    share = disturbed ? share / 2 : share * 1.5;
    share = share < LEAST_SHARE ? LEAST_SHARE : share;
    return share < most ? share : most;
}

void pace_rest(struct pace *p, int64_t shortest_ns, int64_t longest_ns)
{
    int64_t now = pace_now(), cpu = read_clock(CLOCK_THREAD_CPUTIME_ID) - p->cpu;
    p->share = pace_adapt(p->share, p->most, p->due ? p->began - p->due : 0, now - p->began - cpu, cpu);
    int64_t ns = (int64_t)((double)cpu / p->share) - cpu;
    ns = ns < shortest_ns ? shortest_ns : ns > longest_ns ? longest_ns : ns;
    pace_sleep(ns);
    p->due = now + ns;
}
