// SPDX-License-Identifier: MIT
// mma and wmma.mma: from registers to products and back. mma.h describes the arithmetic.
#include "exec/mma.h"

#include <string.h>

#include "exec/exec.h"
#include "exec/matrix.h"
#include "exec/scalar_half.h"

enum { EIGHTS = 4 };  // products of m8n8k4 of f16

static const struct mma_lanes *chosen(void)
{
    static const struct {
        const char *name;
        const struct mma_lanes *lanes;
    } sets[] = {
#ifdef LANES_HAVE_avx512
        {"avx512", &mma_lanes_avx512},
#endif
#ifdef LANES_HAVE_avx2
        {"avx2", &mma_lanes_avx2},
#endif
    };
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        if (!strcmp(sets[k].name, exec_lanes_name()))
            return sets[k].lanes;
    return &mma_lanes_plain;
}

// --- floating point ----------------------------------------------------------------------------------------

// Returns the depth of one product: wmma of tf32 is two products of depth four, one after the other.
static unsigned piece(const struct matrix_product *p)
{
    return p->type[MATRIX_A] == PTX_TF32 && p->map[MATRIX_A]->kind.warp_level ? 4 : p->shape.k;
}

bool mma_quick(const struct matrix_product *p, enum ptx_type of, struct mma_operands *o)
{
    const struct mma_lanes *lanes = chosen();
    enum ptx_type type = (enum ptx_type)p->type[MATRIX_A];
    unsigned left = 23 - mma_fraction(of);
    struct mma_finite f;
    f.m = p->shape.m;
    f.n = p->shape.n;
    f.k = p->shape.k;
    f.count = piece(p);
    f.fraction = 2 * mma_fraction(type);
    if (!lanes->unpack(type, o->a, f.m * f.k, 0, f.a, f.a_exponent) ||
        !lanes->unpack(type, o->b, f.k * f.n, 0, f.b, f.b_exponent))
        return false;
    for (f.first = 0; f.first < f.k; f.first += f.count) {
        if (!lanes->unpack(of, f.first ? o->d : o->c, f.m * f.n, left, f.c, f.c_exponent))
            return false;
        lanes->finite(&f);
        for (unsigned k = 0; k < f.m * f.n; k++)
            o->d[k] = mma_result(of, f.sum[k]);
    }
    return true;
}

static void float_slow(const struct matrix_product *p, enum ptx_type of, struct mma_operands *o)
{
    unsigned m = p->shape.m, n = p->shape.n, k = p->shape.k;
    enum ptx_type type = (enum ptx_type)p->type[MATRIX_A];
    struct mma_number a[MMA_DEPTH], b[MMA_DEPTH];
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            for (unsigned z = 0; z < k; z++) {
                a[z] = mma_unpack(type, o->a[i * k + z]);
                b[z] = mma_unpack(type, o->b[z * n + j]);
            }
            uint32_t sum = o->c[i * n + j];
            for (unsigned z = 0; z < k; z += piece(p))
                sum = mma_sum(of, a + z, b + z, piece(p), 2 * mma_fraction(type), of, sum);
            o->d[i * n + j] = sum;
        }
}

// If the types of C and D differ, the product is computed in f32, and f16 is converted.
static void floats(const struct matrix_product *p, struct mma_operands *o)
{
    bool mixed = p->type[MATRIX_C] != p->type[MATRIX_D];
    unsigned n = p->shape.m * p->shape.n;
    enum ptx_type of = mixed ? PTX_F32 : (enum ptx_type)p->type[MATRIX_D];
    for (unsigned k = 0; mixed && p->type[MATRIX_C] == PTX_F16 && k < n; k++)
        o->c[k] = f32_bits(half_to_f32((uint16_t)o->c[k]));
    if (!mma_quick(p, of, o))
        float_slow(p, of, o);
    for (unsigned k = 0; mixed && p->type[MATRIX_D] == PTX_F16 && k < n; k++)
        o->d[k] = half_from_f32(f32_of(o->d[k]));
}

