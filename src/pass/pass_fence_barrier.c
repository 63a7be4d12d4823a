// SPDX-License-Identifier: MIT
// Barriers whose number or count is in a register. A block has 16 of them, at which whole warps wait; a GPU
// calls other numbers illegal, and so it does counts that an mbarrier cannot hold. A thread that would use
// one is recorded, and ends.
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

enum { BARRIERS = 16, WARP = 32, MOST_THREADS = 1024 };

// Ends the thread unless k->bad is set.
static int end_unless(struct fence_func *k, uint32_t at, const struct ptx_operand *value)
{
    uint32_t site, good = edit_new_label(k->k->all.c->edit);
    int err = fence_site(k, at, &site);
    BEFORE(k, at, "@%0 bra %1;\nmov.b32 %2, %3;\ncvt.u64.u32 %4, %2;", edit_reg(k->bad), edit_sym(good),
           edit_reg(k->low), *value, edit_reg(k->to[0]));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_BAD_BARRIER, k->to[0]);
    edit_place_label(k->k->all.c->edit, at, good);
    return err;
}

static bool is_register(const struct ptx_operand *o)
{
    return o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE;
}

// Finds the operands that are registers, NULL for others. Returns false if there is none.
static bool find(const struct ptx_stmt *s, const struct ptx_operand **number,
                 const struct ptx_operand **count)
{
    *number = *count = NULL;
    switch (s->form->id) {
    case PTX_OP_MBARRIER_INIT:
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX: *count = ptx_operand(s, 1); break;
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP: *count = ptx_operand(s, 2); break;
    case PTX_OP_BAR:
    case PTX_OP_BARRIER:
        *number = ptx_operand(s, 0);
        *count = ptx_operand(s, 1);
        break;
    // The last operand is the predicate.
    case PTX_OP_BAR_RED:
    case PTX_OP_BARRIER_RED:
    case PTX_OP_BAR_CTA_RED:
    case PTX_OP_BARRIER_CTA_RED:
        *number = ptx_operand(s, 1);
        *count = ptx_operand(s, 3) ? ptx_operand(s, 2) : NULL;
        break;
    default: return false;
    }
    *number = is_register(*number) ? *number : NULL;
    *count = is_register(*count) ? *count : NULL;
    return *number || *count;
}

bool fence_is_loose_barrier(const struct ptx_stmt *s)
{
    const struct ptx_operand *number, *count;
    return find(s, &number, &count);
}

// Which counts are right.
struct counts {
    uint32_t least, most, multiple;
};

// What is expected of copies may be no bytes.
static struct counts counts_of(const struct ptx_stmt *s)
{
    bool bytes = ptx_form_has(s->form, PTX_MOD_EXPECT_TX);
    switch (s->form->id) {
    case PTX_OP_MBARRIER_EXPECT_TX:
    case PTX_OP_MBARRIER_COMPLETE_TX: return (struct counts){0, FENCE_MBARRIER_MOST, 1};
    case PTX_OP_MBARRIER_ARRIVE:
    case PTX_OP_MBARRIER_ARRIVE_DROP: return (struct counts){!bytes, FENCE_MBARRIER_MOST, 1};
    case PTX_OP_MBARRIER_INIT: return (struct counts){1, FENCE_MBARRIER_MOST, 1};
    default: return (struct counts){WARP, MOST_THREADS, WARP};
    }
}

int fence_barrier(struct fence_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    const struct ptx_operand *number, *count;
    if (!find(s, &number, &count))
        return 0;
    uint32_t past = fence_unless_guarded(k, at);
    int err = 0;
    if (number) {
        BEFORE(k, at, "setp.lt.u32 %0, %1, %2;", edit_reg(k->bad), *number, edit_imm(BARRIERS));
        err = end_unless(k, at, number);
    }
    if (count && !err) {
        struct counts is = counts_of(s);
        BEFORE(k, at, "and.b32 %0, %1, %2;\nsetp.eq.u32 %3, %0, 0;\nsub.u32 %0, %1, %4;", edit_reg(k->low),
               *count, edit_imm(is.multiple - 1), edit_reg(k->bad), edit_imm(is.least));
        BEFORE(k, at, "setp.le.and.u32 %0, %1, %2, %0;", edit_reg(k->bad), edit_reg(k->low),
               edit_imm(is.most - is.least));
        err = end_unless(k, at, count);
    }
    edit_place_label(k->k->all.c->edit, at, past);
    return err;
}
