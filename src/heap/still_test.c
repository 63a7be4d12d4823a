// SPDX-License-Identifier: MIT
#include "heap/still.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "heap/writer.h"

enum { TRIES = 50 };

static _Atomic int turn;  // sequentially consistent, all: it is a test
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
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 1; i <= TRIES; i++) {
        still_begin(&s);
        turn = i;
        usleep(10000);  // it has slept again since, so it was charged
        assert_false(still_is(&s));
    }
    turn = -1;
    pthread_join(thread, NULL);
}

static _Atomic long steps;

static void *busy_one(void *unused)
{
    assert_non_null(writer_new());
    while (turn != -2)
        steps++;
    return NULL;
}

// It never sleeps, so that nobody charges it but we, and ticks: of some hundred tries few have one.
static void good_who_runs_counts(void **state)
{
    pthread_t thread;
    struct still s;
    pthread_create(&thread, NULL, busy_one, NULL);
    while (!steps)
        usleep(100);
    for (int i = 0; i < 10 * TRIES; i++) {
        still_begin(&s);
        for (long before = steps; steps < before + 2000;)
            ;
        assert_false(still_is(&s));
    }
    turn = -2;
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_own_work_does_not_count),
        cmocka_unit_test(good_others_work_counts),
        cmocka_unit_test(good_who_runs_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
