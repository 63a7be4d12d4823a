// SPDX-License-Identifier: MIT
// How matrix products are computed. Internal to src/exec.
//
// A tensor core of an H200 computes the k products of one element of D exactly, and adds C's element to them.
// All addends are aligned to the exponent of the largest and truncated to MMA_FRACTION bits of fraction;
// their sum is exact. An f32 result is truncated, an f16 result is rounded to nearest. Subnormal factors
// count with the smallest exponent; they are not normalised.
//
// wgmma of 8-bit floats keeps only MMA_BYTE_FRACTION bits of fraction, in the sum and in an f32 result. We
// have not measured that width: it is the published value for such GPUs, no golden vector checks it, and an
// H200's may differ.
#ifndef MOAT_EXEC_MMA_H
#define MOAT_EXEC_MMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exec/matrix.h"
#include "ptx/op.h"

enum {
    MMA_FRACTION = 25,
    MMA_BYTE_FRACTION = 13,
    MMA_NO_EXPONENT = -10000,  // exponent of 0: less than any other
    MMA_ROWS = 32,             // largest m and n
    MMA_DEPTH = 32,            // largest k of floating-point types
};

// value == significand * 2^(exponent - fraction bits of its format)
enum mma_class { MMA_FINITE, MMA_INFINITE, MMA_NAN };
struct mma_number {
    int32_t significand;  // infinities: only its sign counts
    int32_t exponent;
    uint8_t class;
};

struct mma_number mma_unpack(enum ptx_type type, uint32_t bits);
unsigned mma_fraction(enum ptx_type type);  // bits of a format's fraction

// Returns a sum as f16, rounded to nearest, or as f32, truncated. No result is -0.
uint32_t mma_result(enum ptx_type to, double sum);

// Returns the sum of n products and c, as bits of type `to`, f16 or f32; c is of type `of`.
uint32_t mma_sum(enum ptx_type to, const struct mma_number *a, const struct mma_number *b, unsigned n,
                 unsigned fraction, enum ptx_type of, uint32_t c);
// The same for wgmma of 8-bit floats of types x and y.
uint32_t mma_byte_sum(enum ptx_type to, enum ptx_type x, enum ptx_type y, const uint8_t *a, const uint8_t *b,
                      unsigned n, uint32_t c);

// --- products of matrices in words (mma.c) -----------------------------------------------------------------

struct mma_operands {
    uint32_t a[MATRIX_MOST], b[MATRIX_MOST], c[MATRIX_MOST], d[MATRIX_MOST];
};
// Computes d = a * b + c for all types but f64. Reads p's shape, types and the map of A.
void mma_multiply(const struct matrix_product *p, struct mma_operands *o);
// The same for f16, bf16 and tf32 with C and D of type `of`. Returns false, without a result, unless all
// numbers are finite.
bool mma_quick(const struct matrix_product *p, enum ptx_type of, struct mma_operands *o);

// --- whole matrices, for each instruction set (lanes_mma.c) ------------------------------------------------

// Finite numbers: m x n sums of the products k = first to first + count - 1.
struct mma_finite {
    unsigned m, n, k, first, count;
    unsigned fraction;                                                  // fraction bits of products
    int32_t a[MMA_ROWS * MMA_DEPTH], a_exponent[MMA_ROWS * MMA_DEPTH];  // m rows of k
    int32_t b[MMA_ROWS * MMA_DEPTH], b_exponent[MMA_ROWS * MMA_DEPTH];  // k rows of n
    int32_t c[MMA_ROWS * MMA_ROWS], c_exponent[MMA_ROWS * MMA_ROWS];    // with 23 bits of fraction
    double sum[MMA_ROWS * MMA_ROWS];
};

struct mma_lanes {
    // Unpacks n numbers of type f16, bf16, tf32 or f32; significands get `left` more bits of fraction.
    // Returns false unless all are finite.
    bool (*unpack)(enum ptx_type type, const uint32_t *from, unsigned n, unsigned left, int32_t *significand,
                   int32_t *exponent);
    void (*finite)(struct mma_finite *f);
    // Integers: m x n sums; b by columns. 32 bits of c and d, wrapped or saturated.
    void (*integer)(unsigned m, unsigned n, unsigned k, const int16_t *a, const int16_t *b, const uint32_t *c,
                    bool saturates, uint32_t *d);
    // f64: one fma after another, with rounding LANES_RN to LANES_RP.
    void (*wide)(unsigned m, unsigned n, unsigned k, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                 unsigned rounding, uint64_t *d);
};

extern const struct mma_lanes mma_lanes_plain, mma_lanes_avx2, mma_lanes_avx512;

#endif
