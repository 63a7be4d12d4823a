// SPDX-License-Identifier: MIT
// The variant of a kernel in which accesses are masked: KFENCE_PREFIX NAME. It is launched where all
// parameters that addresses of global memory are computed from point into the partition; a right access by
// one of them stays in its buffer, so that the mask changes nothing. Addresses that are made from a
// variable's are compared with this variable (pass_fence_variable.c). Other accesses of global memory, by
// pointers from memory, are compared as in the kernel itself.
//
//   a register notes in which bits the upper half of the pointer is not that of the partition's base; where
//     the pointer can only have left to the sinks around the partition, that is all (pass_fence_near.c)
//   the upper half becomes one of the partition: its own, if it is one
//   the lower half is made a multiple of the width, if it need not be one; a register notes a change
//   where the thread ends, it leaves a word if something is noted (kfence.h), and calls nothing
//
// No access waits for a note. Addresses in shared memory become the nearest ones that the block has, and a
// register notes a change. The pointer's own register is changed where that spares masks for other accesses.
// Fixed places behind the start of a variable have none, and are compared with the end alone.
#include <errno.h>
#include <string.h>

#include "flow/grid_words.h"
#include "flow/multiples.h"
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

// --- the plan ----------------------------------------------------------------------------------------------

static bool uses_environment(const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        for (uint32_t k = 0; f->stmts[i].kind == PTX_INSN && k < f->stmts[i].nslots; k++) {
            const struct ptx_operand *o = &f->stmts[i].operands[k];
            if (o->kind == PTX_SREG && o->id >= PTX_SREG_ENVREG0 && o->id <= PTX_SREG_ENVREG2)
                return true;
        }
    return false;
}

struct planning {
    struct fencing *k;
    const struct ptx_func *f;
    const struct roots *roots;
    struct multiples multiples;
    fence_plan *plan;
};

// Returns the power of two that a value is certain to be a multiple of, also by what its root is one of.
static uint8_t known_of(const struct planning *p, uint32_t v, struct roots_of root)
{
    bool variable = check_is_variable(root);
    unsigned of = variable ? multiples_of_variable(ptx_sym(p->k->all.c->m, root.id)->var) : 0;
    unsigned beyond = p->multiples.beyond[v] < of ? p->multiples.beyond[v] : of;
    return p->multiples.own[v] > beyond ? p->multiples.own[v] : (uint8_t)beyond;
}

// Sets what the address must be a multiple of: 1 if it certainly is one, or if the host asks it of the
// parameter.
static void set_align(const struct planning *p, struct fence_masked *m, const struct ptx_mem *mem,
                      struct roots_of root)
{
    const struct reach *reach = p->roots->reach;
    uint32_t align = fence_alignment(mem), v = reach_read(reach, m->stmt, regs_index(reach->regs, m->reg));
    unsigned power = (unsigned)__builtin_ctz(align);
    bool variable = check_is_variable(root);
    unsigned own_power = variable ? multiples_of_variable(ptx_sym(p->k->all.c->m, root.id)->var) : 0;
    m->align = align;
    m->asked = 1;
    m->known = v == REACH_NONE ? 0 : known_of(p, v, root);
    if (v == REACH_NONE || mem->addr->value & ((int64_t)align - 1))
        return;
    bool follows = p->multiples.beyond[v] >= power;
    bool param = fence_is_of_param(m);
    bool aligned = !param && variable && own_power >= power;
    if (p->multiples.own[v] >= power || (follows && (param || aligned)))
        m->align = 1;
    if (m->align == 1 && p->multiples.own[v] < power && param)
        m->asked = align;
}

// Returns whether the access is of shared memory at a fixed place behind the start of a variable, such as the
// array without a size that has the launch's dynamic bytes, and aligned for certain; describes it then.
static bool is_fixed(const struct planning *p, uint32_t at, unsigned row, const struct ptx_mem *mem,
                     struct fence_masked *m)
{
    const struct ptx_operand *addr = mem->addr;
    const struct ptx_sym *s =
        addr->sub == PTX_BASE_SYM ? ptx_sym_behind_alias(p->k->all.c->m, addr->id) : NULL;
    uint32_t align = fence_alignment(mem);
    if (!s || s->kind != PTX_SYM_VAR || ptx_space_is((enum ptx_space)s->var->space) != PTX_SPACE_SHARED ||
        ptx_space_is((enum ptx_space)mem->space) != PTX_SPACE_SHARED || mem->extent != PTX_EXTENT_PLAIN ||
        !mem->bytes || mem->bytes > FENCE_MOST_SHARED || addr->value < 0 || addr->value >= KFENCE_OFFSET ||
        addr->value & ((int64_t)align - 1) || 1u << multiples_of_variable(s->var) < align)
        return false;
    *m = (struct fence_masked){.stmt = at,
                               .row = row,
                               .reg = PTX_NONE,
                               .sym = addr->id,
                               .start = (int32_t)addr->value,
                               .width = (int32_t)mem->bytes,
                               .align = 1,
                               .asked = 1,
                               .shared = true,
                               .variable = PTX_NONE};
    return true;
}

