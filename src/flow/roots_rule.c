// SPDX-License-Identifier: MIT
#include "flow/roots_rule.h"

static const struct roots_of number = {ROOTS_NUMBER, 0}, other = {ROOTS_OTHER, 0}, own = {ROOTS_OWN, 0};

// A statement whose rule is being made.
struct reading {
    const struct roots *r;
    const struct ptx_stmt *s;
    uint32_t stmt;
    bool *factor;
};

static struct roots_rule fixed(struct roots_of of)
{
    return (struct roots_rule){.how = ROOTS_FIXED, .a = {REACH_NONE, of}, .b = {REACH_NONE, number}};
}

struct roots_of roots_of_symbol(const struct ptx_module *m, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym(m, sym);
    if (s->kind != PTX_SYM_VAR)
        return own;
    bool dynamic = false;
    switch (ptx_space_is((enum ptx_space)s->var->space)) {
    case PTX_SPACE_GLOBAL:
        if (!ptx_var_size(s->var))
            return own;
        break;
    case PTX_SPACE_SHARED: dynamic = true; break;
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_CONST:
    case PTX_SPACE_PARAM: break;
    default: return other;
    }
    return dynamic || ptx_var_size(s->var) ? (struct roots_of){ROOTS_VARIABLE, sym} : other;
}

enum ptx_space roots_space(const struct ptx_module *m, struct roots_of of)
{
    bool variable = of.kind == ROOTS_VARIABLE || of.kind == ROOTS_GENERIC;
    return variable ? ptx_space_is((enum ptx_space)ptx_sym(m, of.id)->var->space) : PTX_SPACE_GENERIC;
}

struct roots_of roots_convert(const struct ptx_module *m, struct roots_of of, enum ptx_space to)
{
    if (of.kind == ROOTS_NONE)
        return of;
    if (to == PTX_SPACE_GENERIC && of.kind == ROOTS_VARIABLE)
        return (struct roots_of){ROOTS_GENERIC, of.id};
    if (of.kind == ROOTS_GENERIC && roots_space(m, of) == to)
        return (struct roots_of){ROOTS_VARIABLE, of.id};
    return other;
}

static bool is_narrow(const struct roots *r, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(r->f, reg);
    return ptx_type_bits((enum ptx_type)var->type) == 32 &&
           ptx_type_class((enum ptx_type)var->type) != PTX_CLASS_FLOAT;
}

static bool is_wide(const struct roots *r, uint32_t reg)
{
    const struct ptx_var *var = ptx_reg_var(r->f, reg);
    return ptx_type_bits((enum ptx_type)var->type) == 64 &&
           ptx_type_class((enum ptx_type)var->type) != PTX_CLASS_FLOAT;
}

static struct roots_source source(const struct reading *d, unsigned i)
{
    const struct ptx_operand *o = ptx_operand(d->s, i);
    struct roots_source x = {REACH_NONE, number};
    if (!o)
        return x;
    if (o->kind == PTX_SYM)
        x.of = roots_of_symbol(d->r->m, o->id);
    else if (o->kind == PTX_REG && o->sub == PTX_SEL_NONE && (is_wide(d->r, o->id) || is_narrow(d->r, o->id)))
        x.value = reach_read(d->r->reach, d->stmt, regs_index(d->r->reach->regs, o->id));
    if (o->kind == PTX_REG && x.value == REACH_NONE && is_wide(d->r, o->id))
        x.of = own;
    return x;
}

static void mark_factor(const struct reading *d, unsigned i)
{
    struct roots_source x = source(d, i);
    if (x.value != REACH_NONE)
        d->factor[x.value] = true;
}

static struct roots_rule copy_of(const struct reading *d, unsigned i)
{
    struct roots_source x = source(d, i);
    return x.value == REACH_NONE ? fixed(x.of)
                                 : (struct roots_rule){.how = ROOTS_COPY, .a = x, .b = {REACH_NONE, number}};
}

static struct roots_rule both(const struct reading *d, enum roots_how how, unsigned i, unsigned k)
{
    return (struct roots_rule){.how = (uint8_t)how, .a = source(d, i), .b = source(d, k)};
}

