// SPDX-License-Identifier: MIT
// Loads of parameters by a register that holds the address of one, as compilers write them for structs that
// several places use, become loads by the parameter's name: analyses know what these load. Other addresses in
// registers are compared with the kernel's parameters, all of them together.
#include <errno.h>
#include <string.h>

#include "flow/regs.h"
#include "pass/pass_fence_state.h"

enum { NONE = UINT32_MAX, SEVERAL = UINT32_MAX - 1 };

// Finds the statement that writes a register, by its index, or SEVERAL.
static void find_writers(const struct ptx_func *f, const struct regs *r, uint32_t *writer)
{
    for (uint32_t i = 0; i < r->n; i++)
        writer[i] = NONE;
    for (uint32_t at = 0; at < f->nstmts; at++) {
        struct regs_list list = regs_at(r, at);
        for (uint32_t i = 0; i < list.n; i++)
            if (list.at[i].writes)
                writer[list.at[i].reg] = writer[list.at[i].reg] == NONE && !list.at[i].partial ? at : SEVERAL;
    }
}

// Returns the operand that is a parameter's name, if the statement sets a register of 64 bits to its address.
static const struct ptx_operand *parameter_of(const struct ptx_func *f, const struct ptx_stmt *s)
{
    const struct ptx_operand *from = ptx_operand(s, 1);
    uint64_t offset;
    bool moves = s->kind == PTX_INSN && s->form->id == PTX_OP_MOV && s->guard == PTX_NONE &&
                 s->form->ntypes && ptx_type_bits((enum ptx_type)s->form->types[0]) == 64;
    return moves && from && from->kind == PTX_SYM && roots_param_offset(f, from->id, &offset) ? from : NULL;
}

static void look_stmt(const struct ptx_func *f, const struct regs *r, const uint32_t *writer,
                      struct ptx_stmt *s)
{
    if (s->form->id != PTX_OP_LD || !s->form->nspaces || s->nslots != 2 ||
        ptx_space_is((enum ptx_space)s->form->spaces[0]) != PTX_SPACE_PARAM)
        return;
    struct ptx_operand *addr = &s->operands[1];
    uint32_t index =
        addr->kind == PTX_ADDR && addr->sub == PTX_BASE_REG ? regs_index(r, addr->id) : REGS_NONE;
    if (index == REGS_NONE || writer[index] >= f->nstmts)
        return;
    const struct ptx_operand *from = parameter_of(f, &f->stmts[writer[index]]);
    if (!from)
        return;
    addr->sub = PTX_BASE_SYM;
    addr->id = from->id;
    addr->value += from->value;
}

int fence_name_params(struct ptx_func *f)
{
    struct regs *r = NULL;
    struct arena arena;
    if (!f->is_entry)
        return 0;
    int err = regs_build(f, 0, &r);
    if (err)
        return err == -E2BIG ? 0 : err;
    arena_init(&arena, 0);
    uint32_t *writer = ARENA_ARRAY(&arena, uint32_t, r->n + 1u);
    if (writer)
        find_writers(f, r, writer);
    for (uint32_t i = 0; writer && i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN)
            look_stmt(f, r, writer, &f->stmts[i]);
    regs_free(r);
    arena_free(&arena);
    return writer ? 0 : -ENOMEM;
}

bool fence_is_loose_param(const struct ptx_mem *mem)
{
    return ptx_space_is((enum ptx_space)mem->space) == PTX_SPACE_PARAM && mem->addr->kind == PTX_ADDR &&
           mem->addr->sub != PTX_BASE_SYM;
}

// Returns the bytes from the first parameter to the end of the last one.
static uint64_t bytes_of_params(const struct ptx_func *f)
{
    uint64_t end = 0, at = 0;
    for (uint32_t i = 0; i < f->nparams; i++)
        if (roots_param_offset(f, f->params[i].sym, &at) && at + ptx_var_size(&f->params[i]) > end)
            end = at + ptx_var_size(&f->params[i]);
    return end;
}

// One outside becomes the address of the first parameter; so does one that is not aligned.
int fence_param(struct fence_func *k, uint32_t at, const struct ptx_mem *mem)
{
    const struct ptx_operand *addr = mem->addr;
    uint32_t site, to = k->to[0], align = fence_alignment(mem), width = mem->bytes ? mem->bytes : 1;
    uint64_t bytes = bytes_of_params(k->f);
    if (!k->f->is_entry || bytes < width)
        return -ENOTSUP;
    uint32_t inside = edit_new_label(k->k->all.c->edit), first = k->f->params[0].sym;
    uint32_t past = fence_unless_guarded(k, at);
    int err = fence_site(k, at, &site);
    fence_load_address(k, at, addr, to);
    FENCE_BEFORE(k, at, "mov.u64 %0, %1;\nsub.s64 %0, %2, %0;\nsetp.gt.u64 %3, %0, %4;\ncvt.u32.u64 %5, %2;",
                 edit_reg(k->what), edit_sym(first), edit_reg(to), edit_reg(k->bad),
                 edit_imm((int64_t)(bytes - width)), edit_reg(k->low));
    FENCE_BEFORE(k, at, "and.b32 %0, %0, %1;\nsetp.ne.or.u32 %2, %0, 0, %2;\n@!%2 bra %3;", edit_reg(k->low),
                 edit_imm((int64_t)align - 1), edit_reg(k->bad), edit_sym(inside));
    FENCE_BEFORE(k, at, "mov.u64 %0, %1;\ncall %2, (%0, %3);\nmov.u64 %3, %4;", edit_reg(k->what),
                 edit_imm((int64_t)(KFENCE_WHAT(site, width, fence_flags(mem, align)) |
                                    KFENCE_WHAT(0, 0, KFENCE_KIND(KFENCE_LEFT)))),
                 edit_sym(k->k->note), edit_reg(to), edit_sym(first));
    edit_place_label(k->k->all.c->edit, at, inside);
    edit_place_label(k->k->all.c->edit, at, past);
    struct ptx_operand address = edit_addr(to, 0);
    address.unified = addr->unified;
    edit_set(k->k->all.c->edit, at, (unsigned)(addr - k->f->stmts[at].operands), address);
    return err;
}
