// SPDX-License-Identifier: MIT
// With --heap-signals the program's actions for some signals are kept by heap_signals.c. All others, and all
// without that option, are the C library's business. Not in the archive that tests and the command are linked
// with.
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "heap/heap_signals.h"

#define EXPORT __attribute__((visibility("default")))

typedef void handler(int);

EXPORT int sigaction(int sig, const struct sigaction *restrict act, struct sigaction *restrict old)
{
    typedef int next_function(int, const struct sigaction *, struct sigaction *);
    static next_function *_Atomic next;
    if (heap_signals_has(sig))
        return heap_signals_action(sig, act, old);
    next_function *f = atomic_load_explicit(&next, memory_order_relaxed);  // relaxed: all find the same
    if (!f) {
        f = (next_function *)dlsym(RTLD_NEXT, "sigaction");
        atomic_store_explicit(&next, f, memory_order_relaxed);
    }
    return f(sig, act, old);
}

EXPORT handler *signal(int sig, handler *action)
{
    typedef handler *next_function(int, handler *);
    static next_function *_Atomic next;
    if (heap_signals_has(sig)) {
        struct sigaction a = {.sa_handler = action, .sa_flags = SA_RESTART}, old;
        sigaddset(&a.sa_mask, sig);
        return heap_signals_action(sig, &a, &old) ? SIG_ERR : old.sa_handler;
    }
    next_function *f = atomic_load_explicit(&next, memory_order_relaxed);
    if (!f) {
        f = (next_function *)dlsym(RTLD_NEXT, "signal");
        atomic_store_explicit(&next, f, memory_order_relaxed);
    }
    return f(sig, action);
}
