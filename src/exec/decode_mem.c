// SPDX-License-Identifier: MIT
// ld, st, atom, red, cp.async.
#include <errno.h>
#include <string.h>

#include "exec/atomic.h"
#include "exec/control.h"
#include "exec/cp_async.h"
#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/access.h"

// --- addresses ---------------------------------------------------------------------------------------------

static enum access_space space_of(struct decode *d, unsigned n)
{
    const struct ptx_form *form = d->stmt->form;
    if (n >= form->nspaces)
        return ACCESS_GENERIC;
    switch (ptx_space_is((enum ptx_space)form->spaces[n])) {
    case PTX_SPACE_GENERIC: return ACCESS_GENERIC;
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_CONST: return ACCESS_GLOBAL;
    case PTX_SPACE_SHARED:
    case PTX_SPACE_SHARED_CLUSTER: return ACCESS_SHARED;
    case PTX_SPACE_LOCAL: return ACCESS_LOCAL;
    case PTX_SPACE_PARAM: return ACCESS_PARAM;
    default: decode_unsupported(d);
    }
}

static uint32_t space_flag(enum access_space where)
{
    return (uint32_t)where << ACCESS_SPACE_SHIFT;
}

static struct decode_address symbol_address(struct decode *d, const struct ptx_operand *o,
                                            enum access_space where, unsigned bytes)
{
    const struct exec_symbol *s = &d->module->symbols[o->id];
    struct decode_address a = {.flags = ACCESS_NO_BASE | space_flag(where),
                               .imm = s->value + (uint64_t)o->value};
    switch (s->kind) {
    case EXEC_SYM_ADDRESS:
        if (where != ACCESS_GENERIC && where != ACCESS_GLOBAL)
            break;
        return a;
    case EXEC_SYM_SHARED:
        if (where != ACCESS_SHARED && where != ACCESS_GENERIC)
            break;
        a.flags = ACCESS_NO_BASE | space_flag(ACCESS_SHARED);
        return a;
    case EXEC_SYM_LOCAL:
        if (where != ACCESS_LOCAL && where != ACCESS_PARAM)
            break;
        a.flags = ACCESS_NO_BASE | space_flag(ACCESS_LOCAL);
        return a;
    case EXEC_SYM_PARAM:
        if (where != ACCESS_PARAM)
            break;
        // A kernel's parameters are read without a check, so an access beyond them becomes one to global
        // memory.
        if (a.imm > d->func->kernel->param_size || d->func->kernel->param_size - a.imm < bytes) {
            struct ptx_operand sym = {.kind = PTX_SYM, .id = o->id};
            a.slot = decode_source(d, &sym, PTX_B64);
            a.flags = space_flag(ACCESS_GLOBAL);
            a.imm = (uint64_t)o->value;
        }
        return a;
    case EXEC_SYM_DYNAMIC: {
        struct ptx_operand sym = {.kind = PTX_SYM, .id = o->id};
        a.slot = decode_source(d, &sym, PTX_B32);
        a.flags = ACCESS_A32 | space_flag(ACCESS_SHARED);
        a.imm = (uint64_t)o->value;
        return a;
    }
    case EXEC_SYM_NONE:
        decode_fail(d, -ENOENT, "nothing defines " STR_FMT, STR_ARG(ptx_sym(d->module->ptx, o->id)->name));
    default: break;
    }
    decode_fail(d, -EINVAL, STR_FMT " is in another space", STR_ARG(ptx_sym(d->module->ptx, o->id)->name));
}

// Records that the program spelled the address in that space, which may be ACCESS_CONST.
static void set_spelled(struct decode_address *a, unsigned spelled)
{
    uint32_t other = (a->flags >> ACCESS_SPACE_SHIFT ^ spelled) & 7;
    a->flags = (a->flags & ~(uint32_t)ACCESS_SPELLED) | other << ACCESS_SPELLED_SHIFT;
}

