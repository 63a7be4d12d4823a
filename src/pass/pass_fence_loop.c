// SPDX-License-Identifier: MIT
// Endless loops, for --fence-watchdog: every cycle of a function has a branch to a statement above it. Such
// branches count, and each time that many were taken the thread looks at the clock. A thread that has been in
// the function for longer than allowed is recorded, and ends.
#include <errno.h>

#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

enum { ROUNDS = 256 };  // a power of two: branches between two looks at the clock

static bool is_above(const struct ptx_module *m, uint32_t at, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym(m, sym);
    if (s->kind == PTX_SYM_LABEL)
        return s->stmt <= at;
    bool above = false;
    for (uint32_t i = 0; s->kind == PTX_SYM_TARGETS && i < s->targets->ntargets; i++)
        above |= is_above(m, at, s->targets->targets[i]);
    return above;
}

static bool is_back(const struct ptx_module *m, const struct ptx_stmt *s, uint32_t at)
{
    if (s->form->op->control != PTX_BRANCH && s->form->op->control != PTX_SWITCH)
        return false;
    for (uint32_t i = 0; i < s->nslots; i++)
        if (s->operands[i].kind == PTX_SYM && is_above(m, at, s->operands[i].id))
            return true;
    return false;
}

bool fence_has_loop(const struct fencing *k, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN && is_back(k->all.c->m, &f->stmts[i], i))
            return true;
    return false;
}

static void start_clock(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    k->start = edit_new_reg(e, PTX_B64);
    k->rounds = edit_new_reg(e, PTX_B32);
    edit_entry(e, "mov.u64 %0, %globaltimer;\nmov.u32 %1, 0;", edit_reg(k->start), edit_reg(k->rounds));
}

int fence_loop(struct fence_func *k, uint32_t at)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t site, past;
    if (!k->k->watchdog || !is_back(k->k->all.c->m, &k->f->stmts[at], at))
        return 0;
    int err = fence_site(k, at, &site);
    if (!k->start)
        start_clock(k);
    past = edit_new_label(e);
    BEFORE(k, at, "add.u32 %0, %0, 1;\nand.b32 %1, %0, %2;\nsetp.ne.u32 %3, %1, 0;\n@%3 bra %4;",
           edit_reg(k->rounds), edit_reg(k->low), edit_imm(ROUNDS - 1), edit_reg(k->bad), edit_sym(past));
    BEFORE(k, at, "mov.u64 %0, %globaltimer;\nsub.u64 %0, %0, %1;\nld.const.u64 %2, [%3];",
           edit_reg(k->to[0]), edit_reg(k->start), edit_reg(k->what),
           edit_sym_at(k->k->variable, offsetof(struct kfence_module, longest)));
    BEFORE(k, at, "setp.lt.u64 %0, %1, %2;\n@%0 bra %3;", edit_reg(k->bad), edit_reg(k->to[0]),
           edit_reg(k->what), edit_sym(past));
    fence_end(k, at, KFENCE_WHAT(site, 0, 0), KFENCE_ENDLESS, k->to[0]);
    edit_place_label(e, at, past);
    return err;
}
