// SPDX-License-Identifier: MIT
#include "flow/regs.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "flow/build.h"

struct input {
    const struct ptx_func *f;
    size_t limit;
};

// Two passes over all statements: the first finds the registers, the second stores the accesses.
struct pass {
    struct regs *r;
    const struct input *in;
    bool filling;
    uint64_t naccess;  // first pass: an upper bound
    uint32_t nshared;  // second pass: of the used registers, the first so many are the module's
    uint32_t first;    // second pass: first access of the statement
    uint32_t *last;    // second pass, by index: the last access + 1
};

static void note(void *ctx, struct ptx_access a)
{
    struct pass *p = ctx;
    struct regs *r = p->r;
    if (!p->filling) {
        p->naccess++;
        if (!r->index[a.reg]) {
            r->index[a.reg] = 1;
            r->reg[r->n++] = a.reg;
        }
        return;
    }
    uint32_t i = regs_index(r, a.reg);
    if (p->last[i] > p->first) {
        struct regs_access *old = &r->access[p->last[i] - 1];
        bool whole = (old->writes && !old->partial) || (a.writes && !a.partial);
        old->reads |= a.reads;
        old->writes |= a.writes;
        old->partial = old->writes && !whole;
        return;
    }
    r->access[p->naccess++] = (struct regs_access){i, a.reads, a.writes, a.writes && a.partial};
    p->last[i] = (uint32_t)p->naccess;
}

static void note_returned(struct pass *p)
{
    const struct ptx_func *f = p->in->f;
    for (uint32_t i = 0; i < f->nrets; i++)
        if (f->rets[i].space == PTX_SPACE_REG)
            note(p, (struct ptx_access){.reg = f->rets[i].first_reg, .reads = true});
    for (uint32_t i = 0; i < p->nshared; i++)
        note(p, (struct ptx_access){.reg = p->r->reg[i], .reads = true});
}