// Returns whether a register is read by an AND, as the lower half of a pointer is to see what it is aligned
// to.
static bool is_masked_off(const struct ptx_func *f, uint32_t reg)
{
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN || s->form->id != PTX_OP_AND)
            continue;
        for (unsigned n = 1; n < 3; n++)
            if (ptx_operand(s, n) && ptx_operand(s, n)->kind == PTX_REG && ptx_operand(s, n)->id == reg)
                return true;
    }
    return false;
}

// Returns whether the pointer at an offset of a parameter that is a struct may be a number instead: the
// kernel also takes its lower half, as CUB does of an initial value that is given or loaded. Such a launch
// could not run a variant that has the host look at the pointer.
static bool is_number_too(const struct planning *p, uint32_t offset)
{
    const struct ptx_func *f = p->f;
    const struct reach *reach = p->roots->reach;
    bool in_struct = false;
    for (uint32_t i = 0; i < f->nparams; i++) {
        uint64_t at = 0, size = ptx_var_size(&f->params[i]);
        roots_param_offset(f, f->params[i].sym, &at);
        in_struct |= size > sizeof(uint64_t) && offset >= at && offset < at + size;
    }
    for (uint32_t i = 0; i < f->nstmts && in_struct; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN || s->form->id != PTX_OP_CVT)
            continue;
        const struct ptx_operand *to = ptx_operand(s, 0), *from = ptx_operand(s, 1);
        if (!to || to->kind != PTX_REG || !from || from->kind != PTX_REG ||
            ptx_type_bits((enum ptx_type)ptx_reg_var(f, to->id)->type) != 32)
            continue;
        uint32_t v = reach_read(reach, i, regs_index(reach->regs, from->id));
        struct roots_of root = v == REACH_NONE ? (struct roots_of){ROOTS_OWN, 0} : p->roots->of[v];
        bool loads = v != REACH_NONE && reach->value.items[v].kind == REACH_DEF &&
                     f->stmts[reach->value.items[v].place].form->id == PTX_OP_LD;
        if (loads && root.kind == ROOTS_PARAM && root.id == offset && !is_masked_off(f, to->id))
            return true;
    }
    return false;
}

enum { MOST_BACK = 200 };  // statements in which a register's sum is looked for

static bool writes(const struct planning *p, uint32_t at, uint32_t reg)
{
    const struct regs *regs = p->roots->reach->regs;
    struct regs_list list =
        p->f->stmts[at].kind == PTX_INSN ? regs_at(regs, at) : (struct regs_list){NULL, 0};
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].writes && regs->reg[list.at[i].reg] == reg)
            return true;
    return false;
}

// An address in shared memory that is the sum of a register and a constant, made in the same block: the
// access is by that register, as others may be. It must be aligned for certain.
static void use_summand(const struct planning *p, struct fence_masked *m)
{
    const struct reach *reach = p->roots->reach;
    uint32_t first = reach->cfg->blocks[reach->cfg->block_of[m->stmt]].first, at = m->stmt;
    while (at > first && m->stmt - at < MOST_BACK && !writes(p, at - 1, m->reg))
        at--;
    if (at == first || m->stmt - at >= MOST_BACK || m->align > 1)
        return;
    const struct ptx_stmt *s = &p->f->stmts[--at];
    const struct ptx_operand *to = ptx_operand(s, 0), *from = ptx_operand(s, 1), *by = ptx_operand(s, 2);
    if (s->form->id != PTX_OP_ADD || s->guard != PTX_NONE || s->form->odd || to->kind != PTX_REG ||
        ptx_form_has(s->form, PTX_MOD_SAT) || from->kind != PTX_REG || from->sub != PTX_SEL_NONE ||
        from->id == m->reg || by->kind != PTX_IMM || by->value >= KFENCE_OFFSET ||
        by->value <= -KFENCE_OFFSET ||
        ptx_type_bits((enum ptx_type)ptx_reg_var(p->f, from->id)->type) != 32 ||
        ptx_type_bits((enum ptx_type)s->form->types[0]) != 32)
        return;
    int64_t start = m->start + by->value;
    uint32_t v = reach_read(reach, at, regs_index(reach->regs, from->id));
    for (uint32_t i = at + 1; i < m->stmt; i++)
        if (writes(p, i, from->id))
            return;
    if (v == REACH_NONE || start >= KFENCE_OFFSET || start <= -KFENCE_OFFSET)
        return;
    m->reg = from->id;
    m->start = (int32_t)start;
    m->known = known_of(p, v, p->roots->of[v]);
}

