// SPDX-License-Identifier: MIT
// Warp collectives and block barriers; and instructions that are neither arithmetic nor memory accesses.
#include <errno.h>

#include "exec/atomic.h"
#include "exec/barrier.h"
#include "exec/cluster.h"
#include "exec/control.h"
#include "exec/decode.h"
#include "exec/lane.h"
#include "exec/collective.h"
#include "exec/space.h"
#include "exec/special.h"

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

static enum ptx_type type0(struct decode *d)
{
    return d->stmt->form->ntypes ? (enum ptx_type)d->stmt->form->types[0] : PTX_B32;
}

// --- lanes -------------------------------------------------------------------------------------------------

// d or d|p
static void results(struct decode *d, enum ptx_type type, struct decode_dest *first, struct decode_dest *p)
{
    const struct ptx_operand *o = decode_operand(d, 0);
    *p = (struct decode_dest){0};
    if (o->kind == PTX_PAIR) {
        *p = decode_dest(d, o + 2, PTX_PRED);
        o = o + 1;
    } else {
        p->slot = decode_temp(d, 1);
    }
    *first = decode_dest(d, o, type);
}

static uint32_t members(struct decode *d, unsigned operand, uint32_t *flags)
{
    unsigned id = d->stmt->form->id;
    if (!has(d, PTX_MOD_SYNC) && (id == PTX_OP_SHFL || id == PTX_OP_VOTE))
        return 0;
    if (!has(d, PTX_MOD_SYNC))
        decode_unsupported(d);
    const struct ptx_operand *o = decode_operand(d, operand);
    *flags |= COLLECTIVE_SYNC | (o->kind == PTX_IMM ? COLLECTIVE_CONSTANT : 0);
    return decode_source(d, o, PTX_B32);
}

static void shuffle(struct decode *d)
{
    uint32_t flags = has(d, PTX_MOD_UP)     ? COLLECTIVE_UP
                     : has(d, PTX_MOD_DOWN) ? COLLECTIVE_DOWN
                     : has(d, PTX_MOD_BFLY) ? COLLECTIVE_BFLY
                                            : COLLECTIVE_IDX;
    uint32_t a = decode_source(d, decode_operand(d, 1), PTX_B32),
             b = decode_source(d, decode_operand(d, 2), PTX_B32),
             c = decode_source(d, decode_operand(d, 3), PTX_B32), e = members(d, 4, &flags);
    struct decode_dest first, p;
    results(d, PTX_B32, &first, &p);
    *decode_emit(d, collective_shfl) = (struct exec_insn){
        .fn = collective_shfl, .d = first.slot, .a = a, .b = b, .c = c, .e = e, .flags = flags, .lo = p.slot};
}

static void vote(struct decode *d)
{
    bool ballot = has(d, PTX_MOD_BALLOT);
    uint32_t flags = ballot                ? COLLECTIVE_BALLOT
                     : has(d, PTX_MOD_ALL) ? COLLECTIVE_ALL
                     : has(d, PTX_MOD_ANY) ? COLLECTIVE_ANY
                                           : COLLECTIVE_UNI;
    uint32_t a = decode_pred(d, decode_operand(d, 1)), e = members(d, 2, &flags);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), ballot ? PTX_B32 : PTX_PRED);
    *decode_emit(d, collective_vote) =
        (struct exec_insn){.fn = collective_vote, .d = dest.slot, .a = a, .e = e, .flags = flags};
}

static void match(struct decode *d)
{
    unsigned bits = ptx_type_bits(type0(d));
    if (bits != 32 && bits != 64)
        decode_unsupported(d);
    uint32_t flags = bits == 64 ? COLLECTIVE_WIDE : 0;
    uint32_t a = decode_source(d, decode_operand(d, 1), type0(d)), e = members(d, 2, &flags);
    struct decode_dest first, p;
    results(d, PTX_B32, &first, &p);
    exec_fn *fn = has(d, PTX_MOD_ALL) ? collective_match_all : collective_match_any;
    *decode_emit(d, fn) =
        (struct exec_insn){.fn = fn, .d = first.slot, .a = a, .e = e, .flags = flags, .lo = p.slot};
}

