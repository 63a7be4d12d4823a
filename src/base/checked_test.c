// SPDX-License-Identifier: MIT
#include "base/checked.h"

#include <pthread.h>
#include <sched.h>
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

static void fail_it(void)
{
    checked_assert(look(false) && 1 + 1 == 2);
}

static void *fail_apart(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    unshare(CLONE_FILES);
    close(STDERR_FILENO);
    fail_it();
    return NULL;
}

// Fails in a thread with all signals blocked and descriptors of its own.
static void fail_in_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fail_apart, NULL) == 0)
        pthread_join(thread, NULL);
}

// Runs `way` in a child and returns its wait status; text receives the child's standard error.
static int fail_in_child(void (*way)(void), char *text, size_t size)
{
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        signal(SIGILL, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
        way();
        _exit(7);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void expect_end(void (*way)(void))
{
    char text[400];
    int status = fail_in_child(way, text, sizeof text);
    if (!CHECKED) {
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        assert_string_equal(text, "");
        return;
    }
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "base/checked_test.c:"));
    assert_non_null(strstr(text, ": does not hold: look(false) && 1 + 1 == 2\n"));
}

static void test_false(void **state)
{
    expect_end(fail_it);
}

static void test_false_in_thread(void **state)
{
    expect_end(fail_in_thread);
}

static void fail_ignored(void)
{
    signal(SIGABRT, SIG_IGN);
    fail_it();
}

static void test_signal_ignored(void **state)
{
    char text[400];
    int status = fail_in_child(fail_ignored, text, sizeof text);
    assert_true(CHECKED ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_true),
        cmocka_unit_test(test_false),
        cmocka_unit_test(test_false_in_thread),
        cmocka_unit_test(test_signal_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
