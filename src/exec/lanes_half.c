// SPDX-License-Identifier: MIT
// 16-bit values are widened to f32, computed with and narrowed again.
//
// Rounding twice equals rounding once: sums and products of f16 need 2 * 11 + 2 bits for that, which f32 has,
// and those of bf16 fewer. Results below f16's normal range are exact in f32, and so are sums of bf16 below
// its range. A product of bf16 in that range has 16 bits, so rounding to f32 can reach a tie only where the
// tie goes to 0, which is right. Only fma needs care: see half_fma.
#include "exec/lanes_half.h"
#include "exec/lanes_row.h"
#include "exec/scalar_float.h"
#include "exec/scalar_half.h"

// --- without modifiers -------------------------------------------------------------------------------------

#define HALF_LOOP2(format, n, ...)                                   \
    _Alignas(64) float as[32 * n], bs[32 * n];                       \
    LANES_OUT(uint16_t, n);                                          \
    format##_widen(as, LANES_SLOT(const uint16_t, w, i->a), 32 * n); \
    format##_widen(bs, LANES_SLOT(const uint16_t, w, i->b), 32 * n); \
    LANES_EACH(32 * n)                                               \
    {                                                                \
        float a = as[l], b = bs[l];                                  \
        as[l] = (__VA_ARGS__);                                       \
    }                                                                \
    format##_narrow(o, as, 32 * n);                                  \
    LANES_STORE(uint16_t, n)
#define HALF_LOOP3(format, n, ...)                                   \
    _Alignas(64) float as[32 * n], bs[32 * n], cs[32 * n];           \
    LANES_OUT(uint16_t, n);                                          \
    format##_widen(as, LANES_SLOT(const uint16_t, w, i->a), 32 * n); \
    format##_widen(bs, LANES_SLOT(const uint16_t, w, i->b), 32 * n); \
    format##_widen(cs, LANES_SLOT(const uint16_t, w, i->c), 32 * n); \
    LANES_EACH(32 * n)                                               \
    {                                                                \
        float a = as[l], b = bs[l], c = cs[l];                       \
        as[l] = (__VA_ARGS__);                                       \
    }                                                                \
    format##_narrow(o, as, 32 * n);                                  \
    LANES_STORE(uint16_t, n)
#define F16_LOOP2(n, ...) HALF_LOOP2(f16, n, __VA_ARGS__)
#define F16_LOOP3(n, ...) HALF_LOOP3(f16, n, __VA_ARGS__)
#define BF16_LOOP2(n, ...) HALF_LOOP2(bf16, n, __VA_ARGS__)
#define BF16_LOOP3(n, ...) HALF_LOOP3(bf16, n, __VA_ARGS__)

// --- with modifiers ----------------------------------------------------------------------------------------

// The NaN, of either sign, that a tensor copy writes for elements outside the tensor; .oob turns such a
// result into 0.
#define OOB_NAN 0x7ff7

static void mod_widen(float *to, const uint16_t *from, int n, uint32_t flags, bool bf16)
{
    if (bf16) {
        bf16_widen(to, from, n);
    } else if (flags & LANES_FTZ) {
        LANES_EACH(n) to[l] = half_to_f32(half_flush(from[l]));
    } else {
        f16_widen(to, from, n);
    }
}

static void mod_narrow(struct exec_warp *w, const struct exec_insn *i, float *r, int n, bool bf16)
{
    _Alignas(64) uint16_t h[64];
    if (i->flags & LANES_SAT)
        LANES_EACH(n) r[l] = f32_sat(r[l]);
    if (i->flags & LANES_RELU)
        LANES_EACH(n) r[l] = f32_relu(r[l]);
    if (bf16)
        bf16_narrow(h, r, n);
    else
        f16_narrow(h, r, n);
    if (i->flags & LANES_FTZ)
        LANES_EACH(n) h[l] = half_is_tiny(r[l]) ? h[l] & 0x8000 : h[l];
    if (i->flags & LANES_OOB) {
        const uint16_t *a = LANES_SLOT(const uint16_t, w, i->a), *b = LANES_SLOT(const uint16_t, w, i->b);
        LANES_EACH(n) h[l] = (a[l] & 0x7fff) == OOB_NAN || (b[l] & 0x7fff) == OOB_NAN ? 0 : h[l];
    }
    void *d = LANES_SLOT(uint16_t, w, i->d);
    lanes_select((size_t)n / 16, d, h, d, w->mask);
}

#define MOD_LOOP2(bf16, n, ...)                                                 \
    _Alignas(64) float as[32 * n], bs[32 * n];                                  \
    mod_widen(as, LANES_SLOT(const uint16_t, w, i->a), 32 * n, i->flags, bf16); \
    mod_widen(bs, LANES_SLOT(const uint16_t, w, i->b), 32 * n, i->flags, bf16); \
    LANES_EACH(32 * n)                                                          \
    {                                                                           \
        float a = as[l], b = bs[l];                                             \
        as[l] = (__VA_ARGS__);                                                  \
    }                                                                           \
    mod_narrow(w, i, as, 32 * n, bf16)
#define MOD_LOOP3(bf16, n, ...)                                                 \
    _Alignas(64) float as[32 * n], bs[32 * n], cs[32 * n];                      \
    mod_widen(as, LANES_SLOT(const uint16_t, w, i->a), 32 * n, i->flags, bf16); \
    mod_widen(bs, LANES_SLOT(const uint16_t, w, i->b), 32 * n, i->flags, bf16); \
    mod_widen(cs, LANES_SLOT(const uint16_t, w, i->c), 32 * n, i->flags, bf16); \
    LANES_EACH(32 * n)                                                          \
    {                                                                           \
        float a = as[l], b = bs[l], c = cs[l];                                  \
        as[l] = (__VA_ARGS__);                                                  \
    }                                                                           \
    mod_narrow(w, i, as, 32 * n, bf16)
#define F16_MOD_LOOP2(n, ...) MOD_LOOP2(false, n, __VA_ARGS__)
#define F16_MOD_LOOP3(n, ...) MOD_LOOP3(false, n, __VA_ARGS__)
#define BF16_MOD_LOOP2(n, ...) MOD_LOOP2(true, n, __VA_ARGS__)
#define BF16_MOD_LOOP3(n, ...) MOD_LOOP3(true, n, __VA_ARGS__)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_half.def"
