// SPDX-License-Identifier: MIT
// Where variables lie in shared and local memory, and how much stack a kernel needs.
#include <errno.h>
#include <string.h>

#include "exec/load.h"

static uint32_t align_up(uint32_t n, uint32_t align)
{
    return align > 1 ? (n + align - 1) / align * align : n;
}

// --- shared -------------------------------------------------------------------------------------------------

typedef void visit_fn(void *ctx, struct exec_module *m, uint32_t sym);

struct shared_user {
    struct exec_func *func;
};

// A variable that several functions use, or one that is no kernel, needs a place that suits all.
static void note_user(void *ctx, struct exec_module *m, uint32_t sym)
{
    struct exec_func *f = ((struct shared_user *)ctx)->func;
    struct exec_symbol *s = &m->symbols[sym];
    if (s->kind != EXEC_SYM_SHARED)
        return;
    s->common |= !f->kernel || (s->func && s->func != f);
    s->func = f;
}

static void visit_symbols(const struct exec_func *f, visit_fn *fn, void *ctx)
{
    for (uint32_t k = 0; k < f->ptx->nstmts; k++) {
        const struct ptx_stmt *s = &f->ptx->stmts[k];
        if (s->kind != PTX_INSN)
            continue;
        for (unsigned n = 0; n < s->nslots; n++) {
            const struct ptx_operand *o = &s->operands[n];
            if (o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM))
                fn(ctx, f->module, o->id);
        }
    }
}

struct shared_end {
    uint32_t at;
    bool common;
};

static void place_shared(void *ctx, struct exec_module *m, uint32_t sym)
{
    struct shared_end *end = ctx;
    uint32_t *at = &end->at;
    struct exec_symbol *s = &m->symbols[sym];
    if (s->kind != EXEC_SYM_SHARED || s->placed || s->common != end->common)
        return;
    const struct ptx_var *v = ptx_sym(m->ptx, sym)->var;
    *at = align_up(*at, load_align(v));
    s->value = *at;
    s->placed = true;
    *at += (uint32_t)ptx_var_size(v);
}

// Common variables have one place in all kernels; behind them each kernel has its own.
static int layout_shared(struct load *l)
{
    struct exec_program *p = l->program;
    for (uint32_t k = 0; k < p->nfuncs; k++) {
        struct shared_user user = {l->funcs.items[k]};
        if (!user.func->intrinsic)
            visit_symbols(user.func, note_user, &user);
    }
    struct shared_end common = {EXEC_RESERVED_SHARED, true};
    for (uint32_t k = 0; k < p->nfuncs; k++)
        if (!l->funcs.items[k]->intrinsic)
            visit_symbols(l->funcs.items[k], place_shared, &common);
    for (uint32_t k = 0; k < p->nkernels; k++) {
        struct shared_end own = {common.at, false};
        visit_symbols(p->entries[k], place_shared, &own);
        p->kernels[k].shared_size = align_up(own.at, 16) - EXEC_RESERVED_SHARED;
    }
    return 0;
}

// --- local --------------------------------------------------------------------------------------------------

static void place_local(struct exec_func *f, const struct ptx_var *v, struct exec_place *out)
{
    uint32_t size = (uint32_t)ptx_var_size(v);
    uint32_t align = load_align(v);
    f->local_size = align_up(f->local_size, align < 4 ? 4 : align);
    if (v->sym != PTX_NONE)
        f->module->symbols[v->sym] =
            (struct exec_symbol){.kind = EXEC_SYM_LOCAL, .placed = true, .value = f->local_size};
    if (out)
        *out = (struct exec_place){f->local_size, size};
    f->local_size += align_up(size, 4);
}

static void place_signature(struct load *l, struct exec_func *f)
{
    f->nparams = f->ptx->nparams;
    f->nrets = f->ptx->nrets;
    f->params = ARENA_ARRAY(&l->program->arena, struct exec_place, f->nparams);
    f->rets = ARENA_ARRAY(&l->program->arena, struct exec_place, f->nrets);
    // Even a function without variables takes a bit of stack, so that endless recursion ends.
    f->local_size = 16;
    for (uint32_t k = 0; k < f->nparams; k++)
        place_local(f, &f->ptx->params[k], &f->params[k]);
    for (uint32_t k = 0; k < f->nrets; k++)
        place_local(f, &f->ptx->rets[k], &f->rets[k]);
}

static int layout_local(struct load *l, struct exec_func *f)
{
    if (!f->kernel)
        place_signature(l, f);
    if (f->intrinsic)
        return 0;
    for (uint32_t k = 0; k < f->ptx->nstmts; k++) {
        const struct ptx_stmt *s = &f->ptx->stmts[k];
        if (s->kind != PTX_DECL)
            continue;
        enum ptx_space space = ptx_space_is((enum ptx_space)s->var->space);
        if (space != PTX_SPACE_LOCAL && space != PTX_SPACE_PARAM)
            continue;
        if (f->local_size + ptx_var_size(s->var) > 512 * 1024)
            return load_error(l, f->module, s->pos, -EINVAL, "more local memory than a thread may have in", f->name);
        place_local(f, s->var, NULL);
    }
    f->local_size = align_up(f->local_size, 16);
    return 0;
}

int load_layout(struct load *l)
{
    for (uint32_t k = 0; k < l->program->nfuncs; k++) {
        int err = layout_local(l, l->funcs.items[k]);
        if (err)
            return err;
    }
    return layout_shared(l);
}

// --- stacks -------------------------------------------------------------------------------------------------

// Bytes for f and what it calls; UINT32_MAX: nobody knows, because of recursion or a call through a pointer.
static uint32_t stack_of(struct exec_func *f)
{
    if (f->visiting || f->calls_unknown || f->has_alloca)
        return UINT32_MAX;
    if (f->stack_size != UINT32_MAX)
        return f->stack_size;
    uint64_t most = 0;
    f->visiting = 1;
    for (uint32_t k = 0; k < f->ncallees; k++) {
        uint32_t size = stack_of(f->callees[k]);
        most = size > most ? size : most;
    }
    f->visiting = 0;
    f->stack_size = most >= UINT32_MAX - f->local_size ? UINT32_MAX : (uint32_t)most + f->local_size;
    return f->stack_size;
}

int load_stacks(struct load *l)
{
    struct exec_program *p = l->program;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->nfuncs; k++)
        sum += l->funcs.items[k]->local_size;
    p->most_stack = sum > 1 << 20 ? 1 << 20 : (uint32_t)sum;
    for (uint32_t k = 0; k < p->nkernels; k++) {
        uint32_t size = stack_of(p->entries[k]);
        p->kernels[k].recursive = size == UINT32_MAX;
        p->kernels[k].local_size = size == UINT32_MAX ? p->entries[k]->local_size : size;
    }
    return 0;
}
