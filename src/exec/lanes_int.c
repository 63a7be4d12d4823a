// SPDX-License-Identifier: MIT
#include "exec/lanes_row.h"
#include "exec/scalar_bits.h"

static inline int32_t int_sat(int64_t x)
{
    return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (int32_t)x;
}

static inline int32_t int_relu(int32_t x)
{
    return x < 0 ? 0 : x;
}

static inline uint64_t int_mul_hi_u64(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}

static inline uint64_t int_mul_hi_s64(int64_t a, int64_t b)
{
    return (uint64_t)((__int128)a * b >> 64);
}

static inline uint64_t int_mul24_u(uint32_t a, uint32_t b)
{
    return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}

static inline uint64_t int_mul24_s(uint32_t a, uint32_t b)
{
    return (uint64_t)((int64_t)((int32_t)(a << 8) >> 8) * ((int32_t)(b << 8) >> 8));
}

// 32-bit quotients are exact in double: a/b is at least 1/b, that is 2^-32 of it, from any other integer.
// Division and remainder by 0 give all ones; the most negative number divided by -1 gives itself.
static inline int32_t int_div_s32(int32_t a, int32_t b)
{
    int32_t by = b == 0 || (b == -1 && a == INT32_MIN) ? 1 : b;
    int32_t q = (int32_t)((double)a / (double)by);
    return b == 0 ? -1 : q;
}

static inline uint32_t int_div_u32(uint32_t a, uint32_t b)
{
    uint32_t by = b == 0 ? 1 : b;
    uint32_t q = (uint32_t)((double)a / (double)by);
    return b == 0 ? UINT32_MAX : q;
}

static inline uint32_t int_rem_s32(int32_t a, int32_t b)
{
    return b == 0 ? UINT32_MAX : (uint32_t)a - (uint32_t)int_div_s32(a, b) * (uint32_t)b;
}

static inline uint32_t int_rem_u32(uint32_t a, uint32_t b)
{
    return b == 0 ? UINT32_MAX : a - int_div_u32(a, b) * b;
}

static inline uint64_t int_div_u64(uint64_t a, uint64_t b)
{
    return b ? a / b : UINT64_MAX;
}

static inline int64_t int_div_s64(int64_t a, int64_t b)
{
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static inline uint64_t int_rem_u64(uint64_t a, uint64_t b)
{
    return b ? a % b : UINT64_MAX;
}

static inline int64_t int_rem_s64(int64_t a, int64_t b)
{
    return b == 0 ? -1 : b == -1 ? 0 : a % b;
}

#define DOT4(TA, TB)                                                          \
    c + (uint32_t)((TA)a * (TB)b) + (uint32_t)((TA)(a >> 8) * (TB)(b >> 8)) + \
        (uint32_t)((TA)(a >> 16) * (TB)(b >> 16)) + (uint32_t)((TA)(a >> 24) * (TB)(b >> 24))
#define DOT2(TA, TB, from) \
    c + (uint32_t)((TA)a * (TB)(b >> (from))) + (uint32_t)((TA)(a >> 16) * (TB)(b >> ((from) + 8)))

// Addition and subtraction with a carry (borrow) in, a bit per lane, and one out for .cc. Within a lane, a
// carry is all ones, that is -1.
#define ADD_R(u, v, carry) ((u) + (v) - (carry))
#define ADD_OVER(u, v, r, carry) ((r) < (u) || ((carry) && (r) == (u)))
#define SUB_R(u, v, carry) ((u) - (v) + (carry))
#define SUB_OVER(u, v, r, carry) ((u) < (v) || ((carry) && (u) == (v)))
#define CARRY(T, bytes, TX, how, x, y, in)                                      \
    LANES_OUT(T, 1);                                                            \
    const TX *as = LANES_SLOT(const TX, w, i->a);                               \
    const TX *bs = LANES_SLOT(const TX, w, i->b);                               \
    _Alignas(64) T ins[32], outs[32];                                           \
    lanes_spread##bytes(ins, in);                                               \
    LANES_EACH(32)                                                              \
    {                                                                           \
        TX a = as[l], b = bs[l];                                                \
        T carry = ins[l], u = x, v = y, r = how##_R(u, v, carry);               \
        outs[l] = how##_OVER(u, v, r, carry) ? (T)-1 : 0;                       \
        o[l] = r;                                                               \
    }                                                                           \
    if (i->flags & LANES_CC)                                                    \
        w->carry = (w->carry & ~w->mask) | (lanes_pack##bytes(outs) & w->mask); \
    LANES_STORE(T, 1)
#define CARRY32(how, in) CARRY(uint32_t, 4, uint32_t, how, a, b, in)
#define CARRY64(how, in) CARRY(uint64_t, 8, uint64_t, how, a, b, in)
#define MAD_CARRY(T, bytes, TX, product, in)    \
    const T *cs = LANES_SLOT(const T, w, i->c); \
    CARRY(T, bytes, TX, ADD, product, cs[l], in)
#define MAD_CARRY32(TX, product, in) MAD_CARRY(uint32_t, 4, TX, product, in)
#define MAD_CARRY64(TX, product, in) MAD_CARRY(uint64_t, 8, TX, product, in)

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_int.def"
