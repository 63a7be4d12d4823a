// SPDX-License-Identifier: MIT
// Atomic operations, lane by lane. Values are handled as bits; floating-point sums and the like retry until
// no other thread has written in between. All memory orders are sequentially consistent, which costs nothing
// more on x86.
#include "exec/atomic.h"

#include <string.h>

#include "exec/access.h"
#include "exec/scalar_float.h"
#include "exec/scalar_half.h"

// --- new values --------------------------------------------------------------------------------------------

static uint64_t mask_of(unsigned bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

static bool is_less(uint64_t x, uint64_t y, unsigned bits, bool is_signed)
{
    if (!is_signed)
        return x < y;
    unsigned shift = 64 - bits;
    return (int64_t)(x << shift) < (int64_t)(y << shift);
}

static inline uint64_t integer(enum atomic_op op, uint64_t old, uint64_t b, unsigned bits, bool is_signed)
{
    switch (op) {
    case ATOMIC_ADD: return (old + b) & mask_of(bits);
    case ATOMIC_INC: return old >= b ? 0 : old + 1;
    case ATOMIC_DEC: return old == 0 || old > b ? b : old - 1;
    case ATOMIC_MIN: return is_less(b, old, bits, is_signed) ? b : old;
    case ATOMIC_MAX: return is_less(old, b, bits, is_signed) ? b : old;
    case ATOMIC_AND: return old & b;
    case ATOMIC_OR: return old | b;
    case ATOMIC_XOR: return old ^ b;
    default: return b;
    }
}

static uint16_t half(enum atomic_op op, bool brain, uint16_t x, uint16_t y)
{
    float a = brain ? bf16_to_f32(x) : half_to_f32(x), b = brain ? bf16_to_f32(y) : half_to_f32(y), r;
    if (op == ATOMIC_ADD)
        r = a + b;
    else if (a != a || b != b)
        r = a != a ? b : a;
    else if (a == b)
        return op == ATOMIC_MIN ? x | y : x & y;  // zeros differ in their sign
    else
        r = (a < b) == (op == ATOMIC_MIN) ? a : b;
    if (r != r)
        return F16_NAN_BITS;
    return brain ? bf16_from_f32(r) : half_from_f32(r);
}

static uint32_t add_f32(uint32_t x, uint32_t y, bool flush)
{
    float a = f32_of(x), b = f32_of(y);
    if (flush) {
        a = f32_flush(a);
        b = f32_flush(b);
    }
    float r = f32_canonical(a + b);
    return f32_bits(flush ? f32_flush(r) : r);
}

// In global memory the result is the operand if that is NaN, else the value in memory if that is NaN,
// unchanged. In shared memory, where a compiler would emit a loop, the sum is that of add.f64.
static uint64_t add_f64(uint64_t old, uint64_t b, bool global)
{
    double x = f64_of(old), y = f64_of(b), r = x + y;
    if (!global)
        return f64_bits(f64_canonical2(r, y, x));
    return y != y ? b : x != x ? old : r != r ? F64_NAN_BITS : f64_bits(r);
}

static uint64_t combine(uint32_t what, uint64_t old, uint64_t b)
{
    enum atomic_op op = (enum atomic_op)(what & 0xff);
    enum ptx_type type = (enum ptx_type)(what >> ATOMIC_TYPE_SHIFT & 0xff);
    unsigned bits = ptx_type_bits(type);
    if (op == ATOMIC_EXCH)
        return b;
    switch (type) {
    case PTX_F32: return add_f32((uint32_t)old, (uint32_t)b, what & ATOMIC_GLOBAL);
    case PTX_F64: return add_f64(old, b, what & ATOMIC_GLOBAL);
    case PTX_F16:
    case PTX_BF16: return half(op, type == PTX_BF16, (uint16_t)old, (uint16_t)b);
    case PTX_F16X2:
    case PTX_BF16X2:
        return half(op, type == PTX_BF16X2, (uint16_t)old, (uint16_t)b) |
               (uint32_t)half(op, type == PTX_BF16X2, (uint16_t)(old >> 16), (uint16_t)(b >> 16)) << 16;
    default: return integer(op, old, b, bits, ptx_type_class(type) == PTX_CLASS_SINT);
    }
}

bool atomic_knows(enum atomic_op op, enum ptx_type type)
{
    unsigned bits = ptx_type_bits(type);
    switch (ptx_type_class(type)) {
    case PTX_CLASS_FLOAT:
        return type != PTX_TF32 &&
               (op == ATOMIC_ADD || (bits == 16 && (op == ATOMIC_MIN || op == ATOMIC_MAX)));
    case PTX_CLASS_PACKED:
        return (type == PTX_F16X2 || type == PTX_BF16X2) &&
               (op == ATOMIC_ADD || op == ATOMIC_MIN || op == ATOMIC_MAX);
    case PTX_CLASS_BITS:
        if (bits == 128)
            return op == ATOMIC_CAS || op == ATOMIC_EXCH;
        return bits == 16 ? op == ATOMIC_CAS : bits >= 32 && bits <= 64;
    default: return bits == 32 || bits == 64;
    }
}

// --- on memory ---------------------------------------------------------------------------------------------

#define RETRY(T)                                                                                           \
    do {                                                                                                   \
        T seen = __atomic_load_n((T *)at, __ATOMIC_RELAXED);                                               \
        for (;;) {                                                                                         \
            T to = op == ATOMIC_CAS ? (T)(seen == (T)b ? (T)c : seen) : (T)combine(what, seen, b);         \
            if (__atomic_compare_exchange_n((T *)at, &seen, to, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) \
                return seen;                                                                               \
        }                                                                                                  \
    } while (0)

static uint64_t apply(char *at, uint32_t what, unsigned log, uint64_t b, uint64_t c)
{
    enum atomic_op op = (enum atomic_op)(what & 0xff);
    if (log == 1)
        RETRY(uint16_t);
    if (log == 2)
        RETRY(uint32_t);
    RETRY(uint64_t);
}

// Local memory belongs to one lane, so the operation need not be atomic.
static bool apply_private(struct exec_warp *w, const struct exec_insn *i, unsigned lane, uint64_t address,
                          uint64_t b, uint64_t c, uint64_t *old)
{
    unsigned size = 1u << access_log(i);
    *old = 0;
    if (!access_read(w, i, lane, address, old, size))
        return false;
    bool cas = (i->e & 0xff) == ATOMIC_CAS;
    uint64_t to = cas ? (*old == b ? c : *old) : combine(i->e, *old, b);
    return access_write(w, i, lane, address, &to, size);
}

static uint64_t get(const char *regs, uint32_t slot, unsigned log, unsigned lane)
{
    const char *at = regs + slot;
    return log == 1   ? ((const uint16_t *)at)[lane]
           : log == 2 ? ((const uint32_t *)at)[lane]
                      : ((const uint64_t *)at)[lane];
}

static void set(char *regs, uint32_t slot, unsigned log, unsigned lane, uint64_t value)
{
    char *at = regs + slot;
    if (log == 1)
        ((uint16_t *)at)[lane] = (uint16_t)value;
    else if (log == 2)
        ((uint32_t *)at)[lane] = (uint32_t)value;
    else
        ((uint64_t *)at)[lane] = value;
}

// --- 16 bytes ----------------------------------------------------------------------------------------------

// Returns true if *at was `seen` and is now `to`; otherwise stores the current value in `seen`.
static bool swap16(char *at, uint64_t seen[2], const uint64_t to[2])
{
    bool done;
    __asm__ __volatile__("lock cmpxchg16b %1"
                         : "=@ccz"(done), "+m"(*(__int128 *)at), "+a"(seen[0]), "+d"(seen[1])
                         : "b"(to[0]), "c"(to[1])
                         : "memory");
    return done;
}

static bool wide(struct exec_warp *w, const struct exec_insn *i, unsigned lane)
{
    const uint64_t *b = (const uint64_t *)(w->regs + i->b), *c = (const uint64_t *)(w->regs + i->c);
    char *at = access_atomic(w, i, lane, access_address(w, i, lane), 16);
    if (!at)
        return w->state != WARP_FAULT && fault_raise(w, i, EXEC_INVALID_ADDRESS_SPACE);
    bool cas = (i->e & 0xff) == ATOMIC_CAS;
    uint64_t old[2] = {0, 0};
    if (cas) {
        uint64_t to[2] = {c[lane], c[lane + EXEC_LANES]};
        old[0] = b[lane];
        old[1] = b[lane + EXEC_LANES];
        swap16(at, old, to);
    } else {
        uint64_t to[2] = {b[lane], b[lane + EXEC_LANES]};
        while (!swap16(at, old, to))
            continue;
    }
    if (!(i->e & ATOMIC_NO_RESULT)) {
        uint64_t *d = (uint64_t *)(w->regs + i->d);
        d[lane] = old[0];
        d[lane + EXEC_LANES] = old[1];
    }
    return true;
}

// --- fast paths --------------------------------------------------------------------------------------------

// Returns the host address of the lane's value if the access is simple and allowed; NULL: access_host must
// check it.
static char *quick(const struct exec_warp *w, const struct exec_insn *i, unsigned lane, unsigned size)
{
    uint64_t address = access_address(w, i, lane);
    if (address & (size - 1))
        return NULL;
    if (access_space(i) == ACCESS_SHARED) {
        uint64_t own = address - w->block->shared_base;
        return own + size <= w->block->shared_size && own < UINT32_MAX ? w->block->shared + own : NULL;
    }
    return space_access(address, size, SPACE_READ | SPACE_WRITE) ? space_host(address) : NULL;
}

// One thread runs the block, so no other thread accesses its shared memory meanwhile.
#define PLAIN(T)                                                                      \
    do {                                                                              \
        T seen = *(T *)at;                                                            \
        bool cas = (what & 0xff) == ATOMIC_CAS;                                       \
        *(T *)at = cas ? (T)(seen == (T)b ? (T)c : seen) : (T)combine(what, seen, b); \
        return seen;                                                                  \
    } while (0)

static uint64_t apply_alone(char *at, uint32_t what, unsigned log, uint64_t b, uint64_t c)
{
    if (log == 1)
        PLAIN(uint16_t);
    if (log == 2)
        PLAIN(uint32_t);
    PLAIN(uint64_t);
}

static bool one(struct exec_warp *w, const struct exec_insn *i, unsigned lane)
{
    unsigned log = access_log(i);
    if (log == 4)
        return wide(w, i, lane);
    uint64_t old, b = get(w->regs, i->b, log, lane), c = i->c ? get(w->regs, i->c, log, lane) : 0;
    char *at = quick(w, i, lane, 1u << log);
    if (at) {
        old = (access_space(i) == ACCESS_SHARED ? apply_alone : apply)(at, i->e, log, b, c);
    } else {
        uint64_t address = access_address(w, i, lane);
        at = access_atomic(w, i, lane, address, 1u << log);
        if (at)
            old = apply(at, i->e, log, b, c);
        else if (w->state == WARP_FAULT || !apply_private(w, i, lane, address, b, c, &old))
            return false;
    }
    if (!(i->e & ATOMIC_NO_RESULT))
        set(w->regs, i->d, log, lane, old);
    return true;
}

static const struct exec_insn *run(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1)
        if (!one(w, i, (unsigned)__builtin_ctz(left)))
            return NULL;
    return i + 1;
}

// Finds the host addresses of all active lanes. Returns false if one of them needs access_host.
static bool quick_all(const struct exec_warp *w, const struct exec_insn *i, unsigned size, char **at)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        at[lane] = quick(w, i, lane, size);
        if (!at[lane])
            return false;
    }
    return true;
}

