// SPDX-License-Identifier: MIT
// tex, tld4, txq, suld, sust, sured, suq.
#include <errno.h>

#include "exec/atomic.h"
#include "exec/decode.h"
#include "exec/sample.h"
#include "exec/texture_lane.h"

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

static const struct {
    enum ptx_mod mod;
    uint8_t shape, nplace;
    bool layered;
    bool sampled;  // a sample number follows the layer; arrays here have one sample
} shapes[] = {
    {PTX_MOD_D_1D, TEXTURE_1D, 1, false, false},    {PTX_MOD_D_2D, TEXTURE_2D, 2, false, false},
    {PTX_MOD_D_3D, TEXTURE_3D, 3, false, false},    {PTX_MOD_A1D, TEXTURE_A1D, 1, true, false},
    {PTX_MOD_A2D, TEXTURE_A2D, 2, true, false},     {PTX_MOD_CUBE, TEXTURE_CUBE, 3, false, false},
    {PTX_MOD_ACUBE, TEXTURE_ACUBE, 3, true, false}, {PTX_MOD_D_2DMS, TEXTURE_2D, 2, false, true},
    {PTX_MOD_A2DMS, TEXTURE_A2D, 2, true, true},
};

static unsigned shape_row(struct decode *d)
{
    for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++)
        if (has(d, shapes[k].mod))
            return k;
    decode_unsupported(d);
}

// The parts of [texture, sampler, coordinates]; absent ones are NULL.
struct parts {
    struct ptx_operand object;
    const struct ptx_operand *sampler, *place;
};

static struct parts take_apart(struct decode *d, const struct ptx_operand *o)
{
    struct parts p = {.object = *o};
    if (o->kind == PTX_TUPLE) {
        p.object = o[1];
        p.place = ptx_next(o + 1);
        if (o->value == 3) {
            p.sampler = p.place;
            p.place = ptx_next(p.place);
        }
        if (o->value != 2 && o->value != 3)
            decode_unsupported(d);
    }
    if (p.object.kind != PTX_ADDR)
        decode_unsupported(d);
    // Separate samplers belong to a mode that no CUDA compiler uses.
    if (p.sampler)
        decode_unsupported(d);
    return p;
}

// Returns a slot with the handle, or with the address of a reference.
static uint32_t handle(struct decode *d, const struct ptx_operand *o)
{
    struct ptx_operand base = {.id = o->id, .value = o->value};
    if (o->sub == PTX_BASE_NONE)
        return decode_const(d, 64, (uint64_t)o->value);
    base.kind = o->sub == PTX_BASE_REG ? PTX_REG : PTX_SYM;
    if (base.kind == PTX_REG && base.value)
        decode_unsupported(d);
    // A parameter that is a reference would hold a handle, like one that is a number.
    if (base.kind == PTX_SYM && d->module->symbols[o->id].kind == EXEC_SYM_PARAM)
        decode_unsupported(d);
    return decode_source(d, &base, PTX_B64);
}

// Decodes n words of an operand that may have more: 3D coordinates come in fours.
static void words(struct decode *d, const struct ptx_operand *o, unsigned n, uint32_t *out,
                  enum ptx_type type)
{
    struct ptx_operand items[DECODE_ITEMS];
    if (!o || decode_items(d, o, items) < n)
        decode_fail(d, -EINVAL, "too few operands for " STR_FMT, STR_ARG(d->stmt->form->name));
    for (unsigned k = 0; k < n; k++)
        out[k] = decode_source(d, &items[k], type);
}

static void places(struct decode *d, const struct ptx_operand *o, unsigned row, enum ptx_type type,
                   uint32_t place[3], uint32_t *layer)
{
    uint32_t all[4];
    unsigned before = shapes[row].layered + shapes[row].sampled;
    words(d, o, shapes[row].nplace + before, all, type);
    for (unsigned k = 0; k < shapes[row].nplace; k++)
        place[k] = all[k + before];
    *layer = all[0];
}

// --- tex, tld4 ---------------------------------------------------------------------------------------------

static uint8_t gathered(struct decode *d)
{
    static const enum ptx_mod mods[] = {PTX_MOD_R, PTX_MOD_G, PTX_MOD_B, PTX_MOD_A};
    for (uint8_t k = 0; k < 4; k++)
        if (has(d, mods[k]))
            return k + 1;
    decode_unsupported(d);
}

