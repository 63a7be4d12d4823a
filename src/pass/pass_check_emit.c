// SPDX-License-Identifier: MIT
// Code for the checks of a function: see pass_check.h.
#include <assert.h>

#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// --- values that are computed early ------------------------------------------------------------------------

struct copying {
    struct check_func *k;
    uint32_t stmt, segment, first;
};

static uint32_t written_by(const struct check_func *k, uint32_t stmt, uint32_t reg)
{
    const struct regs *regs = k->reach->regs;
    uint32_t index = regs_index(regs, reg);
    for (uint32_t a = regs->access_at[stmt]; a < regs->access_at[stmt + 1]; a++)
        if (regs->access[a].reg == index)
            return k->reach->written[a];
    return REACH_NONE;
}

static uint32_t rename_reg(void *ctx, uint32_t reg, bool writes)
{
    struct copying *c = ctx;
    struct check_func *k = c->k;
    uint32_t v =
        writes ? written_by(k, c->stmt, reg) : reach_read(k->reach, c->stmt, regs_index(k->reach->regs, reg));
    assert(v != REACH_NONE);
    if (!check_is_later(k, v, c->first))
        return reg;
    if (writes && k->renamed_in[v] != c->segment) {
        const struct ptx_var *var = ptx_reg_var(k->f, reg);
        k->renamed_in[v] = c->segment;
        k->renamed[v] = edit_new_reg(k->k->c->edit, (enum ptx_type)var->type);
    }
    return k->renamed[v];
}

// Computes a value before the first statement of a segment. Returns the register that holds it there.
static uint32_t compute(struct check_func *k, uint32_t segment, uint32_t value)
{
    uint32_t first = k->segments.items[segment].first;
    const struct reach_value *v = &k->reach->value.items[value];
    if (!check_is_later(k, value, first))
        return k->reach->regs->reg[v->reg];
    if (k->renamed_in[value] == segment)
        return k->renamed[value];
    struct regs_list list = regs_at(k->reach->regs, v->place);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads)
            compute(k, segment, reach_read(k->reach, v->place, list.at[i].reg));
    struct copying c = {k, v->place, segment, first};
    edit_copy_renamed(k->k->c->edit, first, v->place, rename_reg, &c);
    return k->renamed[value];
}

// --- fast --------------------------------------------------------------------------------------------------

static uint32_t span_of(const struct check_range *r)
{
    return (uint32_t)(r->high - r->low);
}

// Sets k->limit from the size of a buffer.
static void limit_of(struct check_func *k, uint32_t at, uint32_t size, uint32_t span)
{
    if (span == 1)
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->limit), edit_reg(size));
    else
        BEFORE(k, at, "sub.s64 %0, %1, %2;\nmax.s64 %0, %0, 0;", edit_reg(k->limit), edit_reg(size),
               edit_imm((int64_t)span - 1));
}

// Returns the limit for a variable whose size is known.
static int64_t limit_in(const struct check_func *k, const struct check_range *r)
{
    uint64_t size = ptx_var_size(ptx_sym(k->k->c->m, r->root.id)->var), span = span_of(r);
    return span <= size ? (int64_t)(size - span + 1) : 0;
}

// Sets k->limit, and returns the operand that is the base. address: a register that holds the address of the
// range's first byte, for ranges without a root.
static struct ptx_operand bounds(struct check_func *k, uint32_t at, const struct check_range *r,
                                 uint32_t address)
{
    const struct check_bounds *known = check_bounds_of(k, r->root);
    if (r->root.kind == ROOTS_PARAM && r->pair != PTX_NONE) {
        int64_t pair = KCHECK_HIDDEN + 16 * (int64_t)r->pair;
        BEFORE(k, at, "ld.param.u64 %0, [%1];\nld.param.u64 %2, [%3];", edit_reg(k->base),
               edit_sym_at(k->hidden, pair), edit_reg(k->limit), edit_sym_at(k->hidden, pair + 8));
    } else if (check_is_dynamic(k, r->root)) {
        check_variable_bounds(k, EDIT_BEFORE, at, r->root, k->base, k->size);
        limit_of(k, at, k->size, span_of(r));
    } else if (check_is_variable(r->root)) {
        check_variable_base(k, EDIT_BEFORE, at, r->root, k->base);
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->limit), edit_imm(limit_in(k, r)));
    } else if (known && known->needed) {
        limit_of(k, at, known->size, span_of(r));
        return edit_reg(known->base);
    } else {
        check_lookup(k, EDIT_BEFORE, at, edit_reg(address), k->base, k->size);
        limit_of(k, at, k->size, span_of(r));
    }
    return edit_reg(k->base);
}

