// SPDX-License-Identifier: MIT
// Checks whether a result of an approximate instruction lies within the bound that PTX states.
//
// The exact value is computed in long double from the operands, after flushing for .ftz. If it is infinite,
// zero or NaN, or an operand is, the result must be exactly that; otherwise it may be as far away as
// approx.def says, and further at the limits of the format: a subnormal result may be off by one unit, and is
// 0 with .ftz; a result above the largest number may be infinite.
#ifndef MOAT_TEST_GOLDEN_APPROX_H
#define MOAT_TEST_GOLDEN_APPROX_H

#include "combos.h"

enum approx_kind { APPROX_ULP, APPROX_RELATIVE, APPROX_ABSOLUTE, APPROX_TURN, APPROX_LOG };

#define APPROX_PI 3.14159265358979323846264338327950288L

static long double approx_quotient(long double a, long double b)
{
    return a / b;
}

static long double approx_reciprocal(long double a, long double b)
{
    (void)b;
    return 1 / a;
}

static long double approx_root(long double a, long double b)
{
    (void)b;
    return sqrtl(a);
}

static long double approx_reciprocal_root(long double a, long double b)
{
    (void)b;
    return 1 / sqrtl(a);
}

static long double approx_sine(long double a, long double b)
{
    (void)b;
    return sinl(a);
}

static long double approx_cosine(long double a, long double b)
{
    (void)b;
    return cosl(a);
}

static long double approx_logarithm(long double a, long double b)
{
    (void)b;
    return log2l(a);
}

static long double approx_power(long double a, long double b)
{
    (void)b;
    return exp2l(a);
}

static long double approx_tangent(long double a, long double b)
{
    (void)b;
    return tanhl(a);
}

struct approx {
    uint16_t op, mod, type;
    uint8_t kind;
    long double (*function)(long double a, long double b);
    double error;
};

static const struct approx approx_rows[] = {
#define APPROX(op, mod, type, function, kind, error) \
    {PTX_OP_##op, PTX_MOD_##mod, PTX_##type, APPROX_##kind, approx_##function, error},
#include "approx.def"
};

// Returns NULL if its results are exact.
static const struct approx *approx_find(const struct ptx_form *form)
{
    for (size_t i = 0; i < sizeof approx_rows / sizeof *approx_rows; i++)
        if (approx_rows[i].op == form->id && approx_rows[i].type == form->types[0] &&
            ptx_form_has(form, (enum ptx_mod)approx_rows[i].mod))
            return &approx_rows[i];
    return NULL;
}

static double approx_flushed(struct format f, uint64_t v, bool flush)
{
    v = input_cut(v, f.bits);
    double x = format_decode(f, v);
    return flush && fabs(x) < ldexp(1, 1 - f.bias) ? copysign(0, x) : x;
}

static long double approx_unit(struct format f, long double exact)
{
    int exponent = exact == 0 ? 1 - f.bias : ilogbl(exact);
    if (exponent < 1 - f.bias)
        exponent = 1 - f.bias;
    return ldexpl(1, exponent - (int)f.mantissa);
}

static long double approx_bound(const struct approx *row, struct format f, double a, long double exact)
{
    long double least = ldexpl(1, 1 - f.bias - (int)f.mantissa);  // the smallest number
    switch (row->kind) {
    case APPROX_ULP: return row->error * approx_unit(f, exact);
    case APPROX_RELATIVE: return exp2l(row->error) * fabsl(exact) + least;
    case APPROX_TURN:
        return fabs(a) <= 2 * APPROX_PI ? exp2l(row->error) : fabs(a) <= 100 * APPROX_PI ? exp2l(-14.7L) : 2;
    case APPROX_LOG: return a > 0.5 && a < 2 ? exp2l(row->error) : exp2l(row->error) * fabsl(exact);
    default: return exp2l(row->error);
    }
}

// Divisors from 2^126 on: div.approx multiplies by a reciprocal that has become 0.
static long double approx_exact(const struct approx *row, double a, double b)
{
    if (row->mod == PTX_MOD_APPROX && row->op == PTX_OP_DIV && isfinite(b) && fabs(b) > 0x1p126)
        return isinf(a) || isnan(a) ? NAN : copysign(0, a) * copysign(1, b);
    return row->function(a, b);
}

// Operands a and b (0 if there is only one), each in the format f. *special: the result must be one value.
static bool approx_fits(const struct approx *row, struct format f, bool ftz, const uint64_t *in, unsigned nin,
                        uint64_t result, bool *special)
{
    double a = approx_flushed(f, in[0], ftz), b = nin > 1 ? approx_flushed(f, in[1], ftz) : 0;
    long double exact = approx_exact(row, a, b);
    double got = format_decode(f, input_cut(result, f.bits));
    *special = !isfinite(exact) || exact == 0 || !isfinite(a) || !isfinite(b);
    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got);
    if (*special)
        return (long double)got == exact && !signbit(got) == !signbit(exact);
    long double bound = approx_bound(row, f, a, exact), most = ldexpl(1, f.bias + 1);
    if (fabsl(got - exact) <= bound)
        return true;
    bool tiny = ftz && fabsl(exact) < ldexpl(1, 1 - f.bias) + bound;
    bool huge = fabsl(exact) + bound >= most - approx_unit(f, most) / 2;
    return ((got == 0 && tiny) || (isinf(got) && huge)) && !signbit(got) == !signbit(exact);
}

#endif
