// SPDX-License-Identifier: MIT
#include "guard/pages_canary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void every_byte_counts(void **state)
{
    uint8_t bytes[PAGES_CANARY_MOST], touched[PAGES_CANARY_MOST / 8];
    uint64_t seed = pages_canary_seed();
    uint32_t first = 0, last = 0;
    pages_canary_make(seed, 1, bytes, sizeof bytes);
    assert_int_equal(pages_canary_compare(seed, 1, bytes, sizeof bytes, touched, &first, &last), 0);
    for (uint32_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        assert_int_equal(pages_canary_compare(seed, 1, bytes, sizeof bytes, touched, &first, &last), 1);
        assert_true(first == i && last == i && touched[i / 8] == 1 << i % 8);
        bytes[i] ^= 1;
    }
    bytes[3] = bytes[200] = 0;
    assert_int_equal(pages_canary_compare(seed, 1, bytes, sizeof bytes, touched, &first, &last), 2);
    assert_true(first == 3 && last == 200);
    // A shorter one is the beginning of a longer one, and what lies behind it does not matter.
    assert_int_equal(pages_canary_compare(seed, 1, bytes, 3, touched, &first, &last), 0);
}

static void no_zeros(void **state)
{
    uint8_t bytes[PAGES_CANARY_MOST];
    for (unsigned i = 0; i < 100; i++) {
        pages_canary_make(pages_canary_seed(), i & 1, bytes, sizeof bytes);
        assert_null(memchr(bytes, 0, sizeof bytes));
    }
}

static void sides_and_seeds_differ(void **state)
{
    uint8_t a[64], b[64], c[64];
    uint64_t seed = pages_canary_seed();
    pages_canary_make(seed, 0, a, sizeof a);
    pages_canary_make(seed, 1, b, sizeof b);
    pages_canary_make(pages_canary_seed(), 0, c, sizeof c);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(no_zeros),
        cmocka_unit_test(sides_and_seeds_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
