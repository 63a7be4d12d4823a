// SPDX-License-Identifier: MIT
// Where variables lie in shared and local memory, and how much stack a kernel needs.
#include <errno.h>
#include <string.h>

#include "exec/load.h"

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

// --- shared -------------------------------------------------------------------------------------------------

typedef void visit_fn(void *ctx, struct exec_module *m, uint32_t sym);

// A variable that several functions use, or one that is no kernel, needs a place that suits all.
static void note_user(void *ctx, struct exec_module *m, uint32_t sym)
{
    struct exec_func *f = ctx;
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
    struct load *load;
    uint64_t at;
    uint32_t align;  // of what the launch adds behind
    bool common;
    int err;
};

static void align_dynamic(struct shared_end *end, const struct ptx_var *v)
{
    uint32_t align = load_align(v);
    if (align > end->align && align <= EXEC_RESERVED_SHARED)
        end->align = align;
}

static void place_shared(void *ctx, struct exec_module *m, uint32_t sym)
{
    struct shared_end *end = ctx;
    struct exec_symbol *s = &m->symbols[sym];
    if (s->kind == EXEC_SYM_DYNAMIC)
        align_dynamic(end, ptx_sym(m->ptx, sym)->var);
    if (end->err || s->kind != EXEC_SYM_SHARED || s->placed || s->common != end->common)
        return;
    const struct ptx_var *v = ptx_sym(m->ptx, sym)->var;
    uint64_t size;
    end->err = load_size(end->load, m, v, &size);
    s->value = align_up(end->at, load_align(v));
    s->placed = true;
    end->at = s->value + size;
    if (!end->err && end->at > EXEC_MOST_SHARED)
        end->err = load_error(end->load, m, v->pos, -EINVAL, "more shared memory than a block may have, with",
                              ptx_sym(m->ptx, sym)->name);
}

// Common variables have one place in all kernels; behind them each kernel has its own.
static int layout_shared(struct load *l)
{
    struct exec_program *p = l->program;
    for (uint32_t k = 0; k < p->nfuncs; k++) {
        struct exec_func *f = l->funcs.items[k];
        if (!f->intrinsic)
            visit_symbols(f, note_user, f);
    }
    struct shared_end common = {l, EXEC_RESERVED_SHARED, 16, true, 0};
    for (uint32_t k = 0; k < p->nfuncs; k++)
        if (!l->funcs.items[k]->intrinsic)
            visit_symbols(l->funcs.items[k], place_shared, &common);
    for (uint32_t k = 0; k < p->nkernels && !common.err; k++) {
        struct shared_end own = {l, common.at, 16, false, 0};
        visit_symbols(p->entries[k], place_shared, &own);
        if (own.err)
            return own.err;
        p->kernels[k].shared_size = (uint32_t)align_up(own.at, own.align) - EXEC_RESERVED_SHARED;
    }
    return common.err;
}

// --- local --------------------------------------------------------------------------------------------------

static int place_local(struct load *l, struct exec_func *f, const struct ptx_var *v, struct exec_place *out)
{
    uint64_t size, align = load_align(v), at = align_up(f->local_size, align < 4 ? 4 : align);
    int err = load_size(l, f->module, v, &size);
    if (err)
        return err;
    if (size > EXEC_MOST_LOCAL || at + size > EXEC_MOST_LOCAL)
        return load_error(l, f->module, v->pos, -EINVAL, "more local memory than a thread may have in",
                          f->name);
    if (v->sym != PTX_NONE)
        f->module->symbols[v->sym] =
            (struct exec_symbol){.kind = EXEC_SYM_LOCAL, .placed = true, .value = at};
    if (out)
        *out = (struct exec_place){(uint32_t)at, (uint32_t)size};
    f->local_size = (uint32_t)align_up(at + size, 4);
    return 0;
}

