// SPDX-License-Identifier: MIT
// The variant of a kernel in which accesses are masked: KFENCE_PREFIX NAME. It is launched where all
// parameters that such accesses are computed from point into the partition; a right access by one of them
// stays in its buffer, so that the mask changes nothing. Other accesses, by pointers from memory or to
// variables, are compared as in the kernel itself.
//
//   the upper half of the pointer = (upper half & mask) | base
//   the lower half is made a multiple of the width
//   noted |= what this has changed; where the thread ends, KFENCE_NOTE if it is not 0
//
// A pointer is masked once for all accesses of a run of statements without labels and jumps.
#include <errno.h>
#include <string.h>

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

static int plan_stmt(struct fencing *k, const struct ptx_func *f, const struct roots *roots, uint32_t at,
                     fence_plan *plan)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    const struct fence_func in = {.k = k};
    unsigned n = ptx_stmt_mem(f, &f->stmts[at], mem);
    int err = 0;
    for (unsigned i = 0; i < n && !err; i++) {
        uint64_t offset;
        if (ptx_space_is((enum ptx_space)mem[i].space) != PTX_SPACE_GLOBAL || !fence_wants(&in, &mem[i]) ||
            mem[i].extent != PTX_EXTENT_PLAIN || mem[i].addr->sub != PTX_BASE_REG)
            continue;
        if (ptx_type_bits((enum ptx_type)ptx_reg_var(f, mem[i].addr->id)->type) != 64 ||
            mem[i].addr->value >= KFENCE_OFFSET || mem[i].addr->value <= -KFENCE_OFFSET)
            continue;
        struct roots_of root = roots_address(roots, at, mem[i].addr);
        if (root.kind != ROOTS_PARAM)
            continue;
        offset = root.id;
        struct fence_masked m = {.stmt = at, .row = i, .offset = (uint32_t)offset};
        err = vec_push(plan, m);
    }
    return err;
}

int fence_find_masked(struct fencing *k, uint32_t index, fence_plan *plan)
{
    struct pass_context *c = k->all.c;
    const struct ptx_func *f = c->funcs[index];
    const struct roots *roots;
    if (!f->is_entry || c->result->funcs[index].why != PASS_REWRITTEN || uses_environment(f))
        return 0;
    int err = flow_roots(pass_flow(c, index), &roots);
    for (uint32_t i = 0; i < f->nstmts && !err; i++)
        if (f->stmts[i].kind == PTX_INSN)
            err = plan_stmt(k, f, roots, i, plan);
    // A kernel that is too large for the analysis has no variant.
    if (err == -E2BIG) {
        plan->len = 0;
        err = 0;
    }
    return err;
}

static bool has_offset(const struct pass_check_variant *v, uint32_t offset)
{
    for (uint32_t i = 0; i < v->npairs; i++)
        if (v->pairs[i].offset == offset)
            return true;
    return false;
}

int fence_add_kernel(struct fencing *k, uint32_t index, const fence_plan *plan,
                     const struct pass_check_kernel *bare)
{
    struct pass_context *c = k->all.c;
    const struct ptx_func *f = c->funcs[index];
    struct arena *arena = &c->result->arena;
    struct pass_check_kernel kernel = *bare;
    kernel.name = c->result->funcs[index].name;
    kernel.nparams = f->nparams;
    kernel.params = ARENA_ARRAY(arena, struct pass_check_param, f->nparams + 1u);
    kernel.full.pairs = ARENA_ARRAY(arena, struct pass_check_pair, plan->len + 1u);
    if (!kernel.params || !kernel.full.pairs)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->nparams; i++) {
        uint64_t at = 0;
        roots_param_offset(f, f->params[i].sym, &at);
        kernel.params[i] = (struct pass_check_param){(uint32_t)at, (uint32_t)ptx_var_size(&f->params[i])};
    }
    for (size_t i = 0; i < plan->len; i++)
        if (!has_offset(&kernel.full, plan->items[i].offset))
            kernel.full.pairs[kernel.full.npairs++] =
                (struct pass_check_pair){.offset = plan->items[i].offset, .span = 1, .align = 1};
    return vec_push(&k->all.kernels, kernel);
}