// Sets k->t to the address of the range's first byte.
static void address_of(struct check_func *k, uint32_t segment, const struct check_range *r)
{
    uint32_t at = k->segments.items[segment].first;
    if (r->sym != PTX_NONE) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_sym_at(r->sym, r->low));
    } else if (r->reg == PTX_NONE) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_imm(r->low));
    } else {
        uint32_t reg = r->value == REACH_NONE ? r->reg : compute(k, segment, r->value);
        if (check_is_narrow(k, r->reg))
            BEFORE(k, at, "add.s32 %0, %1, %2;\ncvt.u64.u32 %3, %0;", edit_reg(k->narrow), edit_reg(reg),
                   edit_imm((int32_t)r->low), edit_reg(k->t));
        else if (r->low)
            BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->t), edit_reg(reg), edit_imm(r->low));
        else
            BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_reg(reg));
    }
}

// Sets k->bad also if the address is not aligned.
static void check_aligned(struct check_func *k, uint32_t at, const struct check_range *r,
                          struct ptx_operand guard, bool narrow)
{
    uint32_t reg = narrow ? k->x : k->root;
    if (!r->align || r->by_host)
        return;
    if (r->guard == PTX_NONE)
        BEFORE(k, at, narrow ? "setp.ne.or.u32 %0, %1, 0, %0;" : "setp.ne.or.u64 %0, %1, 0, %0;",
               edit_reg(k->bad), edit_reg(reg));
    else
        BEFORE(k, at,
               narrow ? "setp.ne.and.u32 %2, %1, 0, %3;\nor.pred %0, %0, %2;"
                      : "setp.ne.and.u64 %2, %1, 0, %3;\nor.pred %0, %0, %2;",
               edit_reg(k->bad), edit_reg(reg), edit_reg(k->other), guard);
}

// Sets k->root to what the address in k->t, or k->x to what the one in a register of 32 bits, is more than a
// multiple of the alignment.
static void take_rest(struct check_func *k, uint32_t at, const struct check_range *r, uint32_t narrow)
{
    int64_t mask = (int64_t)r->align - 1;
    if (!r->align || r->by_host)
        return;
    if (narrow != PTX_NONE)
        BEFORE(k, at, "add.s32 %0, %1, %2;\nand.b32 %0, %0, %3;", edit_reg(k->x), edit_reg(narrow),
               edit_imm(r->aligned_at & mask), edit_imm(mask));
    else if ((r->aligned_at - r->low) & mask)
        BEFORE(k, at, "add.s64 %0, %1, %2;\nand.b64 %0, %0, %3;", edit_reg(k->root), edit_reg(k->t),
               edit_imm((r->aligned_at - r->low) & mask), edit_imm(mask));
    else
        BEFORE(k, at, "and.b64 %0, %1, %2;", edit_reg(k->root), edit_reg(k->t), edit_imm(mask));
}

// The same as the end of check_range, for the address of a variable in a register of 32 bits.
static void check_narrow(struct check_func *k, uint32_t segment, const struct check_range *r, bool more,
                         struct ptx_operand guard)
{
    uint32_t at = k->segments.items[segment].first;
    uint32_t reg = r->value == REACH_NONE ? r->reg : compute(k, segment, r->value);
    struct ptx_operand limit = edit_reg(k->narrow_limit);
    take_rest(k, at, r, reg);
    BEFORE(k, at, "mov.u32 %0, %1;\nsub.u32 %2, %3, %0;", edit_reg(k->narrow_base), edit_sym(r->root.id),
           edit_reg(k->narrow), edit_reg(reg));
    if (r->low)
        BEFORE(k, at, "add.s32 %0, %0, %1;", edit_reg(k->narrow), edit_imm((int32_t)r->low));
    if (!check_is_dynamic(k, r->root))
        limit = edit_imm(limit_in(k, r));
    else
        BEFORE(k, at, "mov.u32 %0, %dynamic_smem_size;", limit);
    if (check_is_dynamic(k, r->root) && span_of(r) > 1)
        BEFORE(k, at, "sub.s32 %0, %0, %1;\nmax.s32 %0, %0, 0;", limit, edit_imm((int64_t)span_of(r) - 1));
    if (r->guard == PTX_NONE)
        BEFORE(k, at, more ? "setp.ge.or.u32 %0, %1, %2, %0;" : "setp.ge.u32 %0, %1, %2;", edit_reg(k->bad),
               edit_reg(k->narrow), limit);
    else
        BEFORE(k, at,
               more ? "setp.ge.and.u32 %3, %1, %2, %4;\nor.pred %0, %0, %3;"
                    : "setp.ge.and.u32 %0, %1, %2, %4;",
               edit_reg(k->bad), edit_reg(k->narrow), limit, edit_reg(k->other), guard);
    check_aligned(k, at, r, guard, true);
}

