// SPDX-License-Identifier: MIT
#include "heap/pace.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cmocka.h>

static void good_backs_off_and_recovers(void **state)
{
    double share = 0.5;
    for (int i = 0; i < 20; i++)
        share = pace_adapt(share, 0.5, pace_disturbed(2000000, 0, 1000000));
    assert_true(share > 0 && share < 0.03);
    for (int i = 0; i < 20; i++)
        share = pace_adapt(share, 0.5, pace_disturbed(60000, 50000, 1000000));
    assert_true(share == 0.5);
    assert_true(pace_disturbed(0, 900000, 1000000));     // it lost its core in the middle
    assert_true(pace_adapt(0.01, 0.01, false) == 0.01);  // never more than the option says
    assert_true(pace_adapt(0.01, 0.01, true) == 0.01);
}

static void good_sleeps_longer_in_a_crowd(void **state)
{
    struct pace p = {.most = 0.5, .share = 0.5};
    assert_int_equal(pace_rest_ns(&p, 0, 1000, 1000000), 1000);
    assert_int_equal(pace_rest_ns(&p, 5000, 1000, 1000000), 5000);
    p.share = 0.125;
    assert_int_equal(pace_rest_ns(&p, 0, 1000, 1000000), 4000);
    p.crowded = 1;
    assert_int_equal(pace_rest_ns(&p, 0, 1000, 1000000), 16000);
    assert_int_equal(pace_rest_ns(&p, 10000, 1000, 1000000), 70000);  // its share, whoever is there
    assert_int_equal(pace_rest_ns(&p, 10000, 1000, 20000), 20000);
}

// As many sleeps as there are doublings of the time, not as there are milliseconds.
static void good_dozes_longer_and_longer(void **state)
{
    int64_t idle = 0;
    int sleeps = 0;
    for (; idle < 1000000000; sleeps++)
        idle += pace_doze_ns(idle, 200000, 25000000);
    assert_in_range(sleeps, 50, 250);
    assert_int_equal(pace_doze_ns(0, 200000, 25000000), 200000);
    assert_int_equal(pace_doze_ns(INT64_C(1) << 60, 200000, 25000000), 25000000);
}

static void *in_thread(void *policy)
{
    struct pace p;
    pace_become(&p, "moat-test", 19, 10);
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
    struct pace p = {.most = 0.25, .share = 0.25, .crowd = {.fd = -1}};
    pace_begin(&p);
    while (pace_now() - p.began < 2000000)
        ;
    int64_t before = pace_now();
    pace_rest(&p, 0, 1000000000);
    assert_true(pace_now() - before >= 3000000);  // more where others want the core
    pace_begin(&p);
    before = pace_now();
    pace_rest(&p, 4000000, 4000000);
    assert_true(pace_now() - before >= 4000000);
}

// A rest that was meant to be long ends soon if nobody turns out to be in the way.
static void good_long_rest_is_looked_over(void **state)
{
    struct pace p = {.most = 0.5, .share = 0.5, .crowd = {.fd = -1}};
    pace_start_low(&p);
    pace_begin(&p);
    p.cpu -= 400000000;  // as if it had worked so long
    int64_t before = pace_now();
    pace_rest(&p, 0, INT64_C(20000000000));
    assert_true(p.share > 0.02);
    assert_in_range(pace_now() - before, 400000000, 10000000000);
}

// While there is nothing to do the share grows too: what comes then finds all of it.
static void good_share_grows_in_a_doze(void **state)
{
    struct pace p = {.most = 0.25, .share = 0.25, .crowd = {.fd = -1}};
    pace_start_low(&p);
    double low = p.share;
    for (int i = 0; i < 100 && p.share < p.most; i++) {
        pace_begin(&p);
        pace_doze(&p, 200000, 5000000);
    }
    assert_true(low < 0.25 && p.share > low);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_backs_off_and_recovers),  cmocka_unit_test(good_sleeps_longer_in_a_crowd),
        cmocka_unit_test(good_dozes_longer_and_longer), cmocka_unit_test(good_long_rest_is_looked_over),
        cmocka_unit_test(good_share_grows_in_a_doze),   cmocka_unit_test(good_comes_last),
        cmocka_unit_test(good_rest_is_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