static struct roots_rule itself(void)
{
    return (struct roots_rule){.how = ROOTS_ITSELF, .a = {REACH_NONE, number}, .b = {REACH_NONE, number}};
}

// --- moves -------------------------------------------------------------------------------------------------

// Returns the value that a 32-bit register is a half of: the first or the second item of mov.b64 {a, b}, x.
static uint32_t half_of(const struct reading *d, const struct ptx_operand *o, unsigned which)
{
    const struct reach *reach = d->r->reach;
    uint32_t index =
        o->kind == PTX_REG && o->sub == PTX_SEL_NONE ? regs_index(reach->regs, o->id) : REGS_NONE;
    uint32_t v = index == REGS_NONE ? REACH_NONE : reach_read(reach, d->stmt, index);
    if (v == REACH_NONE || reach->value.items[v].kind != REACH_DEF || reach->value.items[v].partial)
        return REACH_NONE;
    uint32_t at = reach->value.items[v].place;
    const struct ptx_stmt *s = &d->r->f->stmts[at];
    const struct ptx_operand *to = s->form->id == PTX_OP_MOV ? ptx_operand(s, 0) : NULL;
    if (!to || to->kind != PTX_VEC || to->value != 2 || to[1 + which].kind != PTX_REG ||
        to[1 + which].id != o->id)
        return REACH_NONE;
    struct reading there = {d->r, s, at, d->factor};
    return source(&there, 1).value;
}

static struct roots_rule packed(const struct reading *d, const struct ptx_operand *from)
{
    if (from->value != 2)
        return itself();
    uint32_t low = half_of(d, from + 1, 0), high = half_of(d, from + 2, 1);
    if (low == REACH_NONE || low != high)
        return itself();
    return (struct roots_rule){.how = ROOTS_COPY, .a = {low, number}, .b = {REACH_NONE, number}};
}

static struct roots_rule of_mov(const struct reading *d)
{
    const struct ptx_operand *to = ptx_operand(d->s, 0), *from = ptx_operand(d->s, 1);
    if (!to || !from || ptx_is_group(to))
        return itself();
    if (from->kind == PTX_VEC)
        return packed(d, from);
    return from->kind == PTX_REG || from->kind == PTX_SYM ? copy_of(d, 1) : fixed(number);
}

static struct roots_rule of_cvta(const struct reading *d)
{
    const struct ptx_form *form = d->s->form;
    struct roots_rule rule = copy_of(d, 1);
    enum ptx_space space = form->nspaces ? ptx_space_is((enum ptx_space)form->spaces[0]) : PTX_SPACE_GLOBAL;
    rule.pointer = true;
    if (space == PTX_SPACE_GLOBAL)
        return rule;
    rule.how = ROOTS_CONVERT;
    rule.space = (uint8_t)(ptx_form_has(form, PTX_MOD_TO) ? space : PTX_SPACE_GENERIC);
    return rule;
}

// Whether the operand was written by an instruction whose result is an address of memory that is not global,
// which 32 bits hold.
static bool is_short_address(const struct reading *d, const struct ptx_operand *o)
{
    const struct reach *reach = d->r->reach;
    uint32_t index =
        o->kind == PTX_REG && o->sub == PTX_SEL_NONE ? regs_index(reach->regs, o->id) : REGS_NONE;
    uint32_t v = index == REGS_NONE ? REACH_NONE : reach_read(reach, d->stmt, index);
    if (v == REACH_NONE || reach->value.items[v].kind != REACH_DEF || reach->value.items[v].partial)
        return false;
    struct reading there = {d->r, &d->r->f->stmts[reach->value.items[v].place], reach->value.items[v].place,
                            d->factor};
    if (there.s->form->id == PTX_OP_CVTA)
        return ptx_form_has(there.s->form, PTX_MOD_TO) && of_cvta(&there).how == ROOTS_CONVERT;
    if (there.s->form->id != PTX_OP_MOV || ptx_operand(there.s, 1)->kind != PTX_SYM)
        return false;
    struct roots_of of = source(&there, 1).of;
    return of.kind == ROOTS_VARIABLE && roots_space(d->r->m, of) != PTX_SPACE_GLOBAL;
}

