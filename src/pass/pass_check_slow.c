// SPDX-License-Identifier: MIT
// Slow copies: code that asks KCHECK_ACCESS about each access, where a quick comparison has failed.
//
// A segment in a loop without another one inside goes to a copy of the whole loop, and stays there until the
// loop ends. So the loop itself is left and never entered again from the side: the compiler needs no place
// where lanes meet behind each segment, and moves code past it. Any other segment has a copy of its own,
// which leads back behind it.
#include "pass/pass_check_state.h"

#define BEFORE(k, at, text, ...) edit_before((k)->k->c->edit, (at), (text), ##__VA_ARGS__)

// --- an access ---------------------------------------------------------------------------------------------

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
    struct ptx_operand base = check_range_bounds(k, at, alone, k->t);
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
    check_save_need(k, at, s->guard);
    if (a->mem.addr->sub == PTX_BASE_REG)
        check_save_need(k, at, a->mem.addr->id);
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
    check_save_stmt(k, at, a->stmt);
    // What is written on a condition would be alive before, in a register.
    check_clear(k, at, s, s->guard == PTX_NONE && !reads_own(k, a->stmt) ? PTX_NONE : k->bad);
    edit_copy_guarded(k->k->c->edit, at, a->stmt, k->ok);
}

// --- a segment ---------------------------------------------------------------------------------------------

// Copies the line that a statement is in.
static void copy_line(struct check_func *k, uint32_t end, uint32_t stmt)
{
    while (stmt > 0 && k->f->stmts[stmt - 1].kind != PTX_LOC)
        stmt--;
    if (stmt > 0)
        edit_copy_stmt(k->k->c->edit, end, stmt - 1);
}

static void copy_stmt(struct check_func *k, uint32_t end, uint32_t stmt)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    if (s->kind == PTX_INSN || s->kind == PTX_LOC)
        edit_copy_stmt(k->k->c->edit, end, stmt);
}

// Copies statement `stmt`, which is in the segment; *next is the number of the segment's next access.
static void copy_checked(struct check_func *k, const struct check_segment *g, uint32_t stmt, uint32_t *next)
{
    bool access = *next < g->naccesses && k->accesses.items[g->first_access + *next].stmt == stmt;
    if (stmt == g->first)
        check_save_begin(k, g);
    if (!access && k->f->stmts[stmt].kind == PTX_INSN)
        check_save_stmt(k, g->end, stmt);
    if (access)
        slow_access(k, g->end, &k->accesses.items[g->first_access + (*next)++]);
    else
        copy_stmt(k, g->end, stmt);
    if (k->f->stmts[stmt].kind == PTX_INSN)
        check_bounds_after(k, stmt, EDIT_BEFORE, g->end);
    if (stmt == g->last)
        check_save_end(k, g->end, g);
}

static void emit_segment(struct check_func *k, const struct check_segment *g)
{
    uint32_t next = 0;
    edit_place_label(k->k->c->edit, g->end, g->slow);
    copy_line(k, g->end, g->first);
    for (uint32_t i = g->first; i <= g->last; i++)
        copy_checked(k, g, i, &next);
    BEFORE(k, g->end, "bra %0;", edit_sym(g->back));
}

// --- a loop ------------------------------------------------------------------------------------------------

// Returns where control goes to from the loop's copy: the block itself, unless it has a copy too.
static uint32_t target(const struct check_func *k, const struct check_loop *loop, uint32_t block,
                       uint32_t sym)
{
    const struct check_copied *c = &k->copied[block];
    return c->loop == loop->number ? c->slow : sym;
}

static void copy_branch(struct check_func *k, const struct check_loop *loop, uint32_t stmt)
{
    const struct ptx_stmt *s = &k->f->stmts[stmt];
    uint32_t sym = ptx_operand(s, 0)->id;
    uint32_t to = target(k, loop, k->cfg->block_of[ptx_sym(k->k->c->m, sym)->stmt], sym);
    if (s->guard == PTX_NONE)
        BEFORE(k, loop->end, "bra %0;", edit_sym(to));
    else
        BEFORE(k, loop->end, "@%0 bra %1;", edit_guard(s), edit_sym(to));
}

static void copy_block(struct check_func *k, const struct check_loop *loop, uint32_t block)
{
    uint32_t first = k->cfg->blocks[block].first, next = 0;
    const struct check_segment *g = &k->segments.items[check_first_segment(k, first)],
                               *end = k->segments.items + k->segments.len;
    edit_place_label(k->k->c->edit, loop->end, k->copied[block].slow);
    check_bounds_block(k, block, loop->end);
    copy_line(k, loop->end, first);
    for (uint32_t i = first; i < k->cfg->blocks[block].last; i++) {
        if (g < end && g->first == i)
            edit_place_label(k->k->c->edit, loop->end, g->slow);
        if (g < end && i >= g->first) {
            copy_checked(k, g, i, &next);
        } else if (check_is_bra(&k->f->stmts[i])) {
            copy_branch(k, loop, i);
        } else {
            copy_stmt(k, loop->end, i);
            if (k->f->stmts[i].kind == PTX_INSN)
                check_bounds_after(k, i, EDIT_BEFORE, loop->end);
        }
        if (g < end && i == g->last) {
            g++;
            next = 0;
        }
    }
}

static void emit_loop(struct check_func *k, const struct check_loop *loop)
{
    for (uint32_t i = 0; i < loop->nblocks; i++) {
        uint32_t block = loop->blocks[i], after = block + 1;
        copy_block(k, loop, block);
        if (check_falls(k, block) && (i + 1 == loop->nblocks || loop->blocks[i + 1] != after))
            BEFORE(k, loop->end, "bra %0;", edit_sym(target(k, loop, after, k->copied[after].begin)));
    }
}

// --- all ---------------------------------------------------------------------------------------------------

static void place(struct check_func *k, const struct check_segment *g)
{
    if (g->loop == PTX_NONE) {
        emit_segment(k, g);
    } else if (!k->loops.items[g->loop].emitted) {
        k->loops.items[g->loop].emitted = true;
        emit_loop(k, &k->loops.items[g->loop]);
    }
}

// A label can be named only inside the scope that it is in: slow code is at the end of the scope.
void check_place_slow(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    for (size_t i = 0; i < k->segments.len && !edit_error(e); i++) {
        const struct check_segment *g = &k->segments.items[i];
        uint32_t past = g->end < k->f->nstmts ? edit_new_label(e) : PTX_NONE;
        if (past != PTX_NONE)
            BEFORE(k, g->end, "bra %0;", edit_sym(past));
        place(k, g);
        if (past != PTX_NONE)
            edit_place_label(e, g->end, past);
    }
}