// Returns whether the access only needs a mask, and describes it.
static bool is_masked(const struct planning *p, uint32_t at, unsigned row, const struct ptx_mem *mem,
                      struct fence_masked *m)
{
    const struct fence_func in = {.k = p->k};
    const struct ptx_operand *addr = mem->addr;
    bool rows = mem->extent == PTX_EXTENT_ROWS;
    if (fence_wants(&in, mem) && is_fixed(p, at, row, mem, m))
        return true;
    if (!fence_wants(&in, mem) || addr->sub != PTX_BASE_REG || addr->value >= KFENCE_OFFSET ||
        addr->value <= -KFENCE_OFFSET || (mem->extent != PTX_EXTENT_PLAIN && !rows))
        return false;
    unsigned bits = ptx_type_bits((enum ptx_type)ptx_reg_var(p->f, addr->id)->type);
    struct roots_of root = roots_address(p->roots, at, addr);
    bool shared = ptx_space_is((enum ptx_space)mem->space) == PTX_SPACE_SHARED;
    uint32_t variable = fence_variable_of(p->roots, root, mem);
    bool generic = bits == 64 && fence_is_generic_shared(p->roots, root, mem);
    bool rooted = root.kind == ROOTS_PARAM || variable != PTX_NONE || generic;
    if (shared ? bits != 32 || mem->bytes > FENCE_MOST_SHARED
               : bits != 64 || !rooted || rows || fence_is_shared(mem))
        return false;
    if (root.kind == ROOTS_PARAM && !shared && is_number_too(p, root.id))
        return false;
    *m = (struct fence_masked){.stmt = at,
                               .row = row,
                               .reg = addr->id,
                               .start = (int32_t)addr->value,
                               .width = mem->bytes ? (int32_t)mem->bytes : 1,
                               .offset = root.id,
                               .shared = shared,
                               .generic = generic,
                               .variable = variable,
                               .lanes = rows && mem->lanes < 32 ? mem->lanes : 0};
    set_align(p, m, mem, root);
    if (shared && !m->lanes)
        use_summand(p, m);
    return variable == PTX_NONE || (m->align == 1 && fence_variable_power(p->k->all.c->m, variable) >=
                                                         (unsigned)__builtin_ctz(fence_alignment(mem)));
}

static int plan_stmt(struct planning *p, uint32_t at)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = fence_is_copy(&p->f->stmts[at]) ? 0 : ptx_stmt_mem(p->f, &p->f->stmts[at], mem);
    int err = 0;
    for (unsigned i = 0; i < n && !err; i++) {
        struct fence_masked m;
        if (is_masked(p, at, i, &mem[i], &m))
            err = vec_push(p->plan, m);
    }
    return err;
}

bool fence_has_row(const fence_rows *all, uint32_t at, unsigned row)
{
    size_t low = 0, high = all->len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->items[middle].stmt < at)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < all->len && all->items[low].stmt == at; low++)
        if (all->items[low].row == row)
            return true;
    return false;
}

int fence_find_grid_words(struct fencing *k, uint32_t index, fence_rows *to)
{
    const struct ptx_func *f = k->all.c->funcs[index];
    const struct reach *reach;
    int err = f->is_entry && uses_environment(f) ? flow_reaching(pass_flow(k->all.c, index), &reach) : -E2BIG;
    if (err)
        return err == -E2BIG ? 0 : err;
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        struct ptx_mem mem[PTX_MAX_MEM];
        unsigned n = f->stmts[i].kind == PTX_INSN ? ptx_stmt_mem(f, &f->stmts[i], mem) : 0;
        for (unsigned row = 0; row < n && !err; row++)
            if (mem[row].addr->kind == PTX_ADDR && mem[row].extent == PTX_EXTENT_PLAIN &&
                grid_words_address(f, reach, i, mem[row].addr))
                err = vec_push(to, ((struct fence_row){i, (uint8_t)row}));
    }
    return err;
}

