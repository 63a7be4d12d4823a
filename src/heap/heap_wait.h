// SPDX-License-Identifier: MIT
// Blocks that the program freed and that wait before they are given back: whoever writes into one of them is found, and so is a
// second free, for certain. Each thread has a queue, bounded in blocks and in bytes, for what is too large for a shelf, and lanes for
// the rest, one for each size: a lane is always full, and who comes drives the oldest out. Its thread puts and takes; others may
// look at them when the process ends:
//
//   thread:  entry = ...; put++ (release)        taken++; [release]; the block may be used anew
//   other:   look at put, the entry, the block; [acquire]; look at taken: if it has not passed the entry, the block waited
//
// What holds between two operations of the thread:
//   of the queue: taken <= put <= taken + HEAP_WAIT_BLOCKS; bytes is the sum of heap_wait_cost over the entries [taken, put)
//   of a lane: put - taken = mask + 1; entries are blocks, or have none; what was forgotten has none
#ifndef MOAT_HEAP_WAIT_H
#define MOAT_HEAP_WAIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "heap/block.h"
#include "heap/heap_key.h"
#include "heap/shelf.h"

enum { HEAP_WAIT_BLOCKS = 512, HEAP_WAIT_FILLED = 128, HEAP_WAIT_LANE = 128 };

// What is known of a block that nobody may have written to: not from its head, which somebody may.
struct heap_wait_entry {
    char *block;
    uint64_t packed;  // see block_pack
};

struct heap_wait_slot {
    char *_Atomic block;
    _Atomic uint64_t packed;
};

struct heap_wait_lane {
    uint64_t mask;  // entries less one
    _Atomic uint64_t put, taken;
    struct heap_wait_slot slots[HEAP_WAIT_LANE];
};

