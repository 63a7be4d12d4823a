// SPDX-License-Identifier: MIT
#include "shadow/shadow_pool.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "kcheck/kcheck_shadow.h"

enum {
    FREED = 256,       // pieces that were taken back and are remembered, for reports
    PENDING = 1 << 16  // more than that: the oldest stay accessible
};

struct piece {
    uint64_t base, end;
    struct track_copy *about;
};

struct pending {
    uint64_t base, end;
    uint64_t launches;  // made before
};

static VEC(struct shadow_pool_range) pools;
static VEC(struct piece) pieces;
static VEC(struct pending) pending;
static size_t pending_first;  // those before it are done
static uint64_t ended;
static struct track_copy freed[FREED];
static uint64_t nfreed;

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

// --- pools -------------------------------------------------------------------------------------------------

static struct shadow_pool_range *pool_at(uint64_t base, uint64_t end)
{
    for (size_t i = 0; i < pools.len; i++)
        if (pools.items[i].base < end && base < pools.items[i].end)
            return &pools.items[i];
    return NULL;
}

bool shadow_pool_find(uint64_t address, struct shadow_pool_range *pool)
{
    const struct shadow_pool_range *p = pool_at(address, address + 1);
    if (p)
        *pool = *p;
    return p;
}

void shadow_pool_each(bool (*f)(const struct shadow_pool_range *pool, void *argument), void *argument)
{
    for (size_t i = 0; i < pools.len && f(&pools.items[i], argument); i++)
        ;
}

// Adds what stays accessible until the launches have ended.
static int put_off(uint64_t base, uint64_t end, uint64_t launches)
{
    if (pending_first == pending.len)
        pending_first = pending.len = 0;
    if (pending.len - pending_first == PENDING)
        pending_first++;
    if (pending_first > PENDING) {
        pending.len -= pending_first;
        memmove(pending.items, pending.items + pending_first, pending.len * sizeof *pending.items);
        pending_first = 0;
    }
    return vec_push(&pending, (struct pending){base, end, launches});
}

int shadow_pool_make(uint64_t base, uint64_t end, uint64_t launches)
{
    if (put_off(base, end, launches))
        return -ENOMEM;
    return vec_push(&pools, (struct shadow_pool_range){base, end});
}

// --- pieces ------------------------------------------------------------------------------------------------