int fence_find_masked(struct fencing *k, uint32_t index, fence_plan *plan)
{
    struct pass_context *c = k->all.c;
    const struct ptx_func *f = c->funcs[index];
    struct planning p = {.k = k, .f = f, .plan = plan};
    struct arena arena;
    if (!f->is_entry || c->result->funcs[index].why != PASS_REWRITTEN)
        return 0;
    arena_init(&arena, 0);
    int err = flow_roots(pass_flow(c, index), &p.roots);
    if (!err)
        err = multiples_build(p.roots, &arena, &p.multiples);
    for (uint32_t i = 0; i < f->nstmts && !err; i++)
        if (f->stmts[i].kind == PTX_INSN)
            err = plan_stmt(&p, i);
    arena_free(&arena);
    if (!err && plan->len)
        err = fence_find_near(k, index, plan, NULL);
    // A kernel that is too large for the analysis has no variant.
    if (err == -E2BIG) {
        plan->len = 0;
        err = 0;
    }
    return err;
}

// Returns the pair of the parameter at an offset, a new one if there is none.
static struct pass_check_pair *pair_of(struct pass_check_variant *v, uint32_t offset, uint32_t span)
{
    for (uint32_t i = 0; i < v->npairs; i++)
        if (v->pairs[i].offset == offset && v->pairs[i].span == span)
            return &v->pairs[i];
    v->pairs[v->npairs] = (struct pass_check_pair){.offset = offset, .span = span, .align = 1};
    return &v->pairs[v->npairs++];
}

// Fills what a variant asks of parameters.
static int fill_variant(struct arena *arena, const fence_plan *plan, const fence_handles *handles,
                        bool cooperative, struct pass_check_variant *v)
{
    v->pairs = ARENA_ARRAY(arena, struct pass_check_pair, plan->len + handles->len + 2u);
    if (v->pairs && cooperative)
        pair_of(v, 0, PASS_CHECK_COOPERATIVE);
    for (size_t i = 0; v->pairs && i < handles->len; i++)
        pair_of(v, handles->items[i].offset,
                handles->items[i].surface ? PASS_CHECK_SURFACE : PASS_CHECK_TEXTURE);
    for (size_t i = 0; v->pairs && i < plan->len; i++) {
        if (!fence_is_of_param(&plan->items[i]))
            continue;
        struct pass_check_pair *pair = pair_of(v, plan->items[i].offset, 1);
        pair->align = plan->items[i].asked > pair->align ? plan->items[i].asked : pair->align;
    }
    return v->pairs ? 0 : -ENOMEM;
}

int fence_add_kernel(struct fencing *k, uint32_t index, const fence_plan *plan, const fence_plan *rest,
                     const struct pass_check_kernel *bare)
{
    struct pass_context *c = k->all.c;
    const struct ptx_func *f = c->funcs[index];
    struct arena *arena = &c->result->arena;
    struct pass_check_kernel kernel = *bare;
    kernel.name = c->result->funcs[index].name;
    kernel.nparams = f->nparams;
    kernel.params = ARENA_ARRAY(arena, struct pass_check_param, f->nparams + 1u);
    const fence_handles *handles = &k->handles[index];
    bool cooperative = k->grid_words[index].len;
    if (!kernel.params || fill_variant(arena, plan, handles, cooperative, &kernel.full) ||
        fill_variant(arena, rest, handles, cooperative, &kernel.rest))
        return -ENOMEM;
    for (uint32_t i = 0; i < f->nparams; i++) {
        uint64_t at = 0;
        roots_param_offset(f, f->params[i].sym, &at);
        kernel.params[i] = (struct pass_check_param){(uint32_t)at, (uint32_t)ptx_var_size(&f->params[i])};
    }
    return vec_push(&k->all.kernels, kernel);
}

// --- code --------------------------------------------------------------------------------------------------

// A text, and the same under a guard.
#define GUARDED(text) text, "@%3 " text

