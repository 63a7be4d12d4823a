// SPDX-License-Identifier: MIT
// The quarantine: blocks that the program freed and that wait before they are reused or given back, so that a
// write into one of them and a second free of it are detected for certain. Each thread has a lane for each
// fine bin of the thread cache: a lane is a ring that is always full, where a new entry replaces the oldest.
// All other blocks are in a queue, bounded in blocks and in bytes. The thread itself adds and removes; other
// threads may read when the process ends:
//
//   queue:  thread:  write the entry; put++ (release)        taken++; [release]; reuse the block
//           other:   read put, the entry, the block; [acquire]; read taken: if it has not passed the entry,
//                    the block was in quarantine all the time
//   lane:   thread:  block = NULL; [release]; write the other fields; block = ... (release); [release];
//                    reuse the old block
//           other:   read the entry, the block; [acquire]; read the entry: if it is the same,
//                    the block was in quarantine all the time
//
// No two entries are equal: a block that is freed again has another ticket, which is part of the sum.
//
// What holds between two operations of the thread (heap_quarantine_valid):
//   of the queue: taken <= put <= taken + HEAP_QUARANTINE_BLOCKS; entries [taken, put) have blocks
//                 bytes = sum of heap_quarantine_cost over them
//   of a lane: first <= next < end; end is the next lane's first; next is the oldest
//              an entry's block is NULL or fits the lane's bin; heap_quarantine_forget sets it to NULL
#ifndef MOAT_HEAP_HEAP_QUARANTINE_H
#define MOAT_HEAP_HEAP_QUARANTINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/checked.h"
#include "heap/block.h"
#include "heap/heap_key.h"
#include "heap/thread_cache.h"

enum {
    HEAP_QUARANTINE_BLOCKS = 512,
    HEAP_QUARANTINE_FILLED = 128,
    HEAP_QUARANTINE_LANE = 128,
    HEAP_QUARANTINE_LANES = THREAD_CACHE_FINE_BINS
};

// What we know of a quarantined block, kept apart from its head, which the program may overwrite.
struct heap_quarantine_entry {
    char *block;
    uint64_t packed;  // in the queue as block_pack packs it; in a lane the size
    uint64_t sum;     // block_sum of its head and tail
};

struct heap_quarantine_slot {
    char *_Atomic block;
    _Atomic uint64_t packed, sum;
};

struct heap_quarantine_lane {
    struct heap_quarantine_slot *next, *first, *end;
    uint64_t unused;  // pads to a power of two, by which indexing multiplies faster
};

struct heap_quarantine {
    struct heap_quarantine_lane *_Atomic lanes;  // HEAP_QUARANTINE_LANES; mapped at the first use
    struct heap_quarantine_slot *_Atomic slots;  // HEAP_QUARANTINE_BLOCKS; mapped at the first use
    _Atomic uint64_t put, taken;
    uint64_t bytes;
};

// Returns whether a block of this size may enter a quarantine of `limit` bytes, evicting others.
static inline bool heap_quarantine_admits(uint64_t size, uint64_t limit)
{
    return size <= limit / 4;
}

// Returns the bytes that a block counts for in the bound.
static inline uint64_t heap_quarantine_cost(uint64_t packed)
{
    return (packed & BLOCK_SIZE_MASK) + BLOCK_HEAD;
}

// Appends an entry; there must be room. Returns 0, or -ENOMEM if it was not added.
static inline int heap_quarantine_add(struct heap_quarantine *w, struct heap_quarantine_entry e);
// Removes the oldest entry if the queue is full or has no `room` bytes left under `limit`; returns false if
// nothing was removed.
static inline bool heap_quarantine_evict(struct heap_quarantine *w, uint64_t limit, uint64_t room,
                                         struct heap_quarantine_entry *e);
void heap_quarantine_forget(struct heap_quarantine *w);  // empties queue and lanes; the blocks are lost