static struct decode_address place(struct decode *d, const struct ptx_operand *o, enum access_space where,
                                   unsigned bytes)
{
    if (o->kind != PTX_ADDR)
        decode_unsupported(d);
    if (o->sub == PTX_BASE_SYM)
        return symbol_address(d, o, where, bytes);
    // Through a register, a kernel's parameters are in global memory, a function's in local memory.
    if (where == ACCESS_PARAM)
        where = d->func->kernel ? ACCESS_GLOBAL : ACCESS_LOCAL;
    struct decode_address a = {.flags = space_flag(where), .imm = (uint64_t)o->value};
    if (o->sub == PTX_BASE_NONE) {
        // An absolute address. In local memory it is relative to the thread's local memory, not to the frame.
        a.slot = decode_const(d, 64, a.imm);
        a.imm = 0;
        return a;
    }
    struct ptx_operand base = {.kind = PTX_REG, .id = o->id};
    a.slot = decode_reg(d, &base);
    unsigned bits = decode_reg_bits(d, &base);
    if (bits != 32 && bits != 64)
        decode_fail(d, -EINVAL, "an address of %u bits", bits);
    if (bits == 32)
        a.flags |= ACCESS_A32;
    return a;
}

static struct decode_address address(struct decode *d, const struct ptx_operand *o, enum access_space where,
                                     unsigned bytes)
{
    struct decode_address a = place(d, o, where, bytes);
    set_spelled(&a, where);
    return a;
}

// The same for the n-th space that the instruction spells.
static struct decode_address spelled_address(struct decode *d, const struct ptx_operand *o, unsigned n,
                                             unsigned bytes)
{
    const struct ptx_form *form = d->stmt->form;
    struct decode_address a = address(d, o, space_of(d, n), bytes);
    if (n < form->nspaces && ptx_space_is((enum ptx_space)form->spaces[n]) == PTX_SPACE_SHARED)
        a.flags |= ACCESS_OWN;
    return a;
}

struct decode_address decode_address(struct decode *d, const struct ptx_operand *o, unsigned n)
{
    switch (n) {
    case DECODE_SHARED: return address(d, o, ACCESS_SHARED, 0);
    case DECODE_GLOBAL: return address(d, o, ACCESS_GLOBAL, 0);
    case DECODE_GENERIC: return address(d, o, ACCESS_GENERIC, 0);
    default: return spelled_address(d, o, n, 0);
    }
}

static unsigned log2_of(unsigned bytes)
{
    return (unsigned)__builtin_ctz(bytes);
}

static void put_address(struct exec_insn *i, const struct decode_address *a, uint32_t flags)
{
    i->a = a->slot;
    i->imm = a->imm;
    i->flags = a->flags | flags;
}

// --- ld, st ------------------------------------------------------------------------------------------------

static uint32_t reg_flag(unsigned bits)
{
    return (bits == 16 ? 0u : bits == 32 ? 1u : bits == 64 ? 2u : 3u) << ACCESS_REG_SHIFT;
}

// Returns the bits of a vector's registers, which must all have the same size.
static unsigned vector_bits(struct decode *d, const struct ptx_operand *items, unsigned n, unsigned least)
{
    unsigned bits = 0;
    for (const struct ptx_operand *o = items; o < items + n; o++)
        if (o->kind == PTX_REG) {
            unsigned own = decode_reg_bits(d, o);
            if ((bits && own != bits) || own == 1)
                decode_unsupported(d);
            bits = own;
        }
    return bits ? bits : decode_slot_bits(least);
}

struct access {
    enum ptx_type type;
    unsigned n, bytes, bits;
    struct ptx_operand items[DECODE_ITEMS];
    uint32_t flags;
};

// Describes an access to n values of that type.
static void access_items(struct decode *d, const struct ptx_operand *items, enum ptx_type type, unsigned n,
                         struct access *out)
{
    struct access a = {.type = type, .n = n, .bytes = ptx_type_bits(type) / 8};
    memcpy(a.items, items, n * sizeof *items);
    if (!a.bytes || a.bytes & (a.bytes - 1) || (a.n != 1 && a.n != 2 && a.n != 4) ||
        (a.bytes == 16 && a.n > 1) || a.bytes * a.n > 16)
        decode_unsupported(d);
    a.bits = vector_bits(d, a.items, a.n, ptx_type_bits(a.type));
    if (a.bits < ptx_type_bits(a.type))
        decode_fail(d, -EINVAL, "a register of %u bits for " STR_FMT, a.bits, STR_ARG(d->stmt->form->name));
    if ((a.bits == 128) != (a.bytes == 16))
        decode_unsupported(d);
    a.flags = log2_of(a.bytes) | log2_of(a.n) << ACCESS_VEC_SHIFT | reg_flag(a.bits) |
              (ptx_type_class(a.type) == PTX_CLASS_SINT ? ACCESS_SIGNED : 0u);
    *out = a;
}