static int place_list(struct load *l, struct exec_func *f, const struct ptx_var *vars, uint32_t n,
                      struct exec_place **out)
{
    *out = ARENA_ARRAY(&l->program->arena, struct exec_place, n);
    for (uint32_t k = 0; k < n; k++) {
        if (vars[k].space != PTX_SPACE_PARAM)
            return load_error(l, f->module, vars[k].pos, -ENOTSUP,
                              "parameters in registers are not executed, as in", f->name);
        int err = place_local(l, f, &vars[k], &(*out)[k]);
        if (err)
            return err;
    }
    return 0;
}

static int place_signature(struct load *l, struct exec_func *f)
{
    f->nparams = f->ptx->nparams;
    f->nrets = f->ptx->nrets;
    // Even a function without variables takes a bit of stack, so that endless recursion ends.
    f->local_size = 16;
    int err = place_list(l, f, f->ptx->params, f->nparams, &f->params);
    return err ? err : place_list(l, f, f->ptx->rets, f->nrets, &f->rets);
}

static int layout_local(struct load *l, struct exec_func *f)
{
    int err = f->kernel ? 0 : place_signature(l, f);
    if (err || f->intrinsic)
        return err;
    for (uint32_t k = 0; k < f->ptx->nstmts; k++) {
        const struct ptx_stmt *s = &f->ptx->stmts[k];
        if (s->kind != PTX_DECL)
            continue;
        enum ptx_space space = ptx_space_is((enum ptx_space)s->var->space);
        if (space != PTX_SPACE_LOCAL && space != PTX_SPACE_PARAM)
            continue;
        err = place_local(l, f, s->var, NULL);
        if (err)
            return err;
    }
    f->local_size = (uint32_t)align_up(f->local_size, 16);
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

enum { NEW, OPEN, DONE };  // exec_func.visiting

struct visit {
    struct exec_func *func;
    uint32_t next;  // callee
    uint32_t most;  // of the callees so far
};
struct walk {
    VEC(struct visit) open;
};

static int open_func(struct walk *w, struct exec_func *f)
{
    f->visiting = OPEN;
    return vec_push(&w->open, (struct visit){f, 0, 0});
}

// Bytes for f and what it calls; UINT32_MAX: nobody knows, because of recursion or a call through a pointer.
static int find_stack(struct exec_func *f)
{
    struct walk w = {0};
    int err = f->visiting == NEW ? open_func(&w, f) : 0;
    while (w.open.len && !err) {
        struct visit *top = &w.open.items[w.open.len - 1];
        if (top->next == top->func->ncallees) {
            struct exec_func *done = top->func;
            bool known =
                top->most < UINT32_MAX - done->local_size && !done->calls_unknown && !done->has_alloca;
            done->stack_size = known ? top->most + done->local_size : UINT32_MAX;
            done->visiting = DONE;
            w.open.len--;
            continue;
        }
        struct exec_func *callee = top->func->callees[top->next];
        if (callee->visiting == NEW) {
            err = open_func(&w, callee);
            continue;
        }
        // One that is open calls itself by way of us.
        uint32_t size = callee->visiting == OPEN ? UINT32_MAX : callee->stack_size;
        top->most = size > top->most ? size : top->most;
        top->next++;
    }
    vec_free(&w.open);
    return err;
}

int load_stacks(struct load *l)
{
    struct exec_program *p = l->program;
    uint64_t sum = 0;
    for (uint32_t k = 0; k < p->nfuncs; k++)
        sum += l->funcs.items[k]->local_size;
    p->most_stack = sum > 1 << 20 ? 1 << 20 : (uint32_t)sum;
    for (uint32_t k = 0; k < p->nkernels; k++) {
        struct exec_func *f = p->entries[k];
        int err = find_stack(f);
        if (err)
            return err;
        bool recursive = f->stack_size == UINT32_MAX;
        if (!recursive && f->stack_size > EXEC_MOST_LOCAL)
            return load_error(l, f->module, f->ptx->pos, -EINVAL,
                              "more local memory than a thread may have in", f->name);
        p->kernels[k].recursive = recursive;
        p->kernels[k].local_size = recursive ? f->local_size : f->stack_size;
    }
    return 0;
}
