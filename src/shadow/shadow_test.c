// SPDX-License-Identifier: MIT
// The encoding of the shadow against its definition, for every number of accessible bytes and every aligned
// access of a granule.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "kcheck/kcheck_shadow.h"

// An access is right if all its bytes are among the first n of the granule. The quick test may refuse only
// the one byte that no encoding by 256 values can tell from none.
static void encoding_is_exact(void **state)
{
    static const unsigned shifts[] = {3, 7, 8};
    for (unsigned s = 0; s < sizeof shifts / sizeof *shifts; s++) {
        uint32_t size = 1u << shifts[s];
        for (uint32_t n = 0; n <= size; n++)
            for (uint32_t width = 1; width <= 32 && width <= size; width *= 2)
                for (uint32_t at = 0; at < size; at += width) {
                    bool wrong = kcheck_shadow_is_wrong(shifts[s], kcheck_shadow_byte(shifts[s], n),
                                                        0x7000 + at, width);
                    bool cannot_tell = shifts[s] == 8 && n == 1 && !at && width == 1;
                    assert_int_equal(wrong, at + width > n || cannot_tell);
                }
    }
}

static void poison_forbids_all(void **state)
{
    for (unsigned shift = 3; shift <= 8; shift += shift == 3 ? 4 : 1)
        for (uint32_t at = 0; at < 1u << shift; at++)
            assert_true(kcheck_shadow_is_wrong(shift, KCHECK_SHADOW_POISON, at, 1));
}

static void zero_allows_all(void **state)
{
    assert_int_equal(kcheck_shadow_byte(8, 256), 0);
    for (uint32_t at = 0; at < 256; at += 4)
        assert_false(kcheck_shadow_is_wrong(8, 0, at, 4));
}

// What is just below 0 has a byte too.
static void addresses_are_cut(void **state)
{
    assert_int_equal(kcheck_shadow_offset(8, (uint64_t)-4), ((uint64_t)1 << 40) - 1);
    assert_int_equal(kcheck_shadow_offset(8, 0x7fff12345678), 0x7fff123456);
    assert_int_equal(kcheck_shadow_offset(3, 8), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoding_is_exact),
        cmocka_unit_test(poison_forbids_all),
        cmocka_unit_test(zero_allows_all),
        cmocka_unit_test(addresses_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
