// SPDX-License-Identifier: MIT
// Bit operations of one lane: counting, finding, extracting, inserting. They have no branches, so that loops
// over lanes vectorise.
#ifndef MOAT_EXEC_SCALAR_BITS_H
#define MOAT_EXEC_SCALAR_BITS_H

#include <stdint.h>

#include "exec/lanes_row.h"

static inline uint32_t bits_popc32(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return x * 0x01010101u >> 24;
}

static inline uint32_t bits_popc64(uint64_t x)
{
    return bits_popc32((uint32_t)x) + bits_popc32((uint32_t)(x >> 32));
}

static inline uint32_t bits_clz32(uint32_t x)
{
    return x ? (uint32_t)__builtin_clz(x) : 32;
}

static inline uint32_t bits_clz64(uint64_t x)
{
    return x ? (uint32_t)__builtin_clzll(x) : 64;
}

// Returns bfind.shiftamt of a value with clz leading zeros.
static inline uint32_t bits_shift(uint32_t clz, uint32_t width)
{
    return clz == width ? UINT32_MAX : clz;
}

static inline uint32_t bits_brev32(uint32_t x)
{
    x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
    x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
    return x >> 24 | (x >> 8 & 0xff00u) | (x & 0xff00u) << 8 | x << 24;
}

static inline uint64_t bits_brev64(uint64_t x)
{
    return (uint64_t)bits_brev32((uint32_t)x) << 32 | bits_brev32((uint32_t)(x >> 32));
}

// Returns the position of the n-th set bit at or above base; for n < 0, the |n|-th at or below it; for n ==
// 0, base if its bit is set. Returns UINT32_MAX if there is none. INT32_MIN as n gives 0, as on hardware.
static inline uint32_t bits_fns(uint32_t mask, uint32_t base, int32_t n)
{
    if (n == INT32_MIN)
        return 0;
    if (base > 31)
        return UINT32_MAX;
    if (n == 0)
        return mask >> base & 1 ? base : UINT32_MAX;
    int step = n > 0 ? 1 : -1;
    int32_t left = n > 0 ? n : -n;
    for (int at = (int)base; at >= 0 && at < 32; at += step)
        if ((mask >> at & 1) && --left == 0)
            return (uint32_t)at;
    return UINT32_MAX;
}

// Shift amounts are not taken modulo the width: shifting by the width or more shifts all bits out.
static inline uint16_t bits_shl16(uint16_t x, uint32_t n)
{
    return n > 15 ? 0 : (uint16_t)((uint32_t)x << n);
}

static inline uint32_t bits_shl32(uint32_t x, uint32_t n)
{
    uint32_t r = x << (n & 31);
    return n > 31 ? 0 : r;
}

static inline uint64_t bits_shl64(uint64_t x, uint32_t n)
{
    uint64_t wide = n, r = x << (wide & 63);
    return wide > 63 ? 0 : r;
}

static inline uint16_t bits_shr_u16(uint16_t x, uint32_t n)
{
    uint32_t r = (uint32_t)x >> (n & 31);
    return (uint16_t)(n > 15 ? 0 : r);
}

static inline uint32_t bits_shr_u32(uint32_t x, uint32_t n)
{
    uint32_t r = x >> (n & 31);
    return n > 31 ? 0 : r;
}

static inline uint64_t bits_shr_u64(uint64_t x, uint32_t n)
{
    uint64_t wide = n, r = x >> (wide & 63);
    return wide > 63 ? 0 : r;
}

static inline int16_t bits_shr_s16(int16_t x, uint32_t n)
{
    int32_t wide = x;
    return (int16_t)(wide >> (n > 15 ? 15 : n));
}

static inline int32_t bits_shr_s32(int32_t x, uint32_t n)
{
    return x >> (n > 31 ? 31 : n);
}

static inline int64_t bits_shr_s64(int64_t x, uint32_t n)
{
    uint64_t wide = n;
    return x >> (wide > 63 ? 63 : wide);
}

