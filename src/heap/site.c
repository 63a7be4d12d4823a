// SPDX-License-Identifier: MIT
#include "heap/site.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unwind.h>

#include "heap/guarded.h"

enum { SLOTS = 1 << 17, PROBES = 8, POOL = 1 << 20 };

struct slot {
    _Atomic uint64_t key;  // 0: empty
    const void *_Atomic from;
    _Atomic uint32_t stack;  // place in `pool` of a count and frames; 0: none
};

static struct slot *slots;
static uint64_t *pool;
static _Atomic uint32_t pool_used = 1;
static enum site_depth mode;

int site_init(void)
{
    slots = guarded_map(SLOTS * sizeof *slots);
    pool = guarded_map(POOL * sizeof *pool);
    return slots && pool ? 0 : -ENOMEM;
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
    // Relaxed: takes a range for this thread alone.
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

static void deepen(struct slot *s, const void *from, uint32_t *unwound, uint64_t operations)
{
    if (!may_unwind(*unwound, operations) || atomic_load_explicit(&pool_used, memory_order_relaxed) >= POOL)
        return;
    ++*unwound;  // before: the unwinder may allocate
    unwind(s, from);
}

uint32_t site_of(const void *from, size_t depth, uint32_t *unwound, uint64_t operations)
{
    uint64_t key = ((uint64_t)(uintptr_t)from ^ (uint64_t)depth << 44) * 0x9e3779b97f4a7c15u | 1;
    size_t at = key >> 47;
    for (size_t i = 0; i < PROBES; i++, at = (at + 1) % SLOTS) {
        struct slot *s = &slots[at];
        // Relaxed: what a key stands for is read by site_frames only, long after.
        uint64_t found = atomic_load_explicit(&s->key, memory_order_relaxed);
        if (!found && atomic_compare_exchange_strong_explicit(&s->key, &found, key, memory_order_relaxed,
                                                              memory_order_relaxed)) {
            atomic_store_explicit(&s->from, from, memory_order_relaxed);
            found = key;
        }
        if (found != key)
            continue;
        if (!atomic_load_explicit(&s->stack, memory_order_relaxed) && mode != SITE_CALLER_ONLY)
            deepen(s, from, unwound, operations);
        return (uint32_t)at + 1;
    }
    return 0;
}

size_t site_frames(uint32_t site, uint64_t *frames)
{
    if (!site || site > SLOTS)
        return 0;
    struct slot *s = &slots[site - 1];
    uint32_t at = atomic_load_explicit(&s->stack, memory_order_acquire);  // with unwind's release
    if (!at) {
        frames[0] = (uint64_t)(uintptr_t)atomic_load_explicit(&s->from, memory_order_relaxed);
        return frames[0] ? 1 : 0;
    }
    size_t count = pool[at] <= SITE_FRAMES ? pool[at] : 0;
    for (size_t i = 0; i < count; i++)
        frames[i] = pool[at + 1 + i];
    return count;
}
