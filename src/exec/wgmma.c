// SPDX-License-Identifier: MIT
#include "exec/wgmma.h"

#include <string.h>

#include "exec/access.h"
#include "exec/mma.h"
#include "exec/sched.h"

// PIECE: bytes that are contiguous in every layout.
enum { ROWS = 16, PIECE = 16, WARPS = 4 };

struct source {
    uint64_t start, leading, stride;
    unsigned swizzle;  // 0 to 3: pieces are permuted within spans of 16 << swizzle bytes
    unsigned size;     // bytes of an element
    bool by_row;
};

static bool read_descriptor(uint64_t bits, unsigned size, bool by_row, struct source *s)
{
    static const uint8_t swizzles[4] = {0, 3, 2, 1};
    *s = (struct source){.start = (bits & 0x3fff) << 4,
                         .leading = (bits >> 16 & 0x3fff) << 4,
                         .stride = (bits >> 32 & 0x3fff) << 4,
                         .swizzle = swizzles[bits >> 62],
                         .size = size,
                         .by_row = by_row};
    // A pattern with a base offset is not supported.
    return !(bits >> 49 & 7);
}

// Returns the address of element (row, k). Eight lines of a span form an atom; by rows, lines are k, and rows
// go along the span.
static uint64_t address_of(const struct source *s, unsigned row, unsigned k)
{
    unsigned along = (s->by_row ? row : k) * s->size, line = s->by_row ? k : row, span = PIECE << s->swizzle;
    uint64_t at = s->start + (uint64_t)(line % 8) * span + along % PIECE;
    if (!s->swizzle)
        at += along / PIECE * (s->by_row ? s->stride : s->leading) +
              line / 8 * (s->by_row ? s->leading : s->stride);
    else if (s->by_row)
        at += along % span / PIECE * PIECE + along / span * s->leading + line / 8 * s->stride;
    else
        at += along / PIECE * PIECE + line / 8 * s->stride;
    return at ^ (at >> 7 & ((1u << s->swizzle) - 1)) << 4;
}

// Reads an element, or four bytes along k. Returns false after a fault of w.
static bool element(struct exec_warp *w, const struct exec_insn *i, const struct source *s, unsigned row,
                    unsigned k, uint32_t *out)
{
    unsigned lane = (unsigned)__builtin_ctz(w->mask), size = s->size == 1 ? 4 : s->size;
    *out = 0;
    // A descriptor has no bits for a block of the cluster.
    return access_read(w, i + 1, lane, w->block->shared_base + address_of(s, row, k), out, size);
}

enum { DEPTH = 32 };  // bytes of k

// Reads rows of A, or columns of B, as words in mma.c's layout. Returns false after a fault of w.
static bool read_matrix(struct exec_warp *w, const struct exec_insn *i, const struct source *s,
                        unsigned first, unsigned rows, bool is_b, uint32_t *out)
{
    unsigned step = s->size == 1 ? 4 : 1, words = DEPTH / s->size / step;
    for (unsigned r = 0; r < rows; r++)
        for (unsigned z = 0; z < words; z++)
            if (!element(w, i, s, first + r, z * step, &out[is_b ? z * rows + r : r * words + z]))
                return false;
    return true;
}

// Returns the bytes of an element; bits count as bytes.
static unsigned size_of(enum ptx_type type)
{
    return type == PTX_B1 ? 1 : ptx_type_bits(type) / 8;
}

static void negate(enum ptx_type type, uint32_t *v, unsigned rows)
{
    unsigned size = size_of(type), n = rows * (DEPTH / (size == 1 ? 4 : size));
    uint32_t sign = size == 1 ? 0x80808080 : size == 2 ? 0x8000 : 0x80000000;
    for (unsigned k = 0; k < n; k++)
        v[k] ^= sign;
}

static uint64_t uniform(const struct exec_warp *w, uint32_t slot)
{
    return ((const uint64_t *)(w->regs + slot))[__builtin_ctz(w->mask)];
}

static bool read_a(struct exec_warp *w, const struct exec_insn *i, const struct wgmma *g, uint32_t *out)
{
    const struct matrix_product *p = &g->product;
    enum ptx_type type = (enum ptx_type)p->type[MATRIX_A];
    struct source s;
    if (g->a_in_registers) {
        matrix_gather32(w, p->map[MATRIX_A], p->slot[MATRIX_A], out);
    } else {
        if (!read_descriptor(uniform(w, g->a), size_of(type), g->a_by_row, &s))
            return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
        if (!read_matrix(w, i, &s, w->index % WARPS * ROWS, ROWS, false, out))
            return false;
    }
    if (g->a_negated)
        negate(type, out, ROWS);
    return true;
}

const struct exec_insn *wgmma_run(struct exec_warp *w, const struct exec_insn *i)
{
    const struct wgmma *g = i->ptr;
    const struct matrix_product *p = &g->product;
    const struct exec_insn *next;
    enum ptx_type type = (enum ptx_type)p->type[MATRIX_B];
    struct mma_operands o;
    struct source s;
    if (!matrix_converge(w, i, &next))
        return next;
    if (!read_descriptor(uniform(w, g->b), size_of(type), g->b_by_row, &s))
        return fault_raise(w, i, EXEC_ILLEGAL_INSTRUCTION);
    if (!read_a(w, i, g, o.a))
        return NULL;
    bool adds = g->always == 2 ? *(const uint32_t *)(w->regs + g->adds) & w->mask : g->always;
    for (unsigned n = 0; n < g->n; n += WGMMA_COLUMNS) {
        const uint32_t *d = g->d + n / WGMMA_COLUMNS * p->map[MATRIX_D]->nregs;
        if (!read_matrix(w, i, &s, n, WGMMA_COLUMNS, true, o.b))
            return NULL;
        if (g->b_negated)
            negate(type, o.b, WGMMA_COLUMNS);
        if (adds)
            matrix_gather32(w, p->map[MATRIX_D], d, o.c);
        else
            memset(o.c, 0, sizeof o.c);
        mma_multiply(p, &o);
        matrix_scatter32(w, p->map[MATRIX_D], d, o.d);
    }
    return i + 2;
}
