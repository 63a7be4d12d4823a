// SPDX-License-Identifier: MIT
#include "fence/fence_space.h"

#include <stddef.h>

#include "core/slab_pool.h"

static struct slab_pool pool = SLAB_POOL(struct fence_extent);

void fence_space_after_fork(void)
{
    slab_pool_after_fork(&pool);
}

// --- classes -----------------------------------------------------------------------------------------------

// Returns the class that holds extents of this size.
static unsigned class_of(uint64_t size)
{
    uint64_t grains = size / FENCE_SPACE_GRAIN;
    if (grains < 8)
        return (unsigned)grains;
    unsigned top = 63 - (unsigned)__builtin_clzll(grains);
    return 8 * (top - 2) + (unsigned)(grains >> (top - 3) & 7);
}

static void link_free(struct fence_space *s, struct fence_extent *e)
{
    unsigned c = class_of(e->size);
    e->free = true;
    e->previous = NULL;
    e->next = s->lists[c];
    if (e->next)
        e->next->previous = e;
    s->lists[c] = e;
    s->used[c / 64] |= (uint64_t)1 << c % 64;
}

static void unlink_free(struct fence_space *s, struct fence_extent *e)
{
    unsigned c = class_of(e->size);
    e->free = false;
    if (e->previous)
        e->previous->next = e->next;
    else
        s->lists[c] = e->next;
    if (e->next)
        e->next->previous = e->previous;
    if (!s->lists[c])
        s->used[c / 64] &= ~((uint64_t)1 << c % 64);
}

// Returns the first class from c on that has an extent; FENCE_SPACE_CLASSES: none has.
static unsigned next_used(const struct fence_space *s, unsigned c)
{
    for (unsigned word = c / 64; word < FENCE_SPACE_CLASSES / 64; word++) {
        uint64_t bits = s->used[word];
        if (word == c / 64)
            bits &= ~(uint64_t)0 << c % 64;
        if (bits)
            return word * 64 + (unsigned)__builtin_ctzll(bits);
    }
    return FENCE_SPACE_CLASSES;
}

static struct fence_extent *find(const struct fence_space *s, uint64_t size)
{
    unsigned c = class_of(size);
    // The extents of the size's own class may be smaller than it.
    for (struct fence_extent *e = s->lists[c]; e; e = e->next)
        if (e->size >= size)
            return e;
    c = next_used(s, c + 1);
    return c < FENCE_SPACE_CLASSES ? s->lists[c] : NULL;
}

// --- extents -----------------------------------------------------------------------------------------------

static void link_after(struct fence_space *s, struct fence_extent *e, struct fence_extent *before)
{
    e->before = before;
    e->after = before ? before->after : s->first;
    if (before)
        before->after = e;
    else
        s->first = e;
    if (e->after)
        e->after->before = e;
    else
        s->last = e;
}

// Makes one extent of two that touch; the second one is released.
static void join(struct fence_space *s, struct fence_extent *e, struct fence_extent *next)
{
    e->size += next->size;
    e->after = next->after;
    if (e->after)
        e->after->before = e;
    else
        s->last = e;
    slab_pool_put(&pool, next);
}

static bool touches(const struct fence_extent *e, const struct fence_extent *next)
{
    return e && next && e->base + e->size == next->base;
}

static struct fence_extent *release(struct fence_space *s, struct fence_extent *e)
{
    if (touches(e, e->after) && e->after->free) {
        unlink_free(s, e->after);
        join(s, e, e->after);
    }
    if (touches(e->before, e) && e->before->free) {
        struct fence_extent *before = e->before;
        unlink_free(s, before);
        join(s, before, e);
        e = before;
    }
    link_free(s, e);
    return e;
}

static void unlink_address(struct fence_space *s, struct fence_extent *e)
{
    if (e->before)
        e->before->after = e->after;
    else
        s->first = e->after;
    if (e->after)
        e->after->before = e->before;
    else
        s->last = e->before;
}

bool fence_space_add(struct fence_space *s, uint64_t base, uint64_t size)
{
    struct fence_extent *e = slab_pool_get(&pool);
    if (!e)
        return false;
    *e = (struct fence_extent){.base = base, .size = size};
    struct fence_extent *before = s->last;
    while (before && before->base > base)
        before = before->before;
    link_after(s, e, before);
    release(s, e);
    return true;
}

struct fence_extent *fence_space_take(struct fence_space *s, uint64_t size)
{
    size = (size + FENCE_SPACE_GRAIN - 1) / FENCE_SPACE_GRAIN * FENCE_SPACE_GRAIN;
    struct fence_extent *e = size ? find(s, size) : NULL;
    struct fence_extent *rest = e && e->size > size ? slab_pool_get(&pool) : NULL;
    if (!e || (e->size > size && !rest))
        return NULL;
    unlink_free(s, e);
    if (rest) {
        *rest = (struct fence_extent){.base = e->base + size, .size = e->size - size};
        e->size = size;
        link_after(s, rest, e);
        link_free(s, rest);
    }
    s->taken += e->size;
    return e;
}

struct fence_extent *fence_space_give(struct fence_space *s, struct fence_extent *e)
{
    s->taken -= e->size;
    return release(s, e);
}

bool fence_space_cut(struct fence_space *s, struct fence_extent *e, uint64_t base, uint64_t size,
                     struct fence_extent **rest)
{
    uint64_t head = base - e->base, tail = e->size - head - size;
    struct fence_extent *behind = tail ? slab_pool_get(&pool) : NULL;
    if (tail && !behind)
        return false;
    unlink_free(s, e);
    if (behind) {
        *behind = (struct fence_extent){.base = base + size, .size = tail};
        link_after(s, behind, e);
        link_free(s, behind);
    }
    *rest = head ? e : NULL;
    if (head) {
        e->size = head;
        link_free(s, e);
    } else {
        unlink_address(s, e);
        slab_pool_put(&pool, e);
    }
    return true;
}

// --- for tests ---------------------------------------------------------------------------------------------

static bool is_listed(const struct fence_space *s, const struct fence_extent *e)
{
    const struct fence_extent *at = s->lists[class_of(e->size)];
    while (at && at != e)
        at = at->next;
    return at;
}

bool fence_space_valid(const struct fence_space *s)
{
    uint64_t taken = 0, free = 0, listed = 0;
    const struct fence_extent *before = NULL;
    for (const struct fence_extent *e = s->first; e; before = e, e = e->after) {
        bool ordered = !before || before->base + before->size <= e->base;
        if (e->before != before || !ordered || !e->size || (e->base | e->size) % FENCE_SPACE_GRAIN ||
            (touches(before, e) && before->free && e->free) || e->free != is_listed(s, e))
            return false;
        taken += e->free ? 0 : e->size;
        free += e->free;
    }
    for (unsigned c = 0; c < FENCE_SPACE_CLASSES; c++) {
        if ((s->lists[c] != NULL) != (s->used[c / 64] >> c % 64 & 1))
            return false;
        for (const struct fence_extent *e = s->lists[c]; e; e = e->next)
            listed++;
    }
    return s->last == before && taken == s->taken && listed == free;
}
