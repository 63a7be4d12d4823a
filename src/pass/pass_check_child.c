// SPDX-License-Identifier: MIT
// Kernels that kernels launch. The host does not see their launches, so nobody could pass them bounds: a
// kernel whose address is taken by a statement has one more copy, KCHECK_CHILD_PREFIX NAME, with the
// program's parameters only. It looks the bounds of its roots up at its entry, as it does for parameters that
// have no room among the host's. Checked code takes the address of that copy; code of the program's own
// kernels takes what it took before.
//
// Addresses of kernels in the initial values of variables stay what they are: both kinds of code read them.
#include <errno.h>
#include <string.h>

#include "pass/pass_check_state.h"

// Returns the index of the kernel whose address an operand is, PTX_NONE if it is none.
static uint32_t kernel_of(const struct checking *k, const struct ptx_operand *o)
{
    const struct ptx_module *m = k->c->m;
    const struct ptx_sym *s = o->kind == PTX_SYM && o->id < m->nsyms ? ptx_sym_behind_alias(m, o->id) : NULL;
    if (!s || s->kind != PTX_SYM_FUNC || !s->func->is_entry)
        return PTX_NONE;
    uint32_t index = map_get(&k->by_sym, ptx_sym(m, s->func->sym)->name);
    return index == MAP_NONE ? PTX_NONE : index;
}

// Returns the first operand from *at on that is a kernel's address, whose index is then in *kernel.
static struct ptx_operand *next_kernel(const struct checking *k, const struct ptx_stmt *s, uint32_t *at,
                                       uint32_t *kernel)
{
    while (s->kind == PTX_INSN && *at < s->nslots) {
        struct ptx_operand *o = &s->operands[(*at)++];
        *kernel = kernel_of(k, o);
        if (*kernel != PTX_NONE)
            return o;
    }
    return NULL;
}

int check_child_copies(struct checking *k)
{
    uint32_t n = k->c->result->nfuncs;
    k->children = ARENA_ARRAY(&k->c->m->arena, struct ptx_func *, n + 1u);
    if (!k->children)
        return -ENOMEM;
    memset(k->children, 0, (n + 1u) * sizeof *k->children);
    for (uint32_t i = 0; i < n && !k->shadow.shift; i++) {
        const struct ptx_func *f = k->c->funcs[i];
        for (uint32_t s = 0; k->copies[i] && s < f->nstmts; s++) {
            uint32_t at = 0, kernel;
            while (next_kernel(k, &f->stmts[s], &at, &kernel)) {
                if (!k->copies[kernel] || k->children[kernel])
                    continue;
                k->children[kernel] = check_copy(k, k->c->funcs[kernel], STR(KCHECK_CHILD_PREFIX));
                if (!k->children[kernel])
                    return edit_error(k->c->edit) ? edit_error(k->c->edit) : -ENOMEM;
                edit_declare(k->c->edit, k->children[kernel]);
            }
        }
    }
    return 0;
}

void check_child_redirect(const struct checking *k, struct ptx_func *f)
{
    for (uint32_t s = 0; s < f->nstmts; s++) {
        uint32_t at = 0, kernel;
        for (struct ptx_operand *o; (o = next_kernel(k, &f->stmts[s], &at, &kernel));)
            if (k->children[kernel])
                o->id = k->children[kernel]->sym;
    }
}

bool check_launches(const struct check_func *k)
{
    for (uint32_t s = 0; s < k->f->nstmts; s++) {
        const struct ptx_stmt *stmt = &k->f->stmts[s];
        for (uint32_t i = 0; stmt->kind == PTX_INSN && i < stmt->nslots; i++)
            for (uint32_t c = 0; stmt->operands[i].kind == PTX_SYM && c < k->k->c->result->nfuncs; c++)
                if (k->k->children[c] && k->k->children[c]->sym == stmt->operands[i].id)
                    return true;
    }
    return false;
}

bool check_is_runtime(const struct checking *k)
{
    for (uint32_t i = 0; i < k->c->result->nfuncs; i++)
        if (!k->c->funcs[i]->is_entry && pass_is_launch(k->c->result->funcs[i].name))
            return true;
    return false;
}

bool check_is_buffer_of_launch(const struct check_func *k, struct roots_of root)
{
    uint32_t call = root.kind == ROOTS_VALUE ? check_call_of(k, root.id) : PTX_NONE;
    const struct ptx_operand *callee = call == PTX_NONE ? NULL : ptx_operand(&k->f->stmts[call], 1);
    return callee && callee->kind == PTX_SYM && pass_is_launch(ptx_sym(k->k->c->m, callee->id)->name);
}
