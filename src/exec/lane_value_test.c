// SPDX-License-Identifier: MIT
// What rows compute, against other ways to compute it: C's 128-bit integers, libm, bit by bit like the
// manual, tables of all small floats; and single results of an H200.
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "exec/lane_testing.h"

typedef unsigned __int128 u128;
typedef __int128 s128;

// Returns what a lane should hold, from the sources' bits, each zero-extended.
typedef uint64_t expect_fn(uint64_t a, uint64_t b, uint64_t c, uint64_t e);

// Runs a form over many values with every available instruction set.
static void check(const char *spelling, expect_fn *expect)
{
    static _Alignas(64) char file[FILE_SIZE];
    struct form f;
    if (form_try(spelling, &f))
        fail_msg("%s is not picked", spelling);
    for (unsigned k = 0; k < ISAS; k++) {
        if (exec_lanes_force(isas[k]))
            continue;
        seed = 7;
        for (int round = 0; round < 60; round++) {
            for (unsigned s = 0; s < f.nsources; s++)
                for (int l = 0; l < 32; l++)
                    put(file + SOURCES + s * SLOT, f.bits[s], l, any_value(f.bits[s]));
            struct exec_warp w = {.mask = EXEC_ALL, .regs = file};
            struct exec_insn i = insn_of(&f);
            i.fn(&w, &i);
            for (int l = 0; l < 32; l++) {
                uint64_t in[4] = {0};
                for (unsigned s = 0; s < f.nsources; s++)
                    in[s] = get(file + SOURCES + s * SLOT, f.bits[s], l);
                uint64_t want = expect(in[0], in[1], in[2], in[3]), got = get(file + D, f.dest_bits, l);
                if (f.dest_bits < 64)
                    want &= (UINT64_C(1) << f.dest_bits) - 1;
                if (want != got)
                    fail_msg("%s (%s) of %llx %llx %llx %llx: %llx, expected %llx", spelling, isas[k],
                             (unsigned long long)in[0], (unsigned long long)in[1], (unsigned long long)in[2],
                             (unsigned long long)in[3], (unsigned long long)got, (unsigned long long)want);
            }
        }
    }
    exec_lanes_force(NULL);
}

#define EXPECT(name, ...)                                                \
    static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t e) \
    {                                                                    \
        (void)a, (void)b, (void)c, (void)e;                              \
        __VA_ARGS__;                                                     \
    }

// --- integers ----------------------------------------------------------------------------------------------

static s128 sx(uint64_t x, unsigned bits)
{
    return (s128)((int64_t)(x << (64 - bits)) >> (64 - bits));
}

static uint64_t saturated(s128 x, s128 least, s128 most)
{
    return (uint64_t)(x < least ? least : x > most ? most : x);
}

EXPECT(add, return a + b)
EXPECT(sub, return a - b)
EXPECT(add_sat, return saturated(sx(a, 32) + sx(b, 32), INT32_MIN, INT32_MAX))
EXPECT(sub_sat, return saturated(sx(a, 32) - sx(b, 32), INT32_MIN, INT32_MAX))
EXPECT(mul, return a * b)
EXPECT(mul_hi_s16, return (uint64_t)(sx(a, 16) * sx(b, 16) >> 16))
EXPECT(mul_hi_u16, return a * b >> 16)
EXPECT(mul_hi_s32, return (uint64_t)(sx(a, 32) * sx(b, 32) >> 32))
EXPECT(mul_hi_u32, return (uint64_t)((u128)a * b >> 32))
EXPECT(mul_hi_s64, return (uint64_t)(sx(a, 64) * sx(b, 64) >> 64))
EXPECT(mul_hi_u64, return (uint64_t)((u128)a * b >> 64))
EXPECT(mul_wide_s16, return (uint64_t)(sx(a, 16) * sx(b, 16)))
EXPECT(mul_wide_s32, return (uint64_t)(sx(a, 32) * sx(b, 32)))
EXPECT(mad, return a * b + c)
EXPECT(mad_hi_s32, return (uint64_t)(sx(a, 32) * sx(b, 32) >> 32) + c)
EXPECT(mad_hi_sat, return saturated((sx(a, 32) * sx(b, 32) >> 32) + sx(c, 32), INT32_MIN, INT32_MAX))
EXPECT(mad_wide_s32, return (uint64_t)(sx(a, 32) * sx(b, 32)) + c)
EXPECT(mul24_hi_s32, return (uint64_t)(sx(a, 24) * sx(b, 24) >> 16))
EXPECT(mad24_lo_u32, return (a & 0xffffff) * (b & 0xffffff) + c)
EXPECT(sad_s32, return (uint64_t)(sx(a, 32) < sx(b, 32) ? sx(b, 32) - sx(a, 32) : sx(a, 32) - sx(b, 32)) + c)
EXPECT(sad_u64, return (a < b ? b - a : a - b) + c)
EXPECT(div_u, return b ? a / b : UINT64_MAX)
EXPECT(div_s16, return b ? (uint64_t)(sx(a, 16) / sx(b, 16)) : UINT64_MAX)
EXPECT(div_s32, return b ? (uint64_t)(sx(a, 32) / sx(b, 32)) : UINT64_MAX)
EXPECT(div_s64, return b ? (uint64_t)(sx(a, 64) / sx(b, 64)) : UINT64_MAX)
EXPECT(rem_u, return b ? a % b : UINT64_MAX)
EXPECT(rem_s32, return b ? (uint64_t)(sx(a, 32) % sx(b, 32)) : UINT64_MAX)
EXPECT(rem_s64, return b ? (uint64_t)(sx(a, 64) % sx(b, 64)) : UINT64_MAX)
EXPECT(abs_s32, return (uint64_t)(sx(a, 32) < 0 ? -sx(a, 32) : sx(a, 32)))
EXPECT(min_s16, return sx(a, 16) < sx(b, 16) ? a : b)
EXPECT(max_s64, return sx(a, 64) > sx(b, 64) ? a : b)
EXPECT(max_relu, return sx(a, 32) < 0 && sx(b, 32) < 0 ? 0 : sx(a, 32) > sx(b, 32) ? a : b)
EXPECT(min_u16x2,
       return ((a & 0xffff) < (b & 0xffff) ? a : b) % 0x10000 | (a >> 16 < b >> 16 ? a : b) >> 16 << 16)

