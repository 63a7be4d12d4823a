// SPDX-License-Identifier: MIT
// What becomes of bounds in registers when memory from malloc in kernels is freed: behind each call that may
// free some, those of blocks of that heap lose their size, so that the judge looks again at the next access.
#include <errno.h>
#include <string.h>

#include "pass/pass_check_state.h"

// Whether a statement calls free, or one of the functions that are known to call it.
static bool calls_free(const struct checking *k, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee =
        s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    uint32_t to = check_callee(k, s);
    if (!callee)
        return false;
    if (callee->kind != PTX_SYM)
        return check_reaches_any(k, s, k->may_free);
    return callee->id == k->frees || (to != PTX_NONE && k->may_free[to]);
}

static bool any_calls_free(const struct checking *k, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (calls_free(k, &f->stmts[i]))
            return true;
    return false;
}

// Requires that no function has been edited, and check_find_disturbing.
int check_find_frees(struct checking *k)
{
    uint32_t n = k->c->result->nfuncs;
    k->may_free = ARENA_ARRAY(&k->c->m->arena, bool, n + 1u);
    if (!k->may_free)
        return -ENOMEM;
    memset(k->may_free, 0, n + 1u);
    for (bool again = k->frees != PTX_NONE; again;) {
        again = false;
        for (uint32_t i = 0; i < n; i++)
            if (!k->may_free[i] && any_calls_free(k, k->c->funcs[i]))
                again = k->may_free[i] = true;
    }
    return 0;
}

// --- what free is given ------------------------------------------------------------------------------------

static bool is_free(const struct checking *k, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee =
        s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    return callee && callee->kind == PTX_SYM && callee->id == k->frees;
}

// Code of segments is there twice.
static bool in_segment(const struct check_func *k, uint32_t stmt)
{
    for (size_t i = 0; i < k->segments.len; i++)
        if (k->segments.items[i].first <= stmt && stmt <= k->segments.items[i].last)
            return true;
    return false;
}

static int add_free(struct check_func *k, uint32_t call)
{
    const struct check_slot pointer = {.param = 0};
    struct check_pass p = check_find_pass(k, call, &pointer);
    struct check_free f = {.call = call, .store = p.store, .pointer = p.pointer};
    if (p.store == call || p.pointer.kind != PTX_REG || in_segment(k, p.store))
        return 0;
    const struct check_access site = {
        .stmt = call, .mem = {.space = PTX_SPACE_GLOBAL}, .root = {.kind = ROOTS_OWN}};
    int err = check_site(k, &site, &f.site);
    return err ? err : vec_push(&k->frees, f);
}

int check_find_calls_of_free(struct check_func *k)
{
    int err = 0;
    for (uint32_t b = 0; k->k->frees != PTX_NONE && b < k->cfg->nblocks; b++)
        for (uint32_t i = k->cfg->blocks[b].first; i < k->cfg->blocks[b].last && !err; i++)
            if (is_free(k->k, &k->f->stmts[i]))
                err = add_free(k, i);
    return err;
}

#define PUT(k, place, at, text, ...) \
    edit_insert((k)->k->c->edit, (place), (at), (text), EDIT_ARGS(__VA_ARGS__))

// A wrong free becomes one of a null pointer.
void check_emit_free(struct check_func *k, const struct check_free *f)
{
    struct edit *e = k->k->c->edit;
    uint32_t pointer = edit_new_reg(e, PTX_U64);
    PUT(k, EDIT_BEFORE, f->store, "mov.u64 %0, %1;\nmov.u64 %2, 0;\nmov.u64 %3, %4;", edit_reg(k->t),
        f->pointer, edit_reg(k->root), edit_reg(k->what),
        edit_imm((int64_t)KCHECK_WHAT(KCHECK_SITE(k->k->tag, f->site), 0, KCHECK_FREES)));
    check_call(k, f->store, f->store);
    PUT(k, EDIT_BEFORE, f->store, "selp.b64 %0, 0, %1, %2;", edit_reg(pointer), f->pointer, edit_reg(k->bad));
    edit_set(e, f->store, 1, edit_reg(pointer));
}

// --- what was freed ----------------------------------------------------------------------------------------

static void drop(struct check_func *k, const struct check_bounds *b, enum edit_place place, uint32_t at)
{
    if (b->needed)
        PUT(k, place, at, "sub.u64 %0, %1, %2;\nsetp.lt.u64 %3, %0, %4;\n@%3 mov.u64 %5, 0;",
            edit_reg(k->word), edit_reg(b->base), edit_reg(k->first), edit_reg(k->ok), edit_reg(k->limit),
            edit_reg(b->size));
}

void check_drop_freed(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at)
{
    if (k->k->find == PTX_NONE || k->k->frees == PTX_NONE || !calls_free(k->k, &k->f->stmts[stmt]))
        return;
    PUT(k, place, at, "ld.const.u64 %0, [%2+32];\nld.const.u64 %1, [%2+40];", edit_reg(k->first),
        edit_reg(k->limit), edit_sym(k->k->variable));
    _Static_assert(offsetof(struct kcheck_module, heap) == 32 &&
                       offsetof(struct kcheck_module, heap_bytes) == 40,
                   "the text has them");
    for (uint32_t v = 0; v < k->reach->value.len; v++)
        drop(k, &k->bounds[v], place, at);
    for (uint32_t r = 0; r < k->reach->regs->n; r++)
        drop(k, &k->shadow[r], place, at);
    for (size_t i = 0; i < k->param_bounds.len; i++)
        drop(k, &k->param_bounds.items[i], place, at);
}
