// SPDX-License-Identifier: MIT
// Starts with every value a multiple of the largest power, and lowers what an instruction contradicts until
// nothing changes.
#include "flow/multiples.h"

#include <errno.h>
#include <string.h>

enum { MOST = MULTIPLES_MOST, MOST_ROUNDS = 40 };

struct solving {
    const struct roots *roots;
    const struct reach *reach;
    uint8_t *own, *beyond;
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned most(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static unsigned of_number(int64_t n)
{
    return n ? least((unsigned)__builtin_ctzll((unsigned long long)n), MOST) : MOST;
}

unsigned multiples_of_variable(const struct ptx_var *var)
{
    unsigned bytes = ptx_type_bits((enum ptx_type)var->type) / 8 * var->vec;
    return of_number(var->align ? var->align : bytes ? bytes : 1);
}

// --- operands ----------------------------------------------------------------------------------------------

static uint32_t value_of(const struct solving *s, uint32_t stmt, const struct ptx_operand *o)
{
    if (!o || o->kind != PTX_REG || o->sub != PTX_SEL_NONE)
        return REACH_NONE;
    uint32_t index = regs_index(s->reach->regs, o->id);
    return index == REGS_NONE ? REACH_NONE : reach_read(s->reach, stmt, index);
}

// The power that operand i is a multiple of.
static unsigned own_of(const struct solving *s, uint32_t stmt, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(&s->roots->f->stmts[stmt], i);
    if (o && o->kind == PTX_IMM && o->sub == PTX_IMM_INT)
        return of_number(o->value);
    if (o && o->kind == PTX_SYM && ptx_sym(s->roots->m, o->id)->kind == PTX_SYM_VAR)
        return least(multiples_of_variable(ptx_sym(s->roots->m, o->id)->var), of_number(o->value));
    uint32_t v = value_of(s, stmt, o);
    return v == REACH_NONE ? 0 : s->own[v];
}

// The power for operand i relative to a root; -1 if it does not have that root.
static int beyond_of(const struct solving *s, uint32_t stmt, unsigned i, struct roots_of root)
{
    const struct ptx_operand *o = ptx_operand(&s->roots->f->stmts[stmt], i);
    bool variable = root.kind == ROOTS_VARIABLE || root.kind == ROOTS_GENERIC;
    if (o && o->kind == PTX_SYM)
        return variable && o->id == root.id ? (int)of_number(o->value) : -1;
    uint32_t v = value_of(s, stmt, o);
    if (v == REACH_NONE)
        return -1;
    struct roots_of of = s->roots->of[v];
    // cvta changes the kind and keeps the variable; windows of generic addresses are aligned.
    bool same = of.id == root.id && (of.kind == root.kind ||
                                     (variable && (of.kind == ROOTS_VARIABLE || of.kind == ROOTS_GENERIC)));
    return same ? s->beyond[v] : -1;
}

// --- instructions ------------------------------------------------------------------------------------------

static bool is_integer(const struct ptx_form *form)
{
    for (unsigned i = 0; i < form->ntypes; i++)
        if (ptx_type_class((enum ptx_type)form->types[i]) == PTX_CLASS_FLOAT)
            return false;
    return form->ntypes && !ptx_form_has(form, PTX_MOD_SAT);
}

static unsigned product(const struct solving *s, uint32_t at)
{
    return least(own_of(s, at, 1) + own_of(s, at, 2), MOST);
}

static unsigned shifted(const struct solving *s, uint32_t at, bool left)
{
    const struct ptx_operand *by = ptx_operand(&s->roots->f->stmts[at], 2);
    unsigned own = own_of(s, at, 1);
    bool constant = by && by->kind == PTX_IMM && by->value >= 0 && by->value < 64;
    if (left)
        return constant ? least(own + (unsigned)by->value, MOST) : own;
    return constant && own > by->value ? own - (unsigned)by->value : 0;
}

static unsigned own_by(const struct solving *s, uint32_t at)
{
    const struct ptx_form *form = s->roots->f->stmts[at].form;
    const struct ptx_operand *to = ptx_operand(&s->roots->f->stmts[at], 0);
    bool hi = ptx_form_has(form, PTX_MOD_HI);
    if (!to || to->kind != PTX_REG || to->sub != PTX_SEL_NONE || !is_integer(form))
        return 0;
    switch ((enum ptx_op_id)form->id) {
    case PTX_OP_MOV:
    case PTX_OP_CVT:
    case PTX_OP_CVTA:
    case PTX_OP_NEG: return own_of(s, at, 1);
    case PTX_OP_ADD:
    case PTX_OP_SUB:
    case PTX_OP_OR:
    case PTX_OP_XOR:
    case PTX_OP_MIN:
    case PTX_OP_MAX:
    case PTX_OP_SELP: return least(own_of(s, at, 1), own_of(s, at, 2));
    case PTX_OP_AND: return most(own_of(s, at, 1), own_of(s, at, 2));
    case PTX_OP_MUL: return hi ? 0 : product(s, at);
    case PTX_OP_MAD: return hi ? 0 : least(product(s, at), own_of(s, at, 3));
    case PTX_OP_SHL: return shifted(s, at, true);
    case PTX_OP_SHR: return shifted(s, at, false);
    default: return 0;
    }
}

// A sum of a value with the root and one that is added to it; -1: neither has the root.
static int sum(const struct solving *s, uint32_t at, struct roots_of root)
{
    int a = beyond_of(s, at, 1, root), b = beyond_of(s, at, 2, root);
    if (a >= 0)
        return (int)least((unsigned)a, own_of(s, at, 2));
    return b >= 0 ? (int)least((unsigned)b, own_of(s, at, 1)) : -1;
}

static int beyond_by(const struct solving *s, uint32_t at, struct roots_of root)
{
    const struct ptx_stmt *stmt = &s->roots->f->stmts[at];
    const struct ptx_operand *by = ptx_operand(stmt, 2);
    int a = beyond_of(s, at, 1, root), c;
    switch ((enum ptx_op_id)stmt->form->id) {
    case PTX_OP_LD: return root.kind == ROOTS_PARAM ? MOST : -1;
    case PTX_OP_MOV:
    case PTX_OP_CVT:
    case PTX_OP_CVTA: return a;
    case PTX_OP_ADD:
    case PTX_OP_OR:
    case PTX_OP_XOR: return sum(s, at, root);
    case PTX_OP_SUB: return a < 0 ? a : (int)least((unsigned)a, own_of(s, at, 2));
    case PTX_OP_MAD:
        c = beyond_of(s, at, 3, root);
        return c < 0 ? c : (int)least((unsigned)c, product(s, at));
    case PTX_OP_AND:
        return by && by->kind == PTX_IMM && a >= 0 ? (int)most((unsigned)a, own_of(s, at, 2)) : -1;
    case PTX_OP_SELP:
        c = beyond_of(s, at, 2, root);
        return a < 0 || c < 0 ? -1 : (int)least((unsigned)a, (unsigned)c);
    default: return -1;
    }
}

// --- values ------------------------------------------------------------------------------------------------

static unsigned own_join(const struct solving *s, uint32_t v)
{
    struct reach_list in = reach_inputs(s->reach, v);
    unsigned k = MOST;
    for (uint32_t i = 0; i < in.n; i++)
        k = least(k, in.at[i] == REACH_NONE ? 0 : s->own[in.at[i]]);
    return k;
}

static bool equal(struct roots_of a, struct roots_of b)
{
    return a.kind == b.kind && a.id == b.id;
}

static unsigned beyond_join(const struct solving *s, uint32_t v)
{
    struct reach_list in = reach_inputs(s->reach, v);
    unsigned k = MOST;
    for (uint32_t i = 0; i < in.n; i++)
        k = in.at[i] == REACH_NONE || !equal(s->roots->of[in.at[i]], s->roots->of[v])
                ? 0
                : least(k, s->beyond[in.at[i]]);
    return k;
}

static unsigned own(const struct solving *s, uint32_t v)
{
    const struct reach_value *value = &s->reach->value.items[v];
    if (value->kind == REACH_ENTRY)
        return 0;
    unsigned k = value->kind == REACH_JOIN ? own_join(s, v) : own_by(s, value->place);
    bool partial = value->kind == REACH_DEF && value->partial;
    return !partial ? k : value->input == REACH_NONE ? 0 : least(k, s->own[value->input]);
}

static unsigned beyond(const struct solving *s, uint32_t v)
{
    const struct reach_value *value = &s->reach->value.items[v];
    struct roots_of root = s->roots->of[v];
    if (root.kind == ROOTS_NONE || root.kind == ROOTS_NUMBER || root.kind == ROOTS_OTHER ||
        root.kind == ROOTS_OWN)
        return 0;
    if ((root.kind == ROOTS_VALUE || root.kind == ROOTS_WEB) && root.id == v)
        return MOST;
    if (value->kind == REACH_ENTRY)
        return 0;
    int k = value->kind == REACH_JOIN ? (int)beyond_join(s, v) : beyond_by(s, value->place, root);
    if (k < 0)
        return 0;
    if (value->kind == REACH_JOIN || !value->partial)
        return (unsigned)k;
    bool kept = value->input != REACH_NONE && equal(s->roots->of[value->input], root);
    return kept ? least((unsigned)k, s->beyond[value->input]) : 0;
}

static bool lower(uint8_t *at, unsigned to)
{
    if (to >= *at)
        return false;
    *at = (uint8_t)to;
    return true;
}

int multiples_build(const struct roots *roots, struct arena *arena, struct multiples *out)
{
    struct solving s = {.roots = roots, .reach = roots->reach};
    size_t n = roots->reach->value.len;
    unsigned rounds = 0;
    s.own = ARENA_ARRAY(arena, uint8_t, n + 1);
    s.beyond = ARENA_ARRAY(arena, uint8_t, n + 1);
    if (!s.own || !s.beyond)
        return -ENOMEM;
    memset(s.own, MOST, n + 1);
    memset(s.beyond, MOST, n + 1);
    bool again = !roots->reach->cfg->uncertain;
    for (; again && rounds < MOST_ROUNDS; rounds++) {
        again = false;
        for (uint32_t v = 0; v < n; v++) {
            again |= lower(&s.own[v], own(&s, v));
            again |= lower(&s.beyond[v], beyond(&s, v));
        }
    }
    if (again || roots->reach->cfg->uncertain) {
        memset(s.own, 0, n + 1);
        memset(s.beyond, 0, n + 1);
    }
    *out = (struct multiples){s.own, s.beyond};
    return 0;
}
