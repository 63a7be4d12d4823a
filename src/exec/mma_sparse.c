// SPDX-License-Identifier: MIT
// mma.sp: A is expanded to the full matrix, with zeros, and multiplied like any other. Infinities and NaNs in
// B must not be multiplied by those zeros.
//
// Which lanes hold the metadata of group g (lanes 4g to 4g + 3), which covers rows g and g + 8; s is the
// selector:
//
//   16 bits and tf32, 32 bytes of k   lane s       its lower half row g, its upper half row g + 8
//                     64 bytes        lanes 2s, 2s + 1: the first and the second half of k, likewise
//   8 bits            32 bytes        lanes 2s, 2s + 1: row g, row g + 8
//                     64 bytes        lanes 0, 1: row g, row g + 8, first half of k; 2, 3: second half
#include <string.h>

#include "exec/matrix.h"
#include "exec/mma.h"

enum { ROWS = 16, GROUPS = 8 };

// Returns four bits of metadata: which two of columns 4q to 4q + 3 of a row are stored, or which of
// 2q and 2q + 1 for tf32.
static unsigned index_bits(const struct matrix_sparse *s, const uint32_t *metadata, unsigned row, unsigned q)
{
    unsigned bits = ptx_type_bits((enum ptx_type)s->product.type[MATRIX_A]), group = row % GROUPS * 4;
    bool two = s->product.shape.k * bits == 64 * 8;
    if (bits == 8)
        return metadata[group + (two ? q / 8 * 2 : s->selector * 2u) + row / GROUPS] >> q % 8 * 4 & 15;
    unsigned lane = two ? s->selector * 2u + q / 4 : s->selector;
    return metadata[group + lane] >> (row / GROUPS * 16 + q % 4 * 4) & 15;
}

// Returns the column in the full A of stored column n of a row.
static unsigned place(const struct matrix_sparse *s, const uint32_t *metadata, unsigned row, unsigned n)
{
    if (s->product.type[MATRIX_A] == PTX_TF32)
        return 2 * n + (index_bits(s, metadata, row, n) & 3) / 2;
    return n / 2 * 4 + (index_bits(s, metadata, row, n / 2) >> n % 2 * 2 & 3);
}

static void make_whole(const struct matrix_sparse *s, const uint32_t *metadata, const uint32_t *half,
                       uint32_t *out)
{
    unsigned k = s->product.shape.k;
    bool bytes = ptx_type_bits((enum ptx_type)s->product.type[MATRIX_A]) == 8;
    memset(out, 0, (bytes ? ROWS * k / 4 : ROWS * k) * sizeof *out);
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned n = 0; n < k / 2; n++) {
            unsigned to = row * k + place(s, metadata, row, n), from = row * k / 2 + n;
            if (bytes)
                ((uint8_t *)out)[to] = ((const uint8_t *)half)[from];
            else
                out[to] = half[from];
        }
}

// As in mma.c, with the stored elements of A only.
static void slow(const struct matrix_sparse *s, const uint32_t *metadata, const uint32_t *half,
                 struct mma_operands *o)
{
    const struct matrix_product *p = &s->product;
    unsigned n = p->shape.n, depth = p->shape.k / 2u;
    enum ptx_type type = (enum ptx_type)p->type[MATRIX_A], of = (enum ptx_type)p->type[MATRIX_D];
    struct mma_number a[MMA_DEPTH], b[MMA_DEPTH];
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned j = 0; j < n; j++) {
            for (unsigned z = 0; z < depth; z++) {
                a[z] = mma_unpack(type, half[i * depth + z]);
                b[z] = mma_unpack(type, o->b[place(s, metadata, i, z) * n + j]);
            }
            o->d[i * n + j] = mma_sum(of, a, b, depth, 2 * mma_fraction(type), of, o->c[i * n + j]);
        }
}

const struct exec_insn *mma_sparse_run(struct exec_warp *w, const struct exec_insn *i)
{
    const struct matrix_sparse *s = i->ptr;
    const struct matrix_product *p = &s->product;
    const uint32_t *metadata = (const uint32_t *)(w->regs + s->metadata);
    const struct exec_insn *next;
    struct mma_operands o;
    uint32_t half[MATRIX_MOST / 2];
    if (!matrix_converge(w, i, &next))
        return next;
    matrix_gather32(w, s->stored, p->slot[MATRIX_A], half);
    matrix_gather32(w, p->map[MATRIX_B], p->slot[MATRIX_B], o.b);
    matrix_gather32(w, p->map[MATRIX_C], p->slot[MATRIX_C], o.c);
    make_whole(s, metadata, half, o.a);
    if (p->type[MATRIX_D] == PTX_S32)
        mma_multiply(p, &o);
    else if (!mma_quick(p, (enum ptx_type)p->type[MATRIX_D], &o))
        slow(s, metadata, half, &o);
    matrix_scatter32(w, p->map[MATRIX_D], p->slot[MATRIX_D], o.d);
    return i + 1;
}