static void note_stmt(struct pass *p, const struct ptx_stmt *s)
{
    if (s->kind != PTX_INSN)
        return;
    ptx_stmt_regs(s, note, p);
    if (s->form->op->control == PTX_RETURN)
        note_returned(p);
    for (uint32_t i = 0; s->form->op->control == PTX_CALL && i < p->nshared; i++)
        note(p, (struct ptx_access){.reg = p->r->reg[i], .reads = true, .writes = true, .partial = true});
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Sorts and numbers the registers. reg[] holds those found, in any order, and has room for every operand.
static void number(struct regs *r, struct arena *keep)
{
    uint32_t *sorted = ARENA_ARRAY(keep, uint32_t, (size_t)r->n + 1);
    if (r->n)
        memcpy(sorted, r->reg, r->n * sizeof *sorted);
    qsort(sorted, r->n, sizeof *sorted, by_number);
    for (uint32_t i = 0; i < r->n; i++)
        r->index[sorted[i]] = i + 1;
    r->reg = sorted;
}

// Counts calls and returns: they also access every register of the module.
static uint64_t count_shared(const struct pass *p)
{
    uint64_t n = 1;
    for (uint32_t s = 0; p->nshared && s < p->in->f->nstmts; s++) {
        const struct ptx_stmt *at = &p->in->f->stmts[s];
        n += at->kind == PTX_INSN &&
             (at->form->op->control == PTX_CALL || at->form->op->control == PTX_RETURN);
    }
    return n * p->nshared;
}

// Lists the returned registers, which an implicit return at the function's end needs too.
static void keep_returned(struct pass *p, struct arena *keep)
{
    struct regs *r = p->r;
    uint32_t at = (uint32_t)p->naccess;
    p->first = at;
    note_returned(p);
    r->nreturned = (uint32_t)p->naccess - at;
    r->returned = ARENA_ARRAY(keep, uint32_t, (size_t)r->nreturned + 1);
    for (uint32_t i = 0; i < r->nreturned; i++)
        r->returned[i] = r->access[at + i].reg;
    qsort(r->returned, r->nreturned, sizeof *r->returned, by_number);
    p->naccess = at;
}

static uint32_t first_reg(const struct ptx_var *var, uint32_t least)
{
    return var->space == PTX_SPACE_REG && var->first_reg < least ? var->first_reg : least;
}

// Returns the first register that the function itself declares: those before it are the module's.
static uint32_t first_own(const struct ptx_func *f)
{
    uint32_t least = f->nregs;
    for (uint32_t i = 0; i < f->nrets; i++)
        least = first_reg(&f->rets[i], least);
    for (uint32_t i = 0; i < f->nparams; i++)
        least = first_reg(&f->params[i], least);
    for (uint32_t s = 0; s < f->nstmts; s++)
        if (f->stmts[s].kind == PTX_DECL)
            least = first_reg(f->stmts[s].var, least);
    return least;
}

static int find_registers(struct pass *p, size_t limit, struct arena *keep, struct arena *scratch)
{
    struct regs *r = p->r;
    const struct ptx_func *f = p->in->f;
    size_t most = f->nrets;
    for (uint32_t s = 0; s < f->nstmts; s++)
        most += (size_t)f->stmts[s].nslots + 1;
    if (most > f->nregs)
        most = f->nregs;
    if (((size_t)f->nregs + most + f->nstmts) * sizeof *r->index > limit)
        return -E2BIG;
    r->index = ARENA_ARRAY(keep, uint32_t, (size_t)f->nregs + 1);
    r->reg = ARENA_ARRAY(scratch, uint32_t, most + 1);
    for (uint32_t s = 0; s < f->nstmts; s++)
        note_stmt(p, &f->stmts[s]);
    note_returned(p);
    number(r, keep);
    uint32_t own = first_own(f);
    while (p->nshared < r->n && r->reg[p->nshared] < own)
        p->nshared++;
    return 0;
}

static int fill(void *result, const void *input, struct arena *keep, struct arena *scratch)
{
    struct regs *r = result;
    struct pass p = {.r = r, .in = input};
    const struct ptx_func *f = p.in->f;
    size_t limit = p.in->limit ? p.in->limit : BUILD_LIMIT;
    int err = find_registers(&p, limit, keep, scratch);
    if (err)
        return err;
    uint64_t bound = p.naccess + count_shared(&p);
    if (bound > limit / sizeof *r->access || bound >= UINT32_MAX)
        return -E2BIG;
    r->access = ARENA_ARRAY(keep, struct regs_access, bound + 1);
    r->access_at = ARENA_ARRAY(keep, uint32_t, (size_t)f->nstmts + 1);
    p.last = ARENA_ARRAY(scratch, uint32_t, (size_t)r->n + 1);
    p.filling = true;
    p.naccess = 0;
    for (uint32_t s = 0; s < f->nstmts; s++) {
        p.first = r->access_at[s] = (uint32_t)p.naccess;
        note_stmt(&p, &f->stmts[s]);
    }
    r->access_at[f->nstmts] = (uint32_t)p.naccess;
    keep_returned(&p, keep);
    return 0;
}

int regs_build(const struct ptx_func *f, size_t limit, struct regs **out)
{
    struct regs *r = mem_zalloc(1, sizeof *r);
    if (!r)
        return -ENOMEM;
    struct input in = {f, limit};
    r->nstmts = f->nstmts;
    int err = build_run(fill, r, &in, &r->arena);
    if (err) {
        mem_free(r);
        return err;
    }
    *out = r;
    return 0;
}

void regs_free(struct regs *r)
{
    if (!r)
        return;
    arena_free(&r->arena);
    mem_free(r);
}

bool regs_valid(const struct regs *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (regs_index(r, r->reg[i]) != i || (i && r->reg[i - 1] >= r->reg[i]))
            return false;
    for (uint32_t s = 0; s < r->nstmts; s++) {
        struct regs_list list = regs_at(r, s);
        for (uint32_t i = 0; i < list.n; i++) {
            const struct regs_access *a = &list.at[i];
            if (a->reg >= r->n || !(a->reads || a->writes) || (a->partial && !a->writes))
                return false;
            for (uint32_t j = 0; j < i && i < 64; j++)
                if (list.at[j].reg == a->reg)
                    return false;
        }
    }
    return true;
}
