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
// What holds between two operations of the thread (heap_wait_valid):
//   of the queue: taken <= put <= taken + HEAP_WAIT_BLOCKS; entries [taken, put) have blocks
//                 bytes = sum of heap_wait_cost over them
//   of a lane: first <= next < end; end is the next lane's first; next is the oldest
//              entries are blocks that fit the lane's bin, or have none; what was forgotten has none
#ifndef MOAT_HEAP_WAIT_H
#define MOAT_HEAP_WAIT_H

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
#include "heap/shelf.h"

enum {
    HEAP_WAIT_BLOCKS = 512,
    HEAP_WAIT_FILLED = 128,
    HEAP_WAIT_LANE = 128,
    HEAP_WAIT_LANES = SHELF_FINE_BINS
};

// What is known of a block that nobody may have written to: not from its head, which somebody may.
struct heap_wait_entry {
    char *block;
    uint64_t packed;  // in the queue, see block_pack; in a lane the size
    uint64_t sum;     // see block_sum
};

struct heap_wait_slot {
    char *_Atomic block;
    _Atomic uint64_t packed, sum;
};

struct heap_wait_lane {
    struct heap_wait_slot *next, *first, *end;
    uint64_t unused;  // a size that is a power of two is quicker to multiply by
};

struct heap_wait {
    struct heap_wait_lane *_Atomic lanes;  // HEAP_WAIT_LANES; mapped at the first use
    struct heap_wait_slot *_Atomic slots;  // HEAP_WAIT_BLOCKS; mapped at the first use
    _Atomic uint64_t put, taken;
    uint64_t bytes;
};

// Whether it fits within `limit` bytes in all, others leaving.
static inline bool heap_wait_takes(uint64_t size, uint64_t limit)
{
    return size <= limit / 4;
}

static inline uint64_t heap_wait_cost(uint64_t packed)  // bytes of the bound that a block takes
{
    return (packed & BLOCK_SIZE_MASK) + BLOCK_HEAD;
}

static inline int heap_wait_add(struct heap_wait *w,
                                struct heap_wait_entry e);  // -ENOMEM: not added. There must be room.
// Removes the oldest, if there are too many for `limit` and a further block of `room` bytes; false: there are not.
static inline bool heap_wait_oldest(struct heap_wait *w, uint64_t limit, uint64_t room,
                                    struct heap_wait_entry *e);
void heap_wait_forget(struct heap_wait *w);

// The lanes, which hold about `limit` bytes in all where all of them are used; NULL: there is no memory for them.
static inline struct heap_wait_lane *heap_wait_lanes(struct heap_wait *w, uint64_t limit);
// Puts an entry and returns the one that it drove out, which may have no block.
static inline struct heap_wait_entry heap_wait_drive(struct heap_wait_lane *l, struct heap_wait_entry e);

// What a freed block is filled with: its first and last bytes, so that large ones cost no more than small ones.
static inline void heap_wait_fill(void *block, uint64_t size);
static inline bool heap_wait_is_filled(const void *block, uint64_t size);  // and has not changed
int64_t heap_wait_first_change(const void *block,
                               uint64_t size);  // the first byte that is not as it was filled, or -1

// For any thread: the queue's entry with a number, from taken on, or what is in a slot of a lane; false: there is none. Whatever is
// read of its block counts only if it still waits afterwards. heap_wait_copy takes the block's filled bytes, which heap_wait_copied_changed judges.
enum { HEAP_WAIT_COPY = 2 * HEAP_WAIT_FILLED };
bool heap_wait_entry_at(struct heap_wait *w, uint64_t i, struct heap_wait_entry *e);
bool heap_wait_still(struct heap_wait *w, uint64_t i);
bool heap_wait_entry_in(struct heap_wait_slot *s, struct heap_wait_entry *e);
bool heap_wait_still_in(struct heap_wait_slot *s, const struct heap_wait_entry *e);
bool heap_wait_copy(const void *block, uint64_t size, unsigned char *copy);
int64_t heap_wait_copied_changed(const unsigned char *copy, uint64_t size);

bool heap_wait_valid(struct heap_wait *w);  // for the thread

// --- inline: part of every free ---

int heap_wait_start(struct heap_wait *w);  // maps the slots

