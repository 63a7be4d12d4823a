// SPDX-License-Identifier: MIT
// Variables of every space: which accesses they bound, what is inside for certain, and code for the bounds.
#include <errno.h>

#include "pass/pass_check_state.h"

enum { MOST_STEPS = 64 };

bool check_is_variable(struct roots_of root)
{
    return root.kind == ROOTS_VARIABLE || root.kind == ROOTS_GENERIC;
}

bool check_is_global(enum ptx_space space)
{
    return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC;
}

bool check_is_dynamic(const struct check_func *k, struct roots_of root)
{
    return check_is_variable(root) && roots_space(k->k->c->m, root) == PTX_SPACE_SHARED &&
           !ptx_var_size(ptx_sym(k->k->c->m, root.id)->var);
}

bool check_is_mapped(const struct check_func *k, struct roots_of root, struct roots_of *variable)
{
    if (root.kind != ROOTS_VALUE)
        return false;
    const struct reach_value *v = &k->reach->value.items[root.id];
    const struct ptx_stmt *s = v->kind == REACH_DEF ? &k->f->stmts[v->place] : NULL;
    if (!s || s->kind != PTX_INSN || s->form->id != PTX_OP_MAPA)
        return false;
    const struct ptx_operand *to = ptx_operand(s, 0), *from = ptx_operand(s, 1), *rank = ptx_operand(s, 2);
    *variable = (struct roots_of){ROOTS_OTHER, 0};
    // The rank is read behind the instruction.
    bool kept = to && rank && (rank->kind == PTX_IMM || (rank->kind == PTX_REG && rank->id != to->id));
    if (kept && from->kind == PTX_REG && from->sub == PTX_SEL_NONE) {
        uint32_t value = reach_read(k->reach, v->place, regs_index(k->reach->regs, from->id));
        if (value != REACH_NONE)
            *variable = k->roots->of[value];
    } else if (kept && from->kind == PTX_SYM && ptx_sym(k->k->c->m, from->id)->kind == PTX_SYM_VAR) {
        *variable = (struct roots_of){ROOTS_VARIABLE, from->id};
    }
    if (!check_is_variable(*variable) || roots_space(k->k->c->m, *variable) != PTX_SPACE_SHARED ||
        !check_is_anywhere(k, variable->id))
        *variable = (struct roots_of){ROOTS_OTHER, 0};
    return true;
}

struct roots_of check_variable_of(const struct check_func *k, struct roots_of root)
{
    struct roots_of variable;
    return check_is_mapped(k, root, &variable) ? variable : root;
}

int check_find_declared(struct check_func *k)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < k->f->nstmts; i++) {
        const struct ptx_stmt *s = &k->f->stmts[i];
        depth += s->kind == PTX_OPEN;
        depth -= s->kind == PTX_CLOSE && depth;
        if (s->kind == PTX_DECL && !depth && s->var->space != PTX_SPACE_REG && s->var->sym != PTX_NONE &&
            vec_push(&k->declared, s->var->sym))
            return -ENOMEM;
    }
    return 0;
}

bool check_is_anywhere(const struct check_func *k, uint32_t sym)
{
    uint64_t offset;
    const struct ptx_module *m = k->k->c->m;
    for (size_t i = 0; i < k->declared.len; i++)
        if (k->declared.items[i] == sym)
            return true;
    return map_get(&m->globals, ptx_sym(m, sym)->name) == sym || roots_param_offset(k->f, sym, &offset);
}

bool check_reaches(const struct check_func *k, struct roots_of root, enum ptx_space space)
{
    enum ptx_space variable = roots_space(k->k->c->m, root);
    struct roots_of mapped;
    switch ((enum roots_kind)root.kind) {
    case ROOTS_OTHER: return false;
    case ROOTS_GENERIC: return space == PTX_SPACE_GENERIC && check_is_anywhere(k, root.id);
    case ROOTS_WEB: return true;
    case ROOTS_VARIABLE: break;
    case ROOTS_VALUE:
        if (check_is_mapped(k, root, &mapped))
            return check_is_variable(mapped) &&
                   (space == PTX_SPACE_SHARED_CLUSTER || space == PTX_SPACE_GENERIC);
        return check_is_global(space);
    default: return check_is_global(space);
    }
    bool fits = space == variable || (space == PTX_SPACE_GENERIC && variable == PTX_SPACE_GLOBAL) ||
                (space == PTX_SPACE_SHARED_CLUSTER && variable == PTX_SPACE_SHARED);
    return fits && check_is_anywhere(k, root.id);
}