#define INLINE static inline __attribute__((always_inline))

// Integer sums, by far the most frequent. Consecutive active lanes with the same address share one access.
#define SUM(T, bits)                                                                                   \
    static const struct exec_insn *sum_##bits(struct exec_warp *w, const struct exec_insn *i)          \
    {                                                                                                  \
        bool shared = access_space(i) == ACCESS_SHARED, result = !(i->e & ATOMIC_NO_RESULT);           \
        char *at[EXEC_LANES];                                                                          \
        if (!quick_all(w, i, sizeof(T), at))                                                           \
            return run(w, i);                                                                          \
        T *d = (T *)(w->regs + i->d), before[EXEC_LANES];                                              \
        const T *b = (const T *)(w->regs + i->b);                                                      \
        for (uint32_t left = w->mask; left;) {                                                         \
            unsigned lane = (unsigned)__builtin_ctz(left);                                             \
            T *to = (T *)at[lane], sum = 0, old;                                                       \
            uint32_t same = 0;                                                                         \
            for (; left && at[lane = (unsigned)__builtin_ctz(left)] == (char *)to; left &= left - 1) { \
                before[lane] = sum;                                                                    \
                sum += b[lane];                                                                        \
                same |= left & -left;                                                                  \
            }                                                                                          \
            if (shared) {                                                                              \
                old = *to;                                                                             \
                *to = old + sum;                                                                       \
            } else {                                                                                   \
                old = __atomic_fetch_add(to, sum, __ATOMIC_SEQ_CST);                                   \
            }                                                                                          \
            for (; result && same; same &= same - 1) {                                                 \
                lane = (unsigned)__builtin_ctz(same);                                                  \
                d[lane] = old + before[lane];                                                          \
            }                                                                                          \
        }                                                                                              \
        return i + 1;                                                                                  \
    }