static struct roots_rule of_cvt(const struct reading *d)
{
    const struct ptx_form *form = d->s->form;
    for (unsigned i = 0; i < form->ntypes; i++)
        if (ptx_type_bits((enum ptx_type)form->types[i]) < 32 ||
            ptx_type_class((enum ptx_type)form->types[i]) == PTX_CLASS_FLOAT)
            return fixed(number);
    return copy_of(d, 1);  // what 32 bits hold is a number, or an address that fits
}

// --- loads -------------------------------------------------------------------------------------------------

static uint64_t align_of(const struct ptx_var *v)
{
    uint64_t natural = ptx_type_bits((enum ptx_type)v->type) / 8 * v->vec;
    return v->align ? v->align : natural ? natural : 1;
}

bool roots_param_offset(const struct ptx_func *f, uint32_t sym, uint64_t *offset)
{
    uint64_t at = 0;
    for (uint32_t i = 0; i < f->nparams; i++) {
        const struct ptx_var *v = &f->params[i];
        at = (at + align_of(v) - 1) / align_of(v) * align_of(v);
        if (v->sym == sym) {
            *offset = at;
            return true;
        }
        at += ptx_var_size(v);
    }
    return false;
}

// Returns the position of a register in a vector operand, 0 if it is the operand itself.
static unsigned position(const struct ptx_operand *to, uint32_t reg)
{
    for (unsigned i = 0; ptx_is_group(to) && i < to->span; i++)
        if (to[1 + i].kind == PTX_REG && to[1 + i].id == reg)
            return i;
    return 0;
}

static struct roots_rule of_param(const struct reading *d, const struct ptx_operand *addr, uint32_t reg)
{
    const struct ptx_func *f = d->r->f;
    uint64_t at;
    struct roots_rule rule = itself();
    if (addr->kind != PTX_ADDR || addr->sub != PTX_BASE_SYM || !roots_param_offset(f, addr->id, &at))
        return rule;
    const struct ptx_var *var = ptx_sym(d->r->m, addr->id)->var;
    rule.pointer = var->is_ptr && var->ptr_space != PTX_SPACE_SHARED && var->ptr_space != PTX_SPACE_LOCAL;
    if (!f->is_entry)
        return rule;
    at += (uint64_t)addr->value + 8u * position(ptx_operand(d->s, 0), reg);
    if (at > UINT32_MAX)
        return fixed(own);
    bool pointer = rule.pointer;
    rule = fixed((struct roots_of){ROOTS_PARAM, (uint32_t)at});
    rule.pointer = pointer;
    return rule;
}

static struct roots_rule of_load(const struct reading *d, uint32_t reg)
{
    const struct ptx_form *form = d->s->form;
    const struct ptx_operand *addr = ptx_operand(d->s, 1);
    enum ptx_type type = form->ntypes ? (enum ptx_type)form->types[form->ntypes - 1] : PTX_TYPE_NONE;
    if (ptx_type_bits(type) != 64 || ptx_type_class(type) == PTX_CLASS_FLOAT)
        return fixed(number);
    bool param = form->nspaces && ptx_space_is((enum ptx_space)form->spaces[0]) == PTX_SPACE_PARAM;
    return param && addr ? of_param(d, addr, reg) : itself();
}

// --- arithmetic --------------------------------------------------------------------------------------------

static bool is_integer_form(const struct ptx_form *form)
{
    return form->ntypes && ptx_type_class((enum ptx_type)form->types[0]) != PTX_CLASS_FLOAT;
}

// A mask that clears low bits rounds a pointer down; a constant that sets low bits is an offset into aligned
// memory.
static struct roots_rule of_logic(const struct reading *d)
{
    const struct ptx_operand *o = ptx_operand(d->s, 2);
    bool constant = o && o->kind == PTX_IMM;
    bool masks = d->s->form->id == PTX_OP_AND;
    if (constant && (masks ? o->value < 0 : o->value >= 0))
        return copy_of(d, 1);
    return fixed(number);
}

