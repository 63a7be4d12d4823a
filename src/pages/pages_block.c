// SPDX-License-Identifier: MIT
#include "pages/pages_block.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "core/canary_bytes.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "launch/launch_ring.h"
#include "pages/pages_address.h"
#include "pages/pages_map.h"
#include "pages/pages_packed.h"
#include "pages/pages_redzone.h"
#include "share/share.h"
#include "core/slab_pool.h"
#include "context/context_copy.h"
#include "track/track.h"

enum {
    HEAD = 256,         // bytes of the canary before a buffer
    CANARY_MOST = 512,  // bytes of a canary on either side, at most
    MOST_GAP = 16,      // most units behind a large buffer
    NOTE = 2000,
    KERNELS = 4,  // most that a note names
    // most blocks on the CPU device, where each takes several of the mappings that Linux allows
    MOST_MAPS = 8192,
};

static struct slab_pool blocks = SLAB_POOL(struct pages_block);
static struct index mapped = INDEX_INIT;
static _Atomic uint32_t
    maps;  // blocks that are mapped by themselves; relaxed: threads may exceed a limit a bit

void pages_block_after_fork(void)
{
    pages_map_after_fork();
    pages_packed_after_fork();
    slab_pool_after_fork(&blocks);
    index_after_fork(&mapped);
}

static void release(struct epoch_node *node)
{
    slab_pool_put(&blocks, (char *)node - offsetof(struct pages_block, range.retired));
}

static uint32_t units_of(const struct pages_memory *m)
{
    uint64_t units = m->bytes >> PAGES_ADDRESS_BITS, gap = m->slab ? 1 : units < MOST_GAP ? units : MOST_GAP;
    uint64_t redzone = (pages_redzone(m->asked) + PAGES_ADDRESS_UNIT - 1) >> PAGES_ADDRESS_BITS;
    return (uint32_t)(units + (gap > redzone ? gap : redzone));
}

static bool too_many(void)
{
    return guard.real_fault && atomic_load_explicit(&maps, memory_order_relaxed) >= MOST_MAPS;
}

// Maps the block's memory at addresses of its own. Returns 0, or -1 with nothing changed.
static int map(struct pages_block *b, uint64_t peers)
{
    b->units = units_of(&b->memory);
    b->front = pages_redzone_front(b->size, b->memory.offset);
    if (pages_map(b->memory.handle, b->memory.bytes, b->front, b->units, b->device, peers, &b->range.base))
        return -1;
    b->range.size = b->memory.bytes;
    b->base = b->range.base + b->memory.offset;
    atomic_fetch_add_explicit(&maps, 1, memory_order_relaxed);
    return 0;
}

// Gives the block a slot of a view. Returns 0, or -1 with nothing changed.
static int pack(struct pages_block *b, uint64_t peers)
{
    if (pages_packed_take(b->device, b->size, peers, &b->memory, &b->range.base, &b->range.size))
        return -1;
    b->base = b->range.base;
    return 0;
}

// Gives the block memory and addresses; same as in pages_block_make. Returns 0, or -1 with nothing changed.
static int place(struct pages_block *b, uint64_t peers, const struct pages_block *same)
{
    if (!same && pages_memory_is_packed(b->size))
        return pack(b, peers);
    if (too_many())
        return -1;
    if (same)
        b->memory = same->memory;
    else if (pages_memory_take(b->device, b->size, &b->memory))
        return -1;
    int err = map(b, peers);
    if (err && !same)
        pages_memory_give(&b->memory);
    return err;
}

static void write_canaries(struct context *ctx, struct pages_block *b)
{
    uint8_t head[CANARY_MOST], tail[CANARY_MOST];
    canary_bytes_before(&b->seed, head, b->head);
    canary_bytes_tail(&b->seed, tail, b->tail);
    const struct context_copy copies[] = {{b->base - b->head, head, b->head},
                                          {b->base + b->size, tail, b->tail}};
    if ((b->head || b->tail) && context_write(ctx, copies, 2)) {
        b->head = b->tail = 0;
        guard_count(GUARD_PAGES_BARE);
    }
}

static void set_canaries(struct pages_block *b)
{
    uint64_t behind = b->range.base + b->range.size - (b->base + b->size);
    if (b->memory.slab || b->memory.view)
        return;
    b->seed = canary_bytes_seed(b->base, b->size);
    b->head = b->memory.offset < HEAD ? (uint32_t)b->memory.offset : HEAD;
    // No GPU has an alignment beyond the size of a canary; if it had, the first bytes would count.
    b->tail = behind < CANARY_MOST ? (uint32_t)behind : CANARY_MOST;
}