// Decodes what follows the coordinates: a level or derivatives, then offsets. Depth comparison is not
// supported.
static void decode_tail(struct decode *d, struct texture_lane *l)
{
    unsigned at = 2;
    if (l->how == SAMPLE_LEVEL)
        l->level = decode_source(d, decode_operand(d, at++), l->integers ? PTX_S32 : PTX_F32);
    if (l->how == SAMPLE_GRADIENT) {
        words(d, decode_operand(d, at++), l->nplace, l->dx, PTX_F32);
        words(d, decode_operand(d, at++), l->nplace, l->dy, PTX_F32);
    }
    const struct ptx_operand *offset = ptx_operand(d->stmt, at);
    if (!offset)
        return;
    bool cube = l->shape == TEXTURE_CUBE || l->shape == TEXTURE_ACUBE;
    if (cube || (l->nplace > 1 && !decode_is_vector(d, offset)) || ptx_operand(d->stmt, at + 1))
        decode_unsupported(d);
    l->has_offset = true;
    words(d, offset, l->nplace, l->offset, PTX_S32);
}

static void results(struct decode *d, struct texture_lane *l, struct decode_dest dest[4])
{
    const struct ptx_operand *o = decode_operand(d, 0);
    struct ptx_operand items[DECODE_ITEMS];
    if (o->kind == PTX_PAIR) {
        const struct ptx_operand *second = ptx_next(o + 1);
        l->has_resident = second->kind == PTX_REG;
        if (l->has_resident)
            l->resident = decode_dest(d, second, PTX_PRED).slot;
        o = o + 1;
    }
    unsigned n = d->stmt->form->vec;
    if (decode_items(d, o, items) != n)
        decode_unsupported(d);
    for (unsigned k = 0; k < n; k++) {
        dest[k] = decode_dest(d, &items[k], l->halves == 1 ? PTX_B16 : PTX_B32);
        l->to[k] = dest[k].slot;
    }
}

// f32, u32, s32 and f16 results come in fours, f16x2 in twos.
static bool good_results(const struct ptx_form *form)
{
    if (form->types[0] == PTX_F16X2)
        return form->vec == 2;
    return form->vec == 4 &&
           (form->types[0] == PTX_F16 || ptx_type_bits((enum ptx_type)form->types[0]) == 32);
}

static void sample(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    unsigned row = shape_row(d);
    bool gathers = form->id == PTX_OP_TLD4;
    if (form->ntypes != 2 || !good_results(form) ||
        (form->types[1] != PTX_F32 && form->types[1] != PTX_S32) ||
        (shapes[row].sampled && form->types[1] != PTX_S32) ||
        (gathers && (shapes[row].nplace != 2 || form->types[1] != PTX_F32)))
        decode_unsupported(d);
    struct texture_lane *l = ARENA_NEW(&d->load->program->arena, struct texture_lane);
    struct parts p = take_apart(d, decode_operand(d, 1));
    l->shape = shapes[row].shape;
    l->nplace = shapes[row].nplace;
    l->has_layer = shapes[row].layered;
    l->integers = form->types[1] == PTX_S32;
    l->gather = gathers ? gathered(d) : 0;
    l->halves = form->types[0] == PTX_F16X2 ? 2 : form->types[0] == PTX_F16;
    l->how = (uint8_t)(has(d, PTX_MOD_BASE)    ? SAMPLE_BASE
                       : has(d, PTX_MOD_LEVEL) ? SAMPLE_LEVEL
                       : has(d, PTX_MOD_GRAD)  ? SAMPLE_GRADIENT
                                               : SAMPLE_PLAIN);
    l->handle = handle(d, &p.object);
    places(d, p.place, row, PTX_B32, l->place, &l->layer);
    decode_tail(d, l);
    struct decode_dest dest[4];
    results(d, l, dest);
    decode_emit(d, texture_lane_sample)->ptr = l;
    for (unsigned k = 0; k < form->vec; k++)
        decode_finish(d, &dest[k]);
}

// --- txq, suq ----------------------------------------------------------------------------------------------

