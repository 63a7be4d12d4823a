// SPDX-License-Identifier: MIT
#include "flow/grid_words.h"

// From the address back to its origins, through statements whose results follow from their operands.
struct walk {
    const struct ptx_func *f;
    const struct reach *r;
    unsigned left;  // statements that may be looked at
};

enum { MOST_STMTS = 32 };

enum origin { CONSTANT, GRID, UNKNOWN };

static enum origin both(enum origin a, enum origin b)
{
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : a == GRID || b == GRID ? GRID : CONSTANT;
}

static enum origin origin_of(struct walk *w, uint32_t stmt, const struct ptx_operand *o);

// Returns the origin of what a statement computes from the operands behind its first.
static enum origin origin_of_inputs(struct walk *w, uint32_t stmt)
{
    enum origin all = CONSTANT;
    const struct ptx_operand *o;
    for (unsigned i = 1; (o = ptx_operand(&w->f->stmts[stmt], i)) != NULL; i++)
        all = both(all, origin_of(w, stmt, o));
    return all;
}

static enum origin origin_of_register(struct walk *w, uint32_t stmt, uint32_t reg)
{
    uint32_t index = regs_index(w->r->regs, reg);
    uint32_t v = index == REGS_NONE ? REACH_NONE : reach_read(w->r, stmt, index);
    if (v == REACH_NONE || w->r->value.items[v].kind != REACH_DEF || w->r->value.items[v].partial || !w->left)
        return UNKNOWN;
    w->left--;
    uint32_t at = w->r->value.items[v].place;
    const struct ptx_operand *to = ptx_operand(&w->f->stmts[at], 0);
    if (!to || to->kind != PTX_REG)
        return UNKNOWN;
    switch ((enum ptx_op_id)w->f->stmts[at].form->id) {
    case PTX_OP_MOV:
    case PTX_OP_CVT:
    case PTX_OP_CVTA:
    case PTX_OP_ADD:
    case PTX_OP_OR:
    case PTX_OP_SHL:
    case PTX_OP_BFI: return origin_of_inputs(w, at);
    default: return UNKNOWN;
    }
}

static enum origin origin_of(struct walk *w, uint32_t stmt, const struct ptx_operand *o)
{
    enum origin all = CONSTANT;
    switch ((enum ptx_operand_kind)o->kind) {
    case PTX_IMM: return CONSTANT;
    case PTX_SREG: return o->id == PTX_SREG_ENVREG1 || o->id == PTX_SREG_ENVREG2 ? GRID : UNKNOWN;
    case PTX_REG: return o->sub == PTX_SEL_NONE ? origin_of_register(w, stmt, o->id) : UNKNOWN;
    case PTX_VEC:
        for (int64_t i = 0; i < o->value; i++)
            all = both(all, origin_of(w, stmt, &o[1 + i]));
        return all;
    default: return UNKNOWN;
    }
}

bool grid_words_address(const struct ptx_func *f, const struct reach *r, uint32_t stmt,
                        const struct ptx_operand *address)
{
    struct walk w = {f, r, MOST_STMTS};
    return address->kind == PTX_ADDR && address->sub == PTX_BASE_REG &&
           origin_of_register(&w, stmt, address->id) == GRID;
}
