// SPDX-License-Identifier: MIT
// Local memory: what leaves it would end the context, and what stays in it but leaves its variable may change
// the address to which a function returns. An access by a pointer that was made from a variable of the same
// function is compared with that variable. Any other one by an address in the local space must lie between
// the function's own variables and the end of the window of local addresses, where the thread's stack begins
// (KFENCE_WINDOW). A thread that would do otherwise, or make an access that is not aligned, is recorded, and
// ends.
//
// Generic addresses of local memory that belong to another function's variables are compared by FENCE_FIND.
#include <errno.h>

#include "flow/multiples.h"
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

// --- the plan ----------------------------------------------------------------------------------------------

static uint32_t find_decl(const struct ptx_func *f, uint32_t sym)
{
    uint32_t depth = 0;
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        depth += s->kind == PTX_OPEN;
        depth -= s->kind == PTX_CLOSE && depth;
        if (s->kind == PTX_DECL && !depth && s->var->sym == sym && s->var->space == PTX_SPACE_LOCAL)
            return i;
    }
    return PTX_NONE;
}

struct planning {
    struct check_func site;
    const struct roots *roots;  // NULL: unknown
    struct multiples multiples;
    fence_locals *to;
};

// Returns whether the access may be one of local memory that is compared here.
static bool is_candidate(const struct ptx_mem *mem)
{
    enum ptx_space space = ptx_space_is((enum ptx_space)mem->space);
    return mem->addr->kind == PTX_ADDR && (mem->reads || mem->writes) && mem->extent == PTX_EXTENT_PLAIN &&
           (space == PTX_SPACE_LOCAL || space == PTX_SPACE_GENERIC);
}

// Returns whether the address is certain to be aligned.
static bool is_aligned(const struct planning *p, uint32_t at, const struct ptx_mem *mem, struct roots_of root)
{
    const struct ptx_module *m = p->site.k->c->m;
    const struct ptx_operand *addr = mem->addr;
    uint32_t align = fence_alignment(mem), v = REACH_NONE;
    unsigned power = (unsigned)__builtin_ctz(align);
    bool variable = check_is_variable(root) && multiples_of_variable(ptx_sym(m, root.id)->var) >= power;
    if (align == 1 || addr->value & ((int64_t)align - 1))
        return align == 1;
    if (addr->sub == PTX_BASE_SYM)
        return variable;
    if (addr->sub == PTX_BASE_REG && p->roots)
        v = reach_read(p->roots->reach, at, regs_index(p->roots->reach->regs, addr->id));
    return v != REACH_NONE && (p->multiples.own[v] >= power || (variable && p->multiples.beyond[v] >= power));
}

static int plan_row(struct planning *p, uint32_t at, unsigned row, const struct ptx_mem *mem)
{
    const struct ptx_module *m = p->site.k->c->m;
    bool local = ptx_space_is((enum ptx_space)mem->space) == PTX_SPACE_LOCAL;
    struct check_access a = {.stmt = at, .mem = *mem, .root = {.kind = ROOTS_OWN}};
    if (mem->addr->sub == PTX_BASE_SYM)
        a.root = (struct roots_of){.kind = ROOTS_VARIABLE, .id = mem->addr->id};
    else if (p->roots)
        a.root = roots_address(p->roots, at, mem->addr);
    bool fits =
        a.root.kind == (local ? ROOTS_VARIABLE : ROOTS_GENERIC) && roots_space(m, a.root) == PTX_SPACE_LOCAL;
    struct fence_local l = {.stmt = at, .row = (uint8_t)row, .decl = PTX_NONE};
    if (fits)
        l.decl = find_decl(p->site.f, a.root.id);
    if (l.decl == PTX_NONE && !local)
        return 0;
    l.inside = fits && p->site.reach && check_is_inside(&p->site, &a);
    l.aligned = is_aligned(p, at, mem, a.root);
    return vec_push(p->to, l);
}

int fence_find_locals(struct fencing *k, uint32_t index, fence_locals *to)
{
    struct pass_context *c = k->all.c;
    struct flow *flow = pass_flow(c, index);
    struct planning p = {.to = to};
    struct arena arena;
    arena_init(&arena, 0);
    p.site = (struct check_func){.k = &k->all, .f = c->funcs[index]};
    int err = flow_roots(flow, &p.roots);
    if (!err)
        err = flow_reaching(flow, &p.site.reach);
    if (!err)
        err = multiples_build(p.roots, &arena, &p.multiples);
    if (err == -E2BIG) {
        p.roots = NULL;
        p.site.reach = NULL;
        err = 0;
    }
    for (uint32_t i = 0; i < p.site.f->nstmts && !err; i++) {
        struct ptx_mem mem[PTX_MAX_MEM];
        const struct ptx_stmt *s = &p.site.f->stmts[i];
        unsigned n = s->kind == PTX_INSN ? ptx_stmt_mem(p.site.f, s, mem) : 0;
        for (unsigned row = 0; row < n && !err; row++)
            if (is_candidate(&mem[row]))
                err = plan_row(&p, i, row, &mem[row]);
    }
    arena_free(&arena);
    return err;
}

// --- code --------------------------------------------------------------------------------------------------

void fence_load_address(struct fence_func *k, uint32_t at, const struct ptx_operand *addr, uint32_t to)
{
    if (addr->sub == PTX_BASE_SYM)
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(to), edit_sym_at(addr->id, addr->value));
    else if (addr->sub == PTX_BASE_NONE)
        BEFORE(k, at, "mov.u64 %0, %1;", edit_reg(to), edit_imm(addr->value));
    else if (ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, addr->id)->type) == 64)
        BEFORE(k, at, "add.s64 %0, %1, %2;", edit_reg(to), edit_reg(addr->id), edit_imm(addr->value));
    else
        BEFORE(k, at, "add.s32 %1, %2, %3;\ncvt.u64.u32 %0, %1;", edit_reg(to), edit_reg(k->low),
               edit_reg(addr->id), edit_imm((int32_t)addr->value));
}

