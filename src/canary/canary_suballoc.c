// SPDX-License-Identifier: MIT
#include "canary/canary_suballoc.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>

#include "base/checked.h"
#include "core/slab_pool.h"

// Free memory of a region, by address; no two touch.
struct space_range {
    uint64_t base, bytes;
    struct space_range *next;
};

struct space_region {
    uint64_t base, bytes;
    uint64_t left;   // in its ranges
    uint64_t gone;   // of bytes: cut out again
    uint64_t least;  // no smaller range is taken of it
    struct space_range *ranges;
    struct space_region *next;
};

static struct slab_pool ranges = SLAB_POOL(struct space_range);
static struct slab_pool regions = SLAB_POOL(struct space_region);

void canary_suballoc_after_fork(void)
{
    slab_pool_after_fork(&ranges);
    slab_pool_after_fork(&regions);
}

static bool is_whole(uint64_t n)
{
    return n && n % CANARY_SUBALLOC_UNIT == 0;
}

static bool region_valid(const struct space_region *r)
{
    uint64_t left = 0, from = r->base;
    for (const struct space_range *f = r->ranges; f; f = f->next) {
        bool first = f == r->ranges;
        if (!is_whole(f->base) || !is_whole(f->bytes) || (first ? f->base < from : f->base <= from) ||
            f->base + f->bytes > r->base + r->bytes)
            return false;
        left += f->bytes;
        from = f->base + f->bytes;
    }
    return r->base && r->left == left && r->gone < r->bytes && left + r->gone <= r->bytes;
}

static bool overlap(const struct space_region *a, const struct space_region *b)
{
    return a->base < b->base + b->bytes && b->base < a->base + a->bytes;
}

bool canary_suballoc_valid(const struct canary_suballoc *space)
{
    uint64_t bytes = 0, used = 0;
    for (const struct space_region *r = space->regions; r; r = r->next) {
        if (!region_valid(r))
            return false;
        for (const struct space_region *other = r->next; other; other = other->next)
            if (overlap(r, other))
                return false;
        bytes += r->bytes - r->gone;
        used += r->bytes - r->gone - r->left;
    }
    return space->bytes == bytes && space->used == used;
}

int canary_suballoc_add(struct canary_suballoc *space, uint64_t base, uint64_t bytes)
{
    assert(is_whole(base) && is_whole(bytes));
    struct space_region *r = slab_pool_get(&regions);
    struct space_range *f = slab_pool_get(&ranges);
    if (!r || !f) {
        slab_pool_put(&regions, r);
        slab_pool_put(&ranges, f);
        return -ENOMEM;
    }
    *f = (struct space_range){.base = base, .bytes = bytes};
    *r = (struct space_region){.base = base,
                               .bytes = bytes,
                               .left = bytes,
                               .least = bytes <= CANARY_SUBALLOC_LEAST ? 0 : bytes / CANARY_SUBALLOC_SHARE,
                               .ranges = f,
                               .next = space->regions};
    space->regions = r;
    space->bytes += bytes;
    checked_assert(canary_suballoc_valid(space));
    return 0;
}

