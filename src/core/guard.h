// SPDX-License-Identifier: MIT
// The state that all parts of libmoat.so share. libmoat.so stands between a program and its libcuda.
//
// A call of the driver API comes in through forward.c. Calls that hooks.def names go to a hook_*.c, which
// checks or records them (track.h, bounds.h) and passes them on to the driver; all others jump to the driver
// directly. Errors that are found go out through guard_report.h.
//
// Rules for hooks: no malloc, no stdio, no lock held across a call into the driver or the application. If
// moat itself fails, the call is passed on unchanged and the failure is counted.
#ifndef MOAT_CORE_GUARD_H
#define MOAT_CORE_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/option.h"
#include "driver/driver.h"
#include "driver/driver_fault.h"
#include "driver/driver_ptx.h"

enum guard_count {
#define STAT(id, key, covered, label) GUARD_##id,
#include "core/stats.def"
#undef STAT
    GUARD_COUNTS
};

struct guard {
    struct driver real;
    char real_path[512];
    driver_fault_fn *real_fault;              // reports what killed a context (CPU device); NULL: not offered
    driver_skipped_fn *real_skipped;          // with --on-error=skip, if the device offers it; else NULL
    driver_kernel_heap_fn *real_kernel_heap;  // (CPU device); NULL: not offered
    struct options options;
    struct option_set option_set;
    bool options_read;    // false: defaults hold, and strings are NULL
    bool watching;        // false: every call is passed on unchanged
    _Atomic bool paused;  // moat_pause; relaxed, both: they stand alone
    _Atomic bool was_paused;
    _Atomic uint64_t counts[GUARD_COUNTS];
};

extern struct guard guard;

// Counters are relaxed: each is independent of the others and is read at the end.
static inline void guard_count(enum guard_count which)
{
    atomic_fetch_add_explicit(&guard.counts[which], 1, memory_order_relaxed);
}

static inline void guard_add(enum guard_count which, uint64_t n)
{
    atomic_fetch_add_explicit(&guard.counts[which], n, memory_order_relaxed);
}

// Raises a counter that holds a maximum.
static inline void guard_most(enum guard_count which, uint64_t value)
{
    uint64_t most = atomic_load_explicit(&guard.counts[which], memory_order_relaxed);
    while (value > most && !atomic_compare_exchange_weak_explicit(&guard.counts[which], &most, value,
                                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

#endif
