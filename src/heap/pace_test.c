// SPDX-License-Identifier: MIT
#include "heap/pace.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
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

static long wanted(const char *text)
{
    return pace_wanted(text, strlen(text));
}

static void good_knows_who_wants_a_core(void **state)
{
    assert_int_equal(wanted("0.53 1.37 2.03 3/345 7230\n"), 2);
    assert_int_equal(wanted("0.00 0.01 0.05 128/900 1"), 127);
    assert_int_equal(wanted("0.00 0.01 0.05 1/90 1"), 0);
}

static void bad_load(void **state)
{
    static const char *const texts[] = {"", "0.53 1.37 2.03", "0.53 1.37 2.03 3", "0.53 1.37 2.03 x/3 1",
                                        "a b c /"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(wanted(texts[i]), -1);
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
    struct pace p = {.most = 0.25, .share = 0.25, .load = -1};
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_backs_off_and_recovers),
        cmocka_unit_test(good_knows_who_wants_a_core),
        cmocka_unit_test(bad_load),
        cmocka_unit_test(good_comes_last),
        cmocka_unit_test(good_rest_is_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
