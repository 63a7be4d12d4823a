// SPDX-License-Identifier: MIT
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/special.h"

unsigned decode_slot_bits(unsigned type_bits)
{
    return type_bits == 1 ? 1 : type_bits <= 16 ? 16 : type_bits <= 32 ? 32 : type_bits <= 64 ? 64 : 128;
}

// --- registers ---------------------------------------------------------------------------------------------

static uint32_t slot_of(struct decode *d, uint32_t reg)
{
    uint32_t index = regs_index(d->regs, reg);
    assert(index != REGS_NONE);
    return d->slot[index];
}

static unsigned element_bits(const struct ptx_var *v)
{
    return decode_slot_bits(ptx_type_bits((enum ptx_type)v->type));
}

// Returns the index of the vector register's element that the operand selects; 0 for other registers.
static unsigned part_of(struct decode *d, const struct ptx_operand *o, const struct ptx_var *v)
{
    if (v->vec == 1 && o->sub == PTX_SEL_NONE)
        return 0;
    if (o->sub == PTX_SEL_NONE)
        decode_fail(d, -EINVAL, "a vector register where " STR_FMT " takes one value",
                    STR_ARG(d->stmt->form->name));
    unsigned part = o->sub >= PTX_SEL_X && o->sub <= PTX_SEL_W   ? o->sub - PTX_SEL_X
                    : o->sub >= PTX_SEL_R && o->sub <= PTX_SEL_A ? o->sub - PTX_SEL_R
                                                                 : v->vec;
    if (v->vec == 1 || part >= v->vec)
        decode_fail(d, -EINVAL, "a part that the register does not have, in " STR_FMT,
                    STR_ARG(d->stmt->form->name));
    return part;
}

unsigned decode_reg_bits(struct decode *d, const struct ptx_operand *o)
{
    const struct ptx_var *v = ptx_reg_var(d->f, o->id);
    part_of(d, o, v);
    return element_bits(v);
}

uint32_t decode_reg(struct decode *d, const struct ptx_operand *o)
{
    uint32_t slot = slot_of(d, o->id);
    if (o->sub == PTX_SEL_NONE)
        return slot;
    const struct ptx_var *v = ptx_reg_var(d->f, o->id);
    return slot + part_of(d, o, v) * slots_size[slots_class(element_bits(v))];
}

uint32_t decode_guard(struct decode *d)
{
    return slot_of(d, d->stmt->guard);
}

// --- vectors -----------------------------------------------------------------------------------------------

static bool is_vector_reg(struct decode *d, const struct ptx_operand *o)
{
    return o->kind == PTX_REG && o->sub == PTX_SEL_NONE && ptx_reg_var(d->f, o->id)->vec > 1;
}

bool decode_is_vector(struct decode *d, const struct ptx_operand *o)
{
    return o->kind == PTX_VEC || is_vector_reg(d, o);
}

unsigned decode_items(struct decode *d, const struct ptx_operand *o, struct ptx_operand out[DECODE_ITEMS])
{
    if (o->kind == PTX_VEC) {
        if (o->value > DECODE_ITEMS)
            decode_unsupported(d);
        unsigned n = (unsigned)o->value;
        o = o + 1;
        for (unsigned k = 0; k < n; k++, o = ptx_next(o))
            out[k] = *o;
        return n;
    }
    out[0] = *o;
    if (!is_vector_reg(d, o))
        return 1;
    unsigned n = ptx_reg_var(d->f, o->id)->vec;
    for (unsigned k = 0; k < n; k++) {
        out[k] = *o;
        out[k].sub = (uint8_t)(PTX_SEL_X + k);
    }
    return n;
}

const struct ptx_operand *decode_operand(struct decode *d, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(d->stmt, i);
    if (!o)
        decode_fail(d, -EINVAL, "too few operands for " STR_FMT, STR_ARG(d->stmt->form->name));
    return o;
}

// --- constants ---------------------------------------------------------------------------------------------

static uint64_t to_float(const struct ptx_operand *o, enum ptx_type type)
{
    uint64_t bits = (uint64_t)o->value;
    if (type == PTX_F32 && o->sub == PTX_IMM_F64) {
        double wide;
        memcpy(&wide, &bits, sizeof wide);
        float narrow = (float)wide;
        uint32_t out;
        memcpy(&out, &narrow, sizeof out);
        return out;
    }
    // ptxas uses the 32 bits of 0f... unchanged for an f64 operand.
    return bits;
}

