// SPDX-License-Identifier: MIT
#include "cpu/event_share.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"

static void good_numbers(void **state)
{
    struct event_share *s = event_share_new();
    assert_non_null(s);
    assert_int_equal(event_share_last(s), 0);
    assert_true(event_share_ended(s, 0));
    uint64_t a = event_share_record(s), b = event_share_record(s);
    assert_true(a == 1 && b == 2 && event_share_last(s) == 2);
    // Records end in any order, each on its own.
    event_share_end(s, b);
    assert_true(!event_share_ended(s, a) && event_share_ended(s, b));
    event_share_end(s, a);
    assert_true(event_share_ended(s, a) && event_share_ended(s, b));
    // Records of long ago count as ended.
    for (int i = 0; i < 1000; i++)
        event_share_end(s, event_share_record(s));
    event_share_end(s, a);
    for (uint64_t n = 0; n <= 1002; n++)
        assert_true(event_share_ended(s, n));
    assert_false(event_share_ended(s, 1003));
    event_share_drop(s);
}

static void good_another_process(void **state)
{
    struct event_share *s = event_share_new(), *far;
    CUipcEventHandle handle;
    int status;
    event_share_handle(s, &handle);
    uint64_t n = event_share_record(s);
    pid_t child = fork();
    if (!child) {
        if (event_share_open(&handle, &far) || event_share_last(far) != n || event_share_ended(far, n))
            _exit(1);
        event_share_end(far, n);
        event_share_record(far);
        event_share_drop(far);
        _exit(0);
    }
    assert_true(waitpid(child, &status, 0) == child && status == 0);
    assert_true(event_share_ended(s, n) && event_share_last(s) == n + 1);
    event_share_drop(s);
    assert_int_equal(event_share_open(&handle, &far), CUDA_ERROR_INVALID_HANDLE);
}

// Handles of old events stay invalid when more events than there are states were made.
static void good_many(void **state)
{
    CUipcEventHandle first;
    struct event_share *s, *t;
    for (int i = 0; i < 20000; i++) {
        s = event_share_new();
        assert_non_null(s);
        if (!i)
            event_share_handle(s, &first);
        event_share_record(s);
        event_share_drop(s);
    }
    s = event_share_new();
    assert_int_equal(event_share_last(s), 0);
    assert_int_equal(event_share_open(&first, &t), CUDA_ERROR_INVALID_HANDLE);
    event_share_drop(s);
}

static void bad_handles(void **state)
{
    CUipcEventHandle handle;
    struct event_share *s = event_share_new(), *t;
    memset(&handle, 9, sizeof handle);
    assert_int_equal(event_share_open(&handle, &t), CUDA_ERROR_INVALID_HANDLE);
    event_share_handle(s, &handle);
    mem_fail_after(0);
    assert_int_equal(event_share_open(&handle, &t), CUDA_ERROR_OUT_OF_MEMORY);
    assert_null(event_share_new());
    mem_fail_after(-1);
    event_share_drop(s);
    event_share_drop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_numbers),
        cmocka_unit_test(good_another_process),
        cmocka_unit_test(good_many),
        cmocka_unit_test(bad_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
