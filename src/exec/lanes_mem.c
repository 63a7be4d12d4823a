// SPDX-License-Identifier: MIT
// Loads and stores of whole warps. Consecutive or identical addresses become one access. Other addresses are
// checked together and then used one by one. Accesses that are forbidden or not that simple go lane by lane
// through access.c, which determines the fault.
#include <string.h>

#include "exec/lanes_mem.h"
#include "exec/access.h"

#define INLINE static inline __attribute__((always_inline))
#if defined __clang__
#define LOOP(n) _Pragma("clang loop vectorize(assume_safety)") for (unsigned l = 0; l < (n); l++)
#else
#define LOOP(n) _Pragma("GCC ivdep") for (unsigned l = 0; l < (n); l++)
#endif
#define LANES_LOOP LOOP(EXEC_LANES)

enum { WORD = 4, ROW = EXEC_LANES * WORD };

INLINE void addresses(const struct exec_warp *w, const struct exec_insn *i, uint64_t *at)
{
    uint64_t offset = i->imm;
    if (i->flags & ACCESS_NO_BASE) {
        offset += access_space(i) == ACCESS_SHARED ? w->block->shared_base : 0;
        LANES_LOOP at[l] = offset;
    } else if (i->flags & ACCESS_A32) {
        const uint32_t *a = (const uint32_t *)(w->regs + i->a);
        LANES_LOOP at[l] = (uint32_t)(a[l] + (uint32_t)offset);
    } else {
        const uint64_t *a = (const uint64_t *)(w->regs + i->a);
        LANES_LOOP at[l] = a[l] + offset;
    }
}

// Half a warp is a row of a 16 x 16 block, the most common shape apart from rows of 32.
enum pattern { SCATTERED, CONSECUTIVE, SAME, HALVES };
enum { HALF = EXEC_LANES / 2 };

struct shape {
    enum pattern all, half[2];
};

INLINE enum pattern half_pattern(const uint64_t *at, unsigned step)
{
    uint64_t first = at[0], row = 0, same = 0;
    for (unsigned l = 0; l < HALF; l++) {
        row |= at[l] ^ (first + (uint64_t)l * step);
        same |= at[l] ^ first;
    }
    return !row ? CONSECUTIVE : !same ? SAME : SCATTERED;
}

INLINE struct shape shape(const uint64_t *at, unsigned step)
{
    struct shape s = {SCATTERED, {half_pattern(at, step), SCATTERED}};
    if (s.half[0] == SCATTERED)
        return s;
    s.half[1] = half_pattern(at + HALF, step);
    if (s.half[1] == SCATTERED)
        return s;
    uint64_t apart = at[HALF] - at[0];
    if (s.half[0] != s.half[1])
        s.all = HALVES;
    else if (s.half[0] == CONSECUTIVE)
        s.all = apart == (uint64_t)HALF * step ? CONSECUTIVE : HALVES;
    else
        s.all = apart == 0 ? SAME : HALVES;
    return s;
}

// Returns the host address of [at, at + size); NULL if the access is forbidden or not that simple.
INLINE char *resolve(const struct exec_warp *w, enum access_space where, uint64_t at, unsigned size,
                     unsigned right)
{
    if (where == ACCESS_SHARED) {
        uint64_t own = at - w->block->shared_base;
        return own + size <= w->block->shared_size && own < UINT32_MAX ? w->block->shared + own : NULL;
    }
    if (where == ACCESS_LOCAL)
        return NULL;
    return space_access(at, size, right) ? space_host(at) : NULL;
}

INLINE uint32_t slot_of(const struct exec_insn *i, unsigned k)
{
    return k == 0 ? i->d : k == 1 ? i->b : k == 2 ? i->c : i->e;
}

// These fill `count` lanes of a register, starting at lane `first`.
#define FILL(D, S)                          \
    do {                                    \
        S value;                            \
        memcpy(&value, from, sizeof value); \
        D *d = (D *)to + first;             \
        D wide = (D)value;                  \
        LOOP(count) d[l] = wide;            \
    } while (0)
