// SPDX-License-Identifier: MIT
#include "base/map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"

enum { MANY = 5000 };
static char names[MANY][16];

static struct str name(int i)
{
    return (struct str){names[i], (size_t)snprintf(names[i], sizeof names[i], "%%r%d", i)};
}

static void good_finds_what_was_put(void **state)
{
    struct map m = {0};
    for (int i = 0; i < MANY; i++)
        assert_int_equal(map_put(&m, name(i), (uint32_t)i), 0);
    assert_int_equal(m.count, MANY);
    assert_true(m.count <= (m.mask + 1) / 4 * 3);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(map_get(&m, name(i)), i);
    map_free(&m);
    map_free(&m);
}

static void good_put_replaces(void **state)
{
    struct map m = {0};
    assert_int_equal(map_put(&m, STR("a"), 1), 0);
    assert_int_equal(map_put(&m, STR("a"), 2), 0);
    assert_int_equal(map_get(&m, STR("a")), 2);
    assert_int_equal(m.count, 1);
    map_free(&m);
}

static void good_keys_differ_in_length_and_zero_bytes(void **state)
{
    struct map m = {0};
    assert_int_equal(map_put(&m, STR(""), 1), 0);
    assert_int_equal(map_put(&m, STR("a"), 2), 0);
    assert_int_equal(map_put(&m, STR("a\0b"), 3), 0);
    assert_int_equal(map_put(&m, STR("a\0c"), 4), 0);
    assert_int_equal(map_get(&m, STR("")), 1);
    assert_int_equal(map_get(&m, STR("a")), 2);
    assert_int_equal(map_get(&m, STR("a\0b")), 3);
    assert_int_equal(map_get(&m, STR("a\0c")), 4);
    map_free(&m);
}

static void bad_key_is_absent(void **state)
{
    struct map m = {0};
    assert_int_equal(map_get(&m, STR("a")), MAP_NONE);
    assert_int_equal(map_put(&m, STR("a"), 1), 0);
    assert_int_equal(map_get(&m, STR("b")), MAP_NONE);
    map_free(&m);
}

static void bad_growth_without_memory_keeps_the_map(void **state)
{
    struct map m = {0};
    int n = 0;
    for (long failing = 0; failing < 4; failing++) {
        mem_fail_after(failing ? 1 : 0);
        while (n < MANY && !map_put(&m, name(n), (uint32_t)n))
            n++;
        assert_int_equal(map_put(&m, name(n), 0), -ENOMEM);
        mem_fail_after(-1);
        for (int i = 0; i < n; i++)
            assert_int_equal(map_get(&m, name(i)), i);
        assert_int_equal(map_get(&m, name(n)), MAP_NONE);
    }
    assert_true(n > 100);
    map_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_finds_what_was_put),
        cmocka_unit_test(good_put_replaces),
        cmocka_unit_test(good_keys_differ_in_length_and_zero_bytes),
        cmocka_unit_test(bad_key_is_absent),
        cmocka_unit_test(bad_growth_without_memory_keeps_the_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
