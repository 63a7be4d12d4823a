// SPDX-License-Identifier: MIT
// The public names of the heap's functions. Not in the archive that tests and the command are linked with,
// where they would replace libc's.
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heap/heap.h"
#include "heap/heap_fast.h"
#include "heap/heap_life.h"

#define EXPORT __attribute__((visibility("default")))

static __attribute__((constructor(101))) void start(void)
{
    heap_life_start();
    at_quick_exit(heap_life_end);  // registered first, so it runs last
}

static __attribute__((destructor(101))) void end(void)
{
    heap_life_end();
}

EXPORT void *malloc(size_t size)
{
    return heap_fast_alloc(HEAP_CALL, size, BLOCK_MALLOC);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_expect(__builtin_mul_overflow(count, size, &bytes), 0))
        return heap_no_memory();
    if (bytes > THREAD_CACHE_FINE)
        return heap_calloc(HEAP_CALL, bytes);
    void *p = heap_fast_alloc(HEAP_CALL, bytes, BLOCK_CALLOC);
    return p ? memset(p, 0, bytes) : NULL;
}

EXPORT void *realloc(void *p, size_t size)
{
    return heap_fast_realloc(HEAP_CALL, p, size);
}

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return heap_no_memory();
    return heap_fast_realloc(HEAP_CALL, p, bytes);
}

EXPORT void free(void *p)
{
    if (__builtin_expect(heap_settings.lazy, 0))
        heap_lazy_free_entry(HEAP_CALL, p);
    else
        heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "free");
}

EXPORT void cfree(void *p);
EXPORT void cfree(void *p)
{
    heap_fast_free(HEAP_CALL, p, BLOCK_MALLOC, "cfree");
}

static int is_power_of_two(size_t n)
{
    return n && !(n & (n - 1));
}

EXPORT int posix_memalign(void **to, size_t align, size_t size)
{
    if (!is_power_of_two(align) || align % sizeof(void *))
        return EINVAL;
    int saved = errno;
    void *p = heap_alloc(HEAP_CALL, size, align, BLOCK_ALIGNED);
    errno = saved;
    if (!p)
        return ENOMEM;
    *to = p;
    return 0;
}

// As glibc does, rounds an alignment up to a power of two.
static size_t whole_power(size_t align)
{
    return align <= 16 ? 16 : (size_t)1 << (64 - __builtin_clzll(align - 1));
}

static void *aligned(const void *from, const void *frame, size_t align, size_t size)
{
    if (align > (size_t)1 << 46) {
        errno = EINVAL;
        return NULL;
    }
    return heap_alloc(from, frame, size, whole_power(align), BLOCK_ALIGNED);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    return aligned(HEAP_CALL, align, size);
}

EXPORT void *memalign(size_t align, size_t size)
{
    return aligned(HEAP_CALL, align, size);
}

EXPORT void *valloc(size_t size)
{
    return aligned(HEAP_CALL, (size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void *pvalloc(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole;
    if (__builtin_add_overflow(size, page - 1, &whole)) {
        errno = ENOMEM;
        return NULL;
    }
    return aligned(HEAP_CALL, page, whole / page * page);
}

EXPORT size_t malloc_usable_size(void *p)
{
    return heap_usable(p);
}
