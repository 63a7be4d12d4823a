// SPDX-License-Identifier: MIT
#include "heap/throttle.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cancel.h"

enum {
    SLICE_NS = 100000,
    LATE_NS = 500000,  // timers are 60 microseconds late without competition
    ASK_NS = 4000000,
    REST_NS = 50000000,
    QUIET_CHECKS = 4,  // checks without competition until the share grows again
    DOZE_PART = 32     // idle for n ns: new work may go unnoticed for n / DOZE_PART
};
#define LEAST_SHARE 0.02

int64_t throttle_clock(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t throttle_now(void)
{
    return throttle_clock(CLOCK_MONOTONIC);
}

void throttle_sleep(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    cancel_hold();
    nanosleep(&t, NULL);
    cancel_release();
}

// As the kernel declares it; libc does not.
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

// SCHED_BATCH does not preempt others at wakeup. A short slice, where the kernel supports it, spares others
// the wait for its end. Not SCHED_IDLE: such a thread may starve while the program's fork waits for locks
// that it holds.
void throttle_become(struct throttle *p, const char *name, int nicer, unsigned percent)
{
    *p = (struct throttle){.most = percent / 100.0, .share = percent / 100.0};
    cpu_pressure_open(&p->pressure);
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

void throttle_start_low(struct throttle *p)
{
    p->share = p->most < LEAST_SHARE ? p->most : LEAST_SHARE;
}

void throttle_begin(struct throttle *p)
{
    p->began = throttle_now();
    p->cpu = throttle_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool throttle_disturbed(int64_t waited_before, int64_t waited_within, int64_t cpu)
{
    return waited_before > LATE_NS || (waited_within > SLICE_NS && waited_within * 4 > cpu);
}

double throttle_adapt(double share, double most, bool disturbed)
{
    share = disturbed ? share / 2 : share * 1.5;
    share = share < LEAST_SHARE ? LEAST_SHARE : share;
    return share < most ? share : most;
}

static void adapt(struct throttle *p, int64_t now, int64_t cpu)
{
    bool disturbed = throttle_disturbed(p->due ? p->began - p->due : 0, now - p->began - cpu, cpu);
    // Reading the pressure costs some microseconds, so we ask now and then; the share does not grow in
    // between.
    if (!disturbed && now - p->asked < ASK_NS)
        return;
    p->asked = now;
    disturbed |= cpu_pressure_is_high(&p->pressure, now);
    p->contended = disturbed ? QUIET_CHECKS : p->contended ? p->contended - 1 : 0;
    if (disturbed || !p->contended)
        p->share = throttle_adapt(p->share, p->most, disturbed);
}

static void sleep_from(struct throttle *p, int64_t now, int64_t ns)
{
    throttle_sleep(ns);
    p->due = now + ns;
}

int64_t throttle_rest_ns(const struct throttle *p, int64_t cpu, int64_t shortest_ns, int64_t longest_ns)
{
    double less = p->most / p->share;
    int64_t ns = (int64_t)((double)cpu / p->share) - cpu;
    int64_t least = (int64_t)((double)shortest_ns * less * (p->contended ? less : 1));
    ns = ns < least ? least : ns;
    return ns < longest_ns ? ns : longest_ns;
}

// A long sleep is split and reconsidered, as the competition may have ended.
void throttle_rest(struct throttle *p, int64_t shortest_ns, int64_t longest_ns)
{
    int64_t from = throttle_now(), now = from, cpu = throttle_clock(CLOCK_THREAD_CPUTIME_ID) - p->cpu, left;
    p->idle = 0;
    adapt(p, now, cpu);
    while ((left = from + throttle_rest_ns(p, cpu, shortest_ns, longest_ns) - now) > 0) {
        sleep_from(p, now, left < REST_NS ? left : REST_NS);
        now = throttle_now();
        if (left <= REST_NS)
            break;
        p->began = now;
        adapt(p, now, 0);
    }
}

int64_t throttle_doze_ns(int64_t idle_for, int64_t shortest_ns, int64_t longest_ns)
{
    int64_t ns = idle_for / DOZE_PART;
    ns = ns < shortest_ns ? shortest_ns : ns;
    return ns < longest_ns ? ns : longest_ns;
}

void throttle_doze(struct throttle *p, int64_t shortest_ns, int64_t longest_ns)
{
    int64_t now = throttle_now();
    adapt(p, now, throttle_clock(CLOCK_THREAD_CPUTIME_ID) - p->cpu);
    int64_t least = throttle_rest_ns(p, 0, shortest_ns, longest_ns);
    p->idle = p->idle ? p->idle : now;
    sleep_from(p, now, throttle_doze_ns(now - p->idle, least, longest_ns));
}
