// SPDX-License-Identifier: MIT
#include "count/count.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "track/guard_report.h"
#include "context/kernels.h"
#include "context/names.h"

// What was reported.
static struct report_kernel reported[200];
static char names[200][64];
static unsigned nreported, batches;

void guard_report_counts(const struct report_counts *counts)
{
    batches++;
    for (uint32_t i = 0; i < counts->nkernels && nreported < 200; i++) {
        snprintf(names[nreported], sizeof names[nreported], "%s", counts->kernels[i].name);
        reported[nreported] = counts->kernels[i];
        reported[nreported].name = names[nreported];
        nreported++;
    }
}

void guard_report_note(const char *fmt, ...)
{
}

static const struct report_kernel *find(const char *name)
{
    nreported = batches = 0;
    count_report();
    for (unsigned i = 0; i < nreported; i++)
        if (strcmp(reported[i].name, name) == 0)
            return &reported[i];
    return NULL;
}

static int setup(void **state)
{
    return count_start();
}

static const void *handle(uintptr_t n)
{
    return (const void *)(n * 64 + 64);
}

static void good_launches_by_handle(void **state)
{
    count_handle(handle(1), count_row("one", false));
    count_handle(handle(2), count_row("one", false));
    count_handle(handle(3), count_row("three", false));
    for (int i = 0; i < 5; i++)
        count_launch(handle(1));
    count_launch(handle(2));
    count_launch(handle(3));
    assert_int_equal(find("one")->launches, 6);
    assert_int_equal(find("three")->launches, 1);
    assert_true(find("one")->uncounted);
    // The handle is reused by another kernel.
    count_handle(handle(2), count_row("three", false));
    count_launch(handle(2));
    assert_int_equal(find("one")->launches, 6);
    assert_int_equal(find("three")->launches, 2);
}

static void good_names_may_come_late(void **state)
{
    kernels_found(handle(10), KERNELS_UNKNOWN, NULL, "late");
    count_launch(handle(10));
    count_launch(handle(10));
    assert_int_equal(find("late")->launches, 2);
    count_launch(handle(11));
    assert_int_equal(find("(kernels of unknown name)")->launches, 1);
}

static void good_sums(void **state)
{
    struct count_row *row = count_row("summed", true), *small = count_row("small", true);
    struct pass_count_sums none = {0}, first = {.threads = 32}, second = {.threads = 64};
    first.space[PASS_COUNT_GLOBAL].loads = 10;
    first.space[PASS_COUNT_GLOBAL].loaded = 40;
    second.space[PASS_COUNT_GLOBAL].loads = 30;
    second.space[PASS_COUNT_GLOBAL].loaded = 120;
    second.space[PASS_COUNT_SHARED].stores = 1;
    second.space[PASS_COUNT_SHARED].stored = 8;
    assert_ptr_equal(count_row("summed", true), row);
    count_is_rewritten(row, false, false);
    count_add(row, &first, &none);
    count_add(row, &second, &first);
    count_is_rewritten(small, true, true);
    count_add(small, &first, &none);
    const struct report_kernel *k = find("summed");
    assert_int_equal(k->threads, 64);
    assert_int_equal(k->loads, 30);
    assert_int_equal(k->read, 120);
    assert_int_equal(k->stores, 1);
    assert_int_equal(k->written, 8);
    assert_int_equal(k->nspaces, 2);
    assert_false(k->uncounted);
    const struct report_kernel *s = find("small");
    assert_true(s->function && s->approximate);
    assert_true(k < s);  // the one that moves more bytes comes first
}

