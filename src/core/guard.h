// SPDX-License-Identifier: MIT
// libmoat.so: stands between a program and its libcuda. The state that all of it shares.
//
// A call of the driver API comes in through forward.c. Calls that hooks.def names go to a hook_*.c, which checks or
// records (track.h, bounds.h) and passes on to the driver; the others go on by the same jump. What is found goes out
// through guard_report.h.
//
// Rules for hooks: no malloc, no stdio, no lock held across a call into the driver or the application. If something of
// ours fails the call is passed on as it came, and the failure is counted.
#ifndef MOAT_CORE_GUARD_H
#define MOAT_CORE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "driver/driver.h"
#include "driver/driver_fault.h"

enum guard_count {
#define STAT(id, key, covered, label) GUARD_##id,
#include "core/stats.def"
#undef STAT
    GUARD_COUNTS
};

struct guard {
    struct driver real;
    char real_path[512];
    driver_fault_fn *real_fault;      // the CPU device tells what a context died of; NULL: others do not
    driver_skipped_fn *real_skipped;  // with --on-error=skip, where the device can; else NULL
    struct options options;
    struct option_set option_set;
    bool options_read;  // else defaults hold, of which strings are NULL
    bool watching;      // false: every call passes as it is
    _Atomic uint64_t counts[GUARD_COUNTS];
};

extern struct guard guard;

// Counters are relaxed: each is a number of its own, read at the end.
static inline void guard_count(enum guard_count which)
{
    atomic_fetch_add_explicit(&guard.counts[which], 1, memory_order_relaxed);
}

static inline void guard_add(enum guard_count which, uint64_t n)
{
    atomic_fetch_add_explicit(&guard.counts[which], n, memory_order_relaxed);
}

// For what counts the most that there was of something.
static inline void guard_most(enum guard_count which, uint64_t value)
{
    uint64_t most = atomic_load_explicit(&guard.counts[which], memory_order_relaxed);
    while (value > most && !atomic_compare_exchange_weak_explicit(&guard.counts[which], &most, value,
                                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

#endif
