// SPDX-License-Identifier: MIT
// Lays out local memory, and computes how much stack a kernel needs.
#include <errno.h>
#include <string.h>

#include "exec/load.h"

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

// --- local -------------------------------------------------------------------------------------------------

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
        const struct ptx_var *v = &vars[k];
        uint64_t size = ptx_var_size(v);
        bool fits =
            v->space == PTX_SPACE_REG && !v->ndims && !v->range && size && size <= 16 && !(size & (size - 1));
        if (v->space != PTX_SPACE_PARAM && !fits)
            return load_error(l, f->module, v->pos, -ENOTSUP, "a parameter that cannot be passed, in",
                              f->name);
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
    // Even a function without variables takes some stack, so that endless recursion ends.
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
    return load_shared(l);
}

// --- stacks ------------------------------------------------------------------------------------------------

// exec_func.visiting
enum { NEW, OPEN, DONE };

struct visit {
    struct exec_func *func;
    uint32_t next;  // index of the next callee
    uint32_t most;  // largest stack of the callees so far
};
struct walk {
    VEC(struct visit) open;
};

static int open_func(struct walk *w, struct exec_func *f)
{
    f->visiting = OPEN;
    return vec_push(&w->open, (struct visit){f, 0, 0});
}

// Computes f->stack_size: bytes for f and its callees; UINT32_MAX if unknown because of recursion, a call
// through a pointer or alloca. Returns 0 or -ENOMEM.
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
        // An open callee calls this function, directly or not: recursion.
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
