// SPDX-License-Identifier: MIT
// wgmma. Fences, groups and waits do nothing here: a product is computed at once.
#include "exec/access.h"
#include "exec/control.h"
#include "exec/decode.h"
#include "exec/wgmma.h"

static bool is_integer(unsigned type)
{
    return type == PTX_S8 || type == PTX_U8;
}

static bool is_byte_float(unsigned type)
{
    return type == PTX_E4M3 || type == PTX_E5M2;
}

// Rejects types and depths that do not exist.
static void check(struct decode *d, const struct wgmma *g)
{
    const struct matrix_product *p = &g->product;
    unsigned a = p->type[MATRIX_A], b = p->type[MATRIX_B], to = p->type[MATRIX_D], bits = ptx_type_bits(a);
    bool good = is_integer(a)      ? is_integer(b) && to == PTX_S32
                : a == PTX_B1      ? b == a && to == PTX_S32 && p->by_and
                : is_byte_float(a) ? is_byte_float(b) && (to == PTX_F16 || to == PTX_F32)
                : a == PTX_F16     ? b == a && (to == PTX_F16 || to == PTX_F32)
                : a == PTX_BF16    ? b == a && to == PTX_F32
                                   : a == PTX_TF32 && b == a && to == PTX_F32;
    if (!good || p->shape.k * bits != 256 || !g->n || g->n > 256 || g->n % WGMMA_COLUMNS)
        decode_unsupported(d);
}

// Returns an immediate operand: 1 or -1, or 0 or 1.
static int64_t flag(struct decode *d, unsigned *at)
{
    const struct ptx_operand *o = decode_operand(d, (*at)++);
    if (o->kind != PTX_IMM)
        decode_unsupported(d);
    return o->value;
}

static void results(struct decode *d, struct wgmma *g)
{
    const struct ptx_operand *o = decode_operand(d, 0);
    unsigned n = g->n / WGMMA_COLUMNS * g->product.map[MATRIX_D]->nregs;
    if (o->kind != PTX_VEC || o->value != (int64_t)n || n > WGMMA_RESULTS)
        decode_unsupported(d);
    o = o + 1;
    for (unsigned k = 0; k < n; k++, o = ptx_next(o)) {
        if (o->kind != PTX_REG || decode_reg_bits(d, o) != 32)
            decode_unsupported(d);
        g->d[k] = decode_reg(d, o);
    }
}

static void operands(struct decode *d, struct wgmma *g)
{
    struct matrix_product *p = &g->product;
    const struct ptx_operand *a = decode_operand(d, 1), *adds = decode_operand(d, 3);
    struct ptx_operand items[DECODE_ITEMS];
    g->a_in_registers = a->kind == PTX_VEC;
    if (!g->a_in_registers) {
        g->a = decode_source(d, a, PTX_B64);
    } else {
        if (decode_items(d, a, items) != p->map[MATRIX_A]->nregs)
            decode_unsupported(d);
        for (unsigned k = 0; k < p->map[MATRIX_A]->nregs; k++)
            p->slot[MATRIX_A][k] = decode_source_bits(d, &items[k], 32);
    }
    g->b = decode_source(d, decode_operand(d, 2), PTX_B64);
    g->always = adds->kind == PTX_IMM ? adds->value != 0 : 2;
    if (g->always == 2)
        g->adds = decode_pred(d, adds);
}

static void signs(struct decode *d, struct wgmma *g)
{
    unsigned at = 4, type = g->product.type[MATRIX_A];
    if (is_integer(type) || type == PTX_B1)
        return;
    g->a_negated = flag(d, &at) < 0;
    g->b_negated = flag(d, &at) < 0;
    if (type == PTX_TF32 || is_byte_float(type))
        return;
    if (!g->a_in_registers)
        g->a_by_row = flag(d, &at) != 0;
    g->b_by_row = flag(d, &at) != 0;
}

void decode_wgmma(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    if (form->id != PTX_OP_WGMMA_MMA)
        return;
    struct wgmma *g = ARENA_NEW(&d->load->program->arena, struct wgmma);
    struct matrix_product *p = &g->product;
    p->shape = decode_shape(d);
    if (p->shape.m != 64 || form->ntypes != 3)
        decode_unsupported(d);
    g->n = p->shape.n;
    p->shape.m = 16;
    p->shape.n = WGMMA_COLUMNS;
    p->type[MATRIX_D] = p->type[MATRIX_C] = form->types[0];
    p->type[MATRIX_A] = form->types[1];
    p->type[MATRIX_B] = form->types[2];
    p->saturates = ptx_form_has(form, PTX_MOD_SATFINITE);
    p->by_and = ptx_form_has(form, PTX_MOD_AND);
    p->of_wgmma = true;
    check(d, g);
    struct matrix_kind kind = {.shape = p->shape, .which = MATRIX_D, .type = p->type[MATRIX_D]};
    p->map[MATRIX_D] = p->map[MATRIX_C] = decode_matrix_map(d, &kind);
    kind.which = MATRIX_A;
    kind.type = p->type[MATRIX_A];
    p->map[MATRIX_A] = decode_matrix_map(d, &kind);
    uint32_t skip = decode_skip_begin(d);
    results(d, g);
    operands(d, g);
    signs(d, g);
    decode_emit(d, wgmma_run)->ptr = g;
    decode_emit(d, control_illegal)->flags = (uint32_t)ACCESS_SHARED << ACCESS_SPACE_SHIFT;
    decode_skip_end(d, skip);
}