SUM(uint32_t, 32)
SUM(uint64_t, 64)

// Any other integer operation, specialised at compile time.
#define STEP(T, bits)                                                                                       \
    INLINE T step_##bits(T *at, enum atomic_op op, bool is_signed, T b, T c, bool shared)                   \
    {                                                                                                       \
        if (!shared && op == ATOMIC_EXCH)                                                                   \
            return __atomic_exchange_n(at, b, __ATOMIC_SEQ_CST);                                            \
        if (!shared && op == ATOMIC_CAS) {                                                                  \
            __atomic_compare_exchange_n(at, &b, c, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);              \
            return b;                                                                                       \
        }                                                                                                   \
        T seen = __atomic_load_n(at, __ATOMIC_RELAXED);                                                     \
        for (;;) {                                                                                          \
            T to = op == ATOMIC_CAS ? (seen == b ? c : seen) : (T)integer(op, seen, b, bits, is_signed);    \
            if (shared) {                                                                                   \
                *at = to;                                                                                   \
                return seen;                                                                                \
            }                                                                                               \
            if (__atomic_compare_exchange_n(at, &seen, to, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))       \
                return seen;                                                                                \
        }                                                                                                   \
    }                                                                                                       \
    INLINE const struct exec_insn *steps_##bits(struct exec_warp *w, const struct exec_insn *i,             \
                                                enum atomic_op op, bool is_signed)                          \
    {                                                                                                       \
        bool shared = access_space(i) == ACCESS_SHARED, result = !(i->e & ATOMIC_NO_RESULT);                \
        char *at[EXEC_LANES];                                                                               \
        if (!quick_all(w, i, sizeof(T), at))                                                                \
            return run(w, i);                                                                               \
        T *d = (T *)(w->regs + i->d);                                                                       \
        const T *b = (const T *)(w->regs + i->b), *c = (const T *)(w->regs + i->c);                         \
        for (uint32_t left = w->mask; left; left &= left - 1) {                                             \
            unsigned lane = (unsigned)__builtin_ctz(left);                                                  \
            T old =                                                                                         \
                step_##bits((T *)at[lane], op, is_signed, b[lane], op == ATOMIC_CAS ? c[lane] : 0, shared); \
            if (result)                                                                                     \
                d[lane] = old;                                                                              \
        }                                                                                                   \
        return i + 1;                                                                                       \
    }