// Returns the number of pieces that end at or before the address.
static size_t pieces_before(uint64_t address)
{
    size_t low = 0, high = pieces.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pieces.items[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void forget(size_t i)
{
    mem_free(pieces.items[i].about);
    pieces.len--;
    memmove(&pieces.items[i], &pieces.items[i + 1], (pieces.len - i) * sizeof *pieces.items);
}

// Forgets the pieces that overlap the range. Those that leave it stay accessible for a while.
static int forget_range(uint64_t base, uint64_t end, uint64_t launches)
{
    int err = 0;
    size_t i = pieces_before(base);
    while (i < pieces.len && pieces.items[i].base < end) {
        struct piece p = pieces.items[i];
        if (p.base < base || p.end > end)
            err |= put_off(p.base, p.end, launches);
        forget(i);
    }
    return err;
}

bool shadow_pool_drop(uint64_t base, uint64_t end)
{
    bool any = false;
    for (struct shadow_pool_range *p; (p = pool_at(base, end)); any = true) {
        (void)forget_range(p->base, p->end, 0);
        for (size_t i = pending_first; i < pending.len; i++)
            if (pending.items[i].base < p->end && p->base < pending.items[i].end)
                pending.items[i].end = pending.items[i].base;
        for (size_t i = 0; i < FREED; i++)
            if (freed[i].base < p->end && p->base < freed[i].base + freed[i].size)
                freed[i].size = 0;
        *p = pools.items[--pools.len];
    }
    return any;
}

int shadow_pool_add(const struct track_copy *piece, uint64_t launches)
{
    uint64_t base = piece->base, end = piece->base + piece->size;
    const struct shadow_pool_range *pool = pool_at(base, base + 1);
    if (!pool || end <= base)
        return 0;
    end = earlier(end, pool->end);
    struct track_copy *about = mem_alloc(sizeof *about);
    if (!about)
        return -ENOMEM;
    *about = *piece;
    if (forget_range(base, end, launches) || vec_reserve(&pieces, 1)) {
        mem_free(about);
        return -ENOMEM;
    }
    size_t i = pieces_before(base);
    memmove(&pieces.items[i + 1], &pieces.items[i], (pieces.len++ - i) * sizeof *pieces.items);
    pieces.items[i] = (struct piece){base, end, about};
    return 0;
}

int shadow_pool_remove(uint64_t base, uint64_t end, uint64_t launches, uint32_t stack)
{
    int err = 0;
    for (size_t i = pieces_before(base); i < pieces.len && pieces.items[i].base < end;) {
        struct piece *p = &pieces.items[i];
        struct track_copy *copy = &freed[nfreed++ % FREED];
        *copy = *p->about;
        copy->freed = true;
        copy->freed_by = copy->facts.made_by;
        copy->freed_stack = stack;
        err |= put_off(p->base, p->end, launches);
        forget(i);
    }
    return err ? -ENOMEM : 0;
}

// --- what has ended ----------------------------------------------------------------------------------------

void shadow_pool_ended(uint64_t launches)
{
    ended = later(ended, launches);
}

uint64_t shadow_pool_launches_ended(void)
{
    return ended;
}

bool shadow_pool_due(struct shadow_pool_range *range)
{
    while (pending_first < pending.len && pending.items[pending_first].launches <= ended) {
        const struct pending *p = &pending.items[pending_first++];
        *range = (struct shadow_pool_range){p->base, p->end};
        if (p->base < p->end)
            return true;
    }
    return false;
}

// Returns where the pending ranges end that overlap [base, end); 0: none does. *next: the first pending range
// behind it begins there, or UINT64_MAX.
static uint64_t pending_until(uint64_t base, uint64_t end, uint64_t *next)
{
    uint64_t until = 0;
    *next = UINT64_MAX;
    for (size_t i = pending_first; i < pending.len; i++) {
        const struct pending *p = &pending.items[i];
        if (p->base < end && base < p->end)
            until = later(until, p->end);
        else if (p->base >= end)
            *next = earlier(*next, p->base);
    }
    return until;
}

// --- the shadow --------------------------------------------------------------------------------------------

uint64_t shadow_pool_run(unsigned shift, uint64_t granule, uint64_t end, uint8_t *byte)
{
    uint64_t size = (uint64_t)1 << shift, here = granule + size, upto = granule, other;
    uint64_t stop = pending_until(granule, here, &other);
    bool gap = false;
    size_t i = pieces_before(granule);
    if (stop) {
        *byte = 0;
        return later(earlier(stop, end) & ~(size - 1), here);
    }
    if (i == pieces.len)
        stop = UINT64_MAX;
    else
        stop = pieces.items[i].base > granule ? pieces.items[i].base : pieces.items[i].end;
    for (; i < pieces.len && pieces.items[i].base < here; i++) {
        gap |= pieces.items[i].base > upto;
        upto = earlier(here, pieces.items[i].end);
    }
    *byte = gap ? KCHECK_SHADOW_POISON : kcheck_shadow_byte(shift, (uint32_t)(upto - granule));
    stop = earlier(earlier(stop, other), end) & ~(size - 1);
    return upto == here || upto == granule ? later(stop, here) : here;
}

uint8_t shadow_pool_byte(unsigned shift, uint64_t granule)
{
    uint8_t byte;
    shadow_pool_run(shift, granule, granule + ((uint64_t)1 << shift), &byte);
    return byte;
}

// --- reports -----------------------------------------------------------------------------------------------

static uint64_t distance(const struct piece *p, uint64_t address)
{
    return address < p->base ? p->base - address : address - p->end;
}

bool shadow_pool_near(uint64_t address, struct track_copy *piece)
{
    const struct shadow_pool_range *pool = pool_at(address, address + 1);
    size_t i = pieces_before(address);
    const struct piece *next = i < pieces.len ? &pieces.items[i] : NULL;
    const struct piece *last = i ? &pieces.items[i - 1] : NULL;
    if (!pool)
        return false;
    if (next && next->base <= address) {
        *piece = *next->about;
        return true;
    }
    for (uint64_t n = nfreed; n > 0 && nfreed - n < FREED; n--)
        if (address - freed[(n - 1) % FREED].base < freed[(n - 1) % FREED].size) {
            *piece = freed[(n - 1) % FREED];
            return true;
        }
    next = next && next->base < pool->end ? next : NULL;
    last = last && last->end > pool->base ? last : NULL;
    if (!last || (next && distance(next, address) < distance(last, address)))
        last = next;
    if (last)
        *piece = *last->about;
    return last;
}

void shadow_pool_reset(void)
{
    shadow_pool_drop(0, UINT64_MAX);
    vec_free(&pools);
    vec_free(&pieces);
    vec_free(&pending);
    pending_first = 0;
    ended = nfreed = 0;
}
