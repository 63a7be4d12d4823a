// SPDX-License-Identifier: MIT
#include "fence/fence_ranges.h"

#include <string.h>

#include "base/mem.h"

// Returns the first entry whose base is above the address.
static size_t above(const struct fence_ranges *r, uint64_t address)
{
    size_t low = 0, high = r->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->entries[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(struct fence_ranges *r)
{
    if (r->count < r->room)
        return true;
    size_t room = r->room ? 2 * r->room : 64;
    struct fence_ranges_entry *more = mem_realloc(r->entries, room, sizeof *more);
    if (!more)
        return false;
    r->entries = more;
    r->room = room;
    return true;
}

bool fence_ranges_add(struct fence_ranges *r, uint64_t base, uint64_t end, const void *owner)
{
    size_t at = above(r, base);
    struct fence_ranges_entry *before = at ? &r->entries[at - 1] : NULL;
    if (end <= base)
        return false;
    if (before && before->base == base && before->end == end) {
        before->count++;
        return true;
    }
    if ((before && before->end > base) || (at < r->count && r->entries[at].base < end) || !make_room(r))
        return false;
    memmove(&r->entries[at + 1], &r->entries[at], (r->count - at) * sizeof *r->entries);
    r->entries[at] = (struct fence_ranges_entry){base, end, owner, 1};
    r->count++;
    return true;
}

static void remove_at(struct fence_ranges *r, size_t at)
{
    r->count--;
    memmove(&r->entries[at], &r->entries[at + 1], (r->count - at) * sizeof *r->entries);
}

bool fence_ranges_remove(struct fence_ranges *r, uint64_t base)
{
    size_t at = above(r, base);
    if (!at || r->entries[at - 1].base != base)
        return false;
    if (!--r->entries[at - 1].count)
        remove_at(r, at - 1);
    return true;
}

bool fence_ranges_remove_owner(struct fence_ranges *r, const void *owner)
{
    size_t before = r->count;
    for (size_t i = r->count; i-- > 0;)
        if (r->entries[i].owner == owner)
            remove_at(r, i);
    return r->count != before;
}

size_t fence_ranges_list(const struct fence_ranges *r, struct kfence_range *to, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct fence_ranges_entry *e = &r->entries[i];
        if (n && to[n - 1].end == e->base)
            to[n - 1].end = e->end;
        else if (n < most)
            to[n++] = (struct kfence_range){e->base, e->end};
    }
    return n;
}

struct kfence_range fence_ranges_widest(const struct fence_ranges *r, uint64_t gap)
{
    struct kfence_range widest = {0, 0}, now = {0, 0};
    for (size_t i = 0; i < r->count; i++) {
        const struct fence_ranges_entry *e = &r->entries[i];
        now.base = i && e->base - now.end < gap ? now.base : e->base;
        now.end = e->end;
        widest = now.end - now.base > widest.end - widest.base ? now : widest;
    }
    return widest;
}

void fence_ranges_free(struct fence_ranges *r)
{
    mem_free(r->entries);
    *r = (struct fence_ranges){NULL, 0, 0};
}
