// SPDX-License-Identifier: MIT
// Blocks that the program freed and that wait before they are given back: whoever writes into one of them is found, and so is a
// second free, for certain. Each thread has lanes for what comes to a shelf's fine bins afterwards, one for each bin: a lane is a
// ring that is always full, and who comes drives the oldest out. The others are in a queue, bounded in blocks and in bytes. The
// thread puts and takes; others may look when the process ends:
//
//   queue:  thread:  entry = ...; put++ (release)        taken++; [release]; the block may be used anew
//           other:   look at put, the entry, the block; [acquire]; look at taken: if it has not passed the entry, the block waited
//   lane:   thread:  block = NULL; [release]; the rest of the entry; block = ... (release); [release]; the old one may be used anew
//           other:   look at the entry, the block; [acquire]; look at the entry: if it is the same, the block waited
//
// No two entries are the same: a block that is freed once more has another ticket, which is in the sum.
//
// What holds between two operations of the thread (heap_quarantine_valid):
//   of the queue: taken <= put <= taken + HEAP_QUARANTINE_BLOCKS; entries [taken, put) have blocks
//                 bytes = sum of heap_quarantine_cost over them
//   of a lane: first <= next < end; end is the next lane's first; next is the oldest
//              entries are blocks that fit the lane's bin, or have none; what was forgotten has none
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

// What is known of a block that nobody may have written to: not from its head, which somebody may.
struct heap_quarantine_entry {
    char *block;
    uint64_t packed;  // in the queue, see block_pack; in a lane the size
    uint64_t sum;     // see block_sum
};

struct heap_quarantine_slot {
    char *_Atomic block;
    _Atomic uint64_t packed, sum;
};

struct heap_quarantine_lane {
    struct heap_quarantine_slot *next, *first, *end;
    uint64_t unused;  // a size that is a power of two is quicker to multiply by
};

struct heap_quarantine {
    struct heap_quarantine_lane *_Atomic lanes;  // HEAP_QUARANTINE_LANES; mapped at the first use
    struct heap_quarantine_slot *_Atomic slots;  // HEAP_QUARANTINE_BLOCKS; mapped at the first use
    _Atomic uint64_t put, taken;
    uint64_t bytes;
};

// Whether it fits within `limit` bytes in all, others leaving.
static inline bool heap_quarantine_takes(uint64_t size, uint64_t limit)
{
    return size <= limit / 4;
}

static inline uint64_t heap_quarantine_cost(uint64_t packed)  // bytes of the bound that a block takes
{
    return (packed & BLOCK_SIZE_MASK) + BLOCK_HEAD;
}

static inline int
heap_quarantine_add(struct heap_quarantine *w,
                    struct heap_quarantine_entry e);  // -ENOMEM: not added. There must be room.
// Removes the oldest, if there are too many for `limit` and a further block of `room` bytes; false: there are not.
static inline bool heap_quarantine_oldest(struct heap_quarantine *w, uint64_t limit, uint64_t room,
                                          struct heap_quarantine_entry *e);
void heap_quarantine_forget(struct heap_quarantine *w);

// The lanes, which hold about `limit` bytes in all where all of them are used; NULL: there is no memory for them.
static inline struct heap_quarantine_lane *heap_quarantine_lanes(struct heap_quarantine *w, uint64_t limit);
// Puts an entry and returns the one that it drove out, which may have no block.
static inline struct heap_quarantine_entry heap_quarantine_drive(struct heap_quarantine_lane *l,
                                                                 struct heap_quarantine_entry e);

// What a freed block is filled with: its first and last bytes, so that large ones cost no more than small ones.
static inline void heap_quarantine_fill(void *block, uint64_t size);
static inline bool heap_quarantine_is_filled(const void *block, uint64_t size);  // and has not changed
int64_t heap_quarantine_first_change(const void *block,
                                     uint64_t size);  // the first byte that is not as it was filled, or -1