// Inserts a text that sets the note %0 if something is wrong with the register %1, given %2. Only threads
// that make the access set it.
static void note(struct fence_func *k, const struct fence_masked *m, enum fence_note which, const char *text,
                 const char *guarded, uint32_t reg, struct ptx_operand given)
{
    const struct ptx_stmt *s = &k->f->stmts[m->stmt];
    struct ptx_operand made = edit_reg(k->bad);
    bool all = s->guard == PTX_NONE && !m->lanes;
    if (m->lanes && s->guard == PTX_NONE)
        BEFORE(k, m->stmt, "mov.u32 %1, %laneid;\nsetp.lt.u32 %0, %1, %2;", made, edit_reg(k->narrow[1]),
               edit_imm(m->lanes));
    else if (m->lanes)
        BEFORE(k, m->stmt, "mov.u32 %1, %laneid;\nsetp.lt.and.u32 %0, %1, %2, %3;", made,
               edit_reg(k->narrow[1]), edit_imm(m->lanes), edit_guard(s));
    else if (!all)
        made = edit_guard(s);
    BEFORE(k, m->stmt, all ? text : guarded, edit_reg(k->noted[which]), edit_reg(reg), given, made);
}

// Notes the bits in which two registers differ: note | (a ^ b).
static void note_difference(struct fence_func *k, const struct fence_masked *m, enum fence_note which,
                            uint32_t a, uint32_t b)
{
    note(k, m, which, GUARDED("lop3.b32 %0, %0, %1, %2, 0xF6;"), a, edit_reg(b));
}

void fence_note_above(struct fence_func *k, const struct fence_masked *m, uint32_t reg, uint64_t number)
{
    note(k, m, FENCE_APART, GUARDED("setp.gt.or.u64 %0, %1, %2, %0;"), reg, edit_imm((int64_t)number));
}

// Makes a register of 32 bits a multiple of the width: note | (reg & (width - 1)).
static void emit_aligned(struct fence_func *k, const struct fence_masked *m, uint32_t reg)
{
    note(k, m, FENCE_SKEWED, GUARDED("lop3.b32 %0, %0, %1, %2, 0xF8;"), reg, edit_imm((int64_t)m->align - 1));
    BEFORE(k, m->stmt, "and.b32 %0, %0, %1;", edit_reg(reg), edit_imm(-(int64_t)m->align));
}

// --- global memory -----------------------------------------------------------------------------------------

// The bits of (upper half ^ base), of which those in `outside` count in the end. By modulo all count.
static void emit_note(struct fence_func *k, const struct fence_masked *m)
{
    uint32_t from = k->bits;
    if (k->k->way == FENCE_BY_MODULO) {
        BEFORE(k, m->stmt, "xor.b32 %0, %1, %2;\nand.b32 %0, %0, %3;\nxor.b32 %0, %0, %2;", edit_reg(k->high),
               edit_reg(k->bits), edit_reg(k->base), edit_reg(k->outside));
        from = k->high;
    }
    note_difference(k, m, FENCE_MASKED, from, k->base);
}

// No instruction waits for the note. In loops the other is (bits & ~outside) | base, for which one number
// must be in a register; elsewhere loading that would take longer.
static void emit_mask(struct fence_func *k, const struct fence_masked *m)
{
    emit_note(k, m);
    if (!m->often)
        BEFORE(k, m->stmt, "min.u32 %0, %0, %1;\nmax.u32 %0, %0, %2;", edit_reg(k->bits), edit_reg(k->top),
               edit_reg(k->base));
    else
        BEFORE(k, m->stmt, "lop3.b32 %0, %0, %1, %2, 0xBA;", edit_reg(k->bits), edit_reg(k->outside),
               edit_reg(k->base));
}

// The number of the page, modulo the pages of the partition: for sizes that are no power of two.
static void emit_modulo(struct fence_func *k, const struct fence_masked *m)
{
    uint32_t at = m->stmt;
    BEFORE(k, at,
           "sub.u64 %0, %1, %2;\nshr.u64 %3, %0, 21;\ncvt.u32.u64 %4, %3;\nrem.u32 %4, %4, %5;\n"
           "cvt.u64.u32 %6, %4;\nxor.b64 %3, %3, %6;",
           edit_reg(k->wide[0]), edit_reg(m->reg), edit_reg(k->base64), edit_reg(k->what), edit_reg(k->bits),
           edit_reg(k->pages), edit_reg(k->to[0]));
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;\nor.b32 %1, %1, %0;", edit_reg(k->low), edit_reg(k->high),
           edit_reg(k->what));
    note(k, m, FENCE_MASKED, GUARDED("or.b32 %0, %1, %0;"), k->high, edit_imm(0));
    BEFORE(k, at,
           "and.b64 %0, %0, 0x1FFFFF;\nshl.b64 %1, %1, 21;\nor.b64 %0, %0, %1;\nadd.u64 %0, %0, %2;\n"
           "mov.b64 {%3, %4}, %0;",
           edit_reg(k->wide[0]), edit_reg(k->to[0]), edit_reg(k->base64), edit_reg(k->low),
           edit_reg(k->bits));
}

