// SPDX-License-Identifier: MIT
// Building blocks of the rows' functions: flags, loops over lanes, masked stores, predicates.
//
// A row computes all 32 lanes. Results go to the destination if all lanes are active, otherwise to a buffer
// from which the active lanes are stored. So there is one loop of constant length, which the compiler
// vectorises; it must work for whatever inactive lanes hold. Destination and sources may be the same slot: a
// lane is read before it is written, and LANES_EACH promises the compiler that iterations are independent.
#ifndef MOAT_EXEC_LANES_ROW_H
#define MOAT_EXEC_LANES_ROW_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "exec/warp.h"

#ifdef __clang__
// Without optimisation, and in a few rows with it, a loop is not vectorised.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
// gcc does not see that the buffer of LANES_OUT is written exactly when it is read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

// --- exec_insn.flags ---------------------------------------------------------------------------------------

enum lanes_round {
#define ROUND(mod) LANES_##mod,
#include "exec/lanes_flags.def"
    LANES_ROUND_COUNT,
};

enum lanes_flag_number {
    LANES_ROUND_BITS = 4,
    LANES_BEFORE_FLAGS = LANES_ROUND_BITS - 1,
#define FLAG(mod) LANES_NUMBER_##mod,
#include "exec/lanes_flags.def"
    LANES_NUMBER_SOURCE,  // number of the flag for an optional operand that is present
    LANES_FLAG_COUNT,
};
_Static_assert((int)LANES_ROUND_COUNT <= 1 << LANES_ROUND_BITS, "");

enum lanes_flag {
    LANES_ROUND_MASK = (1 << LANES_ROUND_BITS) - 1,
#define FLAG(mod) LANES_##mod = 1 << LANES_NUMBER_##mod,
#include "exec/lanes_flags.def"
    LANES_SOURCE = 1 << LANES_NUMBER_SOURCE,
    LANES_BOOL = LANES_AND | LANES_OR | LANES_XOR,
};

// Rows that serve many types and comparisons find them in these bits of the flags.
enum {
    LANES_TYPE0_SHIFT = 17,
    LANES_TYPE1_SHIFT = 22,
    LANES_COMPARE_SHIFT = 27,
    LANES_TYPE_MASK = 31,
    LANES_COMPARE_MASK = 15,
};
_Static_assert((int)LANES_FLAG_COUNT <= LANES_TYPE0_SHIFT, "flags and types overlap");

enum lanes_compare {
    LANES_EQ,
    LANES_NE,
    LANES_LT,
    LANES_LE,
    LANES_GT,
    LANES_GE,
    LANES_EQU,
    LANES_NEU,
    LANES_LTU,
    LANES_LEU,
    LANES_GTU,
    LANES_GEU,
    LANES_NUM,
    LANES_NAN,
    LANES_COMPARE_COUNT
};

enum lanes_type {
    LANES_U8,
    LANES_S8,
    LANES_U16,
    LANES_S16,
    LANES_U32,
    LANES_S32,
    LANES_U64,
    LANES_S64,
    LANES_F16,
    LANES_BF16,
    LANES_TF32,
    LANES_F32,
    LANES_F64,
    LANES_F16X2,
    LANES_BF16X2,
    LANES_E4M3X2,
    LANES_E5M2X2,
    LANES_U2,
    LANES_S2,
    LANES_U4,
    LANES_S4,
    LANES_TYPE_COUNT
};

static inline unsigned lanes_type0(uint32_t flags)
{
    return flags >> LANES_TYPE0_SHIFT & LANES_TYPE_MASK;
}

static inline unsigned lanes_type1(uint32_t flags)
{
    return flags >> LANES_TYPE1_SHIFT & LANES_TYPE_MASK;
}

static inline unsigned lanes_compare(uint32_t flags)
{
    return flags >> LANES_COMPARE_SHIFT & LANES_COMPARE_MASK;
}

// --- functions ---------------------------------------------------------------------------------------------

#define LANES_NAME3(name, isa) lanes_##name##_##isa
#define LANES_NAME2(name, isa) LANES_NAME3(name, isa)
#define LANES_NAME(name) LANES_NAME2(name, LANES_ISA)

// Defines the function of a row. Its body uses w and i.
#define LANES_ROW(name, ...)                                                                  \
    exec_fn LANES_NAME(name);                                                                 \
    const struct exec_insn *LANES_NAME(name)(struct exec_warp * w, const struct exec_insn *i) \
    {                                                                                         \
        __VA_ARGS__;                                                                          \
        return i + 1;                                                                         \
    }

