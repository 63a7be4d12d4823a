// SPDX-License-Identifier: MIT
#include "base/mem.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

// Relaxed: a test sets it before the code under test runs, in the same thread.
static _Atomic long remaining = -1;

static bool may_allocate(void)
{
    long left = atomic_load_explicit(&remaining, memory_order_relaxed);
    if (left < 0)
        return true;
    if (left == 0)
        return false;
    atomic_store_explicit(&remaining, left - 1, memory_order_relaxed);
    return true;
}

void mem_fail_after(long n)
{
    atomic_store_explicit(&remaining, n, memory_order_relaxed);
}

void *mem_alloc(size_t size)
{
    return may_allocate() ? malloc(size ? size : 1) : NULL;
}

void *mem_zalloc(size_t count, size_t size)
{
    return may_allocate() ? calloc(count ? count : 1, size ? size : 1) : NULL;
}

void *mem_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !may_allocate())
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

void mem_free(void *ptr)
{
    free(ptr);
}