static void mask_global(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t odd = (uint32_t)m->start % m->align;
    BEFORE(k, m->stmt, "mov.b64 {%0, %1}, %2;", edit_reg(k->low), edit_reg(k->bits), edit_reg(m->reg));
    if (m->notes && !m->masks)
        emit_note(k, m);
    if (!m->masks && !m->aligns)
        return;
    uint32_t to = m->in_place ? m->reg : edit_new_reg(e, PTX_B64);
    if (m->masks && k->k->way == FENCE_BY_MODULO)
        emit_modulo(k, m);
    else if (m->masks)
        emit_mask(k, m);
    // The address is to be a multiple, not the register.
    if (m->aligns && odd)
        BEFORE(k, m->stmt, "add.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(odd));
    if (m->aligns)
        emit_aligned(k, m, k->low);
    if (m->aligns && odd)
        BEFORE(k, m->stmt, "sub.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(odd));
    BEFORE(k, m->stmt, "mov.b64 %0, {%1, %2};", edit_reg(to), edit_reg(k->low), edit_reg(k->bits));
    struct ptx_operand address = edit_addr(to, m->start);
    address.unified = mem->addr->unified;
    edit_set(e, m->stmt, (unsigned)(mem->addr - k->f->stmts[m->stmt].operands), address);
}

// --- shared memory -----------------------------------------------------------------------------------------

// Returns a register with the end of shared memory, rounded down to a multiple of 2^power.
static uint32_t end_of(struct fence_func *k, unsigned power)
{
    struct edit *e = k->k->all.c->edit;
    if (!k->rounded[power]) {
        k->rounded[power] = edit_new_reg(e, PTX_B32);
        edit_entry(e, "and.b32 %0, %1, %2;", edit_reg(k->rounded[power]), edit_reg(k->end),
                   edit_imm(-(1LL << power)));
    }
    return k->rounded[power];
}

// Sets k->low to the register, or the nearest one by which bytes [low, high) from it on are in the block's
// shared memory and which is a multiple of 2^power. There is one, since the system has a part of shared
// memory. All addresses there have fewer than 31 bits; a register in front of them may be negative.
static void emit_inside(struct fence_func *k, const struct fence_masked *m, uint32_t reg, int32_t low,
                        int32_t high, unsigned power)
{
    int32_t unit = 1 << power, least = -low + ((low % unit) + unit) % unit;
    uint32_t end = k->end;
    if (high % unit)
        BEFORE(k, m->stmt, "sub.s32 %0, %1, %2;\nand.b32 %0, %0, %3;", edit_reg(k->low), edit_reg(end),
               edit_imm(high), edit_imm(-(int64_t)unit));
    else
        BEFORE(k, m->stmt, "sub.s32 %0, %1, %2;", edit_reg(k->low), edit_reg(end_of(k, power)),
               edit_imm(high));
    BEFORE(k, m->stmt, "min.s32 %0, %1, %0;", edit_reg(k->low), edit_reg(reg));
    if (m->reg == PTX_NONE)
        return;
    if (k->k->exact_shared)
        BEFORE(k, m->stmt, "add.s32 %0, %1, %2;\nmax.s32 %3, %3, %0;", edit_reg(k->high), edit_reg(k->own),
               edit_imm(least), edit_reg(k->low));
    else
        BEFORE(k, m->stmt, "max.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(least));
}

// A register that is changed stays as aligned as it is known to be, since other accesses by it count on that.
// Else only this access has to be aligned.
static void mask_shared(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    struct edit *e = k->k->all.c->edit;
    uint32_t align = fence_alignment(mem), from = m->reg;
    unsigned power = m->in_place ? m->power : (unsigned)__builtin_ctz(align);
    bool apart = m->reg == PTX_NONE || (!m->in_place && m->start & (int32_t)(align - 1));
    uint32_t to = m->in_place ? m->reg : edit_new_reg(e, PTX_B32);
    int32_t low = m->in_place ? m->low : m->start, high = m->in_place ? m->high : m->start + m->width;
    if (m->reg == PTX_NONE)
        BEFORE(k, m->stmt, "mov.u32 %0, %1;", edit_reg(to), edit_sym_at(m->sym, m->start));
    else if (apart)
        BEFORE(k, m->stmt, "add.s32 %0, %1, %2;", edit_reg(to), edit_reg(m->reg), edit_imm(m->start));
    else if (m->aligns && !m->in_place)
        BEFORE(k, m->stmt, "mov.b32 %0, %1;", edit_reg(to), edit_reg(m->reg));
    if (apart || m->aligns)
        from = to;
    if (m->aligns)
        emit_aligned(k, m, to);
    emit_inside(k, m, from, apart ? 0 : low, apart ? m->width : high, power);
    note_difference(k, m, FENCE_OUTSIDE, k->low, from);
    BEFORE(k, m->stmt, "mov.b32 %0, %1;", edit_reg(to), edit_reg(k->low));
    struct ptx_operand address = edit_addr(to, apart ? 0 : m->start);
    address.unified = mem->addr->unified;
    edit_set(e, m->stmt, (unsigned)(mem->addr - k->f->stmts[m->stmt].operands), address);
}

// A generic address in the shared memory of the cluster: that of rank r is at r * 16 MiB. What is elsewhere
// is noted too, and becomes an address in the block's own.
static void mask_generic(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    struct edit *e = k->k->all.c->edit;
    bool exact = k->k->exact_shared;
    uint32_t to = edit_new_reg(e, PTX_B64), was = k->narrow[0];
    BEFORE(k, m->stmt, "add.s64 %0, %1, %2;", edit_reg(k->what), edit_reg(m->reg), edit_imm(m->start));
    BEFORE(k, m->stmt,
           exact ? "isspacep.shared::cluster %0, %1;\ncvta.to.shared::cluster.u64 %1, %1;\n"
                   "selp.b32 %2, 0, 1, %0;\ncvt.u32.u64 %3, %1;"
                 : "isspacep.shared %0, %1;\ncvta.to.shared.u64 %1, %1;\nselp.b32 %2, 0, 1, %0;\n"
                   "cvt.u32.u64 %3, %1;",
           edit_reg(k->bad), edit_reg(k->what), edit_reg(k->high), edit_reg(was));
    note(k, m, FENCE_OUTSIDE, GUARDED("or.b32 %0, %1, %0;"), k->high, edit_imm(0));
    if (m->aligns)
        emit_aligned(k, m, was);
    BEFORE(k, m->stmt, "sub.s32 %0, %1, %2;\nand.b32 %0, %0, %3;", edit_reg(k->high), edit_reg(k->limit),
           edit_imm(m->width), edit_imm(-(int64_t)fence_alignment(mem)));
    if (exact)
        BEFORE(k, m->stmt,
               "and.b32 %0, %1, 0xFFFFFF;\nmin.u32 %0, %0, %2;\nmov.u32 %2, %cluster_nctarank;\n"
               "shl.b32 %2, %2, 24;\nsetp.lt.u32 %3, %1, %2;\nand.b32 %2, %1, 0xFF000000;\n"
               "selp.b32 %2, %2, %4, %3;\nor.b32 %0, %0, %2;",
               edit_reg(k->low), edit_reg(was), edit_reg(k->high), edit_reg(k->bad), edit_reg(k->own));
    else
        BEFORE(k, m->stmt, "min.u32 %0, %1, %2;", edit_reg(k->low), edit_reg(was), edit_reg(k->high));
    note_difference(k, m, FENCE_OUTSIDE, k->low, was);
    BEFORE(k, m->stmt,
           exact ? "cvt.u64.u32 %0, %1;\ncvta.shared::cluster.u64 %0, %0;"
                 : "cvt.u64.u32 %0, %1;\ncvta.shared.u64 %0, %0;",
           edit_reg(to), edit_reg(k->low));
    struct ptx_operand address = edit_addr(to, 0);
    address.unified = mem->addr->unified;
    edit_set(e, m->stmt, (unsigned)(mem->addr - k->f->stmts[m->stmt].operands), address);
}

void fence_mask(struct fence_func *k, const struct fence_masked *m, const struct ptx_mem *mem)
{
    bool variable = m->variable != PTX_NONE;
    if (m->notes || m->masks || m->aligns)
        (variable     ? fence_mask_variable
         : m->generic ? mask_generic
         : m->shared  ? mask_shared
                      : mask_global)(k, m, mem);
}

// --- the ends of a variant ---------------------------------------------------------------------------------

static void load_modulo(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    k->pages = edit_new_reg(e, PTX_U32);
    k->base64 = edit_new_reg(e, PTX_B64);
    edit_entry(e, "ld.const.u32 %0, [%1];\nld.const.b64 %2, [%3];", edit_reg(k->pages),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, pages)), edit_reg(k->base64),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, base)));
}

