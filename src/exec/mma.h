// SPDX-License-Identifier: MIT
// How products of matrices are computed. Internal to src/exec.
//
// A tensor core of an H200 takes the products of one element of D, k of them, exactly, and C's element with them. All
// are shifted to the exponent of the largest and cut off MMA_FRACTION bits behind its point, whatever is further right;
// their sum is exact. An f32 result is cut off, an f16 result is rounded to nearest. Factors that are subnormal count
// with the smallest exponent, not normalised.
//
// wgmma of floats of 8 bits keeps MMA_BYTE_FRACTION bits only, of the sum and of an f32 result. We have not measured that
// width: it is what is published of such GPUs, no golden vector holds it to that, and an H200's may be another.
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
    MMA_NO_EXPONENT = -10000,  // of 0: less than any other
    MMA_ROWS = 32,             // the most that a matrix has of m and n
    MMA_DEPTH = 32,            // and of k, of floating-point numbers
};

// A number: significand * 2^(exponent - fraction bits of its format).
enum mma_class { MMA_FINITE, MMA_INFINITE, MMA_NAN };
struct mma_number {
    int32_t significand;  // its sign counts if it is infinite
    int32_t exponent;
    uint8_t class;
};

struct mma_number mma_unpack(enum ptx_type type, uint32_t bits);
unsigned mma_fraction(enum ptx_type type);  // bits of a format's fraction

// A sum as f16, rounded to nearest, or as f32, cut off. No result is -0.
uint32_t mma_result(enum ptx_type to, double sum);

// The sum of n products and c, as bits of type `to`, f16 or f32; c is of type `of`.
uint32_t mma_sum(enum ptx_type to, const struct mma_number *a, const struct mma_number *b, unsigned n,
                 unsigned fraction, enum ptx_type of, uint32_t c);
// The same for wgmma of floats of 8 bits, which are of the types x and y.
uint32_t mma_byte_sum(enum ptx_type to, enum ptx_type x, enum ptx_type y, const uint8_t *a, const uint8_t *b,
                      unsigned n, uint32_t c);

// --- products of matrices in words (mma.c) --------------------------------------------------------------------

struct mma_operands {
    uint32_t a[MATRIX_MOST], b[MATRIX_MOST], c[MATRIX_MOST], d[MATRIX_MOST];
};
// d = a * b + c, of all types but f64; of p the shape, the types and A's map are read.
void mma_multiply(const struct matrix_product *p, struct mma_operands *o);
// The same of f16, bf16 and tf32 with C and D of type `of`, if all numbers are finite. False: they are not.
bool mma_quick(const struct matrix_product *p, enum ptx_type of, struct mma_operands *o);

// --- whole matrices, for each instruction set (lanes_mma.c) ---------------------------------------------------

// Finite numbers: m x n sums of products, `count` of k from `first` on.
struct mma_finite {
    unsigned m, n, k, first, count;
    unsigned fraction;                                                  // of products
    int32_t a[MMA_ROWS * MMA_DEPTH], a_exponent[MMA_ROWS * MMA_DEPTH];  // m rows of k
    int32_t b[MMA_ROWS * MMA_DEPTH], b_exponent[MMA_ROWS * MMA_DEPTH];  // k rows of n
    int32_t c[MMA_ROWS * MMA_ROWS], c_exponent[MMA_ROWS * MMA_ROWS];    // with 23 bits of fraction
    double sum[MMA_ROWS * MMA_ROWS];
};

struct mma_lanes {
    // n numbers of a type, f16, bf16, tf32 or f32; significands have `left` more bits of fraction. False: not all finite.
    bool (*unpack)(enum ptx_type type, const uint32_t *from, unsigned n, unsigned left, int32_t *significand,
                   int32_t *exponent);
    void (*finite)(struct mma_finite *f);
    // Integers: m x n sums; b by columns. 32 bits of c and d, wrapped or saturated.
    void (*integer)(unsigned m, unsigned n, unsigned k, const int16_t *a, const int16_t *b, const uint32_t *c,
                    bool saturates, uint32_t *d);
    // f64: as one fma after another, rounding as LANES_RN and so on.
    void (*wide)(unsigned m, unsigned n, unsigned k, const uint64_t *a, const uint64_t *b, const uint64_t *c,
                 unsigned rounding, uint64_t *d);
};

extern const struct mma_lanes mma_lanes_plain, mma_lanes_avx2, mma_lanes_avx512;

#endif
