// SPDX-License-Identifier: MIT
// mma, wmma, ldmatrix, stmatrix, movmatrix.
#include <errno.h>
#include <string.h>

#include "exec/access.h"
#include "exec/control.h"
#include "exec/decode.h"
#include "exec/matrix.h"

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

// --- shapes and maps ---------------------------------------------------------------------------------------

struct matrix_shape decode_shape(struct decode *d)
{
    struct ptx_dims dims;
    if (!ptx_form_dims(d->stmt->form, &dims) || !dims.k)
        decode_unsupported(d);
    return (struct matrix_shape){dims.m, dims.n, dims.k};
}

const struct matrix_map *decode_matrix_map(struct decode *d, const struct matrix_kind *k)
{
    struct matrix_map **maps = &d->load->matrix_maps;
    for (const struct matrix_map *m = *maps; m; m = m->next)
        if (m->kind.shape.m == k->shape.m && m->kind.shape.n == k->shape.n && m->kind.shape.k == k->shape.k &&
            m->kind.which == k->which && m->kind.type == k->type && m->kind.by_column == k->by_column &&
            m->kind.warp_level == k->warp_level && m->kind.of_sparse == k->of_sparse)
            return m;
    struct matrix_map *made = ARENA_NEW(&d->load->program->arena, struct matrix_map);
    if (!matrix_map_make(k, made))
        decode_unsupported(d);
    made->next = *maps;
    *maps = made;
    return made;
}

// Decodes the registers of a fragment: as many as the map has.
static void fragment(struct decode *d, const struct ptx_operand *o, const struct matrix_map *map,
                     enum ptx_type type, uint32_t slot[MATRIX_REGS], bool written)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned bits = type == PTX_F64 ? 64 : 32;
    if (decode_items(d, o, items) != map->nregs)
        decode_unsupported(d);
    for (unsigned r = 0; r < map->nregs; r++) {
        if (!written) {
            slot[r] = decode_source_bits(d, &items[r], bits);
            continue;
        }
        struct decode_dest dest = decode_dest_bits(d, &items[r], bits);
        if (dest.extend)
            decode_unsupported(d);
        slot[r] = dest.slot;
    }
}

// --- products ----------------------------------------------------------------------------------------------

// wmma spells only D's and C's type where A and B are f16.
static void set_types(struct decode *d, struct matrix_product *p)
{
    const struct ptx_form *form = d->stmt->form;
    if (form->ntypes == 2) {
        p->type[MATRIX_D] = form->types[0];
        p->type[MATRIX_A] = p->type[MATRIX_B] = PTX_F16;
        p->type[MATRIX_C] = form->types[1];
    } else if (form->ntypes == 4) {
        for (unsigned k = 0; k < MATRIX_OPERANDS; k++)
            p->type[k] = form->types[k];
    } else {
        decode_unsupported(d);
    }
}

// Layouts of A and B, in this order.
static void layouts(struct decode *d, bool by_column[2])
{
    const struct ptx_form *form = d->stmt->form;
    unsigned n = 0;
    for (unsigned k = 0; k < form->nmods && n < 2; k++)
        if (form->mods[k] == PTX_MOD_ROW || form->mods[k] == PTX_MOD_COL)
            by_column[n++] = form->mods[k] == PTX_MOD_COL;
    if (n != 2)
        decode_unsupported(d);
}

static bool is_f16_or_f32(unsigned type)
{
    return type == PTX_F16 || type == PTX_F32;
}

// Returns whether the types can be combined.
static bool types_fit(const struct matrix_product *p)
{
    unsigned a = p->type[MATRIX_A], b = p->type[MATRIX_B], c = p->type[MATRIX_C], d = p->type[MATRIX_D];
    switch (a) {
    case PTX_F16: return b == a && is_f16_or_f32(c) && is_f16_or_f32(d);
    case PTX_BF16:
    case PTX_TF32: return b == a && c == PTX_F32 && d == PTX_F32;
    case PTX_F64: return b == a && c == a && d == a;
    case PTX_E4M3:
    case PTX_E5M2: return (b == PTX_E4M3 || b == PTX_E5M2) && is_f16_or_f32(c) && d == c;
    case PTX_S8:
    case PTX_U8: return (b == PTX_S8 || b == PTX_U8) && c == PTX_S32 && d == PTX_S32;
    case PTX_S4:
    case PTX_U4: return (b == PTX_S4 || b == PTX_U4) && c == PTX_S32 && d == PTX_S32;
    case PTX_B1: return b == a && c == PTX_S32 && d == PTX_S32;
    default: return false;
    }
}