static void redux(struct decode *d)
{
    if (ptx_type_class(type0(d)) == PTX_CLASS_FLOAT || ptx_type_bits(type0(d)) != 32)
        decode_unsupported(d);
    uint32_t flags = has(d, PTX_MOD_ADD)   ? COLLECTIVE_ADD
                     : has(d, PTX_MOD_MIN) ? COLLECTIVE_MIN
                     : has(d, PTX_MOD_MAX) ? COLLECTIVE_MAX
                     : has(d, PTX_MOD_AND) ? COLLECTIVE_AND
                     : has(d, PTX_MOD_OR)  ? COLLECTIVE_OR
                                           : COLLECTIVE_XOR;
    flags |= ptx_type_class(type0(d)) == PTX_CLASS_SINT ? COLLECTIVE_SIGNED : 0;
    uint32_t a = decode_source(d, decode_operand(d, 1), PTX_B32), e = members(d, 2, &flags);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B32);
    *decode_emit(d, collective_redux) =
        (struct exec_insn){.fn = collective_redux, .d = dest.slot, .a = a, .e = e, .flags = flags};
}

static void elect(struct decode *d)
{
    uint32_t flags = 0, e = members(d, 1, &flags);
    struct decode_dest first, p;
    results(d, PTX_B32, &first, &p);
    *decode_emit(d, collective_elect) =
        (struct exec_insn){.fn = collective_elect, .d = first.slot, .e = e, .flags = flags, .lo = p.slot};
}

// --- barriers ----------------------------------------------------------------------------------------------

static void barrier(struct decode *d, bool reduces)
{
    unsigned first = reduces ? 1 : 0, n = 0;
    while (ptx_operand(d->stmt, n))
        n++;
    uint32_t flags = has(d, PTX_MOD_ARRIVE) ? BARRIER_NO_WAIT : 0;
    if (n > first && decode_operand(d, first)->kind != PTX_IMM)
        flags |= BARRIER_VARIES;
    uint32_t a = n > first ? decode_source(d, decode_operand(d, first), PTX_B32) : decode_const(d, 32, 0),
             b = 0, c = 0;
    struct decode_dest dest = {0};
    if (reduces && !has(d, PTX_MOD_POPC) && !has(d, PTX_MOD_AND) && !has(d, PTX_MOD_OR))
        decode_unsupported(d);
    if (reduces) {
        flags |= has(d, PTX_MOD_POPC) ? BARRIER_POPC : has(d, PTX_MOD_AND) ? BARRIER_AND : BARRIER_OR;
        c = decode_pred(d, decode_operand(d, n - 1));
        dest = decode_dest(d, decode_operand(d, 0), has(d, PTX_MOD_POPC) ? PTX_B32 : PTX_PRED);
    }
    if (n - first > (reduces ? 2u : 1u)) {
        flags |= BARRIER_COUNTED;
        b = decode_source(d, decode_operand(d, first + 1), PTX_B32);
    }
    *decode_emit(d, barrier_arrive) =
        (struct exec_insn){.fn = barrier_arrive, .d = dest.slot, .a = a, .b = b, .c = c, .flags = flags};
}

void decode_collective(struct decode *d)
{
    if (d->stmt->form->id == PTX_OP_ACTIVEMASK) {
        struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B32);
        decode_emit(d, collective_activemask)->d = dest.slot;
        return;
    }
    uint32_t skip = decode_skip_begin(d);
    switch (d->stmt->form->id) {
    case PTX_OP_SHFL: shuffle(d); break;
    case PTX_OP_VOTE: vote(d); break;
    case PTX_OP_MATCH: match(d); break;
    case PTX_OP_REDUX: redux(d); break;
    case PTX_OP_ELECT: elect(d); break;
    case PTX_OP_BAR_WARP: {
        uint32_t e = decode_source(d, decode_operand(d, 0), PTX_B32);
        *decode_emit(d, collective_barrier) =
            (struct exec_insn){.fn = collective_barrier, .e = e, .flags = COLLECTIVE_SYNC};
        break;
    }
    case PTX_OP_BARRIER_CLUSTER:
        decode_emit(d, has(d, PTX_MOD_ARRIVE) ? cluster_arrive : cluster_wait);
        break;
    default: barrier(d, d->stmt->form->id != PTX_OP_BAR && d->stmt->form->id != PTX_OP_BARRIER);
    }
    decode_skip_end(d, skip);
}

// --- the rest ----------------------------------------------------------------------------------------------