// A rewritten kernel knows better than launch calls how often it ran: a graph runs it again and again, and a
// captured call does not run it. If its counts are lost, the calls are used.
static void good_launches_by_the_device(void **state)
{
    struct pass_count_sums none = {0}, six = {.launches = 6, .threads = 60};
    struct count_row *graph = count_row("in a graph", true), *idle = count_row("captured", true),
                     *lost = count_row("lost", true), *plain = count_row("as it was", false);
    count_handle(handle(20), count_row("in a graph", true));
    count_handle(handle(21), count_row("captured", true));
    count_handle(handle(22), count_row("lost", true));
    count_handle(handle(23), count_row("as it was", false));
    for (uintptr_t i = 20; i < 24; i++)
        count_launch(handle(i));
    count_is_rewritten(graph, false, false);
    count_is_rewritten(idle, false, false);
    count_is_rewritten(lost, false, false);
    count_add(graph, &six, &none);
    count_add(idle, &none, &none);
    count_is_lost(lost);
    assert_int_equal(find("in a graph")->launches, 6);
    assert_null(find("captured"));
    assert_int_equal(find("lost")->launches, 1);
    assert_int_equal(find("as it was")->launches, 1);
    count_add(lost, &six, &none);
    assert_int_equal(find("lost")->launches, 6);
    assert_false(plain->counted);
}

// The device counts the launches of one; for the other there are only launch calls.
static void good_twins(void **state)
{
    struct pass_count_sums none = {0}, one = {.launches = 1, .threads = 32};
    struct count_row *counted = count_row("twin", true), *plain = count_row("twin", false);
    assert_ptr_not_equal(counted, plain);
    assert_ptr_equal(count_row_likely("twin"), counted);
    assert_ptr_equal(count_row_likely("as it was"), count_row("as it was", false));
    count_is_rewritten(counted, false, false);
    count_handle(handle(30), counted);
    count_handle(handle(31), plain);
    count_handle(handle(32), count_row_of(handle(31)));
    assert_null(count_row_of(handle(33)));
    count_launch(handle(30));
    count_launch(handle(31));
    count_launch(handle(32));
    count_add(counted, &one, &none);
    unsigned seen = 0;
    assert_non_null(find("twin"));
    for (unsigned i = 0; i < nreported; i++)
        if (strcmp(reported[i].name, "twin") == 0) {
            assert_int_equal(reported[i].launches, reported[i].uncounted ? 2 : 1);
            seen += reported[i].uncounted ? 1 : 10;
        }
    assert_int_equal(seen, 11);
}

static void good_many_rows_come_in_parts(void **state)
{
    for (uintptr_t i = 0; i < 100; i++) {
        char name[20];
        snprintf(name, sizeof name, "many%d", (int)i);
        count_handle(handle(100 + i), count_row(name, false));
        count_launch(handle(100 + i));
    }
    assert_non_null(find("many99"));
    assert_true(batches >= 2);
}

static void *launch_often(void *unused)
{
    for (int i = 0; i < 10000; i++) {
        count_launch(handle(500 + (uintptr_t)i % 7));
        if (i % 100 == 0)
            count_handle(handle(500 + (uintptr_t)i % 7), count_row("raced", false));
    }
    return NULL;
}

static void good_threads(void **state)
{
    pthread_t t[4];
    for (uintptr_t i = 0; i < 7; i++)
        count_handle(handle(500 + i), count_row("raced", false));
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, launch_often, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(find("raced")->launches, 40000);
}

static void bad_more_handles_than_room(void **state)
{
    for (uintptr_t i = 0; i < KERNELS_SLOTS; i++)
        count_launch(handle(10000 + i));
    uint64_t unnamed = find("(kernels of unknown name)")->launches;
    uint64_t spilled = find("(kernels beyond the size of the table)")->launches;
    assert_int_equal(unnamed + spilled, KERNELS_SLOTS + 1);
    // Those known before still are.
    count_launch(handle(3));
    assert_int_equal(find("three")->launches, 3);
}

static void good_children_begin_at_zero(void **state)
{
    count_after_fork();
    assert_null(find("three"));
    count_launch(handle(3));
    assert_int_equal(find("three")->launches, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_launches_by_handle),
        cmocka_unit_test(good_names_may_come_late),
        cmocka_unit_test(good_sums),
        cmocka_unit_test(good_launches_by_the_device),
        cmocka_unit_test(good_twins),
        cmocka_unit_test(good_many_rows_come_in_parts),
        cmocka_unit_test(good_threads),
        cmocka_unit_test(bad_more_handles_than_room),
        cmocka_unit_test(good_children_begin_at_zero),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
