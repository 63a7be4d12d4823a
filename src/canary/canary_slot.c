// SPDX-License-Identifier: MIT
#include "canary/canary_slot.h"

#include <assert.h>

#include "base/checked.h"

#define IDLE ((uint64_t)1 << 63)  // in a slot's held: all work of the time before has ended

enum { SIDES = 7 };  // of canary_verify.h, all

bool canary_slot_valid(const struct canary_slab *s, uint32_t number)
{
    const struct canary_slot *t = &s->slot[number];
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_acquire);
    uint64_t size = atomic_load_explicit(&t->size, memory_order_relaxed);
    uint64_t held = atomic_load_explicit(&t->held, memory_order_relaxed);
    uint32_t told = (uint32_t)atomic_load_explicit(&t->told, memory_order_relaxed);
    uint64_t most = s->stride - CANARY_HEAD - CANARY_TAIL_LEAST;
    // Pairs with the release fences of who changes it.
    atomic_thread_fence(memory_order_acquire);
    if (turn & 1 || atomic_load_explicit(&t->turn, memory_order_relaxed) != turn)
        return true;
    return !(size && held) && held != IDLE && size <= most && (held & ~IDLE) <= most &&
           (!held || s->memory->kind == CANARY_OURS) && !(told & ~SIDES);
}

void canary_slot_hold(struct canary_slot *t, uint64_t held)
{
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_relaxed);
    checked_assert(!(turn & 1));  // one writer at a time
    if (atomic_load_explicit(&t->held, memory_order_relaxed) == held)
        return;
    atomic_store_explicit(&t->turn, turn + 1, memory_order_relaxed);
    // Pairs with the acquire fence in canary_slot_read.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->held, held, memory_order_relaxed);
    atomic_store_explicit(&t->turn, turn + 2, memory_order_release);
}

static uint64_t untold(uint64_t telling)
{
    return ((telling >> 32) + 1) << 32;
}

static void publish(const struct canary_place *place, uint64_t scan, bool again)
{
    struct canary_slot *t = &place->slab->slot[place->number];
    struct canary_seed seed = canary_slab_seed(place);
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_relaxed);
    assert(place->size && place->number < place->slab->slots);
    checked_assert(!(turn & 1));  // one writer at a time
    atomic_store_explicit(&t->turn, turn + 1, memory_order_relaxed);
    // Pairs with the acquire fence in canary_slot_read: who sees a number below sees the odd turn.
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&t->seed[0], seed.start, memory_order_relaxed);
    atomic_store_explicit(&t->seed[1], seed.step, memory_order_relaxed);
    atomic_store_explicit(&t->seed[2], seed.cover, memory_order_relaxed);
    atomic_store_explicit(&t->since, scan, memory_order_relaxed);
    if (!again)
        atomic_store_explicit(&t->told, untold(atomic_load_explicit(&t->told, memory_order_relaxed)),
                              memory_order_relaxed);
    atomic_store_explicit(&t->held, 0, memory_order_relaxed);
    atomic_store_explicit(&t->size, place->size, memory_order_relaxed);
    // Pairs with the acquire of turn in canary_slot_read.
    atomic_store_explicit(&t->turn, turn + 2, memory_order_release);
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
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_acquire);
    b->size = atomic_load_explicit(&t->size, memory_order_relaxed);
    b->freed = !b->size;
    b->idle = b->withdrawn = false;
    b->turn = turn;
    b->changing = turn & 1;
    if (b->freed) {
        uint64_t held = atomic_load_explicit(&t->held, memory_order_relaxed);
        b->size = held & ~IDLE;
        b->idle = held & IDLE;
    }
    if (turn & 1 || !b->size || atomic_load_explicit(&t->since, memory_order_relaxed) >= scan)
        return false;
    b->seed.start = atomic_load_explicit(&t->seed[0], memory_order_relaxed);
    b->seed.step = atomic_load_explicit(&t->seed[1], memory_order_relaxed);
    b->seed.cover = atomic_load_explicit(&t->seed[2], memory_order_relaxed);
    b->told = atomic_load_explicit(&t->told, memory_order_relaxed);
    // Pairs with the release fence in publish.
    atomic_thread_fence(memory_order_acquire);
    b->changing = atomic_load_explicit(&t->turn, memory_order_relaxed) != turn;
    return !b->changing;
}

bool canary_slot_tell(struct canary_slab *s, uint32_t number, uint64_t telling, uint32_t sides)
{
    assert(sides && number < s->slots);
    // Relaxed: of two that look at once, one is first.
    _Atomic uint64_t *told = &s->slot[number].told;
    uint64_t now = atomic_load_explicit(told, memory_order_relaxed);
    do
        if (now >> 32 != telling >> 32 || !(sides & ~now))
            return false;
    while (!atomic_compare_exchange_weak_explicit(told, &now, now | sides, memory_order_relaxed,
                                                  memory_order_relaxed));
    return true;
}

uint64_t canary_slot_telling(const struct canary_slab *s, uint32_t number)
{
    return atomic_load_explicit(&s->slot[number].told, memory_order_relaxed);
}

uint32_t canary_slot_told(const struct canary_slab *s, uint32_t number)
{
    return (uint32_t)canary_slot_telling(s, number);
}

void canary_slot_await(const struct canary_place *place, uint64_t scan)
{
    struct canary_slab *s = place->slab;
    struct canary_slot *t = &s->slot[place->number];
    uint64_t held = atomic_load_explicit(&t->held, memory_order_relaxed);
    checked_assert(!atomic_load_explicit(&t->size, memory_order_relaxed));  // it is withdrawn
    atomic_store_explicit(&t->since, scan, memory_order_relaxed);
    // After that: a scan that began before reads what may have been written before.
    if (held)
        canary_slot_hold(t, held | IDLE);
    // Relaxed: a scan beyond this one sees it, see canary_scan_number.
    uint64_t freed = atomic_load_explicit(&s->freed, memory_order_relaxed);
    while (freed < scan + 1 && !atomic_compare_exchange_weak_explicit(
                                   &s->freed, &freed, scan + 1, memory_order_relaxed, memory_order_relaxed))
        ;
}

bool canary_slot_is_checked(const struct canary_slab *s, uint32_t number)
{
    // Acquire pairs with the release in canary_scan: who sees that a scan looked sees what it told.
    return atomic_load_explicit(&s->checked, memory_order_acquire) >
           atomic_load_explicit(&s->slot[number].since, memory_order_relaxed);
}
