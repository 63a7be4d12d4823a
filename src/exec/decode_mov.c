// SPDX-License-Identifier: MIT
// mov, and its vectors: values are built from parts and split into parts.
#include <errno.h>

#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/pack.h"
#include "exec/special.h"

static unsigned type_bits(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    return form->ntypes ? ptx_type_bits((enum ptx_type)form->types[0]) : 32;
}

// d = {a, b, ...}: the first part is the lowest.
static void pack(struct decode *d, const struct ptx_operand *to, const struct ptx_operand *from)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = decode_items(d, from, items), bits = type_bits(d);
    if ((n != 2 && n != 4) || bits < 16 || bits / n < 8)
        decode_unsupported(d);
    uint32_t part[4] = {0};
    for (unsigned k = 0; k < n; k++)
        part[k] = decode_source_bits(d, &items[k], bits / n);
    struct decode_dest dest = decode_dest_bits(d, to, bits);
    exec_fn *fn = pack_fn(bits, n);
    if (!fn)
        decode_unsupported(d);
    struct exec_insn *i = decode_emit(d, fn);
    i->d = dest.slot;
    i->a = part[0];
    i->b = part[1];
    i->c = part[2];
    i->e = part[3];
    decode_finish(d, &dest);
}

static void unpack(struct decode *d, const struct ptx_operand *to, const struct ptx_operand *from)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = decode_items(d, to, items), bits = type_bits(d);
    if ((n != 2 && n != 4) || bits < 16 || bits / n < 8)
        decode_unsupported(d);
    uint32_t source = decode_source_bits(d, from, bits);
    struct decode_dest part[4];
    for (unsigned k = 0; k < n; k++)
        part[k] = decode_dest_bits(d, &items[k], bits / n);
    exec_fn *fn = unpack_fn(bits, n);
    if (!fn)
        decode_unsupported(d);
    struct exec_insn *i = decode_emit(d, fn);
    i->a = source;
    i->d = part[0].slot;
    i->b = part[1].slot;
    i->c = n > 2 ? part[2].slot : 0;
    i->e = n > 2 ? part[3].slot : 0;
    for (unsigned k = 0; k < n; k++)
        decode_finish(d, &part[k]);
}

// {a, b, c, d} = %tid: reads each component by itself.
static void read_vector(struct decode *d, const struct ptx_operand *to, const struct ptx_operand *from)
{
    struct ptx_operand items[DECODE_ITEMS];
    unsigned n = decode_items(d, to, items);
    for (unsigned k = 0; k < n && k < 4; k++) {
        struct decode_dest dest = decode_dest(d, &items[k], PTX_B32);
        struct exec_insn *i = decode_emit(d, special_fn(from->id, k, 0));
        i->d = dest.slot;
        i->lo = from->id;
        i->hi = k;
        decode_finish(d, &dest);
    }
}

static void move(struct decode *d, unsigned bits, uint32_t to, uint32_t from)
{
    struct exec_insn *i = decode_emit(d, lane_fn(lane_mov(bits)));
    i->d = to;
    i->a = from;
}

// mov.v2 and mov.v4: everything is read before anything is written.
static void move_vector(struct decode *d, const struct ptx_operand *to, const struct ptx_operand *from,
                        enum ptx_type type)
{
    struct ptx_operand in[DECODE_ITEMS], out[DECODE_ITEMS];
    unsigned n = d->stmt->form->vec, bits = decode_slot_bits(ptx_type_bits(type));
    if (decode_items(d, from, in) != n || decode_items(d, to, out) != n)
        decode_unsupported(d);
    uint32_t source[DECODE_ITEMS];
    struct decode_dest dest[DECODE_ITEMS];
    for (unsigned k = 0; k < n; k++) {
        source[k] = decode_source(d, &in[k], type);
        dest[k] = decode_dest(d, &out[k], type);
    }
    for (unsigned k = 0; k < n; k++)
        for (unsigned earlier = 0; earlier < k; earlier++)
            if (dest[earlier].slot == source[k]) {
                uint32_t kept = decode_temp(d, bits);
                move(d, bits, kept, source[k]);
                source[k] = kept;
            }
    for (unsigned k = 0; k < n; k++)
        move(d, bits, dest[k].slot, source[k]);
    for (unsigned k = 0; k < n; k++)
        decode_finish(d, &dest[k]);
}

void decode_mov(struct decode *d)
{
    const struct ptx_operand *to = decode_operand(d, 0), *from = decode_operand(d, 1);
    enum ptx_type type = d->stmt->form->ntypes ? (enum ptx_type)d->stmt->form->types[0] : PTX_B32;
    if (from->kind == PTX_SREG && decode_is_vector(d, to)) {
        read_vector(d, to, from);
        return;
    }
    if (d->stmt->form->vec > 1) {
        move_vector(d, to, from, type);
        return;
    }
    if (decode_is_vector(d, from)) {
        pack(d, to, from);
        return;
    }
    if (decode_is_vector(d, to)) {
        unpack(d, to, from);
        return;
    }
    uint32_t slot = decode_source(d, from, type);
    struct decode_dest dest = decode_dest(d, to, type);
    struct exec_insn *last = d->code.len ? &d->code.items[d->code.len - 1] : NULL;
    // If the last instruction only made this value in a temporary, it writes to the destination instead.
    if (from->kind != PTX_REG && from->kind != PTX_IMM && last && last->d == slot && !dest.extend &&
        d->ntemps[slots_class(decode_slot_bits(ptx_type_bits(type)))] &&
        d->pos.items[d->pos.len - 1] == d->stmt_pos && d->code.len > d->block_at[d->block]) {
        last->d = dest.slot;
        return;
    }
    move(d, decode_slot_bits(ptx_type_bits(type)), dest.slot, slot);
    decode_finish(d, &dest);
}
