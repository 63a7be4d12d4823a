// SPDX-License-Identifier: MIT
#include "heap/idle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/own_fds.h"
#include "heap/deliver.h"
#include "heap/producer.h"

enum { TRIES = 50 };

// A kernel's clocks, for tests that must not depend on who else uses the machine. Each read takes the caller
// READ_NS; an interrupt of INTERRUPT_NS comes after the caller's next read of its own clock, which is charged
// for it. A thread that runs on another core is charged when its clock is read.
enum { READ_NS = 100, INTERRUPT_NS = 1000000 };
static struct {
    bool on, interrupt;
    int64_t caller;        // time of this thread
    int64_t ran, charged;  // of the other thread
} simulated;

static int64_t simulated_clock(clockid_t clock)
{
    simulated.caller += READ_NS;
    if (clock == CLOCK_PROCESS_CPUTIME_ID)
        return simulated.caller + simulated.charged;
    if (clock != CLOCK_THREAD_CPUTIME_ID)
        return simulated.charged = simulated.ran;
    int64_t now = simulated.caller;
    simulated.caller += simulated.interrupt ? INTERRUPT_NS : 0;
    simulated.interrupt = false;
    return now;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!simulated.on)
        return (int)syscall(SYS_clock_gettime, clock, t);
    int64_t now = simulated_clock(clock);
    *t = (struct timespec){now / 1000000000, now % 1000000000};
    return 0;
}

static _Atomic int turn, done;  // sequentially consistent, all: this is a test
static volatile long work;

// Works as long as it is asked to, and sleeps in between.
static void *other(void *unused)
{
    for (int seen = 0; seen >= 0;) {
        int now = turn;
        if (now == seen) {
            usleep(1000);
            continue;
        }
        for (int i = 0; i < 100000; i++)
            work++;
        seen = now;
        done = now;
    }
    return NULL;
}

static void good_own_work_does_not_count(void **state)
{
    struct idle s;
    int still = 0;
    for (int i = 0; i < TRIES; i++) {
        idle_begin(&s);
        for (int k = 0; k < 100000; k++)
            work++;
        still += idle_is(&s);
    }
    assert_true(still > TRIES / 2);  // an interrupt at the wrong moment adds time, which is harmless
}

static void good_others_work_counts(void **state)
{
    pthread_t thread;
    struct idle s;
    turn = 0;
    done = 0;
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 1; i <= TRIES; i++) {
        idle_begin(&s);
        turn = i;
        while (done != i)
            usleep(1000);
        usleep(10000);  // it has slept since, so it was charged
        assert_false(idle_is(&s));
    }
    turn = -1;
    pthread_join(thread, NULL);
}

// A thread of ours: its time is not the program's.
static void *one_of_ours(void *unused)
{
    own_fds_register();
    return other(unused);
}

static void good_our_work_does_not_count(void **state)
{
    pthread_t thread;
    struct idle s;
    int still = 0;
    turn = 0;
    pthread_create(&thread, NULL, one_of_ours, NULL);
    usleep(10000);
    for (int i = 1; i <= TRIES; i++) {
        idle_begin(&s);
        turn = i;
        usleep(10000);
        still += idle_is(&s);
    }
    turn = -1;
    pthread_join(thread, NULL);
    own_fds_after_fork();
    own_fds_register();
    assert_true(still > TRIES / 2);
}

static uint64_t round_of(void)
{
    deliver_lock();
    uint64_t words = deliver_round(false);
    deliver_unlock();
    return words;
}

// Delivered words must be checked, whoever delivered them.
static void good_deliveries_count(void **state)
{
    struct idle s;
    struct producer *w = producer_new();
    int still = 0;
    for (int i = 0; i < TRIES; i++) {
        idle_begin(&s);
        producer_commit(w, producer_reserve(w), 16);
        assert_int_equal(round_of(), 1);
        assert_false(idle_is(&s));
        idle_begin(&s);
        assert_int_equal(round_of(), 0);
        still += idle_is(&s);
    }
    assert_true(still > TRIES / 2);
    producer_retire(w);
}

static _Atomic long steps;

static void *busy_one(void *unused)
{
    assert_non_null(producer_new());
    while (turn != -2)
        steps++;
    return NULL;
}

// The thread never sleeps, so that it is charged only by our reads and by ticks. At the latest after a tick
// its work counts.
static void good_who_runs_counts(void **state)
{
    pthread_t thread;
    struct idle s;
    pthread_create(&thread, NULL, busy_one, NULL);
    while (!steps)
        usleep(100);
    for (int i = 0; i < TRIES; i++) {
        idle_begin(&s);
        while (idle_is(&s))
            ;
    }
    turn = -2;
    pthread_join(thread, NULL);
}

// Work of a thread that has not been charged counts at once, and an interrupt during a read does not hide it.
static void good_uncharged_work_counts(void **state)
{
    struct idle s;
    struct producer *w = producer_new();
    bool good = true;
    simulated.on = true;
    for (int i = 0; i < TRIES; i++) {
        simulated.interrupt = i % 2;
        idle_begin(&s);
        good = good && idle_is(&s);
        idle_begin(&s);
        simulated.ran += 10000;
        simulated.interrupt = i % 2;
        good = good && !idle_is(&s);
        simulated.interrupt = i % 2;
        idle_begin(&s);
        simulated.ran += 10000;
        good = good && !idle_is(&s);
    }
    simulated.on = false;  // before cmocka looks at a clock
    producer_retire(w);
    assert_true(good);
}

int main(void)
{
    own_fds_register();  // this thread is the monitor
    if (deliver_init(1))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_own_work_does_not_count), cmocka_unit_test(good_others_work_counts),
        cmocka_unit_test(good_our_work_does_not_count), cmocka_unit_test(good_deliveries_count),
        cmocka_unit_test(good_who_runs_counts),         cmocka_unit_test(good_uncharged_work_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