#define LANES_SLOT(type, w, offset) ((type *)__builtin_assume_aligned((w)->regs + (offset), 64))

// clang would unroll first, and then find no loop to vectorise.
#ifdef __clang__
#define LANES_EACH(n)                                                                                  \
    _Pragma("clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)") for (int l = 0; \
                                                                                            l < (n); l++)
#else
#define LANES_EACH(n) _Pragma("GCC ivdep") for (int l = 0; l < (n); l++)
#endif

// --- selection by a mask -----------------------------------------------------------------------------------

// Return a vector whose lane l is from `yes` if bit l of mask is set, else from `no`; higher bits are
// ignored.
#if defined __AVX512BW__
typedef __m512i lanes_vector;
static inline lanes_vector lanes_blend2(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    return _mm512_mask_blend_epi16(mask, no, yes);
}

static inline lanes_vector lanes_blend4(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    return _mm512_mask_blend_epi32((__mmask16)mask, no, yes);
}

static inline lanes_vector lanes_blend8(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    return _mm512_mask_blend_epi64((__mmask8)mask, no, yes);
}
#elif defined __AVX2__
typedef __m256i lanes_vector;
static inline lanes_vector lanes_blend2(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m256i bits =
        _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, -32768);
    __m256i chosen = _mm256_and_si256(_mm256_set1_epi16((short)mask), bits);
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi16(chosen, bits));
}

static inline lanes_vector lanes_blend4(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i chosen = _mm256_and_si256(_mm256_set1_epi32((int)mask), bits);
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi32(chosen, bits));
}

static inline lanes_vector lanes_blend8(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
    __m256i chosen = _mm256_and_si256(_mm256_set1_epi64x(mask), bits);
    return _mm256_blendv_epi8(no, yes, _mm256_cmpeq_epi64(chosen, bits));
}
#else
typedef __m128i lanes_vector;
static inline lanes_vector lanes_blend(lanes_vector wanted, lanes_vector yes, lanes_vector no)
{
    return _mm_or_si128(_mm_and_si128(wanted, yes), _mm_andnot_si128(wanted, no));
}

static inline lanes_vector lanes_blend2(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m128i bits = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    return lanes_blend(_mm_cmpeq_epi16(_mm_and_si128(_mm_set1_epi16((short)mask), bits), bits), yes, no);
}

static inline lanes_vector lanes_blend4(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m128i bits = _mm_setr_epi32(1, 2, 4, 8);
    return lanes_blend(_mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32((int)mask), bits), bits), yes, no);
}

static inline lanes_vector lanes_blend8(uint32_t mask, lanes_vector yes, lanes_vector no)
{
    __m128i bits = _mm_setr_epi32(1, 1, 2, 2);
    return lanes_blend(_mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32((int)mask), bits), bits), yes, no);
}
#endif

// Keeps clang from making a masked load, which would wait for a preceding store to reach the cache.
#if defined __clang__ && defined __AVX512BW__
#define LANES_KEEP(x) __asm__("" : "+v"(x))
#else
#define LANES_KEEP(x) (void)0
#endif

// d[l] = mask >> l & 1 ? a[l] : b[l], for lanes of 2, 4 and 8 bytes. All are aligned like slots.
#define LANES_SELECT(bytes)                                                                      \
    static inline void lanes_select##bytes(void *d, const void *a, const void *b, uint32_t mask) \
    {                                                                                            \
        lanes_vector *to = (lanes_vector *)d;                                                    \
        const lanes_vector *yes = (const lanes_vector *)a, *no = (const lanes_vector *)b;        \
        for (unsigned k = 0; k < 32 * (bytes) / sizeof *to; k++) {                               \
            lanes_vector y = yes[k], n = no[k];                                                  \
            LANES_KEEP(y);                                                                       \
            LANES_KEEP(n);                                                                       \
            to[k] = lanes_blend##bytes(mask >> k * (sizeof *to / (bytes)), y, n);                \
        }                                                                                        \
    }
LANES_SELECT(2)
LANES_SELECT(4)
LANES_SELECT(8)

static inline __attribute__((always_inline)) void lanes_select(size_t size, void *d, const void *a,
                                                               const void *b, uint32_t mask)
{
    if (size == 2)
        lanes_select2(d, a, b, mask);
    else if (size == 4)
        lanes_select4(d, a, b, mask);
    else
        lanes_select8(d, a, b, mask);
}

