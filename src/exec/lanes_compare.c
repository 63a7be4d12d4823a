// SPDX-License-Identifier: MIT
#include <assert.h>

#include "exec/lanes_row.h"
#include "exec/scalar_float.h"
#include "exec/scalar_half.h"

// Returns a bit per lane for a condition on a and b of type T.
#define COMPARE(T, bytes, ...)                                                          \
    ({                                                                                  \
        const T *as = LANES_SLOT(const T, w, i->a), *bs = LANES_SLOT(const T, w, i->b); \
        COMPARE_LOOP(T, bytes, __VA_ARGS__);                                            \
    })
// The same for f32, with .ftz.
#define COMPARE_F32(...)                                                                                    \
    ({                                                                                                      \
        _Alignas(64) float a_buffer[32], b_buffer[32];                                                      \
        const float *as = flushed(w, i->a, i->flags, a_buffer), *bs = flushed(w, i->b, i->flags, b_buffer); \
        COMPARE_LOOP(float, 4, __VA_ARGS__);                                                                \
    })
#define COMPARE_F64(...) COMPARE(double, 8, __VA_ARGS__)
#define MASK2 uint16_t
#define MASK4 uint32_t
#define MASK8 uint64_t
#define COMPARE_LOOP(T, bytes, ...)                      \
    _Alignas(64) MASK##bytes mask[32];                   \
    LANES_EACH(32)                                       \
    {                                                    \
        T a = as[l], b = bs[l];                          \
        mask[l] = (__VA_ARGS__) ? (MASK##bytes) - 1 : 0; \
    }                                                    \
    lanes_pack##bytes(mask)

static inline const float *flushed(const struct exec_warp *w, uint32_t slot, uint32_t flags, float *buffer)
{
    const float *x = LANES_SLOT(const float, w, slot);
    if (!(flags & LANES_FTZ))
        return x;
    LANES_EACH(32) buffer[l] = f32_flush(x[l]);
    return buffer;
}

static inline uint32_t combine(uint32_t t, uint32_t c, uint32_t flags)
{
    return flags & LANES_AND ? t & c : flags & LANES_OR ? t | c : flags & LANES_XOR ? t ^ c : t;
}

static inline void put_both(struct exec_warp *w, const struct exec_insn *i, uint32_t p, uint32_t q)
{
    if (i->flags & LANES_BOOL) {
        uint32_t c = *lanes_pred(w, i->c);
        p = combine(p, c, i->flags);
        q = combine(q, c, i->flags);
    }
    lanes_put_pred(w, i->e, q);
    lanes_put_pred(w, i->d, p);
}

// setp p|q: q is the opposite of p.
static inline void setp_put(struct exec_warp *w, const struct exec_insn *i, uint32_t t)
{
    put_both(w, i, t, ~t);
}

// --- any comparison of any type: lanes widened to 64 bits --------------------------------------------------

union wide {
    int64_t s[32];
    uint64_t u[32];
    double f[32];
};

// Returns the lane's value; for pairs, the lower (half 0) or upper one.
static double wide_float(const char *slot, int l, unsigned type, int half, uint32_t flags)
{
    const uint16_t *h = (const uint16_t *)(const void *)slot;
    switch (type) {
    case LANES_F16: return half_flushed(h[l], flags & LANES_FTZ);
    case LANES_F16X2: return half_flushed(h[2 * l + half], flags & LANES_FTZ);
    case LANES_BF16: return bf16_to_f32(h[l]);
    case LANES_BF16X2: return bf16_to_f32(h[2 * l + half]);
    case LANES_F32: {
        float x = ((const float *)(const void *)slot)[l];
        return flags & LANES_FTZ ? f32_flush(x) : x;
    }
    default: return ((const double *)(const void *)slot)[l];
    }
}

static int64_t wide_int(const char *slot, int l, unsigned type)
{
    const void *p = slot;
    switch (type) {
    case LANES_U16: return ((const uint16_t *)p)[l];
    case LANES_S16: return ((const int16_t *)p)[l];
    case LANES_U32: return ((const uint32_t *)p)[l];
    case LANES_S32: return ((const int32_t *)p)[l];
    default: return ((const int64_t *)p)[l];
    }
}

static void widen(union wide *to, const char *slot, unsigned type, int half, uint32_t flags)
{
    for (int l = 0; l < 32; l++)
        if (type >= LANES_F16)
            to->f[l] = wide_float(slot, l, type, half, flags);
        else
            to->s[l] = wide_int(slot, l, type);
}

static uint32_t compare_float(const double *as, const double *bs, unsigned compare)
{
    switch (compare) {
    case LANES_EQ: return ({ COMPARE_LOOP(double, 8, a == b); });
    case LANES_NE: return ({ COMPARE_LOOP(double, 8, a<b || a> b); });
    case LANES_LT: return ({ COMPARE_LOOP(double, 8, a < b); });
    case LANES_LE: return ({ COMPARE_LOOP(double, 8, a <= b); });
    case LANES_GT: return ({ COMPARE_LOOP(double, 8, a > b); });
    case LANES_GE: return ({ COMPARE_LOOP(double, 8, a >= b); });
    case LANES_NUM: return ({ COMPARE_LOOP(double, 8, a == a && b == b); });
    case LANES_EQU: return ~compare_float(as, bs, LANES_NE);
    case LANES_NEU: return ~compare_float(as, bs, LANES_EQ);
    case LANES_LTU: return ~compare_float(as, bs, LANES_GE);
    case LANES_LEU: return ~compare_float(as, bs, LANES_GT);
    case LANES_GTU: return ~compare_float(as, bs, LANES_LE);
    case LANES_GEU: return ~compare_float(as, bs, LANES_LT);
    default: return ~compare_float(as, bs, LANES_NUM);
    }
}

static uint32_t compare_unsigned(const uint64_t *as, const uint64_t *bs, unsigned compare)
{
    switch (compare) {
    case LANES_EQ: return ({ COMPARE_LOOP(uint64_t, 8, a == b); });
    case LANES_NE: return ~compare_unsigned(as, bs, LANES_EQ);
    case LANES_LT: return ({ COMPARE_LOOP(uint64_t, 8, a < b); });
    case LANES_LE: return ~compare_unsigned(bs, as, LANES_LT);
    case LANES_GT: return compare_unsigned(bs, as, LANES_LT);
    default: return ~compare_unsigned(as, bs, LANES_LT);
    }
}

static uint32_t compare_any(const struct exec_warp *w, const struct exec_insn *i, unsigned type, int half)
{
    _Alignas(64) union wide a, b;
    widen(&a, w->regs + i->a, type, half, i->flags);
    widen(&b, w->regs + i->b, type, half, i->flags);
    unsigned compare = lanes_compare(i->flags);
    if (type >= LANES_F16)
        return compare_float(a.f, b.f, compare);
    if (type != LANES_U64)
        for (int l = 0; l < 32; l++) {
            a.u[l] ^= UINT64_C(1) << 63;  // signed order becomes unsigned order
            b.u[l] ^= UINT64_C(1) << 63;
        }
    return compare_unsigned(a.u, b.u, compare);
}

static inline bool is_pair(unsigned type)
{
    return type == LANES_F16X2 || type == LANES_BF16X2;
}

static void setp_half(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned type = lanes_type0(i->flags);
    uint32_t low = compare_any(w, i, type, 0);
    put_both(w, i, low, is_pair(type) ? compare_any(w, i, type, 1) : ~low);
}

// Returns what set writes for true: all ones, or 1 in the destination's type.
static uint32_t set_true(unsigned type)
{
    switch (type) {
    case LANES_F32: return 0x3f800000;
    case LANES_F16: return 0x3c00;
    case LANES_F16X2: return 0x3c00;
    case LANES_BF16: return 0x3f80;
    case LANES_BF16X2: return 0x3f80;
    default: return UINT32_MAX;
    }
}

static void set_any(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned type = lanes_type0(i->flags), source = lanes_type1(i->flags);
    uint32_t c = i->flags & LANES_BOOL ? *lanes_pred(w, i->c) : 0, yes = set_true(type);
    uint32_t low = combine(compare_any(w, i, source, 0), c, i->flags), high = low;
    if (is_pair(source))
        high = combine(compare_any(w, i, source, 1), c, i->flags);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint32_t x = low >> l & 1 ? yes : 0, y = high >> l & 1 ? yes : 0;
        if (is_pair(source))
            LANES_SLOT(uint32_t, w, i->d)[l] = (x & 0xffff) | y << 16;
        else if (type == LANES_U32 || type == LANES_S32 || type == LANES_F32)
            LANES_SLOT(uint32_t, w, i->d)[l] = x;
        else
            LANES_SLOT(uint16_t, w, i->d)[l] = (uint16_t)x;
    }
}

// --- testp -------------------------------------------------------------------------------------------------

#define TEST(T, bytes, TM, exponent, significand, ...)                     \
    const T *as = LANES_SLOT(const T, w, i->a);                            \
    _Alignas(64) T mask[32];                                               \
    LANES_EACH(32)                                                         \
    {                                                                      \
        T e = as[l] & (exponent), t = as[l] & (significand), m = exponent; \
        (void)t, (void)m;                                                  \
        mask[l] = (__VA_ARGS__) ? (T)-1 : 0;                               \
    }                                                                      \
    lanes_put_pred(w, i->d, lanes_pack##bytes(mask))
#define TEST32(...) TEST(uint32_t, 4, , 0x7f800000u, 0x7fffffu, __VA_ARGS__)
#define TEST64(...) TEST(uint64_t, 8, , UINT64_C(0x7ff) << 52, (UINT64_C(1) << 52) - 1, __VA_ARGS__)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_compare.def"
