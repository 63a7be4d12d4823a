// SPDX-License-Identifier: MIT
// mbarrier, bulk copies, st.async, red.async, addresses in clusters.
#include <errno.h>

#include "exec/access.h"
#include "exec/atomic.h"
#include "exec/bulk.h"
#include "exec/cluster.h"
#include "exec/control.h"
#include "exec/decode.h"
#include "exec/mbarrier.h"

static bool has(struct decode *d, enum ptx_mod mod)
{
    return ptx_form_has(d->stmt->form, mod);
}

// --- addresses ---------------------------------------------------------------------------------------------

static void cluster_of(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    bool map = form->id == PTX_OP_MAPA;
    enum ptx_type type = form->ntypes ? (enum ptx_type)form->types[0] : PTX_U64;
    // There are no 32-bit generic addresses.
    uint32_t flags = ptx_type_bits(type) != 64 ? 0
                     : form->nspaces           ? CLUSTER_WIDE
                                               : CLUSTER_WIDE | CLUSTER_GENERIC;
    // A shared variable's name is its offset, even where a generic address is expected.
    if (decode_operand(d, 1)->kind == PTX_SYM)
        flags &= ~(uint32_t)CLUSTER_GENERIC;
    uint32_t a = decode_source(d, decode_operand(d, 1), type),
             b = map ? decode_source(d, decode_operand(d, 2), PTX_B32) : 0;
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), map ? type : PTX_U32);
    exec_fn *fn = map ? cluster_mapa : cluster_getctarank;
    *decode_emit(d, fn) = (struct exec_insn){.fn = fn, .d = dest.slot, .a = a, .b = b, .flags = flags};
    decode_finish(d, &dest);
}

// --- mbarrier ----------------------------------------------------------------------------------------------

// Decodes an instruction whose first operand is the barrier and whose optional second operand is a number.
static void change(struct decode *d, exec_fn *fn)
{
    const struct ptx_operand *o = ptx_operand(d->stmt, 1);
    struct decode_address a = decode_address(d, decode_operand(d, 0), 0);
    uint32_t b = o ? decode_source(d, o, PTX_B32) : 0;
    decode_emit(d, fn)->b = b;
    decode_put_address(d, &a, true);
}

static void arrive(struct decode *d)
{
    const struct ptx_operand *o = ptx_operand(d->stmt, 2);
    struct decode_address a = decode_address(d, decode_operand(d, 1), 0);
    struct decode_dest dest = {0};
    uint32_t number = o ? decode_source(d, o, PTX_B32) : 0;
    bool expect = has(d, PTX_MOD_EXPECT_TX);
    if (expect && !o)
        decode_unsupported(d);
    if (decode_operand(d, 0)->kind != PTX_SINK)
        dest = decode_dest(d, decode_operand(d, 0), PTX_B64);
    struct exec_insn *i = decode_emit(d, mbarrier_arrive);
    i->d = dest.slot;
    i->b = expect ? 0 : number;
    i->c = expect ? number : 0;
    i->flags = (d->stmt->form->id == PTX_OP_MBARRIER_ARRIVE_DROP ? MBARRIER_DROP : 0u) |
               (expect ? MBARRIER_EXPECT : 0u);
    decode_put_address(d, &a, true);
}

static void wait(struct decode *d)
{
    bool try = d->stmt->form->id == PTX_OP_MBARRIER_TRY_WAIT, parity = has(d, PTX_MOD_PARITY);
    uint32_t skip = try ? decode_skip_begin(d) : PTX_NONE;
    struct decode_address a = decode_address(d, decode_operand(d, 1), 0);
    uint32_t b = decode_source(d, decode_operand(d, 2), parity ? PTX_B32 : PTX_B64);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_PRED);
    struct exec_insn *i = decode_emit(d, mbarrier_wait);
    i->d = dest.slot;
    i->b = b;
    i->flags = (parity ? MBARRIER_PARITY : 0u) | (try ? MBARRIER_TRY : 0u);
    decode_put_address(d, &a, false);
    if (try)
        decode_skip_end(d, skip);
}

static void pending(struct decode *d)
{
    uint32_t a = decode_source(d, decode_operand(d, 1), PTX_B64);
    struct decode_dest dest = decode_dest(d, decode_operand(d, 0), PTX_B32);
    struct exec_insn *i = decode_emit(d, mbarrier_pending);
    i->d = dest.slot;
    i->a = a;
    decode_finish(d, &dest);
}

