// SPDX-License-Identifier: MIT
// Where a thread of a masked variant ends, it looks whether it has noted something, unless nothing can have
// been noted on any path that leads there: then it ends as before. A branch to such an end becomes one.
// Without that, threads that end early would wait for the others of their warp at the only end, and loops
// that they leave would not be uniform any more for the compiler.
#include <errno.h>
#include <string.h>

#include "flow/cfg.h"
#include "pass/pass_fence_state.h"

static bool notes(const struct fence_masked *m)
{
    return m->notes || m->masks || m->aligns;
}

// Marks the blocks in which something may have been noted when they begin.
static void spread(const struct cfg *cfg, const fence_plan *plan, bool *noted, bool *own)
{
    for (size_t i = 0; i < plan->len; i++)
        own[cfg->block_of[plan->items[i].stmt]] |= notes(&plan->items[i]);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t b = 0; b < cfg->nblocks; b++) {
            struct graph_nodes to = graph_succ(cfg->graph, b);
            for (uint32_t e = 0; e < to.n && (noted[b] || own[b]); e++) {
                again |= !noted[to.at[e]];
                noted[to.at[e]] = true;
            }
        }
    }
}

// Returns the statement that ends all threads that come into the block, and is the first one there; PTX_NONE.
static uint32_t end_of(const struct ptx_func *f, const struct cfg_block *block)
{
    for (uint32_t at = block->first; at < block->last; at++)
        if (f->stmts[at].kind == PTX_INSN)
            return edit_is_exit(&f->stmts[at]) && f->stmts[at].guard == PTX_NONE ? at : PTX_NONE;
        else if (f->stmts[at].kind == PTX_VERBATIM)
            return PTX_NONE;
    return PTX_NONE;
}

// A branch that ends a block.
static void shorten(struct fence_func *k, const struct cfg *cfg, uint32_t b, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    struct graph_nodes to = graph_succ(cfg->graph, b);
    uint32_t target = PTX_NONE;
    for (uint32_t e = 0; e < to.n; e++)
        if (s->guard == PTX_NONE || to.at[e] != b + 1)
            target = target == PTX_NONE ? to.at[e] : b + 1;
    if (target == PTX_NONE || target == b + 1 || end_of(k->f, &cfg->blocks[target]) == PTX_NONE)
        return;
    if (s->guard == PTX_NONE)
        edit_before(k->k->all.c->edit, at, "ret;");
    else
        FENCE_BEFORE(k, at, "@%0 ret;", edit_guard(s));
    edit_delete(k->k->all.c->edit, at);
}

// Jumps to a label if something is noted.
static void test(struct fence_func *k, uint32_t at, uint32_t end)
{
    struct edit *e = k->k->all.c->edit;
    struct ptx_operand bits = k->k->way == FENCE_BY_MODULO ? edit_imm(-1) : edit_reg(k->outside);
    edit_before(e, at,
                "and.b32 %0, %1, %2;\nor.b32 %0, %0, %3;\nor.b32 %0, %0, %4;\nsetp.ne.or.b32 %5, %0, 0, %6;\n"
                "@%5 bra %7;",
                edit_reg(k->bits), edit_reg(k->noted[FENCE_MASKED]), bits, edit_reg(k->noted[FENCE_SKEWED]),
                edit_reg(k->noted[FENCE_OUTSIDE]), edit_reg(k->bad), edit_reg(k->noted[FENCE_APART]),
                edit_sym(end));
}

static void look_exit(struct fence_func *k, uint32_t at, uint32_t end)
{
    struct edit *e = k->k->all.c->edit;
    const struct ptx_stmt *s = &k->f->stmts[at];
    uint32_t past = edit_new_label(e);
    if (s->guard != PTX_NONE)
        edit_before(e, at, "@!%0 bra %1;", edit_guard(s), edit_sym(past));
    test(k, at, end);
    edit_place_label(e, at, past);
}

static void look_block(struct fence_func *k, const struct cfg *cfg, uint32_t b, bool noted, uint32_t end)
{
    size_t next = 0;
    for (uint32_t at = cfg->blocks[b].first; at < cfg->blocks[b].last; at++) {
        const struct ptx_stmt *s = &k->f->stmts[at];
        while (next < k->plan->len && k->plan->items[next].stmt < at)
            next++;
        for (; next < k->plan->len && k->plan->items[next].stmt == at; next++)
            noted |= notes(&k->plan->items[next]);
        if (s->kind != PTX_INSN)
            continue;
        if (edit_is_exit(s) && noted)
            look_exit(k, at, end);
        else if (s->form->id == PTX_OP_BRA && !noted)
            shorten(k, cfg, b, at);
    }
}

int fence_exits(struct fence_func *k, uint32_t end)
{
    struct pass_context *c = k->k->all.c;
    struct cfg *cfg = NULL;
    struct arena arena;
    arena_init(&arena, 0);
    int err = cfg_build(c->m, k->f, &cfg);
    bool *noted = err ? NULL : ARENA_ARRAY(&arena, bool, cfg->nblocks + 1u),
         *own = err ? NULL : ARENA_ARRAY(&arena, bool, cfg->nblocks + 1u);
    if (!err && (!noted || !own))
        err = -ENOMEM;
    if (!err) {
        memset(noted, cfg->uncertain, cfg->nblocks + 1u);
        memset(own, 0, cfg->nblocks + 1u);
        spread(cfg, k->plan, noted, own);
        for (uint32_t b = 0; b < cfg->nblocks; b++)
            look_block(k, cfg, b, noted[b], end);
        if (edit_falls_off(k->f))
            test(k, k->f->nstmts, end);
    }
    cfg_free(cfg);
    arena_free(&arena);
    return err;
}