// --- rows that compute a value per lane --------------------------------------------------------------------

// Between LANES_OUT and LANES_STORE, o is where to put results of type T, count of them per lane.
#define LANES_OUT(T, count)                    \
    T *const lanes_d = LANES_SLOT(T, w, i->d); \
    _Alignas(64) T lanes_buffer[32 * (count)]; \
    T *const o = __builtin_assume_aligned(w->mask == EXEC_ALL ? lanes_d : lanes_buffer, 64)
#define LANES_STORE(T, count)                     \
    if (__builtin_expect(w->mask != EXEC_ALL, 0)) \
    lanes_select(sizeof(T) * (count), lanes_d, lanes_buffer, lanes_d, w->mask)

// Rows with one, two, three, four sources; the expression names them a, b, c, e.
#define LOOP1(TD, TA, ...)                        \
    LANES_OUT(TD, 1);                             \
    const TA *as = LANES_SLOT(const TA, w, i->a); \
    LANES_EACH(32)                                \
    {                                             \
        TA a = as[l];                             \
        o[l] = (TD)(__VA_ARGS__);                 \
    }                                             \
    LANES_STORE(TD, 1)
#define LOOP2(TD, TA, TB, ...)                    \
    LANES_OUT(TD, 1);                             \
    const TA *as = LANES_SLOT(const TA, w, i->a); \
    const TB *bs = LANES_SLOT(const TB, w, i->b); \
    LANES_EACH(32)                                \
    {                                             \
        TA a = as[l];                             \
        TB b = bs[l];                             \
        o[l] = (TD)(__VA_ARGS__);                 \
    }                                             \
    LANES_STORE(TD, 1)
#define LOOP3(TD, TA, TB, TC, ...)                \
    LANES_OUT(TD, 1);                             \
    const TA *as = LANES_SLOT(const TA, w, i->a); \
    const TB *bs = LANES_SLOT(const TB, w, i->b); \
    const TC *cs = LANES_SLOT(const TC, w, i->c); \
    LANES_EACH(32)                                \
    {                                             \
        TA a = as[l];                             \
        TB b = bs[l];                             \
        TC c = cs[l];                             \
        o[l] = (TD)(__VA_ARGS__);                 \
    }                                             \
    LANES_STORE(TD, 1)
#define LOOP4(TD, TA, TB, TC, TE, ...)            \
    LANES_OUT(TD, 1);                             \
    const TA *as = LANES_SLOT(const TA, w, i->a); \
    const TB *bs = LANES_SLOT(const TB, w, i->b); \
    const TC *cs = LANES_SLOT(const TC, w, i->c); \
    const TE *es = LANES_SLOT(const TE, w, i->e); \
    LANES_EACH(32)                                \
    {                                             \
        TA a = as[l];                             \
        TB b = bs[l];                             \
        TC c = cs[l];                             \
        TE e = es[l];                             \
        o[l] = (TD)(__VA_ARGS__);                 \
    }                                             \
    LANES_STORE(TD, 1)

// Rows on both halves of 32-bit lanes, as 16-bit elements.
#define PAIR1(T, ...)                           \
    LANES_OUT(T, 2);                            \
    const T *as = LANES_SLOT(const T, w, i->a); \
    LANES_EACH(64)                              \
    {                                           \
        T a = as[l];                            \
        o[l] = (T)(__VA_ARGS__);                \
    }                                           \
    LANES_STORE(T, 2)
#define PAIR2(T, ...)                           \
    LANES_OUT(T, 2);                            \
    const T *as = LANES_SLOT(const T, w, i->a); \
    const T *bs = LANES_SLOT(const T, w, i->b); \
    LANES_EACH(64)                              \
    {                                           \
        T a = as[l], b = bs[l];                 \
        o[l] = (T)(__VA_ARGS__);                \
    }                                           \
    LANES_STORE(T, 2)

// Rows that cannot be vectorised compute active lanes only, one after the other.
#define SLOW(TD, ...)                                                               \
    TD *d = LANES_SLOT(TD, w, i->d);                                                \
    for (uint32_t lanes_left = w->mask; lanes_left; lanes_left &= lanes_left - 1) { \
        int l = __builtin_ctz(lanes_left);                                          \
        d[l] = (TD)(__VA_ARGS__);                                                   \
    }
