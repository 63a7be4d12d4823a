// SPDX-License-Identifier: MIT
// Checks of an index of 32 bits in place of an address: where the address of a range is
//
//   parameter + widen(index) * scale + constant     modulo 2^64
//
// the host computes which indices lead into the buffer (struct kcheck_index), and the kernel compares the
// index with them: an addition and a comparison of 32 bits, where the address takes four instructions. What
// is refused goes to the slow copy like any other, and is judged by its address.
//
// An address without a root is right in any live buffer (kcheck_judge.h). If it is a sum with a parameter, as
// in first + (last - first) / 2, it is compared with the buffer of that. Only the slow copy looks it up.
//
// The instructions from the widening to the address must be in the block of the check and have no guard, so
// that the address of the access comes from this execution of the widening; and the index must be in its
// register where the check is made.
#include "pass/pass_check_state.h"

enum { MOST_STEPS = 12, MOST_DISTANCE = 512 };
// Of a kernel, before others are compared by their addresses: these need fewer pairs, one for each root and
// number of bytes.
enum { MOST_PAIRS = 48 };

struct form {
    struct check_func *k;
    uint32_t block, param;  // param: offset of the root
    unsigned steps;
    bool has_base;
    uint64_t constant;
    uint64_t scale;    // 0: no index has been found yet
    uint32_t value;    // the index
    uint32_t reg, at;  // its register, and the statement that widens it
    bool is_signed;
};

static const struct ptx_operand *reg_operand(const struct ptx_stmt *s, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(s, i);
    return o && o->kind == PTX_REG && o->sub == PTX_SEL_NONE ? o : NULL;
}

static bool is_number(const struct ptx_operand *o)
{
    return o && o->kind == PTX_IMM && o->sub == PTX_IMM_INT;
}

static uint32_t value_of(const struct check_func *k, uint32_t stmt, const struct ptx_operand *o)
{
    uint32_t index = o ? regs_index(k->reach->regs, o->id) : REGS_NONE;
    return index == REGS_NONE ? REACH_NONE : reach_read(k->reach, stmt, index);
}

// Returns the statement that writes a value; NULL if there are several, or if it has a guard.
static const struct ptx_stmt *maker(const struct check_func *k, uint32_t value)
{
    const struct reach_value *v = value == REACH_NONE ? NULL : &k->reach->value.items[value];
    if (!v || v->kind != REACH_DEF || v->partial)
        return NULL;
    const struct ptx_stmt *s = &k->f->stmts[v->place];
    return s->kind == PTX_INSN && s->guard == PTX_NONE && reg_operand(s, 0) && !s->form->odd ? s : NULL;
}

// Whether a value is the parameter itself: it is the same wherever the statements that make it stand.
static bool is_param(const struct form *x, uint32_t value)
{
    for (unsigned i = 0; i < MOST_STEPS; i++) {
        const struct ptx_stmt *s = maker(x->k, value);
        const struct ptx_operand *from = s ? ptx_operand(s, 1) : NULL;
        uint64_t at;
        if (!from)
            return false;
        if (s->form->id == PTX_OP_LD)
            return x->k->f->is_entry && from->kind == PTX_ADDR && from->sub == PTX_BASE_SYM &&
                   ptx_type_bits((enum ptx_type)s->form->types[0]) == 64 && s->form->nspaces &&
                   ptx_space_is((enum ptx_space)s->form->spaces[0]) == PTX_SPACE_PARAM &&
                   roots_param_offset(x->k->f, from->id, &at) && at + (uint64_t)from->value == x->param;
        bool global = !s->form->nspaces || s->form->spaces[0] == PTX_SPACE_GLOBAL;
        if (s->form->id != PTX_OP_MOV && (s->form->id != PTX_OP_CVTA || !global))
            return false;
        value = value_of(x->k, x->k->reach->value.items[value].place, reg_operand(s, 1));
    }
    return false;
}

static bool add(struct form *x, uint32_t value, uint64_t factor);

// Adds an operand of 64 bits, `factor` times.
static bool add_operand(struct form *x, uint32_t stmt, unsigned i, uint64_t factor)
{
    const struct ptx_operand *o = ptx_operand(&x->k->f->stmts[stmt], i);
    if (is_number(o)) {
        x->constant += factor * (uint64_t)o->value;
        return true;
    }
    o = reg_operand(&x->k->f->stmts[stmt], i);
    return o && add(x, value_of(x->k, stmt, o), factor);
}