static struct roots_rule of_mad(const struct reading *d)
{
    mark_factor(d, 1);
    mark_factor(d, 2);
    if (ptx_form_has(d->s->form, PTX_MOD_HI))
        return fixed(number);
    return (struct roots_rule){.how = ROOTS_SUM, .a = {REACH_NONE, number}, .b = source(d, 3)};
}

static struct roots_rule rule_of(const struct reading *d, uint32_t reg)
{
    const struct ptx_form *form = d->s->form;
    bool integer = is_integer_form(form);
    switch ((enum ptx_op_id)form->id) {
    case PTX_OP_MOV: return of_mov(d);
    case PTX_OP_CVTA: return of_cvta(d);
    case PTX_OP_CVT: return of_cvt(d);
    case PTX_OP_ADD: return integer ? both(d, ROOTS_SUM, 1, 2) : fixed(number);
    case PTX_OP_SUB: return integer ? both(d, ROOTS_DIFF, 1, 2) : fixed(number);
    case PTX_OP_MAD: return integer ? of_mad(d) : fixed(number);
    case PTX_OP_AND:
    case PTX_OP_OR: return of_logic(d);
    case PTX_OP_SELP:
    case PTX_OP_SLCT: return integer ? both(d, ROOTS_PICK, 1, 2) : fixed(number);
    case PTX_OP_LD:
    case PTX_OP_LDU: return of_load(d, reg);
    case PTX_OP_ATOM:
    case PTX_OP_CALL:
    case PTX_OP_MAPA: return itself();
    case PTX_OP_ALLOCA:
    case PTX_OP_STACKSAVE: return fixed(other);
    case PTX_OP_MUL:
    case PTX_OP_DIV:
    case PTX_OP_REM:
    case PTX_OP_SHL:
    case PTX_OP_SHR:
        mark_factor(d, 1);
        mark_factor(d, 2);
        return fixed(number);
    case PTX_OP_UNKNOWN: return fixed(own);
    default: return fixed(number);
    }
}

// Registers of 32 bits hold pointers only if these come from a variable that is not in global memory, or from
// mapa.
static struct roots_rule narrow_rule_of(const struct reading *d)
{
    const struct ptx_form *form = d->s->form;
    const struct ptx_operand *to = ptx_operand(d->s, 0), *from = ptx_operand(d->s, 1);
    bool integer = is_integer_form(form);
    if (!to || !from || ptx_is_group(to))
        return fixed(number);
    switch ((enum ptx_op_id)form->id) {
    case PTX_OP_MAPA: return itself();
    case PTX_OP_MOV: return from->kind == PTX_REG || from->kind == PTX_SYM ? copy_of(d, 1) : fixed(number);
    case PTX_OP_CVTA: return of_cvta(d);
    case PTX_OP_CVT:
        if (from->kind == PTX_REG && is_wide(d->r, from->id) && !is_short_address(d, from))
            return fixed(number);
        return of_cvt(d);
    case PTX_OP_ADD:
    case PTX_OP_XOR: return integer ? both(d, ROOTS_SUM, 1, 2) : fixed(number);
    case PTX_OP_SUB: return integer ? both(d, ROOTS_DIFF, 1, 2) : fixed(number);
    case PTX_OP_MAD: return integer ? of_mad(d) : fixed(number);
    case PTX_OP_AND: return of_logic(d);
    case PTX_OP_OR: return ptx_operand(d->s, 2)->kind == PTX_REG ? both(d, ROOTS_SUM, 1, 2) : of_logic(d);
    case PTX_OP_SELP:
    case PTX_OP_SLCT: return integer ? both(d, ROOTS_PICK, 1, 2) : fixed(number);
    default: return fixed(number);
    }
}

void roots_rule_of(const struct roots *r, uint32_t def, struct roots_rule *rule, bool *factor)
{
    const struct reach_value *v = &r->reach->value.items[def];
    struct reading d = {r, &r->f->stmts[v->place], v->place, factor};
    uint32_t reg = r->reach->regs->reg[v->reg];
    *rule = is_wide(r, reg) ? rule_of(&d, reg) : is_narrow(r, reg) ? narrow_rule_of(&d) : fixed(number);
}
