// SPDX-License-Identifier: MIT
// Lays out shared memory. A variable has the same offset in every kernel, because functions have its address
// as a constant. A kernel contains the variables that it or its callees use, and no others:
//
//   two variables that a kernel reaches do not overlap
//   the variables that a kernel reaches end at or below its shared_size
//
// Variables that many kernels reach are placed first, small ones before large ones, each after everything
// placed so far in any of those kernels. A kernel's shared memory may thus have gaps.
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "exec/load.h"

struct variable {
    struct exec_module *module;
    uint32_t sym;
    uint32_t number;  // in order of appearance
    uint64_t size;
    uint32_t first, last, users;  // list of the kernels that reach it: its ends in users, its length
};

// A kernel in a variable's list.
struct user {
    uint32_t kernel, next;  // next: index in users
};

struct function {
    uint32_t first_callee, first_use;  // in callees and uses; they end where the next function's start
    bool calls_unknown;
};

struct sharing {
    struct load *load;
    struct function *functions;  // by id, and a sentinel
    VEC(uint32_t) callees;       // ids
    VEC(uint32_t) uses;          // indices of variables
    VEC(struct variable) variables;
    VEC(struct user) users;
    uint32_t *reached;  // per function: 1 + the last kernel that reached it
    uint32_t *todo;     // functions to visit
    uint32_t ntodo;
    uint64_t *end;    // per kernel: end of its variables
    uint32_t *align;  // per kernel: alignment of dynamic shared memory
};

enum { NONE = UINT32_MAX };

// --- what functions mention --------------------------------------------------------------------------------

// Dynamic shared variables are noted too, for their alignment.
static int note_variable(struct sharing *s, struct exec_module *m, uint32_t sym)
{
    struct exec_symbol *symbol = &m->symbols[sym];
    if (!symbol->number) {
        struct variable v = {m, sym, (uint32_t)s->variables.len, 0, NONE, NONE, 0};
        int err = load_size(s->load, m, ptx_sym(m->ptx, sym)->var, &v.size);
        if (err || vec_push(&s->variables, v))
            return err ? err : -ENOMEM;
        symbol->number = (uint32_t)s->variables.len;
    }
    return vec_push(&s->uses, symbol->number - 1);
}

static int note_symbol(struct sharing *s, struct exec_module *m, uint32_t sym)
{
    const struct exec_symbol *symbol = &m->symbols[sym];
    switch (symbol->kind) {
    // A kernel whose address is taken is launched, not called.
    case EXEC_SYM_FUNC:
        return symbol->func->ptx && symbol->func->ptx->is_entry ? 0 : vec_push(&s->callees, symbol->func->id);
    case EXEC_SYM_SHARED:
    case EXEC_SYM_DYNAMIC: return note_variable(s, m, sym);
    default: return 0;
    }
}

// Returns whether the statement calls through a pointer. A call's target comes first, or after the list of
// results.
static bool calls_unknown(const struct ptx_stmt *s)
{
    if (s->form->id != PTX_OP_CALL)
        return false;
    const struct ptx_operand *target = ptx_operand(s, 0);
    if (target && target->kind == PTX_LIST)
        target = ptx_operand(s, 1);
    return target && target->kind != PTX_SYM;
}

static int note_function(struct sharing *s, const struct exec_func *f)
{
    struct function *to = &s->functions[f->id];
    *to = (struct function){(uint32_t)s->callees.len, (uint32_t)s->uses.len, false};
    for (uint32_t k = 0; !f->intrinsic && k < f->ptx->nstmts; k++) {
        const struct ptx_stmt *stmt = &f->ptx->stmts[k];
        if (stmt->kind != PTX_INSN)
            continue;
        to->calls_unknown |= calls_unknown(stmt);
        for (unsigned n = 0; n < stmt->nslots; n++) {
            const struct ptx_operand *o = &stmt->operands[n];
            if (o->kind != PTX_SYM && (o->kind != PTX_ADDR || o->sub != PTX_BASE_SYM))
                continue;
            int err = note_symbol(s, f->module, o->id);
            if (err)
                return err;
        }
    }
    s->functions[f->id + 1] = (struct function){(uint32_t)s->callees.len, (uint32_t)s->uses.len, false};
    return 0;
}

// --- what kernels reach ------------------------------------------------------------------------------------

static void reach(struct sharing *s, uint32_t kernel, uint32_t function)
{
    if (s->reached[function] == kernel + 1)
        return;
    s->reached[function] = kernel + 1;
    s->todo[s->ntodo++] = function;
}

static int reach_variable(struct sharing *s, uint32_t kernel, struct variable *v)
{
    if (v->last != NONE && s->users.items[v->last].kernel == kernel)
        return 0;
    uint32_t at = (uint32_t)s->users.len;
    if (vec_push(&s->users, (struct user){kernel, NONE}))
        return -ENOMEM;
    if (v->last == NONE)
        v->first = at;
    else
        s->users.items[v->last].next = at;
    v->last = at;
    v->users++;
    return 0;
}