// Returns the lanes, which hold about `limit` bytes if half of them are in use; NULL if out of memory.
static inline struct heap_quarantine_lane *heap_quarantine_lanes(struct heap_quarantine *w, uint64_t limit);
// Adds an entry to a lane and returns the oldest one, which it replaces and which may have no block.
static inline struct heap_quarantine_entry heap_quarantine_replace_oldest(struct heap_quarantine_lane *l,
                                                                          struct heap_quarantine_entry e);

// Fills the first and last HEAP_QUARANTINE_FILLED bytes of a freed block, so that large blocks cost no more
// than small ones.
static inline void heap_quarantine_fill(void *block, uint64_t size);
// Returns whether the fill is unchanged.
static inline bool heap_quarantine_is_filled(const void *block, uint64_t size);
// Returns the index of the first byte that differs from the fill, or -1.
int64_t heap_quarantine_first_change(const void *block, uint64_t size);

// For other threads. heap_quarantine_entry_at reads entry i of the queue, from `taken` on;
// heap_quarantine_entry_in reads a lane's slot; both return false if there is no entry. What is read of the
// entry's block counts only if heap_quarantine_is_queued or heap_quarantine_is_in_slot returns true
// afterwards. heap_quarantine_copy copies the block's filled bytes (false: unreadable), and
// heap_quarantine_copied_changed returns the index in the block of the first changed one, or -1.
enum { HEAP_QUARANTINE_COPY = 2 * HEAP_QUARANTINE_FILLED };
bool heap_quarantine_entry_at(struct heap_quarantine *w, uint64_t i, struct heap_quarantine_entry *e);
bool heap_quarantine_is_queued(struct heap_quarantine *w, uint64_t i);
bool heap_quarantine_entry_in(struct heap_quarantine_slot *s, struct heap_quarantine_entry *e);
bool heap_quarantine_is_in_slot(struct heap_quarantine_slot *s, const struct heap_quarantine_entry *e);
bool heap_quarantine_copy(const void *block, uint64_t size, unsigned char *copy);
int64_t heap_quarantine_copied_changed(const unsigned char *copy, uint64_t size);

bool heap_quarantine_valid(struct heap_quarantine *w);  // by the thread itself

// --- inline: part of every free ---

int heap_quarantine_start(struct heap_quarantine *w);  // maps the slots; 0 or -ENOMEM

static inline struct heap_quarantine_slot *heap_quarantine_slot_at(struct heap_quarantine *w, uint64_t i)
{
    // Acquire: with the release in heap_quarantine_start, for other threads.
    return &atomic_load_explicit(&w->slots, memory_order_acquire)[i % HEAP_QUARANTINE_BLOCKS];
}

// Relaxed, all: readers validate a slot by put and taken.
static inline void heap_quarantine_write_slot(struct heap_quarantine_slot *s, struct heap_quarantine_entry e)
{
    atomic_store_explicit(&s->block, e.block, memory_order_relaxed);
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    atomic_store_explicit(&s->sum, e.sum, memory_order_relaxed);
}

static inline struct heap_quarantine_entry heap_quarantine_read_slot(struct heap_quarantine_slot *s)
{
    return (struct heap_quarantine_entry){atomic_load_explicit(&s->block, memory_order_relaxed),
                                          atomic_load_explicit(&s->packed, memory_order_relaxed),
                                          atomic_load_explicit(&s->sum, memory_order_relaxed)};
}

static inline int heap_quarantine_add(struct heap_quarantine *w, struct heap_quarantine_entry e)
{
    int err = atomic_load_explicit(&w->slots, memory_order_relaxed) ? 0 : heap_quarantine_start(w);
    if (err)
        return err;
    uint64_t put = atomic_load_explicit(&w->put, memory_order_relaxed);
    checked_assert(e.block &&
                   put - atomic_load_explicit(&w->taken, memory_order_relaxed) < HEAP_QUARANTINE_BLOCKS);
    struct heap_quarantine_slot *s = heap_quarantine_slot_at(w, put);
    heap_quarantine_write_slot(s, e);
    // Release: with the acquire in heap_quarantine_entry_at.
    atomic_store_explicit(&w->put, put + 1, memory_order_release);
    w->bytes += heap_quarantine_cost(e.packed);
    return 0;
}