#define SPREAD(D, S)                                                   \
    do {                                                               \
        D *d = (D *)to + first;                                        \
        LOOP(count) d[l] = (D) * (const S *)(from + (size_t)l * step); \
    } while (0)

// The ways to convert an element to a register: by log2 of its size, its sign and the register's size.
#define CONVERSIONS(log, DO)                     \
    switch ((log) << 4 | is_signed << 3 | reg) { \
    case 0x00: DO(uint16_t, uint8_t); break;     \
    case 0x08: DO(uint16_t, int8_t); break;      \
    case 0x01: DO(uint32_t, uint8_t); break;     \
    case 0x09: DO(uint32_t, int8_t); break;      \
    case 0x02: DO(uint64_t, uint8_t); break;     \
    case 0x0a: DO(uint64_t, int8_t); break;      \
    case 0x10:                                   \
    case 0x18: DO(uint16_t, uint16_t); break;    \
    case 0x11: DO(uint32_t, uint16_t); break;    \
    case 0x19: DO(uint32_t, int16_t); break;     \
    case 0x12: DO(uint64_t, uint16_t); break;    \
    case 0x1a: DO(uint64_t, int16_t); break;     \
    case 0x21:                                   \
    case 0x29: DO(uint32_t, uint32_t); break;    \
    case 0x22: DO(uint64_t, uint32_t); break;    \
    case 0x2a: DO(uint64_t, int32_t); break;     \
    default: DO(uint64_t, uint64_t); break;      \
    }

INLINE void fill(char *to, unsigned first, unsigned count, const char *from, unsigned log, unsigned is_signed,
                 unsigned reg){CONVERSIONS(log, FILL)}

INLINE void spread(char *to, unsigned first, unsigned count, const char *from, unsigned log,
                   unsigned is_signed, unsigned reg, unsigned step)
{
    CONVERSIONS(log, SPREAD)
}

static void set_lane(char *to, unsigned lane, uint64_t raw, unsigned log, unsigned is_signed, unsigned reg)
{
    if (is_signed)
        raw = (uint64_t)((int64_t)(raw << (64 - (8u << log))) >> (64 - (8u << log)));
    if (reg == 0)
        ((uint16_t *)to)[lane] = (uint16_t)raw;
    else if (reg == 1)
        ((uint32_t *)to)[lane] = (uint32_t)raw;
    else
        ((uint64_t *)to)[lane] = raw;
}

static uint64_t get_lane(const char *from, unsigned lane, unsigned reg)
{
    return reg == 0   ? ((const uint16_t *)from)[lane]
           : reg == 1 ? ((const uint32_t *)from)[lane]
                      : ((const uint64_t *)from)[lane];
}

// --- vectors in global memory ------------------------------------------------------------------------------

// Each lane's vector is one access to global memory: its bytes go through a buffer, where they lie lane after
// lane. Shared memory needs none of this, since one thread runs the block.
enum { BYTES_MOST = EXEC_LANES * 16 };

INLINE bool is_whole(const struct exec_insn *i, enum access_space where)
{
    return access_count(i) > 1 && where != ACCESS_SHARED;
}

// Calls a function with the size of a vector, at last, as a constant.
#define BY_SIZE(size, fn, ...)               \
    do {                                     \
        switch (size) {                      \
        case 2: fn(__VA_ARGS__, 2); break;   \
        case 4: fn(__VA_ARGS__, 4); break;   \
        case 8: fn(__VA_ARGS__, 8); break;   \
        default: fn(__VA_ARGS__, 16); break; \
        }                                    \
    } while (0)

INLINE void row_from_memory(char *bytes, const char *from, unsigned count, unsigned size)
{
    for (unsigned l = 0; l < count; l++)
        access_load_whole(bytes + l * size, from + l * size, size);
}

INLINE void row_to_memory(const char *bytes, char *to, unsigned count, unsigned size)
{
    for (unsigned l = 0; l < count; l++)
        access_store_whole(to + l * size, bytes + l * size, size);
}

