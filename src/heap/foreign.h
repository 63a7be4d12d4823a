// SPDX-License-Identifier: MIT
// Pointers that are passed to free and have no valid head: blocks of another allocator, or errors.
#ifndef MOAT_HEAP_FOREIGN_H
#define MOAT_HEAP_FOREIGN_H

#include <stdatomic.h>

#include "heap/unmapped.h"
#include "heap/heap.h"

// Returns true if p is a block of the next allocator, obtained by a library that bypasses us; the caller must
// pass it on. Returns false if it was an error; that has been reported, and the caller must not touch p.
bool foreign_judge(void *p, const char *call, uint32_t site);

// A bit map of the 4 MiB ranges that contain heads, so that heads are never looked for in memory that may be
// unmapped. Blocks that may be unmapped one by one have a map of their own, which only the slow paths read,
// after asking unmapped.h.
enum { FOREIGN_GRAIN = 22 };
typedef _Atomic uint64_t foreign_words[1 << (47 - FOREIGN_GRAIN - 6)];
extern __attribute__((visibility("hidden"))) foreign_words foreign_map, foreign_mapped_map;

static inline void foreign_mark_in(foreign_words map, const void *block)
{
    uint64_t grain = ((uint64_t)(uintptr_t)block - BLOCK_HEAD) >> FOREIGN_GRAIN, bit = 1ull << grain % 64;
    _Atomic uint64_t *word = &map[grain / 64];
    // Relaxed, both: the thread that frees a block got its address from the thread that marked it.
    if (__builtin_expect(!(atomic_load_explicit(word, memory_order_relaxed) & bit), 0))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

static inline void foreign_mark(const void *block)
{
    foreign_mark_in(foreign_map, block);
}

static inline __attribute__((always_inline)) bool foreign_is_in(foreign_words map, const void *p)
{
    // For an unaligned address, the rotation moves the excess low bits above all others.
    uint64_t head = (uint64_t)(uintptr_t)p - BLOCK_HEAD, turned = head >> 4 | head << 60;
    uint64_t grain = turned >> (FOREIGN_GRAIN - 4), word = turned >> (FOREIGN_GRAIN - 4 + 6);
    return word < sizeof foreign_map / sizeof *foreign_map &&
           atomic_load_explicit(&map[word], memory_order_relaxed) >> grain % 64 & 1;
}

// Returns whether p may be one of our blocks that is not mapped by itself, so that its head can be read.
// False for NULL.
static inline bool foreign_may_be_ours(const void *p)
{
    return foreign_is_in(foreign_map, p);
}

// As foreign_may_be_ours, for all blocks; valid only if unmapped.h does not know p.
static inline bool foreign_may_be_any(const void *p)
{
    return foreign_is_in(foreign_map, p) || (unmapped_may_be(p) && foreign_is_in(foreign_mapped_map, p));
}

#endif
