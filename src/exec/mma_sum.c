// SPDX-License-Identifier: MIT
// One element of a matrix product, step by step: for numbers that are not finite, and products in several
// pieces.
#include "exec/mma.h"
#include "exec/scalar_half.h"

static const struct format {
    uint8_t type, fraction, exponent;  // in bits
} formats[] = {
    {PTX_F16, 10, 5}, {PTX_BF16, 7, 8}, {PTX_TF32, 10, 8},
    {PTX_F32, 23, 8}, {PTX_E4M3, 3, 4}, {PTX_E5M2, 2, 5},
};

static const struct format *format_of(enum ptx_type type)
{
    const struct format *f = formats;
    while (f->type != type)
        f++;
    return f;
}

unsigned mma_fraction(enum ptx_type type)
{
    return format_of(type)->fraction;
}

static struct mma_number unpack(enum ptx_type type, uint32_t bits)
{
    const struct format *f = format_of(type);
    if (type == PTX_TF32)
        bits >>= 13;
    uint32_t most = (1u << f->exponent) - 1, exponent = bits >> f->fraction & most;
    uint32_t fraction = bits & ((1u << f->fraction) - 1);
    int32_t sign = bits >> (f->fraction + f->exponent) & 1 ? -1 : 1, bias = (int32_t)(most >> 1);
    // e4m3 has no infinities, and one NaN.
    if (type == PTX_E4M3 ? (bits & 0x7f) == 0x7f : exponent == most)
        return (struct mma_number){sign, 0, fraction ? MMA_NAN : MMA_INFINITE};
    if (!exponent && !fraction)
        return (struct mma_number){0, MMA_NO_EXPONENT, MMA_FINITE};
    uint32_t whole = exponent ? fraction | 1u << f->fraction : fraction;
    int32_t power = exponent ? (int32_t)exponent - bias : 1 - bias;
    return (struct mma_number){sign * (int32_t)whole, power, MMA_FINITE};
}

struct mma_number mma_unpack(enum ptx_type type, uint32_t bits)
{
    struct mma_number x = unpack(type, bits);
    // An e4m3 is converted to f16 first, where none is subnormal.
    while (type == PTX_E4M3 && x.class == MMA_FINITE && x.significand && !(x.significand / 8)) {
        x.significand *= 2;
        x.exponent--;
    }
    return x;
}

// --- results -----------------------------------------------------------------------------------------------

static uint32_t not_finite(enum ptx_type to, bool nan, bool negative)
{
    if (to == PTX_F16)
        return nan ? F16_NAN_BITS : negative ? 0xfc00 : 0x7c00;
    return nan ? F32_NAN_BITS : negative ? 0xff800000u : 0x7f800000u;
}

uint32_t mma_result(enum ptx_type to, double x)
{
    if (to == PTX_F16) {
        uint16_t half = half_from_f32(half_odd_f32(x));
        return half == 0x8000 ? 0 : half;
    }
    double size = __builtin_fabs(x);
    uint32_t sign = x < 0 ? 0x80000000u : 0;
    if (size >= 0x1p-126)
        return sign | f32_bits((float)f64_of(f64_bits(size) & ~(uint64_t)0x1fffffff));
    uint32_t subnormal = (uint32_t)(size * 0x1p149);
    return subnormal ? sign | subnormal : 0;
}

// Truncates to `kept` bits of fraction.
static int64_t shifted(int64_t significand, unsigned fraction, int32_t by, unsigned kept)
{
    uint64_t size = (uint64_t)(significand < 0 ? -significand : significand);
    if (fraction > kept)
        by += (int32_t)(fraction - kept);
    else
        size <<= kept - fraction;
    size = by > 63 ? 0 : size >> by;
    return significand < 0 ? -(int64_t)size : (int64_t)size;
}

static uint32_t finite_sum(enum ptx_type to, const struct mma_number *a, const struct mma_number *b,
                           unsigned n, unsigned fraction, struct mma_number c, unsigned c_fraction,
                           unsigned kept)
{
    int32_t most = c.exponent;
    for (unsigned k = 0; k < n; k++)
        if (a[k].exponent + b[k].exponent > most)
            most = a[k].exponent + b[k].exponent;
    int64_t sum = shifted(c.significand, c_fraction, most - c.exponent, kept);
    for (unsigned k = 0; k < n; k++)
        sum += shifted((int64_t)a[k].significand * b[k].significand, fraction,
                       most - (a[k].exponent + b[k].exponent), kept);
    double x = sum ? __builtin_ldexp((double)sum, most - (int)kept) : 0;
    return mma_result(to, x);
}

static uint32_t sum_of(enum ptx_type to, const struct mma_number *a, const struct mma_number *b, unsigned n,
                       unsigned fraction, enum ptx_type of, uint32_t bits, unsigned kept)
{
    struct mma_number c = mma_unpack(of, bits);
    bool nan = c.class == MMA_NAN, plus = c.class == MMA_INFINITE && c.significand > 0,
         minus = c.class == MMA_INFINITE && c.significand < 0;
    for (unsigned k = 0; k < n; k++) {
        if (a[k].class == MMA_FINITE && b[k].class == MMA_FINITE)
            continue;
        // Infinity times 0 is NaN.
        nan |= a[k].class == MMA_NAN || b[k].class == MMA_NAN || !a[k].significand || !b[k].significand;
        bool negative = (a[k].significand < 0) != (b[k].significand < 0);
        plus |= !negative;
        minus |= negative;
    }
    if (nan || plus || minus)
        return not_finite(to, nan || (plus && minus), minus);
    return finite_sum(to, a, b, n, fraction, c, mma_fraction(of), kept);
}

uint32_t mma_sum(enum ptx_type to, const struct mma_number *a, const struct mma_number *b, unsigned n,
                 unsigned fraction, enum ptx_type of, uint32_t bits)
{
    return sum_of(to, a, b, n, fraction, of, bits, MMA_FRACTION);
}

uint32_t mma_byte_sum(enum ptx_type to, enum ptx_type x, enum ptx_type y, const uint8_t *a, const uint8_t *b,
                      unsigned n, uint32_t c)
{
    struct mma_number p[MMA_DEPTH], q[MMA_DEPTH];
    for (unsigned k = 0; k < n; k++) {
        p[k] = unpack(x, a[k]);
        q[k] = unpack(y, b[k]);
    }
    uint32_t sum = sum_of(to, p, q, n, mma_fraction(x) + mma_fraction(y), to, c, MMA_BYTE_FRACTION);
    if (to == PTX_F16 || sum << 1 >= 0xff000000u)
        return sum;
    return sum & ~((UINT32_C(1) << (23 - MMA_BYTE_FRACTION)) - 1);
}