// An H200's mma has no 8-bit floats: they are converted to f16, the lower two of each four bytes are
// multiplied and summed, then the upper two, and C is added last, rounded to nearest.
static uint32_t byte_sum(const struct matrix_product *p, const struct mma_number *a,
                         const struct mma_number *b, uint32_t c)
{
    unsigned half = p->shape.k / 2u;
    unsigned fraction =
        mma_fraction((enum ptx_type)p->type[MATRIX_A]) + mma_fraction((enum ptx_type)p->type[MATRIX_B]);
    enum ptx_type to = (enum ptx_type)p->type[MATRIX_D];
    uint32_t sum = mma_sum(to, a, b, half, fraction, to, 0);
    sum = mma_sum(to, a + half, b + half, half, fraction, to, sum);
    if (to == PTX_F16)
        return half_from_f32(half_to_f32((uint16_t)sum) + half_to_f32((uint16_t)c));
    return f32_bits(f32_canonical(f32_of(sum) + f32_of(c)));
}

// wgmma has 8-bit floats.
static void group_bytes(const struct matrix_product *p, struct mma_operands *o)
{
    unsigned m = p->shape.m, n = p->shape.n, words = p->shape.k / 4u;
    uint32_t column[MMA_DEPTH / 4];
    for (unsigned j = 0; j < n; j++) {
        for (unsigned z = 0; z < words; z++)
            column[z] = o->b[z * n + j];
        for (unsigned i = 0; i < m; i++)
            o->d[i * n + j] =
                mma_byte_sum((enum ptx_type)p->type[MATRIX_D], (enum ptx_type)p->type[MATRIX_A],
                             (enum ptx_type)p->type[MATRIX_B], (const uint8_t *)(o->a + i * words),
                             (const uint8_t *)column, p->shape.k, o->c[i * n + j]);
    }
}

static void bytes(const struct matrix_product *p, struct mma_operands *o)
{
    unsigned m = p->shape.m, n = p->shape.n, k = p->shape.k, words = k / 4;
    struct mma_number a[MMA_DEPTH], b[MMA_DEPTH];
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            for (unsigned z = 0; z < k; z++) {
                unsigned shift = z % 4 * 8, at = z % 4 / 2 * (k / 2) + z / 4 * 2 + z % 2;
                a[at] = mma_unpack((enum ptx_type)p->type[MATRIX_A], o->a[i * words + z / 4] >> shift & 255);
                b[at] = mma_unpack((enum ptx_type)p->type[MATRIX_B], o->b[z / 4 * n + j] >> shift & 255);
            }
            o->d[i * n + j] = byte_sum(p, a, b, o->c[i * n + j]);
        }
}

// m8n8k4 of f16 is not an instruction of an H200 either; it becomes several f32 instructions.
static uint32_t eight_sum(const struct matrix_product *p, const float *a, const float *b, uint32_t c)
{
    float start = p->type[MATRIX_C] == PTX_F16 ? half_to_f32((uint16_t)c) : f32_of(c);
    if (p->type[MATRIX_D] == PTX_F16) {
        float low = f32_fma(a[1], b[1], a[0] * b[0]), high = f32_fma(a[3], b[3], a[2] * b[2]);
        return half_from_f32((low + start) + high);
    }
    float sum = a[0] * b[0];
    for (unsigned k = 1; k < 4; k++)
        sum = f32_fma(a[k], b[k], sum);
    return f32_bits(f32_canonical(sum + start));
}

static void eights(const struct matrix_product *p, struct mma_operands *o)
{
    for (unsigned e = 0; e < EIGHTS * 64; e++) {
        unsigned product = e / 64, i = e / 8 % 8, j = e % 8;
        float a[4], b[4];
        for (unsigned k = 0; k < 4; k++) {
            a[k] = half_to_f32((uint16_t)o->a[product * 32 + i * 4 + k]);
            b[k] = half_to_f32((uint16_t)o->b[product * 32 + k * 8 + j]);
        }
        o->d[e] = eight_sum(p, a, b, o->c[e]);
    }
}

// --- integers ----------------------------------------------------------------------------------------------