// Sets a predicate if something is noted of the pointers.
static void emit_noted(struct fence_func *k, uint32_t at, struct ptx_operand to)
{
    static const char text[] = "and.b32 %1, %2, %3;\nsetp.ne.or.b32 %0, %1, 0, %4;";
    struct edit *e = k->k->all.c->edit;
    struct ptx_operand bits = k->k->way == FENCE_BY_MODULO ? edit_imm(-1) : edit_reg(k->outside);
    edit_before(e, at, text, to, edit_reg(k->bits), edit_reg(k->noted[FENCE_MASKED]), bits,
                edit_reg(k->noted[FENCE_APART]));
}

// The thread leaves a word that says which kernel it is of, and of what kind its mistake was.
static void write_note(struct fence_func *k, uint32_t at, uint32_t site)
{
    struct edit *e = k->k->all.c->edit;
    struct ptx_operand word = edit_reg(k->low), is = edit_reg(k->bad);
    BEFORE(k, at, "setp.ne.b32 %1, %2, 0;\nselp.b32 %0, %3, %4, %1;", word, is,
           edit_reg(k->noted[FENCE_OUTSIDE]), edit_imm(KFENCE_NOTE_OF(KFENCE_NOTE_OUT_OF_SHARED, site)),
           edit_imm(KFENCE_NOTE_OF(KFENCE_NOTE_SKEWED, site)));
    emit_noted(k, at, is);
    BEFORE(k, at, "selp.b32 %0, %1, %0, %2;", word, edit_imm(KFENCE_NOTE_OF(KFENCE_NOTE_MASKED, site)), is);
    edit_before(e, at,
                "ld.const.b32 %1, [%2];\nor.b32 %0, %0, %1;\nld.const.b64 %3, [%4];\nst.global.b32 [%5], %0;",
                word, edit_reg(k->high), edit_sym_at(k->k->variable, offsetof(struct kfence_module, tag)),
                edit_reg(k->what), edit_sym_at(k->k->variable, offsetof(struct kfence_module, notes)),
                edit_addr(k->what, site % KFENCE_NOTES * (int64_t)sizeof(uint32_t)));
}