INLINE void each_from_memory(char *bytes, uintptr_t base, const uint64_t *at, unsigned size)
{
    for (unsigned l = 0; l < EXEC_LANES; l++)
        access_load_whole(bytes + l * size, (const char *)(base + (uintptr_t)at[l]), size);
}

INLINE void each_to_memory(const char *bytes, uintptr_t base, const uint64_t *at, uint32_t mask,
                           unsigned size)
{
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned l = (unsigned)__builtin_ctz(left);
        access_store_whole((char *)(base + (uintptr_t)at[l]), bytes + l * size, size);
    }
}

// --- lane by lane ------------------------------------------------------------------------------------------

static const struct exec_insn *load_each(struct exec_warp *w, const struct exec_insn *i,
                                         enum access_space where, const uint64_t *at)
{
    unsigned log = access_log(i), n = access_count(i), size = n << log;
    unsigned is_signed = i->flags & ACCESS_SIGNED ? 1 : 0, reg = i->flags >> ACCESS_REG_SHIFT & 3;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        _Alignas(16) char bytes[32];
        const char *from = at[lane] & (size - 1) ? NULL : resolve(w, where, at[lane], size, SPACE_READ);
        if (from)
            access_load_whole(bytes, from, size);
        else if (!access_read(w, i, lane, at[lane], bytes, size))
            return NULL;
        for (unsigned k = 0; k < n; k++) {
            uint64_t raw = 0;
            memcpy(&raw, bytes + (k << log), (size_t)1 << log);
            set_lane(w->regs + slot_of(i, k), lane, raw, log, is_signed, reg);
        }
    }
    return i + 1;
}

static const struct exec_insn *store_each(struct exec_warp *w, const struct exec_insn *i,
                                          enum access_space where, const uint64_t *at)
{
    unsigned log = access_log(i), n = access_count(i), size = n << log,
             reg = i->flags >> ACCESS_REG_SHIFT & 3;
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        _Alignas(16) char bytes[32];
        char *to = at[lane] & (size - 1) ? NULL : resolve(w, where, at[lane], size, SPACE_WRITE);
        for (unsigned k = 0; k < n; k++) {
            uint64_t raw = get_lane(w->regs + slot_of(i, k), lane, reg);
            memcpy(bytes + (k << log), &raw, (size_t)1 << log);
        }
        if (to)
            access_store_whole(to, bytes, size);
        else if (!access_write(w, i, lane, at[lane], bytes, size))
            return NULL;
    }
    return i + 1;
}

// --- scattered accesses ------------------------------------------------------------------------------------

// Gives inactive lanes the address of an active one, so that loops need no condition.
INLINE void fill_inactive(uint64_t *at, uint32_t mask)
{
    uint64_t some = at[__builtin_ctz(mask)];
    LANES_LOOP at[l] = mask >> l & 1 ? at[l] : some;
}

// Finds the base to add to every lane's address to get its host address. Returns false unless all are allowed
// and aligned and share one base.
INLINE bool common_base(const struct exec_warp *w, enum access_space where, const uint64_t *at, unsigned size,
                        unsigned right, uintptr_t *base)
{
    uint64_t least = UINT64_MAX, most = 0, bits = 0;
    for (unsigned l = 0; l < EXEC_LANES; l++) {
        least = at[l] < least ? at[l] : least;
        most = at[l] > most ? at[l] : most;
        bits |= at[l];
    }
    if (bits & (size - 1))
        return false;
    if (where == ACCESS_SHARED) {
        uint64_t low = w->block->shared_base;
        *base = (uintptr_t)w->block->shared - low;
        return least >= low && most < UINT32_MAX && most - low + size <= w->block->shared_size;
    }
    *base = (uintptr_t)space_host(least) - least;
    if (least >> SPACE_COARSE_BITS == most >> SPACE_COARSE_BITS && !(most >> SPACE_BITS)) {
        unsigned r = __atomic_load_n(&space.coarse[least >> SPACE_COARSE_BITS], __ATOMIC_RELAXED);
        if (!(r & SPACE_FINE))
            return (r & right) == right;
    }
    // Host addresses may lie on both sides of the device's range, with device addresses between.
    if (space_is_device(least) != space_is_device(most) || most >> SPACE_BITS ||
        (least < space.device_base) != (most < space.device_base))
        return false;
    unsigned all = right;
    for (unsigned l = 0; l < EXEC_LANES; l++)
        all &= space_rights(at[l]);
    return all == right;
}