// Sets k->bad if the address is not inside the variable. Its base is left in k->what.
static void compare_variable(struct fence_func *k, uint32_t at, const struct ptx_var *v, bool generic,
                             uint32_t width, uint32_t to)
{
    uint64_t size = ptx_var_size(v);
    BEFORE(k, at, generic ? "cvta.local.u64 %0, %1;" : "mov.u64 %0, %1;", edit_reg(k->what),
           edit_sym(v->sym));
    BEFORE(k, at, "sub.s64 %0, %1, %0;", edit_reg(k->what), edit_reg(to));
    if (size < width)
        BEFORE(k, at, "setp.eq.u64 %0, %1, %1;", edit_reg(k->bad), edit_reg(k->what));
    else
        BEFORE(k, at, "setp.gt.u64 %0, %1, %2;", edit_reg(k->bad), edit_reg(k->what),
               edit_imm((int64_t)(size - width)));
}

// Sets k->low and k->high to the bytes of the stack that the function may access.
static void load_stack(struct fence_func *k, uint32_t at)
{
    uint32_t depth = 0;
    if (k->frame == PTX_NONE)
        k->frame = edit_new_local(k->k->all.c->edit, FENCE_FRAME);
    BEFORE(k, at, "mov.u32 %0, %1;\nadd.u32 %2, %0, %3;", edit_reg(k->low), edit_sym(k->frame),
           edit_reg(k->high), edit_imm(FENCE_FRAME));
    for (uint32_t i = 0; i < k->f->nstmts; i++) {
        const struct ptx_stmt *s = &k->f->stmts[i];
        depth += s->kind == PTX_OPEN;
        depth -= s->kind == PTX_CLOSE && depth;
        if (s->kind != PTX_DECL || depth || s->var->space != PTX_SPACE_LOCAL)
            continue;
        BEFORE(k, at, "mov.u32 %0, %1;\nmin.u32 %2, %2, %0;\nadd.u32 %0, %0, %3;\nmax.u32 %4, %4, %0;",
               edit_reg(k->bits), edit_sym(s->var->sym), edit_reg(k->low),
               edit_imm((int64_t)ptx_var_size(s->var)), edit_reg(k->high));
    }
    BEFORE(k, at, "setp.lt.u32 %0, %1, %3;\nselp.b32 %1, 0, %1, %0;\nselp.b32 %2, %2, %4, %0;",
           edit_reg(k->bad), edit_reg(k->low), edit_reg(k->high), edit_imm(KFENCE_WINDOW / 2),
           edit_imm(KFENCE_WINDOW));
}

// Sets k->bad if the address is not on the stack.
static void compare_stack(struct fence_func *k, uint32_t at, uint32_t width, uint32_t to)
{
    load_stack(k, at);
    BEFORE(k, at,
           "sub.u32 %0, %0, %1;\nsub.u32 %0, %0, %2;\ncvt.u64.u32 %3, %1;\nsub.s64 %4, %4, %3;\n"
           "cvt.u64.u32 %3, %0;\nsetp.gt.u64 %5, %4, %3;\ncvt.u64.u32 %3, %1;\nadd.s64 %4, %4, %3;",
           edit_reg(k->high), edit_reg(k->low), edit_imm(width), edit_reg(k->what), edit_reg(to),
           edit_reg(k->bad));
}

static int emit(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, const struct fence_local *l)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t site, align = fence_alignment(mem), width = mem->bytes ? mem->bytes : 1, to = k->to[0];
    int err = fence_site(k, at, &site);
    uint32_t inside = fence_unless_guarded(k, at), aligned = edit_new_label(e);
    uint64_t what = KFENCE_WHAT(site, width, fence_flags(mem, align));
    fence_load_address(k, at, mem->addr, to);
    if (!l->aligned) {
        BEFORE(k, at, "cvt.u32.u64 %0, %1;\nand.b32 %0, %0, %2;\nsetp.eq.b32 %3, %0, 0;\n@%3 bra %4;",
               edit_reg(k->low), edit_reg(to), edit_imm((int64_t)align - 1), edit_reg(k->bad),
               edit_sym(aligned));
        fence_end(k, at, what, KFENCE_MISALIGNED, to);
    }
    edit_place_label(e, at, aligned);
    if (!l->inside && l->decl == PTX_NONE)
        compare_stack(k, at, width, to);
    else if (!l->inside)
        compare_variable(k, at, k->f->stmts[l->decl].var,
                         ptx_space_is((enum ptx_space)mem->space) == PTX_SPACE_GENERIC, width, to);
    if (!l->inside) {
        BEFORE(k, at, "@!%0 bra %1;", edit_reg(k->bad), edit_sym(inside));
        fence_end(k, at, what, KFENCE_OUT_OF_LOCAL, to);
    }
    edit_place_label(e, at, inside);
    return err;
}

bool fence_local(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row, int *err)
{
    const fence_locals *all = k->locals;
    while (k->next_local < all->len &&
           (all->items[k->next_local].stmt < at ||
            (all->items[k->next_local].stmt == at && all->items[k->next_local].row < row)))
        k->next_local++;
    const struct fence_local *l = k->next_local < all->len ? &all->items[k->next_local] : NULL;
    if (!l || l->stmt != at || l->row != row)
        return false;
    if (!l->inside || !l->aligned)
        *err = emit(k, at, mem, l);
    return true;
}
