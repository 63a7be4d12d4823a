// SPDX-License-Identifier: MIT
// Pointers that are freed and have no valid head: blocks of somebody else's, or errors.
#ifndef MOAT_HEAP_FOREIGN_H
#define MOAT_HEAP_FOREIGN_H

#include <stdatomic.h>

#include "heap/unmapped.h"
#include "heap/heap.h"

// Whether it is the allocator's own, which a library that does not see us got there: then it must be passed on. If not,
// it was an error and has been reported; nothing must be done with it.
bool foreign_judge(void *p, const char *call, uint32_t site);

// Where heads are, a bit for 4 MiB, so that none is looked for where nothing may be mapped. Those of blocks that may be unmapped one
// by one have a map of their own, which only the slow ways look at: there unmapped.h is asked first.
enum { FOREIGN_GRAIN = 22 };
typedef _Atomic uint64_t foreign_words[1 << (47 - FOREIGN_GRAIN - 6)];
extern __attribute__((visibility("hidden"))) foreign_words foreign_map, foreign_mapped_map;

static inline void foreign_mark_in(foreign_words map, const void *block)
{
    uint64_t grain = ((uint64_t)(uintptr_t)block - BLOCK_HEAD) >> FOREIGN_GRAIN, bit = 1ull << grain % 64;
    _Atomic uint64_t *word = &map[grain / 64];
    // Relaxed, both: whoever frees a block got its address from the one who marked it.
    if (__builtin_expect(!(atomic_load_explicit(word, memory_order_relaxed) & bit), 0))
        atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

static inline void foreign_mark(const void *block)
{
    foreign_mark_in(foreign_map, block);
}

static inline __attribute__((always_inline)) bool foreign_is_in(foreign_words map, const void *p)
{
    // Of what is not aligned, the bits that must not be there come to lie above all others.
    uint64_t head = (uint64_t)(uintptr_t)p - BLOCK_HEAD, turned = head >> 4 | head << 60;
    uint64_t grain = turned >> (FOREIGN_GRAIN - 4), word = turned >> (FOREIGN_GRAIN - 4 + 6);
    return word < sizeof foreign_map / sizeof *foreign_map &&
           atomic_load_explicit(&map[word], memory_order_relaxed) >> grain % 64 & 1;
}

// Whether p may be a block of ours that is not mapped by itself, so that its head can be read. NULL is none.
static inline bool foreign_may_be_ours(const void *p)
{
    return foreign_is_in(foreign_map, p);
}

// The like for all blocks, if unmapped.h does not know it.
static inline bool foreign_may_be_any(const void *p)
{
    return foreign_is_in(foreign_map, p) || (unmapped_may_be(p) && foreign_is_in(foreign_mapped_map, p));
}

#endif