// Copies complete at once. Without .noinc the barrier expects one more arrival, which comes at once, so
// nothing remains.
static void after_copies(struct decode *d)
{
    struct decode_address a = decode_address(d, decode_operand(d, 0), 0);
    if (!has(d, PTX_MOD_NOINC))
        return;
    decode_emit(d, mbarrier_arrive);
    decode_put_address(d, &a, true);
}

// --- bulk --------------------------------------------------------------------------------------------------

static uint32_t reduction(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    enum atomic_op op = decode_atomic_op(d);
    if (!form->ntypes || !atomic_knows(op, (enum ptx_type)form->types[form->ntypes - 1]))
        decode_unsupported(d);
    bool shared = ptx_space_is((enum ptx_space)form->spaces[0]) != PTX_SPACE_GLOBAL;
    return op | (uint32_t)form->types[form->ntypes - 1] << ATOMIC_TYPE_SHIFT | (shared ? 0 : ATOMIC_GLOBAL);
}

static void bulk(struct decode *d)
{
    bool signals = has(d, PTX_MOD_MBARRIER_COMPLETE_TX_BYTES), multicast = has(d, PTX_MOD_MULTICAST_CLUSTER);
    if (d->stmt->form->nspaces < 2 || has(d, PTX_MOD_CP_MASK) || signals == has(d, PTX_MOD_BULK_GROUP))
        decode_unsupported(d);
    struct decode_address to = decode_address(d, decode_operand(d, 0), 0),
                          from = decode_address(d, decode_operand(d, 1), 1), barrier = {0};
    uint32_t bytes = decode_source(d, decode_operand(d, 2), PTX_B32);
    struct exec_insn made = {.fn = bulk_copy, .b = bytes, .flags = signals ? BULK_SIGNALS : 0};
    if (signals)
        barrier = decode_address(d, decode_operand(d, 3), DECODE_SHARED);
    if (multicast) {
        made.c = decode_source(d, decode_operand(d, 4), PTX_B16);
        made.flags |= BULK_MULTICAST;
    }
    if (d->stmt->form->id == PTX_OP_CP_REDUCE_BULK) {
        made.e = reduction(d);
        made.flags |= BULK_REDUCES;
    }
    *decode_emit(d, bulk_copy) = made;
    decode_put_address(d, &to, true);
    decode_put_address(d, &from, false);
    if (signals)
        decode_put_address(d, &barrier, true);
}

// Emits a store or a reduction, and a signal to the barrier.
static void store_and_signal(struct decode *d)
{
    const struct ptx_form *form = d->stmt->form;
    if (!has(d, PTX_MOD_MBARRIER_COMPLETE_TX_BYTES) || !form->ntypes)
        decode_unsupported(d);
    unsigned bytes = ptx_type_bits((enum ptx_type)form->types[form->ntypes - 1]) / 8 * form->vec;
    decode_memory(d);
    // The barrier is in the space of the store; generic if the store spells none.
    struct decode_address barrier = decode_address(d, decode_operand(d, 2), 0);
    decode_emit(d, bulk_signal)->flags = bytes << BULK_SIZE_SHIFT;
    decode_put_address(d, &barrier, true);
}

void decode_cluster(struct decode *d)
{
    switch (d->stmt->form->id) {
    case PTX_OP_MAPA:
    case PTX_OP_GETCTARANK: cluster_of(d); return;
    case PTX_OP_ST_ASYNC:
    case PTX_OP_RED_ASYNC: store_and_signal(d); return;
    case PTX_OP_CP_ASYNC_MBARRIER: after_copies(d); return;
    case PTX_OP_CP_ASYNC_BULK:
    case PTX_OP_CP_REDUCE_BULK: bulk(d); return;
    case PTX_OP_MBARRIER_INIT: change(d, mbarrier_init); return;
    case PTX_OP_MBARRIER_INVAL: change(d, mbarrier_inval); return;
    case PTX_OP_MBARRIER_EXPECT_TX: change(d, mbarrier_expect); return;
    case PTX_OP_MBARRIER_COMPLETE_TX: change(d, mbarrier_complete); return;
    case PTX_OP_MBARRIER_TEST_WAIT:
    case PTX_OP_MBARRIER_TRY_WAIT: wait(d); return;
    case PTX_OP_MBARRIER_PENDING_COUNT: pending(d); return;
    default: arrive(d);
    }
}
