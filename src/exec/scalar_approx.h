// SPDX-License-Identifier: MIT
// Approximate functions of one lane, on f32. PTX allows errors from 2^-23 to 2^-11; these compute in double,
// much closer than that, and round once, so that results are the same with every instruction set. They have
// no branches.
#ifndef MOAT_EXEC_SCALAR_APPROX_H
#define MOAT_EXEC_SCALAR_APPROX_H

#include "exec/scalar_float.h"

// Added to a double below 2^51, this leaves the double's integer part in the lowest bits.
#define APPROX_MAGIC 0x1.8p52

// Returns 2^x for |x| up to 1000, as 2^n times a series for the rest, which is at most 1/2.
static inline double approx_exp2(double x)
{
    double t = x + APPROX_MAGIC, f = (x - (t - APPROX_MAGIC)) * 0x1.62e42fefa39efp-1;  // ln 2
    double scale = f64_of((f64_bits(t) - f64_bits(APPROX_MAGIC) + 1023) << 52);
    double p = 1.0 / 362880;
    p = p * f + 1.0 / 40320;
    p = p * f + 1.0 / 5040;
    p = p * f + 1.0 / 720;
    p = p * f + 1.0 / 120;
    p = p * f + 1.0 / 24;
    p = p * f + 1.0 / 6;
    p = p * f + 1.0 / 2;
    p = p * f + 1;
    p = p * f + 1;
    return p * scale;
}

static inline float approx_ex2(float x)
{
    double in = x < -200 ? -200 : x > 200 ? 200 : x;
    return (float)approx_exp2(in);
}

static inline float approx_lg2(float x)
{
    double in = x > 0 && x <= FLT_MAX ? x : 1;
    uint64_t bits = f64_bits(in), half = f64_bits(0x1.6a09e667f3bcdp-1);  // sqrt(1/2)
    int64_t exponent = (int64_t)(bits - half) >> 52;
    double m = f64_of(bits - ((uint64_t)exponent << 52));  // from sqrt(1/2) to sqrt(2)
    double s = (m - 1) / (m + 1), q = s * s;
    double p = 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1;
    // The exponent becomes a double without a conversion of 64-bit integers, which AVX2 lacks.
    double e = f64_of((uint64_t)exponent + f64_bits(APPROX_MAGIC)) - APPROX_MAGIC;
    float r = (float)(e + p * s * 0x1.71547652b82fep1);  // 2 / ln 2
    r = x == 0 ? -__builtin_inff() : r;
    r = x > FLT_MAX ? x : r;
    return x < 0 || x != x ? f32_of(F32_NAN_BITS) : r;
}

// Returns the sine of x plus `quarters` quarter turns. The hardware multiplies by 1 / (2 pi), rounding toward
// 0 to f32 and flushing, and takes the sine of the fraction of a turn. This does the same, so large angles
// give the hardware's results: once the product has no fraction, they count as whole turns.
static inline float approx_turn(float x, uint64_t quarters)
{
    double product = (double)x * 0x1.45f306p-3;
    double turns = f64_of(f64_bits(product) & ~UINT64_C(0x1fffffff));
    double size = __builtin_fabs(turns), in = size < 0x1p24 && size >= 0x1p-126 ? turns * 4 : 0;
    double t = in + APPROX_MAGIC, r = (in - (t - APPROX_MAGIC)) * 0x1.921fb54442d18p0;  // pi / 2
    uint64_t n = f64_bits(t) + quarters;
    double z = r * r;
    double s = 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = s * z * r + r;
    double c = -1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 1.0 / 2;
    c = c * z + 1;
    double y = n & 1 ? c : s;
    float turned = (float)f64_of(f64_bits(y) ^ (n & 2) << 62);
    return __builtin_fabsf(x) <= FLT_MAX ? turned : f32_of(F32_NAN_BITS);
}

static inline float approx_sin(float x)
{
    float r = approx_turn(x, 0);
    return r == 0 ? __builtin_copysignf(0, x) : r;
}

static inline float approx_cos(float x)
{
    return approx_turn(x, 1);
}

static inline float approx_tanh(float x)
{
    double size = __builtin_fabsf(x), in = size < 20 ? size : 20;
    double t = approx_exp2(in * -0x1.71547652b82fep1);  // -2 / ln 2
    float r = __builtin_copysignf((float)((1 - t) / (1 + t)), x);
    r = size < 0x1p-12 ? x : r;
    return x != x ? x : r;
}

static inline float approx_rsqrt(float x)
{
    return 1 / __builtin_sqrtf(x);
}

#endif