// The same for the values of an operand.
static void access_of(struct decode *d, const struct ptx_operand *value, enum ptx_type type, unsigned n,
                      struct access *out)
{
    struct ptx_operand items[DECODE_ITEMS];
    if (decode_items(d, value, items) != n)
        decode_unsupported(d);
    access_items(d, items, type, n, out);
}

// An access to 32 bytes is two accesses to 16, after an instruction that checks the address and copies it,
// because the first load may overwrite its register. Only global memory has such accesses.
static bool is_wide(const struct ptx_form *form, enum ptx_type type)
{
    return form->vec >= 4 && form->vec * ptx_type_bits(type) == 256;
}

static void split_wide(struct decode *d, const struct ptx_operand *value, enum ptx_type type,
                       struct decode_address *a, uint32_t flags, struct access half[2])
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = d->stmt->form->vec;
    enum access_space where = (enum access_space)(a->flags >> ACCESS_SPACE_SHIFT & 7);
    if (decode_items(d, value, items) != n || (where != ACCESS_GLOBAL && where != ACCESS_GENERIC))
        decode_unsupported(d);
    for (unsigned k = 0; k < 2; k++)
        access_items(d, items + k * n / 2, type, n / 2, &half[k]);
    half[0].flags |= ACCESS_WIDE;
    half[1].flags |= ACCESS_PART;
    uint32_t kept = a->flags & ACCESS_NO_BASE ? 0 : decode_temp(d, a->flags & ACCESS_A32 ? 32 : 64);
    struct exec_insn *i = decode_emit(d, access_wide);
    put_address(i, a, flags);
    i->d = kept;
    a->slot = kept;
}

static enum ptx_type last_type(const struct ptx_form *form)
{
    return form->ntypes ? (enum ptx_type)form->types[form->ntypes - 1] : PTX_B32;
}

static void set_slot(struct exec_insn *i, unsigned k, uint32_t slot)
{
    *(k == 0 ? &i->d : k == 1 ? &i->b : k == 2 ? &i->c : &i->e) = slot;
}

static void emit_load(struct decode *d, const struct access *v, const struct decode_address *a)
{
    uint32_t slots[4];
    for (unsigned k = 0; k < v->n; k++) {
        const struct ptx_operand *o = &v->items[k];
        if (o->kind != PTX_REG && o->kind != PTX_SINK)
            decode_unsupported(d);
        slots[k] = o->kind == PTX_REG ? decode_reg(d, o) : decode_temp(d, v->bits);
    }
    exec_fn *fn = access_fn(a->flags | v->flags);
    if (!fn)
        decode_unsupported(d);
    struct exec_insn *i = decode_emit(d, fn);
    put_address(i, a, v->flags);
    for (unsigned k = 0; k < v->n; k++)
        set_slot(i, k, slots[k]);
}

static void decode_load(struct decode *d)
{
    struct access v, half[2];
    const struct ptx_form *form = d->stmt->form;
    enum ptx_type type = last_type(form);
    if (is_wide(form, type)) {
        struct decode_address a = spelled_address(d, decode_operand(d, 1), 0, 32);
        split_wide(d, decode_operand(d, 0), type, &a, 0, half);
        emit_load(d, &half[0], &a);
        a.imm += 16;
        emit_load(d, &half[1], &a);
        return;
    }
    access_of(d, decode_operand(d, 0), type, form->vec, &v);
    struct decode_address a = spelled_address(d, decode_operand(d, 1), 0, v.n * v.bytes);
    if (form->nspaces && ptx_space_is((enum ptx_space)form->spaces[0]) == PTX_SPACE_CONST)
        set_spelled(&a, ACCESS_CONST);
    emit_load(d, &v, &a);
}

static void emit_store(struct decode *d, const struct access *v, const struct decode_address *a)
{
    uint32_t slots[4];
    for (unsigned k = 0; k < v->n; k++) {
        const struct ptx_operand *o = &v->items[k];
        slots[k] = o->kind == PTX_REG                                    ? decode_reg(d, o)
                   : v->bits == decode_slot_bits(ptx_type_bits(v->type)) ? decode_source(d, o, v->type)
                                                                         : decode_source_bits(d, o, v->bits);
    }
    exec_fn *fn = access_fn(a->flags | v->flags | ACCESS_STORES);
    if (!fn)
        decode_unsupported(d);
    struct exec_insn *i = decode_emit(d, fn);
    put_address(i, a, v->flags | ACCESS_STORES);
    for (unsigned k = 0; k < v->n; k++)
        set_slot(i, k, slots[k]);
}