static inline struct heap_wait_slot *heap_wait_slot_at(struct heap_wait *w, uint64_t i)
{
    // Acquire: with the release in heap_wait_start, for other threads.
    return &atomic_load_explicit(&w->slots, memory_order_acquire)[i % HEAP_WAIT_BLOCKS];
}

// Relaxed, all: who reads a slot looks at put and taken too.
static inline void heap_wait_write_slot(struct heap_wait_slot *s, struct heap_wait_entry e)
{
    atomic_store_explicit(&s->block, e.block, memory_order_relaxed);
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    atomic_store_explicit(&s->sum, e.sum, memory_order_relaxed);
}

static inline struct heap_wait_entry heap_wait_read_slot(struct heap_wait_slot *s)
{
    return (struct heap_wait_entry){atomic_load_explicit(&s->block, memory_order_relaxed),
                                    atomic_load_explicit(&s->packed, memory_order_relaxed),
                                    atomic_load_explicit(&s->sum, memory_order_relaxed)};
}

static inline int heap_wait_add(struct heap_wait *w, struct heap_wait_entry e)
{
    int err = atomic_load_explicit(&w->slots, memory_order_relaxed) ? 0 : heap_wait_start(w);
    if (err)
        return err;
    uint64_t put = atomic_load_explicit(&w->put, memory_order_relaxed);
    checked_assert(e.block && put - atomic_load_explicit(&w->taken, memory_order_relaxed) < HEAP_WAIT_BLOCKS);
    struct heap_wait_slot *s = heap_wait_slot_at(w, put);
    heap_wait_write_slot(s, e);
    // Release: with the acquire in heap_wait_entry_at.
    atomic_store_explicit(&w->put, put + 1, memory_order_release);
    w->bytes += heap_wait_cost(e.packed);
    return 0;
}

static inline struct heap_wait_entry heap_wait_read(struct heap_wait *w, uint64_t i)
{
    return heap_wait_read_slot(heap_wait_slot_at(w, i));
}

