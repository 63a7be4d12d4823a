// SPDX-License-Identifier: MIT
// Values that are one of several pointers, as those of two buffers that a loop swaps: copies, selections and
// joins of nothing but parameters. A parameter never changes, so it does not matter when it was copied.
#include "flow/ranges_build.h"

enum { MOST_VALUES = 32, MOST_ROOTS = 64 };

// What a value is copied from, itself included.
struct copies {
    uint32_t at[MOST_VALUES];
    uint32_t n;
};

static bool add(struct copies *c, uint32_t value)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i] == value)
            return true;
    if (value == REACH_NONE || c->n == MOST_VALUES)
        return false;
    c->at[c->n++] = value;
    return true;
}

static bool add_operand(const struct ranges_build *b, struct copies *c, uint32_t stmt, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(&b->f->stmts[stmt], i);
    return o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE && !o->negated &&
           add(c, ranges_read(b, stmt, o->id));
}

static bool is_global(const struct ptx_form *f)
{
    return f->nspaces && ptx_space_is((enum ptx_space)f->spaces[0]) == PTX_SPACE_GLOBAL;
}

static bool is_parameter(const struct ranges_build *b, uint32_t value)
{
    const struct reach_value *v = &b->reach->value.items[value];
    const struct ptx_form *f = v->kind == REACH_DEF ? b->f->stmts[v->place].form : NULL;
    return f && f->id == PTX_OP_LD && f->nspaces &&
           ptx_space_is((enum ptx_space)f->spaces[0]) == PTX_SPACE_PARAM;
}

// Adds what a statement copies to its result. Returns false if it does more.
static bool add_copied(const struct ranges_build *b, struct copies *c, uint32_t value)
{
    const struct reach_value *v = &b->reach->value.items[value];
    const struct ptx_stmt *s = &b->f->stmts[v->place];
    const struct ptx_operand *to = ptx_operand(s, 0);
    if (s->form->odd || !to || to->kind != PTX_REG || to->sub != PTX_SEL_NONE ||
        (v->partial && (s->guard == PTX_NONE || !add(c, v->input))))
        return false;
    if (is_parameter(b, value))
        return true;
    if (!s->form->ntypes || !ranges_plain_int(s->form) ||
        ptx_type_bits((enum ptx_type)s->form->types[0]) != 64)
        return false;
    switch ((enum ptx_op_id)s->form->id) {
    case PTX_OP_MOV: return add_operand(b, c, v->place, 1);
    case PTX_OP_SELP: return add_operand(b, c, v->place, 1) && add_operand(b, c, v->place, 2);
    case PTX_OP_CVTA: return is_global(s->form) && add_operand(b, c, v->place, 1);
    default: return false;
    }
}

// Follows copies back. Returns false if they lead to something that is no parameter.
static bool follow(const struct ranges_build *b, uint32_t value, struct copies *c)
{
    uint32_t reg = b->regs->reg[b->reach->value.items[value].reg];
    *c = (struct copies){.n = 0};
    bool copied = ptx_type_bits((enum ptx_type)ptx_reg_var(b->f, reg)->type) == 64 && add(c, value);
    for (uint32_t i = 0; i < c->n && copied; i++) {
        const struct reach_value *v = &b->reach->value.items[c->at[i]];
        if (v->kind == REACH_ENTRY)
            return false;
        if (v->kind == REACH_DEF) {
            copied = add_copied(b, c, c->at[i]);
            continue;
        }
        struct reach_list in = reach_inputs(b->reach, c->at[i]);
        for (uint32_t k = 0; k < in.n && copied; k++)
            copied = add(c, in.at[k]);
    }
    return copied;
}

void ranges_need_choice(struct ranges_build *b, uint32_t join)
{
    struct copies c;
    if (!follow(b, join, &c))
        return;
    for (uint32_t i = 0; i < c.n; i++)
        if (b->reach->value.items[c.at[i]].kind == REACH_DEF)
            ranges_need(b, c.at[i]);
}

// The root that a value is which was emitted already; PROOF_NONE if it is no pointer.
static uint32_t root_of(const struct ranges_build *b, uint32_t value)
{
    uint32_t at = b->node[value];
    const struct proof_insn *i = at == PROOF_NONE ? NULL : &b->insns.items[at];
    return i && i->op == PROOF_PARAM && i->bits == 64 && i->a < MOST_ROOTS ? i->a : PROOF_NONE;
}

uint32_t ranges_choice(struct ranges_build *b, uint32_t value, uint32_t at)
{
    struct proof_root root = {.kind = PROOF_ROOT_CHOICE};
    struct copies c;
    uint8_t op = b->failed ? PROOF_CONST : b->insns.items[at].op;
    if ((op != PROOF_OPAQUE && op != PROOF_MERGE && op != PROOF_SELECT) || b->roots.len == PROOF_MOST_ROOTS ||
        !follow(b, value, &c))
        return at;
    for (uint32_t i = 0; i < c.n; i++) {
        if (!is_parameter(b, c.at[i]))
            continue;
        uint32_t member = root_of(b, c.at[i]);
        if (member == PROOF_NONE)
            return at;
        root.size |= 1ULL << member;
        root.strong |= b->roots.items[member].strong;
    }
    if (!(root.size & (root.size - 1)))
        return at;
    b->failed |= vec_push(&b->roots, root) != 0;
    return ranges_emit(b, (struct proof_insn){.op = PROOF_CHOICE, .a = at, .b = (uint32_t)b->roots.len - 1});
}
