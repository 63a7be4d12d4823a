// SPDX-License-Identifier: MIT
// Loads of parameters by a register that holds the address of one, as compilers write them for structs that
// several places use, become loads by the parameter's name: analyses know what these load.
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