static uint64_t bit(uint64_t x, uint64_t at)
{
    return at < 64 ? x >> at & 1 : 0;
}

// The manual's loops.
static uint64_t extract(uint64_t a, uint64_t pos, uint64_t len, unsigned width, bool is_signed)
{
    uint64_t d = 0, last = pos + len - 1 < width - 1 ? pos + len - 1 : width - 1;
    uint64_t sign = is_signed && len ? bit(a, last) : 0;
    for (unsigned k = 0; k < width; k++)
        d |= (k < len && pos + k < width ? bit(a, pos + k) : sign) << k;
    return d;
}

static uint64_t insert(uint64_t a, uint64_t b, uint64_t pos, uint64_t len, unsigned width)
{
    for (uint64_t k = 0; k < len && pos + k < width; k++)
        b = (b & ~(UINT64_C(1) << (pos + k))) | bit(a, k) << (pos + k);
    return b;
}

static uint64_t highest(uint64_t a, unsigned width)
{
    while (width-- > 0)
        if (bit(a, width))
            return width;
    return UINT64_MAX;
}

static uint64_t permuted(uint64_t a, uint64_t b, uint64_t c)
{
    uint8_t bytes[8], d[4];
    for (int k = 0; k < 4; k++) {
        bytes[k] = (uint8_t)(a >> 8 * k);
        bytes[k + 4] = (uint8_t)(b >> 8 * k);
    }
    for (int k = 0; k < 4; k++) {
        unsigned n = c >> 4 * k & 15;
        d[k] = n < 8 ? bytes[n] : bytes[n - 8] & 0x80 ? 0xff : 0;
    }
    return d[0] | d[1] << 8 | d[2] << 16 | (uint64_t)d[3] << 24;
}

EXPECT(bfe_u32, return extract(a, b & 255, c & 255, 32, false))
EXPECT(bfe_s32, return extract(a, b & 255, c & 255, 32, true))
EXPECT(bfe_u64, return extract(a, b, c, 64, false))
EXPECT(bfe_s64, return extract(a, b, c, 64, true))
EXPECT(bfi_32, return insert(a, b, c & 255, e & 255, 32))
EXPECT(bfi_64, return insert(a, b, c, e, 64))
EXPECT(popc, int n = 0; for (; a; a &= a - 1) n++; return (uint64_t)n)
EXPECT(clz_32, return 31 - highest(a, 32))
EXPECT(clz_64, return 63 - highest(a, 64))
EXPECT(bfind_s32, return highest(sx(a, 32) < 0 ? ~a : a, 32))
EXPECT(bfind_shift_u64, return a ? 63 - highest(a, 64) : UINT64_MAX)
EXPECT(brev_32, uint64_t d = 0; for (int k = 0; k < 32; k++) d |= bit(a, 31 - k) << k; return d)
EXPECT(shl_32, return b > 31 ? 0 : a << b)
EXPECT(shl_64, return b > 63 ? 0 : a << b)
EXPECT(shr_u16, return b > 15 ? 0 : a >> b)
EXPECT(shr_s32, return (uint64_t)(sx(a, 32) >> (b > 31 ? 31 : b)))
EXPECT(shr_s64, return (uint64_t)(sx(a, 64) >> (b > 63 ? 63 : b)))
EXPECT(shf_l_wrap, return (b << 32 | a) << (c & 31) >> 32)
EXPECT(shf_r_clamp, return c > 31 ? b : (b << 32 | a) >> c)
EXPECT(lop3_1d, uint64_t d = 0;
       for (int k = 0; k < 32; k++) d |= bit(0x1d, bit(a, k) << 2 | bit(b, k) << 1 | bit(c, k)) << k;
       return d)
EXPECT(prmt, return permuted(a, b, c))
EXPECT(prmt_b4e, static const uint16_t s[] = {0x5670, 0x6701, 0x7012, 0x0123};
       return permuted(a, b, s[c & 3]))
EXPECT(szext_s32, uint64_t n = b > 32 ? 32 : b; return n ? (uint64_t)sx(a, (unsigned)n) : 0)
EXPECT(bmsk_wrap, uint64_t d = 0;
       for (uint64_t k = 0; k < (b & 31) && (a & 31) + k < 32; k++) d |= UINT64_C(1) << ((a & 31) + k);
       return d)
EXPECT(dp4a_su, uint64_t d = c;
       for (int k = 0; k < 32; k += 8) d += (uint64_t)((int8_t)(a >> k) * (uint8_t)(b >> k)); return d)
EXPECT(dp2a_hi_us, return c + (uint64_t)((int64_t)(uint16_t)a * (int8_t)(b >> 16)) +
                          (uint64_t)((int64_t)(uint16_t)(a >> 16) * (int8_t)(b >> 24)))
EXPECT(cnot, return a == 0)

