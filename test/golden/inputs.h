// SPDX-License-Identifier: MIT
// The inputs of an instruction: for each register that it reads, COUNT values, the same on every machine.
//
// Values of one index make a tuple. Tuples 0 to 143 cross the twelve principal values of each operand's kind;
// of the others a part are edges, a part are ordinary numbers, a part are random bits, and in a part the
// operands lie close to each other (a == b, a == b + 1 ulp, c == -(a * b)), where rounding and cancellation
// show. The seed is the list of kinds, not the instruction: instructions of one shape get the same inputs,
// and the file with their results compresses.
#ifndef MOAT_TEST_GOLDEN_INPUTS_H
#define MOAT_TEST_GOLDEN_INPUTS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { INPUT_COUNT = 4096, INPUT_PRINCIPAL = 12 };

enum input_kind {
    INPUT_INT,      // any integer of `bits`
    INPUT_SHIFT,    // a number of bits
    INPUT_SMALL,    // 0 to 31, small negative numbers
    INPUT_FLOAT,    // exponent and mantissa by `bits` and `brain`
    INPUT_BYTES,    // two or four small floats
    INPUT_PRED,     // 0 or 1
    INPUT_LANE,     // a lane to read from, in range or a little beyond
    INPUT_SEGMENT,  // shfl's clamp and segment mask
    INPUT_FULL,     // all lanes
    INPUT_MASK,     // lanes; the same in a warp
    INPUT_FEW,      // few different values in a warp
    INPUT_VOTE,     // 0 or 1; all equal in some warps
    INPUT_MATRIX,   // a floating-point element of a matrix; the warp selects its order of magnitude
    INPUT_WORD,     // random bits; in some warps near the limits of 32 bits
};

struct input {
    uint8_t kind;
    uint8_t bits;   // of an element
    uint8_t parts;  // elements that lie side by side, 1 to 8
    bool brain;     // FLOAT of 16 bits: eight of them exponent; MATRIX: also e5m2, and tf32 among 32 bits
};

