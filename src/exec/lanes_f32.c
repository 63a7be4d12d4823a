// SPDX-License-Identifier: MIT
#include "exec/lanes_row.h"
#include "exec/scalar_float.h"

#define FLUSHED2(...)                                     \
    LANES_OUT(float, 1);                                  \
    const float *as = LANES_SLOT(const float, w, i->a);   \
    const float *bs = LANES_SLOT(const float, w, i->b);   \
    LANES_EACH(32)                                        \
    {                                                     \
        float a = f32_flush(as[l]), b = f32_flush(bs[l]); \
        o[l] = f32_flush(f32_canonical(__VA_ARGS__));     \
    }                                                     \
    LANES_STORE(float, 1)
#define FLUSHED3(...)                                                           \
    LANES_OUT(float, 1);                                                        \
    const float *as = LANES_SLOT(const float, w, i->a);                         \
    const float *bs = LANES_SLOT(const float, w, i->b);                         \
    const float *cs = LANES_SLOT(const float, w, i->c);                         \
    LANES_EACH(32)                                                              \
    {                                                                           \
        float a = f32_flush(as[l]), b = f32_flush(bs[l]), c = f32_flush(cs[l]); \
        o[l] = f32_flush(f32_canonical(__VA_ARGS__));                           \
    }                                                                           \
    LANES_STORE(float, 1)

// --- all modifiers -----------------------------------------------------------------------------------------

// Canonicalises NaNs, saturates and stores. The processor has rounded and flushed.
static void finish(const struct exec_warp *w, const struct exec_insn *i, float *r)
{
    LANES_EACH(32) r[l] = f32_canonical(r[l]);
    if (i->flags & LANES_SAT)
        LANES_EACH(32) r[l] = f32_sat(r[l]);
    float *d = LANES_SLOT(float, w, i->d);
    lanes_select4(d, r, d, w->mask);
}

#define MODIFIED1(...)                                  \
    _Alignas(64) float r[32];                           \
    const float *as = LANES_SLOT(const float, w, i->a); \
    uint32_t before = lanes_round_begin(i->flags);      \
    LANES_EACH(32)                                      \
    {                                                   \
        float a = as[l];                                \
        r[l] = (__VA_ARGS__);                           \
    }                                                   \
    lanes_round_end(before, r);                         \
    finish(w, i, r)
#define MODIFIED2(...)                                  \
    _Alignas(64) float r[32];                           \
    const float *as = LANES_SLOT(const float, w, i->a); \
    const float *bs = LANES_SLOT(const float, w, i->b); \
    uint32_t before = lanes_round_begin(i->flags);      \
    LANES_EACH(32)                                      \
    {                                                   \
        float a = as[l], b = bs[l];                     \
        r[l] = (__VA_ARGS__);                           \
    }                                                   \
    lanes_round_end(before, r);                         \
    finish(w, i, r)
#define MODIFIED3(...)                                  \
    _Alignas(64) float r[32];                           \
    const float *as = LANES_SLOT(const float, w, i->a); \
    const float *bs = LANES_SLOT(const float, w, i->b); \
    const float *cs = LANES_SLOT(const float, w, i->c); \
    uint32_t before = lanes_round_begin(i->flags);      \
    LANES_EACH(32)                                      \
    {                                                   \
        float a = as[l], b = bs[l], c = cs[l];          \
        r[l] = (__VA_ARGS__);                           \
    }                                                   \
    lanes_round_end(before, r);                         \
    finish(w, i, r)

// Minimum and maximum do no arithmetic, so their operands are flushed here.
static const float *operand(const struct exec_warp *w, uint32_t slot, uint32_t flags, float *buffer)
{
    const float *x = LANES_SLOT(const float, w, slot);
    if (!(flags & LANES_FTZ))
        return x;
    LANES_EACH(32) buffer[l] = f32_flush(x[l]);
    return buffer;
}

// A divisor beyond 2^126 has a subnormal reciprocal, which counts as 0: infinity divided by it is NaN,
// anything else 0.
static inline float f32_div_approx(float a, float b)
{
    float size = f32_of(f32_bits(b) & 0x7fffffffu), q = a / b;
    bool huge = size > 0x1p126f && size <= FLT_MAX;
    float none = f32_of((f32_bits(a) ^ f32_bits(b)) & 0x80000000u) * f32_of(f32_bits(a) & 0x7fffffffu);
    return huge ? none : q;
}

#define EXTREME_F32(least)                                               \
    _Alignas(64) float a_buffer[32], b_buffer[32], c_buffer[32], r[32];  \
    const float *as = operand(w, i->a, i->flags, a_buffer);              \
    const float *bs = operand(w, i->b, i->flags, b_buffer);              \
    LANES_EACH(32) r[l] = f32_extreme(least, as[l], bs[l], i->flags);    \
    if (i->flags & LANES_SOURCE) {                                       \
        const float *cs = operand(w, i->c, i->flags, c_buffer);          \
        LANES_EACH(32) r[l] = f32_extreme(least, r[l], cs[l], i->flags); \
    }                                                                    \
    finish(w, i, r)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_f32.def"