// --- code --------------------------------------------------------------------------------------------------

static struct fence_cached *cached_of(struct fence_func *k, uint32_t reg)
{
    return reg < k->ncached ? &k->cached[reg] : NULL;
}

struct forgetting {
    struct fence_func *k;
};

static void forget_written(void *ctx, struct ptx_access access)
{
    struct fence_cached *c = cached_of(((struct forgetting *)ctx)->k, access.reg);
    if (c && access.writes)
        c->run = 0;
}

// Called for each statement before its code; what a statement writes is written after its own access, so that
// is forgotten at the next one.
void fence_mask_forget(struct fence_func *k, uint32_t at)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    const struct ptx_stmt *before = at ? s - 1 : NULL;
    struct forgetting f = {k};
    if (before && before->kind == PTX_INSN) {
        ptx_stmt_regs(before, forget_written, &f);
        if (before->form->op->control != PTX_FALLS)
            k->run++;
    }
    if (s->kind == PTX_LABEL || s->kind == PTX_VERBATIM)
        k->run++;
}

// Adds bits to a register that is looked at when the thread ends, if the access is made.
static void note_bits(struct fence_func *k, uint32_t at, uint32_t to, uint32_t bits)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    if (s->guard == PTX_NONE)
        BEFORE(k, at, "or.b32 %0, %0, %1;", edit_reg(to), edit_reg(bits));
    else
        BEFORE(k, at, "@%0 or.b32 %1, %1, %2;", edit_guard(s), edit_reg(to), edit_reg(bits));
}

// Makes the lower half, or with its offset if that is no multiple, a multiple of `align`.
static void emit_aligned(struct fence_func *k, uint32_t at, int64_t offset, uint32_t align)
{
    if (offset % align)
        BEFORE(k, at, "add.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(offset % align));
    BEFORE(k, at, "and.b32 %0, %1, %2;\nxor.b32 %1, %1, %0;", edit_reg(k->high), edit_reg(k->low),
           edit_imm((int64_t)align - 1));
    note_bits(k, at, k->skewed, k->high);
    if (offset % align)
        BEFORE(k, at, "sub.s32 %0, %0, %1;", edit_reg(k->low), edit_imm(offset % align));
}

static void emit_mask(struct fence_func *k, uint32_t at, uint32_t from)
{
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;\nand.b32 %3, %1, %4;\nor.b32 %3, %3, %5;\nxor.b32 %1, %1, %3;",
           edit_reg(k->low), edit_reg(k->high), edit_reg(from), edit_reg(k->bits), edit_reg(k->mask),
           edit_reg(k->base));
    note_bits(k, at, k->noted, k->high);
}

// The number of the page, modulo the pages of the partition: for sizes that are no power of two.
static void emit_modulo(struct fence_func *k, uint32_t at, uint32_t from, uint32_t to)
{
    BEFORE(k, at,
           "sub.u64 %0, %1, %2;\nshr.u64 %3, %0, 21;\ncvt.u32.u64 %4, %3;\nrem.u32 %4, %4, %5;\n"
           "cvt.u64.u32 %6, %4;\nxor.b64 %3, %3, %6;",
           edit_reg(to), edit_reg(from), edit_reg(k->base64), edit_reg(k->what), edit_reg(k->bits),
           edit_reg(k->pages), edit_reg(k->to[0]));
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;\nor.b32 %1, %1, %0;", edit_reg(k->low), edit_reg(k->high),
           edit_reg(k->what));
    note_bits(k, at, k->noted, k->high);
    BEFORE(k, at,
           "and.b64 %0, %0, 0x1FFFFF;\nshl.b64 %1, %1, 21;\nor.b64 %0, %0, %1;\nadd.u64 %0, %0, %2;\n"
           "mov.b64 {%3, %4}, %0;",
           edit_reg(to), edit_reg(k->to[0]), edit_reg(k->base64), edit_reg(k->low), edit_reg(k->bits));
}

