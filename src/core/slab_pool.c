// SPDX-License-Identifier: MIT
// A fork copies the memory of all threads as it is at some point of each one's stores, in their order. So
// that a child can continue with what it finds, the stores here are ordered so that an object is leaked at
// worst: it leaves the pool's lists before any other thread can have linked it elsewhere.
#include "core/lock.h"
#include "core/slab_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/fail_after.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define HIDE(object, size) \
    ASAN_POISON_MEMORY_REGION((char *)(object) + sizeof(void *), (size) - sizeof(void *))
#define SHOW(object, size) ASAN_UNPOISON_MEMORY_REGION(object, size)
#else
#define HIDE(object, size) ((void)0)
#define SHOW(object, size) ((void)0)
#endif

// A large pool uses huge pages: its objects are accessed in random order, and each access would otherwise
// miss the TLB.
enum { CHUNK = 256 * 1024, HUGE = 2 << 20, LARGE = HUGE };

static _Atomic long remaining = FAIL_AFTER_NEVER;

void slab_pool_fail_after(long n)
{
    fail_after_set(&remaining, n);
}

static void *next_of(void *object)
{
    return *(void **)object;
}

static char *map(size_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

// Returns memory aligned for a huge page. Where the system has none to give, ordinary pages back it.
static char *map_huge(void)
{
    char *memory = map(2 * HUGE);
    if (!memory)
        return NULL;
    size_t before = -(uintptr_t)memory % HUGE;
    if (before)
        munmap(memory, before);
    munmap(memory + before + HUGE, HUGE - before);
    madvise(memory + before, HUGE, MADV_HUGEPAGE);
    return memory + before;
}

// Requires that no fresh memory is left. Returns false if out of memory.
static bool map_chunk(struct slab_pool *pool)
{
    size_t bytes = CHUNK;
    int saved = errno;
    char *memory = NULL;
    if (bytes < pool->size * 4)
        bytes = (pool->size * 4 + 4095) & ~(size_t)4095;
    if (bytes == CHUNK && slab_pool_mapped(pool) >= LARGE && (memory = map_huge()))
        bytes = HUGE;
    else
        memory = map(bytes);
    errno = saved;
    if (!memory)
        return false;
    // The lock is held; the memory orders are for the copy that a fork makes.
    atomic_store_explicit(&pool->fresh, memory, memory_order_release);
    atomic_store_explicit(&pool->left, bytes / pool->size, memory_order_release);
    size_t mapped = atomic_load_explicit(&pool->mapped, memory_order_relaxed);
    atomic_store_explicit(&pool->mapped, mapped + bytes, memory_order_relaxed);
    return true;
}

// Moves returned objects to the front of the free list: they were used last and are likely in the caches.
static void take_returned(struct slab_pool *pool)
{
    if (!atomic_load_explicit(&pool->returned, memory_order_relaxed))
        return;
    // Acquire: pairs with slab_pool_put, so that all accesses of an object's former user happen before ours.
    // The whole list is taken at once, so that no object can come back between reading its link and removing
    // it.
    void *first = atomic_exchange_explicit(&pool->returned, NULL, memory_order_acquire);
    void *last = first;
    while (next_of(last))
        last = next_of(last);
    *(void **)last = atomic_load_explicit(&pool->free, memory_order_relaxed);
    atomic_store_explicit(&pool->free, first, memory_order_release);
}

static void *take(struct slab_pool *pool)
{
    if (!fail_after_next(&remaining))
        return NULL;
    void *object = atomic_load_explicit(&pool->free, memory_order_relaxed);
    if (object) {
        atomic_store_explicit(&pool->free, next_of(object), memory_order_release);
        SHOW(object, pool->size);
        return object;
    }
    size_t left = atomic_load_explicit(&pool->left, memory_order_relaxed);
    if (!left) {
        if (!map_chunk(pool))
            return NULL;
        left = atomic_load_explicit(&pool->left, memory_order_relaxed);
    }
    atomic_store_explicit(&pool->left, left - 1, memory_order_release);
    char *fresh = atomic_load_explicit(&pool->fresh, memory_order_relaxed);
    atomic_store_explicit(&pool->fresh, fresh + pool->size, memory_order_release);
    return fresh;
}

int slab_pool_get_many(struct slab_pool *pool, void **objects, unsigned n)
{
    assert(pool->size >= sizeof(void *) && pool->size % pool->align == 0 && pool->align <= 4096);
    unsigned got = 0;
    lock_take(&pool->lock);
    take_returned(pool);
    while (got < n && (objects[got] = take(pool)))
        got++;
    lock_give(&pool->lock);
    if (got == n)
        return 0;
    while (got)
        slab_pool_put(pool, objects[--got]);
    return -ENOMEM;
}

void *slab_pool_get(struct slab_pool *pool)
{
    void *object;
    return slab_pool_get_many(pool, &object, 1) ? NULL : object;
}

void slab_pool_put(struct slab_pool *pool, void *object)
{
    if (!object)
        return;
    HIDE(object, pool->size);
    void *head = atomic_load_explicit(&pool->returned, memory_order_relaxed);
    // Release: pairs with the exchange in take_returned.
    do
        *(void **)object = head;
    while (!atomic_compare_exchange_weak_explicit(&pool->returned, &head, object, memory_order_release,
                                                  memory_order_relaxed));
}

size_t slab_pool_mapped(const struct slab_pool *pool)
{
    return atomic_load_explicit(&pool->mapped, memory_order_relaxed);
}

void slab_pool_after_fork(struct slab_pool *pool)
{
    lock_after_fork(&pool->lock);
}