// Sets k->bad if the range is not inside; `more`: it may be set already.
static void check_range(struct check_func *k, uint32_t segment, const struct check_range *r, bool more)
{
    uint32_t at = k->segments.items[segment].first;
    struct ptx_operand guard = {0};
    if (r->guard != PTX_NONE) {
        guard = edit_reg(r->guard_value == REACH_NONE ? r->guard : compute(k, segment, r->guard_value));
        guard.negated = r->guard_negated;
    }
    if (r->root.kind == ROOTS_VARIABLE && check_is_narrow(k, r->reg)) {
        check_narrow(k, segment, r, more, guard);
        return;
    }
    address_of(k, segment, r);
    if (check_by_shadow(k, r->root)) {
        check_shadow_range(k, at, r, guard, more);
        return;
    }
    struct ptx_operand base = bounds(k, at, r, k->t);
    take_rest(k, at, r, PTX_NONE);
    BEFORE(k, at, "sub.u64 %0, %0, %1;", edit_reg(k->t), base);
    if (r->guard == PTX_NONE)
        BEFORE(k, at, more ? "setp.ge.or.u64 %0, %1, %2, %0;" : "setp.ge.u64 %0, %1, %2;", edit_reg(k->bad),
               edit_reg(k->t), edit_reg(k->limit));
    else
        BEFORE(k, at,
               more ? "setp.ge.and.u64 %3, %1, %2, %4;\nor.pred %0, %0, %3;"
                    : "setp.ge.and.u64 %0, %1, %2, %4;",
               edit_reg(k->bad), edit_reg(k->t), edit_reg(k->limit), edit_reg(k->other), guard);
    check_aligned(k, at, r, guard, false);
}

static void emit_fast(struct check_func *k, uint32_t segment)
{
    struct check_segment *g = &k->segments.items[segment];
    struct edit *e = k->k->c->edit;
    for (uint32_t i = 0; i < g->nranges; i++)
        check_range(k, segment, &k->ranges.items[g->first_range + i], i > 0);
    g->slow = edit_new_label(e);
    g->back = edit_new_label(e);
    BEFORE(k, g->first, "@%0 bra %1;", edit_reg(k->bad), edit_sym(g->slow));
    edit_place_label(e, g->last + 1, g->back);
}

// --- slow --------------------------------------------------------------------------------------------------

static void clear_part(struct check_func *k, uint32_t at, unsigned bits, struct ptx_operand o, uint32_t p)
{
    bool all = p == PTX_NONE;
    struct ptx_operand where = edit_reg(p);
    switch (bits) {
    case 16: BEFORE(k, at, all ? "mov.b16 %0, 0;" : "@%1 mov.b16 %0, 0;", o, where); break;
    case 32: BEFORE(k, at, all ? "mov.b32 %0, 0;" : "@%1 mov.b32 %0, 0;", o, where); break;
    case 64: BEFORE(k, at, all ? "mov.b64 %0, 0;" : "@%1 mov.b64 %0, 0;", o, where); break;
    case 128:
        BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(k->t));
        BEFORE(k, at, all ? "mov.b128 %0, {%1, %1};" : "@%2 mov.b128 %0, {%1, %1};", o, edit_reg(k->t),
               where);
        break;
    default: break;  // 8 bits: no instruction but a load writes such a register
    }
}

static void clear_reg(struct check_func *k, uint32_t at, const struct ptx_operand *o, uint32_t p)
{
    const struct ptx_var *var = ptx_reg_var(k->f, o->id);
    struct ptx_operand part = edit_reg(o->id);
    for (unsigned i = 0; i < var->vec; i++) {
        if (var->vec > 1)
            part.sub = (uint8_t)(PTX_SEL_X + i);
        clear_part(k, at, ptx_type_bits((enum ptx_type)var->type), part, p);
    }
}