static uint64_t cut(uint64_t value, unsigned bits)
{
    return bits >= 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static uint64_t constant(const struct ptx_operand *o, enum ptx_type type)
{
    unsigned bits = ptx_type_bits(type);
    if (bits == 1)
        return o->value != 0;
    if (ptx_type_class(type) == PTX_CLASS_FLOAT)
        return cut(to_float(o, type), bits);
    if (bits == 8 && ptx_type_class(type) == PTX_CLASS_SINT)
        return cut((uint64_t)(int8_t)o->value, 16);
    return cut((uint64_t)o->value, bits);
}

// --- symbols -----------------------------------------------------------------------------------------------

static uint32_t symbol(struct decode *d, const struct ptx_operand *o, unsigned bits)
{
    const struct exec_symbol *s = &d->module->symbols[o->id];
    uint64_t offset = (uint64_t)o->value;
    exec_fn *fn;
    if (bits == 1 || bits == 128)
        decode_unsupported(d);
    switch (s->kind) {
    case EXEC_SYM_ADDRESS: return decode_const(d, bits, s->value + offset);
    case EXEC_SYM_FUNC: return decode_const(d, bits, s->func->code_address + offset);
    case EXEC_SYM_LOCAL: fn = special_local; break;
    case EXEC_SYM_PARAM: fn = special_param; break;
    case EXEC_SYM_SHARED: fn = special_shared; break;
    case EXEC_SYM_DYNAMIC: fn = special_dynamic; break;
    default:
        decode_fail(d, -ENOENT, "nothing defines " STR_FMT, STR_ARG(ptx_sym(d->module->ptx, o->id)->name));
    }
    uint32_t slot = decode_temp(d, bits);
    struct exec_insn *i = decode_emit(d, fn);
    i->d = slot;
    i->imm = s->value * (s->kind != EXEC_SYM_DYNAMIC) + offset;
    i->flags = bits == 64 ? SPECIAL_WIDE : bits == 16 ? SPECIAL_NARROW : 0;
    return slot;
}

static uint32_t special(struct decode *d, const struct ptx_operand *o, unsigned bits)
{
    if (bits == 1 && o->id == PTX_SREG_IS_EXPLICIT_CLUSTER) {
        uint32_t to = decode_temp(d, 1);
        struct exec_insn *p = decode_emit(d, special_predicate);
        p->d = to;
        p->lo = o->id;
        return to;
    }
    if (bits == 1 || bits == 128)
        decode_unsupported(d);
    uint32_t slot = decode_temp(d, bits);
    uint32_t flags = bits == 64 ? SPECIAL_WIDE : bits == 16 ? SPECIAL_NARROW : 0;
    uint32_t component = o->sub >= PTX_SEL_X && o->sub <= PTX_SEL_W ? o->sub - PTX_SEL_X : 0;
    struct exec_insn *i = decode_emit(d, special_fn(o->id, component, flags));
    i->d = slot;
    i->lo = o->id;
    i->hi = component;
    i->flags = flags;
    return slot;
}

// --- sources -----------------------------------------------------------------------------------------------

static uint32_t lane(struct decode *d, uint16_t row, unsigned bits, uint32_t from)
{
    uint32_t slot = decode_temp(d, bits);
    struct exec_insn *i = decode_emit(d, lane_fn(row));
    i->d = slot;
    i->a = from;
    return slot;
}

static uint32_t reg_source(struct decode *d, const struct ptx_operand *o, enum ptx_type type)
{
    unsigned have = decode_reg_bits(d, o), bits = ptx_type_bits(type), want = decode_slot_bits(bits);
    uint32_t slot = decode_reg(d, o);
    if (have == 1 && want == 1)
        return o->negated ? lane(d, lane_pred_not(), 1, slot) : slot;
    if (have < want || want == 1 || have == 1 || (have == 128 && want != 128))
        decode_fail(d, -EINVAL, "a register of %u bits where " STR_FMT " needs %u", have,
                    STR_ARG(d->stmt->form->name), want);
    if (have > want)
        slot = lane(d, lane_resize(have, want, false), want, slot);
    if (bits == 8)
        slot = lane(d, lane_extend(8, 16, ptx_type_class(type) == PTX_CLASS_SINT), 16, slot);
    return slot;
}

uint32_t decode_source(struct decode *d, const struct ptx_operand *o, enum ptx_type type)
{
    unsigned want = decode_slot_bits(ptx_type_bits(type));
    switch (o->kind) {
    case PTX_REG: return reg_source(d, o, type);
    case PTX_IMM: return decode_const(d, want, constant(o, type));
    case PTX_SYM: return symbol(d, o, want);
    case PTX_SREG: return special(d, o, want);
    default: decode_unsupported(d);
    }
}

uint32_t decode_source_bits(struct decode *d, const struct ptx_operand *o, unsigned bits)
{
    static const enum ptx_type types[] = {PTX_B16, PTX_B32, PTX_B64, PTX_B128};
    return decode_source(d, o, bits == 1 ? PTX_PRED : types[slots_class(bits) - SLOTS_16]);
}

uint32_t decode_pred(struct decode *d, const struct ptx_operand *o)
{
    return decode_source(d, o, PTX_PRED);
}

// --- destinations ------------------------------------------------------------------------------------------

struct decode_dest decode_dest(struct decode *d, const struct ptx_operand *o, enum ptx_type type)
{
    unsigned want = decode_slot_bits(ptx_type_bits(type));
    struct decode_dest dest = {.from_bits = (uint16_t)want,
                               .is_signed = ptx_type_class(type) == PTX_CLASS_SINT};
    if (o->kind == PTX_SINK) {
        dest.slot = decode_temp(d, want);
        return dest;
    }
    if (o->kind != PTX_REG)
        decode_unsupported(d);
    unsigned have = decode_reg_bits(d, o);
    dest.to = decode_reg(d, o);
    dest.to_bits = (uint16_t)have;
    dest.extend = have != want;
    if (have < want || (have == 1) != (want == 1) || (have == 128) != (want == 128))
        decode_fail(d, -EINVAL, "a register of %u bits for a result of %u of " STR_FMT, have, want,
                    STR_ARG(d->stmt->form->name));
    dest.slot = dest.extend ? decode_temp(d, want) : dest.to;
    return dest;
}

struct decode_dest decode_dest_bits(struct decode *d, const struct ptx_operand *o, unsigned bits)
{
    static const enum ptx_type types[] = {PTX_B16, PTX_B32, PTX_B64, PTX_B128};
    return decode_dest(d, o, bits == 1 ? PTX_PRED : types[slots_class(bits) - SLOTS_16]);
}

void decode_finish(struct decode *d, const struct decode_dest *dest)
{
    if (!dest->extend)
        return;
    struct exec_insn *i =
        decode_emit(d, lane_fn(lane_resize(dest->from_bits, dest->to_bits, dest->is_signed)));
    i->d = dest->to;
    i->a = dest->slot;
}