// mma.sp, for the shapes whose metadata layout is known here.
static bool is_sparse(struct decode *d)
{
    return has(d, PTX_MOD_SP) || has(d, PTX_MOD_SP_ORDERED_METADATA);
}

static void sparse(struct decode *d)
{
    struct matrix_sparse *s = ARENA_NEW(&d->load->program->arena, struct matrix_sparse);
    struct matrix_product *p = &s->product;
    bool by_column[2];
    p->shape = decode_shape(d);
    set_types(d, p);
    layouts(d, by_column);
    unsigned bytes = p->shape.k * ptx_type_bits((enum ptx_type)p->type[MATRIX_A]) / 8,
             type = p->type[MATRIX_A];
    bool known = type == PTX_F16 || type == PTX_BF16 || type == PTX_TF32 || type == PTX_S8 || type == PTX_U8;
    const struct ptx_operand *selector = decode_operand(d, 5);
    if (!known || !types_fit(p) || p->type[MATRIX_C] != p->type[MATRIX_D] || by_column[0] || !by_column[1] ||
        p->shape.m != 16 || p->shape.n != 8 || (bytes != 32 && bytes != 64) || selector->kind != PTX_IMM)
        decode_unsupported(d);
    // How many of four lanes hold the metadata of one product.
    unsigned lanes = (type == PTX_S8 || type == PTX_U8 ? 2 : 1) * bytes / 32;
    if (selector->value < 0 || selector->value >= (int64_t)(4 / lanes))
        decode_fail(d, -EINVAL, "there is no such selector");
    s->selector = (uint8_t)selector->value;
    p->saturates = has(d, PTX_MOD_SATFINITE);
    for (unsigned k = 0; k < MATRIX_OPERANDS; k++) {
        struct matrix_kind kind = {
            .shape = p->shape, .which = (uint8_t)(k ? k : MATRIX_C), .type = p->type[k], .of_sparse = true};
        const struct matrix_map *map = p->map[k] = decode_matrix_map(d, &kind);
        kind.shape.k /= 2;
        if (k == MATRIX_A)
            map = s->stored = decode_matrix_map(d, &kind);
        fragment(d, decode_operand(d, k), map, (enum ptx_type)p->type[k], p->slot[k], k == MATRIX_D);
    }
    s->metadata = decode_source(d, decode_operand(d, 4), PTX_B32);
    decode_emit(d, mma_sparse_run)->ptr = s;
}

static void product(struct decode *d)
{
    static const enum ptx_mod roundings[] = {PTX_MOD_RN, PTX_MOD_RZ, PTX_MOD_RM, PTX_MOD_RP};
    struct matrix_product *p = ARENA_NEW(&d->load->program->arena, struct matrix_product);
    bool by_column[2], warp_level = d->stmt->form->id == PTX_OP_WMMA_MMA;
    // Block scaling and later GPUs' variants are not supported.
    if (has(d, PTX_MOD_BLOCK_SCALE) || ptx_operand(d->stmt, is_sparse(d) ? 6 : 4))
        decode_unsupported(d);
    if (is_sparse(d)) {
        sparse(d);
        return;
    }
    p->shape = decode_shape(d);
    set_types(d, p);
    layouts(d, by_column);
    bool eights = !warp_level && p->type[MATRIX_A] == PTX_F16 && p->shape.k == 4;
    if (!types_fit(p) || (!warp_level && !eights && (by_column[0] || !by_column[1])))
        decode_unsupported(d);
    p->saturates = has(d, PTX_MOD_SATFINITE);
    p->by_and = has(d, PTX_MOD_AND);
    for (unsigned k = 0; k < 4; k++)
        if (has(d, roundings[k]))
            p->rounding = (uint8_t)k;
    // D may come first: nothing is written before everything is read.
    for (unsigned k = 0; k < MATRIX_OPERANDS; k++) {
        struct matrix_kind kind = {
            .shape = p->shape, .which = (uint8_t)k, .type = p->type[k], .warp_level = warp_level};
        if (k == MATRIX_A || k == MATRIX_B)
            kind.by_column = by_column[k - MATRIX_A];
        else
            kind.which = MATRIX_C;
        p->map[k] = decode_matrix_map(d, &kind);
        fragment(d, decode_operand(d, k), p->map[k], (enum ptx_type)p->type[k], p->slot[k], k == MATRIX_D);
    }
    if ((unsigned)p->map[MATRIX_A]->columns != p->map[MATRIX_B]->rows)
        decode_unsupported(d);
    decode_emit(d, mma_run)->ptr = p;
}

