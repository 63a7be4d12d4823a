// SPDX-License-Identifier: MIT
#include "heap/site.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unwind.h>

#include "heap/guarded.h"

enum { NEAR = 1 << 14, FAR = 1 << 17, PROBES = 8, SLOTS = 1 << 17, POOL = 1 << 20 };

// Slots are filled in order, so that a program with few contexts touches few pages.
struct slot {
    const void *from;
    _Atomic uint32_t stack;  // position in `pool` of a count and frames; 0: none
};

static struct slot *slots;
static _Atomic uint32_t slots_used = 1;  // slot 0 is unused
// Hash tables from keys to slots: first the small table, which most programs do not fill, then the large one.
// An entry has the slot's number in its lower bits and most of the key in its upper ones, so that a lookup
// does not read other keys' slots.
static _Atomic uint64_t *near_index, *far_index;
enum { ENTRY_SLOT = SLOTS - 1 };
static uint64_t *pool;
static _Atomic uint32_t pool_used = 1;
static enum site_depth mode;

int site_init(void)
{
    slots = guarded_keep(SLOTS * sizeof *slots);
    near_index = guarded_keep(NEAR * sizeof *near_index);
    far_index = guarded_keep(FAR * sizeof *far_index);
    pool = guarded_keep(POOL * sizeof *pool);
    return slots && near_index && far_index && pool ? 0 : -ENOMEM;
}

void site_set_depth(enum site_depth depth)
{
    mode = depth;
}

struct walk {
    uint64_t from;
    bool reached;  // the program's own frames
    uint32_t count;
    uint64_t frames[SITE_FRAMES];
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    uint64_t pc = _Unwind_GetIP(context);
    w->reached |= pc == w->from;
    if (w->reached && pc)
        w->frames[w->count++] = pc;
    return w->count < SITE_FRAMES ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static void unwind(struct slot *s, const void *from)
{
    struct walk w = {.from = (uint64_t)(uintptr_t)from};
    _Unwind_Backtrace(step, &w);
    if (!w.count)
        w.frames[w.count++] = w.from;
    // Relaxed: reserves a range for this thread alone.
    uint32_t at = atomic_fetch_add_explicit(&pool_used, w.count + 1, memory_order_relaxed);
    if (at + w.count + 1 > POOL) {
        atomic_store_explicit(&pool_used, POOL, memory_order_relaxed);
        return;
    }
    pool[at] = w.count;
    for (uint32_t i = 0; i < w.count; i++)
        pool[at + 1 + i] = w.frames[i];
    // Release: with the acquire in site_frames.
    atomic_store_explicit(&s->stack, at, memory_order_release);
}

static bool may_unwind(uint32_t unwound, uint64_t operations)
{
    return mode == SITE_ALWAYS || (mode == SITE_RATIONED && unwound < SITE_FIRST + operations / SITE_EVERY);
}

static void deepen(struct slot *s, const void *from, uint32_t *unwound)
{
    if (atomic_load_explicit(&pool_used, memory_order_relaxed) >= POOL)
        return;
    ++*unwound;  // before unwinding: the unwinder may allocate
    unwind(s, from);
}

static uint32_t take_slot(const void *from)
{
    // Relaxed: reserves a slot for this thread alone; a reader of an index acquires it.
    uint32_t n = atomic_fetch_add_explicit(&slots_used, 1, memory_order_relaxed);
    if (n >= SLOTS) {
        atomic_store_explicit(&slots_used, SLOTS, memory_order_relaxed);
        return 0;
    }
    slots[n].from = from;
    return n;
}

// Returns the key's slot in one index, or a fresh one that was put there; 0 if the index has no room.
static uint32_t find_in(_Atomic uint64_t *index, size_t size, uint64_t key, const void *from)
{
    size_t at = (key >> 40) & (size - 1);
    uint64_t tag = key << 18 & ~(uint64_t)ENTRY_SLOT;
    for (size_t i = 0; i < PROBES; i++, at = (at + 1) & (size - 1)) {
        // Acquire: with the release below; the slot is filled.
        uint64_t entry = atomic_load_explicit(&index[at], memory_order_acquire);
        if (!entry) {
            uint32_t fresh = take_slot(from);
            if (!fresh)
                return 0;
            // Release: with the acquire above. If another thread was faster, our slot is lost.
            if (atomic_compare_exchange_strong_explicit(&index[at], &entry, tag | fresh, memory_order_acq_rel,
                                                        memory_order_acquire))
                return fresh;
        }
        if ((entry & ~(uint64_t)ENTRY_SLOT) == tag)
            return entry & ENTRY_SLOT;
    }
    return 0;
}

uint32_t site_of(const void *from, size_t depth, uint32_t *unwound, uint64_t operations)
{
    uint64_t key = ((uint64_t)(uintptr_t)from ^ (uint64_t)depth << 44) * 0x9e3779b97f4a7c15u | 1;
    uint32_t n = find_in(near_index, NEAR, key, from);
    if (!n)
        n = find_in(far_index, FAR, key, from);
    // The slot is read last, as it is seldom in a cache.
    if (n && may_unwind(*unwound, operations) && !atomic_load_explicit(&slots[n].stack, memory_order_relaxed))
        deepen(&slots[n], from, unwound);
    return n;
}

size_t site_frames(uint32_t site, uint64_t *frames)
{
    if (!site || site >= SLOTS)
        return 0;
    struct slot *s = &slots[site];
    uint32_t at = atomic_load_explicit(&s->stack, memory_order_acquire);  // with unwind's release
    if (!at) {
        frames[0] = (uint64_t)(uintptr_t)s->from;
        return frames[0] ? 1 : 0;
    }
    size_t count = pool[at] <= SITE_FRAMES ? pool[at] : 0;
    for (size_t i = 0; i < count; i++)
        frames[i] = pool[at + 1 + i];
    return count;
}

// Marks the slots that the index names, one bit each. Returns false if a slot is unused or named twice.
static bool index_is_valid(_Atomic uint64_t *index, size_t size, uint64_t *named)
{
    for (size_t i = 0; i < size; i++) {
        // Acquire: with the release in find_in.
        uint64_t slot = atomic_load_explicit(&index[i], memory_order_acquire) & ENTRY_SLOT;
        if (!slot)
            continue;
        if (slot >= atomic_load_explicit(&slots_used, memory_order_relaxed) ||
            named[slot / 64] >> slot % 64 & 1)
            return false;
        named[slot / 64] |= 1ull << slot % 64;
    }
    return true;
}

static bool stack_is_valid(const struct slot *s)
{
    uint32_t at = atomic_load_explicit(&s->stack, memory_order_acquire);  // with unwind's release
    return !at || (at < POOL && pool[at] >= 1 && pool[at] <= SITE_FRAMES && at + pool[at] < POOL);
}

bool site_valid(void)
{
    uint64_t *named = guarded_map(SLOTS / 8);
    uint32_t used = atomic_load_explicit(&slots_used, memory_order_relaxed);
    bool valid = !named || (index_is_valid(near_index, NEAR, named) && index_is_valid(far_index, FAR, named));
    guarded_unmap(named, SLOTS / 8);
    for (uint32_t i = 0; i < used && i < SLOTS; i++)
        valid &= stack_is_valid(&slots[i]);
    return valid;
}
