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
        share = pace_adapt(share, 0.5, 2000000, 0, 1000000);
    assert_true(share > 0 && share < 0.03);
    for (int i = 0; i < 20; i++)
        share = pace_adapt(share, 0.5, 60000, 50000, 1000000);
    assert_true(share == 0.5);
    assert_true(pace_adapt(share, 0.5, 0, 900000, 1000000) == 0.25);  // it lost its core in the middle
    assert_true(pace_adapt(0.01, 0.01, 0, 0, 1000) == 0.01);          // never more than the option says
    assert_true(pace_adapt(0.01, 0.01, 5000000, 0, 1000) == 0.01);
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
    struct pace p = {.most = 0.25, .share = 0.25};
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
        cmocka_unit_test(good_comes_last),
        cmocka_unit_test(good_rest_is_in_proportion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
