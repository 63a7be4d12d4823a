// SPDX-License-Identifier: MIT
#include "heap/throttle.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

// Time is simulated, in nanoseconds, so the tests do not depend on the load of the machine.
static int64_t now = INT64_C(1000000000000), cpu;
static int64_t late;  // wakeups are late by this

int clock_gettime(clockid_t clock, struct timespec *t)
{
    int64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? cpu : now;
    *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
    now += t->tv_sec * INT64_C(1000000000) + t->tv_nsec + late;
    return 0;
}

static void work(int64_t own, int64_t others)
{
    cpu += own;
    now += own + others;
}

static int64_t rest(struct throttle *p, int64_t shortest, int64_t longest)
{
    int64_t before = now;
    throttle_rest(p, shortest, longest);
    return now - before;
}

static void good_backs_off_and_recovers(void **state)
{
    double share = 0.5;
    for (int i = 0; i < 20; i++)
        share = throttle_adapt(share, 0.5, throttle_disturbed(2000000, 0, 1000000));
    assert_true(share > 0 && share < 0.03);
    for (int i = 0; i < 20; i++)
        share = throttle_adapt(share, 0.5, throttle_disturbed(60000, 50000, 1000000));
    assert_true(share == 0.5);
    assert_true(throttle_disturbed(0, 900000, 1000000));     // it lost its core in the middle
    assert_true(throttle_adapt(0.01, 0.01, false) == 0.01);  // never more than the option says
    assert_true(throttle_adapt(0.01, 0.01, true) == 0.01);
}

static void good_sleeps_longer_under_pressure(void **state)
{
    struct throttle p = {.most = 0.5, .share = 0.5};
    assert_int_equal(throttle_rest_ns(&p, 0, 1000, 1000000), 1000);
    assert_int_equal(throttle_rest_ns(&p, 5000, 1000, 1000000), 5000);
    p.share = 0.125;
    assert_int_equal(throttle_rest_ns(&p, 0, 1000, 1000000), 4000);
    p.contended = 1;
    assert_int_equal(throttle_rest_ns(&p, 0, 1000, 1000000), 16000);
    assert_int_equal(throttle_rest_ns(&p, 10000, 1000, 1000000), 70000);  // its share, in any case
    assert_int_equal(throttle_rest_ns(&p, 10000, 1000, 20000), 20000);
}

// The number of sleeps is logarithmic in the time, not proportional.
static void good_dozes_longer_and_longer(void **state)
{
    int64_t idle = 0;
    int sleeps = 0;
    for (; idle < 1000000000; sleeps++)
        idle += throttle_doze_ns(idle, 200000, 25000000);
    assert_in_range(sleeps, 50, 250);
    assert_int_equal(throttle_doze_ns(0, 200000, 25000000), 200000);
    assert_int_equal(throttle_doze_ns(INT64_C(1) << 60, 200000, 25000000), 25000000);
}

static void *in_thread(void *policy)
{
    struct throttle p;
    throttle_become(&p, "moat-test", 19, 10);
    *(int *)policy = sched_getscheduler(0) == SCHED_BATCH && getpriority(PRIO_PROCESS, 0) == 19;
    return NULL;
}

static void good_comes_last(void **state)
{
    pthread_t thread;
    int last = 0;
    pthread_create(&thread, NULL, in_thread, &last);
    pthread_join(thread, NULL);
    assert_true(last);
}

static void good_rest_is_in_proportion(void **state)
{
    struct throttle p = {.most = 0.25, .share = 0.25, .pressure = {.fd = -1}};
    throttle_begin(&p);
    work(2000000, 0);
    assert_int_equal(rest(&p, 0, 1000000000), 6000000);
    throttle_begin(&p);
    assert_int_equal(rest(&p, 4000000, 4000000), 4000000);
}

// After others had the core, half of the share is left.
static void good_rest_is_longer_for_others(void **state)
{
    struct throttle p = {.most = 0.25, .share = 0.25, .pressure = {.fd = -1}};
    throttle_begin(&p);
    work(2000000, 1000000);
    assert_int_equal(rest(&p, 0, 1000000000), 14000000);
}

// A long sleep is cut short if there turns out to be no competition, and is not if there is.
static void good_long_rest_is_looked_over(void **state)
{
    for (late = 0; late <= 1000000; late += 1000000) {
        struct throttle p = {.most = 0.5, .share = 0.5, .pressure = {.fd = -1}};
        throttle_start_low(&p);
        double low = p.share;
        throttle_begin(&p);
        work(400000000, 0);
        int64_t rested = rest(&p, 0, INT64_C(30000000000));
        if (late)
            assert_true(p.share == low && rested >= INT64_C(19600000000));
        else
            assert_true(p.share > low && rested >= 400000000 && rested < 2000000000);
    }
    late = 0;
}

// Without work the share grows too, so that new work finds all of it, unless there is competition.
static void good_share_grows_in_a_doze(void **state)
{
    for (late = 0; late <= 1000000; late += 1000000) {
        struct throttle p = {.most = 0.25, .share = 0.25, .pressure = {.fd = -1}};
        throttle_start_low(&p);
        double low = p.share;
        p.due = now - late;
        for (int i = 0; i < 100; i++) {
            throttle_begin(&p);
            throttle_doze(&p, 200000, 5000000);
        }
        assert_true(low < 0.25 && p.share == (late ? low : 0.25));
    }
    late = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_backs_off_and_recovers),  cmocka_unit_test(good_sleeps_longer_under_pressure),
        cmocka_unit_test(good_dozes_longer_and_longer), cmocka_unit_test(good_long_rest_is_looked_over),
        cmocka_unit_test(good_share_grows_in_a_doze),   cmocka_unit_test(good_comes_last),
        cmocka_unit_test(good_rest_is_in_proportion),   cmocka_unit_test(good_rest_is_longer_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