static void bits(const struct matrix_product *p, struct mma_operands *o)
{
    unsigned m = p->shape.m, n = p->shape.n, words = p->map[MATRIX_A]->columns;
    for (unsigned i = 0; i < m; i++)
        for (unsigned j = 0; j < n; j++) {
            uint32_t sum = o->c[i * n + j];
            for (unsigned z = 0; z < words; z++) {
                uint32_t x = o->a[i * words + z], y = o->b[z * n + j];
                sum += (uint32_t)__builtin_popcount(p->by_and ? x & y : x ^ y);
            }
            o->d[i * n + j] = sum;
        }
}

// Widens 4-bit or 8-bit numbers in words along k: `from` has `count` words, `apart` words from each other.
static void widen(enum ptx_type type, const uint32_t *from, unsigned count, unsigned apart, int16_t *to)
{
    unsigned size = ptx_type_bits(type);
    bool is_signed = ptx_type_class(type) == PTX_CLASS_SINT;
    for (unsigned z = 0; z < count; z++)
        for (unsigned at = 0; at < 32; at += size) {
            uint32_t raw = from[(size_t)z * apart] << (32 - size - at);
            *to++ = (int16_t)(is_signed ? (int32_t)raw >> (32 - size) : (int32_t)(raw >> (32 - size)));
        }
}

static void integers(const struct matrix_product *p, struct mma_operands *o)
{
    enum { MOST = 16 * 64 };
    int16_t a[MOST], b[MOST];
    unsigned m = p->shape.m, n = p->shape.n, k = p->shape.k, words = p->map[MATRIX_A]->columns;
    for (unsigned i = 0; i < m; i++)
        widen((enum ptx_type)p->type[MATRIX_A], o->a + i * words, words, 1, a + (size_t)i * k);
    for (unsigned j = 0; j < n; j++)
        widen((enum ptx_type)p->type[MATRIX_B], o->b + j, words, n, b + (size_t)j * k);
    chosen()->integer(m, n, k, a, b, o->c, p->saturates, o->d);
}

// --- all types ---------------------------------------------------------------------------------------------

void mma_multiply(const struct matrix_product *p, struct mma_operands *o)
{
    switch (p->type[MATRIX_A]) {
    case PTX_B1: bits(p, o); return;
    case PTX_S4:
    case PTX_U4:
    case PTX_S8:
    case PTX_U8: integers(p, o); return;
    case PTX_E4M3:
    case PTX_E5M2: p->of_wgmma ? group_bytes(p, o) : bytes(p, o); return;
    default: break;
    }
    if (p->shape.m == 8 && p->shape.n == 8)
        eights(p, o);
    else
        floats(p, o);
}

static void multiply_wide(struct exec_warp *w, const struct matrix_product *p)
{
    uint64_t a[MATRIX_MOST / 2], b[MATRIX_MOST / 2], c[MATRIX_MOST / 2], d[MATRIX_MOST / 2];
    matrix_gather64(w, p->map[MATRIX_A], p->slot[MATRIX_A], a);
    matrix_gather64(w, p->map[MATRIX_B], p->slot[MATRIX_B], b);
    matrix_gather64(w, p->map[MATRIX_C], p->slot[MATRIX_C], c);
    chosen()->wide(p->shape.m, p->shape.n, p->shape.k, a, b, c, p->rounding, d);
    matrix_scatter64(w, p->map[MATRIX_D], p->slot[MATRIX_D], d);
}

const struct exec_insn *mma_run(struct exec_warp *w, const struct exec_insn *i)
{
    const struct matrix_product *p = i->ptr;
    const struct exec_insn *next;
    struct mma_operands o;
    if (!matrix_converge(w, i, &next))
        return next;
    if (p->type[MATRIX_D] == PTX_F64) {
        multiply_wide(w, p);
        return i + 1;
    }
    matrix_gather32(w, p->map[MATRIX_A], p->slot[MATRIX_A], o.a);
    matrix_gather32(w, p->map[MATRIX_B], p->slot[MATRIX_B], o.b);
    matrix_gather32(w, p->map[MATRIX_C], p->slot[MATRIX_C], o.c);
    mma_multiply(p, &o);
    matrix_scatter32(w, p->map[MATRIX_D], p->slot[MATRIX_D], o.d);
    return i + 1;
}