static inline struct heap_quarantine_entry heap_quarantine_read(struct heap_quarantine *w, uint64_t i)
{
    return heap_quarantine_read_slot(heap_quarantine_slot_at(w, i));
}

static inline bool heap_quarantine_evict(struct heap_quarantine *w, uint64_t limit, uint64_t room,
                                         struct heap_quarantine_entry *e)
{
    uint64_t taken = atomic_load_explicit(&w->taken, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&w->put, memory_order_relaxed) - taken;
    if (!count || (w->bytes + room <= limit && count < HEAP_QUARANTINE_BLOCKS))
        return false;
    *e = heap_quarantine_read(w, taken);
    // The block after next will be checked soon and is unlikely to be in a cache.
    struct heap_quarantine_entry soon = heap_quarantine_read(w, taken + 2);
    uintptr_t at = (uintptr_t)soon.block;
    __builtin_prefetch((const void *)(at - BLOCK_HEAD), 1);
    __builtin_prefetch((const void *)(at + (soon.packed & BLOCK_SIZE_MASK)));
    checked_assert(e->block && w->bytes >= heap_quarantine_cost(e->packed));
    w->bytes -= heap_quarantine_cost(e->packed);
    atomic_store_explicit(&w->taken, taken + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_quarantine_is_queued
    return true;
}

struct heap_quarantine_lane *heap_quarantine_lanes_start(struct heap_quarantine *w, uint64_t limit);

static inline struct heap_quarantine_lane *heap_quarantine_lanes(struct heap_quarantine *w, uint64_t limit)
{
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->lanes, memory_order_relaxed);
    return __builtin_expect(lanes != NULL, 1) ? lanes : heap_quarantine_lanes_start(w, limit);
}

