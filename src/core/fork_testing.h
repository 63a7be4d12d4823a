// SPDX-License-Identifier: MIT
// For tests: checks in a forked child that `works` returns true there. Include it after cmocka's header.
#ifndef MOAT_CORE_FORK_TESTING_H
#define MOAT_CORE_FORK_TESTING_H

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static inline void fork_testing_child(bool (*works)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (!pid)
        _exit(works() ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#endif
