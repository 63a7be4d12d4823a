// SPDX-License-Identifier: MIT
#include "exec/lanes_row.h"
#include "exec/scalar_float.h"

// rcp.approx and the like compute the upper half of the result from the upper half of x; subnormals are
// flushed.
static inline double f64_flush_upper(double x)
{
    uint64_t bits = f64_bits(x) & ~UINT64_C(0xffffffff);
    return f64_of((bits & UINT64_C(0x7ff0000000000000)) == 0 ? bits & UINT64_C(1) << 63 : bits);
}

static inline double f64_upper_nan(double r)
{
    return r != r ? f64_of((uint64_t)F32_NAN_BITS << 32) : r;
}

static inline double f64_rcp_approx(double x)
{
    return f64_upper_nan(f64_flush_upper(1 / f64_flush_upper(x)));
}

static inline double f64_rsqrt_approx(double x)
{
    return f64_upper_nan(f64_flush_upper(1 / __builtin_sqrt(f64_flush_upper(x))));
}

#define ROUNDED1(...)                                     \
    _Alignas(64) double r[32];                            \
    const double *as = LANES_SLOT(const double, w, i->a); \
    uint32_t before = lanes_round_begin(i->flags);        \
    LANES_EACH(32)                                        \
    {                                                     \
        double a = as[l];                                 \
        r[l] = (__VA_ARGS__);                             \
    }                                                     \
    lanes_round_end(before, r);                           \
    LANES_EACH(32) r[l] = f64_canonical1(r[l], as[l]);    \
    FINISH()
#define ROUNDED2(...) ROUNDED2_NAN(a, b, __VA_ARGS__)
#define ROUNDED_DIV() ROUNDED2_NAN(b, a, a / b)
#define ROUNDED2_NAN(x, y, ...)                                   \
    _Alignas(64) double r[32];                                    \
    const double *as = LANES_SLOT(const double, w, i->a);         \
    const double *bs = LANES_SLOT(const double, w, i->b);         \
    uint32_t before = lanes_round_begin(i->flags);                \
    LANES_EACH(32)                                                \
    {                                                             \
        double a = as[l], b = bs[l];                              \
        r[l] = (__VA_ARGS__);                                     \
    }                                                             \
    lanes_round_end(before, r);                                   \
    LANES_EACH(32) r[l] = f64_canonical2(r[l], x##s[l], y##s[l]); \
    FINISH()
#define ROUNDED3(...)                                                \
    _Alignas(64) double r[32];                                       \
    const double *as = LANES_SLOT(const double, w, i->a);            \
    const double *bs = LANES_SLOT(const double, w, i->b);            \
    const double *cs = LANES_SLOT(const double, w, i->c);            \
    uint32_t before = lanes_round_begin(i->flags);                   \
    LANES_EACH(32)                                                   \
    {                                                                \
        double a = as[l], b = bs[l], c = cs[l];                      \
        r[l] = (__VA_ARGS__);                                        \
    }                                                                \
    lanes_round_end(before, r);                                      \
    LANES_EACH(32) r[l] = f64_canonical3(r[l], as[l], bs[l], cs[l]); \
    FINISH()
#define FINISH()                             \
    double *d = LANES_SLOT(double, w, i->d); \
    lanes_select8(d, r, d, w->mask)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_f64.def"
