// SPDX-License-Identifier: MIT
// The bytes that canaries are made of. Programs do not only store past a buffer: they add to what lies there,
// scale it, clamp it, and set bits in it. A canary is seen only if such an operation changes it, so each of
// its bytes is
//
//   1 0 r r r r r 0, from bit 7 down: r is random
//
// Whatever 2, 4 or 8 of these bytes a program takes for a number, the number is a negative integer, or a
// negative, finite, non-zero float below 2 in magnitude (f16, bf16, f32, f64): adding or subtracting 1,
// doubling, halving, max with 0, atomic increments and decrements, and `|= 1` all change it. doc/canary.md
// lists what leaves it as it is.
#ifndef MOAT_BASE_CANARY_SHAPE_H
#define MOAT_BASE_CANARY_SHAPE_H

#include <stdint.h>

#define CANARY_SHAPE_RANDOM 0x3e3e3e3e3e3e3e3eu
#define CANARY_SHAPE_SIGN 0x8080808080808080u

// 40 of the random bits become eight bytes of canary.
static inline uint64_t canary_shape(uint64_t random)
{
    return (random & CANARY_SHAPE_RANDOM) | CANARY_SHAPE_SIGN;
}

// Numbers below this can be hidden in eight bytes of that shape.
#define CANARY_SHAPE_NUMBERS (1ull << 40)

// The number, five bits in each byte, under the random bits of `cover`.
static inline uint64_t canary_shape_hide(uint64_t number, uint64_t cover)
{
    uint64_t x = number;
    x = (x & 0xfffff) | (x & 0xfffff00000) << 12;                  // 20 bits in each half
    x = (x & 0x000003ff000003ff) | (x & 0x000ffc00000ffc00) << 6;  // 10 in each quarter
    x = (x & 0x001f001f001f001f) | (x & 0x03e003e003e003e0) << 3;  // 5 in each byte
    return canary_shape(x << 1 ^ cover);
}

// The inverse of canary_shape_hide. Returns UINT64_MAX for a word that does not have the shape; of other
// words that were changed, the number may be any.
static inline uint64_t canary_shape_reveal(uint64_t word, uint64_t cover)
{
    if ((word & ~CANARY_SHAPE_RANDOM) != CANARY_SHAPE_SIGN)
        return UINT64_MAX;
    uint64_t x = ((word ^ cover) & CANARY_SHAPE_RANDOM) >> 1;
    x = (x & 0x001f001f001f001f) | (x >> 3 & 0x03e003e003e003e0);
    x = (x & 0x000003ff000003ff) | (x >> 6 & 0x000ffc00000ffc00);
    return (x & 0xfffff) | (x >> 12 & 0xfffff00000);
}

#endif