static bool memory_fits(const struct pages_block *b)
{
    const struct pages_memory *m = &b->memory;
    return b->range.size == m->bytes && b->base == b->range.base + m->offset && m->asked == b->size &&
           b->head <= m->offset && !(m->slab && (b->head || b->tail));
}

static bool packed_valid(const struct pages_block *b)
{
    return !b->units && b->base == b->range.base && b->size && b->range.size >= PAGES_PACKED_GAP &&
           b->size <= b->range.size - PAGES_PACKED_GAP && b->memory.asked == b->size && !b->head &&
           !b->tail && b->memory.offset + b->range.size <= b->memory.bytes;
}

bool pages_block_valid(const struct pages_block *b)
{
    uint64_t end = b->range.base + b->range.size;
    if (b->memory.view)
        return packed_valid(b);
    return b->range.base % PAGES_ADDRESS_UNIT == 0 && b->range.size % PAGES_ADDRESS_UNIT == 0 &&
           b->range.base <= b->base && b->base < end && b->size && b->size <= end - b->base &&
           b->units > b->range.size >> PAGES_ADDRESS_BITS && b->tail <= end - (b->base + b->size) &&
           (!b->memory.handle || memory_fits(b));
}

struct pages_block *pages_block_make(struct context *ctx, uint64_t size, const struct pages_block *same)
{
    assert(size && (!same || same->memory.asked == size));
    struct pages_block *b = slab_pool_get(&blocks);
    if (!b)
        return NULL;
    *b = (struct pages_block){
        .size = size,
        .device = ctx->device,
        .context = atomic_load_explicit(&ctx->handle, memory_order_relaxed),
    };
    // Relaxed: a peer that is enabled meanwhile gets access from the call that enables it, or from this one.
    if (place(b, atomic_load_explicit(&ctx->peers, memory_order_relaxed), same)) {
        slab_pool_put(&blocks, b);
        return NULL;
    }
    if (same) {
        b->seed = same->seed;
        b->head = same->head;
        b->tail = same->tail;
    } else {
        set_canaries(b);
        write_canaries(ctx, b);
    }
    checked_assert(pages_block_valid(b));
    return b;
}

bool pages_block_publish(struct pages_block *b)
{
    return !index_insert(&mapped, &b->range);
}

struct pages_block *pages_block_find(uint64_t address)
{
    return (struct pages_block *)index_find(&mapped, address);
}

struct pages_block *pages_block_withdraw(uint64_t pointer)
{
    unsigned section = epoch_enter();
    struct pages_block *b = pages_block_find(pointer);
    uint64_t base = b && b->base == pointer ? b->range.base : 0;
    epoch_leave(section);
    // Of two threads that free the same buffer, one finds it gone.
    b = base ? (struct pages_block *)index_remove(&mapped, base) : NULL;
    assert(!b || b->base == pointer);
    return b;
}

struct search {
    CUcontext context;
    uint64_t base;
};

static int of_context(struct index_item *item, void *context)
{
    struct search *s = context;
    const struct pages_block *b = (const struct pages_block *)item;
    if (b->pool || atomic_load_explicit(&b->context, memory_order_relaxed) != s->context)
        return 0;
    s->base = item->base;
    return 1;
}

struct pages_block *pages_block_withdraw_any(CUcontext context)
{
    struct search s = {.context = context};
    return pages_block_each(of_context, &s) ? (struct pages_block *)index_remove(&mapped, s.base) : NULL;
}

static int orphan(struct index_item *item, void *context)
{
    struct pages_block *b = (struct pages_block *)item;
    if (b->pool && atomic_load_explicit(&b->context, memory_order_relaxed) == context)
        atomic_store_explicit(&b->context, NULL, memory_order_relaxed);
    return 0;
}

void pages_block_orphan(CUcontext context)
{
    pages_block_each(orphan, context);
}

// Adds the buffer's record to a finding. Call it in an epoch section.
static void add_buffer(struct guard_finding *f, const struct pages_block *b)
{
    struct track_block *t = track_live(b->base);
    bool freed = !t;
    if (!t)
        t = track_freed(b->base);
    if (t)
        f->buffers[f->nbuffers++] = track_copy(t, freed);
}