static void decode_store(struct decode *d)
{
    struct access v, half[2];
    enum ptx_type type = last_type(d->stmt->form);
    if (is_wide(d->stmt->form, type)) {
        struct decode_address a = spelled_address(d, decode_operand(d, 0), 0, 32);
        split_wide(d, decode_operand(d, 1), type, &a, ACCESS_STORES, half);
        emit_store(d, &half[0], &a);
        a.imm += 16;
        emit_store(d, &half[1], &a);
        return;
    }
    access_of(d, decode_operand(d, 1), type, d->stmt->form->vec, &v);
    struct decode_address a = spelled_address(d, decode_operand(d, 0), 0, v.n * v.bytes);
    emit_store(d, &v, &a);
    if (ptx_form_has(d->stmt->form, PTX_MOD_RELEASE) || ptx_form_has(d->stmt->form, PTX_MOD_VOLATILE))
        decode_emit(d, atomic_fence);
}

// --- parameters in registers -------------------------------------------------------------------------------

static struct decode_address in_frame(uint32_t offset)
{
    return (struct decode_address){.flags = ACCESS_NO_BASE | space_flag(ACCESS_LOCAL), .imm = offset};
}

void decode_put_local(struct decode *d, const struct ptx_operand *from, const struct ptx_var *type,
                      uint32_t offset)
{
    struct access v;
    struct decode_address a = in_frame(offset);
    access_of(d, from, (enum ptx_type)type->type, type->vec, &v);
    emit_store(d, &v, &a);
}

void decode_get_local(struct decode *d, const struct ptx_operand *to, const struct ptx_var *type,
                      uint32_t offset)
{
    struct access v;
    struct decode_address a = in_frame(offset);
    access_of(d, to, (enum ptx_type)type->type, type->vec, &v);
    emit_load(d, &v, &a);
}

// --- atom, red ---------------------------------------------------------------------------------------------