static inline uint32_t bits_low32(uint32_t n)  // n ones
{
    return n > 31 ? UINT32_MAX : (1u << (n & 31)) - 1;
}

static inline uint64_t bits_low64(uint32_t n)
{
    return n > 63 ? UINT64_MAX : (UINT64_C(1) << (n & 63)) - 1;
}

// Position and length of a field: 32-bit instructions use their low 8 bits, 64-bit ones all bits.
static inline uint32_t bits_bfe_u32(uint32_t x, uint32_t pos, uint32_t len)
{
    return bits_shr_u32(x, pos & 255) & bits_low32(len & 255);
}

static inline uint64_t bits_bfe_u64(uint64_t x, uint32_t pos, uint32_t len)
{
    return bits_shr_u64(x, pos) & bits_low64(len);
}

// Bits beyond the top of x are copies of its top bit; bits beyond the field are copies of the field's top
// bit.
static inline uint32_t bits_bfe_s32(int32_t x, uint32_t pos, uint32_t len)
{
    len &= 255;
    int32_t field = bits_shr_s32(x, pos & 255);
    uint32_t unused = len > 31 ? 0 : 32 - len;
    int32_t r = (int32_t)((uint32_t)field << (unused & 31)) >> (unused & 31);
    return len ? (uint32_t)r : 0;
}

static inline uint64_t bits_bfe_s64(int64_t x, uint32_t pos, uint32_t len)
{
    uint64_t wide = len;
    int64_t field = bits_shr_s64(x, pos);
    uint64_t unused = wide > 63 ? 0 : 64 - wide;
    int64_t r = (int64_t)((uint64_t)field << (unused & 63)) >> (unused & 63);
    return wide ? (uint64_t)r : 0;
}

static inline uint32_t bits_bfi32(uint32_t x, uint32_t into, uint32_t pos, uint32_t len)
{
    uint32_t mask = bits_shl32(bits_low32(len & 255), pos & 255);
    return (into & ~mask) | (bits_shl32(x, pos & 255) & mask);
}

static inline uint64_t bits_bfi64(uint64_t x, uint64_t into, uint32_t pos, uint32_t len)
{
    uint64_t mask = bits_shl64(bits_low64(len), pos);
    return (into & ~mask) | (bits_shl64(x, pos) & mask);
}

// Returns szext's width: .clamp limits it to 32, .wrap takes it modulo 32.
static inline uint32_t bits_width(uint32_t n, uint32_t flags)
{
    return flags & LANES_CLAMP ? (n > 32 ? 32 : n) : n & 31;
}

static inline uint32_t bits_zext(uint32_t x, uint32_t width)
{
    return x & bits_low32(width);
}

static inline uint32_t bits_sext(uint32_t x, uint32_t width)
{
    uint32_t unused = (32 - width) & 31;
    uint32_t r = (uint32_t)((int32_t)(x << unused) >> unused);
    return width ? r : 0;
}

static inline uint32_t bits_bmsk(uint32_t pos, uint32_t width, uint32_t flags)
{
    uint32_t from = UINT32_MAX << (pos & 31), end = (pos & 31) + (width & 31);
    uint32_t mask = end > 31 ? from : from & ~(UINT32_MAX << (end & 31));
    if (flags & LANES_CLAMP)
        mask = pos > 31 ? 0 : width > 31 ? from : mask;
    return mask;
}

// Returns bytes of the 64 bits b:a, chosen by the selector's nibbles; bit 3 of a nibble replicates the byte's
// sign instead.
static inline uint32_t bits_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (int k = 0; k < 4; k++) {
        uint32_t sel = selector >> 4 * k;
        uint32_t byte = (uint32_t)(bytes >> (uint64_t)(sel & 7) * 8) & 255;
        uint32_t sign = (0u - (byte >> 7)) & 255;
        r |= (sel & 8 ? sign : byte) << 8 * k;
    }
    return r;
}

#endif