static void test_integers(void **state)
{
    static const struct {
        const char *spelling;
        expect_fn *expect;
    } rows[] = {
        {"add.u16", add},
        {"add.s32", add},
        {"add.u64", add},
        {"sub.s16", sub},
        {"sub.u32", sub},
        {"sub.s64", sub},
        {"add.sat.s32", add_sat},
        {"sub.sat.s32", sub_sat},
        {"mul.lo.s16", mul},
        {"mul.lo.u32", mul},
        {"mul.lo.s64", mul},
        {"mul.hi.s16", mul_hi_s16},
        {"mul.hi.u16", mul_hi_u16},
        {"mul.hi.s32", mul_hi_s32},
        {"mul.hi.u32", mul_hi_u32},
        {"mul.hi.s64", mul_hi_s64},
        {"mul.hi.u64", mul_hi_u64},
        {"mul.wide.s16", mul_wide_s16},
        {"mul.wide.u16", mul},
        {"mul.wide.s32", mul_wide_s32},
        {"mul.wide.u32", mul},
        {"mad.lo.s32", mad},
        {"mad.lo.u64", mad},
        {"mad.hi.s32", mad_hi_s32},
        {"mad.hi.sat.s32", mad_hi_sat},
        {"mad.wide.s32", mad_wide_s32},
        {"mad.wide.u32", mad},
        {"mul24.hi.s32", mul24_hi_s32},
        {"mad24.lo.u32", mad24_lo_u32},
        {"sad.s32", sad_s32},
        {"sad.u64", sad_u64},
        {"div.u16", div_u},
        {"div.u32", div_u},
        {"div.u64", div_u},
        {"div.s16", div_s16},
        {"div.s32", div_s32},
        {"div.s64", div_s64},
        {"rem.u16", rem_u},
        {"rem.u32", rem_u},
        {"rem.u64", rem_u},
        {"rem.s32", rem_s32},
        {"rem.s64", rem_s64},
        {"abs.s32", abs_s32},
        {"min.s16", min_s16},
        {"max.s64", max_s64},
        {"max.relu.s32", max_relu},
        {"min.u16x2", min_u16x2},
        {"bfe.u32", bfe_u32},
        {"bfe.s32", bfe_s32},
        {"bfe.u64", bfe_u64},
        {"bfe.s64", bfe_s64},
        {"bfi.b32", bfi_32},
        {"bfi.b64", bfi_64},
        {"popc.b32", popc},
        {"popc.b64", popc},
        {"clz.b32", clz_32},
        {"clz.b64", clz_64},
        {"bfind.s32", bfind_s32},
        {"bfind.shiftamt.u64", bfind_shift_u64},
        {"brev.b32", brev_32},
        {"shl.b32", shl_32},
        {"shl.b64", shl_64},
        {"shr.u16", shr_u16},
        {"shr.s32", shr_s32},
        {"shr.s64", shr_s64},
        {"shf.l.wrap.b32", shf_l_wrap},
        {"shf.r.clamp.b32", shf_r_clamp},
        {"lop3.b32", lop3_1d},
        {"prmt.b32", prmt},
        {"prmt.b32.b4e", prmt_b4e},
        {"szext.clamp.s32", szext_s32},
        {"bmsk.wrap.b32", bmsk_wrap},
        {"dp4a.s32.u32", dp4a_su},
        {"dp2a.hi.u32.s32", dp2a_hi_us},
        {"cnot.b64", cnot},
    };
    EACH(k, rows) check(rows[k].spelling, rows[k].expect);
}

// Chains of add.cc, addc.cc over 128 bits, and of sub.cc, subc.
static void chain(const char *low, const char *high, u128 (*expect)(u128, u128))
{
    static _Alignas(64) char file[FILE_SIZE];
    struct form first, second;
    assert_int_equal(form_try(low, &first), 0);
    assert_int_equal(form_try(high, &second), 0);
    for (int round = 0; round < 50; round++) {
        u128 x[32], y[32];
        struct exec_warp w = {.mask = EXEC_ALL, .regs = file};
        for (int l = 0; l < 32; l++) {
            x[l] = (u128)any_value(64) << 64 | any_value(64);
            y[l] = (u128)any_value(64) << 64 | any_value(64);
            put(file + SOURCES, 64, l, (uint64_t)x[l]);
            put(file + SOURCES + SLOT, 64, l, (uint64_t)y[l]);
        }
        struct exec_insn i = insn_of(&first);
        i.fn(&w, &i);
        uint64_t lows[32];
        memcpy(lows, file + D, sizeof lows);
        for (int l = 0; l < 32; l++) {
            put(file + SOURCES, 64, l, (uint64_t)(x[l] >> 64));
            put(file + SOURCES + SLOT, 64, l, (uint64_t)(y[l] >> 64));
        }
        i = insn_of(&second);
        i.fn(&w, &i);
        for (int l = 0; l < 32; l++) {
            u128 want = expect(x[l], y[l]);
            assert_true(lows[l] == (uint64_t)want && get(file + D, 64, l) == (uint64_t)(want >> 64));
        }
    }
}

static u128 add128(u128 x, u128 y)
{
    return x + y;
}

static u128 sub128(u128 x, u128 y)
{
    return x - y;
}

static void test_carries(void **state)
{
    EACH(k, isas)
    if (!exec_lanes_force(isas[k])) {
        chain("add.cc.u64", "addc.u64", add128);
        chain("sub.cc.u64", "subc.cc.u64", sub128);
    }
    exec_lanes_force(NULL);
}

// --- floating point ----------------------------------------------------------------------------------------

static float f(uint64_t bits)
{
    uint32_t b = (uint32_t)bits;
    float r;
    memcpy(&r, &b, 4);
    return r;
}

static double g(uint64_t bits)
{
    double r;
    memcpy(&r, &bits, 8);
    return r;
}

static uint64_t of32(float x)
{
    uint32_t b;
    memcpy(&b, &x, 4);
    return isnan(x) ? 0x7fffffff : b;
}

static uint64_t of64(double x)
{
    uint64_t b;
    memcpy(&b, &x, 8);
    return b;
}

static uint64_t flush(uint64_t bits)
{
    return bits & 0x7f800000 ? bits : bits & 0x80000000;
}

// Rounded once, by the C library, in a given direction.
#define ROUNDED(how, expr)                          \
    fesetround(how);                                \
    volatile float x = f(a), y = f(b), z = f(c), r; \
    (void)x, (void)y, (void)z;                      \
    r = expr;                                       \
    fesetround(FE_TONEAREST);                       \
    return of32(r)
