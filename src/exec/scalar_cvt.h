// SPDX-License-Identifier: MIT
// Conversion of one value from any type to any other with any rounding, by integer arithmetic: exact, not
// fast. Rows that matter for speed do not use it, and are tested against it.
#ifndef MOAT_EXEC_SCALAR_CVT_H
#define MOAT_EXEC_SCALAR_CVT_H

#include "exec/lanes_row.h"
#include "exec/scalar_float.h"

enum cvt_class { CVT_ZERO, CVT_FINITE, CVT_INFINITE, CVT_NAN };

// value == m / 2^63 * 2^exponent; the highest bit of m is set
struct cvt_number {
    enum cvt_class class;
    bool negative;
    int exponent;
    uint64_t m;
};

struct cvt_format {
    uint8_t bits, fraction;  // bits without the sign
    uint8_t below;           // zero bits below the fraction
    int bias;
    uint64_t largest, infinity, nan;  // infinity 0: the format has none
};

// Returns a floating-point type's format; a packed type's is its element's.
static inline const struct cvt_format *cvt_format(unsigned type)
{
    static const struct cvt_format formats[LANES_TYPE_COUNT] = {
        [LANES_F16] =
            {.bits = 15, .fraction = 10, .bias = 15, .largest = 0x7bff, .infinity = 0x7c00, .nan = 0x7fff},
        [LANES_F16X2] =
            {.bits = 15, .fraction = 10, .bias = 15, .largest = 0x7bff, .infinity = 0x7c00, .nan = 0x7fff},
        [LANES_BF16] =
            {.bits = 15, .fraction = 7, .bias = 127, .largest = 0x7f7f, .infinity = 0x7f80, .nan = 0x7fff},
        [LANES_BF16X2] =
            {.bits = 15, .fraction = 7, .bias = 127, .largest = 0x7f7f, .infinity = 0x7f80, .nan = 0x7fff},
        [LANES_TF32] = {.bits = 18,
                        .fraction = 10,
                        .below = 13,
                        .bias = 127,
                        .largest = 0x3fbff,
                        .infinity = 0x3fc00,
                        .nan = 0x3ffff},
        [LANES_F32] = {.bits = 31,
                       .fraction = 23,
                       .bias = 127,
                       .largest = 0x7f7fffff,
                       .infinity = 0x7f800000,
                       .nan = F32_NAN_BITS},
        [LANES_F64] = {.bits = 63,
                       .fraction = 52,
                       .bias = 1023,
                       .largest = 0x7fefffffffffffff,
                       .infinity = 0x7ff0000000000000,
                       .nan = F64_NAN_BITS},
        [LANES_E5M2X2] =
            {.bits = 7, .fraction = 2, .bias = 15, .largest = 0x7b, .infinity = 0x7c, .nan = 0x7f},
        [LANES_E4M3X2] = {.bits = 7, .fraction = 3, .bias = 7, .largest = 0x7e, .nan = 0x7f},
    };
    return &formats[type];
}

static inline bool cvt_is_int(unsigned type)
{
    return type <= LANES_S64 || type >= LANES_U2;
}

static inline bool cvt_is_signed(unsigned type)
{
    return type & 1 ? type <= LANES_S64 : type == LANES_S2 || type == LANES_S4;
}

static inline unsigned cvt_int_bits(unsigned type)
{
    static const uint8_t bits[LANES_TYPE_COUNT] = {
        [LANES_U2] = 2,   [LANES_S2] = 2,   [LANES_U4] = 4,   [LANES_S4] = 4,
        [LANES_U8] = 8,   [LANES_S8] = 8,   [LANES_U16] = 16, [LANES_S16] = 16,
        [LANES_U32] = 32, [LANES_S32] = 32, [LANES_U64] = 64, [LANES_S64] = 64};
    return bits[type];
}

static inline struct cvt_number cvt_normal(bool negative, int exponent, uint64_t m)
{
    if (!m)
        return (struct cvt_number){.class = CVT_ZERO, .negative = negative};
    int shift = __builtin_clzll(m);
    return (struct cvt_number){CVT_FINITE, negative, exponent - shift, m << shift};
}

