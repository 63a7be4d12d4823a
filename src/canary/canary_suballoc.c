// SPDX-License-Identifier: MIT
#include "canary/canary_suballoc.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/checked.h"
#include "core/slab_pool.h"

// A free range of a region; in the order of addresses, and no two touch.
struct canary_suballoc_range {
    uint64_t base, bytes;
    struct canary_suballoc_range *next;
};

struct canary_suballoc_region {
    uint64_t base, bytes;
    uint64_t free_bytes;  // bytes in its free ranges
    uint64_t cut_bytes;   // bytes that were cut out again
    uint64_t least;       // smaller ranges are not taken from it
    struct canary_suballoc_range *ranges;
    struct canary_suballoc_region *next;
};

static struct slab_pool ranges = SLAB_POOL(struct canary_suballoc_range);
static struct slab_pool regions = SLAB_POOL(struct canary_suballoc_region);

void canary_suballoc_after_fork(void)
{
    slab_pool_after_fork(&ranges);
    slab_pool_after_fork(&regions);
}

static bool is_whole(uint64_t n)
{
    return n && n % CANARY_SUBALLOC_UNIT == 0;
}

static bool region_valid(const struct canary_suballoc_region *r)
{
    uint64_t free_bytes = 0, from = r->base;
    for (const struct canary_suballoc_range *f = r->ranges; f; f = f->next) {
        bool first = f == r->ranges;
        if (!is_whole(f->base) || !is_whole(f->bytes) || (first ? f->base < from : f->base <= from) ||
            f->base + f->bytes > r->base + r->bytes)
            return false;
        free_bytes += f->bytes;
        from = f->base + f->bytes;
    }
    return r->base && r->free_bytes == free_bytes && r->cut_bytes < r->bytes &&
           free_bytes + r->cut_bytes <= r->bytes;
}

