// SPDX-License-Identifier: MIT
#include <float.h>
#include <stdbool.h>

#include "exec/lanes_row.h"
#include "exec/scalar_bits.h"
#include "exec/sched.h"

#define PRED(value) lanes_put_pred(w, i->d, value)
#define PRED_OF(name) *lanes_pred(w, i->name)

// slct: NaN is not >= 0, -0 is.
static inline bool slct_first(float c, uint32_t flags)
{
    return c >= (flags & LANES_FTZ ? -FLT_MIN + FLT_TRUE_MIN : 0);
}

// Looks up the table's bit for a bit of each source: a chooses a half of the table, then b, then c.
static inline void lop3_loop(uint32_t *o, const uint32_t *as, const uint32_t *bs, const uint32_t *cs,
                             unsigned lut)
{
    uint32_t t[8];
    for (int k = 0; k < 8; k++)
        t[k] = lut >> k & 1 ? UINT32_MAX : 0;
    LANES_EACH(32)
    {
        uint32_t a = as[l], b = bs[l], c = cs[l];
        uint32_t n0 = (c & t[1]) | (~c & t[0]), n1 = (c & t[3]) | (~c & t[2]);
        uint32_t n2 = (c & t[5]) | (~c & t[4]), n3 = (c & t[7]) | (~c & t[6]);
        o[l] = (a & ((b & n3) | (~b & n2))) | (~a & ((b & n1) | (~b & n0)));
    }
}

#define LOP3()                                                                             \
    LANES_OUT(uint32_t, 1);                                                                \
    lop3_loop(o, LANES_SLOT(const uint32_t, w, i->a), LANES_SLOT(const uint32_t, w, i->b), \
              LANES_SLOT(const uint32_t, w, i->c), (unsigned)i->imm & 255);                \
    LANES_STORE(uint32_t, 1)

#define LOP3_PRED(how)                                                                     \
    _Alignas(64) uint32_t r[32], some[32];                                                 \
    lop3_loop(r, LANES_SLOT(const uint32_t, w, i->a), LANES_SLOT(const uint32_t, w, i->b), \
              LANES_SLOT(const uint32_t, w, i->c), (unsigned)i->imm & 255);                \
    LANES_EACH(32) some[l] = r[l] ? UINT32_MAX : 0;                                        \
    uint32_t q = *lanes_pred(w, (uint32_t)(i->imm >> 32));                                 \
    uint32_t *d = LANES_SLOT(uint32_t, w, i->d);                                           \
    lanes_select4(d, r, d, w->mask);                                                       \
    lanes_put_pred(w, i->e, lanes_pack4(some) how q)

#define SHIFT_L(n) ((uint64_t)b << 32 | a) << (uint64_t)(n) >> 32
#define SHIFT_R(n) ((uint64_t)b << 32 | a) >> (uint64_t)(n)

#define SELECT(T, bytes)                                                                            \
    LANES_OUT(T, 1);                                                                                \
    lanes_select##bytes(o, LANES_SLOT(const T, w, i->a), LANES_SLOT(const T, w, i->b), PRED_OF(c)); \
    LANES_STORE(T, 1)

#define SPECIAL(...)                     \
    LANES_OUT(uint32_t, 1);              \
    LANES_EACH(32) o[l] = (__VA_ARGS__); \
    LANES_STORE(uint32_t, 1)
#define UNIFORM(...)                \
    uint32_t uniform = __VA_ARGS__; \
    SPECIAL(uniform)

// Low halves, then high halves.
#define MOV128()                                             \
    uint64_t *d = LANES_SLOT(uint64_t, w, i->d);             \
    const uint64_t *a = LANES_SLOT(const uint64_t, w, i->a); \
    lanes_select8(d, a, d, w->mask);                         \
    lanes_select8(d + 32, a + 32, d + 32, w->mask)

#define PRMT_MODE(s0, s1, s2, s3)                 \
    LOOP3(uint32_t, uint32_t, uint32_t, uint32_t, \
          bits_prmt(a, b, c & 2 ? (c & 1 ? s3 : s2) : (c & 1 ? s1 : s0)))

#define ROW(name, op, variant, types0, types1, may, must, ...) LANES_ROW(name, __VA_ARGS__)
#include "exec/lanes_logic.def"
