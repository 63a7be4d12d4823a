// SPDX-License-Identifier: MIT
#include "canary/canary_slot.h"

#include <assert.h>

#include "base/checked.h"

#define IDLE ((uint64_t)1 << 63)  // in freed_size: all work from before the free has ended

enum { SIDES = 7 };  // mask of the sides of canary_verify.h

bool canary_slot_valid(const struct canary_slab *s, uint32_t number)
{
    const struct canary_slot *t = &s->slot[number];
    uint32_t seq = atomic_load_explicit(&t->seq, memory_order_acquire);
    uint64_t size = atomic_load_explicit(&t->size, memory_order_relaxed);
    uint64_t freed_size = atomic_load_explicit(&t->freed_size, memory_order_relaxed);
    uint32_t reported = (uint32_t)atomic_load_explicit(&t->reported, memory_order_relaxed);
    uint64_t most = s->stride - CANARY_HEAD - CANARY_TAIL_LEAST;
    // Pairs with the release fences of the writers.
    atomic_thread_fence(memory_order_acquire);
    if (seq & 1 || atomic_load_explicit(&t->seq, memory_order_relaxed) != seq)
        return true;
    return !(size && freed_size) && freed_size != IDLE && size <= most && (freed_size & ~IDLE) <= most &&
           (!freed_size || s->memory->kind == CANARY_SUBALLOCATED) && !(reported & ~SIDES);
}

void canary_slot_set_freed(struct canary_slot *t, uint64_t freed_size)
{
    uint32_t seq = atomic_load_explicit(&t->seq, memory_order_relaxed);
    checked_assert(!(seq & 1));  // one writer at a time
    if (atomic_load_explicit(&t->freed_size, memory_order_relaxed) == freed_size)
        return;
    atomic_store_explicit(&t->seq, seq + 1, memory_order_relaxed);
    // Pairs with the acquire fence in canary_slot_read.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->freed_size, freed_size, memory_order_relaxed);
    atomic_store_explicit(&t->seq, seq + 2, memory_order_release);
}

static uint64_t reset_state(uint64_t state)
{
    return ((state >> 32) + 1) << 32;
}

static void publish(const struct canary_place *place, uint64_t scan, bool again)
{
    struct canary_slot *t = &place->slab->slot[place->number];
    struct canary_seed seed = canary_slab_seed(place);
    uint32_t seq = atomic_load_explicit(&t->seq, memory_order_relaxed);
    assert(place->size && place->number < place->slab->slots);
    checked_assert(!(seq & 1));  // one writer at a time
    atomic_store_explicit(&t->seq, seq + 1, memory_order_relaxed);
    // Pairs with the acquire fence in canary_slot_read: a reader that sees a member below also sees the odd
    // seq.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->seed[0], seed.start, memory_order_relaxed);
    atomic_store_explicit(&t->seed[1], seed.step, memory_order_relaxed);
    atomic_store_explicit(&t->seed[2], seed.cover, memory_order_relaxed);
    atomic_store_explicit(&t->since, scan, memory_order_relaxed);
    if (!again)
        atomic_store_explicit(&t->reported,
                              reset_state(atomic_load_explicit(&t->reported, memory_order_relaxed)),
                              memory_order_relaxed);
    atomic_store_explicit(&t->freed_size, 0, memory_order_relaxed);
    atomic_store_explicit(&t->size, place->size, memory_order_relaxed);
    // Pairs with the acquire load of seq in canary_slot_read.
    atomic_store_explicit(&t->seq, seq + 2, memory_order_release);
}

void canary_slot_publish(const struct canary_place *place, uint64_t scan)
{
    publish(place, scan, false);
}

void canary_slot_publish_again(const struct canary_place *place, uint64_t scan)
{
    publish(place, scan, true);
}

bool canary_slot_read(const struct canary_slab *s, uint32_t number, uint64_t scan, struct canary_buffer *b)
{
    const struct canary_slot *t = &s->slot[number];
    uint32_t seq = atomic_load_explicit(&t->seq, memory_order_acquire);
    b->size = atomic_load_explicit(&t->size, memory_order_relaxed);
    b->freed = !b->size;
    b->idle = b->withdrawn = false;
    b->seq = seq;
    b->changing = seq & 1;
    if (b->freed) {
        uint64_t freed_size = atomic_load_explicit(&t->freed_size, memory_order_relaxed);
        b->size = freed_size & ~IDLE;
        b->idle = freed_size & IDLE;
    }
    if (seq & 1 || !b->size || atomic_load_explicit(&t->since, memory_order_relaxed) >= scan)
        return false;
    b->seed.start = atomic_load_explicit(&t->seed[0], memory_order_relaxed);
    b->seed.step = atomic_load_explicit(&t->seed[1], memory_order_relaxed);
    b->seed.cover = atomic_load_explicit(&t->seed[2], memory_order_relaxed);
    b->reported = atomic_load_explicit(&t->reported, memory_order_relaxed);
    // Pairs with the release fence in publish.
    atomic_thread_fence(memory_order_acquire);
    b->changing = atomic_load_explicit(&t->seq, memory_order_relaxed) != seq;
    return !b->changing;
}

bool canary_slot_mark_reported(struct canary_slab *s, uint32_t number, uint64_t state, uint32_t sides)
{
    assert(sides && number < s->slots);
    // Relaxed: of two threads that verify at once, one succeeds.
    _Atomic uint64_t *reported = &s->slot[number].reported;
    uint64_t now = atomic_load_explicit(reported, memory_order_relaxed);
    do
        if (now >> 32 != state >> 32 || !(sides & ~now))
            return false;
    while (!atomic_compare_exchange_weak_explicit(reported, &now, now | sides, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

uint64_t canary_slot_report_state(const struct canary_slab *s, uint32_t number)
{
    return atomic_load_explicit(&s->slot[number].reported, memory_order_relaxed);
}

uint32_t canary_slot_reported(const struct canary_slab *s, uint32_t number)
{
    return (uint32_t)canary_slot_report_state(s, number);
}

void canary_slot_await(const struct canary_place *place, uint64_t scan)
{
    struct canary_slab *s = place->slab;
    struct canary_slot *t = &s->slot[place->number];
    uint64_t freed_size = atomic_load_explicit(&t->freed_size, memory_order_relaxed);
    checked_assert(!atomic_load_explicit(&t->size, memory_order_relaxed));  // it is withdrawn
    atomic_store_explicit(&t->since, scan, memory_order_relaxed);
    // Only after `since`: a scan that began before may read what was written before the free.
    if (freed_size)
        canary_slot_set_freed(t, freed_size | IDLE);
    // Relaxed: later scans see it, see canary_scan_number.
    uint64_t freed = atomic_load_explicit(&s->freed, memory_order_relaxed);
    while (freed < scan + 1 && !atomic_compare_exchange_weak_explicit(
                                   &s->freed, &freed, scan + 1, memory_order_relaxed, memory_order_relaxed))
        ;
}

bool canary_slot_is_checked(const struct canary_slab *s, uint32_t number)
{
    // Acquire pairs with the release in canary_scan.c: if a scan has verified the slot, what it reported is
    // visible.
    return atomic_load_explicit(&s->checked, memory_order_acquire) >
           atomic_load_explicit(&s->slot[number].since, memory_order_relaxed);
}