static inline struct cvt_number cvt_unpack_float(uint64_t bits, const struct cvt_format *f)
{
    bits >>= f->below;
    bool negative = bits >> f->bits & 1;
    bits &= (UINT64_C(1) << f->bits) - 1;
    if (f->infinity ? bits > f->infinity : bits == f->nan)
        return (struct cvt_number){.class = CVT_NAN, .negative = negative};
    if (f->infinity && bits == f->infinity)
        return (struct cvt_number){.class = CVT_INFINITE, .negative = negative};
    int field = (int)(bits >> f->fraction);
    uint64_t m = bits & ((UINT64_C(1) << f->fraction) - 1);
    if (field)
        m |= UINT64_C(1) << f->fraction;
    return cvt_normal(negative, (field ? field : 1) - f->bias + 63 - f->fraction, m);
}

static inline struct cvt_number cvt_unpack_int(uint64_t bits, unsigned type)
{
    unsigned unused = 64 - cvt_int_bits(type);
    bits <<= unused;
    if (!cvt_is_signed(type))
        return cvt_normal(false, 63, bits >> unused);
    int64_t value = (int64_t)bits >> unused;
    return cvt_normal(value < 0, 63, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

// Returns m / 2^shift, rounded to an integer.
static inline uint64_t cvt_shift(uint64_t m, int shift, bool negative, unsigned round)
{
    if (shift <= 0)
        return m;
    uint64_t q = shift < 64 ? m >> shift : 0;
    uint64_t rest = shift < 64 ? m << (64 - shift) : shift == 64 ? m : 1;  // in units of 2^-64
    uint64_t half = UINT64_C(1) << 63;
    switch (round) {
    case LANES_RZ:
    case LANES_RZI: return q;
    case LANES_RM:
    case LANES_RMI: return q + (negative && rest);
    case LANES_RP:
    case LANES_RPI: return q + (!negative && rest);
    case LANES_RNA: return q + (rest >= half);
    default: return q + (rest > half || (rest == half && (q & 1)));
    }
}

static inline uint64_t cvt_overflow(const struct cvt_number *x, const struct cvt_format *f, unsigned round,
                                    bool finite)
{
    bool inward = round == LANES_RZ || round == (x->negative ? LANES_RP : LANES_RM);
    if (x->class == CVT_INFINITE)
        inward = false;
    if (finite || inward)
        return f->largest;
    return f->infinity ? f->infinity : f->nan;
}

static inline uint64_t cvt_pack_float(const struct cvt_number *x, const struct cvt_format *f, unsigned round,
                                      bool finite)
{
    uint64_t r = 0;
    if (x->class == CVT_NAN)
        return f->nan << f->below;
    if (x->class == CVT_INFINITE)
        r = cvt_overflow(x, f, round, finite);
    if (x->class == CVT_FINITE) {
        int field = x->exponent + f->bias;
        int shift = 63 - f->fraction + (field <= 0 ? 1 - field : 0);
        r = cvt_shift(x->m, shift, x->negative, round);
        if (field > 0)
            r += (uint64_t)(field - 1) << f->fraction;
        if (field > 2 * f->bias + 2 || r > f->largest)
            r = cvt_overflow(x, f, round, finite);
    }
    return (r | (uint64_t)x->negative << f->bits) << f->below;
}

// Returns the integer that NaN converts to: 0, or the highest bit alone if 64 bits are on either side.
static inline uint64_t cvt_int_of_nan(unsigned to, unsigned from)
{
    unsigned bits = cvt_int_bits(to);
    uint64_t top = UINT64_C(1) << (bits - 1);
    return from != LANES_F64 && bits < 64 ? 0 : cvt_is_signed(to) ? 0 - top : top;
}

// Converts with saturation. The result is extended to 64 bits by the type's signedness.
static inline uint64_t cvt_pack_int(const struct cvt_number *x, unsigned type, unsigned round)
{
    unsigned bits = cvt_int_bits(type);
    uint64_t limit = UINT64_MAX >> (64 - bits), q = 0;
    if (cvt_is_signed(type))
        limit = (limit >> 1) + x->negative;
    else if (x->negative)
        limit = 0;
    if (x->class == CVT_INFINITE || (x->class == CVT_FINITE && x->exponent > 63))
        q = limit;
    else if (x->class == CVT_FINITE)
        q = cvt_shift(x->m, 63 - x->exponent, x->negative, round);
    q = q > limit ? limit : q;
    return x->negative ? 0 - q : q;
}

// Rounds to an integral value, for .rni and the like with a floating-point result.
static inline struct cvt_number cvt_integral(struct cvt_number x, unsigned round)
{
    if (x.class != CVT_FINITE || x.exponent >= 63)
        return x;
    return cvt_normal(x.negative, 63, cvt_shift(x.m, 63 - x.exponent, x.negative, round));
}

static inline struct cvt_number cvt_modify(struct cvt_number x, uint32_t flags)
{
    struct cvt_number zero = {.class = CVT_ZERO}, one = {CVT_FINITE, false, 0, UINT64_C(1) << 63};
    if (flags & LANES_RELU && x.negative && x.class != CVT_NAN)
        return zero;
    if (flags & LANES_SAT) {
        if (x.negative || x.class == CVT_NAN)
            return zero;
        if (x.class == CVT_INFINITE || (x.class == CVT_FINITE && x.exponent >= 0))
            return one;
    }
    return x;
}

// Converts a NaN. Between f64 and other types it keeps its sign and the part of its payload that fits;
// otherwise all NaNs become the same.
static inline uint64_t cvt_nan(uint64_t bits, unsigned to, unsigned from, uint32_t flags)
{
    const struct cvt_format *t = cvt_format(to), *f = cvt_format(from);
    if (flags & LANES_FTZ && from == LANES_F32)
        bits = F32_NAN_BITS;
    if ((to == LANES_F64) == (from == LANES_F64))
        return t->nan << t->below;
    uint64_t sign = bits >> f->bits & 1, payload = bits & ((UINT64_C(1) << f->fraction) - 1);
    int up = t->fraction - f->fraction;
    payload = up > 0 ? payload << up : payload >> -up;
    return sign << t->bits | t->infinity | payload | UINT64_C(1) << (t->fraction - 1);
}

// .rna to tf32 operates on the bits alone.
static inline uint32_t cvt_rna_tf32(uint32_t bits, uint32_t flags)
{
    bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    uint32_t r = (finite ? bits + 0x1000 : bits) & ~UINT32_C(0x1fff);
    return flags & LANES_SATFINITE && (r & 0x7f800000u) == 0x7f800000u ? r - 0x2000 : r;
}

// Returns whether x, rounded with an unbounded exponent, is below f32's normal range.
static inline bool cvt_is_tiny(const struct cvt_number *x, unsigned round)
{
    uint64_t m = cvt_shift(x->m, 40, x->negative, round);
    return x->class == CVT_FINITE && x->exponent + (int)(m >> 24) < -126;
}

static inline bool cvt_is_tiny32(uint64_t bits)
{
    return !(bits & 0x7f800000u);
}

// Returns the value's bits as type `to`; 8-bit integers and the like are extended to 64 bits.
static inline uint64_t cvt_value(uint64_t bits, unsigned to, unsigned from, uint32_t flags)
{
    unsigned round = flags & LANES_ROUND_MASK;
    if (to == LANES_TF32 && round == LANES_RNA)
        return cvt_rna_tf32((uint32_t)bits, flags);
    if (flags & LANES_FTZ && from == LANES_F32 && to != LANES_F16 && cvt_is_tiny32(bits))
        bits &= 0x80000000u;
    if (cvt_is_int(from)) {
        struct cvt_number x = cvt_unpack_int(bits, from);
        if (!cvt_is_int(to)) {
            x = cvt_modify(x, flags);
            return cvt_pack_float(&x, cvt_format(to), round, flags & LANES_SATFINITE);
        }
        if (flags & LANES_SAT)
            return cvt_pack_int(&x, to, LANES_RZ);
        unsigned unused = 64 - cvt_int_bits(to);
        uint64_t value = x.negative ? 0 - (x.m >> (63 - x.exponent)) : x.m ? x.m >> (63 - x.exponent) : 0;
        value <<= unused;
        return cvt_is_signed(to) ? (uint64_t)((int64_t)value >> unused) : value >> unused;
    }
    struct cvt_number x = cvt_unpack_float(bits, cvt_format(from));
    if (cvt_is_int(to))
        return x.class == CVT_NAN ? cvt_int_of_nan(to, from) : cvt_pack_int(&x, to, round);
    if (round >= LANES_RNI && round <= LANES_RPI)
        x = cvt_integral(x, round);
    x = cvt_modify(x, flags);
    if (x.class == CVT_NAN)
        return cvt_nan(bits, to, from, flags);
    if (flags & LANES_FTZ && to == LANES_F32 && cvt_is_tiny(&x, round))
        x.class = CVT_ZERO;
    return cvt_pack_float(&x, cvt_format(to), round, flags & LANES_SATFINITE);
}

#endif
