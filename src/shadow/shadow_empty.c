// SPDX-License-Identifier: MIT
#include "shadow/shadow_empty.h"

void shadow_empty_put(struct shadow_empty *e, uint64_t page)
{
    if (e->queued[page] || e->count == SHADOW_EMPTY_MOST)
        return;
    e->queued[page] = 1;
    e->pages[(e->first + e->count++) % SHADOW_EMPTY_MOST] = (uint32_t)page;
}

void shadow_empty_made(struct shadow_empty *e, uint64_t first, uint64_t last)
{
    for (uint64_t page = first; page <= last; page++)
        e->live[page]++;
}

void shadow_empty_freed(struct shadow_empty *e, uint64_t first, uint64_t last)
{
    for (uint64_t page = first; page <= last; page++)
        if (e->live[page] && !--e->live[page])
            shadow_empty_put(e, page);
}

bool shadow_empty_take(struct shadow_empty *e, uint32_t kept, uint64_t *page)
{
    while (e->count > kept) {
        *page = e->pages[e->first];
        e->first = (e->first + 1) % SHADOW_EMPTY_MOST;
        e->count--;
        e->queued[*page] = 0;
        if (!e->live[*page])
            return true;
    }
    return false;
}
