// SPDX-License-Identifier: MIT
// Bulk copies, and copies of boxes of tensors. The hardware makes them after the instruction, and has rules
// of its own for their addresses; what it would do at another place is not known for certain, and a copy
// there could overwrite the barrier that others wait for. So a copy is left out if its end in shared memory,
// its size, the blocks that it names or the coordinates where a box begins are wrong, and a barrier that
// waits for its bytes receives their number:
//
//            the barrier, the size, the blocks, where a box that is not loaded begins, each address in
//            shared memory: a record, and bra leave
//            addresses in global memory are fenced as others are
//            bra make
//   leave:   mbarrier.complete_tx; bra over, or exit if the size is wrong: the thread may wait for another
//            one
//   make:    the instruction
//   over:
#include <errno.h>

#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

bool fence_is_copy(const struct ptx_stmt *s)
{
    switch (s->form->id) {
    case PTX_OP_CP_ASYNC_BULK:
    case PTX_OP_CP_ASYNC_BULK_PREFETCH:
    case PTX_OP_CP_ASYNC_BULK_TENSOR:
    case PTX_OP_CP_REDUCE_BULK:
    case PTX_OP_CP_REDUCE_BULK_TENSOR: return true;
    default: return false;
    }
}

static bool copies_box(const struct ptx_stmt *s)
{
    return s->form->id == PTX_OP_CP_ASYNC_BULK_TENSOR || s->form->id == PTX_OP_CP_REDUCE_BULK_TENSOR;
}

// The bytes are those of the operand that spells them, a number too: the address need not be a multiple of
// it.
unsigned fence_copy_mem(const struct ptx_func *f, const struct ptx_stmt *s, struct ptx_mem mem[PTX_MAX_MEM])
{
    unsigned n = ptx_stmt_mem(f, s, mem);
    bool prefetch = s->form->id == PTX_OP_CP_ASYNC_BULK_PREFETCH;
    const struct ptx_operand *size = ptx_operand(s, prefetch ? 1 : 2);
    for (unsigned i = 0; i < n; i++) {
        bool barrier = mem[i].atomic && i > 0;
        mem[i].reads |= prefetch;
        if (mem[i].extent != PTX_EXTENT_PLAIN || barrier)
            continue;
        mem[i].extent = PTX_EXTENT_COUNTED;
        mem[i].bytes = 0;
        mem[i].size = size;
    }
    return n;
}

static void leave(struct fence_func *k, uint32_t at, uint32_t site, enum kfence_kind kind, uint32_t value)
{
    BEFORE(k, at, "cvt.u64.u32 %0, %1;", edit_reg(k->to[0]), edit_reg(value));
    fence_end(k, at, KFENCE_WHAT(site, 0, KFENCE_WRITES), kind, k->to[0]);
}

// Sets k->low to the blocks of the operand, and k->high to those that the cluster has.
static void load_blocks(struct fence_func *k, uint32_t at, const struct ptx_operand *blocks)
{
    if (blocks->kind == PTX_IMM)
        BEFORE(k, at, "mov.u32 %0, %1;", edit_reg(k->low), edit_imm(blocks->value & 0xffff));
    else
        BEFORE(k, at, "cvt.u32.u16 %0, %1;", edit_reg(k->low), edit_reg(blocks->id));
    BEFORE(k, at, "mov.u32 %0, %cluster_nctarank;\nmov.u32 %1, 1;\nshl.b32 %0, %1, %0;\nsub.u32 %0, %0, 1;",
           edit_reg(k->high), edit_reg(k->bits));
}

static int look_at_blocks(struct fence_func *k, uint32_t at, const struct ptx_operand *blocks)
{
    uint32_t site, good = edit_new_label(k->k->all.c->edit);
    int err = fence_site(k, at, &site);
    load_blocks(k, at, blocks);
    BEFORE(k, at, "not.b32 %0, %0;\nand.b32 %0, %0, %1;\nsetp.eq.u32 %2, %0, 0;\n@%2 bra %3;",
           edit_reg(k->high), edit_reg(k->low), edit_reg(k->bad), edit_sym(good));
    leave(k, at, site, KFENCE_BAD_BLOCKS, k->high);
    edit_place_label(k->k->all.c->edit, at, good);
    return err;
}

// Returns the coordinates of the box that a statement stores or reduces: a group; NULL: it does neither.
static const struct ptx_operand *sent_to(const struct ptx_stmt *s)
{
    const struct ptx_operand *map = ptx_operand(s, 0);
    if (!copies_box(s) || ptx_form_has(s->form, PTX_MOD_TILE_SCATTER4) || map->kind != PTX_TUPLE)
        return NULL;
    if (!s->form->nspaces || ptx_space_is((enum ptx_space)s->form->spaces[0]) != PTX_SPACE_GLOBAL)
        return NULL;
    const struct ptx_operand *at = ptx_next(map + 1);
    return ptx_is_group(at) ? at : NULL;
}