EXPECT(f32_add, ROUNDED(FE_TONEAREST, x + y))
EXPECT(f32_add_rz, ROUNDED(FE_TOWARDZERO, x + y))
EXPECT(f32_mul_rm, ROUNDED(FE_DOWNWARD, x *y))
EXPECT(f32_div, ROUNDED(FE_TONEAREST, x / y))
EXPECT(f32_div_rp, ROUNDED(FE_UPWARD, x / y))
EXPECT(f32_sqrt, ROUNDED(FE_TONEAREST, sqrtf(x)))
EXPECT(f32_sqrt_rz, ROUNDED(FE_TOWARDZERO, sqrtf(x)))
EXPECT(f32_rcp, ROUNDED(FE_TONEAREST, 1 / x))
EXPECT(f32_fma, ROUNDED(FE_TONEAREST, fmaf(x, y, z)))
EXPECT(f32_fma_rp, ROUNDED(FE_UPWARD, fmaf(x, y, z)))
EXPECT(f32_add_ftz, return flush(of32(f(flush(a)) + f(flush(b)))))
EXPECT(f32_sub_sat, float r = f(a) - f(b); return of32(r > 1 ? 1 : r > 0 ? r : 0))
EXPECT(f32_min, float r = isnan(f(a))   ? f(b)
                          : isnan(f(b)) ? f(a)
                          : f(a) < f(b) ? f(a)
                          : f(b) < f(a) ? f(b)
                          : a >> 31     ? f(a)
                                        : f(b);
       return of32(r))
EXPECT(f32_max_nan,
       return isnan(f(a)) || isnan(f(b))
                  ? 0x7fffffff
                  : of32(fmaxf(f(a), f(b)) + (f(a) == 0 && f(b) == 0 && !(a >> 31 & b >> 31) ? 0.0f : -0.0f)))
EXPECT(f32_neg, return of32(-f(a)))
EXPECT(f32_copysign, return (a & 0x80000000) | (b & 0x7fffffff))

static uint64_t nan_or(double r, uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t quiet = UINT64_C(1) << 51;
    if (!isnan(r))
        return of64(r);
    return isnan(g(b)) ? b | quiet : isnan(g(c)) ? c | quiet : isnan(g(a)) ? a | quiet : 0xfff8000000000000;
}

#define ROUNDED64(how, expr)                         \
    fesetround(how);                                 \
    volatile double x = g(a), y = g(b), z = g(c), r; \
    (void)x, (void)y, (void)z;                       \
    r = expr;                                        \
    fesetround(FE_TONEAREST);                        \
    return nan_or(r, a, b, c)
EXPECT(f64_add, c = 0; ROUNDED64(FE_TONEAREST, x + y))
EXPECT(f64_sub_rm, c = 0; ROUNDED64(FE_DOWNWARD, x - y))
EXPECT(f64_mul_rz, c = 0; ROUNDED64(FE_TOWARDZERO, x *y))
EXPECT(f64_fma, ROUNDED64(FE_TONEAREST, fma(x, y, z)))
EXPECT(f64_fma_rp, ROUNDED64(FE_UPWARD, fma(x, y, z)))
EXPECT(f64_sqrt, b = c = 0; ROUNDED64(FE_TONEAREST, sqrt(x)))
EXPECT(f64_div, double r = g(a) / g(b); return nan_or(r, b, a, 0))
EXPECT(f64_max, return isnan(g(a)) && isnan(g(b)) ? nan_or(NAN, a, b, 0)
                       : isnan(g(a))              ? b
                       : isnan(g(b))              ? a
                       : g(a) > g(b)              ? a
                       : g(b) > g(a)              ? b
                                                  : a & b)

static void test_floats(void **state)
{
    static const struct {
        const char *spelling;
        expect_fn *expect;
    } rows[] = {
        {"add.f32", f32_add},         {"add.rz.f32", f32_add_rz},     {"mul.rm.f32", f32_mul_rm},
        {"div.rn.f32", f32_div},      {"div.rp.f32", f32_div_rp},     {"sqrt.rn.f32", f32_sqrt},
        {"sqrt.rz.f32", f32_sqrt_rz}, {"rcp.rn.f32", f32_rcp},        {"fma.rn.f32", f32_fma},
        {"fma.rp.f32", f32_fma_rp},   {"mad.rn.f32", f32_fma},        {"add.ftz.f32", f32_add_ftz},
        {"sub.sat.f32", f32_sub_sat}, {"min.f32", f32_min},           {"max.NaN.f32", f32_max_nan},
        {"neg.f32", f32_neg},         {"copysign.f32", f32_copysign}, {"add.f64", f64_add},
        {"sub.rm.f64", f64_sub_rm},   {"mul.rz.f64", f64_mul_rz},     {"fma.rn.f64", f64_fma},
        {"fma.rp.f64", f64_fma_rp},   {"sqrt.rn.f64", f64_sqrt},      {"div.rn.f64", f64_div},
        {"max.f64", f64_max},
    };
    EACH(k, rows) check(rows[k].spelling, rows[k].expect);
}

// --- small formats: the nearest of all values --------------------------------------------------------------

struct small {
    unsigned bits, fraction;
    int bias;
    bool has_infinity;
};
static const struct small formats[] = {
    {16, 10, 15, true}, {16, 7, 127, true}, {8, 3, 7, false}, {8, 2, 15, true}};
enum { F16, BF16, E4M3, E5M2 };

// Returns the value of bits without sign; the value after the largest stands for infinity.
static double small_value(const struct small *s, uint32_t bits)
{
    int field = (int)(bits >> s->fraction);
    double m = (double)(bits & ((1u << s->fraction) - 1)) + (field ? (double)(1u << s->fraction) : 0);
    return ldexp(m, (field ? field : 1) - s->bias - (int)s->fraction);
}