int fence_mask_ends(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    struct check_access a = {.stmt = k->f->nstmts - 1, .root = {.kind = ROOTS_OWN}};
    bool notes = false, modulo = k->k->way == FENCE_BY_MODULO;
    uint32_t site, end = edit_new_label(e), last = k->f->nstmts;
    for (size_t i = 0; i < k->plan->len; i++)
        notes |= k->plan->items[i].notes || k->plan->items[i].masks || k->plan->items[i].aligns;
    if (!notes)
        return 0;
    int err = check_site(&k->site, &a, &site);
    for (unsigned i = 0; i < FENCE_NOTES; i++) {
        k->noted[i] = edit_new_reg(e, i == FENCE_APART ? PTX_PRED : PTX_B32);
        edit_entry(e, i == FENCE_APART ? "setp.ne.b32 %0, 0, 0;" : "mov.b32 %0, 0;", edit_reg(k->noted[i]));
    }
    if (modulo)
        load_modulo(k);
    k->top = edit_new_reg(e, PTX_B32);
    edit_entry(e, "ld.const.b32 %0, [%1];", edit_reg(k->top),
               edit_sym_at(k->k->variable, offsetof(struct kfence_module, last) + 4));
    err = err ? err : fence_exits(k, end);
    if (edit_falls_off(k->f))
        edit_before(e, last, "ret;");
    edit_place_label(e, last, end);
    write_note(k, last, site);
    return err ? err : edit_error(e);
}