// For any thread: the queue's entry with a number, from taken on, or what is in a slot of a lane; false: there is none. Whatever is
// read of its block counts only if it still waits afterwards. heap_quarantine_copy takes the block's filled bytes, which heap_quarantine_copied_changed judges.
enum { HEAP_QUARANTINE_COPY = 2 * HEAP_QUARANTINE_FILLED };
bool heap_quarantine_entry_at(struct heap_quarantine *w, uint64_t i, struct heap_quarantine_entry *e);
bool heap_quarantine_still(struct heap_quarantine *w, uint64_t i);
bool heap_quarantine_entry_in(struct heap_quarantine_slot *s, struct heap_quarantine_entry *e);
bool heap_quarantine_still_in(struct heap_quarantine_slot *s, const struct heap_quarantine_entry *e);
bool heap_quarantine_copy(const void *block, uint64_t size, unsigned char *copy);
int64_t heap_quarantine_copied_changed(const unsigned char *copy, uint64_t size);

bool heap_quarantine_valid(struct heap_quarantine *w);  // for the thread

// --- inline: part of every free ---

int heap_quarantine_start(struct heap_quarantine *w);  // maps the slots

static inline struct heap_quarantine_slot *heap_quarantine_slot_at(struct heap_quarantine *w, uint64_t i)
{
    // Acquire: with the release in heap_quarantine_start, for other threads.
    return &atomic_load_explicit(&w->slots, memory_order_acquire)[i % HEAP_QUARANTINE_BLOCKS];
}

// Relaxed, all: who reads a slot looks at put and taken too.
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

static inline bool heap_quarantine_oldest(struct heap_quarantine *w, uint64_t limit, uint64_t room,
                                          struct heap_quarantine_entry *e)
{
    uint64_t taken = atomic_load_explicit(&w->taken, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&w->put, memory_order_relaxed) - taken;
    if (!count || (w->bytes + room <= limit && count < HEAP_QUARANTINE_BLOCKS))
        return false;
    *e = heap_quarantine_read(w, taken);
    // The block after the next will be looked at soon, and was not for long.
    struct heap_quarantine_entry soon = heap_quarantine_read(w, taken + 2);
    uintptr_t at = (uintptr_t)soon.block;
    __builtin_prefetch((const void *)(at - BLOCK_HEAD), 1);
    __builtin_prefetch((const void *)(at + (soon.packed & BLOCK_SIZE_MASK)));
    checked_assert(e->block && w->bytes >= heap_quarantine_cost(e->packed));
    w->bytes -= heap_quarantine_cost(e->packed);
    atomic_store_explicit(&w->taken, taken + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_quarantine_still
    return true;
}

struct heap_quarantine_lane *heap_quarantine_lanes_start(struct heap_quarantine *w, uint64_t limit);

static inline struct heap_quarantine_lane *heap_quarantine_lanes(struct heap_quarantine *w, uint64_t limit)
{
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->lanes, memory_order_relaxed);
    return __builtin_expect(lanes != NULL, 1) ? lanes : heap_quarantine_lanes_start(w, limit);
}

static inline struct heap_quarantine_entry heap_quarantine_drive(struct heap_quarantine_lane *l,
                                                                 struct heap_quarantine_entry e)
{
    checked_assert(l->first <= l->next && l->next < l->end);
    struct heap_quarantine_slot *s = l->next;
    struct heap_quarantine_entry old = heap_quarantine_read_slot(s);
    l->next = s + 1 == l->end ? l->first : s + 1;
    atomic_store_explicit(&s->block, NULL, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with heap_quarantine_entry_in: no block with another's sum
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    atomic_store_explicit(&s->sum, e.sum, memory_order_relaxed);
    // Release: with the acquire in heap_quarantine_entry_in.
    atomic_store_explicit(&s->block, e.block, memory_order_release);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_quarantine_still_in
    return old;
}

// One byte, so that any place of a block can be compared with any other; eight times.
static inline uint64_t heap_quarantine_filler(void)
{
    return heap_key.word[HEAP_KEY_FILLER];
}

// Two words at once. A part is so many of them from its start and as many up to its end, which may overlap: there are few
// ways to go, and none of them is a loop.
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

// Fewer than a pair: two words, or parts of such, that may overlap.
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