// Rounds to nearest, ties to even; saturates to the largest finite value if `finite`.
static uint64_t small_nearest(const struct small *s, double x, bool finite)
{
    uint32_t top = 1u << (s->bits - 1),
             beyond = s->has_infinity ? (top - 1) >> s->fraction << s->fraction : top - 1;
    uint32_t low = 0, high = beyond;  // finds the first value >= size
    double size = fabs(x);
    if (isnan(x))
        return top - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (small_value(s, middle) < size)
            low = middle + 1;
        else
            high = middle;
    }
    if (low > 0 && small_value(s, low) != size) {
        double down = size - small_value(s, low - 1), up = small_value(s, low) - size;
        if (down < up || (down == up && low & 1))
            low--;
    }
    if (low == beyond && finite)
        low--;
    return low | (signbit(x) ? top : 0);
}

static double small_of(const struct small *s, uint64_t bits)
{
    uint32_t top = 1u << (s->bits - 1), size = (uint32_t)bits & (top - 1);
    uint32_t beyond = s->has_infinity ? (top - 1) >> s->fraction << s->fraction : top - 1;
    double r = size > beyond || (size == beyond && !s->has_infinity) ? NAN
               : size == beyond                                      ? INFINITY
                                                                     : small_value(s, size);
    return bits & top ? -r : r;
}

// Exact in double, so that only one rounding remains.
EXPECT(f16_add,
       return small_nearest(&formats[F16], small_of(&formats[F16], a) + small_of(&formats[F16], b), false))
EXPECT(f16_mul,
       return small_nearest(&formats[F16], small_of(&formats[F16], a) * small_of(&formats[F16], b), false))
EXPECT(f16_fma, return small_nearest(&formats[F16],
                                     fma(small_of(&formats[F16], a), small_of(&formats[F16], b),
                                         small_of(&formats[F16], c)),
                                     false))
EXPECT(bf16_mul,
       return small_nearest(&formats[BF16], small_of(&formats[BF16], a) * small_of(&formats[BF16], b), false))
EXPECT(f16x2_add, return f16_add(a & 0xffff, b & 0xffff, 0, 0) | f16_add(a >> 16, b >> 16, 0, 0) << 16)
EXPECT(f16_f32, return small_nearest(&formats[F16], (double)f(a), false))
EXPECT(bf16_f32, return small_nearest(&formats[BF16], (double)f(a), false))
EXPECT(f16x2_f32, return f16_f32(a, 0, 0, 0) << 16 | f16_f32(b, 0, 0, 0))
EXPECT(e4m3x2_f32, return small_nearest(&formats[E4M3], (double)f(a), true) << 8 |
                          small_nearest(&formats[E4M3], (double)f(b), true))
EXPECT(e5m2x2_f32, return small_nearest(&formats[E5M2], (double)f(a), true) << 8 |
                          small_nearest(&formats[E5M2], (double)f(b), true))
EXPECT(f32_f16, return of32((float)small_of(&formats[F16], a)))
EXPECT(f16_s64, return small_nearest(&formats[F16], (double)(int64_t)a, false))
EXPECT(f16x2_e4m3x2, return small_nearest(&formats[F16], small_of(&formats[E4M3], a & 0xff), false) |
                            small_nearest(&formats[F16], small_of(&formats[E4M3], a >> 8), false) << 16)

// The tie between 1 and its successor, decided by a much smaller product.
static void test_bf16_fma(void **state)
{
    static const uint16_t in[][4] = {{0x3f80, 0x3b80, 0x3f80, 0x3f80}, {0x0080, 0x3f80, 0x3f80, 0x3f80},
                                     {0x3f01, 0x4001, 0x0080, 0x3f82}, {0x3f81, 0x3f81, 0x0001, 0x3f82},
                                     {0x3f08, 0x4008, 0x0080, 0x3f91}, {0x3f08, 0x4008, 0x8080, 0x3f90}};
    static _Alignas(64) char file[FILE_SIZE];
    struct form form;
    assert_int_equal(form_try("fma.rn.bf16", &form), 0);
    EACH(k, isas)
    EACH(n, in)
    if (!exec_lanes_force(isas[k])) {
        for (int s = 0; s < 3; s++)
            put(file + SOURCES + s * SLOT, 16, 5, in[n][s]);
        struct exec_warp w = {.mask = EXEC_ALL, .regs = file};
        struct exec_insn i = insn_of(&form);
        i.fn(&w, &i);
        assert_int_equal(get(file + D, 16, 5), in[n][3]);
    }
    exec_lanes_force(NULL);
}

static void test_small(void **state)
{
    static const struct {
        const char *spelling;
        expect_fn *expect;
    } rows[] = {
        {"add.f16", f16_add},
        {"mul.rn.f16", f16_mul},
        {"fma.rn.f16", f16_fma},
        {"mul.bf16", bf16_mul},
        {"add.f16x2", f16x2_add},
        {"cvt.rn.f16.f32", f16_f32},
        {"cvt.rn.bf16.f32", bf16_f32},
        {"cvt.rn.f16x2.f32", f16x2_f32},
        {"cvt.rn.satfinite.e4m3x2.f32", e4m3x2_f32},
        {"cvt.rn.satfinite.e5m2x2.f32", e5m2x2_f32},
        {"cvt.f32.f16", f32_f16},
        {"cvt.rn.f16.s64", f16_s64},
        {"cvt.rn.f16x2.e4m3x2", f16x2_e4m3x2},
    };
    EACH(k, rows) check(rows[k].spelling, rows[k].expect);
}

// --- conversions -------------------------------------------------------------------------------------------

static uint64_t to_int(long double x, long double (*round)(long double), long double least, long double most,
                       uint64_t nan)
{
    if (isnan(x))
        return nan;
    x = round(x);
    return x < least  ? (uint64_t)(int64_t)least
           : x > most ? (most < 0x1p63L ? (uint64_t)most : UINT64_MAX)
           : x < 0    ? (uint64_t)(int64_t)x
                      : (uint64_t)x;
}