// Adds an operand of 32 bits, widened; there may be one.
static bool add_index(struct form *x, uint32_t stmt, bool is_signed, uint64_t factor)
{
    const struct ptx_operand *o = reg_operand(&x->k->f->stmts[stmt], 1);
    const struct ptx_var *var = o ? ptx_reg_var(x->k->f, o->id) : NULL;
    if (!var || var->vec != 1 || ptx_type_bits((enum ptx_type)var->type) != 32 || x->scale || !factor ||
        factor > KCHECK_MOST_SCALE)
        return false;
    x->value = value_of(x->k, stmt, o);
    x->reg = o->id;
    x->at = stmt;
    x->scale = factor;
    x->is_signed = is_signed;
    return x->value != REACH_NONE;
}

static bool is_signed_type(unsigned type)
{
    return ptx_type_class((enum ptx_type)type) == PTX_CLASS_SINT;
}

// Adds operand 1 times operand 2, which must be a number: of 64 bits, or widened from 32.
static bool add_product(struct form *x, uint32_t stmt, uint64_t factor)
{
    const struct ptx_stmt *s = &x->k->f->stmts[stmt];
    const struct ptx_operand *by = ptx_operand(s, 2);
    unsigned bits = ptx_type_bits((enum ptx_type)s->form->types[0]);
    if (!is_number(by) || ptx_form_has(s->form, PTX_MOD_HI))
        return false;
    if (ptx_form_has(s->form, PTX_MOD_WIDE))
        return bits == 32 && by->value > 0 && by->value <= KCHECK_MOST_SCALE && factor <= KCHECK_MOST_SCALE &&
               add_index(x, stmt, is_signed_type(s->form->types[0]), factor * (uint64_t)by->value);
    return bits == 64 && add_operand(x, stmt, 1, factor * (uint64_t)by->value);
}

static bool add_converted(struct form *x, uint32_t stmt, uint64_t factor)
{
    const struct ptx_form *f = x->k->f->stmts[stmt].form;
    bool from = f->ntypes == 2 && is_signed_type(f->types[1]), to = from && is_signed_type(f->types[0]);
    return f->ntypes == 2 && from == to && f->types[0] == (from ? PTX_S64 : PTX_U64) &&
           f->types[1] == (from ? PTX_S32 : PTX_U32) && add_index(x, stmt, from, factor);
}

static bool is_wide(const struct ptx_form *f)
{
    return f->ntypes && ptx_type_bits((enum ptx_type)f->types[0]) == 64 &&
           ptx_type_class((enum ptx_type)f->types[0]) != PTX_CLASS_FLOAT;
}

// Adds a value, `factor` times.
static bool add(struct form *x, uint32_t value, uint64_t factor)
{
    struct check_func *k = x->k;
    const struct ptx_stmt *s = maker(k, value);
    if (!s || s->form->flags || ++x->steps > MOST_STEPS)
        return false;
    if (k->roots->of[value].kind == ROOTS_PARAM && !x->has_base && factor == 1 && is_param(x, value)) {
        x->has_base = true;
        return true;
    }
    uint32_t at = k->reach->value.items[value].place;
    if (k->cfg->block_of[at] != x->block || ptx_form_has(s->form, PTX_MOD_SAT))
        return false;
    const struct ptx_operand *by = ptx_operand(s, 2);
    switch ((enum ptx_op_id)s->form->id) {
    case PTX_OP_ADD:
        return is_wide(s->form) && add_operand(x, at, 1, factor) && add_operand(x, at, 2, factor);
    case PTX_OP_SUB:
        return is_wide(s->form) && is_number(by) && add_operand(x, at, 2, -factor) &&
               add_operand(x, at, 1, factor);
    case PTX_OP_SHL:
        return s->form->types[0] == PTX_B64 && is_number(by) && by->value >= 0 && by->value < 64 &&
               add_operand(x, at, 1, factor << by->value);
    case PTX_OP_MUL: return add_product(x, at, factor);
    case PTX_OP_MAD: return add_product(x, at, factor) && add_operand(x, at, 3, factor);
    case PTX_OP_CVT: return add_converted(x, at, factor);
    default: return false;
    }
}

