// SPDX-License-Identifier: MIT
#include "heap/pace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "heap/apart.h"

enum {
    SLICE_NS = 100000,
    LATE_NS = 500000,  // timers are late by 60 microseconds where nobody is in the way
    ASK_NS = 1000000
};
#define LEAST_SHARE 0.02

int64_t pace_clock(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int64_t pace_now(void)
{
    return pace_clock(CLOCK_MONOTONIC);
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

// Kept open, so it must not be among the program's descriptors. Not a file of the thread's own: those make processes end slowly.
// Not by libc's functions: ThreadSanitizer takes equal numbers in two tables for one file.
static int open_load(void)
{
    return apart_is() ? (int)syscall(SYS_openat, AT_FDCWD, "/proc/loadavg", O_RDONLY | O_CLOEXEC) : -1;
}

// SCHED_BATCH: does not take the core from others when it wakes up. A short slice, where the kernel knows such: others need not
// wait for its end. Not SCHED_IDLE: such a thread may starve, and the program's fork waits for locks that it holds.
void pace_become(struct pace *p, const char *name, int nicer, unsigned percent)
{
    *p = (struct pace){.most = percent / 100.0, .share = percent / 100.0, .load = open_load()};
    p->cores = sysconf(_SC_NPROCESSORS_ONLN);
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

void pace_start_low(struct pace *p)
{
    p->share = p->most < LEAST_SHARE ? p->most : LEAST_SHARE;
}

void pace_begin(struct pace *p)
{
    p->began = pace_now();
    p->cpu = pace_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool pace_disturbed(int64_t waited_before, int64_t waited_within, int64_t cpu)
{
    return waited_before > LATE_NS || (waited_within > SLICE_NS && waited_within * 4 > cpu);
}

// Three averages, then those that run or wait for a core, of how many there are: "0.53 1.37 2.03 3/345 7230".
long pace_wanted(const char *text, size_t len)
{
    long wanted = 0;
    int field = 0;
    for (size_t i = 0; i < len && field < 4; i++) {
        if (text[i] == ' ')
            field++;
        else if (field == 3 && text[i] == '/')
            return wanted > 0 ? wanted - 1 : -1;
        else if (field == 3)
            wanted = text[i] >= '0' && text[i] <= '9' && wanted < 1000000 ? wanted * 10 + text[i] - '0' : -1;
    }
    return -1;
}

static bool cores_are_wanted(struct pace *p)
{
    char text[100];
    long n = p->load < 0 ? -1 : syscall(SYS_pread64, p->load, text, sizeof text, 0L);
    return n > 0 && pace_wanted(text, (size_t)n) >= p->cores;
}

double pace_adapt(double share, double most, bool disturbed)
{
    share = disturbed ? share / 2 : share * 1.5;
    share = share < LEAST_SHARE ? LEAST_SHARE : share;
    return share < most ? share : most;
}

static void adapt(struct pace *p, int64_t now, int64_t cpu)
{
    bool disturbed = pace_disturbed(p->due ? p->began - p->due : 0, now - p->began - cpu, cpu);
    // To ask costs a microsecond or two, so it is done now and then; the share does not grow in between.
    if (!disturbed && now - p->asked < ASK_NS)
        return;
    p->asked = now;
    p->share = pace_adapt(p->share, p->most, disturbed || cores_are_wanted(p));
}

static void sleep_from(struct pace *p, int64_t now, int64_t ns)
{
    pace_sleep(ns);
    p->due = now + ns;
}

void pace_rest(struct pace *p, int64_t shortest_ns, int64_t longest_ns)
{
    int64_t now = pace_now(), cpu = pace_clock(CLOCK_THREAD_CPUTIME_ID) - p->cpu;
    adapt(p, now, cpu);
    int64_t ns = (int64_t)((double)cpu / p->share) - cpu;
    int64_t least = (int64_t)((double)shortest_ns * p->most / p->share);
    ns = ns < least ? least : ns;
    p->doze = 0;
    sleep_from(p, now, ns < longest_ns ? ns : longest_ns);
}

void pace_doze(struct pace *p, int64_t shortest_ns)
{
    int64_t now = pace_now(), most = (int64_t)(2 * (double)shortest_ns * p->most / p->share);
    adapt(p, now, pace_clock(CLOCK_THREAD_CPUTIME_ID) - p->cpu);
    p->doze = p->doze ? 2 * p->doze : shortest_ns;
    p->doze = p->doze < most ? p->doze : most;
    sleep_from(p, now, p->doze);
}
