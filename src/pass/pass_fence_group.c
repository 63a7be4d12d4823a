// SPDX-License-Identifier: MIT
// Accesses by one pointer that stand in one block of the function and are compared one by one. In front of
// the first, a predicate is set that says that all of their bytes are inside; where it holds, the code of
// each is left out. So nothing changes about an access that is outside, and none of them need be made.
#include "pass/pass_fence_state.h"

#define BEFORE FENCE_BEFORE

enum {
    MOST_AHEAD = 200,  // statements in which accesses of a group are looked for
    MOST_SPAN = 512,   // bytes
};

struct members {
    unsigned n;
    int64_t low, high;
    uint32_t align, end;
};

struct writing {
    uint32_t reg;
    bool is;
};

static void look_access(void *ctx, struct ptx_access access)
{
    struct writing *w = ctx;
    w->is |= access.writes && access.reg == w->reg;
}

// Returns whether the statement behind this one is executed after it, and the register keeps its value.
static bool goes_on(const struct ptx_stmt *s, uint32_t reg)
{
    struct writing w = {.reg = reg};
    if (s->kind == PTX_LABEL || s->kind == PTX_VERBATIM)
        return false;
    if (s->kind != PTX_INSN)
        return true;
    if (s->form->op->control != PTX_FALLS && s->form->op->control != PTX_BARRIER)
        return false;
    ptx_stmt_regs(s, look_access, &w);
    return !w.is;
}

static bool is_member(const struct fence_func *k, const struct ptx_mem *mem, uint32_t reg)
{
    const struct ptx_operand *addr = mem->addr;
    return addr->kind == PTX_ADDR && addr->sub == PTX_BASE_REG && addr->id == reg && mem->bytes &&
           mem->extent == PTX_EXTENT_PLAIN && !fence_is_shared(mem) && fence_wants(k, mem) &&
           addr->value < KFENCE_OFFSET && addr->value > -KFENCE_OFFSET &&
           !(addr->value & ((int64_t)fence_alignment(mem) - 1));
}

static void add(struct members *to, const struct ptx_mem *mem, uint32_t at)
{
    int64_t start = mem->addr->value, end = start + mem->bytes;
    int64_t low = to->n && to->low < start ? to->low : start, high = to->n && to->high > end ? to->high : end;
    if (high - low > MOST_SPAN)
        return;
    uint32_t align = fence_alignment(mem);
    *to = (struct members){to->n + 1, low, high, align > to->align ? align : to->align, at + 1};
}

// Finds the accesses by the register from a statement on.
static struct members find(const struct fence_func *k, uint32_t from, uint32_t reg)
{
    struct members found = {.align = 1};
    for (uint32_t at = from; at < k->f->nstmts && at - from < MOST_AHEAD; at++) {
        struct ptx_mem mem[PTX_MAX_MEM];
        const struct ptx_stmt *s = &k->f->stmts[at];
        unsigned n = s->kind == PTX_INSN && !fence_is_copy(s) ? ptx_stmt_mem(k->f, s, mem) : 0;
        for (unsigned i = 0; i < n; i++)
            if (is_member(k, &mem[i], reg))
                add(&found, &mem[i], at);
        if (!goes_on(s, reg))
            break;
    }
    return found;
}

// Returns the group that the access is of; NULL if there is none yet.
static const struct fence_group *group_of(const struct fence_func *k, uint32_t at, const struct ptx_mem *mem)
{
    int64_t start = mem->addr->value, end = start + mem->bytes;
    for (unsigned i = 0; i < FENCE_GROUPS; i++) {
        const struct fence_group *g = &k->groups[i];
        if (g->reg == mem->addr->id && at < g->end && start >= g->low && end <= g->high &&
            fence_alignment(mem) <= g->align)
            return g;
    }
    return NULL;
}

// Sets a predicate if all bytes of the group are inside, and each access is aligned.
static void compare(struct fence_func *k, uint32_t at, const struct members *all, uint32_t to, uint32_t good,
                    bool loaded)
{
    BEFORE(k, at, "mov.b64 {%0, %1}, %2;\nxor.b32 %3, %1, %4;\nand.b32 %3, %3, %5;\nsetp.eq.b32 %6, %3, 0;",
           edit_reg(k->low), edit_reg(k->high), edit_reg(to), edit_reg(k->bits), edit_reg(k->base),
           edit_reg(k->outside), edit_reg(good));
    if (loaded)
        fence_add_near(k, at, to, all->low, all->high, good);
    if (all->align > 1)
        BEFORE(k, at, "and.b32 %0, %0, %1;\nsetp.eq.and.b32 %2, %0, 0, %2;", edit_reg(k->low),
               edit_imm((int64_t)all->align - 1), edit_reg(good));
}

void fence_group(struct fence_func *k, uint32_t at, const struct ptx_mem *mem, uint32_t to,
                 const struct fence_variable *v, uint32_t inside)
{
    uint32_t reg = mem->addr->sub == PTX_BASE_REG ? mem->addr->id : PTX_NONE;
    if (reg == PTX_NONE || !is_member(k, mem, reg) || (v && v->sym != PTX_NONE) ||
        ptx_type_bits((enum ptx_type)ptx_reg_var(k->f, reg)->type) != 64)
        return;
    const struct fence_group *group = group_of(k, at, mem);
    if (!group) {
        struct members all = find(k, at, reg);
        if (all.n < 2)
            return;
        struct fence_group *made = &k->groups[k->next_group++ % FENCE_GROUPS];
        *made = (struct fence_group){reg,     all.end,  edit_new_reg(k->k->all.c->edit, PTX_PRED),
                                     all.low, all.high, all.align};
        compare(k, at, &all, to, made->good, v != NULL);
        group = made;
    }
    BEFORE(k, at, "@%0 bra %1;", edit_reg(group->good), edit_sym(inside));
}