static void query(struct decode *d)
{
    static const enum ptx_mod mods[] = {
        [TEXTURE_WIDTH] = PTX_MOD_WIDTH, [TEXTURE_HEIGHT] = PTX_MOD_HEIGHT, [TEXTURE_DEPTH] = PTX_MOD_DEPTH};
    unsigned q = 0;
    while (q < sizeof mods / sizeof *mods && !has(d, mods[q]))
        q++;
    if (q == sizeof mods / sizeof *mods)
        decode_unsupported(d);
    struct parts p = take_apart(d, decode_operand(d, 1));
    uint32_t object = handle(d, &p.object), level = 0;
    if (has(d, PTX_MOD_LEVEL))
        level = decode_source(d, decode_operand(d, 2), PTX_B32);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B32);
    struct exec_insn *i = decode_emit(d, texture_lane_query);
    i->d = dest.slot;
    i->a = object;
    i->b = level;
    i->lo = q;
    i->flags = (has(d, PTX_MOD_LEVEL) ? TEXTURE_LANE_LEVEL : 0) |
               (d->stmt->form->id == PTX_OP_SUQ ? TEXTURE_LANE_SURFACE : 0);
    decode_finish(d, &dest);
}

// --- suld, sust, sured -------------------------------------------------------------------------------------

static void values(struct decode *d, struct surface_lane *l, const struct ptx_operand *o)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = decode_items(d, o, items), bits = 0;
    if (n != l->count || n > 4)
        decode_unsupported(d);
    for (unsigned k = 0; k < n; k++)
        if (items[k].kind == PTX_REG) {
            unsigned own = decode_reg_bits(d, &items[k]);
            if ((bits && own != bits) || own < 8u * l->bytes || own < 16 || own > 64)
                decode_unsupported(d);
            bits = own;
        }
    l->bits = (uint8_t)(bits ? bits : decode_slot_bits(8u * l->bytes));
    for (unsigned k = 0; k < n; k++) {
        bool reg = items[k].kind == PTX_REG;
        if (!l->stores && !reg && items[k].kind != PTX_SINK)
            decode_unsupported(d);
        l->value[k] = reg         ? decode_reg(d, &items[k])
                      : l->stores ? decode_source_bits(d, &items[k], l->bits)
                                  : decode_temp(d, l->bits);
    }
}

// A formatted reduction has the type of the texels, which only the surface knows.
static uint32_t reduction(struct decode *d, const struct surface_lane *l)
{
    enum atomic_op op = decode_atomic_op(d);
    enum ptx_type type = (enum ptx_type)d->stmt->form->types[0];
    if (l->formatted)
        type = op == ATOMIC_AND || op == ATOMIC_OR ? PTX_B32 : PTX_U32;
    if (!atomic_knows(op, type) || l->bits != 8u * l->bytes)
        decode_unsupported(d);
    return op | (uint32_t)type << ATOMIC_TYPE_SHIFT | ATOMIC_NO_RESULT | ATOMIC_GLOBAL;
}

static void surface(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    unsigned row = shape_row(d);
    bool reduces = form->id == PTX_OP_SURED, stores = reduces || form->id == PTX_OP_SUST;
    if (form->ntypes != 1 || shapes[row].shape == TEXTURE_CUBE || shapes[row].shape == TEXTURE_ACUBE ||
        shapes[row].sampled)
        decode_unsupported(d);
    struct surface_lane *l = ARENA_NEW(&d->load->program->arena, struct surface_lane);
    struct parts p = take_apart(d, decode_operand(d, stores ? 0 : 1));
    l->shape = shapes[row].shape;
    l->nplace = shapes[row].nplace;
    l->has_layer = shapes[row].layered;
    l->stores = stores;
    l->reduces = reduces;
    l->formatted = has(d, PTX_MOD_P);
    l->outside = (uint8_t)(has(d, PTX_MOD_CLAMP)  ? SURFACE_CLAMP
                           : has(d, PTX_MOD_ZERO) ? SURFACE_ZERO
                                                  : SURFACE_TRAP);
    l->count = form->vec;
    l->bytes = (uint8_t)(ptx_type_bits((enum ptx_type)form->types[0]) / 8);
    if (!l->bytes || l->bytes > 8 || l->bytes * l->count > 16 || (l->formatted && (!stores || l->bytes != 4)))
        decode_unsupported(d);
    l->handle = handle(d, &p.object);
    places(d, p.place, row, PTX_B32, l->place, &l->layer);
    values(d, l, decode_operand(d, stores ? 1 : 0));
    if (l->formatted && l->bits != 32)
        decode_unsupported(d);
    if (reduces)
        l->what = reduction(d, l);
    decode_emit(d, surface_lane_access)->ptr = l;
}

void decode_texture(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_TXQ:
    case PTX_OP_SUQ: query(d); return;
    case PTX_OP_SURED:
    case PTX_OP_SULD:
    case PTX_OP_SUST: surface(d); return;
    case PTX_OP_TEX:
    case PTX_OP_TLD4: sample(d); return;
    default: decode_unsupported(d);
    }
}
