// SPDX-License-Identifier: MIT
// Pools of objects of one size, for code on the path of an application's call: memory comes from mmap, never from
// malloc. Memory once mapped stays mapped and holds objects of this size only, so that a pool's memory is bounded by
// the most objects that were ever in use at once.
#ifndef MOAT_CORE_SLAB_POOL_H
#define MOAT_CORE_SLAB_POOL_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/lock.h"

// A free object's first word links it to the next free one.
struct slab_pool {
    size_t size;               // of an object: a multiple of 8
    size_t align;              // of an object: a power of two, at most 4096
    struct lock lock;          // of what follows, but for `returned`
    _Atomic(void *) free;      // objects that may be given out
    _Atomic(char *) fresh;     // memory never given out yet ...
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

// n objects, or none and -ENOMEM.
int slab_pool_get_many(struct slab_pool *pool, void **objects, unsigned n);

// Never waits. NULL is fine.
void slab_pool_put(struct slab_pool *pool, void *object);

size_t slab_pool_mapped(const struct slab_pool *pool);  // bytes taken from the system

// In the child of a fork, before its first use there, while it has one thread. What another thread of the parent was
// about to take or map at the fork may be lost to the child; nothing is given out twice.
void slab_pool_after_fork(struct slab_pool *pool);

// For tests, for all pools: the object after n successful ones is refused, and so is every later one. n < 0: never.
void slab_pool_fail_after(long n);

#endif
