// SPDX-License-Identifier: MIT
// The order of locks, which checked builds assert: each wrong use ends a child process, and its correct twin
// does not.
#include "core/lock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct lock first = LOCK_INIT(SCAN), second = LOCK_INIT(TRACK), other = LOCK_INIT(TRACK);
static struct lock again = LOCK_INIT_RECURSIVE(CONTEXT_ENDS);

// Returns true if f was stopped by an assertion.
static bool is_stopped(void (*f)(void))
{
    int status;
    pid_t child = fork();
    if (!child) {
        close(STDERR_FILENO);
        f();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void ascend(void)
{
    lock_take(&again);
    lock_take(&again);
    lock_take(&first);
    lock_take(&second);
    lock_give(&first);
    lock_give(&second);
    lock_give(&again);
    lock_give(&again);
}

static void descend(void)
{
    lock_take(&second);
    lock_take(&first);
}

static void two_of_one_rank(void)
{
    lock_take(&second);
    lock_take(&other);
}

static void try_below(void)
{
    lock_take(&second);
    if (!lock_try(&first))
        _exit(1);
    lock_give(&first);
    lock_give(&second);
}

static void give_what_is_not_held(void)
{
    lock_give(&first);
}

static void after_a_fork(void)
{
    lock_take(&second);
    lock_after_fork(&second);
    lock_forget_held();
    ascend();
}

static void good_orders(void **state)
{
    assert_false(is_stopped(ascend));
    assert_false(is_stopped(try_below));
    assert_false(is_stopped(after_a_fork));
}

static void bad_orders(void **state)
{
    if (!CHECKED)
        skip();
    assert_true(is_stopped(descend));
    assert_true(is_stopped(two_of_one_rank));
    assert_true(is_stopped(give_what_is_not_held));
}

static void held(void **state)
{
    lock_take(&first);
    assert_true(lock_is_held(&first));
    assert_true(!CHECKED || !lock_is_held(&second));
    lock_give(&first);
    assert_true(!CHECKED || !lock_is_held(&first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_orders),
        cmocka_unit_test(bad_orders),
        cmocka_unit_test(held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