static inline struct heap_quarantine_entry heap_quarantine_replace_oldest(struct heap_quarantine_lane *l,
                                                                          struct heap_quarantine_entry e)
{
    checked_assert(l->first <= l->next && l->next < l->end);
    struct heap_quarantine_slot *s = l->next;
    struct heap_quarantine_entry old = heap_quarantine_read_slot(s);
    l->next = s + 1 == l->end ? l->first : s + 1;
    atomic_store_explicit(&s->block, NULL, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with heap_quarantine_entry_in
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    atomic_store_explicit(&s->sum, e.sum, memory_order_relaxed);
    // Release: with the acquire in heap_quarantine_entry_in.
    atomic_store_explicit(&s->block, e.block, memory_order_release);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_quarantine_is_in_slot
    return old;
}

// The fill pattern: one byte, eight times, so that any position of a block can be compared with any other.
static inline uint64_t heap_quarantine_filler(void)
{
    return heap_key.word[HEAP_KEY_FILLER];
}

// Fills and compares use pairs of words: a number of pairs from the start and as many up to the end, which
// may overlap. So there are few cases, and none of them is a loop.
typedef uint64_t heap_quarantine_pair __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t heap_quarantine_parts __attribute__((vector_size(16)));
enum { HEAP_QUARANTINE_PAIR = sizeof(heap_quarantine_pair) };

static inline heap_quarantine_pair heap_quarantine_filler_pair(void)
{
    return *(const heap_quarantine_pair *)&heap_key.word[HEAP_KEY_FILLER];
}

static inline __attribute__((always_inline)) void heap_quarantine_fill_ends(char *p, char *end,
                                                                            unsigned pairs)
{
    heap_quarantine_pair pair = heap_quarantine_filler_pair(), *head = (heap_quarantine_pair *)p;
    heap_quarantine_pair *tail = (heap_quarantine_pair *)end - pairs;
#pragma GCC unroll 8
    for (unsigned i = 0; i < pairs; i++)
        head[i] = tail[i] = pair;
}

static inline bool heap_quarantine_all_bits(heap_quarantine_parts equal)
{
#ifdef __SSE2__
    return _mm_movemask_epi8((__m128i)equal) == 0xffff;
#else
    return (equal[0] & equal[1] & equal[2] & equal[3]) == UINT32_MAX;
#endif
}

static inline __attribute__((always_inline)) heap_quarantine_parts
heap_quarantine_ends_equal(const char *p, const char *end, unsigned pairs)
{
    const heap_quarantine_pair *head = (const heap_quarantine_pair *)p,
                               *tail = (const heap_quarantine_pair *)end - pairs;
    heap_quarantine_parts pair = (heap_quarantine_parts)heap_quarantine_filler_pair();
    heap_quarantine_parts equal = (heap_quarantine_parts)((heap_quarantine_parts)head[0] == pair);
#pragma GCC unroll 8
    for (unsigned i = 1; i < pairs; i++)
        equal &= (heap_quarantine_parts)((heap_quarantine_parts)head[i] == pair);
#pragma GCC unroll 8
    for (unsigned i = 0; i < pairs; i++)
        equal &= (heap_quarantine_parts)((heap_quarantine_parts)tail[i] == pair);
    return equal;
}

// For less than a pair: two words, or parts of words, which may overlap.
static inline void heap_quarantine_fill_few(char *p, uint64_t size)
{
    uint64_t f = heap_quarantine_filler();
    if (size >= sizeof f) {
        memcpy(p, &f, sizeof f);
        memcpy(p + size - sizeof f, &f, sizeof f);
    } else if (size >= sizeof(uint32_t)) {
        memcpy(p, &f, sizeof(uint32_t));
        memcpy(p + size - sizeof(uint32_t), &f, sizeof(uint32_t));
    } else if (size) {
        p[0] = p[size / 2] = p[size - 1] = (char)f;
    }
}

static inline bool heap_quarantine_few_are_filled(const char *p, uint64_t size)
{
    uint64_t f = heap_quarantine_filler(), first = f, last = f;
    if (size >= sizeof f) {
        memcpy(&first, p, sizeof f);
        memcpy(&last, p + size - sizeof f, sizeof f);
    } else if (size >= sizeof(uint32_t)) {
        memcpy(&first, p, sizeof(uint32_t));
        memcpy(&last, p + size - sizeof(uint32_t), sizeof(uint32_t));
    } else if (size) {
        return p[0] == (char)f && p[size / 2] == (char)f && p[size - 1] == (char)f;
    }
    return first == f && last == f;
}

static inline __attribute__((always_inline)) void heap_quarantine_fill(void *block, uint64_t size)
{
    char *p = block, *end = p + size;
    if (size > 8 * HEAP_QUARANTINE_PAIR)
        heap_quarantine_fill_ends(p, end, HEAP_QUARANTINE_FILLED / HEAP_QUARANTINE_PAIR);
    else if (size > 4 * HEAP_QUARANTINE_PAIR)
        heap_quarantine_fill_ends(p, end, 4);
    else if (size > 2 * HEAP_QUARANTINE_PAIR)
        heap_quarantine_fill_ends(p, end, 2);
    else if (size >= HEAP_QUARANTINE_PAIR)
        heap_quarantine_fill_ends(p, end, 1);
    else
        heap_quarantine_fill_few(p, size);
}

static inline __attribute__((always_inline)) bool heap_quarantine_is_filled(const void *block, uint64_t size)
{
    const char *p = block, *end = p + size;
    heap_quarantine_parts equal;
    if (size > 8 * HEAP_QUARANTINE_PAIR)
        equal = heap_quarantine_ends_equal(p, end, HEAP_QUARANTINE_FILLED / HEAP_QUARANTINE_PAIR);
    else if (size > 4 * HEAP_QUARANTINE_PAIR)
        equal = heap_quarantine_ends_equal(p, end, 4);
    else if (size > 2 * HEAP_QUARANTINE_PAIR)
        equal = heap_quarantine_ends_equal(p, end, 2);
    else if (size >= HEAP_QUARANTINE_PAIR)
        equal = heap_quarantine_ends_equal(p, end, 1);
    else
        return heap_quarantine_few_are_filled(p, size);
    return heap_quarantine_all_bits(equal);
}

#endif