// Whether the index is in its register where the range is checked, or can be computed there.
static bool is_held(struct check_func *k, const struct form *x, uint32_t at)
{
    const struct regs *regs = k->reach->regs;
    if (check_is_later(k, x->value, at))
        return check_is_available(k, x->value, at);
    if (x->at >= at)
        return true;
    if (at - x->at > MOST_DISTANCE)
        return false;
    uint32_t index = regs_index(regs, x->reg);
    for (uint32_t i = x->at; i < at; i++)
        for (uint32_t a = regs->access_at[i]; a < regs->access_at[i + 1]; a++)
            if (regs->access[a].reg == index && regs->access[a].writes)
                return false;
    return true;
}

static bool find_index(struct check_func *k, const struct check_range *r, struct check_index *index)
{
    struct form x = {.k = k, .param = r->root.id};
    if (r->root.kind != ROOTS_PARAM || r->value == REACH_NONE || k->cfg->uncertain || !k->most_pairs ||
        (r->align && !r->by_host))
        return false;
    x.block = k->cfg->block_of[r->at];
    if (!add(&x, r->value, 1) || !x.has_base || !x.scale || !is_held(k, &x, r->at))
        return false;
    int64_t at;
    if (__builtin_add_overflow((int64_t)x.constant, r->low, &at) || at > KCHECK_MOST_CONSTANT ||
        at < -KCHECK_MOST_CONSTANT)
        return false;
    *index = (struct check_index){x.value, (uint32_t)x.scale, x.is_signed, at};
    return true;
}

// Returns the index of the kernel's pair like this one, PTX_NONE if there is no room.
static uint32_t find_pair(struct check_func *k, const struct pass_check_pair *pair)
{
    for (uint32_t i = 0; i < k->pairs.len; i++) {
        const struct pass_check_pair *p = &k->pairs.items[i];
        if (p->offset == pair->offset && p->span == pair->span && p->scale == pair->scale &&
            p->is_signed == pair->is_signed && p->at == pair->at)
            return i;
    }
    if (k->pairs.len >= MOST_PAIRS || k->pairs.len >= k->most_pairs || vec_push(&k->pairs, *pair))
        return PTX_NONE;
    return (uint32_t)k->pairs.len - 1;
}

static void choose(struct check_func *k, struct check_range *r, uint32_t offset)
{
    struct pass_check_pair pair = {
        .offset = offset, .span = (uint32_t)(r->high - r->low), .align = 1, .at = r->low};
    if (find_index(k, r, &r->index)) {
        pair.scale = r->index.scale;
        pair.is_signed = r->index.is_signed;
        pair.at = r->index.at;
    }
    bool small = pair.at <= KCHECK_MOST_CONSTANT && pair.at >= -KCHECK_MOST_CONSTANT;
    r->pair = small ? find_pair(k, &pair) : PTX_NONE;
    if (r->pair == PTX_NONE) {
        r->index.scale = 0;
        r->pair = check_pair(k, offset, pair.span);
    }
}

// Finds a parameter in the sum that an address without a root is.
static bool find_near(const struct check_func *k, uint32_t value, uint32_t *offset)
{
    for (unsigned i = 0; i < MOST_STEPS; i++) {
        const struct ptx_stmt *s = maker(k, value);
        if (!s)
            return false;
        uint32_t at = k->reach->value.items[value].place, next = REACH_NONE;
        bool sum = s->form->id == PTX_OP_ADD, mad = s->form->id == PTX_OP_MAD;
        bool copy = s->form->id == PTX_OP_MOV || s->form->id == PTX_OP_CVTA;
        for (unsigned o = mad ? 3 : 1; o <= (mad ? 3 : sum ? 2 : copy ? 1 : 0); o++) {
            uint32_t v = value_of(k, at, reg_operand(s, o));
            if (v == REACH_NONE)
                continue;
            if (k->roots->of[v].kind == ROOTS_PARAM && k->roots->address[v]) {  // else it may be a number
                *offset = k->roots->of[v].id;
                return true;
            }
            next = next == REACH_NONE || k->roots->of[v].kind == ROOTS_OWN ? v : next;
        }
        value = next;
    }
    return false;
}

void check_choose_pair(struct check_func *k, struct check_range *r)
{
    uint32_t offset;
    if (r->root.kind == ROOTS_PARAM)
        choose(k, r, r->root.id);
    else if (r->root.kind == ROOTS_OWN && k->most_pairs && r->value != REACH_NONE &&
             k->roots->of[r->value].kind == ROOTS_OWN && find_near(k, r->value, &offset))
        choose(k, r, offset);
}
