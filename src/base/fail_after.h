// SPDX-License-Identifier: MIT
// For tests: allocations that fail from the n-th one on.
#ifndef MOAT_BASE_FAIL_AFTER_H
#define MOAT_BASE_FAIL_AFTER_H

#include <stdatomic.h>
#include <stdbool.h>

#define FAIL_AFTER_NEVER (-1)

// Returns whether the next allocation succeeds, and counts it. *remaining is the number of allocations that
// will succeed; FAIL_AFTER_NEVER: all. Relaxed order suffices: a test sets the number before the code under
// test runs, or does not care which of several threads is refused.
static inline bool fail_after_next(_Atomic long *remaining)
{
    long left = atomic_load_explicit(remaining, memory_order_relaxed);
    if (left < 0)
        return true;
    if (left == 0)
        return false;
    atomic_store_explicit(remaining, left - 1, memory_order_relaxed);
    return true;
}

static inline void fail_after_set(_Atomic long *remaining, long n)
{
    atomic_store_explicit(remaining, n, memory_order_relaxed);
}

#endif
