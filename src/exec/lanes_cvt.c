// SPDX-License-Identifier: MIT
#include "exec/lanes_half.h"
#include "exec/lanes_row.h"
#include "exec/scalar_cvt.h"
#include "exec/scalar_float.h"
#include "exec/scalar_half.h"

// Rounding to integers for processors without such an instruction: adding 2^23 (2^52) leaves no bits for a
// fraction. Zero results keep the sign.
#ifdef __SSE4_1__
#define f32_rni __builtin_rintf
#define f32_rmi __builtin_floorf
#define f32_rpi __builtin_ceilf
#define f32_rzi __builtin_truncf
#define f64_rni __builtin_rint
#define f64_rmi __builtin_floor
#define f64_rpi __builtin_ceil
#define f64_rzi __builtin_trunc
#else
static inline float f32_rni(float x)
{
    float size = __builtin_fabsf(x), r = size < 0x1p23f ? (size + 0x1p23f) - 0x1p23f : size;
    return __builtin_copysignf(r, x);
}

static inline float f32_rmi(float x)
{
    float r = f32_rni(x);
    return __builtin_copysignf(r > x ? r - 1 : r, x);
}

static inline float f32_rpi(float x)
{
    float r = f32_rni(x);
    return __builtin_copysignf(r < x ? r + 1 : r, x);
}

static inline float f32_rzi(float x)
{
    return __builtin_copysignf(f32_rmi(__builtin_fabsf(x)), x);
}

static inline double f64_rni(double x)
{
    double size = __builtin_fabs(x), r = size < 0x1p52 ? (size + 0x1p52) - 0x1p52 : size;
    return __builtin_copysign(r, x);
}

static inline double f64_rmi(double x)
{
    double r = f64_rni(x);
    return __builtin_copysign(r > x ? r - 1 : r, x);
}

static inline double f64_rpi(double x)
{
    double r = f64_rni(x);
    return __builtin_copysign(r < x ? r + 1 : r, x);
}

static inline double f64_rzi(double x)
{
    return __builtin_copysign(f64_rmi(__builtin_fabs(x)), x);
}
#endif

// Saturates. The value that is cast is always in range: C leaves other casts undefined.
#define F32_TO(T, x, least, beyond, most, nan)                                        \
    ({                                                                                \
        float v = (x), in = v >= (least) && v < (beyond) ? v : 0;                     \
        T r = (T)in;                                                                  \
        v >= (beyond) ? (T)(most) : v < (least) ? (T)(least) : v != v ? (T)(nan) : r; \
    })
#define F64_TO(T, x, least, beyond, most, nan)                                        \
    ({                                                                                \
        double v = (x), in = v >= (least) && v < (beyond) ? v : 0;                    \
        T r = (T)in;                                                                  \
        v >= (beyond) ? (T)(most) : v < (least) ? (T)(least) : v != v ? (T)(nan) : r; \
    })

#define CLAMP(x, least, most) ((x) < (least) ? (least) : (x) > (most) ? (most) : (x))

#define F32_OF_F16()                                       \
    LANES_OUT(float, 1);                                   \
    f16_widen(o, LANES_SLOT(const uint16_t, w, i->a), 32); \
    LANES_EACH(32) o[l] = f32_canonical(o[l]);             \
    LANES_STORE(float, 1)
#define F16_OF_F32()                                     \
    LANES_OUT(uint16_t, 1);                              \
    f16_narrow(o, LANES_SLOT(const float, w, i->a), 32); \
    LANES_STORE(uint16_t, 1)
#define F16X2_OF_F32()                                      \
    _Alignas(64) uint16_t high[32], low[32];                \
    LANES_OUT(uint32_t, 1);                                 \
    f16_narrow(high, LANES_SLOT(const float, w, i->a), 32); \
    f16_narrow(low, LANES_SLOT(const float, w, i->b), 32);  \
    LANES_EACH(32) o[l] = (uint32_t)high[l] << 16 | low[l]; \
    LANES_STORE(uint32_t, 1)

static inline uint64_t load(const char *slot, int l, unsigned type)
{
    const void *p = slot;
    switch (type) {
    case LANES_U64:
    case LANES_S64:
    case LANES_F64: return ((const uint64_t *)p)[l];
    case LANES_U32:
    case LANES_S32:
    case LANES_F32:
    case LANES_TF32:
    case LANES_F16X2:
    case LANES_BF16X2: return ((const uint32_t *)p)[l];
    default: return ((const uint16_t *)p)[l];
    }
}

static inline void store(char *slot, int l, unsigned type, uint64_t bits)
{
    void *p = slot;
    switch (type) {
    case LANES_U64:
    case LANES_S64:
    case LANES_F64: ((uint64_t *)p)[l] = bits; break;
    case LANES_U32:
    case LANES_S32:
    case LANES_F32:
    case LANES_TF32:
    case LANES_F16X2:
    case LANES_BF16X2: ((uint32_t *)p)[l] = (uint32_t)bits; break;
    default: ((uint16_t *)p)[l] = (uint16_t)bits;
    }
}

static void cvt_any(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned to = lanes_type0(i->flags), from = lanes_type1(i->flags);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        store(w->regs + i->d, l, to, cvt_value(load(w->regs + i->a, l, from), to, from, i->flags));
    }
}

static inline bool is_byte_pair(unsigned type)
{
    return type == LANES_E4M3X2 || type == LANES_E5M2X2;
}

// Converts two values to the halves of one: from two f32, the first to the upper half; or from two halves.
static void cvt_pair(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned to = lanes_type0(i->flags), from = lanes_type1(i->flags), bits = is_byte_pair(to) ? 8 : 16;
    unsigned half = is_byte_pair(from) ? 8 : 16;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint64_t high = load(w->regs + i->a, l, from), low;
        if (from == LANES_F32) {
            low = load(w->regs + i->b, l, from);
        } else {
            low = high & ((1u << half) - 1);
            high >>= half;
        }
        low = cvt_value(low, to, from, i->flags);
        store(w->regs + i->d, l, to, cvt_value(high, to, from, i->flags) << bits | low);
    }
}

// cvt.pack: a and b are saturated, a above b, and c is shifted up above them.
static void cvt_pack(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned to = lanes_type0(i->flags), bits = cvt_int_bits(to);
    uint32_t ones = UINT32_MAX >> (32 - bits), *d = LANES_SLOT(uint32_t, w, i->d);
    for (uint32_t left = w->mask; left; left &= left - 1) {
        int l = __builtin_ctz(left);
        uint32_t a = (uint32_t)cvt_value(LANES_SLOT(uint32_t, w, i->a)[l], to, LANES_S32, LANES_SAT) & ones;
        uint32_t b = (uint32_t)cvt_value(LANES_SLOT(uint32_t, w, i->b)[l], to, LANES_S32, LANES_SAT) & ones;
        uint32_t c = i->flags & LANES_SOURCE ? LANES_SLOT(uint32_t, w, i->c)[l] << 2 * bits : 0;
        d[l] = c | a << bits | b;
    }
}

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_cvt.def"