#define INT(bits) -0x1p##bits##L, 0x1p##bits##L - 1
EXPECT(s32_f32_rzi, return to_int(f(a), truncl, INT(31), 0))
EXPECT(s32_f32_rni, return to_int(f(a), rintl, INT(31), 0))
EXPECT(s32_f32_rmi, return to_int(f(a), floorl, INT(31), 0))
EXPECT(u32_f32_rpi, return to_int(f(a), ceill, 0, 0x1p32L - 1, 0))
EXPECT(s64_f32_rzi, return to_int(f(a), truncl, -0x1p63L, 0x1p63L - 1, UINT64_C(1) << 63))
EXPECT(u64_f64_rzi, return to_int(g(a), truncl, 0, 0x1p64L - 1, UINT64_C(1) << 63))
EXPECT(s32_f64_rni, return to_int(g(a), rintl, INT(31), 0x80000000))
EXPECT(u8_f32_rni, return to_int(f(a), rintl, 0, 255, 0))
EXPECT(s8_f64_rzi, return to_int(g(a), truncl, -128, 127, 0xff80))
EXPECT(f32_s32, return of32((float)(int32_t)a))
EXPECT(f32_u64, return of32((float)a))
EXPECT(f32_u64_rz, fesetround(FE_TOWARDZERO); volatile uint64_t x = a; volatile float r = (float)x;
       fesetround(FE_TONEAREST); return of32(r))
EXPECT(f64_s64, return of64((double)(int64_t)a))
EXPECT(f64_f32, return of64((double)f(a)))
EXPECT(f32_f64_rm, fesetround(FE_DOWNWARD); volatile double x = g(a); volatile float r = (float)x;
       fesetround(FE_TONEAREST); uint32_t bits; memcpy(&bits, (float *)&r, 4); return bits)
EXPECT(f32_floor, return of32(floorf(f(a))))
EXPECT(f64_rint, double r = rint(g(a)); return nan_or(r, a, 0, 0))
EXPECT(u8_s32, return a & 0xff)
EXPECT(s8_s32, return (uint64_t)(int8_t)a)
EXPECT(s64_u16, return a)
EXPECT(u8_s32_sat, return saturated(sx(a, 32), 0, 255))
EXPECT(s16_u64_sat, return a > 0x7fff ? 0x7fff : a)
EXPECT(pack_s8, return c << 16 | (saturated(sx(a, 32), -128, 127) & 0xff) << 8 |
                       (saturated(sx(b, 32), -128, 127) & 0xff))

static void test_conversions(void **state)
{
    static const struct {
        const char *spelling;
        expect_fn *expect;
    } rows[] = {
        {"cvt.rzi.s32.f32", s32_f32_rzi},
        {"cvt.rni.s32.f32", s32_f32_rni},
        {"cvt.rmi.s32.f32", s32_f32_rmi},
        {"cvt.rpi.u32.f32", u32_f32_rpi},
        {"cvt.rzi.s64.f32", s64_f32_rzi},
        {"cvt.rzi.u64.f64", u64_f64_rzi},
        {"cvt.rni.s32.f64", s32_f64_rni},
        {"cvt.rni.sat.u8.f32", u8_f32_rni},
        {"cvt.rzi.s8.f64", s8_f64_rzi},
        {"cvt.rn.f32.s32", f32_s32},
        {"cvt.rn.f32.u64", f32_u64},
        {"cvt.rz.f32.u64", f32_u64_rz},
        {"cvt.rn.f64.s64", f64_s64},
        {"cvt.f64.f32", f64_f32},
        {"cvt.rm.f32.f64", f32_f64_rm},
        {"cvt.rmi.f32.f32", f32_floor},
        {"cvt.rni.f64.f64", f64_rint},
        {"cvt.u8.s32", u8_s32},
        {"cvt.s8.s32", s8_s32},
        {"cvt.s64.u16", s64_u16},
        {"cvt.sat.u8.s32", u8_s32_sat},
        {"cvt.sat.s16.u64", s16_u64_sat},
        {"cvt.pack.sat.s8.s32.b32", pack_s8},
    };
    EACH(k, rows) check(rows[k].spelling, rows[k].expect);
}

// --- comparisons -------------------------------------------------------------------------------------------

EXPECT(f32_lt, return f(a) < f(b))
EXPECT(f32_ge, return f(a) >= f(b))
EXPECT(f32_eq, return f(a) == f(b))
EXPECT(f32_ltu, return !(f(a) >= f(b)))
EXPECT(f32_ne, return f(a) < f(b) || f(a) > f(b))
EXPECT(f32_neu, return !(f(a) == f(b)))
EXPECT(f32_nan, return isnan(f(a)) || isnan(f(b)))
EXPECT(f32_gtu_xor, return !(f(a) <= f(b)) ^ (c & 1))
EXPECT(f32_le_and, return f(a) <= f(b) && (c & 1))
EXPECT(f64_lt, return g(a) < g(b))
EXPECT(f64_ge, return g(a) >= g(b))
EXPECT(f64_eq, return g(a) == g(b))
EXPECT(f64_ltu, return !(g(a) >= g(b)))
EXPECT(f64_ne, return g(a) < g(b) || g(a) > g(b))
EXPECT(f64_neu, return !(g(a) == g(b)))
EXPECT(f64_nan, return isnan(g(a)) || isnan(g(b)))
EXPECT(f64_gtu_xor, return !(g(a) <= g(b)) ^ (c & 1))
EXPECT(f64_le_and, return g(a) <= g(b) && (c & 1))
EXPECT(s32_lt, return (int32_t)a < (int32_t)b)
EXPECT(s32_ge, return (int32_t)a >= (int32_t)b)
EXPECT(s32_eq, return (int32_t)a == (int32_t)b)
EXPECT(s32_ne, return (int32_t)a < (int32_t)b || (int32_t)a > (int32_t)b)
EXPECT(s32_le_and, return (int32_t)a <= (int32_t)b && (c & 1))
EXPECT(u64_lt, return a < b)
EXPECT(u64_ge, return a >= b)
EXPECT(u64_eq, return a == b)
EXPECT(u64_ne, return a < b || a > b)
EXPECT(u64_le_and, return a <= b && (c & 1))
EXPECT(f16_leu, return !(small_of(&formats[F16], a) > small_of(&formats[F16], b)))
EXPECT(f32_lt_ftz, return f(flush(a)) < f(flush(b)))
EXPECT(set_f32, return f(a) < f(b) ? 0x3f800000 : 0)
EXPECT(set_u32_or, return (int64_t)a > (int64_t)b || (c & 1) ? UINT64_MAX : 0)
EXPECT(selp, return c & 1 ? a : b)
EXPECT(slct, return (int32_t)c >= 0 ? a : b)
EXPECT(slct_f32, return f(c) >= 0 ? a : b)