// --- memory ------------------------------------------------------------------------------------------------

// Appends an instruction that carries an address, as for a load or a store.
static void put_address(struct decode *d, const struct decode_address *a, uint32_t flags)
{
    struct exec_insn *i = decode_emit(d, control_illegal);
    i->a = a->slot;
    i->imm = a->imm;
    i->flags = a->flags | flags;
}

static void tile(struct decode *d, bool store)
{
    struct matrix_tile *t = ARENA_NEW(&d->load->program->arena, struct matrix_tile);
    const struct ptx_form *form = d->stmt->form;
    if (form->ntypes != 1)
        decode_unsupported(d);
    struct matrix_kind kind = {.shape = decode_shape(d),
                               .type = form->types[0],
                               .warp_level = true,
                               .by_column = has(d, PTX_MOD_COL),
                               .which = has(d, PTX_MOD_A)   ? MATRIX_A
                                        : has(d, PTX_MOD_B) ? MATRIX_B
                                                            : MATRIX_C};
    t->type = kind.type;
    t->map = decode_matrix_map(d, &kind);
    fragment(d, decode_operand(d, store ? 1 : 0), t->map, (enum ptx_type)t->type, t->slot, !store);
    if (ptx_operand(d->stmt, 2))
        t->stride = decode_source(d, ptx_operand(d->stmt, 2), PTX_B32);
    struct decode_address a = decode_address(d, decode_operand(d, store ? 0 : 1), 0);
    decode_emit(d, store ? matrix_store : matrix_load)->ptr = t;
    put_address(d, &a, store ? ACCESS_STORES : 0);
}

static void eight_by_eight(struct decode *d, bool store)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = decode_items(d, decode_operand(d, store ? 1 : 0), items);
    unsigned said = has(d, PTX_MOD_X4) ? 4 : has(d, PTX_MOD_X2) ? 2 : 1;
    uint32_t slot[4] = {0};
    // Other shapes and types belong to later GPUs.
    if (n != said || d->stmt->form->ntypes != 1 || d->stmt->form->types[0] != PTX_B16)
        decode_unsupported(d);
    for (unsigned k = 0; k < n; k++) {
        if (store) {
            slot[k] = decode_source_bits(d, &items[k], 32);
            continue;
        }
        struct decode_dest dest = decode_dest_bits(d, &items[k], 32);
        if (dest.extend)
            decode_unsupported(d);
        slot[k] = dest.slot;
    }
    struct decode_address a = decode_address(d, decode_operand(d, store ? 0 : 1), 0);
    exec_fn *fn = store ? matrix_stmatrix : matrix_ldmatrix;
    *decode_emit(d, fn) = (struct exec_insn){.fn = fn,
                                             .d = slot[0],
                                             .b = slot[1],
                                             .c = slot[2],
                                             .e = slot[3],
                                             .flags = n | (has(d, PTX_MOD_TRANS) ? MATRIX_TRANSPOSE : 0u)};
    put_address(d, &a, store ? ACCESS_STORES : 0);
}

void decode_matrix(struct decode *d)
{
    uint32_t skip = decode_skip_begin(d);
    switch (d->stmt->form->id) {
    case PTX_OP_MMA:
    case PTX_OP_WMMA_MMA: product(d); break;
    case PTX_OP_WMMA_LOAD: tile(d, false); break;
    case PTX_OP_WMMA_STORE: tile(d, true); break;
    case PTX_OP_LDMATRIX: eight_by_eight(d, false); break;
    case PTX_OP_STMATRIX: eight_by_eight(d, true); break;
    default: {
        uint32_t a = decode_source(d, decode_operand(d, 1), PTX_B32);
        struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B32);
        struct exec_insn *i = decode_emit(d, matrix_movmatrix);
        i->d = dest.slot;
        i->a = a;
        decode_finish(d, &dest);
    }
    }
    decode_skip_end(d, skip);
}
