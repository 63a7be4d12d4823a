// SPDX-License-Identifier: MIT
#include "base/checked.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static int evaluated;

static bool look(bool answer)
{
    evaluated++;
    return answer;
}

static void test_true(void **state)
{
    evaluated = 0;
    checked_assert(look(true));
    assert_int_equal(evaluated, CHECKED);
}

// In a child, whose standard error comes back in text. handled: the program has a handler for the signal.
static int fail_in_child(bool handled, char *text, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, handled ? SIG_IGN : SIG_DFL);
        signal(SIGILL, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
        checked_assert(look(false) && 1 + 1 == 2);
        _exit(7);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_false(void **state)
{
    char text[400];
    int status = fail_in_child(false, text, sizeof text);
    if (!CHECKED) {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        assert_string_equal(text, "");
        return;
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "base/checked_test.c:"));
    assert_non_null(strstr(text, ": does not hold: look(false) && 1 + 1 == 2\n"));
}

static void test_signal_ignored(void **state)
{
    char text[400];
    int status = fail_in_child(true, text, sizeof text);
    assert_true(CHECKED ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true),
        cmocka_unit_test(test_false),
        cmocka_unit_test(test_signal_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