struct heap_wait {
    struct heap_wait_lane *_Atomic lanes;  // SHELF_BINS; mapped at the first use
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
// Puts an entry and returns the one that it drove out, whose block may be NULL.
static inline struct heap_wait_entry heap_wait_drive(struct heap_wait_lane *l, struct heap_wait_entry e);

// What a freed block is filled with: its first and last bytes, so that large ones cost no more than small ones.
static inline void heap_wait_fill(void *block, uint64_t size);
static inline bool heap_wait_is_filled(const void *block, uint64_t size);  // and has not changed
int64_t heap_wait_first_change(const void *block,
                               uint64_t size);  // the first byte that is not as it was filled, or -1

// For any thread: the entry with a number, from taken on; false: there is none. Whatever is read of its block counts only if
// it still waits afterwards. heap_wait_copy takes the block's filled bytes, which heap_wait_copied_changed judges.
enum { HEAP_WAIT_COPY = 2 * HEAP_WAIT_FILLED };
bool heap_wait_entry_at(struct heap_wait *w, uint64_t i, struct heap_wait_entry *e);
bool heap_wait_still(struct heap_wait *w, uint64_t i);
bool heap_wait_lane_entry_at(struct heap_wait_lane *l, uint64_t i, struct heap_wait_entry *e);
bool heap_wait_lane_still(struct heap_wait_lane *l, uint64_t i);
bool heap_wait_copy(const void *block, uint64_t size, unsigned char *copy);
int64_t heap_wait_copied_changed(const unsigned char *copy, uint64_t size);

// --- inline: part of every free ---

int heap_wait_start(struct heap_wait *w);  // maps the slots

static inline struct heap_wait_slot *heap_wait_slot_at(struct heap_wait *w, uint64_t i)
{
    // Acquire: with the release in heap_wait_start, for other threads.
    return &atomic_load_explicit(&w->slots, memory_order_acquire)[i % HEAP_WAIT_BLOCKS];
}

static inline int heap_wait_add(struct heap_wait *w, struct heap_wait_entry e)
{
    int err = atomic_load_explicit(&w->slots, memory_order_relaxed) ? 0 : heap_wait_start(w);
    if (err)
        return err;
    uint64_t put = atomic_load_explicit(&w->put, memory_order_relaxed);
    struct heap_wait_slot *s = heap_wait_slot_at(w, put);
    atomic_store_explicit(&s->block, e.block, memory_order_relaxed);
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    // Release: with the acquire in heap_wait_entry_at.
    atomic_store_explicit(&w->put, put + 1, memory_order_release);
    w->bytes += heap_wait_cost(e.packed);
    return 0;
}

static inline struct heap_wait_entry heap_wait_read_slot(struct heap_wait_slot *s)
{
    return (struct heap_wait_entry){atomic_load_explicit(&s->block, memory_order_relaxed),
                                    atomic_load_explicit(&s->packed, memory_order_relaxed)};
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
    __builtin_prefetch((const void *)((uintptr_t)soon.block - BLOCK_HEAD), 1);
    __builtin_prefetch((const void *)((uintptr_t)soon.block + (soon.packed & BLOCK_SIZE_MASK)));
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
    uint64_t put = atomic_load_explicit(&l->put, memory_order_relaxed);
    struct heap_wait_slot *s = &l->slots[put & l->mask];
    struct heap_wait_entry old = heap_wait_read_slot(s);
    atomic_store_explicit(&l->taken, put - l->mask, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_wait_lane_still
    atomic_store_explicit(&s->block, e.block, memory_order_relaxed);
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    // Release: with the acquire in heap_wait_lane_entry_at.
    atomic_store_explicit(&l->put, put + 1, memory_order_release);
    return old;
}

// One byte, so that any place of a block can be compared with any other; eight times.
static inline uint64_t heap_wait_filler(void)
{
    return heap_key.word[HEAP_KEY_FILLER];
}

// Two words at once, the last of which may overlap: blocks are small, and a call would cost more.
typedef uint64_t heap_wait_pair __attribute__((vector_size(16), aligned(1), may_alias));

static inline void heap_wait_fill_part(char *p, uint64_t size)
{
    uint64_t f = heap_wait_filler(), step = sizeof(heap_wait_pair);
    heap_wait_pair pair = {f, f};
    if (size >= 2 * step) {
        for (uint64_t i = 2 * step; i + 2 * step < size; i += step)
            *(heap_wait_pair *)(p + i) = pair;
        *(heap_wait_pair *)p = *(heap_wait_pair *)(p + step) = pair;
        *(heap_wait_pair *)(p + size - 2 * step) = *(heap_wait_pair *)(p + size - step) = pair;
    } else if (size >= step) {
        *(heap_wait_pair *)p = *(heap_wait_pair *)(p + size - step) = pair;
    } else {
        for (uint64_t i = 0; i < size; i++)
            p[i] = (char)f;
    }
}

static inline bool heap_wait_part_is_filled(const char *p, uint64_t size)
{
    uint64_t f = heap_wait_filler(), other = 0, step = sizeof(heap_wait_pair);
    heap_wait_pair pair = {f, f}, others;
    if (size >= step) {
        uint64_t second = size >= 2 * step ? step : 0;
        others = (*(const heap_wait_pair *)p ^ pair) | (*(const heap_wait_pair *)(p + second) ^ pair);
        others |= (*(const heap_wait_pair *)(p + size - step) ^ pair) |
                  (*(const heap_wait_pair *)(p + size - step - second) ^ pair);
        for (uint64_t i = 2 * step; i + 2 * step < size; i += step)
            others |= *(const heap_wait_pair *)(p + i) ^ pair;
        other = others[0] | others[1];
    } else {
        for (uint64_t i = 0; i < size; i++)
            other |= (unsigned char)p[i] ^ (f & 0xff);
    }
    return !other;
}

static inline void heap_wait_fill(void *block, uint64_t size)
{
    bool small = size <= 2 * HEAP_WAIT_FILLED;
    heap_wait_fill_part(block, small ? size : HEAP_WAIT_FILLED);
    if (!small)
        heap_wait_fill_part((char *)block + size - HEAP_WAIT_FILLED, HEAP_WAIT_FILLED);
}

static inline bool heap_wait_is_filled(const void *block, uint64_t size)
{
    bool small = size <= 2 * HEAP_WAIT_FILLED;
    return heap_wait_part_is_filled(block, small ? size : HEAP_WAIT_FILLED) &&
           (small ||
            heap_wait_part_is_filled((const char *)block + size - HEAP_WAIT_FILLED, HEAP_WAIT_FILLED));
}

#endif
