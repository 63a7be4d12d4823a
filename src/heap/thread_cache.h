// SPDX-License-Identifier: MIT
// The thread cache: blocks that a thread freed and keeps for its next allocations of their size, without
// involving the next allocator or the monitors. The block's word stays in the block list; its head is marked
// as freed, and made live when the block is reused. The cache holds words, not pointers inside the blocks, so
// writes into freed blocks do not corrupt it.
//
// Bins are stacks, one for each size class of allocators; larger sizes share bins. What holds for each bin
// between two operations of its thread (thread_cache_valid):
//   low <= top <= end + 1; end <= last; the words are [low, top), none is 0; low[-1] = 0
//   low = small + 1 and end = last, or the bin has grown: low lies in `grown`
//   held = sum over the grown bins of (end - low - its length while small) times a block's bytes
//   held <= THREAD_CACHE_THREAD_BYTES; the sum of held over all caches <= THREAD_CACHE_ALL_BYTES
// and for a bin of the depot, while nobody has its lock:
//   count <= the depot's limit for the bin; words [0, count) are not 0
// top = end + 1 only if a signal handler filled the bin between its thread's test and thread_cache_put. Bins
// start small, inside this struct; a bin that overflows moves to memory where it can grow, as long as neither
// the thread nor the process holds too much. Where one thread allocates and another frees, the cache of one
// is always empty and that of the other always full: words pass between them through a depot, in batches, and
// nobody waits for its locks.
#ifndef MOAT_HEAP_THREAD_CACHE_H
#define MOAT_HEAP_THREAD_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"

#ifndef THREAD_CACHE_THREAD_BYTES
#define THREAD_CACHE_THREAD_BYTES (64u << 20)  // that the bins of one thread may grow by
#endif
#ifndef THREAD_CACHE_ALL_BYTES
#define THREAD_CACHE_ALL_BYTES (256u << 20)  // of all threads together
#endif
enum {
    THREAD_CACHE_LEAST = 8,
    THREAD_CACHE_FINE_STEP = 16,
    // Up to here bins are the size classes of allocators: 8, 24, 40 and so on.
    THREAD_CACHE_FINE = 1024 + THREAD_CACHE_LEAST,
    THREAD_CACHE_LARGEST = 4096,
    THREAD_CACHE_STEP = 64,  // for sizes above
    THREAD_CACHE_FINE_BINS = THREAD_CACHE_FINE / THREAD_CACHE_FINE_STEP + 1,
    THREAD_CACHE_BINS =
        THREAD_CACHE_FINE_BINS + (THREAD_CACHE_LARGEST - THREAD_CACHE_FINE) / THREAD_CACHE_STEP + 1,
    THREAD_CACHE_SMALL = 32
};

struct thread_cache_bin {
    uint64_t *top, *end, *low, *last;
};

struct thread_cache {
    struct thread_cache_bin bins[THREAD_CACHE_BINS];
    uint64_t *grown;  // where bins grow; NULL: not made yet
    uint64_t held;    // bytes granted to grown bins
    uint64_t small[THREAD_CACHE_BINS][THREAD_CACHE_SMALL];
};

void thread_cache_init(struct thread_cache *s);    // s must be zeroed
void thread_cache_forget(struct thread_cache *s);  // drops all blocks, returns the grants

// Returns the bin of a size up to THREAD_CACHE_FINE: sizes 16 n - 7 to 16 n + 8 share bin n.
static inline size_t thread_cache_fine_number(size_t size)
{
    return (size + THREAD_CACHE_FINE_STEP - THREAD_CACHE_LEAST - 1) / THREAD_CACHE_FINE_STEP;
}

static inline size_t thread_cache_fine_room(size_t number)
{
    return number * THREAD_CACHE_FINE_STEP + THREAD_CACHE_LEAST;
}

static inline size_t thread_cache_number(size_t size)
{
    return size <= THREAD_CACHE_FINE ? thread_cache_fine_number(size)
                                     : THREAD_CACHE_FINE_BINS + (size - 1) / THREAD_CACHE_STEP -
                                           THREAD_CACHE_FINE / THREAD_CACHE_STEP;
}

// Returns the bytes that a block must have room for to be in the bin of this size.
static inline size_t thread_cache_room(size_t size)
{
    return size <= THREAD_CACHE_FINE ? thread_cache_fine_room(thread_cache_fine_number(size))
                                     : (size + THREAD_CACHE_STEP - 1) / THREAD_CACHE_STEP * THREAD_CACHE_STEP;
}

// Returns 0 if the bin is empty.
static inline uint64_t thread_cache_take(struct thread_cache_bin *b)
{
    uint64_t word = b->top[-1];
    if (__builtin_expect(word != 0, 1))
        b->top--;
    return word;
}

static inline bool thread_cache_is_empty(const struct thread_cache_bin *b)
{
    return b->top[-1] == 0;
}

static inline bool thread_cache_is_full(const struct thread_cache_bin *b)
{
    return b->top >= b->end;
}

static inline void thread_cache_put(struct thread_cache_bin *b, uint64_t word)
{
    checked_assert(word && b->low <= b->top && b->top <= b->end);
    *b->top++ = word;
}

// Fills an empty bin from the depot; returns whether it got words.
bool thread_cache_refill(struct thread_cache *s, struct thread_cache_bin *b);

// For a full bin: returns true if it has room now, because words went to the depot or because it was allowed
// to grow. If false, its older half must go: thread_cache_older returns how many words from `low` on, and
// thread_cache_drop_older removes them.
bool thread_cache_make_room(struct thread_cache *s, struct thread_cache_bin *b);
size_t thread_cache_older(const struct thread_cache_bin *b);
void thread_cache_drop_older(struct thread_cache_bin *b);

void thread_cache_start(void);       // makes the depot, once; if out of memory, caches work without it
void thread_cache_after_fork(void);  // in the child: blocks in the depot are lost

uint64_t thread_cache_bytes(const struct thread_cache *s);  // of blocks in fine bins, about

bool thread_cache_valid(const struct thread_cache *s);

#endif
