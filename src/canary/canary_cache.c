// SPDX-License-Identifier: MIT
#include "canary/canary_cache.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#include "base/checked.h"
#include "core/lock.h"

enum { ENTRIES = CANARY_CACHE_MOST };  // of a context

// Bytes that may lie here in all, of a kind: a part of what the device has, between these. Plain memory counts as taken by the
// program even for other processes, while a pool's would be held by the driver too.
struct budget {
    uint64_t part, least, most;
};
static const struct budget plain_budget = {16, 16 << 20, (uint64_t)8 << 30}, pool_budget = {64, 0, 512 << 20};

struct entry {
    bool used;
    uint64_t stream, bytes, at;  // at: when it came
    struct canary_place place;
};

struct shelf {
    struct entry entry[ENTRIES];
    uint64_t plain, pool;    // bytes
    _Atomic unsigned count;  // relaxed: whether it is worth to look
};

static struct shelf shelves[CONTEXT_CONTEXTS];
static struct lock lock = LOCK_INIT(CANARY_CACHE);  // a leaf

void canary_cache_after_fork(void)
{
    lock_after_fork(&lock);
}

static struct shelf *shelf_of(const struct context *ctx)
{
    return &shelves[context_number(ctx)];
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool is_plain(const struct canary_slab *s)
{
    return s->memory->kind == CANARY_OURS;
}

static bool entry_valid(const struct entry *e, const struct context *ctx)
{
    const struct canary_slab *s = e->place.slab;
    return s->ctx == ctx && canary_slab_is_lone(s) && e->place.number == 0 && s->used == 1 &&
           e->bytes == s->range.size && !(is_plain(s) && e->stream) &&
           !atomic_load_explicit(&s->one.size, memory_order_relaxed);
}

// Under the lock.
static bool is_valid(const struct shelf *shelf, const struct context *ctx)
{
    uint64_t bytes[2] = {0};
    unsigned count = 0;
    for (const struct entry *e = shelf->entry, *end = e + ENTRIES; e < end; e++) {
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
    return count == atomic_load_explicit(&shelf->count, memory_order_relaxed) && shelf->plain == bytes[1] &&
           shelf->pool == bytes[0];
}

bool canary_cache_valid(const struct context *ctx)
{
    lock_take(&lock);
    bool valid = is_valid(shelf_of(ctx), ctx);
    lock_give(&lock);
    return valid;
}

static uint64_t budget(const struct canary_slab *s)
{
    const struct budget *b = is_plain(s) ? &plain_budget : &pool_budget;
    return context_device_part(s->ctx->device, b->part, b->least, b->most);
}

// Under the lock.
static void remove_entry(struct shelf *shelf, struct entry *e)
{
    checked_assert(lock_is_held(&lock));
    assert(e->used);
    checked_assert(is_valid(shelf, e->place.slab->ctx));
    *(is_plain(e->place.slab) ? &shelf->plain : &shelf->pool) -= e->bytes;
    e->used = false;
    atomic_fetch_sub_explicit(&shelf->count, 1, memory_order_relaxed);
}

bool canary_cache_wants(const struct canary_place *place)
{
    return place->slab->range.size <= budget(place->slab);
}

bool canary_cache_put(const struct canary_place *place, uint64_t stream)
{
    const struct canary_slab *s = place->slab;
    struct shelf *shelf = shelf_of(s->ctx);
    uint64_t *bytes = is_plain(s) ? &shelf->plain : &shelf->pool, limit = budget(s);
    struct entry *free = NULL;
    assert(canary_slab_is_lone(s) && (stream == 0 || !is_plain(s)));
    if (!canary_cache_wants(place))
        return false;
    lock_take(&lock);
    for (unsigned i = 0; i < ENTRIES && !free && *bytes + s->range.size <= limit; i++)
        free = shelf->entry[i].used ? NULL : &shelf->entry[i];
    if (free) {
        *free = (struct entry){
            .used = true, .stream = stream, .bytes = s->range.size, .at = now(), .place = *place};
        *bytes += s->range.size;
        atomic_fetch_add_explicit(&shelf->count, 1, memory_order_relaxed);
        checked_assert(is_valid(shelf, s->ctx));
    }
    lock_give(&lock);
    return free;
}

// A place that is damaged is for nobody. Acquire: who finds that all was looked at sees what was told.
static bool fits(const struct entry *e, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                 uint64_t size)
{
    const struct canary_slab *s = e->place.slab;
    return e->used && e->place.size == size && s->memory->kind == kind && s->pool == pool &&
           (kind == CANARY_OURS || e->stream == stream ||
            !atomic_load_explicit(&s->unread, memory_order_acquire)) &&
           !canary_slot_told(s, e->place.number);
}

bool canary_cache_take(const struct context *ctx, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                       uint64_t size, struct canary_place *place)
{
    struct shelf *shelf = shelf_of(ctx);
    struct entry *found = NULL;
    if (!atomic_load_explicit(&shelf->count, memory_order_relaxed))
        return false;
    lock_take(&lock);
    // The one that is here longest: it is the likeliest to have been looked at.
    for (struct entry *e = shelf->entry; e < shelf->entry + ENTRIES; e++)
        if (fits(e, kind, pool, stream, size) && (!found || e->at < found->at))
            found = e;
    if (found) {
        *place = found->place;
        remove_entry(shelf, found);
    }
    lock_give(&lock);
    return found;
}

bool canary_cache_has_room(const struct canary_place *place)
{
    const struct shelf *shelf = shelf_of(place->slab->ctx);
    lock_take(&lock);
    bool room =
        atomic_load_explicit(&shelf->count, memory_order_relaxed) < ENTRIES &&
        (is_plain(place->slab) ? shelf->plain : shelf->pool) + place->slab->range.size <= budget(place->slab);
    lock_give(&lock);
    return room;
}

bool canary_cache_any(const struct context *ctx)
{
    return atomic_load_explicit(&shelf_of(ctx)->count, memory_order_relaxed);
}

unsigned canary_cache_plain(const struct context *ctx, struct canary_extent at[CANARY_CACHE_MOST])
{
    const struct shelf *shelf = shelf_of(ctx);
    unsigned n = 0;
    lock_take(&lock);
    for (const struct entry *e = shelf->entry; e < shelf->entry + ENTRIES; e++)
        if (e->used && is_plain(e->place.slab))
            at[n++] = (struct canary_extent){e->place.slab->range.base, e->place.slab->range.size};
    lock_give(&lock);
    return n;
}

// pool NULL: of any, and plain.
static bool drop(const struct context *ctx, uint64_t then, CUmemoryPool pool, struct canary_place *place)
{
    struct shelf *shelf = shelf_of(ctx);
    struct entry *found = NULL;
    lock_take(&lock);
    for (struct entry *e = shelf->entry; e < shelf->entry + ENTRIES; e++)
        if (e->used && e->at <= then && (!found || e->at < found->at) &&
            (!pool || e->place.slab->pool == pool))
            found = e;
    if (found) {
        *place = found->place;
        remove_entry(shelf, found);
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
    struct shelf *shelf = shelf_of(ctx);
    lock_take(&lock);
    for (unsigned i = 0; i < ENTRIES; i++)
        shelf->entry[i].used = false;
    shelf->plain = shelf->pool = 0;
    atomic_store_explicit(&shelf->count, 0, memory_order_relaxed);
    lock_give(&lock);
}
