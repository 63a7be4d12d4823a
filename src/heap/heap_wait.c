// SPDX-License-Identifier: MIT
#include "heap/heap_wait.h"

#include <errno.h>
#include <string.h>

#include "heap/block.h"
#include "heap/gather.h"
#include "heap/guarded.h"
#include "heap/heap_key.h"

// --- the queue ---

uint64_t heap_wait_cost(uint64_t packed)
{
    return (packed & BLOCK_SIZE_MASK) + BLOCK_HEAD;
}

static struct heap_wait_slot *slot_at(struct heap_wait *w, uint64_t i)
{
    // Acquire: with the release in heap_wait_add, for other threads.
    return &atomic_load_explicit(&w->slots, memory_order_acquire)[i % HEAP_WAIT_BLOCKS];
}

int heap_wait_add(struct heap_wait *w, struct heap_wait_entry e)
{
    if (!atomic_load_explicit(&w->slots, memory_order_relaxed)) {
        struct heap_wait_slot *slots = guarded_map(HEAP_WAIT_BLOCKS * sizeof *slots);
        if (!slots)
            return -ENOMEM;
        atomic_store_explicit(&w->slots, slots, memory_order_release);  // with slot_at's acquire
    }
    uint64_t put = atomic_load_explicit(&w->put, memory_order_relaxed);
    struct heap_wait_slot *s = slot_at(w, put);
    atomic_store_explicit(&s->block, e.block, memory_order_relaxed);
    atomic_store_explicit(&s->packed, e.packed, memory_order_relaxed);
    // Release: with the acquire in heap_wait_entry_at.
    atomic_store_explicit(&w->put, put + 1, memory_order_release);
    w->bytes += heap_wait_cost(e.packed);
    return 0;
}

static struct heap_wait_entry read_slot(struct heap_wait *w, uint64_t i)
{
    struct heap_wait_slot *s = slot_at(w, i);
    return (struct heap_wait_entry){atomic_load_explicit(&s->block, memory_order_relaxed),
                                    atomic_load_explicit(&s->packed, memory_order_relaxed)};
}

bool heap_wait_oldest(struct heap_wait *w, uint64_t limit, uint64_t room, struct heap_wait_entry *e)
{
    uint64_t taken = atomic_load_explicit(&w->taken, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&w->put, memory_order_relaxed) - taken;
    if (!count || (w->bytes + room <= limit && count < HEAP_WAIT_BLOCKS))
        return false;
    *e = read_slot(w, taken);
    w->bytes -= heap_wait_cost(e->packed);
    atomic_store_explicit(&w->taken, taken + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);  // with the fence in heap_wait_still
    return true;
}

void heap_wait_forget(struct heap_wait *w)
{
    // Relaxed: in the child of a fork, where nobody looks.
    atomic_store_explicit(&w->taken, atomic_load_explicit(&w->put, memory_order_relaxed),
                          memory_order_relaxed);
    w->bytes = 0;
}

// --- what blocks are filled with ---

// One byte, so that any place of a block can be compared with any other.
static unsigned char filler(void)
{
    return (unsigned char)(heap_key.word[7] | 0x80);
}

void heap_wait_fill(void *block, uint64_t size)
{
    if (size <= 2 * HEAP_WAIT_FILLED) {
        memset(block, filler(), size);
        return;
    }
    memset(block, filler(), HEAP_WAIT_FILLED);
    memset((char *)block + size - HEAP_WAIT_FILLED, filler(), HEAP_WAIT_FILLED);
}

static int64_t first_other(const unsigned char *p, uint64_t size)
{
    unsigned char f = filler();
    if (!size || (p[0] == f && memcmp(p, p + 1, size - 1) == 0))
        return -1;
    for (uint64_t i = 0; i < size; i++)
        if (p[i] != f)
            return (int64_t)i;
    return -1;
}

static int64_t first_of_two(const unsigned char *start, const unsigned char *end, uint64_t size)
{
    int64_t at = first_other(start, HEAP_WAIT_FILLED);
    if (at >= 0)
        return at;
    at = first_other(end, HEAP_WAIT_FILLED);
    return at >= 0 ? (int64_t)(size - HEAP_WAIT_FILLED) + at : -1;
}

int64_t heap_wait_changed(const void *block, uint64_t size)
{
    const unsigned char *p = block;
    return size <= HEAP_WAIT_COPY ? first_other(p, size) : first_of_two(p, p + size - HEAP_WAIT_FILLED, size);
}

// --- other threads ---

bool heap_wait_entry_at(struct heap_wait *w, uint64_t i, struct heap_wait_entry *e)
{
    // Acquire: with the release in heap_wait_add.
    if (i >= atomic_load_explicit(&w->put, memory_order_acquire))
        return false;
    *e = read_slot(w, i);
    return true;
}

bool heap_wait_still(struct heap_wait *w, uint64_t i)
{
    atomic_thread_fence(memory_order_acquire);  // with the fence in heap_wait_oldest
    return atomic_load_explicit(&w->taken, memory_order_relaxed) <= i;
}

bool heap_wait_copy(const void *block, uint64_t size, unsigned char *copy)
{
    const char *p = block;
    if (size <= HEAP_WAIT_COPY)
        return !size || gather_one(p, size, copy);
    return gather_one(p, HEAP_WAIT_FILLED, copy) &&
           gather_one(p + size - HEAP_WAIT_FILLED, HEAP_WAIT_FILLED, copy + HEAP_WAIT_FILLED);
}

int64_t heap_wait_copied_changed(const unsigned char *copy, uint64_t size)
{
    return size <= HEAP_WAIT_COPY ? first_other(copy, size)
                                  : first_of_two(copy, copy + HEAP_WAIT_FILLED, size);
}