static void test_comparisons(void **state)
{
    static const struct {
        const char *spelling;
        expect_fn *expect;
    } rows[] = {
        {"setp.lt.f32", f32_lt},
        {"setp.ge.f32", f32_ge},
        {"setp.eq.f32", f32_eq},
        {"setp.ltu.f32", f32_ltu},
        {"setp.ne.f32", f32_ne},
        {"setp.neu.f32", f32_neu},
        {"setp.nan.f32", f32_nan},
        {"setp.gtu.xor.f32", f32_gtu_xor},
        {"setp.le.and.f32", f32_le_and},
        {"setp.lt.f64", f64_lt},
        {"setp.ge.f64", f64_ge},
        {"setp.eq.f64", f64_eq},
        {"setp.ltu.f64", f64_ltu},
        {"setp.ne.f64", f64_ne},
        {"setp.neu.f64", f64_neu},
        {"setp.nan.f64", f64_nan},
        {"setp.gtu.xor.f64", f64_gtu_xor},
        {"setp.le.and.f64", f64_le_and},
        {"setp.lt.s32", s32_lt},
        {"setp.ge.s32", s32_ge},
        {"setp.eq.s32", s32_eq},
        {"setp.ne.b32", s32_ne},
        {"setp.le.and.s32", s32_le_and},
        {"setp.lt.u64", u64_lt},
        {"setp.ge.u64", u64_ge},
        {"setp.eq.u64", u64_eq},
        {"setp.ne.b64", u64_ne},
        {"setp.le.and.u64", u64_le_and},
        {"setp.leu.f16", f16_leu},
        {"setp.lt.ftz.f32", f32_lt_ftz},
        {"set.lt.f32.f32", set_f32},
        {"set.gt.or.u32.s64", set_u32_or},
        {"selp.b16", selp},
        {"selp.f64", selp},
        {"slct.b32.s32", slct},
        {"slct.f64.f32", slct_f32},
    };
    EACH(k, rows) check(rows[k].spelling, rows[k].expect);
}

// --- approximations ----------------------------------------------------------------------------------------

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double rcp(double x)
{
    return 1 / x;
}

// Errors are relative to the result, or to `least` if that is larger; the limits are the manual's.
static void test_approximations(void **state)
{
    static const struct {
        const char *spelling;
        double (*exact)(double);
        double from, to, error, least;
    } rows[] = {
        {"ex2.approx.f32", exp2, -140, 127, -22.5, 0x1p-126},
        {"lg2.approx.f32", log2, 0x1p-120, 0x1p120, -22, 1},
        {"lg2.approx.f32", log2, 0.5, 2, -22, 1},
        {"sin.approx.f32", sin, -6.2831, 6.2831, -20.5, 1},
        {"cos.approx.f32", cos, -6.2831, 6.2831, -20.5, 1},
        {"tanh.approx.f32", tanh, -12, 12, -11, 0},
        {"rsqrt.approx.f32", rsqrt, 0x1p-100, 0x1p100, -22.9, 0},
        {"rcp.approx.f32", rcp, -0x1p80, 0x1p80, -23, 0},
        {"sqrt.approx.f32", sqrt, 0, 0x1p100, -23, 0},
        {"ex2.approx.f32", exp2, -1, 1, -22.5, 0},
    };
    static _Alignas(64) char file[FILE_SIZE];
    EACH(k, rows)
    for (int n = 0; n < 200; n++) {
        struct form form;
        assert_int_equal(form_try(rows[k].spelling, &form), 0);
        for (int l = 0; l < 32; l++) {
            float x =
                (float)(rows[k].from + (rows[k].to - rows[k].from) * ((double)(any64() >> 11) * 0x1p-53));
            put(file + SOURCES, 32, l, of32(x));
        }
        struct exec_warp w = {.mask = EXEC_ALL, .regs = file};
        struct exec_insn i = insn_of(&form);
        i.fn(&w, &i);
        for (int l = 0; l < 32; l++) {
            double x = f(get(file + SOURCES, 32, l)), y = f(get(file + D, 32, l)), want = rows[k].exact(x);
            if (fabs(y - want) > exp2(rows[k].error) * fmax(fabs(want), rows[k].least))
                fail_msg("%s of %a: %a, expected %a", rows[k].spelling, x, y, want);
        }
    }
}

// --- results of an H200 ------------------------------------------------------------------------------------

