// SPDX-License-Identifier: MIT
#include "canary/canary_cache.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/checked.h"
#include "core/lock.h"

enum { ENTRIES = CANARY_CACHE_MOST };  // of a context

// Limit of the cached bytes of a kind: 1/part of the device's memory, but at least `least` and at most
// `most`. Cached plain memory counts as used by the program, also for other processes; a pool's memory would
// be kept by the driver anyway.
struct budget {
    uint64_t part, least, most;
};
static const struct budget plain_budget = {16, 16 << 20, (uint64_t)8 << 30}, pool_budget = {64, 0, 512 << 20};

struct entry {
    bool used;
    uint64_t stream, bytes, at;  // at: when it was cached
    struct canary_place place;
};

struct cache {
    struct entry entry[ENTRIES];
    uint64_t plain, pool;    // bytes
    _Atomic unsigned count;  // relaxed: a hint whether there is any
};

static struct cache caches[CONTEXT_CONTEXTS];
static struct lock lock = LOCK_INIT(CANARY_CACHE);  // a leaf

void canary_cache_after_fork(void)
{
    lock_after_fork(&lock);
}

static struct cache *cache_of(const struct context *ctx)
{
    return &caches[context_number(ctx)];
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_plain(const struct canary_slab *s)
{
    return s->memory->kind == CANARY_SUBALLOCATED;
}

static bool entry_valid(const struct entry *e, const struct context *ctx)
{
    const struct canary_slab *s = e->place.slab;
    return s->ctx == ctx && canary_slab_is_lone(s) && e->place.number == 0 && s->used == 1 &&
           e->bytes == s->range.size && !(is_plain(s) && e->stream) &&
           !atomic_load_explicit(&s->one.size, memory_order_relaxed);
}

// Requires the lock.
static bool is_valid(const struct cache *cache, const struct context *ctx)
{
    uint64_t bytes[2] = {0};
    unsigned count = 0;
    for (const struct entry *e = cache->entry, *end = e + ENTRIES; e < end; e++) {
        if (!e->used)
            continue;
        if (!entry_valid(e, ctx))
            return false;
        for (const struct entry *other = e + 1; other < end; other++)
            if (other->used && other->place.slab == e->place.slab)
                return false;
        count++;
        bytes[is_plain(e->place.slab)] += e->bytes;
    }
    return count == atomic_load_explicit(&cache->count, memory_order_relaxed) && cache->plain == bytes[1] &&
           cache->pool == bytes[0];
}

bool canary_cache_valid(const struct context *ctx)
{
    lock_take(&lock);
    bool valid = is_valid(cache_of(ctx), ctx);
    lock_give(&lock);
    return valid;
}

static uint64_t budget(const struct canary_slab *s)
{
    const struct budget *b = is_plain(s) ? &plain_budget : &pool_budget;
    return context_device_part(s->ctx->device, b->part, b->least, b->most);
}

// Requires the lock.
static void remove_entry(struct cache *cache, struct entry *e)
{
    checked_assert(lock_is_held(&lock));
    assert(e->used);
    checked_assert(is_valid(cache, e->place.slab->ctx));
    *(is_plain(e->place.slab) ? &cache->plain : &cache->pool) -= e->bytes;
    e->used = false;
    atomic_fetch_sub_explicit(&cache->count, 1, memory_order_relaxed);
}

bool canary_cache_wants(const struct canary_place *place)
{
    return place->slab->range.size <= budget(place->slab);
}

bool canary_cache_put(const struct canary_place *place, uint64_t stream)
{
    const struct canary_slab *s = place->slab;
    struct cache *cache = cache_of(s->ctx);
    uint64_t *bytes = is_plain(s) ? &cache->plain : &cache->pool, limit = budget(s);
    struct entry *free = NULL;
    assert(canary_slab_is_lone(s) && (stream == 0 || !is_plain(s)));
    if (!canary_cache_wants(place))
        return false;
    lock_take(&lock);
    for (unsigned i = 0; i < ENTRIES && !free && *bytes + s->range.size <= limit; i++)
        free = cache->entry[i].used ? NULL : &cache->entry[i];
    if (free) {
        *free = (struct entry){
            .used = true, .stream = stream, .bytes = s->range.size, .at = now(), .place = *place};
        *bytes += s->range.size;
        atomic_fetch_add_explicit(&cache->count, 1, memory_order_relaxed);
        checked_assert(is_valid(cache, s->ctx));
    }
    lock_give(&lock);
    return free;
}

// Damaged places fit nothing. Acquire pairs with the release in retire_readback (canary_order.c): if no
// readback is pending, all that was reported of the place is visible.
static bool fits(const struct entry *e, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                 uint64_t size)
{
    const struct canary_slab *s = e->place.slab;
    return e->used && e->place.size == size && s->memory->kind == kind && s->pool == pool &&
           (kind == CANARY_SUBALLOCATED || e->stream == stream ||
            !atomic_load_explicit(&s->pending_reads, memory_order_acquire)) &&
           !canary_slot_reported(s, e->place.number);
}

bool canary_cache_take(const struct context *ctx, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                       uint64_t size, struct canary_place *place)
{
    struct cache *cache = cache_of(ctx);
    struct entry *found = NULL;
    if (!atomic_load_explicit(&cache->count, memory_order_relaxed))
        return false;
    lock_take(&lock);
    // Take the oldest: it is the likeliest to have been verified.
    for (struct entry *e = cache->entry; e < cache->entry + ENTRIES; e++)
        if (fits(e, kind, pool, stream, size) && (!found || e->at < found->at))
            found = e;
    if (found) {
        *place = found->place;
        remove_entry(cache, found);
    }
    lock_give(&lock);
    return found;
}

bool canary_cache_has_room(const struct canary_place *place)
{
    const struct cache *cache = cache_of(place->slab->ctx);
    lock_take(&lock);
    bool room =
        atomic_load_explicit(&cache->count, memory_order_relaxed) < ENTRIES &&
        (is_plain(place->slab) ? cache->plain : cache->pool) + place->slab->range.size <= budget(place->slab);
    lock_give(&lock);
    return room;
}

bool canary_cache_any(const struct context *ctx)
{
    return atomic_load_explicit(&cache_of(ctx)->count, memory_order_relaxed);
}

unsigned canary_cache_plain(const struct context *ctx, struct canary_extent at[CANARY_CACHE_MOST])
{
    const struct cache *cache = cache_of(ctx);
    unsigned n = 0;
    lock_take(&lock);
    for (const struct entry *e = cache->entry; e < cache->entry + ENTRIES; e++)
        if (e->used && is_plain(e->place.slab))
            at[n++] = (struct canary_extent){e->place.slab->range.base, e->place.slab->range.size};
    lock_give(&lock);
    return n;
}

// Takes the oldest entry that was cached at `then` or before. pool == NULL: of any memory.
static bool drop(const struct context *ctx, uint64_t then, CUmemoryPool pool, struct canary_place *place)
{
    struct cache *cache = cache_of(ctx);
    struct entry *found = NULL;
    lock_take(&lock);
    for (struct entry *e = cache->entry; e < cache->entry + ENTRIES; e++)
        if (e->used && e->at <= then && (!found || e->at < found->at) &&
            (!pool || e->place.slab->pool == pool))
            found = e;
    if (found) {
        *place = found->place;
        remove_entry(cache, found);
    }
    lock_give(&lock);
    return found;
}

bool canary_cache_drop(const struct context *ctx, uint64_t age, struct canary_place *place)
{
    return canary_cache_any(ctx) && drop(ctx, now() - age, NULL, place);
}

bool canary_cache_drop_of(const struct context *ctx, CUmemoryPool pool, struct canary_place *place)
{
    return canary_cache_any(ctx) && drop(ctx, UINT64_MAX, pool, place);
}

void canary_cache_context_gone(const struct context *ctx)
{
    struct cache *cache = cache_of(ctx);
    lock_take(&lock);
    for (unsigned i = 0; i < ENTRIES; i++)
        cache->entry[i].used = false;
    cache->plain = cache->pool = 0;
    atomic_store_explicit(&cache->count, 0, memory_order_relaxed);
    lock_give(&lock);
}