// cvta: generic addresses of .global, .const and .param are the addresses themselves; those of .shared and
// .local are offsets in a window.
static void convert_address(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    enum ptx_space where = form->nspaces ? ptx_space_is((enum ptx_space)form->spaces[0]) : PTX_SPACE_GLOBAL;
    uint64_t window = where == PTX_SPACE_SHARED || where == PTX_SPACE_SHARED_CLUSTER ? space.shared_window
                      : where == PTX_SPACE_LOCAL                                     ? space.local_window
                                                                                     : 0;
    if (has(d, PTX_MOD_TO))
        window = -window;
    unsigned bits = ptx_type_bits(type0(d));
    if (bits != 32 && bits != 64)
        decode_unsupported(d);
    uint32_t a = decode_source(d, decode_operand(d, 1), type0(d));
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), type0(d));
    if (where == PTX_SPACE_PARAM && bits == 64 && d->func->kernel && !has(d, PTX_MOD_TO)) {
        struct exec_insn *i = decode_emit(d, special_param_cvta);
        i->d = dest.slot;
        i->a = a;
        i->flags = SPECIAL_WIDE;
        return;
    }
    if (!window || bits != 64) {
        struct exec_insn *i = decode_emit(d, lane_fn(lane_mov(bits)));
        i->d = dest.slot;
        i->a = a;
        return;
    }
    uint32_t b = decode_const(d, 64, window);
    struct exec_insn *i = decode_emit(d, lane_fn(lane_add()));
    i->d = dest.slot;
    i->a = a;
    i->b = b;
}

static unsigned operand_bits(struct decode *d, const struct ptx_operand *o)
{
    return o->kind == PTX_REG ? decode_reg_bits(d, o) : 64;
}

static void is_space(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    const struct ptx_operand *o = decode_operand(d, 1);
    unsigned bits = operand_bits(d, o);
    if (bits != 32 && bits != 64)
        decode_fail(d, -EINVAL, "an address of %u bits", bits);
    uint32_t a = decode_source_bits(d, o, bits);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_PRED);
    struct exec_insn *i = decode_emit(d, special_isspacep);
    i->d = dest.slot;
    i->a = a;
    i->lo = form->nspaces ? ptx_space_is((enum ptx_space)form->spaces[0]) : PTX_SPACE_GLOBAL;
    i->flags = bits == 64 ? SPECIAL_WIDE : 0;
}

static uint64_t alignment(struct decode *d)
{
    const struct ptx_operand *o = ptx_operand(d->stmt, 2);
    if (!o)
        return 16;
    if (o->kind != PTX_IMM || o->value <= 0 || o->value & (o->value - 1))
        decode_fail(d, -EINVAL, "an alignment must be a power of two");
    return (uint64_t)o->value;
}

static void stack(struct decode *d)
{
    unsigned bits = ptx_type_bits(type0(d));
    if (bits != 32 && bits != 64)
        decode_unsupported(d);
    uint32_t wide = bits == 64 ? SPECIAL_WIDE : 0;
    d->func->has_alloca = true;
    if (d->stmt->form->id == PTX_OP_STACKRESTORE) {
        uint32_t a = decode_source(d, decode_operand(d, 0), type0(d));
        struct exec_insn *i = decode_emit(d, special_stackrestore);
        i->a = a;
        i->flags = wide;
        return;
    }
    bool save = d->stmt->form->id == PTX_OP_STACKSAVE;
    uint64_t align = alignment(d);
    uint32_t a = save ? 0 : decode_source(d, decode_operand(d, 1), type0(d));
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), type0(d));
    struct exec_insn *i = decode_emit(d, save ? special_stacksave : special_alloca);
    i->d = dest.slot;
    i->a = a;
    i->imm = align;
    i->flags = wide;
}

void decode_special(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_MEMBAR:
    case PTX_OP_FENCE: decode_emit(d, atomic_fence); return;
    case PTX_OP_CVTA: convert_address(d); return;
    case PTX_OP_ISSPACEP: is_space(d); return;
    case PTX_OP_CREATEPOLICY: {
        struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B64);
        uint32_t a = decode_const(d, 64, 0);
        struct exec_insn *i = decode_emit(d, lane_fn(lane_mov(64)));
        i->d = dest.slot;
        i->a = a;
        return;
    }
    case PTX_OP_NANOSLEEP: {
        uint32_t skip = decode_skip_begin(d);
        decode_emit(d, control_nanosleep);
        decode_skip_end(d, skip);
        return;
    }
    default: stack(d);
    }
}