static void emit(struct fence_func *k, uint32_t at, uint32_t from, uint32_t to, int64_t offset,
                 uint32_t align)
{
    if (k->k->modulo)
        emit_modulo(k, at, from, to);
    else
        emit_mask(k, at, from);
    if (align > 1)
        emit_aligned(k, at, offset, align);
    BEFORE(k, at, "mov.b64 %0, {%1, %2};", edit_reg(to), edit_reg(k->low), edit_reg(k->bits));
}

int fence_mask(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, unsigned row)
{
    const struct ptx_stmt *s = &k->f->stmts[at];
    uint32_t align = fence_alignment(mem), from = mem->addr->id;
    struct fence_cached *c = cached_of(k, from);
    int64_t offset = mem->addr->value;
    bool whole = !(offset % align), known = c && whole && c->run == k->run && c->align >= align;
    uint32_t to = known ? c->to : edit_new_reg(k->k->all.c->edit, PTX_B64);
    if (!known)
        emit(k, at, from, to, offset, align);
    if (!known && c && whole && s->guard == PTX_NONE)
        *c = (struct fence_cached){k->run, to, align};
    struct ptx_operand address = edit_addr(to, offset);
    address.unified = mem->addr->unified;
    edit_set(k->k->all.c->edit, at, (unsigned)(mem->addr - s->operands), address);
    return 0;
}

int fence_mask_ends(struct fence_func *k)
{
    struct edit *e = k->k->all.c->edit;
    struct check_access a = {.stmt = k->f->nstmts - 1, .root = {.kind = ROOTS_OWN}};
    uint32_t site;
    int err = check_site(&k->site, &a, &site);
    k->ncached = k->f->nregs;
    k->cached = ARENA_ARRAY(&k->k->all.c->m->arena, struct fence_cached, k->ncached + 1u);
    if (err || !k->cached)
        return -ENOMEM;
    memset(k->cached, 0, (k->ncached + 1u) * sizeof *k->cached);
    k->mask = edit_new_reg(e, PTX_B32);
    k->noted = edit_new_reg(e, PTX_B32);
    k->skewed = edit_new_reg(e, PTX_B32);
    edit_entry(e, "mov.b32 %0, 0;\nmov.b32 %1, 0;", edit_reg(k->noted), edit_reg(k->skewed));
    if (k->k->modulo) {
        k->pages = edit_new_reg(e, PTX_U32);
        k->base64 = edit_new_reg(e, PTX_B64);
        edit_entry(e, "ld.const.u32 %0, [%1];\nld.const.b64 %2, [%3];", edit_reg(k->pages),
                   edit_sym_at(k->k->variable, offsetof(struct kfence_module, pages)), edit_reg(k->base64),
                   edit_sym_at(k->k->variable, offsetof(struct kfence_module, base)));
    } else {
        edit_entry(e, "ld.const.b32 %0, [%1];", edit_reg(k->mask),
                   edit_sym_at(k->k->variable, offsetof(struct kfence_module, mask) + 4));
    }
    edit_exits(e,
               "or.b32 %6, %1, %7;\nsetp.ne.b32 %0, %6, 0;\n@!%0 bra right;\nmov.u64 %2, %3;\n"
               "mov.b64 %4, {%1, %7};\ncall %5, (%2, %4);\nright:",
               edit_reg(k->bad), edit_reg(k->noted), edit_reg(k->what),
               edit_imm((int64_t)KFENCE_WHAT(site, 0, 0)), edit_reg(k->to[0]), edit_sym(k->k->note),
               edit_reg(k->bits), edit_reg(k->skewed));
    return 0;
}