// --- what is known now -------------------------------------------------------------------------------------

// Whether a statement puts 32 bits without a sign into 64, as Triton does with addresses of parameters.
static bool widens(const struct ptx_form *form)
{
    enum ptx_type to = (enum ptx_type)form->types[0], from = (enum ptx_type)form->types[1];
    return form->id == PTX_OP_CVT && form->ntypes == 2 && ptx_type_bits(to) == 64 &&
           ptx_type_class(to) != PTX_CLASS_FLOAT && ptx_type_bits(from) == 32 &&
           ptx_type_class(from) == PTX_CLASS_UINT;
}

// Takes one step from a value back to what it was made from: a register, or with *value REACH_NONE a symbol.
// Returns false if it is made in another way. *narrow: the steps so far lead to an address of 32 bits, which
// a subtraction could have let wrap.
static bool step(const struct check_func *k, uint32_t *value, int64_t *offset, bool *narrow)
{
    const struct reach_value *v = &k->reach->value.items[*value];
    if (v->kind != REACH_DEF || v->partial)
        return false;
    const struct ptx_stmt *s = &k->f->stmts[v->place];
    const struct ptx_operand *from = ptx_operand(s, 1), *by = ptx_operand(s, 2);
    enum ptx_op_id op = (enum ptx_op_id)s->form->id;
    bool adds = op == PTX_OP_ADD && !s->form->flags && by && by->kind == PTX_IMM && by->sub == PTX_IMM_INT;
    *narrow |= widens(s->form);
    if (!adds && op != PTX_OP_MOV && op != PTX_OP_CVTA && !widens(s->form))
        return false;
    if (!from || (from->kind != PTX_REG && from->kind != PTX_SYM) || from->sub != PTX_SEL_NONE)
        return false;
    int64_t more = adds ? by->value : from->kind == PTX_SYM ? from->value : 0;
    if (more != (int32_t)more || (*narrow && more < 0))
        return false;
    *offset += more;
    *value = from->kind == PTX_SYM ? REACH_NONE
                                   : reach_read(k->reach, v->place, regs_index(k->reach->regs, from->id));
    return from->kind == PTX_SYM || *value != REACH_NONE;
}

bool check_offset(const struct check_func *k, const struct check_access *a, int64_t *offset)
{
    const struct ptx_operand *addr = a->mem.addr;
    bool narrow = false;
    *offset = addr->value;
    if (!check_is_variable(a->root) || addr->kind != PTX_ADDR || addr->sub == PTX_BASE_NONE)
        return false;
    if (addr->sub == PTX_BASE_SYM)
        return true;
    uint32_t value = reach_read(k->reach, a->stmt, regs_index(k->reach->regs, addr->id));
    for (unsigned i = 0; i < MOST_STEPS && value != REACH_NONE; i++)
        if (!step(k, &value, offset, &narrow))
            return false;
    return value == REACH_NONE;
}

bool check_is_inside(const struct check_func *k, const struct check_access *a)
{
    int64_t offset;
    uint64_t size = check_is_variable(a->root) ? ptx_var_size(ptx_sym(k->k->c->m, a->root.id)->var) : 0;
    return a->mem.bytes <= size && check_offset(k, a, &offset) && offset >= 0 &&
           (uint64_t)offset <= size - a->mem.bytes;
}

// --- alignment ---------------------------------------------------------------------------------------------

// Returns whether the address of an access is certain to be aligned if its root is; *certain: without that.
static bool follows_root(const struct check_func *k, const struct check_access *a, unsigned power,
                         bool *certain)
{
    const struct ptx_operand *addr = a->mem.addr;
    const struct multiples *m = &k->multiples;
    *certain = false;
    if (addr->value & (((int64_t)1 << power) - 1))
        return false;
    if (addr->sub == PTX_BASE_SYM)
        return true;
    uint32_t v = addr->sub == PTX_BASE_REG
                     ? reach_read(k->reach, a->stmt, regs_index(k->reach->regs, addr->id))
                     : REACH_NONE;
    *certain = v != REACH_NONE && m->own[v] >= power;
    return *certain || (v != REACH_NONE && m->beyond[v] >= power);
}

