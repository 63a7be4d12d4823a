// SPDX-License-Identifier: MIT
// The functions of kprim.h about the lanes of a warp, for code whose warps have one lane. kprim_host.h and
// kprim_native.h include it, and have defined KPRIM.
#ifndef MOAT_KPRIM_KPRIM_ONE_LANE_H
#define MOAT_KPRIM_KPRIM_ONE_LANE_H

#include <stdbool.h>
#include <stdint.h>

KPRIM uint32_t kprim_lane(void)
{
    return 0;
}

KPRIM uint32_t kprim_below(void)
{
    return 0;
}

KPRIM uint32_t kprim_active(void)
{
    return 1;
}

KPRIM uint32_t kprim_same(uint32_t mask, uint32_t v)
{
    (void)v;
    return mask;
}

KPRIM uint32_t kprim_share32(uint32_t mask, uint32_t v, uint32_t from)
{
    (void)mask, (void)from;
    return v;
}

KPRIM uint64_t kprim_share64(uint32_t mask, uint64_t v, uint32_t from)
{
    (void)mask, (void)from;
    return v;
}

KPRIM uint32_t kprim_ballot(uint32_t mask, bool v)
{
    return v ? mask : 0;
}

KPRIM void kprim_sync(uint32_t mask)
{
    (void)mask;
}

#endif
