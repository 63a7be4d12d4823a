// SPDX-License-Identifier: MIT
#include "runtime/rt_exit.h"

#include <stdatomic.h>

// Of the C++ ABI, in libc. A handler with a library of its own is run when the process exits or when
// __cxa_finalize is called for that library.
int __cxa_atexit(void (*handler)(void *), void *argument, void *library);
void __cxa_finalize(void *library);

// The handlers' library is none, because the runtime may be part of a library that is closed before the
// process exits: they would then run and take that for the exit.
static char no_library;

// Written by the exiting thread and read by it; atomic for threads that close libraries meanwhile.
static atomic_bool begun;

static void note(void *unused)
{
    atomic_store_explicit(&begun, true, memory_order_relaxed);
}

void rt_exit_watch(void)
{
    // Without memory for a handler modules are unloaded at exit, as if every library were closed.
    if (__cxa_atexit(note, 0, &no_library))
        return;
}

bool rt_exit_begun(void)
{
    return atomic_load_explicit(&begun, memory_order_relaxed);
}

// The code of the handlers leaves with the runtime's own library. Removing them runs them.
static void __attribute__((destructor)) forget(void)
{
    bool was = rt_exit_begun();
    __cxa_finalize(&no_library);
    atomic_store_explicit(&begun, was, memory_order_relaxed);
}
