// SPDX-License-Identifier: MIT
// f16 and bf16 of one lane, by integer arithmetic on f32, so that no instructions for f16 are needed.
#ifndef MOAT_EXEC_SCALAR_HALF_H
#define MOAT_EXEC_SCALAR_HALF_H

#include "exec/scalar_float.h"

static inline float bf16_to_f32(uint16_t h)
{
    return f32_of((uint32_t)h << 16);
}

// Rounds to nearest, ties to even.
static inline uint16_t bf16_from_f32(float x)
{
    uint32_t bits = f32_bits(x);
    uint32_t r = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(x != x ? F16_NAN_BITS : r);
}

static inline float half_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    float normal = f32_of(rest + 0x38000000u);           // the exponent's bias goes from 15 to 127
    float tiny = f32_of(rest + 0x38800000u) - 0x1p-14f;  // subnormal: as a multiple of 2^-24
    float r = rest < 0x00800000u ? tiny : rest < 0x0f800000u ? normal : f32_of(rest + 0x70000000u);
    return f32_of(f32_bits(r) | sign);
}

// Rounds to nearest, ties to even.
static inline uint16_t half_from_f32(float x)
{
    uint32_t bits = f32_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffffu;
    uint32_t normal = (size - 0x38000000u + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t tiny = f32_bits(f32_of(size) + 0.5f) - 0x3f000000u;  // the addition rounds to multiples of 2^-24
    uint32_t r = size < 0x38800000u ? tiny : size < 0x477ff000u ? normal : 0x7c00;
    return (uint16_t)(size > 0x7f800000u ? F16_NAN_BITS : sign | r);
}

static inline float half_flushed(uint16_t h, bool flush)
{
    return half_to_f32(flush && !(h & 0x7c00) ? h & 0x8000 : h);
}

static inline uint16_t half_canonical(uint32_t h)
{
    return (uint16_t)((h & 0x7fff) > 0x7c00 ? F16_NAN_BITS : h);
}

static inline uint16_t bf16_canonical(uint32_t h)
{
    return (uint16_t)((h & 0x7fff) > 0x7f80 ? F16_NAN_BITS : h);
}

// Returns whether x, rounded to 11 bits with an unbounded exponent, is below the normal range of f16.
static inline bool half_is_tiny(float x)
{
    uint32_t size = f32_bits(x) & 0x7fffffffu;
    return size + 0xfff + (size >> 13 & 1) < 0x38800000u;
}

static inline uint16_t half_flush(uint16_t h)
{
    return h & 0x7c00 ? h : h & 0x8000;
}

// Rounds x to f32 to odd: an inexact result has its last bit set. Rounding that again, to fewer bits, equals
// rounding x once.
static inline float half_odd_f32(double x)
{
    float r = (float)x;
    double back = r;
    uint32_t bits = f32_bits(r);
    uint32_t odd = __builtin_fabs(x) > __builtin_fabs(back) ? bits + 1 : bits - 1;
    return f32_of((back < x || back > x) && !(bits & 1) ? odd : bits);
}

// Returns a * b + c of f16, rounded to odd. In double the sum is exact wherever it does not overflow f16: its
// bits lie between 2^-48 and 2^17, and where they do not, not all of them matter.
static inline float half_fma(float a, float b, float c)
{
    return half_odd_f32((double)a * b + c);
}

// The same for bf16, whose exponents lie further apart: the sum in double is rounded to odd too.
static inline float bf16_fma(float a, float b, float c)
{
    double p = (double)a * b, s = p + c;
    double back = s - p, error = (p - (s - back)) + (c - back);
    uint64_t bits = f64_bits(s);
    uint64_t away = (error > 0) == (s > 0) ? 1 : UINT64_MAX;
    bool inexact = (error > 0 || error < 0) && !(bits & 1);
    return half_odd_f32(f64_of(inexact ? bits + away : bits));
}

#endif
