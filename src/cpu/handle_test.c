// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cpu/cpu.h"

enum { MANY = 5000 };

static const void *at(uintptr_t i)
{
    return (const void *)(UINT64_C(0x100000) + 16 * i);
}

static void test_kinds(void **state)
{
    assert_int_equal(handle_add(at(1), HANDLE_MODULE), 0);
    assert_true(handle_is(at(1), HANDLE_MODULE));
    assert_false(handle_is(at(1), HANDLE_FUNCTION));
    assert_false(handle_is(at(2), HANDLE_MODULE));
    handle_remove(at(1));
    assert_false(handle_is(at(1), HANDLE_MODULE));
    assert_int_equal(handle_add(at(1), HANDLE_EVENT), 0);
    assert_true(handle_is(at(1), HANDLE_EVENT));
    handle_remove(at(1));
    handle_remove(at(1));
}

static void test_what_is_none(void **state)
{
    assert_false(handle_is(NULL, HANDLE_CONTEXT));
    handle_remove(NULL);
    for (uintptr_t p = 1; p < 64; p++)
        for (int kind = HANDLE_CONTEXT; kind <= HANDLE_LINK; kind++)
            assert_false(handle_is((const void *)p, (enum handle_kind)kind));
    assert_false(handle_is((const void *)UINTPTR_MAX, HANDLE_CONTEXT));
}

static void test_many(void **state)
{
    for (uintptr_t i = 0; i < MANY; i++)
        assert_int_equal(handle_add(at(i * 7), i % 2 ? HANDLE_STREAM : HANDLE_EVENT), 0);
    for (uintptr_t i = 0; i < MANY; i++)
        assert_true(handle_is(at(i * 7), i % 2 ? HANDLE_STREAM : HANDLE_EVENT));
    for (uintptr_t i = 0; i < MANY; i += 2)
        handle_remove(at(i * 7));
    for (uintptr_t i = 0; i < MANY; i++)
        assert_int_equal(handle_is(at(i * 7), i % 2 ? HANDLE_STREAM : HANDLE_EVENT), i % 2);
    for (uintptr_t i = 1; i < MANY; i += 2)
        handle_remove(at(i * 7));
}

// Handles that come and go do not fill the table, and those that stay are found at every moment.
static atomic_bool stop;

static void *look(void *arg)
{
    unsigned long missed = 0;
    while (!atomic_load(&stop))
        for (uintptr_t i = 0; i < 16; i++)
            missed += !handle_is(at(100000 + i), HANDLE_LIBRARY) + handle_is(at(200000 + i), HANDLE_LIBRARY);
    return (void *)missed;
}

static void test_churn_while_others_look(void **state)
{
    pthread_t thread;
    void *missed;
    for (uintptr_t i = 0; i < 16; i++)
        assert_int_equal(handle_add(at(100000 + i), HANDLE_LIBRARY), 0);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, look, NULL), 0);
    for (uintptr_t i = 0; i < 200000; i++) {
        assert_int_equal(handle_add(at(300000 + i), HANDLE_EVENT), 0);
        if (i >= 10)
            handle_remove(at(300000 + i - 10));
    }
    atomic_store(&stop, true);
    pthread_join(thread, &missed);
    assert_null(missed);
    for (uintptr_t i = 199990; i < 200000; i++)
        handle_remove(at(300000 + i));
    for (uintptr_t i = 0; i < 16; i++)
        handle_remove(at(100000 + i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_churn_while_others_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
