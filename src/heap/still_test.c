// SPDX-License-Identifier: MIT
#include "heap/still.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/apart.h"
#include "heap/deliver.h"
#include "heap/writer.h"

enum { TRIES = 50 };

// An interrupt after the next time that a thread's own clock is read: the kernel charges that thread for it.
static atomic_bool interrupt;

int clock_gettime(clockid_t clock, struct timespec *t)
{
    struct timespec now;
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if (clock != CLOCK_THREAD_CPUTIME_ID || !atomic_exchange(&interrupt, false))
        return result;
    do
        syscall(SYS_clock_gettime, clock, &now);
    while ((now.tv_sec - t->tv_sec) * 1000000000 + now.tv_nsec - t->tv_nsec < 1000000);
    return result;
}

static _Atomic int turn, done;  // sequentially consistent, all: it is a test
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
    struct still s;
    int still = 0;
    for (int i = 0; i < TRIES; i++) {
        still_begin(&s);
        for (int k = 0; k < 100000; k++)
            work++;
        still += still_is(&s);
    }
    assert_true(still > TRIES / 2);  // an interrupt at the wrong moment makes it more, which does no harm
}

static void good_others_work_counts(void **state)
{
    pthread_t thread;
    struct still s;
    turn = 0;
    done = 0;
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 1; i <= TRIES; i++) {
        still_begin(&s);
        turn = i;
        while (done != i)
            usleep(1000);
        usleep(10000);  // it has slept again since, so it was charged
        assert_false(still_is(&s));
    }
    turn = -1;
    pthread_join(thread, NULL);
}

// One of ours: what it does is not the program's.
static void *one_of_ours(void *unused)
{
    apart_join();
    return other(unused);
}

static void good_our_work_does_not_count(void **state)
{
    pthread_t thread;
    struct still s;
    int still = 0;
    turn = 0;
    pthread_create(&thread, NULL, one_of_ours, NULL);
    usleep(10000);
    for (int i = 1; i <= TRIES; i++) {
        still_begin(&s);
        turn = i;
        usleep(10000);
        still += still_is(&s);
    }
    turn = -1;
    pthread_join(thread, NULL);
    apart_after_fork();
    apart_join();
    assert_true(still > TRIES / 2);
}

static uint64_t round_of(void)
{
    deliver_lock();
    uint64_t words = deliver_round(false);
    deliver_unlock();
    return words;
}

// What was delivered must be looked at, whoever did that.
static void good_deliveries_count(void **state)
{
    struct still s;
    struct writer *w = writer_new();
    int still = 0;
    for (int i = 0; i < TRIES; i++) {
        still_begin(&s);
        writer_commit(w, writer_reserve(w), 16);
        assert_int_equal(round_of(), 1);
        assert_false(still_is(&s));
        still_begin(&s);
        assert_int_equal(round_of(), 0);
        still += still_is(&s);
    }
    assert_true(still > TRIES / 2);
    writer_retire(w);
}

static _Atomic long steps;

static void *busy_one(void *unused)
{
    assert_non_null(writer_new());
    while (turn != -2)
        steps++;
    return NULL;
}

// It never sleeps, so that nobody charges it but we, and ticks: of some hundred tries few have one. An
// interrupt while we look does not hide it. On a busy machine each of the few tries of one look may be
// interrupted, so that a run now and then is missed; without the charges nearly all would be.
static void good_who_runs_counts(void **state)
{
    pthread_t thread;
    struct still s;
    int missed = 0;
    pthread_create(&thread, NULL, busy_one, NULL);
    while (!steps)
        usleep(100);
    for (int i = 0; i < 10 * TRIES; i++) {
        still_begin(&s);
        for (long before = steps; steps < before + 2000;)
            ;
        missed += still_is(&s);
    }
    for (int i = 0; i < TRIES; i++) {
        interrupt = true;
        still_begin(&s);
        assert_false(interrupt);
        for (long before = steps; steps < before + 2000;)
            ;
        missed += still_is(&s);
    }
    turn = -2;
    pthread_join(thread, NULL);
    assert_true(missed < TRIES / 2);
}

int main(void)
{
    apart_join();  // this thread is the monitor
    if (deliver_init(1))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_own_work_does_not_count), cmocka_unit_test(good_others_work_counts),
        cmocka_unit_test(good_our_work_does_not_count), cmocka_unit_test(good_deliveries_count),
        cmocka_unit_test(good_who_runs_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