void check_clear(struct check_func *k, uint32_t at, const struct ptx_stmt *s, uint32_t p)
{
    bool writes = s->form->nrules && s->form->rules[0].role == PTX_ROLE_WRITE;
    const struct ptx_operand *to = writes ? ptx_operand(s, 0) : NULL;
    for (const struct ptx_operand *o = to; to && o < ptx_next(to); o++)
        if (o->kind == PTX_REG)
            clear_reg(k, at, o, p);
}

// Sets k->root. Returns whether there is one.
static bool root_of(struct check_func *k, uint32_t at, struct roots_of root)
{
    const struct check_bounds *known = check_bounds_of(k, root);
    if (known && known->needed) {
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->root), edit_reg(known->base));
        return true;
    }
    if (check_is_variable(root)) {
        check_variable_base(k, EDIT_BEFORE, at, root, k->root);
        return true;
    }
    for (uint32_t i = 0; root.kind == ROOTS_PARAM && i < k->f->nparams; i++) {
        uint64_t start;
        const struct ptx_var *p = &k->f->params[i];
        if (!roots_param_offset(k->f, p->sym, &start) || root.id < start ||
            root.id + 8 > start + ptx_var_size(p))
            continue;
        BEFORE(k, at, "ld.param.u64 %0, [%1];", edit_reg(k->root),
               edit_sym_at(p->sym, root.id - (int64_t)start));
        return true;
    }
    BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(k->root));
    return false;
}

void check_prepare(struct check_func *k, uint32_t at, const struct check_access *a, bool known)
{
    const struct pass_check_site *site = &k->k->sites.items[a->site];
    uint32_t flags = site->flags, number = KCHECK_SITE(k->k->tag, a->site);
    bool shadow = check_by_shadow(k, a->root), global = check_is_global((enum ptx_space)a->mem.space);
    struct roots_of variable = check_variable_of(k, a->root);
    if (shadow)  // the address decides
        BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(k->root));
    else if (root_of(k, at, a->root))
        flags |= KCHECK_ROOT;
    if (!shadow && (check_is_variable(variable) || !global))
        flags |= KCHECK_VARIABLE_LEFT;
    if (!shadow && check_is_dynamic(k, variable))
        flags |= KCHECK_DYNAMIC;
    if (a->align > 1)
        flags |= KCHECK_ALIGNED;
    BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->what),
           edit_imm((int64_t)KCHECK_WHAT(number, a->mem.bytes, flags)));
    // A web may hold numbers as well as pointers; those have no bounds.
    if (a->root.kind == ROOTS_WEB && global && !shadow)
        BEFORE(k, at, "setp.eq.u64 %0, %1, 0;\n@%0 mov.u64 %2, %3;", edit_reg(k->bad), edit_reg(k->root),
               edit_reg(k->what),
               edit_imm((int64_t)KCHECK_WHAT(number, a->mem.bytes, site->flags | (flags & KCHECK_ALIGNED))));
    if (known)
        BEFORE(k, at, "@%0 mov.u64 %1, %2;", edit_reg(k->ok), edit_reg(k->what),
               edit_imm((int64_t)KCHECK_WHAT(number, a->mem.bytes, flags | KCHECK_INSIDE)));
}

void check_call(struct check_func *k, uint32_t at, uint32_t stmt)
{
    check_save(k, at, stmt);
    if (k->hidden == PTX_NONE)
        BEFORE(k, at, "mov.u64 %0, 0;", edit_reg(k->size));
    else
        BEFORE(k, at, "ld.param.u64 %0, [%1];", edit_reg(k->size),
               edit_sym_at(k->hidden, offsetof(struct kcheck_hidden, launch)));
    BEFORE(k, at, "call (%0), %1, (%2, %3, %4, %5);\nsetp.ne.u32 %6, %0, %7;", edit_reg(k->verdict),
           edit_sym(k->k->call), edit_reg(k->what), edit_reg(k->t), edit_reg(k->root), edit_reg(k->size),
           edit_reg(k->bad), edit_imm(KCHECK_PERFORM));
    check_restore(k, at, stmt);
}

// Finds bounds for the access alone, as for a range. Returns false if there are none at hand, or if
// KCHECK_ACCESS finds them itself: it does not know the size of a variable.
static bool own_range(const struct check_access *a, struct check_range *r)
{
    *r = (struct check_range){.root = a->root, .high = a->mem.bytes, .pair = PTX_NONE};
    return a->root.kind != ROOTS_OWN && a->root.kind != ROOTS_PARAM;
}