// The range that fits best.
static struct space_range **find(struct space_region *r, uint64_t bytes, struct space_range **best)
{
    for (struct space_range **at = &r->ranges; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    return best;
}

uint64_t canary_suballoc_take(struct canary_suballoc *space, uint64_t bytes)
{
    struct space_range **best = NULL;
    struct space_region *from = NULL;
    assert(is_whole(bytes));
    for (struct space_region *r = space->regions; r; r = r->next) {
        struct space_range **better = r->left >= bytes && r->least <= bytes ? find(r, bytes, best) : best;
        if (better != best) {
            best = better;
            from = r;
        }
    }
    if (!best)
        return 0;
    struct space_range *f = *best;
    uint64_t base = f->base;
    f->base += bytes;
    f->bytes -= bytes;
    from->left -= bytes;
    space->used += bytes;
    if (!f->bytes) {
        *best = f->next;
        slab_pool_put(&ranges, f);
    }
    checked_assert(canary_suballoc_valid(space));
    return base;
}

uint64_t canary_suballoc_largest(const struct canary_suballoc *space)
{
    uint64_t most = 0;
    for (const struct space_region *r = space->regions; r; r = r->next)
        for (const struct space_range *f = r->left > most ? r->ranges : NULL; f; f = f->next)
            most = f->bytes > most ? f->bytes : most;
    return most;
}

// Whether a range of the region grows by it, or both its neighbours become one.
static bool grow(struct space_range *before, struct space_range *after, uint64_t base, uint64_t bytes)
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

// False: no memory for our own books.
static bool put(struct space_region *r, uint64_t base, uint64_t bytes)
{
    struct space_range *before = NULL, *after = r->ranges;
    for (; after && after->base < base; after = after->next)
        before = after;
    if (!grow(before, after, base, bytes)) {
        struct space_range *f = slab_pool_get(&ranges);
        if (!f)
            return false;
        *f = (struct space_range){.base = base, .bytes = bytes, .next = after};
        *(before ? &before->next : &r->ranges) = f;
    }
    r->left += bytes;
    return true;
}

bool canary_suballoc_give(struct canary_suballoc *space, uint64_t base, uint64_t bytes)
{
    struct space_region *r = space->regions;
    assert(is_whole(base) && is_whole(bytes));
    while (r && base - r->base >= r->bytes)
        r = r->next;
    if (!r || !put(r, base, bytes))
        return false;
    assert(space->used >= bytes);
    space->used -= bytes;
    checked_assert(canary_suballoc_valid(space));
    return true;
}

int canary_suballoc_extend(struct canary_suballoc *space, uint64_t base, uint64_t bytes)
{
    struct space_region *r = space->regions;
    while (r && r->base + r->bytes != base)
        r = r->next;
    if (!r) {
        int err = canary_suballoc_add(space, base, bytes);
        if (!err)
            space->regions->least = 0;
        return err;
    }
    if (!put(r, base, bytes))
        return -ENOMEM;
    r->bytes += bytes;
    space->bytes += bytes;
    checked_assert(canary_suballoc_valid(space));
    return 0;
}

uint64_t canary_suballoc_before(const struct canary_suballoc *space, uint64_t end)
{
    for (const struct space_region *r = space->regions; r; r = r->next)
        for (const struct space_range *f = end - r->base <= r->bytes ? r->ranges : NULL; f; f = f->next)
            if (f->base + f->bytes == end)
                return f->bytes;
    return 0;
}

static void drop(struct space_region *r)
{
    for (struct space_range *f = r->ranges, *next; f; f = next) {
        next = f->next;
        slab_pool_put(&ranges, f);
    }
    slab_pool_put(&regions, r);
}

// Takes the middle out of a free range. False: no memory for our own books.
static bool split(struct space_range **at, uint64_t base, uint64_t bytes)
{
    struct space_range *f = *at;
    uint64_t low = base - f->base, high = f->base + f->bytes - (base + bytes);
    if (low && high) {
        struct space_range *rest = slab_pool_get(&ranges);
        if (!rest)
            return false;
        *rest = (struct space_range){.base = base + bytes, .bytes = high, .next = f->next};
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

bool canary_suballoc_cut(struct canary_suballoc *space, uint64_t base, uint64_t bytes)
{
    struct space_region **link = &space->regions, *r;
    while ((r = *link) && base - r->base >= r->bytes)
        link = &r->next;
    struct space_range **at = r ? &r->ranges : NULL;
    while (at && *at && (*at)->base + (*at)->bytes <= base)
        at = &(*at)->next;
    if (!at || !*at || (*at)->base > base || (*at)->base + (*at)->bytes < base + bytes ||
        !split(at, base, bytes))
        return false;
    r->left -= bytes;
    space->bytes -= bytes;
    if (base + bytes == r->base + r->bytes)
        r->bytes -= bytes;
    else
        r->gone += bytes;
    if (r->gone == r->bytes) {
        *link = r->next;
        drop(r);
    }
    checked_assert(canary_suballoc_valid(space));
    return true;
}

uint64_t canary_suballoc_remove_empty(struct canary_suballoc *space, uint64_t *bytes)
{
    for (struct space_region **at = &space->regions, *r; (r = *at); at = &r->next) {
        if (r->left != r->bytes)
            continue;
        uint64_t base = r->base;
        *bytes = r->bytes;
        *at = r->next;
        space->bytes -= r->bytes;
        drop(r);
        checked_assert(canary_suballoc_valid(space));
        return base;
    }
    return 0;
}

uint64_t canary_suballoc_empty(const struct canary_suballoc *space, const struct canary_extent *but,
                               unsigned n)
{
    uint64_t bytes = 0;
    for (const struct space_region *r = space->regions; r; r = r->next) {
        uint64_t left = r->left;
        for (unsigned i = 0; i < n; i++)
            left += but[i].base - r->base < r->bytes ? but[i].bytes : 0;
        bytes += left == r->bytes ? r->bytes : 0;
    }
    return bytes;
}

void canary_suballoc_clear(struct canary_suballoc *space)
{
    for (struct space_region *r = space->regions, *next; r; r = next) {
        next = r->next;
        drop(r);
    }
    *space = (struct canary_suballoc){0};
}
