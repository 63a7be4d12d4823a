// SPDX-License-Identifier: MIT
// Lookups that are kept: in a loop that loads the same pointer in each round, as one that calls a function of
// an object by its virtual table, the lookup of the round before still holds. The pointer that was looked up
// last stays in a register beside its bounds, and an equal one has the same. This is done only in modules
// that call malloc, where a lookup is a call.
//
// What holds ends where something may free memory, or order what other threads have freed: at barriers,
// fences, atomics, loads that wait, and calls that may lead to one. Behind these, nothing is kept.
//
// Values of which no two are in use at a time, and which are loaded from one place, as copies of an unrolled
// round do, share registers.
#include <errno.h>
#include <string.h>

#include "flow/loops.h"
#include "pass/pass_check_state.h"

// No pointer is this number.
static const int64_t NOTHING = -0x5A173D0F2C9B4E61;

enum { MOST_MEMOS = 4 };

// --- what ends it ------------------------------------------------------------------------------------------

static bool same_sizes(const struct ptx_var *a, uint32_t n, const struct ptx_var *b, uint32_t m)
{
    for (uint32_t i = 0; i < n && n == m; i++)
        if (ptx_var_size(&a[i]) != ptx_var_size(&b[i]))
            return false;
    return n == m;
}

// Whether a call through a pointer may reach a function: others have other parameters.
static bool may_reach(const struct ptx_module *m, const struct ptx_stmt *call, const struct ptx_func *f)
{
    const struct ptx_operand *o = ptx_operand(call, 3);
    const struct ptx_sym *sym = o && o->kind == PTX_SYM ? ptx_sym(m, o->id) : NULL;
    if (!sym || sym->kind != PTX_SYM_PROTO)
        return true;
    return same_sizes(sym->proto->rets, sym->proto->nrets, f->rets, f->nrets) &&
           same_sizes(sym->proto->params, sym->proto->nparams, f->params, f->nparams);
}

// A pointer that is to none of the text's functions is to one of another text.
bool check_reaches_any(const struct checking *k, const struct ptx_stmt *s, const bool *of)
{
    bool own = false;
    for (uint32_t i = 0; i < k->c->result->nfuncs && !k->joined; i++) {
        bool may = k->taken[k->c->funcs[i]->sym] && may_reach(k->c->m, s, k->c->funcs[i]);
        if (may && of[i])
            return true;
        own |= may;
    }
    return !own;
}

static bool call_disturbs(const struct checking *k, const struct ptx_stmt *s)
{
    uint32_t to = check_callee(k, s);
    if (to != PTX_NONE)
        return k->disturbs[to];
    return ptx_operand(s, 1)->kind != PTX_REG || check_reaches_any(k, s, k->disturbs);
}

static bool disturbs(const struct checking *k, const struct ptx_func *f, const struct ptx_stmt *s)
{
    struct ptx_mem mem[PTX_MAX_MEM];
    if (s->kind != PTX_INSN)
        return s->kind == PTX_VERBATIM;
    if (s->form->id == PTX_OP_CALL)
        return call_disturbs(k, s);
    if (s->form->id == PTX_OP_UNKNOWN || s->form->odd || check_waits(s) ||
        s->form->flags & (PTX_WARP | PTX_ASYNC | PTX_IS_ATOMIC))
        return true;
    if (s->form->id == PTX_OP_LD || s->form->id == PTX_OP_LDU || s->form->id == PTX_OP_ST)
        return false;
    bool goes_on = s->form->op->control != PTX_FALLS && s->form->op->control != PTX_BARRIER;
    return ptx_stmt_mem(f, s, mem) || (s->form->flags & PTX_EFFECT && !goes_on);
}

static bool any_disturbs(const struct checking *k, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (disturbs(k, f, &f->stmts[i]))
            return true;
    return !f->has_body;
}

// Whether an item is a variable or a function of another text.
static bool is_of_another(const struct ptx_module *m, const struct ptx_item *item)
{
    if (item->kind == PTX_ITEM_VAR)
        return item->var->linkage == PTX_EXTERN &&
               ptx_space_is((enum ptx_space)item->var->space) != PTX_SPACE_SHARED;
    return item->kind == PTX_ITEM_FUNC && item->func->linkage == PTX_EXTERN &&
           !check_is_systems(ptx_func_name(m, item->func));
}

