// SPDX-License-Identifier: MIT
// The variant of a kernel in which the accesses that a proof may bound have no fence: KFENCE_REST_PREFIX
// NAME. What a proof says holds for the program's own registers. A mask that changes one, because its address
// was wrong, could change what a proved access is computed from, or the guards that bound it. So masks change
// no register from which an address of a proved access or a predicate follows, but by way of memory: a proof
// holds for whatever is loaded.
#include <errno.h>
#include <string.h>

#include "pass/pass_fence_state.h"

struct slice {
    const struct ptx_func *f;
    const struct regs *regs;
    bool *kept;  // by index of a register
    bool more;   // the slice has grown
};

static void keep(struct slice *s, uint32_t index)
{
    if (index != REGS_NONE && !s->kept[index])
        s->kept[index] = s->more = true;
}

static void keep_operand(struct slice *s, const struct ptx_operand *o)
{
    if (o && (o->kind == PTX_REG || (o->kind == PTX_ADDR && o->sub == PTX_BASE_REG)))
        keep(s, regs_index(s->regs, o->id));
}

static void keep_reads(struct slice *s, uint32_t at)
{
    struct regs_list list = regs_at(s->regs, at);
    for (uint32_t i = 0; i < list.n; i++)
        if (list.at[i].reads)
            keep(s, list.at[i].reg);
}

static bool loads(const struct ptx_func *f, const struct ptx_stmt *stmt)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(f, stmt, mem);
    for (unsigned i = 0; i < n; i++)
        if (mem[i].reads)
            return true;
    return false;
}

// Keeps guards, what branches and barriers read, and the addresses of proved accesses.
static void begin(struct slice *s, uint32_t at, const fence_rows *covered)
{
    const struct ptx_stmt *stmt = &s->f->stmts[at];
    struct ptx_mem mem[PTX_MAX_MEM];
    unsigned n = ptx_stmt_mem(s->f, stmt, mem);
    if (stmt->guard != PTX_NONE)
        keep(s, regs_index(s->regs, stmt->guard));
    if (stmt->form->op->control != PTX_FALLS)
        keep_reads(s, at);
    for (unsigned row = 0; row < n; row++)
        if (fence_has_row(covered, at, row)) {
            keep_operand(s, mem[row].addr);
            keep_operand(s, mem[row].stride);
            keep_operand(s, mem[row].size);
        }
}

// Keeps what the registers that a statement writes follow from.
static void follow(struct slice *s, uint32_t at)
{
    struct regs_list list = regs_at(s->regs, at);
    bool writes = false;
    for (uint32_t i = 0; i < list.n; i++)
        writes |= list.at[i].writes && s->kept[list.at[i].reg];
    if (writes && !loads(s->f, &s->f->stmts[at]))
        keep_reads(s, at);
}

static int find_kept(struct fencing *k, uint32_t index, const fence_rows *covered, struct arena *arena,
                     bool **kept)
{
    struct slice s = {.f = k->all.c->funcs[index]};
    int err = flow_regs(pass_flow(k->all.c, index), &s.regs);
    if (err)
        return err;
    *kept = s.kept = ARENA_ARRAY(arena, bool, s.regs->n + 1u);
    if (!s.kept)
        return -ENOMEM;
    memset(s.kept, 0, s.regs->n + 1u);
    for (uint32_t i = 0; i < s.f->nstmts; i++)
        if (s.f->stmts[i].kind == PTX_INSN)
            begin(&s, i, covered);
    do {
        s.more = false;
        for (uint32_t i = s.f->nstmts; i-- > 0;)
            if (s.f->stmts[i].kind == PTX_INSN)
                follow(&s, i);
    } while (s.more);
    return 0;
}

int fence_find_rest(struct fencing *k, uint32_t index, const fence_plan *plan, const fence_rows *covered,
                    fence_plan *rest)
{
    struct arena arena;
    bool *kept = NULL;
    int err = 0;
    for (size_t i = 0; i < plan->len && !err; i++)
        if (!fence_has_row(covered, plan->items[i].stmt, plan->items[i].row))
            err = vec_push(rest, plan->items[i]);
    if (err || !rest->len)
        return err;
    arena_init(&arena, 0);
    err = find_kept(k, index, covered, &arena, &kept);
    if (!err)
        err = fence_find_near(k, index, rest, kept);
    arena_free(&arena);
    return err;
}
