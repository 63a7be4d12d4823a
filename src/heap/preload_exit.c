// SPDX-License-Identifier: MIT
// The ways to end a process that run no destructors. The heap is checked once more; then the process ends as
// it would have. Not in the archive that tests and the command are linked with.
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "heap/heap_life.h"
#include "heap/next_malloc.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT __attribute__((noreturn)) void _exit(int status)
{
    heap_life_end_here();
    if (next_malloc.exit_now)
        next_malloc.exit_now(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

EXPORT __attribute__((noreturn)) void _Exit(int status)
{
    _exit(status);
}

EXPORT __attribute__((noreturn)) void abort(void)
{
    heap_life_end_here();
    if (next_malloc.abort)
        next_malloc.abort();
    __builtin_trap();
}
