// SPDX-License-Identifier: MIT
#include "base/modes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/option.h"

#define BIT(id) (1ull << OPTION_MODE_##id)

static void good_combinations(void **state)
{
    static const uint64_t good[] = {
        0,
        BIT(OFF),
        BIT(API),
        BIT(API) | BIT(CANARY),
        BIT(COUNT) | BIT(CANARY),
        BIT(COUNT) | BIT(PAGES),
        BIT(COUNT) | BIT(PAGES) | BIT(TALLY) | BIT(API),
        BIT(CHECK) | BIT(PAGES),
        BIT(CHECK) | BIT(CANARY),
    };
    char why[200];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_false(modes_conflict(good[i], why, sizeof why));
}

static void bad_combinations(void **state)
{
    char why[200];
    assert_true(modes_conflict(BIT(PAGES) | BIT(COUNT) | BIT(CANARY), why, sizeof why));
    assert_string_equal(why, "--mode: pages and canary both decide where buffers lie; choose one of them");
    assert_true(modes_conflict(BIT(COUNT) | BIT(CHECK), why, sizeof why));
    assert_string_equal(why,
                        "--mode: count and check both decide which code kernels are; choose one of them");
    assert_true(modes_conflict(BIT(OFF) | BIT(API), why, sizeof why));
    assert_string_equal(why, "--mode=off cannot be combined with other modes");
}

static void layouts(void **state)
{
    assert_int_equal(modes_with_layout(BIT(CHECK)), BIT(CHECK) | BIT(PAGES));
    assert_int_equal(modes_with_layout(BIT(SHADOW)), BIT(SHADOW) | BIT(CHECK) | BIT(PAGES));
    assert_int_equal(modes_with_layout(BIT(CHECK) | BIT(CANARY)), BIT(CHECK) | BIT(CANARY));
    assert_int_equal(modes_with_layout(BIT(COUNT) | BIT(API)), BIT(COUNT) | BIT(API));
    assert_int_equal(modes_with_layout(0), 0);
}

static void rewriting(void **state)
{
    struct options o = {.mode = BIT(CANARY), .kheap = true};
    assert_true(modes_rewrite(&o));
    o.kheap = false;
    assert_false(modes_rewrite(&o));
    o.mode = BIT(PAGES) | BIT(TALLY);
    o.kheap = true;
    assert_false(modes_rewrite(&o));
    o.mode |= BIT(COUNT);
    assert_true(modes_rewrite(&o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_combinations),
        cmocka_unit_test(bad_combinations),
        cmocka_unit_test(layouts),
        cmocka_unit_test(rewriting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
