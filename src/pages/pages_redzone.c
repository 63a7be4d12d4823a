// SPDX-License-Identifier: MIT
#include "pages/pages_redzone.h"

#include "core/guard.h"
#include "pages/pages_address.h"
#include "pages/pages_packed.h"

uint64_t pages_redzone(uint64_t size)
{
    uint64_t percent = (uint64_t)guard.options.shadow_redzone,
             least = (uint64_t)guard.options.shadow_redzone_least;
    if (!(guard.options.mode >> OPTION_MODE_SHADOW & 1))
        return PAGES_PACKED_GAP;
    uint64_t part = size / 100 * percent + size % 100 * percent / 100, most = part > least ? part : least;
    return most > PAGES_PACKED_GAP ? most : PAGES_PACKED_GAP;
}

uint32_t pages_redzone_front(uint64_t size, uint64_t offset)
{
    uint64_t before = offset + PAGES_ADDRESS_UNIT, want = pages_redzone(size);
    return want > before ? (uint32_t)((want - before + PAGES_ADDRESS_UNIT - 1) >> PAGES_ADDRESS_BITS) : 0;
}