// Finds everything that a kernel reaches. A call through a pointer may reach any function.
static int reach_all(struct sharing *s, uint32_t kernel)
{
    const struct exec_program *p = s->load->program;
    reach(s, kernel, p->entries[kernel]->id);
    int err = 0;
    bool any = false;
    while (s->ntodo && !err) {
        const struct function *f = &s->functions[s->todo[--s->ntodo]];
        for (uint32_t k = f->first_callee; k < f[1].first_callee; k++)
            reach(s, kernel, s->callees.items[k]);
        for (uint32_t k = 0; f->calls_unknown && !any && k < p->nfuncs; k++)
            if (!s->load->funcs.items[k]->kernel)
                reach(s, kernel, k);
        any |= f->calls_unknown;
        for (uint32_t k = f->first_use; k < f[1].first_use && !err; k++)
            err = reach_variable(s, kernel, &s->variables.items[s->uses.items[k]]);
    }
    return err;
}

// --- places ------------------------------------------------------------------------------------------------

static int by_users(const void *a, const void *b)
{
    const struct variable *x = a, *y = b;
    if (x->users != y->users)
        return x->users > y->users ? -1 : 1;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

static void align_dynamic(struct sharing *s, const struct variable *v, uint32_t align)
{
    for (uint32_t k = v->first; k != NONE; k = s->users.items[k].next) {
        uint32_t *own = &s->align[s->users.items[k].kernel];
        if (align > *own && align <= EXEC_RESERVED_SHARED)
            *own = align;
    }
}

static int place(struct sharing *s, const struct variable *v)
{
    struct exec_symbol *symbol = &v->module->symbols[v->sym];
    const struct ptx_var *var = ptx_sym(v->module->ptx, v->sym)->var;
    if (symbol->kind == EXEC_SYM_DYNAMIC) {
        align_dynamic(s, v, load_align(var));
        return 0;
    }
    uint64_t at = EXEC_RESERVED_SHARED;
    for (uint32_t k = v->first; k != NONE; k = s->users.items[k].next)
        if (s->end[s->users.items[k].kernel] > at)
            at = s->end[s->users.items[k].kernel];
    symbol->value = align_up(at, load_align(var));
    symbol->placed = true;
    if (symbol->value + v->size > EXEC_MOST_SHARED)
        return load_error(s->load, v->module, var->pos, -EINVAL,
                          "more shared memory than a block may have, with",
                          ptx_sym(v->module->ptx, v->sym)->name);
    for (uint32_t k = v->first; k != NONE; k = s->users.items[k].next)
        s->end[s->users.items[k].kernel] = symbol->value + v->size;
    return 0;
}

static int place_all(struct sharing *s)
{
    struct exec_program *p = s->load->program;
    int err = 0;
    for (uint32_t k = 0; k < p->nfuncs && !err; k++)
        err = note_function(s, s->load->funcs.items[k]);
    for (uint32_t k = 0; k < p->nkernels && !err; k++) {
        s->end[k] = EXEC_RESERVED_SHARED;
        s->align[k] = 16;
        err = reach_all(s, k);
    }
    if (s->variables.len)
        qsort(s->variables.items, s->variables.len, sizeof s->variables.items[0], by_users);
    for (size_t k = 0; k < s->variables.len && !err; k++)
        err = place(s, &s->variables.items[k]);
    for (uint32_t k = 0; k < p->nkernels && !err; k++)
        p->kernels[k].shared_size = (uint32_t)align_up(s->end[k], s->align[k]) - EXEC_RESERVED_SHARED;
    return err;
}

int load_shared(struct load *l)
{
    const struct exec_program *p = l->program;
    struct sharing s = {.load = l};
    s.functions = mem_zalloc((size_t)p->nfuncs + 1, sizeof *s.functions);
    s.reached = mem_zalloc((size_t)p->nfuncs + 1, sizeof *s.reached);
    s.todo = mem_zalloc((size_t)p->nfuncs + 1, sizeof *s.todo);
    s.end = mem_zalloc((size_t)p->nkernels + 1, sizeof *s.end);
    s.align = mem_zalloc((size_t)p->nkernels + 1, sizeof *s.align);
    int err = s.functions && s.reached && s.todo && s.end && s.align ? place_all(&s) : -ENOMEM;
    mem_free(s.functions);
    mem_free(s.reached);
    mem_free(s.todo);
    mem_free(s.end);
    mem_free(s.align);
    vec_free(&s.callees);
    vec_free(&s.uses);
    vec_free(&s.variables);
    vec_free(&s.users);
    return err;
}
