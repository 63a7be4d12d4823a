// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "explain/explain_times.h"

static void bins_are_in_order(void **state)
{
    unsigned before = 0;
    for (uint64_t v = 0; v < 1 << 20; v++) {
        unsigned bin = explain_times_bin(v);
        assert_true(bin == before || bin == before + 1);
        before = bin;
    }
    assert_int_equal(explain_times_bin(UINT64_MAX), EXPLAIN_TIMES_BINS - 1);
}

// Each value alone is reported as at least itself, and at most an eighth more.
static void bins_are_narrow(void **state)
{
    for (uint64_t v = 0; v < 1ull << 40; v = v + v / 3 + 1) {
        struct explain_times t = {0};
        explain_times_add(&t, v);
        uint64_t found = explain_times_part(&t, 500);
        assert_true(found >= v && found - v <= v / 8);
        assert_int_equal(explain_times_part(&t, 990), found);
    }
}

static void parts_are_right(void **state)
{
    struct explain_times t = {0};
    assert_int_equal(explain_times_part(&t, 500), 0);
    for (int i = 0; i < 1000; i++)
        explain_times_add(&t, i < 500 ? 1 : i < 990 ? 3 : 7);
    assert_int_equal(explain_times_part(&t, 500), 1);
    assert_int_equal(explain_times_part(&t, 501), 3);
    assert_int_equal(explain_times_part(&t, 990), 3);
    assert_int_equal(explain_times_part(&t, 991), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_are_in_order),
        cmocka_unit_test(bins_are_narrow),
        cmocka_unit_test(parts_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
