// SPDX-License-Identifier: MIT
// cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, tensormap.
#include "exec/access.h"
#include "exec/atomic.h"
#include "exec/control.h"
#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/tensor.h"

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

static unsigned rank_of(struct decode *d)
{
    static const enum ptx_mod mods[TENSOR_RANK] = {PTX_MOD_D_1D, PTX_MOD_D_2D, PTX_MOD_D_3D, PTX_MOD_D_4D,
                                                   PTX_MOD_D_5D};
    for (unsigned k = 0; k < TENSOR_RANK; k++)
        if (has(d, mods[k]))
            return k + 1;
    decode_unsupported(d);
}

// Tiles and im2col are supported.
static bool is_known(struct decode *d)
{
    return !has(d, PTX_MOD_IM2COL_W) && !has(d, PTX_MOD_IM2COL_W_128) && !has(d, PTX_MOD_TILE_GATHER4) &&
           !has(d, PTX_MOD_TILE_SCATTER4);
}

// Decodes [map, {coordinates}]. Returns the map's address; l gets the slots of the coordinates.
static struct decode_address take_map(struct decode *d, const struct ptx_operand *o, struct tensor_lane *l)
{
    struct ptx_operand items[DECODE_ITEMS];
    if (o->kind != PTX_TUPLE || o->value != 2)
        decode_unsupported(d);
    struct decode_address a = decode_address(d, o + 1, DECODE_GENERIC);
    if (decode_items(d, ptx_next(o + 1), items) != l->rank)
        decode_unsupported(d);
    for (unsigned k = 0; k < l->rank; k++)
        l->at[k] = decode_source(d, &items[k], PTX_B32);
    return a;
}

// Decodes im2col's pixel offsets, one per dimension of an image.
static void take_shift(struct decode *d, const struct ptx_operand *o, struct tensor_lane *l)
{
    struct ptx_operand items[DECODE_ITEMS];
    l->noffsets = (uint8_t)decode_items(d, o, items);
    if (l->noffsets != l->rank - 2)
        decode_unsupported(d);
    for (unsigned k = 0; k < l->noffsets; k++)
        l->offset[k] = decode_source(d, &items[k], PTX_B16);
}

static void copy(struct decode *d)
{
    struct tensor_lane *l = ARENA_NEW(&d->load->program->arena, struct tensor_lane);
    bool reduces = d->stmt->form->id == PTX_OP_CP_REDUCE_BULK_TENSOR;
    if (!is_known(d) || d->stmt->form->nspaces < 2)
        decode_unsupported(d);
    bool loads = ptx_space_is((enum ptx_space)d->stmt->form->spaces[0]) != PTX_SPACE_GLOBAL;
    l->rank = (uint8_t)rank_of(d);
    l->kind = reduces ? TENSOR_REDUCE : loads ? TENSOR_LOAD : TENSOR_STORE;
    l->signals = has(d, PTX_MOD_MBARRIER_COMPLETE_TX_BYTES);
    l->multicast = has(d, PTX_MOD_MULTICAST_CLUSTER);
    l->by_columns = has(d, PTX_MOD_IM2COL) || has(d, PTX_MOD_IM2COL_NO_OFFS);
    l->op = reduces ? decode_atomic_op(d) : 0;
    bool shifts = has(d, PTX_MOD_IM2COL);
    if (l->signals != loads || (shifts && !loads) || (l->by_columns && l->rank < 3))
        decode_unsupported(d);
    struct decode_address map = take_map(d, decode_operand(d, loads ? 1 : 0), l);
    struct decode_address shared = decode_address(d, decode_operand(d, loads ? 0 : 1), DECODE_SHARED);
    struct decode_address barrier = {0}, data = {.flags = (uint32_t)ACCESS_GLOBAL << ACCESS_SPACE_SHIFT};
    if (l->signals)
        barrier = decode_address(d, decode_operand(d, 2), DECODE_SHARED);
    if (shifts)
        take_shift(d, decode_operand(d, 3), l);
    if (l->multicast)
        l->blocks = decode_source(d, decode_operand(d, shifts ? 4 : 3), PTX_B16);
    decode_emit(d, tensor_copy)->ptr = l;
    decode_put_address(d, &shared, loads);
    decode_put_address(d, &map, false);
    decode_put_address(d, &data, !loads);
    if (l->signals)
        decode_put_address(d, &barrier, true);
}

static void replace(struct decode *d)
{
    static const enum ptx_mod mods[TENSOR_FIELDS] = {[TENSOR_FIELD_ADDRESS] = PTX_MOD_GLOBAL_ADDRESS,
                                                     [TENSOR_FIELD_RANK] = PTX_MOD_RANK,
                                                     [TENSOR_FIELD_BOX] = PTX_MOD_BOX_DIM,
                                                     [TENSOR_FIELD_DIM] = PTX_MOD_GLOBAL_DIM,
                                                     [TENSOR_FIELD_STRIDE] = PTX_MOD_GLOBAL_STRIDE,
                                                     [TENSOR_FIELD_STEP] = PTX_MOD_ELEMENT_STRIDE,
                                                     [TENSOR_FIELD_TYPE] = PTX_MOD_ELEMTYPE,
                                                     [TENSOR_FIELD_INTERLEAVE] = PTX_MOD_INTERLEAVE_LAYOUT,
                                                     [TENSOR_FIELD_SWIZZLE] = PTX_MOD_SWIZZLE_MODE,
                                                     [TENSOR_FIELD_FILL] = PTX_MOD_FILL_MODE};
    unsigned field = 0;
    while (field < TENSOR_FIELDS && !has(d, mods[field]))
        field++;
    const struct ptx_operand *second = decode_operand(d, 1), *third = ptx_operand(d->stmt, 2);
    if (field == TENSOR_FIELDS || !has(d, PTX_MOD_TILE) || (third && second->kind != PTX_IMM))
        decode_unsupported(d);
    struct decode_address a = decode_address(d, decode_operand(d, 0), 0);
    const struct ptx_operand *value = third ? third : second;
    bool wide = field == TENSOR_FIELD_ADDRESS || field == TENSOR_FIELD_STRIDE;
    uint32_t slot = decode_source(d, value, wide ? PTX_B64 : PTX_B32);
    if (!wide) {
        uint32_t to = decode_temp(d, 64);
        struct exec_insn *extend = decode_emit(d, lane_fn(lane_resize(32, 64, false)));
        extend->d = to;
        extend->a = slot;
        slot = to;
    }
    struct exec_insn *i = decode_emit(d, tensor_replace);
    i->b = slot;
    i->flags = field;
    i->lo = third ? (uint32_t)second->value : 0;
    decode_put_address(d, &a, true);
}

static void copy_map(struct decode *d)
{
    const struct ptx_operand *bytes = decode_operand(d, 2);
    if (bytes->kind != PTX_IMM || bytes->value != 128)
        decode_unsupported(d);
    struct decode_address to = decode_address(d, decode_operand(d, 0), 0),
                          from = decode_address(d, decode_operand(d, 1), 1);
    decode_emit(d, tensor_copy_map);
    decode_put_address(d, &to, true);
    decode_put_address(d, &from, false);
}

void decode_tensor(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
    case PTX_OP_CP_REDUCE_BULK_TENSOR: copy(d); return;
    case PTX_OP_TENSORMAP_REPLACE: replace(d); return;
    default: copy_map(d);
    }
}
