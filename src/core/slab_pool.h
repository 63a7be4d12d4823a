// SPDX-License-Identifier: MIT
// Pools of objects of one size, for code on the path of an application's call: memory comes from mmap, never
// from malloc. Memory once mapped stays mapped and holds objects of this size only, so a pool's memory is
// bounded by the most objects that were ever in use at once.
#ifndef MOAT_CORE_SLAB_POOL_H
#define MOAT_CORE_SLAB_POOL_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/lock.h"

// A free object's first word links it to the next free one.
struct slab_pool {
    size_t size;               // of an object; a multiple of 8
    size_t align;              // of an object; a power of two, at most 4096
    struct lock lock;          // protects the members below except `returned`
    _Atomic(void *) free;      // free list
    _Atomic(char *) fresh;     // memory never handed out yet ...
    _Atomic size_t left;       // ... and how many objects it holds
    _Atomic size_t mapped;     // bytes
    _Atomic(void *) returned;  // objects put back since `free` was last refilled; pushed without the lock
};

#define SLAB_POOL(type)                                                                       \
    {                                                                                         \
        .size = (sizeof(type) + 7) / 8 * 8, .align = _Alignof(type) < 8 ? 8 : _Alignof(type), \
        .lock = LOCK_INIT(SLAB_POOL),                                                         \
    }

void *slab_pool_get(struct slab_pool *pool);  // uninitialised; NULL when out of memory

// Takes n objects. Returns 0, or -ENOMEM, and then takes none.
int slab_pool_get_many(struct slab_pool *pool, void **objects, unsigned n);

// Puts an object back; NULL is fine. Never waits.
void slab_pool_put(struct slab_pool *pool, void *object);

size_t slab_pool_mapped(const struct slab_pool *pool);  // bytes taken from the system

// Call it in the child of a fork, before the pool's first use there, while the child has one thread. What
// another thread of the parent was about to take or map at the fork may be leaked in the child; no object is
// handed out twice.
void slab_pool_after_fork(struct slab_pool *pool);

// For tests: in all pools, n more objects can be taken and every later one is refused. n < 0: none is
// refused.
void slab_pool_fail_after(long n);

#endif
