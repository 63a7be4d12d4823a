// SPDX-License-Identifier: MIT
#include "heap/heap_quarantine.h"

#include <errno.h>

#include "heap/safe_read.h"
#include "heap/guarded.h"

// --- the queue ---

int heap_quarantine_start(struct heap_quarantine *w)
{
    struct heap_quarantine_slot *slots = guarded_map(HEAP_QUARANTINE_BLOCKS * sizeof *slots);
    if (!slots)
        return -ENOMEM;
    atomic_store_explicit(&w->slots, slots, memory_order_release);  // with heap_quarantine_slot_at's acquire
    return 0;
}

void heap_quarantine_forget(struct heap_quarantine *w)
{
    // Relaxed: in the child of a fork, where no other thread reads.
    atomic_store_explicit(&w->taken, atomic_load_explicit(&w->put, memory_order_relaxed),
                          memory_order_relaxed);
    w->bytes = 0;
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->lanes, memory_order_relaxed);
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++)
        for (struct heap_quarantine_slot *s = lanes[i].first; s < lanes[i].end; s++)
            atomic_store_explicit(&s->block, NULL, memory_order_relaxed);
}

// --- lanes ---

enum { LANES_FILLED = HEAP_QUARANTINE_LANES / 2 };  // programs do not use all sizes

static size_t length_of(size_t bin, uint64_t limit)
{
    uint64_t most = limit / LANES_FILLED / heap_quarantine_cost(bin * 16);
    return most < 1 ? 1 : most < HEAP_QUARANTINE_LANE ? most : HEAP_QUARANTINE_LANE;
}

struct heap_quarantine_lane *heap_quarantine_lanes_start(struct heap_quarantine *w, uint64_t limit)
{
    struct heap_quarantine_lane *lanes;
    struct heap_quarantine_slot *slots;
    size_t all = 0;
    for (size_t i = 0; i < HEAP_QUARANTINE_LANES; i++)
        all += length_of(i, limit);
    lanes = guarded_map(HEAP_QUARANTINE_LANES * sizeof *lanes + all * sizeof *slots);
    slots = (struct heap_quarantine_slot *)(void *)(lanes + HEAP_QUARANTINE_LANES);
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++) {
        struct heap_quarantine_slot *end = slots + length_of(i, limit);
        lanes[i] = (struct heap_quarantine_lane){.next = slots, .first = slots, .end = end};
        slots = end;
    }
    atomic_store_explicit(&w->lanes, lanes, memory_order_release);  // with the acquire in check_others
    return lanes;
}

// --- what must hold ---

static bool queue_is_valid(struct heap_quarantine *w)
{
    // Relaxed, all: the thread's own data.
    uint64_t taken = atomic_load_explicit(&w->taken, memory_order_relaxed), bytes = 0;
    uint64_t put = atomic_load_explicit(&w->put, memory_order_relaxed);
    if (taken > put || put - taken > HEAP_QUARANTINE_BLOCKS)
        return false;
    for (uint64_t i = taken; i < put; i++) {
        struct heap_quarantine_entry e = heap_quarantine_read(w, i);
        if (!e.block)
            return false;
        bytes += heap_quarantine_cost(e.packed);
    }
    return bytes == w->bytes;
}

static bool lane_is_valid(const struct heap_quarantine_lane *l, size_t bin)
{
    for (struct heap_quarantine_slot *s = l->first; s < l->end; s++)
        if (heap_quarantine_read_slot(s).block &&
            heap_quarantine_read_slot(s).packed > thread_cache_fine_room(bin))
            return false;
    return l->first <= l->next && l->next < l->end;
}

bool heap_quarantine_valid(struct heap_quarantine *w)
{
    struct heap_quarantine_lane *lanes = atomic_load_explicit(&w->lanes, memory_order_relaxed);
    if (!queue_is_valid(w))
        return false;
    for (size_t i = 0; lanes && i < HEAP_QUARANTINE_LANES; i++)
        if (!lane_is_valid(&lanes[i], i) || (i && lanes[i].first != lanes[i - 1].end))
            return false;
    return true;
}

// --- what blocks are filled with ---

static int64_t first_other(const unsigned char *p, uint64_t size)
{
    unsigned char f = (unsigned char)heap_quarantine_filler();
    for (uint64_t i = 0; i < size; i++)
        if (p[i] != f)
            return (int64_t)i;
    return -1;
}

static int64_t first_of_two(const unsigned char *start, const unsigned char *end, uint64_t size)
{
    int64_t at = first_other(start, HEAP_QUARANTINE_FILLED);
    if (at >= 0)
        return at;
    at = first_other(end, HEAP_QUARANTINE_FILLED);
    return at >= 0 ? (int64_t)(size - HEAP_QUARANTINE_FILLED) + at : -1;
}

int64_t heap_quarantine_first_change(const void *block, uint64_t size)
{
    const unsigned char *p = block;
    return size <= HEAP_QUARANTINE_COPY ? first_other(p, size)
                                        : first_of_two(p, p + size - HEAP_QUARANTINE_FILLED, size);
}

// --- other threads ---

bool heap_quarantine_entry_at(struct heap_quarantine *w, uint64_t i, struct heap_quarantine_entry *e)
{
    // Acquire: with the release in heap_quarantine_add.
    if (i >= atomic_load_explicit(&w->put, memory_order_acquire))
        return false;
    *e = heap_quarantine_read(w, i);
    return true;
}

bool heap_quarantine_is_queued(struct heap_quarantine *w, uint64_t i)
{
    atomic_thread_fence(memory_order_acquire);  // with the fence in heap_quarantine_evict
    return atomic_load_explicit(&w->taken, memory_order_relaxed) <= i;
}

bool heap_quarantine_entry_in(struct heap_quarantine_slot *s, struct heap_quarantine_entry *e)
{
    // Acquire: with the release in heap_quarantine_replace_oldest. The other fields may be newer; then
    // heap_quarantine_is_in_slot fails.
    e->block = atomic_load_explicit(&s->block, memory_order_acquire);
    e->packed = atomic_load_explicit(&s->packed, memory_order_relaxed);
    e->sum = atomic_load_explicit(&s->sum, memory_order_relaxed);
    return e->block;
}

bool heap_quarantine_is_in_slot(struct heap_quarantine_slot *s, const struct heap_quarantine_entry *e)
{
    atomic_thread_fence(memory_order_acquire);  // with the fences in heap_quarantine_replace_oldest
    return atomic_load_explicit(&s->block, memory_order_relaxed) == e->block &&
           atomic_load_explicit(&s->packed, memory_order_relaxed) == e->packed &&
           atomic_load_explicit(&s->sum, memory_order_relaxed) == e->sum;
}

bool heap_quarantine_copy(const void *block, uint64_t size, unsigned char *copy)
{
    const char *p = block;
    if (size <= HEAP_QUARANTINE_COPY)
        return !size || safe_read_one(p, size, copy);
    return safe_read_one(p, HEAP_QUARANTINE_FILLED, copy) &&
           safe_read_one(p + size - HEAP_QUARANTINE_FILLED, HEAP_QUARANTINE_FILLED,
                         copy + HEAP_QUARANTINE_FILLED);
}

int64_t heap_quarantine_copied_changed(const unsigned char *copy, uint64_t size)
{
    return size <= HEAP_QUARANTINE_COPY ? first_other(copy, size)
                                        : first_of_two(copy, copy + HEAP_QUARANTINE_FILLED, size);
}