void check_alignment(const struct check_func *k, const struct check_access *a, struct check_range *range)
{
    uint32_t align = a->align;
    unsigned power = (unsigned)__builtin_ctz(align);
    bool certain, follows = follows_root(k, a, power, &certain);
    const struct ptx_var *var = check_is_variable(a->root) ? ptx_sym(k->k->c->m, a->root.id)->var : NULL;
    if (align == 1 || certain || (follows && var && multiples_of_variable(var) >= power))
        return;
    range->align = align;
    range->aligned_at = range->low;
    range->by_host = follows && a->root.kind == ROOTS_PARAM;
}

// --- code --------------------------------------------------------------------------------------------------

#define PUT(k, place, at, text, ...) \
    edit_insert((k)->k->c->edit, (place), (at), (text), EDIT_ARGS(__VA_ARGS__))

void check_variable_base(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                         uint32_t base)
{
    const char *text = "mov.u64 %0, %1;";
    if (root.kind == ROOTS_GENERIC)
        switch (roots_space(k->k->c->m, root)) {
        case PTX_SPACE_SHARED: text = "cvta.shared.u64 %0, %1;"; break;
        case PTX_SPACE_LOCAL: text = "cvta.local.u64 %0, %1;"; break;
        case PTX_SPACE_CONST: text = "cvta.const.u64 %0, %1;"; break;
        default: text = "mov.u64 %0, %1;\ncvta.param.u64 %0, %0;"; break;
        }
    PUT(k, place, at, text, edit_reg(base), edit_sym(root.id));
}

void check_variable_bounds(struct check_func *k, enum edit_place place, uint32_t at, struct roots_of root,
                           uint32_t base, uint32_t size)
{
    if (!check_is_anywhere(k, root.id)) {
        PUT(k, place, at, "mov.u64 %0, 0;\nmov.u64 %1, 0;", edit_reg(base), edit_reg(size));
        return;
    }
    check_variable_base(k, place, at, root, base);
    if (check_is_dynamic(k, root))
        PUT(k, place, at, "mov.u32 %0, %dynamic_smem_size;\ncvt.u64.u32 %1, %0;", edit_reg(k->narrow_limit),
            edit_reg(size));
    else
        PUT(k, place, at, "mov.u64 %0, %1;", edit_reg(size),
            edit_imm((int64_t)ptx_var_size(ptx_sym(k->k->c->m, root.id)->var)));
}

void check_mapped_bounds(struct check_func *k, enum edit_place place, uint32_t at, uint32_t v, uint32_t base,
                         uint32_t size)
{
    struct roots_of variable;
    const struct ptx_stmt *s = &k->f->stmts[k->reach->value.items[v].place];
    if (!check_is_mapped(k, (struct roots_of){ROOTS_VALUE, v}, &variable) || !check_is_variable(variable)) {
        PUT(k, place, at, "mov.u64 %0, 0;\nmov.u64 %1, 0;", edit_reg(base), edit_reg(size));
        return;
    }
    struct ptx_operand rank = *ptx_operand(s, 2);
    bool generic = !s->form->nspaces, narrow = check_is_narrow(k, ptx_operand(s, 0)->id);
    variable.kind = generic ? ROOTS_GENERIC : ROOTS_VARIABLE;
    check_variable_bounds(k, place, at, variable, base, size);
    if (generic)
        PUT(k, place, at, "mapa.u64 %0, %0, %1;", edit_reg(base), rank);
    else if (narrow)
        PUT(k, place, at, "cvt.u32.u64 %0, %1;\nmapa.shared::cluster.u32 %0, %0, %2;\ncvt.u64.u32 %1, %0;",
            edit_reg(k->narrow_base), edit_reg(base), rank);
    else
        PUT(k, place, at, "mapa.shared::cluster.u64 %0, %0, %1;", edit_reg(base), rank);
}

bool check_is_narrow(const struct check_func *k, uint32_t reg)
{
    return reg != PTX_NONE && ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, reg)->type) == 32;
}