static inline bool heap_wait_oldest(struct heap_wait *w, uint64_t limit, uint64_t room,
                                    struct heap_wait_entry *e)
{
    uint64_t taken = atomic_load_explicit(&w->taken, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&w->put, memory_order_relaxed) - taken;
    if (!count || (w->bytes + room <= limit && count < HEAP_WAIT_BLOCKS))
        return false;
    *e = heap_wait_read(w, taken);
    // The block after the next will be looked at soon, and was not for long.
    struct heap_wait_entry soon = heap_wait_read(w, taken + 2);
    uintptr_t at = (uintptr_t)soon.block;
    __builtin_prefetch((const void *)(at - BLOCK_HEAD), 1);
    __builtin_prefetch((const void *)(at + (soon.packed & BLOCK_SIZE_MASK)));
    checked_assert(e->block && w->bytes >= heap_wait_cost(e->packed));
    w->bytes -= heap_wait_cost(e->packed);
    atomic_store_explicit(&w->taken, taken + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_wait_still
    return true;
}

struct heap_wait_lane *heap_wait_lanes_start(struct heap_wait *w, uint64_t limit);

static inline struct heap_wait_lane *heap_wait_lanes(struct heap_wait *w, uint64_t limit)
{
    struct heap_wait_lane *lanes = atomic_load_explicit(&w->lanes, memory_order_relaxed);
    return __builtin_expect(lanes != NULL, 1) ? lanes : heap_wait_lanes_start(w, limit);
}

static inline struct heap_wait_entry heap_wait_drive(struct heap_wait_lane *l, struct heap_wait_entry e)
{
    checked_assert(l->first <= l->next && l->next < l->end);
    struct heap_wait_slot *s = l->next;
    struct heap_wait_entry old = heap_wait_read_slot(s);
    l->next = s + 1 == l->end ? l->first : s + 1;
    atomic_store_explicit(&s->block, NULL, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with heap_wait_entry_in: no block with another's sum
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    atomic_store_explicit(&s->sum, e.sum, memory_order_relaxed);
    // Release: with the acquire in heap_wait_entry_in.
    atomic_store_explicit(&s->block, e.block, memory_order_release);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_wait_still_in
    return old;
}

// One byte, so that any place of a block can be compared with any other; eight times.
static inline uint64_t heap_wait_filler(void)
{
    return heap_key.word[HEAP_KEY_FILLER];
}

// Two words at once. A part is so many of them from its start and as many up to its end, which may overlap: there are few
// ways to go, and none of them is a loop.
typedef uint64_t heap_wait_pair __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint32_t heap_wait_parts __attribute__((vector_size(16)));
enum { HEAP_WAIT_PAIR = sizeof(heap_wait_pair) };

static inline heap_wait_pair heap_wait_filler_pair(void)
{
    return *(const heap_wait_pair *)&heap_key.word[HEAP_KEY_FILLER];
}

static inline __attribute__((always_inline)) void heap_wait_fill_ends(char *p, char *end, unsigned pairs)
{
    heap_wait_pair pair = heap_wait_filler_pair(), *head = (heap_wait_pair *)p;
    heap_wait_pair *tail = (heap_wait_pair *)end - pairs;
#pragma GCC unroll 8
    for (unsigned i = 0; i < pairs; i++)
        head[i] = tail[i] = pair;
}

static inline bool heap_wait_all_bits(heap_wait_parts equal)
{
#ifdef __SSE2__
    return _mm_movemask_epi8((__m128i)equal) == 0xffff;
#else
    return (equal[0] & equal[1] & equal[2] & equal[3]) == UINT32_MAX;
#endif
}

static inline __attribute__((always_inline)) heap_wait_parts
heap_wait_ends_equal(const char *p, const char *end, unsigned pairs)
{
    const heap_wait_pair *head = (const heap_wait_pair *)p, *tail = (const heap_wait_pair *)end - pairs;
    heap_wait_parts pair = (heap_wait_parts)heap_wait_filler_pair();
    heap_wait_parts equal = (heap_wait_parts)((heap_wait_parts)head[0] == pair);
#pragma GCC unroll 8
    for (unsigned i = 1; i < pairs; i++)
        equal &= (heap_wait_parts)((heap_wait_parts)head[i] == pair);
#pragma GCC unroll 8
    for (unsigned i = 0; i < pairs; i++)
        equal &= (heap_wait_parts)((heap_wait_parts)tail[i] == pair);
    return equal;
}

// Fewer than a pair: two words, or parts of such, that may overlap.
static inline void heap_wait_fill_few(char *p, uint64_t size)
{
    uint64_t f = heap_wait_filler();
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

static inline bool heap_wait_few_are_filled(const char *p, uint64_t size)
{
    uint64_t f = heap_wait_filler(), first = f, last = f;
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

static inline __attribute__((always_inline)) void heap_wait_fill(void *block, uint64_t size)
{
    char *p = block, *end = p + size;
    if (size > 8 * HEAP_WAIT_PAIR)
        heap_wait_fill_ends(p, end, HEAP_WAIT_FILLED / HEAP_WAIT_PAIR);
    else if (size > 4 * HEAP_WAIT_PAIR)
        heap_wait_fill_ends(p, end, 4);
    else if (size > 2 * HEAP_WAIT_PAIR)
        heap_wait_fill_ends(p, end, 2);
    else if (size >= HEAP_WAIT_PAIR)
        heap_wait_fill_ends(p, end, 1);
    else
        heap_wait_fill_few(p, size);
}

static inline __attribute__((always_inline)) bool heap_wait_is_filled(const void *block, uint64_t size)
{
    const char *p = block, *end = p + size;
    heap_wait_parts equal;
    if (size > 8 * HEAP_WAIT_PAIR)
        equal = heap_wait_ends_equal(p, end, HEAP_WAIT_FILLED / HEAP_WAIT_PAIR);
    else if (size > 4 * HEAP_WAIT_PAIR)
        equal = heap_wait_ends_equal(p, end, 4);
    else if (size > 2 * HEAP_WAIT_PAIR)
        equal = heap_wait_ends_equal(p, end, 2);
    else if (size >= HEAP_WAIT_PAIR)
        equal = heap_wait_ends_equal(p, end, 1);
    else
        return heap_wait_few_are_filled(p, size);
    return heap_wait_all_bits(equal);
}

#endif