#define PICK(D, S)                                                 \
    do {                                                           \
        D *d = (D *)to;                                            \
        if (mask == EXEC_ALL) {                                    \
            LANES_LOOP d[l] = (D) * (const S *)(from + at[l]);     \
        } else {                                                   \
            _Alignas(64) D value[EXEC_LANES];                      \
            LANES_LOOP value[l] = (D) * (const S *)(from + at[l]); \
            LANES_LOOP d[l] = mask >> l & 1 ? value[l] : d[l];     \
        }                                                          \
    } while (0)

INLINE void pick(char *to, uintptr_t from, const uint64_t *at, uint32_t mask, unsigned log,
                 unsigned is_signed, unsigned reg){CONVERSIONS(log, PICK)}

#define SCATTER(D, S)                                            \
    do {                                                         \
        const D *s = (const D *)from;                            \
        if (mask == EXEC_ALL) {                                  \
            for (unsigned l = 0; l < EXEC_LANES; l++)            \
                *(S *)(to + at[l]) = (S)s[l];                    \
        } else {                                                 \
            for (uint32_t left = mask; left; left &= left - 1) { \
                unsigned l = (unsigned)__builtin_ctz(left);      \
                *(S *)(to + at[l]) = (S)s[l];                    \
            }                                                    \
        }                                                        \
    } while (0)

INLINE void scatter(uintptr_t to, const char *from, const uint64_t *at, uint32_t mask, unsigned log,
                    unsigned reg)
{
    const unsigned is_signed = 0;
    CONVERSIONS(log, SCATTER)
}

// Loads `count` lanes whose addresses follow a pattern, n elements each.
INLINE void load_part(struct exec_warp *w, const struct exec_insn *i, enum access_space where, enum pattern p,
                      unsigned first, unsigned count, const char *from, unsigned log)
{
    unsigned n = access_count(i), is_signed = i->flags & ACCESS_SIGNED ? 1 : 0,
             reg = i->flags >> ACCESS_REG_SHIFT & 3;
    _Alignas(64) char bytes[BYTES_MOST];
    if (is_whole(i, where)) {
        BY_SIZE(n << log, row_from_memory, bytes, from, p == SAME ? 1 : count);
        from = bytes;
    }
    for (unsigned k = 0; k < n; k++) {
        char *to = w->regs + slot_of(i, k);
        const char *at = from + (k << log);
        if (p == SAME)
            fill(to, first, count, at, log, is_signed, reg);
        else if (n == 1)
            spread(to, first, count, at, log, is_signed, reg, 1u << log);
        else if (n == 2)
            spread(to, first, count, at, log, is_signed, reg, 2u << log);
        else
            spread(to, first, count, at, log, is_signed, reg, 4u << log);
    }
}

INLINE bool load_pattern(struct exec_warp *w, const struct exec_insn *i, enum access_space where,
                         unsigned log, const uint64_t *at)
{
    unsigned size = access_count(i) << log;
    struct shape s = shape(at, size);
    if (s.all == SCATTERED || (at[0] | at[HALF]) & (size - 1))
        return false;
    if (s.all != HALVES) {
        const char *from = resolve(w, where, at[0], s.all == SAME ? size : size * EXEC_LANES, SPACE_READ);
        if (from)
            load_part(w, i, where, s.all, 0, EXEC_LANES, from, log);
        return from;
    }
    const char *low = resolve(w, where, at[0], s.half[0] == SAME ? size : size * HALF, SPACE_READ);
    const char *high = resolve(w, where, at[HALF], s.half[1] == SAME ? size : size * HALF, SPACE_READ);
    if (!low || !high)
        return false;
    load_part(w, i, where, s.half[0], 0, HALF, low, log);
    load_part(w, i, where, s.half[1], HALF, HALF, high, log);
    return true;
}