STEP(uint32_t, 32)
STEP(uint64_t, 64)

#define ROW(name, op, is_signed)                                                             \
    static const struct exec_insn *name##_32(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                        \
        return steps_32(w, i, op, is_signed);                                                \
    }                                                                                        \
    static const struct exec_insn *name##_64(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                        \
        return steps_64(w, i, op, is_signed);                                                \
    }
ROW(inc, ATOMIC_INC, false)
ROW(dec, ATOMIC_DEC, false)
ROW(min_u, ATOMIC_MIN, false)
ROW(min_s, ATOMIC_MIN, true)
ROW(max_u, ATOMIC_MAX, false)
ROW(max_s, ATOMIC_MAX, true)
ROW(and, ATOMIC_AND, false)
ROW(or, ATOMIC_OR, false)
ROW(xor, ATOMIC_XOR, false)
ROW(exch, ATOMIC_EXCH, false)
ROW(cas, ATOMIC_CAS, false)

unsigned atomic_log(uint32_t what)
{
    return (unsigned)__builtin_ctz(ptx_type_bits((enum ptx_type)(what >> ATOMIC_TYPE_SHIFT & 0xff)) / 8);
}

void atomic_apply(char *at, uint32_t what, const void *operand)
{
    uint64_t b = 0;
    memcpy(&b, operand, (size_t)1 << atomic_log(what));
    apply(at, what, atomic_log(what), b, 0);
}

