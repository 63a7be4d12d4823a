// SPDX-License-Identifier: MIT
#include "exec/pack.h"

#include <stddef.h>

#define LOOP for (unsigned l = 0; l < EXEC_LANES; l++)
#define AT(T, slot) ((T *)(w->regs + (slot)))
#define ON(to, value) (to) = (mask >> l & 1 ? (value) : (to))

// 8-bit parts lie in 16-bit slots.
#define PACK2(name, W, P, bits)                                                                  \
    static const struct exec_insn *pack_##name(struct exec_warp *w, const struct exec_insn *i)   \
    {                                                                                            \
        const P *a = AT(P, i->a), *b = AT(P, i->b);                                              \
        W *d = AT(W, i->d);                                                                      \
        uint32_t mask = w->mask;                                                                 \
        LOOP ON(d[l], (W)((W)(a[l] & (((uint64_t)1 << (bits)) - 1)) | (W)b[l] << (bits)));       \
        return i + 1;                                                                            \
    }                                                                                            \
    static const struct exec_insn *unpack_##name(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                            \
        const W *a = AT(W, i->a);                                                                \
        P *d = AT(P, i->d), *b = AT(P, i->b);                                                    \
        uint32_t mask = w->mask;                                                                 \
        LOOP                                                                                     \
        {                                                                                        \
            W x = a[l];                                                                          \
            ON(d[l], (P)(x & (((uint64_t)1 << (bits)) - 1)));                                    \
            ON(b[l], (P)(x >> (bits) & (((uint64_t)1 << (bits)) - 1)));                          \
        }                                                                                        \
        return i + 1;                                                                            \
    }
PACK2(16_2, uint16_t, uint16_t, 8)
PACK2(32_2, uint32_t, uint16_t, 16)
PACK2(64_2, uint64_t, uint32_t, 32)

#define PACK4(name, W, P, bits)                                                                  \
    static const struct exec_insn *pack_##name(struct exec_warp *w, const struct exec_insn *i)   \
    {                                                                                            \
        const P *a = AT(P, i->a), *b = AT(P, i->b), *c = AT(P, i->c), *e = AT(P, i->e);          \
        W *d = AT(W, i->d), part = (W)(((uint64_t)1 << (bits)) - 1);                             \
        uint32_t mask = w->mask;                                                                 \
        LOOP ON(d[l], (a[l] & part) | (b[l] & part) << (bits) | ((W)c[l] & part) << 2 * (bits) | \
                          (W)e[l] << 3 * (bits));                                                \
        return i + 1;                                                                            \
    }                                                                                            \
    static const struct exec_insn *unpack_##name(struct exec_warp *w, const struct exec_insn *i) \
    {                                                                                            \
        const W *a = AT(W, i->a);                                                                \
        P *d = AT(P, i->d), *b = AT(P, i->b), *c = AT(P, i->c), *e = AT(P, i->e);                \
        W part = (W)(((uint64_t)1 << (bits)) - 1);                                               \
        uint32_t mask = w->mask;                                                                 \
        LOOP                                                                                     \
        {                                                                                        \
            W x = a[l];                                                                          \
            ON(d[l], (P)(x & part));                                                             \
            ON(b[l], (P)(x >> (bits)&part));                                                     \
            ON(c[l], (P)(x >> 2 * (bits)&part));                                                 \
            ON(e[l], (P)(x >> 3 * (bits)&part));                                                 \
        }                                                                                        \
        return i + 1;                                                                            \
    }
PACK4(32_4, uint32_t, uint16_t, 8)
PACK4(64_4, uint64_t, uint16_t, 16)

static const struct exec_insn *pack_128_2(struct exec_warp *w, const struct exec_insn *i)
{
    const uint64_t *a = AT(uint64_t, i->a), *b = AT(uint64_t, i->b);
    uint64_t *d = AT(uint64_t, i->d);
    uint32_t mask = w->mask;
    LOOP
    {
        ON(d[l], a[l]);
        ON(d[l + EXEC_LANES], b[l]);
    }
    return i + 1;
}

static const struct exec_insn *unpack_128_2(struct exec_warp *w, const struct exec_insn *i)
{
    const uint64_t *a = AT(uint64_t, i->a);
    uint64_t *d = AT(uint64_t, i->d), *b = AT(uint64_t, i->b);
    uint32_t mask = w->mask;
    LOOP
    {
        ON(d[l], a[l]);
        ON(b[l], a[l + EXEC_LANES]);
    }
    return i + 1;
}

static const struct exec_insn *pack_128_4(struct exec_warp *w, const struct exec_insn *i)
{
    const uint32_t *a = AT(uint32_t, i->a), *b = AT(uint32_t, i->b), *c = AT(uint32_t, i->c),
                   *e = AT(uint32_t, i->e);
    uint64_t *d = AT(uint64_t, i->d);
    uint32_t mask = w->mask;
    LOOP
    {
        ON(d[l], a[l] | (uint64_t)b[l] << 32);
        ON(d[l + EXEC_LANES], c[l] | (uint64_t)e[l] << 32);
    }
    return i + 1;
}

static const struct exec_insn *unpack_128_4(struct exec_warp *w, const struct exec_insn *i)
{
    const uint64_t *a = AT(uint64_t, i->a);
    uint32_t *d = AT(uint32_t, i->d), *b = AT(uint32_t, i->b), *c = AT(uint32_t, i->c),
             *e = AT(uint32_t, i->e);
    uint32_t mask = w->mask;
    LOOP
    {
        ON(d[l], (uint32_t)a[l]);
        ON(b[l], (uint32_t)(a[l] >> 32));
        ON(c[l], (uint32_t)a[l + EXEC_LANES]);
        ON(e[l], (uint32_t)(a[l + EXEC_LANES] >> 32));
    }
    return i + 1;
}

static const struct {
    unsigned bits, parts;
    exec_fn *pack, *unpack;
} rows[] = {
    {16, 2, pack_16_2, unpack_16_2},    {32, 2, pack_32_2, unpack_32_2}, {32, 4, pack_32_4, unpack_32_4},
    {64, 2, pack_64_2, unpack_64_2},    {64, 4, pack_64_4, unpack_64_4}, {128, 2, pack_128_2, unpack_128_2},
    {128, 4, pack_128_4, unpack_128_4},
};

exec_fn *pack_fn(unsigned bits, unsigned parts)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].bits == bits && rows[k].parts == parts)
            return rows[k].pack;
    return NULL;
}

exec_fn *unpack_fn(unsigned bits, unsigned parts)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].bits == bits && rows[k].parts == parts)
            return rows[k].unpack;
    return NULL;
}
