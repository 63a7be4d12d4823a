// SPDX-License-Identifier: MIT
// What lives across a call of FENCE_FIND or FENCE_SHARED, in a function that is no kernel, is kept in local
// memory while the call runs.
//
// A function that keeps registers over a call saves those of its caller when it begins, and takes them back
// when it ends. It would do that each time that it runs, for calls that a right program never makes. Kernels
// have no caller. What holds the bounds is loaded again behind the call, so that it does not live across it.
#include <errno.h>
#include <string.h>

#include "pass/pass_fence_state.h"

int fence_find_saved(struct fencing *k, uint32_t index, struct saved *to)
{
    struct pass_context *c = k->all.c;
    const struct ptx_func *f = c->funcs[index];
    struct ptx_mem mem[PTX_MAX_MEM];
    bool any = false;
    if (f->is_entry)
        return 0;
    bool *asks = ARENA_ARRAY(&c->m->arena, bool, f->nstmts + 1u);
    if (!asks)
        return -ENOMEM;
    memset(asks, 0, f->nstmts + 1u);
    for (uint32_t i = 0; i < f->nstmts; i++) {
        unsigned n = f->stmts[i].kind == PTX_INSN ? ptx_stmt_mem(f, &f->stmts[i], mem) : 0;
        for (unsigned row = 0; row < n; row++) {
            enum ptx_space space = ptx_space_is((enum ptx_space)mem[row].space);
            asks[i] |= space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL || fence_is_shared(&mem[row]);
        }
        any |= asks[i];
    }
    return any ? saved_find(to, pass_flow(c, index), f, &c->m->arena, asks) : 0;
}

static void move_all(struct fence_func *k, uint32_t at, bool back)
{
    const struct saved *s = k->saved;
    struct saved_row row = s->at ? s->at[at] : (struct saved_row){0};
    if (!row.n)
        return;
    FENCE_BEFORE(k, at, "cvta.local.u64 %0, %1;", edit_reg(k->at_kept), edit_sym(k->kept));
    for (uint32_t i = 0; i < row.n; i++)
        saved_move(k->k->all.c->edit, k->f, at, k->at_kept, i, s->all.items[row.first + i], back);
}

void fence_save(struct fence_func *k, uint32_t at)
{
    uint32_t most = 0;
    for (uint32_t i = 0; k->saved->at && k->kept == PTX_NONE && i < k->f->nstmts; i++)
        most = k->saved->at[i].n > most ? k->saved->at[i].n : most;
    if (most)
        k->kept = edit_new_local(k->k->all.c->edit, most * SAVED_SLOT);
    move_all(k, at, false);
}

void fence_restore(struct fence_func *k, uint32_t at)
{
    if (!k->saved->at)
        return;
    fence_load_bounds(k, false, at);
    move_all(k, at, true);
}

#define PUT(entry, at, ...) ((entry) ? edit_entry(e, __VA_ARGS__) : edit_before(e, at, __VA_ARGS__))

void fence_load_bounds(struct fence_func *k, bool entry, uint32_t at)
{
    struct edit *e = k->k->all.c->edit;
    PUT(entry, at, "ld.const.b32 %0, [%1];\nld.const.b32 %2, [%3];", edit_reg(k->base),
        edit_sym_at(k->k->variable, offsetof(struct kfence_module, base) + 4), edit_reg(k->outside),
        edit_sym_at(k->k->variable, offsetof(struct kfence_module, outside) + 4));
    if (k->k->exact_shared)
        PUT(entry, at,
            "mov.u32 %0, %cluster_ctarank;\nshl.b32 %0, %0, 24;\nmov.u32 %1, %aggr_smem_size;\n"
            "add.u32 %2, %0, %1;",
            edit_reg(k->own), edit_reg(k->limit), edit_reg(k->end));
    else
        PUT(entry, at, "mov.u32 %0, %total_smem_size;\nadd.u32 %0, %0, 1024;", edit_reg(k->limit));
}