static bool overlap(const struct canary_suballoc_region *a, const struct canary_suballoc_region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

bool canary_suballoc_valid(const struct canary_suballoc *suballoc)
{
    uint64_t bytes = 0, used = 0;
    for (const struct canary_suballoc_region *r = suballoc->regions; r; r = r->next) {
        if (!region_valid(r))
            return false;
        for (const struct canary_suballoc_region *other = r->next; other; other = other->next)
            if (overlap(r, other))
                return false;
        bytes += r->bytes - r->cut_bytes;
        used += r->bytes - r->cut_bytes - r->free_bytes;
    }
    return suballoc->bytes == bytes && suballoc->used == used;
}

int canary_suballoc_add(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes)
{
    assert(is_whole(base) && is_whole(bytes));
    struct canary_suballoc_region *r = slab_pool_get(&regions);
    struct canary_suballoc_range *f = slab_pool_get(&ranges);
    if (!r || !f) {
        slab_pool_put(&regions, r);
        slab_pool_put(&ranges, f);
        return -ENOMEM;
    }
    *f = (struct canary_suballoc_range){.base = base, .bytes = bytes};
    *r = (struct canary_suballoc_region){
        .base = base,
        .bytes = bytes,
        .free_bytes = bytes,
        .least = bytes <= CANARY_SUBALLOC_LEAST ? 0 : bytes / CANARY_SUBALLOC_SHARE,
        .ranges = f,
        .next = suballoc->regions};
    suballoc->regions = r;
    suballoc->bytes += bytes;
    checked_assert(canary_suballoc_valid(suballoc));
    return 0;
}

// Returns the best fit in this region, or `best` if that is at least as good.
static struct canary_suballoc_range **find(struct canary_suballoc_region *r, uint64_t bytes,
                                           struct canary_suballoc_range **best)
{
    for (struct canary_suballoc_range **at = &r->ranges; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    return best;
}

uint64_t canary_suballoc_take(struct canary_suballoc *suballoc, uint64_t bytes)
{
    struct canary_suballoc_range **best = NULL;
    struct canary_suballoc_region *from = NULL;
    assert(is_whole(bytes));
    for (struct canary_suballoc_region *r = suballoc->regions; r; r = r->next) {
        struct canary_suballoc_range **better =
            r->free_bytes >= bytes && r->least <= bytes ? find(r, bytes, best) : best;
        if (better != best) {
            best = better;
            from = r;
        }
    }
    if (!best)
        return 0;
    struct canary_suballoc_range *f = *best;
    uint64_t base = f->base;
    f->base += bytes;
    f->bytes -= bytes;
    from->free_bytes -= bytes;
    suballoc->used += bytes;
    if (!f->bytes) {
        *best = f->next;
        slab_pool_put(&ranges, f);
    }
    checked_assert(canary_suballoc_valid(suballoc));
    return base;
}

uint64_t canary_suballoc_largest(const struct canary_suballoc *suballoc)
{
    uint64_t most = 0;
    for (const struct canary_suballoc_region *r = suballoc->regions; r; r = r->next)
        for (const struct canary_suballoc_range *f = r->free_bytes > most ? r->ranges : NULL; f; f = f->next)
            most = f->bytes > most ? f->bytes : most;
    return most;
}

// Merges freed memory with the free ranges before and behind it. Returns false if it touches neither.
static bool grow(struct canary_suballoc_range *before, struct canary_suballoc_range *after, uint64_t base,
                 uint64_t bytes)
{
    bool low = before && before->base + before->bytes == base, high = after && base + bytes == after->base;
    if (low) {
        before->bytes += bytes + (high ? after->bytes : 0);
        if (high) {
            before->next = after->next;
            slab_pool_put(&ranges, after);
        }
    } else if (high) {
        after->base = base;
        after->bytes += bytes;
    }
    return low || high;
}

// Adds memory to the free list. Returns false if out of memory for our own records.
static bool put(struct canary_suballoc_region *r, uint64_t base, uint64_t bytes)
{
    struct canary_suballoc_range *before = NULL, *after = r->ranges;
    for (; after && after->base < base; after = after->next)
        before = after;
    if (!grow(before, after, base, bytes)) {
        struct canary_suballoc_range *f = slab_pool_get(&ranges);
        if (!f)
            return false;
        *f = (struct canary_suballoc_range){.base = base, .bytes = bytes, .next = after};
        *(before ? &before->next : &r->ranges) = f;
    }
    r->free_bytes += bytes;
    return true;
}

bool canary_suballoc_give(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes)
{
    struct canary_suballoc_region *r = suballoc->regions;
    assert(is_whole(base) && is_whole(bytes));
    while (r && base - r->base >= r->bytes)
        r = r->next;
    if (!r || !put(r, base, bytes))
        return false;
    assert(suballoc->used >= bytes);
    suballoc->used -= bytes;
    checked_assert(canary_suballoc_valid(suballoc));
    return true;
}

int canary_suballoc_extend(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes)
{
    struct canary_suballoc_region *r = suballoc->regions;
    while (r && r->base + r->bytes != base)
        r = r->next;
    if (!r) {
        int err = canary_suballoc_add(suballoc, base, bytes);
        if (!err)
            suballoc->regions->least = 0;
        return err;
    }
    if (!put(r, base, bytes))
        return -ENOMEM;
    r->bytes += bytes;
    suballoc->bytes += bytes;
    checked_assert(canary_suballoc_valid(suballoc));
    return 0;
}

uint64_t canary_suballoc_before(const struct canary_suballoc *suballoc, uint64_t end)
{
    for (const struct canary_suballoc_region *r = suballoc->regions; r; r = r->next)
        for (const struct canary_suballoc_range *f = end - r->base <= r->bytes ? r->ranges : NULL; f;
             f = f->next)
            if (f->base + f->bytes == end)
                return f->bytes;
    return 0;
}

static void drop(struct canary_suballoc_region *r)
{
    for (struct canary_suballoc_range *f = r->ranges, *next; f; f = next) {
        next = f->next;
        slab_pool_put(&ranges, f);
    }
    slab_pool_put(&regions, r);
}

// Removes a part of a free range. Returns false if out of memory for our own records.
static bool split(struct canary_suballoc_range **at, uint64_t base, uint64_t bytes)
{
    struct canary_suballoc_range *f = *at;
    uint64_t low = base - f->base, high = f->base + f->bytes - (base + bytes);
    if (low && high) {
        struct canary_suballoc_range *rest = slab_pool_get(&ranges);
        if (!rest)
            return false;
        *rest = (struct canary_suballoc_range){.base = base + bytes, .bytes = high, .next = f->next};
        f->next = rest;
    }
    f->bytes = low ? low : high;
    f->base = low ? f->base : base + bytes;
    if (!f->bytes) {
        *at = f->next;
        slab_pool_put(&ranges, f);
    }
    return true;
}

bool canary_suballoc_cut(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes)
{
    struct canary_suballoc_region **link = &suballoc->regions, *r;
    while ((r = *link) && base - r->base >= r->bytes)
        link = &r->next;
    struct canary_suballoc_range **at = r ? &r->ranges : NULL;
    while (at && *at && (*at)->base + (*at)->bytes <= base)
        at = &(*at)->next;
    if (!at || !*at || (*at)->base > base || (*at)->base + (*at)->bytes < base + bytes ||
        !split(at, base, bytes))
        return false;
    r->free_bytes -= bytes;
    suballoc->bytes -= bytes;
    if (base + bytes == r->base + r->bytes)
        r->bytes -= bytes;
    else
        r->cut_bytes += bytes;
    if (r->cut_bytes == r->bytes) {
        *link = r->next;
        drop(r);
    }
    checked_assert(canary_suballoc_valid(suballoc));
    return true;
}

uint64_t canary_suballoc_remove_empty(struct canary_suballoc *suballoc, uint64_t *bytes)
{
    for (struct canary_suballoc_region **at = &suballoc->regions, *r; (r = *at); at = &r->next) {
        if (r->free_bytes != r->bytes)
            continue;
        uint64_t base = r->base;
        *bytes = r->bytes;
        *at = r->next;
        suballoc->bytes -= r->bytes;
        drop(r);
        checked_assert(canary_suballoc_valid(suballoc));
        return base;
    }
    return 0;
}

uint64_t canary_suballoc_empty(const struct canary_suballoc *suballoc, const struct canary_extent *assumed,
                               unsigned n)
{
    uint64_t bytes = 0;
    for (const struct canary_suballoc_region *r = suballoc->regions; r; r = r->next) {
        uint64_t free_bytes = r->free_bytes;
        for (unsigned i = 0; i < n; i++)
            free_bytes += assumed[i].base - r->base < r->bytes ? assumed[i].bytes : 0;
        bytes += free_bytes == r->bytes ? r->bytes : 0;
    }
    return bytes;
}

void canary_suballoc_clear(struct canary_suballoc *suballoc)
{
    for (struct canary_suballoc_region *r = suballoc->regions, *next; r; r = next) {
        next = r->next;
        drop(r);
    }
    *suballoc = (struct canary_suballoc){0};
}