INLINE const struct exec_insn *load(struct exec_warp *w, const struct exec_insn *i, enum access_space where,
                                    unsigned log)
{
    _Alignas(64) uint64_t at[EXEC_LANES];
    unsigned n = access_count(i), size = n << log;
    addresses(w, i, at);
    if (w->mask != EXEC_ALL)
        fill_inactive(at, w->mask);
    else if (load_pattern(w, i, where, log, at))
        return i + 1;
    uintptr_t base;
    if (!common_base(w, where, at, size, SPACE_READ, &base))
        return load_each(w, i, where, at);
    _Alignas(64) char bytes[BYTES_MOST];
    if (is_whole(i, where)) {
        BY_SIZE(size, each_from_memory, bytes, base, at);
        LANES_LOOP at[l] = (uint64_t)l * size;
        base = (uintptr_t)bytes;
    }
    for (unsigned k = 0; k < n; k++)
        pick(w->regs + slot_of(i, k), base + (k << log), at, w->mask, log, i->flags & ACCESS_SIGNED ? 1 : 0,
             i->flags >> ACCESS_REG_SHIFT & 3);
    return i + 1;
}

#define GATHER(D, S)                                          \
    do {                                                      \
        const D *s = (const D *)from + first;                 \
        LOOP(count) * (S *)(to + (size_t)l * step) = (S)s[l]; \
    } while (0)

INLINE void unspread(char *to, const char *from, unsigned first, unsigned count, unsigned log, unsigned reg,
                     unsigned step)
{
    const unsigned is_signed = 0;
    CONVERSIONS(log, GATHER)
}

INLINE void store_part(struct exec_warp *w, const struct exec_insn *i, enum access_space where,
                       unsigned first, unsigned count, char *to, unsigned log)
{
    unsigned n = access_count(i), reg = i->flags >> ACCESS_REG_SHIFT & 3;
    bool whole = is_whole(i, where);
    _Alignas(64) char bytes[BYTES_MOST];
    for (unsigned k = 0; k < n; k++) {
        const char *from = w->regs + slot_of(i, k);
        char *at = (whole ? bytes : to) + (k << log);
        if (n == 1)
            unspread(at, from, first, count, log, reg, 1u << log);
        else if (n == 2)
            unspread(at, from, first, count, log, reg, 2u << log);
        else
            unspread(at, from, first, count, log, reg, 4u << log);
    }
    if (whole)
        BY_SIZE(n << log, row_to_memory, bytes, to, count);
}

INLINE bool store_pattern(struct exec_warp *w, const struct exec_insn *i, enum access_space where,
                          unsigned log, const uint64_t *at)
{
    unsigned size = access_count(i) << log;
    struct shape s = shape(at, size);
    if (s.half[0] != CONSECUTIVE || s.half[1] != CONSECUTIVE || (at[0] | at[HALF]) & (size - 1))
        return false;
    if (s.all == CONSECUTIVE) {
        char *to = resolve(w, where, at[0], size * EXEC_LANES, SPACE_WRITE);
        if (to)
            store_part(w, i, where, 0, EXEC_LANES, to, log);
        return to;
    }
    char *low = resolve(w, where, at[0], size * HALF, SPACE_WRITE);
    char *high = resolve(w, where, at[HALF], size * HALF, SPACE_WRITE);
    if (!low || !high)
        return false;
    store_part(w, i, where, 0, HALF, low, log);
    store_part(w, i, where, HALF, HALF, high, log);
    return true;
}