static void test_hardware(void **state)
{
    static const struct {
        const char *spelling;
        uint64_t a, b, c, d;
    } rows[] = {
#define GOT(spelling, a, b, c, d) {spelling, UINT64_C(a), UINT64_C(b), UINT64_C(c), UINT64_C(d)},
        // NaNs: one in f32 and the halves; f64 keeps the second operand's before the third's before the
        // first's
        GOT("abs.f32", 0xff812345, 0, 0, 0x7fffffff) GOT("neg.f16", 0x7e00, 0, 0, 0x7fff)
            GOT("neg.bf16", 0x7fff, 0, 0, 0x7fff) GOT("abs.f64", 0xfff8123456789abc, 0, 0, 0xfff8123456789abc)
                GOT("neg.f64", 0x7ff0000000000001, 0, 0, 0x7ff8000000000001)
                    GOT("add.f64", 0x7ff0000000000001, 0x7ff8000000000000, 0, 0x7ff8000000000000)
                        GOT("fma.rm.f64", 0x7ff8000000000000, 1, 0x7ff4000012345678, 0x7ffc000012345678)
                            GOT("fma.rp.f64", 0x7ff4000012345678, 0xfff8123456789abc, 0x7ff8000000000000,
                                0xfff8123456789abc) GOT("cvt.f32.bf16", 0x7f81, 0, 0, 0x7f810000)
                                GOT("cvt.f32.f32", 0xff812345, 0, 0, 0xff812345) GOT("cvt.f64.f16", 0xfc12, 0,
                                                                                     0, 0xfff8480000000000)
                                    GOT("cvt.f64.f32", 0x7f800001, 0, 0, 0x7ff8000020000000)
                                        GOT("cvt.ftz.f64.f32", 0xffc00000, 0, 0, 0x7fffffffe0000000)
                                            GOT("cvt.rn.f32.f64", 0xfff8123456789abc, 0, 0, 0xffc091a2)
                                                GOT("cvt.rn.f16.f64", 0xfff8123456789abc, 0, 0, 0xfe04)
                                                    GOT("cvt.rn.tf32.f32", 0x7fc00000, 0, 0, 0x7fffe000)
                                                        GOT("cvt.rna.tf32.f32", 0xff812345, 0, 0, 0xff812000)
                                                            GOT("cvt.rna.satfinite.tf32.f32", 0x7f800001, 0,
                                                                0, 0x7f7fe000)
                                                                GOT("rcp.approx.ftz.f64", 0xfff8123456789abc,
                                                                    0, 0, 0x7fffffff00000000)
        // .ftz flushes by the result rounded with an unbounded exponent
        GOT("mul.ftz.f32", 0x3f7fffff, 0x00800000, 0, 0)
            GOT("mul.ftz.f32", 0x20000001, 0x1ffffffe, 0, 0x00800000)
                GOT("mul.rm.ftz.f32", 0x3f7fffff, 0x80800000, 0, 0x80000000)
                    GOT("fma.rm.ftz.f32", 0x3f7fffff, 0x80800000, 0, 0x80000000)
                        GOT("mul.ftz.f16", 0x3bff, 0x8400, 0, 0x8000)
                            GOT("mul.ftz.f16", 0x2001, 0x1ffe, 0, 0x0400)
                                GOT("cvt.rn.ftz.f32.f64", 0x380fffffe0000000, 0, 0, 0)
                                    GOT("cvt.rm.ftz.f16.f32", 0x80000001, 0, 0, 0x8001)
        // integers
        GOT("rem.s32", 7, 0, 0, 0xffffffff) GOT("div.u16", 7, 0, 0, 0xffff)
            GOT("div.s32", 0x80000000, 0xffffffff, 0, 0x80000000) GOT("rem.s32", 0x80000000, 0xffffffff, 0, 0)
                GOT("bfe.u64", 0x7f, 1, 0x100, 0x3f) GOT("bfi.b64", 0x20, 0xff, 8, 0xff)
                    GOT("fns.b32", 7, 0xffffffff, 0x80000000, 0)
                        GOT("cvt.rmi.s8.f64", 0x7ff8000000000000, 0, 0, 0xff80)
        // the rest
        GOT("div.approx.f32", 0xbf800000, 0x7f7fffff, 0, 0x80000000)
            GOT("testp.normal.f32", 0x80000000, 0, 0, 1) GOT("fma.rn.oob.f16", 0xfff7, 0x3c00, 0x3c00, 0)
                GOT("fma.rn.oob.f16", 0xffff, 0x3c00, 0x3c00, 0x7fff)
                    GOT("sin.approx.f32", 0xff7fffff, 0, 0, 0x80000000)
                        GOT("sin.approx.f32", 0x00800000, 0, 0, 0)
#undef GOT
    };
    static _Alignas(64) char file[FILE_SIZE];
    EACH(k, isas)
    EACH(n, rows)
    if (!exec_lanes_force(isas[k])) {
        struct form form;
        if (form_try(rows[n].spelling, &form))
            fail_msg("%s is not picked", rows[n].spelling);
        memset(file + SOURCES, 0, FILE_SIZE - SOURCES);
        put(file + SOURCES, form.bits[0], 9, rows[n].a);
        put(file + SOURCES + SLOT, form.bits[1], 9, rows[n].b);
        put(file + SOURCES + 2 * SLOT, form.bits[2], 9, rows[n].c);
        struct exec_warp w = {.mask = 1 << 9, .regs = file};
        struct exec_insn i = insn_of(&form);
        i.fn(&w, &i);
        if (get(file + D, form.dest_bits, 9) != rows[n].d)
            fail_msg("%s (%s) of %llx %llx %llx: %llx, expected %llx", rows[n].spelling, isas[k],
                     (unsigned long long)rows[n].a, (unsigned long long)rows[n].b,
                     (unsigned long long)rows[n].c, (unsigned long long)get(file + D, form.dest_bits, 9),
                     (unsigned long long)rows[n].d);
    }
    exec_lanes_force(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),    cmocka_unit_test(test_carries),
        cmocka_unit_test(test_floats),      cmocka_unit_test(test_small),
        cmocka_unit_test(test_bf16_fma),    cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_comparisons), cmocka_unit_test(test_approximations),
        cmocka_unit_test(test_hardware),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
