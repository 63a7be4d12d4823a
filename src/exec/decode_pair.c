// SPDX-License-Identifier: MIT
// f32 arithmetic on other operands: two f32 in a register (f32x2), or halves that are converted to f32 first.
// Both use the rows of f32.
#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/pack.h"

enum { SOURCES = 3 };

static void emit(struct decode *d, const struct lane_op *op, uint32_t to, const uint32_t source[SOURCES])
{
    struct exec_insn *i = decode_emit(d, lane_fn(op->row));
    i->d = to;
    i->a = source[0];
    i->b = source[1];
    i->c = source[2];
    i->flags = op->flags;
}

// Returns the row for the same operation on f32.
static struct lane_op pick(struct decode *d, unsigned n)
{
    struct ptx_form form = *d->stmt->form;
    struct lane_op op;
    form.types[0] = PTX_F32;
    form.ntypes = 1;
    if (lane_pick(&form, n, &op))
        decode_unsupported(d);
    return op;
}

static void both(struct decode *d, unsigned n)
{
    struct lane_op op = pick(d, n);
    uint32_t part[2][SOURCES] = {{0}};
    for (unsigned k = 0; k < n; k++) {
        uint32_t from = decode_source(d, decode_operand(d, k + 1), PTX_B64);
        part[0][k] = decode_temp(d, 32);
        part[1][k] = decode_temp(d, 32);
        struct exec_insn *i = decode_emit(d, unpack_fn(64, 2));
        i->a = from;
        i->d = part[0][k];
        i->b = part[1][k];
    }
    emit(d, &op, part[0][0], part[0]);
    emit(d, &op, part[1][0], part[1]);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B64);
    struct exec_insn *i = decode_emit(d, pack_fn(64, 2));
    i->d = dest.slot;
    i->a = part[0][0];
    i->b = part[1][0];
    decode_finish(d, &dest);
}

// The last operand is f32, the others are halves.
static void mixed(struct decode *d, unsigned n)
{
    struct lane_op op = pick(d, n), wide;
    struct ptx_form form = {.op = &ptx_ops[PTX_OP_CVT], .id = PTX_OP_CVT, .ntypes = 2, .vec = 1};
    uint32_t source[SOURCES] = {0};
    form.types[0] = PTX_F32;
    form.types[1] = d->stmt->form->types[1];
    if (lane_pick(&form, 1, &wide))
        decode_unsupported(d);
    for (unsigned k = 0; k + 1 < n; k++) {
        uint32_t from = decode_source(d, decode_operand(d, k + 1), (enum ptx_type)form.types[1]);
        source[k] = decode_temp(d, 32);
        emit(d, &wide, source[k], (const uint32_t[SOURCES]){from});
    }
    source[n - 1] = decode_source(d, decode_operand(d, n), PTX_F32);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_F32);
    emit(d, &op, dest.slot, source);
    decode_finish(d, &dest);
}

bool decode_pair(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    unsigned n = form->id == PTX_OP_FMA ? 3 : 2;
    if (form->id != PTX_OP_FMA && form->id != PTX_OP_ADD && form->id != PTX_OP_SUB && form->id != PTX_OP_MUL)
        return false;
    if (form->ntypes == 1 && form->types[0] == PTX_F32X2) {
        both(d, n);
        return true;
    }
    if (form->ntypes != 2 || form->types[0] != PTX_F32 || form->id == PTX_OP_MUL ||
        (form->types[1] != PTX_F16 && form->types[1] != PTX_BF16))
        return false;
    mixed(d, n);
    return true;
}