INLINE const struct exec_insn *store(struct exec_warp *w, const struct exec_insn *i, enum access_space where,
                                     unsigned log)
{
    _Alignas(64) uint64_t at[EXEC_LANES];
    unsigned n = access_count(i), size = n << log;
    addresses(w, i, at);
    if (w->mask != EXEC_ALL)
        fill_inactive(at, w->mask);
    else if (store_pattern(w, i, where, log, at))
        return i + 1;
    uintptr_t base;
    if (!common_base(w, where, at, size, SPACE_WRITE, &base))
        return store_each(w, i, where, at);
    unsigned reg = i->flags >> ACCESS_REG_SHIFT & 3;
    if (!is_whole(i, where)) {
        for (unsigned k = 0; k < n; k++)
            scatter(base + (k << log), w->regs + slot_of(i, k), at, w->mask, log, reg);
        return i + 1;
    }
    _Alignas(64) char bytes[BYTES_MOST];
    _Alignas(64) uint64_t offset[EXEC_LANES];
    LANES_LOOP offset[l] = (uint64_t)l * size;
    for (unsigned k = 0; k < n; k++)
        scatter((uintptr_t)bytes + (k << log), w->regs + slot_of(i, k), offset, w->mask, log, reg);
    BY_SIZE(size, each_to_memory, bytes, base, at, w->mask);
    return i + 1;
}

// --- local memory: rows of words ---------------------------------------------------------------------------

static bool is_uniform(const uint64_t *at, uint32_t mask)
{
    uint64_t first = at[__builtin_ctz(mask)], other = 0;
    for (unsigned l = 0; l < EXEC_LANES; l++)
        other |= mask >> l & 1 ? at[l] ^ first : 0;
    return !other;
}

static bool local_addresses(struct exec_warp *w, const struct exec_insn *i, uint64_t *at, uint64_t *first)
{
    if (i->flags & ACCESS_NO_BASE) {
        *first = i->imm + w->frame->local_base;
        LANES_LOOP at[l] = *first;
        return true;
    }
    addresses(w, i, at);
    *first = at[__builtin_ctz(w->mask)];
    return is_uniform(at, w->mask);
}

// Returns whether the access covers whole rows: the same aligned words in every lane.
static bool is_rows(const struct exec_warp *w, const struct exec_insn *i, uint64_t at)
{
    unsigned size = access_count(i) << access_log(i);
    uint32_t have = w->block->grid->local_size;
    return access_log(i) >= 2 && !(at & (size - 1)) && at <= have && size <= have - at;
}

static const struct exec_insn *load_local(struct exec_warp *w, const struct exec_insn *i)
{
    _Alignas(64) uint64_t at[EXEC_LANES];
    uint64_t first;
    unsigned reg = i->flags >> ACCESS_REG_SHIFT & 3, log = access_log(i);
    bool uniform = local_addresses(w, i, at, &first);
    if (!uniform || !is_rows(w, i, first) || (log == 2 && reg != 1))
        return load_each(w, i, ACCESS_LOCAL, at);
    uint32_t mask = w->mask;
    for (unsigned k = 0; k < access_count(i); k++) {
        const uint32_t *row = (const uint32_t *)(w->local + ((first >> 2) + (k << (log - 2))) * ROW);
        char *to = w->regs + slot_of(i, k);
        if (log == 2) {
            uint32_t *d = (uint32_t *)to;
            LANES_LOOP d[l] = mask >> l & 1 ? row[l] : d[l];
        } else {
            uint64_t *d = (uint64_t *)to;
            LANES_LOOP d[l] = mask >> l & 1 ? row[l] | (uint64_t)row[l + EXEC_LANES] << 32 : d[l];
        }
    }
    return i + 1;
}

static const struct exec_insn *store_local(struct exec_warp *w, const struct exec_insn *i)
{
    _Alignas(64) uint64_t at[EXEC_LANES];
    uint64_t first;
    unsigned reg = i->flags >> ACCESS_REG_SHIFT & 3, log = access_log(i);
    bool uniform = local_addresses(w, i, at, &first);
    if (!uniform || !is_rows(w, i, first) || (log == 2 && reg != 1))
        return store_each(w, i, ACCESS_LOCAL, at);
    uint32_t mask = w->mask;
    for (unsigned k = 0; k < access_count(i); k++) {
        uint32_t *row = (uint32_t *)(w->local + ((first >> 2) + (k << (log - 2))) * ROW);
        const char *from = w->regs + slot_of(i, k);
        if (log == 2) {
            const uint32_t *s = (const uint32_t *)from;
            LANES_LOOP row[l] = mask >> l & 1 ? s[l] : row[l];
        } else {
            const uint64_t *s = (const uint64_t *)from;
            LANES_LOOP row[l] = mask >> l & 1 ? (uint32_t)s[l] : row[l];
            LANES_LOOP row[l + EXEC_LANES] = mask >> l & 1 ? (uint32_t)(s[l] >> 32) : row[l + EXEC_LANES];
        }
    }
    return i + 1;
}

