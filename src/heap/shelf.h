// SPDX-License-Identifier: MIT
// Blocks that a thread freed and keeps for its next allocations of their size: neither the allocator below nor the watchers
// hear of it. The block's word stays in the warehouse, its head says that it was freed, and says that it lives when it is
// used anew. A shelf holds words, not pointers in the blocks: whoever writes into a freed block does not reach it.
//
// Bins are stacks, one for each size that allocators tell apart; of the larger ones, for a few. What holds
// for each, between two operations of its thread (shelf_valid):
//   low <= top <= end + 1; end <= last; the words are [low, top), none is 0; low[-1] = 0
//   low = small + 1 and end = last, or the bin has grown: low lies in `grown`
//   held = sum over the bins that have grown of (end - low - its length while small) times a block's bytes
//   held <= SHELF_THREAD_BYTES; the sum of held over all shelves <= SHELF_ALL_BYTES
// and of a bin of the depot, while nobody has its lock:
//   count <= what the depot may have of it; words [0, count) are not 0
// top = end + 1 only where a signal handler filled the bin between its thread's look at it and shelf_put.
// Bins start small, inside of this struct; one that overflows moves to memory where it has room to grow, as long as neither
// the thread nor the process holds too much. Where one thread allocates and another frees, the shelf of one is always empty
// and that of the other always full: words pass between them through a depot, in batches, and nobody waits for its locks.
#ifndef MOAT_HEAP_SHELF_H
#define MOAT_HEAP_SHELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/checked.h"

#ifndef SHELF_THREAD_BYTES
#define SHELF_THREAD_BYTES (64u << 20)  // that bins of one thread may grow by
#endif
#ifndef SHELF_ALL_BYTES
#define SHELF_ALL_BYTES (256u << 20)  // of all threads together
#endif
enum {
    SHELF_LEAST = 8,
    SHELF_FINE_STEP = 16,
    SHELF_FINE = 1024 + SHELF_LEAST,  // up to here sizes are told apart as allocators do: 8, 24, 40 and so on
    SHELF_LARGEST = 4096,
    SHELF_STEP = 64,  // above
    SHELF_FINE_BINS = SHELF_FINE / SHELF_FINE_STEP + 1,
    SHELF_BINS = SHELF_FINE_BINS + (SHELF_LARGEST - SHELF_FINE) / SHELF_STEP + 1,
    SHELF_SMALL = 32
};

struct shelf_bin {
    uint64_t *top, *end, *low, *last;
};

struct shelf {
    struct shelf_bin bins[SHELF_BINS];
    uint64_t *grown;  // where bins grow
    uint64_t held;    // bytes that were granted to bins that have grown
    uint64_t small[SHELF_BINS][SHELF_SMALL];
};

void shelf_init(struct shelf *s);    // in zeroed memory
void shelf_forget(struct shelf *s);  // all blocks; what was granted goes back. The memory stays

// Of sizes up to SHELF_FINE, 16 n - 7 to 16 n + 8 share bin n.
static inline size_t shelf_fine_number(size_t size)
{
    return (size + SHELF_FINE_STEP - SHELF_LEAST - 1) / SHELF_FINE_STEP;
}

static inline size_t shelf_fine_room(size_t number)
{
    return number * SHELF_FINE_STEP + SHELF_LEAST;
}

static inline size_t shelf_number(size_t size)
{
    return size <= SHELF_FINE ? shelf_fine_number(size)
                              : SHELF_FINE_BINS + (size - 1) / SHELF_STEP - SHELF_FINE / SHELF_STEP;
}

// What a block must have room for, to be put there.
static inline size_t shelf_room(size_t size)
{
    return size <= SHELF_FINE ? shelf_fine_room(shelf_fine_number(size))
                              : (size + SHELF_STEP - 1) / SHELF_STEP * SHELF_STEP;
}

// 0: there is none.
static inline uint64_t shelf_take(struct shelf_bin *b)
{
    uint64_t word = b->top[-1];
    if (__builtin_expect(word != 0, 1))
        b->top--;
    return word;
}

static inline bool shelf_is_empty(const struct shelf_bin *b)
{
    return b->top[-1] == 0;
}

static inline bool shelf_is_full(const struct shelf_bin *b)
{
    return b->top >= b->end;
}

static inline void shelf_put(struct shelf_bin *b, uint64_t word)
{
    checked_assert(word && b->low <= b->top && b->top <= b->end);
    *b->top++ = word;
}

// Of a bin that is empty: gets words from the depot. Whether there were some.
bool shelf_refill(struct shelf *s, struct shelf_bin *b);

// Of a bin that is full: true if it has room now, because words went to the depot or because it may hold more. Else its
// older half must go: shelf_older says how many words from low on, and shelf_drop_older removes them.
bool shelf_make_room(struct shelf *s, struct shelf_bin *b);
size_t shelf_older(const struct shelf_bin *b);
void shelf_drop_older(struct shelf_bin *b);

void shelf_start(void);       // the depot, once; where there is no memory for it, shelves do without
void shelf_after_fork(void);  // in the child: what is in the depot stays there for good

uint64_t shelf_bytes(const struct shelf *s);  // of the blocks in fine bins, about

bool shelf_valid(const struct shelf *s);

#endif
