// SPDX-License-Identifier: MIT
#include "base/mem.h"

#include <stdlib.h>

#include "base/fail_after.h"

static _Atomic long remaining = FAIL_AFTER_NEVER;

void mem_fail_after(long n)
{
    fail_after_set(&remaining, n);
}

void *mem_alloc(size_t size)
{
    return fail_after_next(&remaining) ? malloc(size ? size : 1) : NULL;
}

void *mem_zalloc(size_t count, size_t size)
{
    return fail_after_next(&remaining) ? calloc(count ? count : 1, size ? size : 1) : NULL;
}

void *mem_realloc(void *old, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || !fail_after_next(&remaining))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

void mem_free(void *ptr)
{
    free(ptr);
}