enum atomic_op decode_atomic_op(struct decode *d)
{
    static const struct {
        enum ptx_mod mod;
        enum atomic_op op;
    } rows[] = {
        {PTX_MOD_ADD, ATOMIC_ADD}, {PTX_MOD_INC, ATOMIC_INC}, {PTX_MOD_DEC, ATOMIC_DEC},
        {PTX_MOD_MIN, ATOMIC_MIN}, {PTX_MOD_MAX, ATOMIC_MAX}, {PTX_MOD_AND, ATOMIC_AND},
        {PTX_MOD_OR, ATOMIC_OR},   {PTX_MOD_XOR, ATOMIC_XOR}, {PTX_MOD_EXCH, ATOMIC_EXCH},
        {PTX_MOD_CAS, ATOMIC_CAS},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (ptx_form_has(d->stmt->form, rows[k].mod))
            return rows[k].op;
    decode_unsupported(d);
}

// Lists an operand's values in an instruction with form->vec of them; a sink stands for all.
static void items(struct decode *d, const struct ptx_operand *o, struct ptx_operand out[DECODE_ITEMS])
{
    unsigned n = d->stmt->form->vec;
    if (n > DECODE_ITEMS)
        decode_unsupported(d);
    if (o->kind != PTX_SINK) {
        if (decode_items(d, o, out) != n)
            decode_unsupported(d);
        return;
    }
    for (unsigned k = 0; k < n; k++)
        out[k] = *o;
}

// The operation on one element; elements are processed one after another.
struct element {
    uint32_t b, c;
    struct decode_dest dest;
    bool sink;
};

// Returns whether a later element still reads the register of this result, which is then kept aside until the
// end.
static bool must_wait(const struct element *e, unsigned k, unsigned n)
{
    for (unsigned later = k + 1; later < n; later++)
        if (e[later].b == e[k].dest.slot || e[later].c == e[k].dest.slot)
            return true;
    return false;
}

static void find_elements(struct decode *d, const struct ptx_operand *result, const struct ptx_operand *value,
                          const struct ptx_operand *other, enum ptx_type type, struct element *out)
{
    struct ptx_operand results[DECODE_ITEMS], values[DECODE_ITEMS], others[DECODE_ITEMS];
    items(d, value, values);
    if (other)
        items(d, other, others);
    if (result)
        items(d, result, results);
    for (unsigned k = 0; k < d->stmt->form->vec; k++) {
        out[k] = (struct element){.sink = !result || results[k].kind == PTX_SINK};
        out[k].b = decode_source(d, &values[k], type);
        out[k].c = other ? decode_source(d, &others[k], type) : 0;
        if (result)
            out[k].dest = decode_dest(d, &results[k], type);
    }
}

static void decode_atomic(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    bool red = form->id != PTX_OP_ATOM;
    enum atomic_op op = decode_atomic_op(d);
    if (!form->ntypes)
        decode_unsupported(d);
    enum ptx_type type = last_type(form);
    if (!atomic_knows(op, type))
        decode_unsupported(d);
    struct decode_address a = spelled_address(d, decode_operand(d, red ? 0 : 1), 0, 0);
    const struct ptx_operand *value = decode_operand(d, red ? 1 : 2);
    const struct ptx_operand *other = op == ATOMIC_CAS ? decode_operand(d, red ? 2 : 3) : NULL;
    const struct ptx_operand *result = red ? NULL : decode_operand(d, 0);
    unsigned bytes = ptx_type_bits(type) / 8;
    if ((a.flags & ACCESS_SPACE) == space_flag(ACCESS_PARAM))
        decode_unsupported(d);
    struct element e[DECODE_ITEMS];
    find_elements(d, result, value, other, type, e);
    uint32_t kept[DECODE_ITEMS] = {0};
    for (unsigned k = 0; k < form->vec; k++) {
        if (!e[k].sink && must_wait(e, k, form->vec))
            kept[k] = decode_temp(d, ptx_type_bits(type));
        struct exec_insn *i = decode_emit(d, atomic_fn(op, type));
        put_address(i, &a, log2_of(bytes) | ACCESS_ATOMIC | ACCESS_STORES | (k ? ACCESS_PART : 0u));
        i->imm += (uint64_t)k * bytes;
        i->d = kept[k] ? kept[k] : e[k].dest.slot;
        i->b = e[k].b;
        i->c = e[k].c;
        i->e = op | (uint32_t)type << ATOMIC_TYPE_SHIFT | (e[k].sink ? ATOMIC_NO_RESULT : 0) |
               (space_of(d, 0) != ACCESS_SHARED ? ATOMIC_GLOBAL : 0);
    }
    for (unsigned k = 0; k < form->vec; k++) {
        if (kept[k]) {
            struct exec_insn *i = decode_emit(d, lane_fn(lane_mov(decode_slot_bits(ptx_type_bits(type)))));
            i->d = e[k].dest.slot;
            i->a = kept[k];
        }
        decode_finish(d, &e[k].dest);
    }
}

// --- cp.async ----------------------------------------------------------------------------------------------

static void decode_copy(struct decode *d)
{
    const struct ptx_operand *bytes = decode_operand(d, 2), *source_size = ptx_operand(d->stmt, 3);
    if (bytes->kind != PTX_IMM || (bytes->value != 4 && bytes->value != 8 && bytes->value != 16))
        decode_unsupported(d);
    struct decode_address to = address(d, decode_operand(d, 0), ACCESS_SHARED, 0);
    to.flags |= ACCESS_OWN;
    struct decode_address from = address(d, decode_operand(d, 1), ACCESS_GLOBAL, 0);
    uint32_t size = 0, ignore = 0;
    // The last operand may be a 64-bit cache policy, which is ignored.
    if (source_size && source_size->kind == PTX_REG && decode_reg_bits(d, source_size) == 64)
        source_size = NULL;
    if (source_size && source_size->kind == PTX_REG && decode_reg_bits(d, source_size) == 1)
        ignore = decode_pred(d, source_size);
    else if (source_size)
        size = decode_source(d, source_size, PTX_B32);
    uint32_t log = log2_of((unsigned)bytes->value);
    struct exec_insn *i = decode_emit(d, cp_async);
    i->b = size;
    i->c = ignore;
    i->flags = log;
    put_address(decode_emit(d, control_illegal), &from, log);
    put_address(decode_emit(d, control_illegal), &to, log | ACCESS_STORES);
}

void decode_memory(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_ST:
    case PTX_OP_ST_ASYNC: decode_store(d); return;
    case PTX_OP_ATOM:
    case PTX_OP_RED:
    case PTX_OP_RED_ASYNC: decode_atomic(d); return;
    case PTX_OP_CP_ASYNC: decode_copy(d); return;
    default: decode_load(d);
    }
}

void decode_put_address(struct decode *d, const struct decode_address *a, bool stores)
{
    struct exec_insn *i = decode_emit(d, control_illegal);
    i->a = a->slot;
    i->imm = a->imm;
    i->flags = a->flags | (stores ? ACCESS_STORES : 0);
}