// Composes the note and the names of the last kernels.
static void add_kernels(char text[NOTE], const char *note)
{
    const char *names[KERNELS];
    unsigned n = launch_ring_recent(names, KERNELS);
    launch_ring_print(text, NOTE, (size_t)snprintf(text, NOTE, "%s", note), "; launched last:", names, n);
}

static void report(const struct pages_block *b, unsigned side, const uint8_t *bytes, enum driver_id call,
                   const char *note)
{
    uint8_t touched[CANARY_MOST / 8];
    uint32_t first = 0, last = 0, count = side ? b->tail : b->head;
    uint8_t made[CANARY_MOST];
    if (side)
        canary_bytes_tail(&b->seed, made, count);
    else
        canary_bytes_before(&b->seed, made, count);
    uint32_t changed = canary_bytes_compare(bytes, made, count, touched, &first, &last);
    if (!changed)
        return;
    uint64_t base = side ? b->base + b->size : b->base - b->head;
    char text[NOTE];
    add_kernels(text, note);
    struct guard_finding f = {
        .type = side ? REPORT_HEAP_OVERFLOW : REPORT_HEAP_UNDERFLOW,
        .call = call < DRIVER_CALLS ? call : 0,
        .call_name = call < DRIVER_CALLS ? NULL : "the end of the program",
        // The changed bytes nearest to the buffer.
        .address = base + (side ? first : canary_bytes_run(touched, last)),
        .note = text,
        .corrupted = {.base = base, .count = count, .bytes = bytes, .touched = touched},
    };
    unsigned section = epoch_enter();
    add_buffer(&f, b);
    epoch_leave(section);
    guard_report_finding(&f);
}

void pages_block_check(struct context *ctx, struct pages_block *b, enum driver_id call, const char *note)
{
    uint8_t head[CANARY_MOST], tail[CANARY_MOST], now[2][CANARY_MOST];
    const struct context_copy copies[] = {{b->base - b->head, now[0], b->head},
                                          {b->base + b->size, now[1], b->tail}};
    if ((!b->head && !b->tail) || atomic_load_explicit(&b->reported, memory_order_relaxed))
        return;
    canary_bytes_before(&b->seed, head, b->head);
    canary_bytes_tail(&b->seed, tail, b->tail);
    if (context_read(ctx, copies, 2) ||
        (memcmp(now[0], head, b->head) == 0 && memcmp(now[1], tail, b->tail) == 0))
        return;
    // Relaxed: two threads that check at once report twice, and the reports are merged.
    atomic_store_explicit(&b->reported, true, memory_order_relaxed);
    report(b, 0, now[0], call, note);
    report(b, 1, now[1], call, note);
    // A buffer that takes the memory over must not be blamed again.
    write_canaries(ctx, b);
}

void pages_block_dispose(struct pages_block *b)
{
    checked_assert(pages_block_valid(b));
    share_withdraw(b->base);
    if (b->memory.view)
        pages_packed_give(&b->memory);
    else if (pages_unmap(b->range.base, b->range.size, b->front, b->units))
        pages_memory_give(&b->memory);
    if (!b->memory.view)
        atomic_fetch_sub_explicit(&maps, 1, memory_order_relaxed);
    epoch_retire(&b->range.retired, release);
}

struct access_change {
    CUcontext context;
    CUmemoryPool pool;
    const CUmemAccessDesc *desc;
    size_t count;
};

static int set_access(struct index_item *item, void *context)
{
    const struct access_change *l = context;
    const struct pages_block *b = (const struct pages_block *)item;
    if (l->pool ? b->pool != l->pool : b->context != l->context || b->pool)
        return 0;
    if (b->memory.view)
        pages_packed_set_access(&b->memory, l->desc, l->count);
    else
        guard.real.cuMemSetAccess(item->base, item->size, l->desc, l->count);
    return 0;
}

void pages_block_set_access(CUcontext context, CUmemoryPool pool, const CUmemAccessDesc *desc, size_t count)
{
    pages_block_each(set_access, &(struct access_change){context, pool, desc, count});
}

int pages_block_each(int (*f)(struct index_item *, void *), void *context)
{
    unsigned section = epoch_enter();
    int r = index_each(&mapped, f, context);
    epoch_leave(section);
    return r;
}

size_t pages_block_count(void)
{
    return index_count(&mapped);
}
