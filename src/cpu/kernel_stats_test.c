// SPDX-License-Identifier: MIT
#include "cpu/kernel_stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

static void expect_table(const struct kernel_stats *rows, size_t n, const char *expected)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    kernel_stats_table(rows, n, &o);
    out_char(&o, 0);
    assert_string_equal(o.buf, expected);
    assert_int_equal(out_close(&o), 0);
}

static void good_columns_that_are_used(void **state)
{
    static char first[] = "first", wild[] = "wi\x1bld", idle[] = "idle";
    const struct kernel_stats rows[] = {
        {.name = first, .launches = 3, .time = {1500000000, 0}},
        {.name = idle},
        {.name = wild, .launches = 12345678901, .time = {1, 0}},
    };
    expect_table(rows, 3,
                 "moat: kernels:    launches  seconds kernel\n"
                 "moat: kernels:           3 1.500000 first\n"
                 "moat: kernels: 12345678901 0.000000 wi?ld\n");
    const struct kernel_stats counted = {
        .name = first,
        .launches = 1,
        .time = {1000, 2000},
        .counters = {.warp_insns = 10, .thread_insns = 80, .stores = {[2] = 7}},
    };
    expect_table(
        &counted, 1,
        "moat: kernels: launches  seconds cpu-seconds warp-insns thread-insns active-% st-shared kernel\n"
        "moat: kernels:        1 0.000001    0.000002         10           80     25.0         7 first\n");
}

// Returns what kernel_stats_print writes to standard error.
static size_t printed(char *to, size_t size)
{
    int ends[2], saved = dup(STDERR_FILENO);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDERR_FILENO);
    kernel_stats_print();
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(ends[1]);
    ssize_t n = read(ends[0], to, size - 1);
    close(ends[0]);
    assert_true(n >= 0);
    to[n] = 0;
    return (size_t)n;
}

static void good_what_is_new(void **state)
{
    char text[1000];
    struct kernel_stats_launch *a = kernel_stats_begin(STR("alpha")), *b = kernel_stats_begin(STR("beta"));
    assert_non_null(a);
    assert_ptr_equal(kernel_stats_counters(a), &a->counters);
    kernel_stats_counters(a)->loads[1] = 5;
    kernel_stats_clock(a)->wall = 1;
    kernel_stats_end(a);
    kernel_stats_end(b);  // it never began
    assert_true(printed(text, sizeof text) > 0);
    assert_non_null(strstr(text, "alpha\n"));
    assert_non_null(strstr(text, "ld-global"));
    assert_null(strstr(text, "beta"));
    assert_int_equal(printed(text, sizeof text), 0);

    b = kernel_stats_begin(STR("beta"));
    kernel_stats_clock(b)->wall = 1;
    kernel_stats_end(b);
    assert_true(printed(text, sizeof text) > 0);
    assert_null(strstr(text, "alpha"));
    assert_non_null(strstr(text, "beta\n"));
}

static void bad_memory(void **state)
{
    static const char name[] = "a kernel with a name that is new";
    for (long n = 0; n < 3; n++) {
        mem_fail_after(n);
        struct kernel_stats_launch *l = kernel_stats_begin(str_from(name));
        mem_fail_after(-1);
        assert_true(n < 2 ? !l : l != NULL);
        kernel_stats_end(l);
    }
    assert_null(kernel_stats_counters(NULL));
    assert_null(kernel_stats_clock(NULL));
}

int main(void)
{
    setenv("MOAT_OPTIONS", "stats", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_columns_that_are_used),
        cmocka_unit_test(good_what_is_new),
        cmocka_unit_test(bad_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