// Whether other texts may be linked into the module, whose functions calls through pointers reach: one that
// defines functions for others, or needs what others define.
static bool is_joined(const struct checking *k)
{
    for (uint32_t i = 0; i < k->c->result->nfuncs; i++) {
        const struct ptx_func *f = k->c->funcs[i];
        if (!f->is_entry && (f->linkage == PTX_VISIBLE || f->linkage == PTX_WEAK))
            return true;
    }
    for (uint32_t i = 0; i < k->c->m->nitems; i++)
        if (is_of_another(k->c->m, &k->c->m->items[i]))
            return true;
    return false;
}

int check_find_disturbing(struct checking *k)
{
    uint32_t n = k->c->result->nfuncs;
    k->disturbs = ARENA_ARRAY(&k->c->m->arena, bool, n + 1u);
    k->taken = ARENA_ARRAY(&k->c->m->arena, bool, k->c->m->nsyms + 1u);
    if (!k->disturbs || !k->taken)
        return -ENOMEM;
    memset(k->disturbs, 0, n + 1u);
    memset(k->taken, 0, k->c->m->nsyms + 1u);
    if (k->find == PTX_NONE)
        return 0;
    check_find_taken(k->c->m, k->taken);
    k->joined = is_joined(k);
    for (bool again = true; again;) {
        again = false;
        for (uint32_t i = 0; i < n; i++)
            if (!k->disturbs[i] && any_disturbs(k, k->c->funcs[i]))
                again = k->disturbs[i] = true;
    }
    return 0;
}

// --- which lookups are kept --------------------------------------------------------------------------------

// A value whose lookup may be kept. If `local`, its bounds are used in its block only, up to statement `end`.
struct candidate {
    uint32_t value, place, end;
    bool local;
};

static bool is_candidate(const struct check_func *k, const struct loops *loops, uint32_t v)
{
    const struct reach_value *value = &k->reach->value.items[v];
    struct roots_of root = k->roots->of[v], mapped;
    if (!k->bounds[v].needed || root.kind != ROOTS_VALUE || root.id != v || value->kind != REACH_DEF ||
        value->partial)
        return false;
    const struct ptx_stmt *s = &k->f->stmts[value->place];
    uint32_t block = k->cfg->block_of[value->place], loop = loops->inner[block];
    if (s->form->id != PTX_OP_LD || s->operands[0].kind != PTX_REG || loop == GRAPH_NONE ||
        check_slot_of(k, v) != CHECK_MOST_SLOTS || check_pass_of(k, v) || check_is_mapped(k, root, &mapped))
        return false;
    for (uint32_t i = 0; i < loops->loops[loop].count; i++) {
        const struct cfg_block *b = &k->cfg->blocks[loops->nodes[loops->loops[loop].first + i]];
        for (uint32_t stmt = b->first; stmt < b->last; stmt++)
            if (disturbs(k->k, k->f, &k->f->stmts[stmt]))
                return false;
    }
    return true;
}

static void use(const struct check_func *k, struct candidate *c, struct roots_of root, uint32_t first,
                uint32_t last)
{
    if (root.kind != ROOTS_VALUE || root.id != c->value)
        return;
    c->local &= k->cfg->block_of[c->place] == k->cfg->block_of[first] && first + 1 > c->place;
    c->end = last > c->end ? last : c->end;
}

// Finds where the bounds of a candidate are used.
static void find_uses(const struct check_func *k, struct candidate *c)
{
    c->local = true;
    c->end = c->place;
    for (size_t i = 0; i < k->segments.len; i++) {
        const struct check_segment *g = &k->segments.items[i];
        for (uint32_t r = 0; r < g->nranges; r++)
            use(k, c, k->ranges.items[g->first_range + r].root, k->ranges.items[g->first_range + r].at,
                g->last);
        for (uint32_t a = 0; a < g->naccesses; a++)
            use(k, c, k->accesses.items[g->first_access + a].root,
                k->accesses.items[g->first_access + a].stmt, g->last);
    }
    for (size_t i = 0; i < k->wholes.len; i++)
        for (uint32_t a = 0; a < k->wholes.items[i].n; a++)
            use(k, c, k->whole_accesses.items[k->wholes.items[i].first + a].root, k->wholes.items[i].stmt,
                k->wholes.items[i].stmt);
    for (size_t i = 0; i < k->passes.len; i++)
        use(k, c, k->passes.items[i].root, k->passes.items[i].store, k->passes.items[i].call);
    for (uint32_t v = 0; v < k->reach->ndefs; v++)  // a choice or a sum may use them anywhere
        if (k->bounds[v].needed && k->roots->of[v].kind == ROOTS_WEB)
            c->local = false;
}

