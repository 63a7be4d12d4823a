// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fence/fence_ranges.h"

static struct kfence_range widest_of(const struct kfence_range *from, size_t n, uint64_t gap)
{
    struct fence_ranges r = {NULL, 0, 0};
    for (size_t i = 0; i < n; i++)
        assert_true(fence_ranges_add(&r, from[i].base, from[i].end, NULL));
    struct kfence_range widest = fence_ranges_widest(&r, gap);
    fence_ranges_free(&r);
    return widest;
}

static void widest_piece(void **state)
{
    const struct kfence_range ranges[] = {{0x500, 0x510}, {0x100, 0x108}, {0x120, 0x140}, {0x148, 0x150}};
    struct kfence_range found = widest_of(ranges, 4, 64);
    assert_int_equal(found.base, 0x100);
    assert_int_equal(found.end, 0x150);
    // A gap of just so many bytes is one.
    found = widest_of(ranges, 4, 0x18);
    assert_int_equal(found.base, 0x120);
    assert_int_equal(found.end, 0x150);
    found = widest_of(ranges, 1, 64);
    assert_int_equal(found.base, 0x500);
    found = widest_of(ranges, 0, 64);
    assert_int_equal(found.base, found.end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(widest_piece)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
