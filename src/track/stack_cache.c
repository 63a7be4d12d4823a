// SPDX-License-Identifier: MIT
// A stack equals one that was unwound before if it starts at the same frame with the same frame pointer, and
// every return address has the same place and value. Each return address, from the innermost on, determines
// where the next one lies, as the unwinder would find it: the address of a call determines the size of its
// function's frame, unless the size is chosen at run time (alloca), and then it follows from the frame
// pointer. So an address is read only when those below it are known to be right, and lies in this thread's
// stack.
//
// Entries are shared between threads, whose stacks lie apart. Each entry is a seqlock: a writer makes `turn`
// odd while it stores; a reader copies the entry and uses the copy if `turn` was even and has not changed.
// Neither waits: a busy entry counts as a miss.
#include "track/stack_cache.h"

#include <stdatomic.h>
#include <stddef.h>

enum { ENTRIES = 256 };

static struct entry {
    _Alignas(64) _Atomic uint64_t turn;
    _Atomic uint64_t frame, frame_pointer;
    _Atomic uint32_t depth, count, id;
    _Atomic uint32_t offset[STACK_CACHE_FRAMES];
    _Atomic uint64_t pc[STACK_CACHE_FRAMES];
} entries[ENTRIES];

// On x86-64 a frame begins with the caller's frame pointer and the return address, and a return address lies
// right below the canonical frame address. On other machines nothing is cached.
#ifdef __x86_64__
enum { KEEPS = 1 };
#else
enum { KEEPS = 0 };
#endif

static struct entry *entry_of(const uint64_t *frame)
{
    uint64_t h = ((uintptr_t)frame ^ frame[1] << 20) * 0x9e3779b97f4a7c15u;
    return &entries[h >> 56];
}

void stack_cache_start(struct stack_cache_walk *walk, const void *frame, unsigned depth)
{
    walk->frame = frame;
    walk->depth = depth;
    walk->count = 0;
    walk->uncacheable = !KEEPS;
}

// Reads stack memory outside of any object that the compiler knows.
__attribute__((no_sanitize("address"))) static uint64_t word_at(const uint64_t *frame, uint32_t offset)
{
    return *(const volatile uint64_t *)((const char *)frame + offset);
}

void stack_cache_add(struct stack_cache_walk *walk, uint64_t pc, uint64_t cfa)
{
    uint64_t offset = cfa - sizeof pc - (uintptr_t)walk->frame;
    uint64_t least = walk->count ? walk->offset[walk->count - 1] + sizeof pc : sizeof pc;
    walk->uncacheable |= walk->count == STACK_CACHE_FRAMES || cfa % sizeof pc || offset > UINT32_MAX ||
                         offset < least || word_at(walk->frame, (uint32_t)offset) != pc;
    if (walk->uncacheable)
        return;
    walk->pc[walk->count] = pc;
    walk->offset[walk->count++] = (uint32_t)offset;
}

// Copies an entry. Returns false if it is being written or is about another frame.
static bool copy(struct entry *e, const uint64_t *frame, unsigned depth, struct stack_cache_walk *walk,
                 uint32_t *id)
{
    // Acquire, here and below: pairs with the releases in stack_cache_keep. Below, it keeps the second load
    // of `turn` after all other loads.
    uint64_t turn = atomic_load_explicit(&e->turn, memory_order_acquire);
    walk->count = atomic_load_explicit(&e->count, memory_order_acquire);
    if (turn % 2 || walk->count > STACK_CACHE_FRAMES ||
        atomic_load_explicit(&e->frame, memory_order_acquire) != (uintptr_t)frame ||
        atomic_load_explicit(&e->frame_pointer, memory_order_acquire) != frame[0] ||
        atomic_load_explicit(&e->depth, memory_order_acquire) != depth)
        return false;
    *id = atomic_load_explicit(&e->id, memory_order_acquire);
    for (unsigned i = 0; i < walk->count; i++) {
        walk->offset[i] = atomic_load_explicit(&e->offset[i], memory_order_acquire);
        walk->pc[i] = atomic_load_explicit(&e->pc[i], memory_order_acquire);
    }
    return atomic_load_explicit(&e->turn, memory_order_relaxed) == turn;
}

uint32_t stack_cache_find(const void *frame, unsigned depth)
{
    struct stack_cache_walk walk;
    uint32_t id = 0;
    if (!KEEPS || !copy(entry_of(frame), frame, depth, &walk, &id))
        return 0;
    for (unsigned i = 0; i < walk.count; i++)
        if (word_at(frame, walk.offset[i]) != walk.pc[i])
            return 0;
    return id;
}

void stack_cache_keep(const struct stack_cache_walk *walk, uint32_t id)
{
    if (walk->uncacheable || !walk->count || !id)
        return;
    struct entry *e = entry_of(walk->frame);
    uint64_t turn = atomic_load_explicit(&e->turn, memory_order_relaxed);
    // Acquire: orders our stores after another writer's. The releases below keep our stores after this
    // exchange and before the last store of `turn`; they pair with copy.
    if (turn % 2 || !atomic_compare_exchange_strong_explicit(&e->turn, &turn, turn + 1, memory_order_acquire,
                                                             memory_order_relaxed))
        return;
    atomic_store_explicit(&e->frame, (uintptr_t)walk->frame, memory_order_release);
    atomic_store_explicit(&e->frame_pointer, walk->frame[0], memory_order_release);
    atomic_store_explicit(&e->depth, walk->depth, memory_order_release);
    atomic_store_explicit(&e->count, walk->count, memory_order_release);
    atomic_store_explicit(&e->id, id, memory_order_release);
    for (unsigned i = 0; i < walk->count; i++) {
        atomic_store_explicit(&e->offset[i], walk->offset[i], memory_order_release);
        atomic_store_explicit(&e->pc[i], walk->pc[i], memory_order_release);
    }
    atomic_store_explicit(&e->turn, turn + 2, memory_order_release);
}

void stack_cache_clear(void)
{
    for (unsigned i = 0; i < ENTRIES; i++)
        atomic_store_explicit(&entries[i].frame, 0, memory_order_relaxed);
}