exec_fn *atomic_fn(enum atomic_op op, enum ptx_type type)
{
    // Indexed by operation, 64 bits, signed.
    static exec_fn *const rows[][2][2] = {
        [ATOMIC_ADD] = {{sum_32, sum_32}, {sum_64, sum_64}},
        [ATOMIC_INC] = {{inc_32, inc_32}, {inc_64, inc_64}},
        [ATOMIC_DEC] = {{dec_32, dec_32}, {dec_64, dec_64}},
        [ATOMIC_MIN] = {{min_u_32, min_s_32}, {min_u_64, min_s_64}},
        [ATOMIC_MAX] = {{max_u_32, max_s_32}, {max_u_64, max_s_64}},
        [ATOMIC_AND] = {{and_32, and_32}, {and_64, and_64}},
        [ATOMIC_OR] = {{or_32, or_32}, {or_64, or_64}},
        [ATOMIC_XOR] = {{xor_32, xor_32}, {xor_64, xor_64}},
        [ATOMIC_EXCH] = {{exch_32, exch_32}, {exch_64, exch_64}},
        [ATOMIC_CAS] = {{cas_32, cas_32}, {cas_64, cas_64}},
    };
    unsigned bits = ptx_type_bits(type);
    enum ptx_type_class class = ptx_type_class(type);
    bool is_integer = class == PTX_CLASS_UINT || class == PTX_CLASS_SINT || class == PTX_CLASS_BITS;
    if (!is_integer || (bits != 32 && bits != 64))
        return run;
    return rows[op][bits == 64][class == PTX_CLASS_SINT];
}

bool atomic_is(const struct exec_insn *i)
{
    // In other instructions e may hold any value.
    uint32_t op = i->e & ((1u << ATOMIC_TYPE_SHIFT) - 1), type = i->e >> ATOMIC_TYPE_SHIFT & 0xff;
    return op <= ATOMIC_CAS && type < PTX_TYPE_COUNT &&
           i->fn == atomic_fn((enum atomic_op)op, (enum ptx_type)type);
}

const struct exec_insn *atomic_fence(struct exec_warp *w, const struct exec_insn *i)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return i + 1;
}