// --- 16 bytes in one register: low halves, high halves -----------------------------------------------------

static const struct exec_insn *load_wide(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        uint64_t half[2];
        if (!access_read(w, i, lane, access_address(w, i, lane), half, 16))
            return NULL;
        uint64_t *d = (uint64_t *)(w->regs + i->d);
        d[lane] = half[0];
        d[lane + EXEC_LANES] = half[1];
    }
    return i + 1;
}

static const struct exec_insn *store_wide(struct exec_warp *w, const struct exec_insn *i)
{
    for (uint32_t left = w->mask; left; left &= left - 1) {
        unsigned lane = (unsigned)__builtin_ctz(left);
        const uint64_t *s = (const uint64_t *)(w->regs + i->d);
        uint64_t half[2] = {s[lane], s[lane + EXEC_LANES]};
        if (!access_write(w, i, lane, access_address(w, i, lane), half, 16))
            return NULL;
    }
    return i + 1;
}

// A kernel's parameter is the same for all lanes.
static const struct exec_insn *load_param(struct exec_warp *w, const struct exec_insn *i)
{
    unsigned log = access_log(i), n = access_count(i);
    unsigned is_signed = i->flags & ACCESS_SIGNED ? 1 : 0, reg = i->flags >> ACCESS_REG_SHIFT & 3;
    const char *from = w->block->grid->params + i->imm;
    for (unsigned k = 0; k < n; k++) {
        char *to = w->regs + slot_of(i, k);
        if (w->mask == EXEC_ALL) {
            fill(to, 0, EXEC_LANES, from + (k << log), log, is_signed, reg);
            continue;
        }
        uint64_t raw = 0;
        memcpy(&raw, from + (k << log), (size_t)1 << log);
        for (uint32_t left = w->mask; left; left &= left - 1)
            set_lane(to, (unsigned)__builtin_ctz(left), raw, log, is_signed, reg);
    }
    return i + 1;
}

#define ONE(kind, name, where, log)                                                                      \
    static const struct exec_insn *kind##_##name##_##log(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                                    \
        return kind(w, i, where, log);                                                                   \
    }
#define FOUR(kind, name, where) \
    ONE(kind, name, where, 0) ONE(kind, name, where, 1) ONE(kind, name, where, 2) ONE(kind, name, where, 3)
FOUR(load, generic, ACCESS_GENERIC)
FOUR(load, shared, ACCESS_SHARED)
FOUR(store, generic, ACCESS_GENERIC)
FOUR(store, shared, ACCESS_SHARED)

#define ROWS(kind, name)                                                                        \
    {                                                                                           \
        kind##_##name##_0, kind##_##name##_1, kind##_##name##_2, kind##_##name##_3, kind##_wide \
    }
#define LOCAL(kind)                                                         \
    {                                                                       \
        kind##_local, kind##_local, kind##_local, kind##_local, kind##_wide \
    }

const struct lanes_mem LANES_MEM_NAME(LANES_ISA) = {
    .load = {[ACCESS_GENERIC] = ROWS(load, generic),
             [ACCESS_GLOBAL] = ROWS(load, generic),
             [ACCESS_SHARED] = ROWS(load, shared),
             [ACCESS_LOCAL] = LOCAL(load),
             [ACCESS_PARAM] = {load_param, load_param, load_param, load_param, NULL}},
    .store = {[ACCESS_GENERIC] = ROWS(store, generic),
              [ACCESS_GLOBAL] = ROWS(store, generic),
              [ACCESS_SHARED] = ROWS(store, shared),
              [ACCESS_LOCAL] = LOCAL(store)},
};
