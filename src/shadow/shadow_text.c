// SPDX-License-Identifier: MIT
#include "shadow/shadow_text.h"

#include <stdio.h>

#include "core/epoch.h"
#include "kcheck/kcheck_judge.h"
#include "kcheck/kcheck_shadow.h"
#include "pages/pages_map.h"
#include "shadow/shadow_room.h"
#include "shadow/shadow_pool.h"
#include "track/track.h"

enum { BEFORE = 6, BEHIND = 6 };  // bytes that are shown

// Returns the byte for the granule that starts at an address. Call it in an epoch section.
static uint8_t byte_at(unsigned shift, uint64_t start)
{
    uint64_t granule = (uint64_t)1 << shift, left = 0;
    const struct track_block *b = track_live(start);
    struct mode_answer answer;
    enum mode_what what = shadow_room_ask(start, &answer);
    struct shadow_pool_range pool;
    if (start < KCHECK_NULL_PAGE || what == MODE_AROUND)
        return KCHECK_SHADOW_POISON;
    if (shadow_pool_find(start, &pool))
        return shadow_pool_byte(shift, start);
    if (what == MODE_BUFFER)
        left = answer.base + answer.size - start;
    else if (!pages_map_owns(start, granule))
        return 0;
    else if (b)
        left = track_end(b) - start;
    return kcheck_shadow_byte(shift, (uint32_t)(left < granule ? left : granule));
}

void shadow_text(unsigned shift, uint64_t address, char *text, size_t size)
{
    uint64_t granule = (uint64_t)1 << shift, here = address & ~(granule - 1);
    uint64_t first = here < BEFORE * granule ? 0 : here - BEFORE * granule;
    size_t len = (size_t)snprintf(text, size, "shadow, a byte for %u bytes, from 0x%llx on:", 1u << shift,
                                  (unsigned long long)first);
    unsigned section = epoch_enter();
    // Above the last address there is nothing.
    for (uint64_t at = first; at <= here + BEHIND * granule && at >= first && len < size; at += granule)
        len += (size_t)snprintf(text + len, size - len, at == here ? " [%02x]" : " %02x", byte_at(shift, at));
    epoch_leave(section);
}