// Sets k->ok if the address in k->t is inside.
static void inside_alone(struct check_func *k, uint32_t at, const struct check_range *alone)
{
    struct ptx_operand base = bounds(k, at, alone, k->t);
    BEFORE(k, at, "sub.u64 %0, %1, %2;\nsetp.lt.u64 %3, %0, %4;", edit_reg(k->root), edit_reg(k->t), base,
           edit_reg(k->ok), edit_reg(k->limit));
}

void check_address(struct check_func *k, uint32_t at, const struct ptx_operand *addr)
{
    if (addr->sub == PTX_BASE_REG && check_is_narrow(k, addr->id))
        BEFORE(k, at, "add.s32 %0, %1, %2;\ncvt.u64.u32 %3, %0;", edit_reg(k->narrow), edit_reg(addr->id),
               edit_imm(addr->value), edit_reg(k->t));
    else if (addr->sub == PTX_BASE_REG)
        BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(k->t), edit_reg(addr->id), edit_imm(addr->value));
    else if (addr->sub == PTX_BASE_SYM)
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_sym_at(addr->id, addr->value));
    else
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(k->t), edit_imm(addr->value));
}

// Returns whether an instruction reads a register that it writes.
static bool reads_own(const struct check_func *k, uint32_t stmt)
{
    struct regs_list list = regs_at(k->reach->regs, stmt);
    for (uint32_t i = 0; i < list.n; i++)
        for (uint32_t j = 0; j < list.n && list.at[i].reads; j++)
            if (list.at[j].writes && list.at[j].reg == list.at[i].reg)
                return true;
    return false;
}

// The code has no branch: it is compiled for each access of each kernel, and the time that this takes grows
// with the number of blocks.
static void slow_access(struct check_func *k, uint32_t at, const struct check_access *a)
{
    const struct ptx_stmt *s = &k->f->stmts[a->stmt];
    const struct check_bounds *b = check_bounds_of(k, a->root);
    int64_t performed = (int64_t)KCHECK_WHAT(KCHECK_SITE(k->k->tag, a->site), a->mem.bytes, KCHECK_INSIDE);
    struct check_range alone;
    bool shadow = check_by_shadow(k, a->root), known = !shadow && own_range(a, &alone);
    check_address(k, at, a->mem.addr);
    if (known)
        inside_alone(k, at, &alone);
    check_prepare(k, at, a, known);
    if (shadow) {
        check_shadow_access(k, at, k->t, a->mem.bytes, (struct ptx_operand){.kind = PTX_SINK}, k->bad, false);
        BEFORE(k, at, "@!%0 mov.u64 %1, %2;", edit_reg(k->bad), edit_reg(k->what), edit_imm(performed));
    }
    // Outside of global memory, what has no bounds is performed; KCHECK_ACCESS knows nothing of it.
    if (b && !check_is_global((enum ptx_space)a->mem.space))
        BEFORE(k, at, "setp.eq.u64 %0, %1, 0;\n@%0 mov.u64 %2, %3;", edit_reg(k->bad), edit_reg(b->size),
               edit_reg(k->what), edit_imm(performed));
    if (s->guard != PTX_NONE)
        BEFORE(k, at, "@!%0 mov.u64 %1, %2;", edit_guard(s), edit_reg(k->what), edit_imm(performed));
    check_call(k, at, a->stmt);
    if (s->guard == PTX_NONE)
        BEFORE(k, at, "not.pred %0, %1;", edit_reg(k->ok), edit_reg(k->bad));
    else
        BEFORE(k, at, "setp.eq.and.u32 %0, %1, %2, %3;", edit_reg(k->ok), edit_reg(k->verdict),
               edit_imm(KCHECK_PERFORM), edit_guard(s));
    // What is written on a condition would be alive before, in a register.
    check_clear(k, at, s, s->guard == PTX_NONE && !reads_own(k, a->stmt) ? PTX_NONE : k->bad);
    edit_copy_guarded(k->k->c->edit, at, a->stmt, k->ok);
}

