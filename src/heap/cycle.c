// SPDX-License-Identifier: MIT
#include "heap/cycle.h"

#include <stdatomic.h>

// Four sums per doubling of a cycle's length in microseconds: the time that was spent in cycles of that
// length.
enum { SUMS = 4 * 40 };
static _Atomic uint64_t sums[SUMS];  // relaxed, all: only added up

static unsigned sum_of(uint64_t us)
{
    if (us < 4)
        return (unsigned)us;
    unsigned log2 = 63 - (unsigned)__builtin_clzll(us), i = 4 * (log2 - 1) + (us >> (log2 - 2) & 3);
    return i < SUMS ? i : SUMS - 1;
}

static uint64_t largest(unsigned i)
{
    return i < 4 ? i : ((uint64_t)(4 + i % 4 + 1) << (i / 4 - 1)) - 1;
}

void cycle_note(uint64_t ns)
{
    atomic_fetch_add_explicit(&sums[sum_of(ns / 1000)], ns / 1000 + 1, memory_order_relaxed);
}

uint64_t cycle_quantile(unsigned percent)
{
    uint64_t all = 0, seen = 0;
    for (unsigned i = 0; i < SUMS; i++)
        all += atomic_load_explicit(&sums[i], memory_order_relaxed);
    for (unsigned i = 0; i < SUMS; i++) {
        seen += atomic_load_explicit(&sums[i], memory_order_relaxed);
        if (all && seen >= all / 100 * percent + all % 100 * percent / 100)
            return largest(i);
    }
    return 0;
}

void cycle_forget(void)
{
    for (unsigned i = 0; i < SUMS; i++)
        atomic_store_explicit(&sums[i], 0, memory_order_relaxed);
}
