// SPDX-License-Identifier: MIT
// Matrix products, vectorised over columns.
#include "exec/lanes_row.h"
#include "exec/mma.h"
#include "exec/scalar_float.h"

#if defined __clang__
#define LOOP(n) _Pragma("clang loop vectorize(assume_safety)") for (unsigned j = 0; j < (n); j++)
#else
#define LOOP(n) _Pragma("GCC ivdep") for (unsigned j = 0; j < (n); j++)
#endif

#define NAME(isa) NAME_(isa)
#define NAME_(isa) mma_lanes_##isa

// --- numbers -----------------------------------------------------------------------------------------------

#define INLINE static inline __attribute__((always_inline))

// Specialised at compile time by format: `drop` ignored bits, `fraction` bits of fraction, `width` bits of
// exponent.
INLINE bool unpack_as(const uint32_t *from, unsigned n, unsigned left, int32_t *significand,
                      int32_t *exponent, unsigned drop, unsigned fraction, unsigned width)
{
    const uint32_t most = (1u << width) - 1;
    const int32_t bias = (int32_t)(most >> 1);
    uint32_t special = 0;
    LOOP(n)
    {
        uint32_t bits = from[j] >> drop, e = bits >> fraction & most, f = bits & ((1u << fraction) - 1);
        int32_t sign = -(int32_t)(bits >> (fraction + width) & 1);
        int32_t whole = (int32_t)((e ? f | 1u << fraction : f) << left);
        special |= e == most;
        significand[j] = (whole ^ sign) - sign;
        exponent[j] = e | f ? (int32_t)(e ? e : 1) - bias : MMA_NO_EXPONENT;
    }
    return !special;
}

static bool unpack(enum ptx_type type, const uint32_t *from, unsigned n, unsigned left, int32_t *significand,
                   int32_t *exponent)
{
    switch (type) {
    case PTX_F16: return unpack_as(from, n, left, significand, exponent, 0, 10, 5);
    case PTX_BF16: return unpack_as(from, n, left, significand, exponent, 0, 7, 8);
    case PTX_TF32: return unpack_as(from, n, left, significand, exponent, 13, 10, 8);
    default: return unpack_as(from, n, left, significand, exponent, 0, 23, 8);
    }
}

// --- floating point ----------------------------------------------------------------------------------------

static inline int32_t shifted(int32_t significand, unsigned left, int32_t right)
{
    int32_t sign = significand >> 31;
    uint32_t size = (uint32_t)((significand ^ sign) - sign) << left;
    size = right > 31 ? 0 : size >> (right & 31);
    return ((int32_t)size ^ sign) - sign;
}

// Factors are below 2, so a product with MMA_FRACTION bits of fraction is below 2^(MMA_FRACTION + 2); C is
// smaller. Even and odd products are summed separately, STRETCH at a time, and C with one of the sums.
enum { STRETCH = 16 };
_Static_assert(((int64_t)STRETCH / 2 + 1) << (MMA_FRACTION + 2) <= INT32_MAX, "a sum overflows");

static inline void row(const struct mma_finite *f, const int32_t *a, const int32_t *a_exponent,
                       const int32_t *c, const int32_t *c_exponent, double *sum, unsigned n)
{
    int32_t most[MMA_ROWS], even[MMA_ROWS], odd[MMA_ROWS];
    unsigned left = MMA_FRACTION - f->fraction, end = f->first + f->count;
    LOOP(n) most[j] = c_exponent[j];
    for (unsigned k = f->first; k < end; k++) {
        const int32_t *e = &f->b_exponent[k * n];
        LOOP(n)
        {
            int32_t own = a_exponent[k] + e[j];
            most[j] = own > most[j] ? own : most[j];
        }
    }
    LOOP(n) even[j] = shifted(c[j], MMA_FRACTION - 23, most[j] - c_exponent[j]);
    LOOP(n) sum[j] = 0;
    for (unsigned from = f->first; from < end; from += STRETCH) {
        unsigned to = end - from < STRETCH ? end : from + STRETCH;
        LOOP(n) odd[j] = 0;
        for (unsigned k = from; k < to; k++) {
            const int32_t *b = &f->b[k * n], *e = &f->b_exponent[k * n];
            int32_t *at = k % 2 ? odd : even;
            LOOP(n) at[j] += shifted(a[k] * b[j], left, most[j] - (a_exponent[k] + e[j]));
        }
        LOOP(n) sum[j] += (double)even[j] + (double)odd[j];
        LOOP(n) even[j] = 0;
    }
    LOOP(n)
    {
        // If all addends are 0, any exponent will do.
        int32_t exponent = most[j] < -700 ? -700 : most[j];
        double unit = f64_of((uint64_t)(uint32_t)(exponent - MMA_FRACTION + 1023) << 52);
        sum[j] *= unit;
    }
}

static void floats(struct mma_finite *f)
{
    for (unsigned i = 0; i < f->m; i++) {
        size_t at = (size_t)i * f->n, from = (size_t)i * f->k;
        // Constant counts let the compiler unroll.
        if (f->n == 8)
            row(f, f->a + from, f->a_exponent + from, f->c + at, f->c_exponent + at, f->sum + at, 8);
        else if (f->n == 16)
            row(f, f->a + from, f->a_exponent + from, f->c + at, f->c_exponent + at, f->sum + at, 16);
        else
            row(f, f->a + from, f->a_exponent + from, f->c + at, f->c_exponent + at, f->sum + at, f->n);
    }
}

// --- integers ----------------------------------------------------------------------------------------------

static void integers(unsigned m, unsigned n, unsigned k, const int16_t *a, const int16_t *b,
                     const uint32_t *c, bool saturates, uint32_t *d)
{
    for (unsigned i = 0; i < m; i++)
        for (unsigned column = 0; column < n; column++) {
            const int16_t *x = a + (size_t)i * k, *y = b + (size_t)column * k;
            int32_t products = 0;
            LOOP(k) products += x[j] * y[j];
            int64_t sum = (int64_t)(int32_t)c[i * n + column] + products;
            if (saturates)
                sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
            d[i * n + column] = (uint32_t)sum;
        }
}

// --- f64 ---------------------------------------------------------------------------------------------------

static void doubles(unsigned m, unsigned n, unsigned k, const uint64_t *a, const uint64_t *b,
                    const uint64_t *c, unsigned rounding, uint64_t *d)
{
    uint32_t before = lanes_round_begin(rounding);
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            double sum = f64_of(c[i * n + j]);
            for (unsigned z = 0; z < k; z++) {
                double x = f64_of(a[i * k + z]), y = f64_of(b[z * n + j]);
                sum = f64_canonical3(__builtin_fma(x, y, sum), x, y, sum);
            }
            d[i * n + j] = f64_bits(sum);
        }
    lanes_round_end(before, d);
}

const struct mma_lanes NAME(LANES_ISA) = {unpack, floats, integers, doubles};