// A GPU calls a store or a reduction illegal if a coordinate is negative.
static int look_at_start(struct fence_func *k, uint32_t at)
{
    const struct ptx_operand *list = sent_to(&k->f->stmts[at]), *c = list ? list + 1 : NULL;
    uint32_t site, good = edit_new_label(k->k->all.c->edit);
    if (!list)
        return 0;
    int err = fence_site(k, at, &site);
    BEFORE(k, at, "mov.u32 %0, 0;", edit_reg(k->low));
    for (int64_t i = 0; i < list->value; i++, c = ptx_next(c))
        BEFORE(k, at, "or.b32 %0, %0, %1;", edit_reg(k->low), *c);
    BEFORE(k, at, "setp.ge.s32 %0, %1, 0;\n@%0 bra %2;", edit_reg(k->bad), edit_reg(k->low), edit_sym(good));
    leave(k, at, site, KFENCE_BEFORE, k->low);
    edit_place_label(k->k->all.c->edit, at, good);
    return err;
}

// Each block that the copy is made to has a barrier at the same place as this one.
static const char complete_all[] =
    "and.b32 %0, %0, %1;\nand.b32 %2, %2, 0xFFFFFF;\n"
    "next:\nand.b32 %1, %0, 1;\nsetp.ne.u32 %3, %1, 0;\n"
    "@%3 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%2], %4;\n"
    "shr.u32 %0, %0, 1;\nadd.u32 %2, %2, 0x1000000;\nsetp.ne.u32 %3, %0, 0;\n@%3 bra next;\n";

// The barrier has been found to be in shared memory: row 0 has its address, unless that is one of a variable.
// A barrier cannot hold the number of bytes of every wrong size: a GPU ends the context then.
static void complete(struct fence_func *k, uint32_t at, const struct ptx_mem *barrier)
{
    const struct ptx_operand *blocks = check_copy_blocks(&k->f->stmts[at], barrier);
    uint32_t to = k->narrow[0], past = edit_new_label(k->k->all.c->edit), size = k->size;
    if (copies_box(&k->f->stmts[at]))
        size = fence_box_bytes(k, at);
    BEFORE(k, at, "setp.gt.u32 %0, %1, %2;\n@%0 bra %3;", edit_reg(k->bad), edit_reg(size),
           edit_imm(FENCE_MBARRIER_MOST), edit_sym(past));
    if (!fence_wants(k, barrier))
        fence_load_shared(k, at, barrier->addr, to);
    if (blocks) {
        load_blocks(k, at, blocks);
        BEFORE(k, at, complete_all, edit_reg(k->low), edit_reg(k->high), edit_reg(to), edit_reg(k->bad),
               edit_reg(size));
    } else {
        BEFORE(k, at,
               "xor.b32 %0, %1, %2;\nsetp.lt.u32 %3, %0, 0x1000000;\n"
               "@%3 mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%1], %4;\n"
               "@!%3 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%1], %4;",
               edit_reg(k->bits), edit_reg(to), edit_reg(k->own), edit_reg(k->bad), edit_reg(size));
    }
    edit_place_label(k->k->all.c->edit, at, past);
}

// The rows, the barrier first: without it nothing can be completed.
static int look(struct fence_func *k, uint32_t at, struct ptx_mem *mem, unsigned n, uint32_t over)
{
    bool signals = n > 1 && mem[n - 1].atomic && mem[n - 1].extent == PTX_EXTENT_PLAIN && k->k->exact_shared;
    unsigned rows = 0;
    int err = 0;
    k->leave = over;
    if (signals && fence_wants(k, &mem[n - 1]))
        err = fence_row(k, at, &mem[n - 1], rows++, n - 1);
    if (signals) {
        k->leave = edit_new_label(k->k->all.c->edit);
        k->ends = edit_new_reg(k->k->all.c->edit, PTX_PRED);
        BEFORE(k, at, "setp.ne.b32 %0, 0, 0;", edit_reg(k->ends));
    }
    if (!err)
        err = fence_size(k, at, mem, n);
    const struct ptx_operand *blocks = signals ? check_copy_blocks(&k->f->stmts[at], &mem[n - 1]) : NULL;
    if (!err && blocks)
        err = look_at_blocks(k, at, blocks);
    if (!err)
        err = look_at_start(k, at);
    for (unsigned i = 0; i < n - signals && !err; i++)
        if (fence_wants(k, &mem[i]))
            err = rows == FENCE_ROWS ? -ENOTSUP : fence_row(k, at, &mem[i], rows++, i);
    return err;
}

int fence_copy(struct fence_func *k, uint32_t at)
{
    struct edit *e = k->k->all.c->edit;
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct ptx_stmt *s = &k->f->stmts[at];
    unsigned n = fence_copy_mem(k->f, s, mem);
    uint32_t over = edit_new_label(e), make = edit_new_label(e);
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%0 bra %1;", edit_guard(s), edit_sym(over));
    int err = look(k, at, mem, n, over);
    if (k->leave != over) {
        BEFORE(k, at, "bra %0;", edit_sym(make));
        edit_place_label(e, at, k->leave);
        complete(k, at, &mem[n - 1]);
        BEFORE(k, at, "@%0 exit;\nbra %1;", edit_reg(k->ends), edit_sym(over));
        edit_place_label(e, at, make);
    }
    k->leave = k->ends = PTX_NONE;
    edit_place_label_after(e, at, over);
    return err;
}
