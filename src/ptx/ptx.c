// SPDX-License-Identifier: MIT
// Queries of a module: what a name, a register, an instruction is and does.
#include "ptx/ptx.h"

#include <assert.h>

struct str ptx_func_name(const struct ptx_module *m, const struct ptx_func *f)
{
    return ptx_sym(m, f->sym)->name;
}

const struct ptx_sym *ptx_sym_behind_alias(const struct ptx_module *m, uint32_t id)
{
    enum { MOST_HOPS = 16 };  // ends the walk in a cycle of aliases
    const struct ptx_sym *sym = ptx_sym(m, id);
    for (unsigned hops = 0; sym->kind == PTX_SYM_ALIAS && hops < MOST_HOPS; hops++)
        sym = ptx_sym(m, sym->target);
    return sym;
}

struct ptx_sym *ptx_find(const struct ptx_module *m, struct str name)
{
    uint32_t id = map_get(&m->globals, name);
    return id == MAP_NONE ? NULL : ptx_sym(m, id);
}

const struct ptx_var *ptx_reg_var(const struct ptx_func *f, uint32_t reg)
{
    assert(reg < f->nregs);
    // Binary search without branches, which could not be predicted.
    uint32_t low = 0;
    for (uint32_t n = f->nreg_vars; n > 1; n -= n / 2)
        low += f->reg_vars[low + n / 2]->first_reg <= reg ? n / 2 : 0;
    return f->reg_vars[low];
}

uint64_t ptx_var_size(const struct ptx_var *var)
{
    uint64_t size = ptx_type_bits((enum ptx_type)var->type) / 8 * var->vec;
    for (uint32_t i = 0; i < var->ndims; i++)
        if (__builtin_mul_overflow(size, var->dims[i], &size))
            return 0;
    return size;
}

const struct ptx_operand *ptx_operand(const struct ptx_stmt *s, unsigned i)
{
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    for (; o < end; o = ptx_next(o))
        if (i-- == 0)
            return o;
    return NULL;
}

bool ptx_stmt_is_whole(const struct ptx_stmt *s)
{
    if (s->kind != PTX_INSN || s->form->id == PTX_OP_UNKNOWN || s->form->odd)
        return true;
    return !s->form->nneeded || ptx_operand(s, s->form->nneeded - 1u);
}

// --- registers ---------------------------------------------------------------------------------------------

static bool is_memory_role(enum ptx_role role)
{
    return role == PTX_ROLE_MEM_READ || role == PTX_ROLE_MEM_WRITE || role == PTX_ROLE_MEM_ATOMIC ||
           role == PTX_ROLE_ADDRESS;
}

static bool is_brackets(const struct ptx_operand *o)
{
    return o->kind == PTX_ADDR || o->kind == PTX_TUPLE;
}

static void visit(const struct ptx_stmt *s, const struct ptx_operand *o, enum ptx_role role,
                  ptx_access_fn *fn, void *ctx)
{
    bool unknown = s->form->id == PTX_OP_UNKNOWN;
    if (o->kind == PTX_ADDR) {
        if (o->sub == PTX_BASE_REG)
            fn(ctx, (struct ptx_access){o->id, .reads = true, .writes = unknown, .partial = unknown});
        return;
    }
    if (o->kind != PTX_REG)
        return;
    bool writes = role == PTX_ROLE_WRITE || role == PTX_ROLE_BOTH || role == PTX_ROLE_RETS;
    bool keeps = s->guard != PTX_NONE || o->sub != PTX_SEL_NONE || unknown;
    fn(ctx, (struct ptx_access){.reg = o->id,
                                .reads = !writes || role == PTX_ROLE_BOTH,
                                .writes = writes,
                                .partial = writes && keeps});
}

// An instruction that is not in ops.def may do anything to the registers that it names.
static enum ptx_role role_of(const struct ptx_form *form, unsigned i)
{
    if (form->id == PTX_OP_UNKNOWN)
        return PTX_ROLE_BOTH;
    return i < form->nrules ? (enum ptx_role)form->rules[i].role : PTX_ROLE_READ;
}

void ptx_stmt_regs(const struct ptx_stmt *s, ptx_access_fn *fn, void *ctx)
{
    if (s->kind != PTX_INSN)
        return;
    if (s->guard != PTX_NONE)
        fn(ctx, (struct ptx_access){.reg = s->guard, .reads = true});
    const struct ptx_operand *o = s->operands, *end = o + s->nslots;
    for (unsigned i = 0; o < end; i++) {
        enum ptx_role role = role_of(s->form, i);
        if (role != PTX_ROLE_BOTH && (is_brackets(o) || is_memory_role(role)))
            role = PTX_ROLE_READ;
        // The items of vectors, pairs and lists have the role of their group.
        for (const struct ptx_operand *next = ptx_next(o); o < next; o++)
            visit(s, o, role, fn, ctx);
    }
}
