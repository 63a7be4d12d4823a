// SPDX-License-Identifier: MIT
#include "heap/unmapped.h"

#include <errno.h>

#include "heap/safe_read.h"

enum { SLOTS_LOG2 = 8 };

// Relaxed, all: if threads write a slot at the same time, its sum is wrong. The address is complemented, so
// that the search for leaks does not find it here.
struct slot {
    _Atomic uint64_t address, size, place, ticket, canary, sum;
};

static struct slot slots[1 << SLOTS_LOG2];

static struct slot *slot_of(uint64_t address)
{
    return &slots[(address / UNMAPPED_PAGE * 0x9e3779b97f4a7c15u) >> (64 - SLOTS_LOG2)];
}

static void set(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

void unmapped_note(const void *block, struct block_head head, uint32_t freed_at)
{
    uint64_t address = (uint64_t)(uintptr_t)block;
    struct slot *s = slot_of(address);
    if (!unmapped_may_be(block) || block_info_of(block, &head).size < UNMAPPED_LEAST)
        return;
    head.canary = block_freed_canary(address, head.ticket) ^ freed_at;
    set(&s->address, ~address);
    set(&s->size, head.size);
    set(&s->place, head.place);
    set(&s->ticket, head.ticket);
    set(&s->canary, head.canary);
    set(&s->sum, block_sum(&head, address));
}

void unmapped_forget(const void *block)
{
    struct slot *s = slot_of((uint64_t)(uintptr_t)block);
    if (get(&s->address) == ~(uint64_t)(uintptr_t)block)
        set(&s->address, 0);
}

bool unmapped_is(const void *p, struct block_head *head)
{
    uint64_t address = (uint64_t)(uintptr_t)p;
    struct slot *s = slot_of(address);
    struct block_head now;
    if (get(&s->address) != ~address)
        return false;
    *head = (struct block_head){get(&s->size), get(&s->place), get(&s->ticket), get(&s->canary)};
    if (get(&s->sum) != block_sum(head, address) || !block_is_freed(p, head))
        return false;
    int saved = errno;
    bool gone = !safe_read_one((const char *)p - BLOCK_HEAD, sizeof now, &now);
    errno = saved;
    if (!gone)
        unmapped_forget(p);
    return gone;
}