// A source's lane, inside SLOW.
#define LANE(T, name) (LANES_SLOT(const T, w, i->name)[l])

// --- predicates --------------------------------------------------------------------------------------------

static inline uint32_t *lanes_pred(const struct exec_warp *w, uint32_t slot)
{
    return (uint32_t *)(void *)(w->regs + slot);
}

static inline void lanes_put_pred(struct exec_warp *w, uint32_t slot, uint32_t value)
{
    uint32_t *p = lanes_pred(w, slot);
    *p = (*p & ~w->mask) | (value & w->mask);
}

// Returns a word with bit l set if x[l] is not 0. Elements are 0 or all ones.
static inline uint32_t lanes_pack4(const uint32_t *x)
{
#if defined __AVX512BW__
    return (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(x)) |
           (uint32_t)_mm512_movepi32_mask(_mm512_load_si512(x + 16)) << 16;
#elif defined __AVX2__
    uint32_t r = 0;
    for (int h = 0; h < 4; h++)
        r |= (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)(x + 8 * h))) << 8 * h;
    return r;
#else
    uint32_t r = 0;
    for (int h = 0; h < 8; h++)
        r |= (uint32_t)_mm_movemask_ps(_mm_load_ps((const float *)(x + 4 * h))) << 4 * h;
    return r;
#endif
}

static inline uint32_t lanes_pack8(const uint64_t *x)
{
#if defined __AVX512BW__
    uint32_t r = 0;
    for (int h = 0; h < 4; h++)
        r |= (uint32_t)_mm512_movepi64_mask(_mm512_load_si512(x + 8 * h)) << 8 * h;
    return r;
#elif defined __AVX2__
    uint32_t r = 0;
    for (int h = 0; h < 8; h++)
        r |= (uint32_t)_mm256_movemask_pd(_mm256_load_pd((const double *)(x + 4 * h))) << 4 * h;
    return r;
#else
    uint32_t r = 0;
    for (int h = 0; h < 16; h++)
        r |= (uint32_t)_mm_movemask_pd(_mm_load_pd((const double *)(x + 2 * h))) << 2 * h;
    return r;
#endif
}

static inline uint32_t lanes_pack2(const uint16_t *x)
{
#if defined __AVX512BW__
    return _mm512_movepi16_mask(_mm512_load_si512(x));
#else
    uint32_t r = 0;
    for (int h = 0; h < 2; h++) {
        __m128i lo = _mm_load_si128((const __m128i *)(x + 16 * h));
        __m128i hi = _mm_load_si128((const __m128i *)(x + 16 * h + 8));
        r |= (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(lo, hi)) << 16 * h;
    }
    return r;
#endif
}

// o[l] = all ones if bit l of mask is set, else 0.
#define LANES_SPREAD(bytes, T)                                                         \
    static inline void lanes_spread##bytes(T *o, uint32_t mask)                        \
    {                                                                                  \
        lanes_vector *to = (lanes_vector *)o, none = {0}, all = ~none;                 \
        for (unsigned k = 0; k < 32 * (bytes) / sizeof *to; k++)                       \
            to[k] = lanes_blend##bytes(mask >> k * (sizeof *to / (bytes)), all, none); \
    }
LANES_SPREAD(4, uint32_t)
LANES_SPREAD(8, uint64_t)

// --- rounding modes ----------------------------------------------------------------------------------------

// Between the two calls, the processor uses the rounding mode of flags, and flushes subnormals if they have
// .ftz. Computations there must read from memory and write to memory that escapes, because the compiler does
// not know about rounding modes.
static inline uint32_t lanes_round_begin(uint32_t flags)
{
    static const uint16_t control[] = {
        [LANES_RN] = 0, [LANES_RZ] = 0x6000, [LANES_RM] = 0x2000, [LANES_RP] = 0x4000};
    uint32_t before;
    __asm__ volatile("stmxcsr %0" : "=m"(before));
    uint32_t now = (before & ~0x6000u) | control[flags & 3] | (flags & LANES_FTZ ? 0x8040u : 0);
    __asm__ volatile("ldmxcsr %0" : : "m"(now) : "memory");
    return before;
}

static inline void lanes_round_end(uint32_t before, void *results)
{
    __asm__ volatile("ldmxcsr %0" : : "m"(before), "r"(results) : "memory");
}

#endif