static void emit_slow(struct check_func *k, const struct check_segment *g)
{
    struct edit *e = k->k->c->edit;
    uint32_t end = g->end, next = 0, loc = g->first;
    edit_place_label(e, end, g->slow);
    while (loc > 0 && k->f->stmts[loc - 1].kind != PTX_LOC)
        loc--;
    if (loc > 0)  // the line that the segment starts in
        edit_copy_stmt(e, end, loc - 1);
    for (uint32_t i = g->first; i <= g->last; i++) {
        const struct ptx_stmt *s = &k->f->stmts[i];
        bool access = next < g->naccesses && k->accesses.items[g->first_access + next].stmt == i;
        if (access)
            slow_access(k, end, &k->accesses.items[g->first_access + next++]);
        else if (s->kind == PTX_INSN || s->kind == PTX_LOC)
            edit_copy_stmt(e, end, i);
        if (s->kind == PTX_INSN)
            check_bounds_after(k, i, EDIT_BEFORE, end);
    }
    BEFORE(k, end, "bra %0;", edit_sym(g->back));
}

// A label can be named only inside the scope that it is in: slow code is at the end of the scope.
static void place_slow(struct check_func *k, const struct check_segment *g)
{
    struct edit *e = k->k->c->edit;
    uint32_t past = 0;
    if (g->end < k->f->nstmts) {
        past = edit_new_label(e);
        BEFORE(k, g->end, "bra %0;", edit_sym(past));
    }
    emit_slow(k, g);
    if (g->end < k->f->nstmts)
        edit_place_label(e, g->end, past);
}

// --- all ---------------------------------------------------------------------------------------------------

static void new_registers(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    uint32_t *wide[] = {&k->t,    &k->base, &k->limit, &k->size,    &k->root,
                        &k->what, &k->word, &k->first, &k->at_frame};
    uint32_t *narrow[] = {&k->verdict, &k->slot, &k->x, &k->narrow, &k->narrow_base, &k->narrow_limit},
             *bits[] = {&k->bad, &k->other, &k->ok, &k->any};
    for (unsigned i = 0; i < sizeof wide / sizeof *wide; i++)
        *wide[i] = edit_new_reg(e, PTX_U64);
    for (unsigned i = 0; i < sizeof narrow / sizeof *narrow; i++)
        *narrow[i] = edit_new_reg(e, PTX_U32);
    for (unsigned i = 0; i < sizeof bits / sizeof *bits; i++)
        *bits[i] = edit_new_reg(e, PTX_PRED);
}

static void emit_block(struct check_func *k, uint32_t block, uint32_t *segment, size_t *pass, size_t *whole)
{
    check_bounds_block(k, block);
    for (uint32_t i = k->cfg->blocks[block].first; i < k->cfg->blocks[block].last; i++) {
        if (*segment < k->segments.len && k->segments.items[*segment].first == i)
            emit_fast(k, (*segment)++);
        if (*pass < k->passes.len && k->passes.items[*pass].call == i)
            *pass = check_emit_passes(k, *pass);
        if (*whole < k->wholes.len && k->wholes.items[*whole].stmt == i)
            check_emit_whole(k, &k->wholes.items[(*whole)++]);
        if (k->f->stmts[i].kind == PTX_INSN)
            check_bounds_after(k, i, EDIT_AFTER, i);
    }
}

void check_emit(struct check_func *k)
{
    uint32_t segment = 0;
    size_t pass = 0, whole = 0;
    bool enters = check_enters(k);
    if (!k->segments.len && !k->passes.len && !k->wholes.len && !k->frees.len && !enters)
        return;
    new_registers(k);
    check_save_open(k);
    if (enters)
        edit_entry(k->k->c->edit, "ld.param.u64 %0, [%1];\ncall %2, (%0);", edit_reg(k->size),
                   edit_sym_at(k->hidden, offsetof(struct kcheck_hidden, launch)), edit_sym(k->k->enter));
    check_bounds_registers(k);
    check_bounds_entry(k);
    if (k->k->shadow.shift)
        check_shadow_entry(k);
    for (size_t i = 0; i < k->frees.len; i++)
        check_emit_free(k, &k->frees.items[i]);
    for (uint32_t b = 0; b < k->cfg->nblocks && !edit_error(k->k->c->edit); b++)
        emit_block(k, b, &segment, &pass, &whole);
    if (edit_falls_off(k->f))
        BEFORE(k, k->f->nstmts, "ret;");
    for (size_t i = 0; i < k->segments.len && !edit_error(k->k->c->edit); i++)
        place_slow(k, &k->segments.items[i]);
    check_place_wholes(k);
}
