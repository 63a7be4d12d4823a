// SPDX-License-Identifier: MIT
#include "base/vec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

struct pair {
    int a, b;
};

static void good_push_keeps_all(void **state)
{
    VEC(struct pair) v = {0};
    for (int i = 0; i < 1000; i++)
        assert_int_equal(vec_push(&v, (struct pair){i, -i}), 0);
    assert_int_equal(v.len, 1000);
    assert_true(v.len <= v.cap);
    for (int i = 0; i < 1000; i++)
        assert_true(v.items[i].a == i && v.items[i].b == -i);
    vec_free(&v);
    assert_null(v.items);
    assert_int_equal(v.len + v.cap, 0);
    vec_free(&v);
}

static void good_reserved_room_does_not_move(void **state)
{
    VEC(int) v = {0};
    assert_int_equal(vec_reserve(&v, 100), 0);
    const int *items = v.items;
    for (int i = 0; i < 100; i++)
        assert_int_equal(vec_push(&v, i), 0);
    assert_ptr_equal(items, v.items);
    vec_free(&v);
}

static void bad_push_without_memory_keeps_items(void **state)
{
    for (long n = 0; n < 4; n++) {
        VEC(int) v = {0};
        int pushed = 0;
        mem_fail_after(n);
        while (!vec_push(&v, pushed))
            pushed++;
        mem_fail_after(-1);
        assert_int_equal(pushed, n ? 8 << n : 0);
        assert_int_equal(v.len, pushed);
        for (int i = 0; i < pushed; i++)
            assert_int_equal(v.items[i], i);
        vec_free(&v);
    }
}

static void bad_reserve_of_too_much(void **state)
{
    VEC(uint64_t) v = {0};
    assert_int_equal(vec_reserve(&v, SIZE_MAX / 4), -ENOMEM);
    assert_int_equal(vec_push(&v, 7), 0);
    assert_int_equal(v.items[0], 7);
    vec_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_push_keeps_all),
        cmocka_unit_test(good_reserved_room_does_not_move),
        cmocka_unit_test(bad_push_without_memory_keeps_items),
        cmocka_unit_test(bad_reserve_of_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
