// SPDX-License-Identifier: MIT
// Accesses of the module's own variables in global memory, which lie outside of the partition. An address that
// was made from a variable's is compared with the bytes of this variable, in a few instructions; what lies
// elsewhere is looked up as other addresses are. In the masked variant it becomes the variable's first byte.
#include <errno.h>

#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

uint64_t fence_variable_bytes(const struct ptx_module *m, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym_behind_alias(m, sym);
    const struct ptx_var *v = s->kind == PTX_SYM_VAR ? s->var : NULL;
    bool own = v && v->space == PTX_SPACE_GLOBAL && v->linkage != PTX_EXTERN && v->linkage != PTX_COMMON;
    return own ? ptx_var_size(v) : 0;
}

uint32_t fence_variable_of(const struct roots *r, struct roots_of root, const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    bool may = (space == PTX_SPACE_GENERIC || space == PTX_SPACE_GLOBAL) && root.kind == ROOTS_VARIABLE &&
               mem->extent == PTX_EXTENT_PLAIN && mem->bytes;
    return may && fence_variable_bytes(r->m, root.id) >= mem->bytes ? root.id : PTX_NONE;
}

int fence_find_variables(struct fencing *k, uint32_t index, fence_variables *to)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    const struct roots *roots;
    int err = flow_roots(pass_flow(k->all.c, index), &roots);
    if (err)
        return err == -E2BIG ? 0 : err;
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        struct ptx_mem mem[PTX_MAX_MEM];
        const struct ptx_stmt *s = &f->stmts[i];
        unsigned n = s->kind == PTX_INSN ? ptx_stmt_mem(f, s, mem) : 0;
        for (unsigned row = 0; row < n && !err; row++) {
            const struct ptx_operand *addr = mem[row].addr;
            if (addr->kind != PTX_ADDR || addr->sub != PTX_BASE_REG)
                continue;
            uint32_t sym = fence_variable_of(roots, roots_address(roots, i, addr), &mem[row]);
            if (sym != PTX_NONE)
                err = vec_push(to, ((struct fence_variable){i, sym, (uint8_t)row}));
        }
    }
    return err;
}

uint32_t fence_variable_at(struct fence_func *k, uint32_t at, unsigned row)
{
    const fence_variables *all = k->variables;
    while (k->next_variable < all->len && all->items[k->next_variable].stmt < at)
        k->next_variable++;
    for (size_t i = k->next_variable; i < all->len && all->items[i].stmt == at; i++)
        if (all->items[i].row == row)
            return all->items[i].sym;
    return PTX_NONE;
}

void fence_compare_variable(struct fence_func *k, uint32_t at, uint32_t sym, uint32_t to, int64_t offset,
                            uint32_t width)
{
    uint64_t bytes = fence_variable_bytes(k->k->all.c->m, sym);
    BEFORE(k, at, "mov.u64 %0, %1;\nsub.s64 %0, %2, %0;", edit_reg(k->what), edit_sym(sym), edit_reg(to));
    if (offset)
        BEFORE(k, at, "add.s64 %0, %0, %1;", edit_reg(k->what), edit_imm(offset));
    BEFORE(k, at, "setp.gt.u64 %0, %1, %2;\nselp.b32 %3, 1, 0, %0;", edit_reg(k->bad), edit_reg(k->what),
           edit_imm((int64_t)(bytes - width)), edit_reg(k->bits));
}

// The bytes that are compared are not more than the variable has, so that they fit at its first byte.
void fence_mask_variable(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    struct edit *e = k->k->all.c->edit;
    uint64_t bytes = fence_variable_bytes(k->k->all.c->m, m->variable);
    uint32_t to = m->in_place ? m->reg : edit_new_reg(e, PTX_B64), first = k->wide[0], distance = k->what;
    int32_t low = m->in_place ? m->low : m->start, high = m->in_place ? m->high : m->start + m->width;
    BEFORE(k, m->stmt, "mov.u64 %0, %1;", edit_reg(first), edit_sym(m->variable));
    if (low)
        BEFORE(k, m->stmt, "sub.s64 %0, %0, %1;", edit_reg(first), edit_imm(low));
    BEFORE(k, m->stmt, "sub.s64 %0, %1, %2;", edit_reg(distance), edit_reg(m->reg), edit_reg(first));
    fence_note_above(k, m, distance, bytes - (uint64_t)(high - low));
    BEFORE(k, m->stmt, "selp.b64 %0, %1, %2, %3;", edit_reg(to), edit_reg(first), edit_reg(m->reg),
           edit_reg(k->noted[FENCE_MASKED]));
    struct ptx_operand address = edit_addr(to, m->start);
    address.unified = mem->addr->unified;
    edit_set(e, m->stmt, (unsigned)(mem->addr - k->f->stmts[m->stmt].operands), address);
}