static uint64_t input_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t input_cut(uint64_t v, unsigned bits)
{
    return bits >= 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

// --- integers ---------------------------------------------------------------------------------------------

static uint64_t int_principal(unsigned bits, unsigned n)
{
    const uint64_t min = UINT64_C(1) << (bits - 1);
    const uint64_t values[INPUT_PRINCIPAL] = {
        0, 1, UINT64_MAX, min, min - 1, 2, min + 1, min - 2, 7, (uint64_t)-2, 0x5555555555555555, 31};
    return values[n % INPUT_PRINCIPAL];
}

static uint64_t int_edge(unsigned bits, uint64_t *rng)
{
    uint64_t r = input_next(rng);
    uint64_t power = UINT64_C(1) << ((r >> 8) % bits);
    switch (r % 8) {
    case 0: return power;
    case 1: return power - 1;
    case 2: return power + 1;
    case 3: return -power;
    case 4: return ~power;
    case 5: return (r >> 20) % 67;
    case 6: return -((r >> 20) % 67);
    default: return int_principal(bits, (unsigned)(r >> 20));
    }
}

static uint64_t int_ordinary(unsigned bits, uint64_t *rng)
{
    uint64_t r = input_next(rng);
    uint64_t v = input_cut(input_next(rng), 1 + (unsigned)(r % bits));
    return r >> 63 ? -v : v;
}

// --- floating point ---------------------------------------------------------------------------------------

struct format {
    unsigned bits, mantissa;
    int bias;
};

static struct format format_of(const struct input *in)
{
    if (in->bits == 64)
        return (struct format){64, 52, 1023};
    if (in->bits == 32)
        return (struct format){32, 23, 127};
    return in->brain ? (struct format){16, 7, 127} : (struct format){16, 10, 15};
}

static uint64_t format_make(struct format f, unsigned sign, int64_t exponent, uint64_t mantissa)
{
    int64_t most = 2 * f.bias + 1;
    if (exponent < 0)
        exponent = 0;
    if (exponent > most)
        exponent = most;
    return (uint64_t)(sign & 1) << (f.bits - 1) | (uint64_t)exponent << f.mantissa |
           input_cut(mantissa, f.mantissa);
}

// Returns v * 2^scale, truncated.
static uint64_t format_scaled(struct format f, unsigned sign, uint64_t v, int scale)
{
    if (!v)
        return format_make(f, sign, 0, 0);
    int top = 63 - __builtin_clzll(v);
    uint64_t m = top > (int)f.mantissa ? v >> (top - (int)f.mantissa) : v << ((int)f.mantissa - top);
    return format_make(f, sign, top + scale + f.bias, m);
}

static double format_decode(struct format f, uint64_t v)
{
    int exponent = (int)input_cut(v >> f.mantissa, f.bits - 1 - f.mantissa);
    uint64_t m = input_cut(v, f.mantissa);
    double x = exponent == 2 * f.bias + 1 ? (m ? NAN : INFINITY)
               : exponent == 0
                   ? ldexp((double)m, 1 - f.bias - (int)f.mantissa)
                   : ldexp((double)(m | UINT64_C(1) << f.mantissa), exponent - f.bias - (int)f.mantissa);
    return v >> (f.bits - 1) & 1 ? -x : x;
}

// Truncated, and flushed if it would be subnormal: only a starting point near x.
static uint64_t format_encode(struct format f, double x)
{
    uint64_t b;
    memcpy(&b, &x, sizeof b);
    int64_t exponent = (int64_t)(b >> 52 & 2047) - 1023 + f.bias;
    if (exponent <= 0)
        return format_make(f, b >> 63, 0, 0);
    return format_make(f, b >> 63, exponent, input_cut(b, 52) >> (52 - f.mantissa));
}

static uint64_t float_principal(struct format f, unsigned n)
{
    const int64_t most = 2 * f.bias + 1;
    switch (n % INPUT_PRINCIPAL) {
    case 0: return format_make(f, 0, 0, 0);
    case 1: return format_make(f, 1, 0, 0);
    case 2: return format_make(f, 0, f.bias, 0);
    case 3: return format_make(f, 1, most, 0);
    case 4: return format_make(f, 0, most, 0);
    case 5: return format_make(f, 0, most, UINT64_C(3) << (f.mantissa - 2) | 5);
    case 6: return format_make(f, 0, 0, 1);
    case 7: return format_make(f, 1, 0, UINT64_MAX);
    case 8: return format_make(f, 0, 1, 0);
    case 9: return format_make(f, 0, most - 1, UINT64_MAX);
    case 10: return format_make(f, 1, most - 1, UINT64_MAX);
    default: return format_make(f, 1, f.bias, UINT64_C(1) << (f.mantissa - 1));
    }
}

static uint64_t float_edge(struct format f, uint64_t *rng)
{
    static const int limits[] = {0, 1, 7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64};
    const int64_t most = 2 * f.bias + 1;
    uint64_t r = input_next(rng), m = input_next(rng);
    unsigned sign = (unsigned)(r >> 8);
    switch (r % 12) {
    case 0: return format_make(f, sign, most, m | UINT64_C(1) << (f.mantissa - 1));  // quiet NaN
    case 1:
        return format_make(f, sign, most,
                           (m >> 1 & ((UINT64_C(1) << (f.mantissa - 1)) - 1)) | 1);  // signalling
    case 2: return format_make(f, sign, 0, m);                                       // subnormal
    case 3: return format_make(f, sign, 0, UINT64_C(1) << (m % f.mantissa));
    case 4: return format_make(f, sign, 1 + (int64_t)(m >> 40) % 3, m);  // just normal
    case 5: return format_make(f, sign, most - 1 - (int64_t)(m >> 40) % 3, m);
    case 6: return format_scaled(f, sign, 2 * (m % 300) + 1, -1);  // n + 1/2
    case 7: return format_scaled(f, sign, input_cut(m, 1 + (r >> 16) % f.mantissa) | 1, -1);
    case 8: return format_scaled(f, sign, input_cut(m, 1 + (r >> 16) % f.mantissa) | 1, -2);
    case 9:
        return format_make(f, sign, f.bias + limits[(m >> 8) % 14], 0) + (m % 5) -
               2;                                                                     // an integer type's end
    case 10: return format_make(f, sign, (int64_t)(m >> 8) % most, 0) + (m % 3) - 1;  // a power of two
    default: return float_principal(f, (unsigned)(m >> 8));
    }
}

static uint64_t float_ordinary(struct format f, uint64_t *rng)
{
    uint64_t r = input_next(rng), m = input_next(rng);
    int64_t spread = r % 3 == 0 ? 2 : r % 3 == 1 ? 12 : f.bias - 1;
    int64_t exponent = f.bias - spread + (int64_t)((r >> 8) % (uint64_t)(2 * spread + 1));
    if (r >> 60 == 0)
        m &= ~UINT64_C(0) << (f.mantissa / 2);  // products are exact, or lie on a tie
    return format_make(f, (unsigned)(r >> 40), exponent, m);
}

// --- matrices ---------------------------------------------------------------------------------------------

// Eight sorts of matrices, warp by warp: whole numbers; numbers of one magnitude, of several, of very many;
// few bits, which cancel; some special values; the smallest numbers; the largest.
enum matrix_sort { WHOLE, ALIKE, SEVERAL, MANY, FEW_BITS, SPECIAL, SMALLEST, LARGEST, MATRIX_SORTS };

static uint64_t matrix_byte(bool brain, unsigned sort, uint64_t r)
{
    uint64_t v = r >> 8 & 255, special = brain ? 0x7c : 0x7f;
    if (sort == WHOLE || sort == ALIKE)
        v = (v & 0x87) | 0x38;
    if (sort == SMALLEST)
        v &= 0x8f;
    if ((v & special) == special && (sort != SPECIAL || r >> 62))
        v &= ~(brain ? 0x40u : 0x08u);
    return v;
}

static uint64_t matrix_value(const struct input *in, unsigned index, uint64_t *rng)
{
    uint64_t r = input_next(rng), m = input_next(rng);
    unsigned sort = index / 32 % MATRIX_SORTS, sign = (unsigned)(r >> 20);
    if (in->bits == 8)
        return matrix_byte(in->brain, sort, r);
    struct format f = format_of(in);
    bool sum = in->bits > 16 && !in->brain;  // f32 and f64: sums of products have twice the range of factors
    bool narrow = f.bias < 127;
    int64_t spread = narrow ? 14 : sum ? 30 : 20;
    switch (sort) {
    case WHOLE: return format_scaled(f, sign, r % 9, 0);
    case SEVERAL: return format_make(f, sign, f.bias + (int64_t)(r % 13) - 6, m);
    case MANY: return format_make(f, sign, f.bias + (int64_t)(r % (uint64_t)(2 * spread + 1)) - spread, m);
    case FEW_BITS:
        return format_make(f, sign, f.bias + (int64_t)(r % 5) - 2, sum ? m : m << (f.mantissa - 2));
    case SPECIAL:
        if (r % 48 == 0)
            return m % 2 ? float_principal(f, (unsigned)(m >> 8)) : float_edge(f, rng);
        break;
    case SMALLEST:
        return format_make(f, sign,
                           narrow ? (int64_t)(r % 4)
                           : sum  ? (int64_t)(r % 20)
                                  : f.bias - 75 + (int64_t)(r % 24),
                           m);
    case LARGEST:
        return format_make(f, sign,
                           narrow || sum ? 2 * f.bias - (int64_t)(r % 4) : f.bias + 58 + (int64_t)(r % 7), m);
    default: break;
    }
    return format_make(f, sign, f.bias + (int64_t)(r % 3) - 1, m);
}

// --- kinds ------------------------------------------------------------------------------------------------

static uint64_t input_principal(const struct input *in, unsigned n)
{
    switch (in->kind) {
    case INPUT_FLOAT: return float_principal(format_of(in), n);
    case INPUT_SHIFT:
        return (const uint64_t[]){0, 1, 31, 32, 33, 8, 63, 64, 65, 16, UINT32_MAX, 5}[n % INPUT_PRINCIPAL];
    default: return int_principal(in->bits, n);
    }
}

static uint64_t input_any(const struct input *in, unsigned style, uint64_t *rng)
{
    if (style == 2)
        return input_next(rng);
    if (in->kind == INPUT_FLOAT)
        return style ? float_ordinary(format_of(in), rng) : float_edge(format_of(in), rng);
    if (in->kind == INPUT_SHIFT && style == 0)
        return input_next(rng) % 67;
    return style ? int_ordinary(in->bits, rng) : int_edge(in->bits, rng);
}

// Kinds that depend on the index rather than the style. Returns false if it is none of them.
static bool input_by_index(const struct input *in, unsigned index, uint64_t seed, uint64_t *rng, uint64_t *v)
{
    uint64_t warp_rng = seed ^ (index / 32 + 1) * UINT64_C(0x2545f4914f6cdd1d);
    uint64_t of_warp = input_next(&warp_rng), r = input_next(rng);
    switch (in->kind) {
    case INPUT_PRED: *v = r & 1; return true;
    case INPUT_SMALL: *v = r & 1 ? (r >> 8) % 32 : (r >> 8) % 9 - 4; return true;
    case INPUT_BYTES: *v = index < 256 ? (uint64_t)index | (r & ~UINT64_C(255)) : r; return true;
    case INPUT_LANE: *v = r % 8 ? (r >> 8) % 32 : (r >> 8) % 80; return true;
    case INPUT_SEGMENT:
        *v = of_warp % 3 == 0 ? 0x1f : of_warp % 3 == 1 ? 0 : input_cut(of_warp >> 8, 13);
        if (of_warp >> 62 == 3)
            *v = input_cut(r, 13);
        return true;
    case INPUT_FULL: *v = UINT32_MAX; return true;
    case INPUT_MASK: *v = of_warp % 2 ? UINT32_MAX : of_warp >> 32 ? of_warp >> 32 : 1; return true;
    case INPUT_FEW: *v = of_warp % 3 == 0 ? of_warp : of_warp + r % (of_warp % 3 == 1 ? 2 : 7); return true;
    case INPUT_VOTE: *v = of_warp % 4 == 0 ? 0 : of_warp % 4 == 1 ? 1 : r & 1; return true;
    case INPUT_MATRIX: *v = matrix_value(in, index, rng); return true;
    case INPUT_WORD: *v = index / 32 % 4 == 2 ? (r >> 8) % 4000 + 0x7ffff830 : r; return true;
    default: return false;
    }
}

// Brings operands of equal kind close to each other.
static void input_relate(const struct input *in, unsigned n, uint64_t *v, uint64_t *rng)
{
    uint64_t r = input_next(rng);
    for (unsigned k = 1; k < n; k++, r >>= 8)
        if (in[k].kind == in[0].kind && in[k].bits == in[0].bits && (r & 3))
            v[k] = v[0] + (r >> 2) % 5 - 2;
    if (in[0].kind != INPUT_FLOAT)
        return;
    struct format f = format_of(&in[0]);
    for (unsigned k = 1; k < n; k++, r >>= 1)
        if (in[k].kind == INPUT_FLOAT && (r & 1))
            v[k] ^= UINT64_C(1) << (f.bits - 1);
    if (n == 3 && in[2].kind == INPUT_FLOAT && in[2].bits == in[0].bits && (r & 1)) {
        v[1] = float_ordinary(f, rng);
        v[2] = format_encode(f, -format_decode(f, v[0]) * format_decode(f, v[1])) + (r >> 2) % 5 - 2;
    }
}

enum { INPUT_MOST = 32, INPUT_PARTS = 8 };

static void input_tuple(const struct input *in, unsigned n, unsigned index, unsigned part, uint64_t seed,
                        uint64_t *v)
{
    uint64_t rng = seed + ((uint64_t)index * INPUT_PARTS + part) * UINT64_C(0xd1342543de82ef95);
    unsigned cross = (index * (part % 2 ? 5 : 1) + part * 7) % 144;
    uint64_t style = input_next(&rng) % 8;
    for (unsigned k = 0; k < n; k++) {
        if (input_by_index(&in[k], index, seed + k, &rng, &v[k]))
            continue;
        unsigned nth = k == 0 ? cross : k == 1 ? cross / INPUT_PRINCIPAL : (unsigned)input_next(&rng);
        if (index < INPUT_PRINCIPAL * INPUT_PRINCIPAL && (n > 1 || index < INPUT_PRINCIPAL))
            v[k] = input_principal(&in[k], nth);
        else
            v[k] = input_any(&in[k], style < 3 ? 0 : style < 7 ? 1 : 2, &rng);
    }
    if (index >= INPUT_PRINCIPAL * INPUT_PRINCIPAL && (style == 1 || style == 5) && n > 1)
        input_relate(in, n, v, &rng);
}

// values: INPUT_COUNT rows of n.
static void input_fill(const struct input *in, unsigned n, uint64_t *values)
{
    uint64_t seed = n;
    for (unsigned k = 0; k < n; k++) {
        seed = seed * 1000003 + in[k].kind * 4099u + in[k].bits * 16u + in[k].parts * 2u + in[k].brain;
        input_next(&seed);
    }
    for (unsigned i = 0; i < INPUT_COUNT; i++) {
        uint64_t *row = &values[(size_t)i * n], part[INPUT_MOST];
        input_tuple(in, n, i, 0, seed, row);
        for (unsigned e = 1; e < INPUT_PARTS; e++) {
            input_tuple(in, n, i, e, seed, part);
            for (unsigned k = 0; k < n; k++)
                if (e < in[k].parts)
                    row[k] = input_cut(row[k], e * in[k].bits) | part[k] << (e * in[k].bits);
        }
    }
}

#endif
