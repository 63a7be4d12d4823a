// SPDX-License-Identifier: MIT
// Floating-point operations of one lane as an H200 does them: NaN encodings, flushing, saturation, minimum
// and maximum. They have no branches, so that loops over lanes vectorise.
#ifndef MOAT_EXEC_SCALAR_FLOAT_H
#define MOAT_EXEC_SCALAR_FLOAT_H

#include <float.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "exec/lanes_row.h"

// Every NaN that results from an f32 operation; the same for f16 and bf16.
#define F32_NAN_BITS UINT32_C(0x7fffffff)
#define F16_NAN_BITS UINT16_C(0x7fff)
// The NaN that an f64 operation gives if no operand was NaN.
#define F64_NAN_BITS UINT64_C(0xfff8000000000000)

static inline uint32_t f32_bits(float x)
{
    uint32_t r;
    memcpy(&r, &x, 4);
    return r;
}

static inline float f32_of(uint32_t bits)
{
    float r;
    memcpy(&r, &bits, 4);
    return r;
}

static inline uint64_t f64_bits(double x)
{
    uint64_t r;
    memcpy(&r, &x, 8);
    return r;
}

static inline double f64_of(uint64_t bits)
{
    double r;
    memcpy(&r, &bits, 8);
    return r;
}

// --- f32 ---------------------------------------------------------------------------------------------------

static inline float f32_canonical(float r)
{
    return r != r ? f32_of(F32_NAN_BITS) : r;
}

static inline float f32_flush(float x)
{
    uint32_t bits = f32_bits(x);
    return f32_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

// .sat: NaN and -0 become +0.
static inline float f32_sat(float r)
{
    return r > 0 ? (r < 1 ? r : 1) : 0;
}

// .relu: NaN stays, -0 becomes +0.
static inline float f32_relu(float r)
{
    return r > 0 ? r : r != r ? f32_of(F32_NAN_BITS) : 0;
}

// If one operand is NaN, the result is the other; -0 is less than +0.
static inline float f32_min(float a, float b)
{
    float r = a < b ? a : b;
    r = a == b ? f32_of(f32_bits(a) | f32_bits(b)) : r;
    return f32_canonical(b != b ? a : r);
}

static inline float f32_max(float a, float b)
{
    float r = a > b ? a : b;
    r = a == b ? f32_of(f32_bits(a) & f32_bits(b)) : r;
    return f32_canonical(b != b ? a : r);
}

// .xorsign.abs compares magnitudes and multiplies signs; .NaN makes any NaN operand the result.
static inline float f32_extreme(float (*least)(float, float), float a, float b, uint32_t flags)
{
    uint32_t sign = 0;
    if (flags & LANES_XORSIGN) {
        sign = (f32_bits(a) ^ f32_bits(b)) & 0x80000000u;
        a = f32_of(f32_bits(a) & 0x7fffffffu);
        b = f32_of(f32_bits(b) & 0x7fffffffu);
    }
    float r = least(a, b);
    if (flags & LANES_NAN_RESULT && (a != a || b != b))
        r = f32_of(F32_NAN_BITS);
    return r != r ? r : f32_of(f32_bits(r) | sign);
}

static inline float f32_fma(float a, float b, float c)
{
#ifdef __FMA__
    return __builtin_fmaf(a, b, c);
#else
    // The product is exact in double. The sum is rounded to odd, which makes the second rounding harmless.
    double p = (double)a * b, s = p + c;
    double back = s - p, error = (p - (s - back)) + (c - back);
    uint64_t bits = f64_bits(s);
    uint64_t away = (error > 0) == (s > 0) ? 1 : UINT64_MAX;
    bool inexact = (error > 0 || error < 0) && !(bits & 1);
    return (float)f64_of(inexact ? bits + away : bits);
#endif
}

// With .ftz, operands are flushed first. A result is flushed if, rounded with an unbounded exponent, it is
// below the normal range, even if it would round up to the smallest normal number because subnormals are
// coarser. Scaling by 2^32 reveals that. Sums are exact in that range.
static inline float f32_tiny_to_0(float r, float scaled)
{
    bool tiny = scaled < 0x1p-94f && scaled > -0x1p-94f;
    return f32_of(tiny ? f32_bits(r) & 0x80000000u : f32_bits(r));
}

static inline float f32_mul_ftz(float a, float b)
{
    return f32_tiny_to_0(a * b, a * 0x1p32f * b);
}

static inline float f32_fma_ftz(float a, float b, float c)
{
    return f32_tiny_to_0(f32_fma(a, b, c), f32_fma(a * 0x1p32f, b, c * 0x1p32f));
}

// --- f64 ---------------------------------------------------------------------------------------------------

static inline double f64_quiet(double x)
{
    return f64_of(f64_bits(x) | UINT64_C(0x0008000000000000));
}

// Returns r, the result of an operation on a, b and c, with the right NaN if it is one: the second operand's
// comes first, then the third's, then the first's. No other place knows that order. (Division passes a and b
// swapped.)
static inline double f64_canonical3(double r, double a, double b, double c)
{
    double nan = b != b ? f64_quiet(b) : c != c ? f64_quiet(c) : a != a ? f64_quiet(a) : f64_of(F64_NAN_BITS);
    return r != r ? nan : r;
}

// abs and neg: NaN keeps its sign.
static inline double f64_sign(double x, uint64_t bits)
{
    return x != x ? f64_quiet(x) : f64_of(bits);
}

static inline double f64_canonical2(double r, double a, double b)
{
    return f64_canonical3(r, a, b, 0);
}

static inline double f64_canonical1(double r, double a)
{
    return f64_canonical3(r, a, 0, 0);
}

static inline double f64_min(double a, double b)
{
    double r = a < b ? a : b;
    r = a == b ? f64_of(f64_bits(a) | f64_bits(b)) : r;
    return f64_canonical2(b != b ? a : r, a, b);
}

static inline double f64_max(double a, double b)
{
    double r = a > b ? a : b;
    r = a == b ? f64_of(f64_bits(a) & f64_bits(b)) : r;
    return f64_canonical2(b != b ? a : r, a, b);
}

#endif