// Whether a value is loaded from the same place as the last one of a memo: from the same register's value, or
// from one that shares the registers of that one's.
static bool is_alike(const struct check_func *k, uint32_t v, uint32_t of)
{
    const struct reach_value *x = &k->reach->value.items[v], *y = &k->reach->value.items[of];
    const struct ptx_operand *a = ptx_operand(&k->f->stmts[x->place], 1),
                             *b = ptx_operand(&k->f->stmts[y->place], 1);
    if (a->kind != PTX_ADDR || b->kind != PTX_ADDR || a->sub != PTX_BASE_REG || b->sub != PTX_BASE_REG ||
        a->value != b->value)
        return false;
    const struct regs *regs = k->reach->regs;
    uint32_t p = reach_read(k->reach, x->place, regs_index(regs, a->id)),
             q = reach_read(k->reach, y->place, regs_index(regs, b->id));
    return p != REACH_NONE && q != REACH_NONE &&
           (p == q || (k->memo_of[p] != PTX_NONE && k->memo_of[p] == k->memo_of[q]));
}

static bool overlap(const struct check_func *k, const struct candidate *a, const struct candidate *b)
{
    if (!a->local || !b->local)
        return true;
    return k->cfg->block_of[a->place] == k->cfg->block_of[b->place] && a->place <= b->end &&
           b->place <= a->end;
}

struct finding {
    struct check_func *k;
    VEC(struct candidate) found;  // those that have a memo
};

// Returns the memo whose registers a candidate may share, and which it is alike; a new one if there is none
// and room for one; else PTX_NONE.
static uint32_t choose(struct finding *f, const struct candidate *c)
{
    struct check_func *k = f->k;
    for (uint32_t m = 0; m < k->memos.len; m++) {
        bool alike = false, apart = true;
        for (size_t i = 0; i < f->found.len; i++) {
            const struct candidate *other = &f->found.items[i];
            if (k->memo_of[other->value] != m)
                continue;
            alike |= is_alike(k, c->value, other->value);
            apart &= !overlap(k, c, other);
        }
        if (alike && apart)
            return m;
    }
    if (k->memos.len == MOST_MEMOS || vec_push(&k->memos, (struct check_memo){.last = PTX_NONE}))
        return PTX_NONE;
    return (uint32_t)k->memos.len - 1;
}

int check_find_memos(struct check_func *k)
{
    struct finding f = {.k = k};
    const struct loops *loops;
    k->memo_of = ARENA_ARRAY(&k->arena, uint32_t, k->reach->value.len + 1u);
    if (!k->memo_of)
        return -ENOMEM;
    memset(k->memo_of, 0xFF, (k->reach->value.len + 1u) * sizeof *k->memo_of);
    if (k->k->find == PTX_NONE || k->cfg->uncertain)
        return 0;
    int err = flow_loops(&k->flow, &loops);
    for (uint32_t v = 0; v < k->reach->ndefs && !err; v++) {
        struct candidate c = {.value = v, .place = k->reach->value.items[v].place};
        if (!is_candidate(k, loops, v))
            continue;
        find_uses(k, &c);
        k->memo_of[v] = choose(&f, &c);
        if (k->memo_of[v] != PTX_NONE)
            err = vec_push(&f.found, c);
    }
    vec_free(&f.found);
    return err;
}

// --- code --------------------------------------------------------------------------------------------------

static void forget(struct check_func *k, enum edit_place place, uint32_t at)
{
    for (size_t i = 0; i < k->memos.len; i++)
        edit_insert(k->k->c->edit, place, at, "mov.u64 %0, %1;",
                    EDIT_ARGS(edit_reg(k->memos.items[i].last), edit_imm(NOTHING)));
}

void check_memo_entry(struct check_func *k)
{
    struct edit *e = k->k->c->edit;
    for (size_t i = 0; i < k->memos.len; i++) {
        struct check_memo *m = &k->memos.items[i];
        m->last = edit_new_reg(e, PTX_U64);
        m->base = edit_new_reg(e, PTX_U64);
        m->size = edit_new_reg(e, PTX_U64);
    }
    forget(k, EDIT_ENTRY, 0);
}

void check_memo_after(struct check_func *k, uint32_t stmt, enum edit_place place, uint32_t at)
{
    if (k->memos.len && disturbs(k->k, k->f, &k->f->stmts[stmt]))
        forget(k, place, at);
}
