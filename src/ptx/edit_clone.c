// SPDX-License-Identifier: MIT
// Copies of functions and of statements.
//
// A copy of a function has symbols of its own for everything that is declared in it, because a symbol leads
// to one declaration, and a label to one statement. Labels get new names, which debug sections do not refer
// to.
#include <assert.h>

#include "ptx/edit_state.h"

// A function that is being copied. syms[s - first]: the copy of symbol s, PTX_NONE if there is none. What a
// function declares has neighbouring symbols, so the array is small.
struct cloning {
    struct edit *e;
    uint32_t first, nsyms, *syms;
};

// Returns the copy's symbol; a symbol from outside of the function stays.
static uint32_t moved(const struct cloning *c, uint32_t sym)
{
    uint32_t i = sym - c->first;
    return i < c->nsyms && c->syms[i] != PTX_NONE ? c->syms[i] : sym;
}

static void clone_symbol(struct cloning *c, uint32_t old, struct ptx_sym sym)
{
    sym.name = sym.kind == PTX_SYM_LABEL ? edit_name(c->e, "$") : c->e->m->syms[old].name;
    uint32_t id = edit_new_sym(c->e, sym, false);
    assert(old - c->first < c->nsyms);
    c->syms[old - c->first] = id;
}

static void clone_var(struct cloning *c, struct ptx_var *to, const struct ptx_var *from)
{
    *to = *from;
    if (from->sym == PTX_NONE)
        return;
    clone_symbol(c, from->sym, (struct ptx_sym){.kind = PTX_SYM_VAR, .var = to});
    to->sym = moved(c, from->sym);
}

static struct ptx_var *clone_vars(struct cloning *c, const struct ptx_var *from, uint32_t n)
{
    struct ptx_var *to = edit_alloc(c->e, n, sizeof *to);
    for (uint32_t i = 0; to && i < n; i++)
        clone_var(c, &to[i], &from[i]);
    return to;
}

// --- statements --------------------------------------------------------------------------------------------

// Copies what a statement declares, so that every symbol is known before statements are copied that use it.
static void clone_declaration(struct cloning *c, const struct ptx_stmt *s, struct ptx_stmt *to)
{
    struct edit *e = c->e;
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_LABEL: clone_symbol(c, s->sym, (struct ptx_sym){.kind = PTX_SYM_LABEL, .stmt = PTX_NONE}); break;
    case PTX_DECL:
        to->var = edit_alloc(e, 1, sizeof *to->var);
        if (to->var)
            clone_var(c, to->var, s->var);
        break;
    case PTX_TARGETS:
        to->targets = edit_alloc(e, 1, sizeof *to->targets);
        if (!to->targets)
            return;
        *to->targets = *s->targets;
        clone_symbol(c, s->targets->sym, (struct ptx_sym){.kind = PTX_SYM_TARGETS, .targets = to->targets});
        break;
    case PTX_PROTOTYPE:
        to->proto = edit_alloc(e, 1, sizeof *to->proto);
        if (!to->proto)
            return;
        *to->proto = *s->proto;
        clone_symbol(c, s->proto->sym, (struct ptx_sym){.kind = PTX_SYM_PROTO, .proto = to->proto});
        to->proto->rets = clone_vars(c, s->proto->rets, s->proto->nrets);
        to->proto->params = clone_vars(c, s->proto->params, s->proto->nparams);
        break;
    default: break;
    }
}

static struct ptx_operand *copy_operands(struct edit *e, const struct ptx_stmt *s)
{
    struct ptx_operand *to = edit_alloc(e, s->nslots, sizeof *to);
    if (to && s->nslots)
        memcpy(to, s->operands, s->nslots * sizeof *to);
    return to;
}

static void clone_insn(const struct cloning *c, struct ptx_stmt *s)
{
    s->operands = copy_operands(c->e, s);
    for (uint32_t i = 0; s->operands && i < s->nslots; i++) {
        struct ptx_operand *o = &s->operands[i];
        if (o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM))
            o->id = moved(c, o->id);
    }
}

static void clone_targets(const struct cloning *c, struct ptx_targets *t)
{
    uint32_t *targets = edit_alloc(c->e, t->ntargets, sizeof *targets);
    for (uint32_t i = 0; targets && i < t->ntargets; i++)
        targets[i] = moved(c, t->targets[i]);
    t->targets = targets;
    t->sym = moved(c, t->sym);
}

static void clone_stmt(const struct cloning *c, uint32_t at, struct ptx_stmt *s)
{
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_INSN: clone_insn(c, s); break;
    case PTX_LABEL:
        s->sym = moved(c, s->sym);
        c->e->m->syms[s->sym].stmt = at;
        break;
    case PTX_TARGETS: clone_targets(c, s->targets); break;
    case PTX_PROTOTYPE: s->proto->sym = moved(c, s->proto->sym); break;
    default: break;
    }
}

// --- functions ---------------------------------------------------------------------------------------------

static void clone_registers(const struct cloning *c, const struct ptx_func *f, struct ptx_func *to)
{
    to->reg_vars = edit_alloc(c->e, f->nreg_vars, sizeof(struct ptx_var *));
    for (uint32_t i = 0; to->reg_vars && i < f->nreg_vars; i++)
        to->reg_vars[i] = c->e->m->syms[moved(c, f->reg_vars[i]->sym)].var;
}

static void clone_body(struct cloning *c, const struct ptx_func *f, struct ptx_func *to)
{
    to->stmts = edit_alloc(c->e, f->nstmts, sizeof *to->stmts);
    for (uint32_t i = 0; to->stmts && i < f->nstmts && !c->e->error; i++) {
        to->stmts[i] = f->stmts[i];
        clone_declaration(c, &f->stmts[i], &to->stmts[i]);
    }
    for (uint32_t i = 0; to->stmts && i < f->nstmts && !c->e->error; i++)
        clone_stmt(c, i, &to->stmts[i]);
    if (!c->e->error)
        clone_registers(c, f, to);
}

// The range of symbols that something declares.
struct range {
    uint32_t low, high;
};

static void extend(struct range *r, uint32_t sym)
{
    if (sym == PTX_NONE)
        return;
    r->low = sym < r->low ? sym : r->low;
    r->high = sym > r->high ? sym : r->high;
}

static void extend_vars(struct range *r, const struct ptx_var *vars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        extend(r, vars[i].sym);
}

static void extend_stmt(struct range *r, const struct ptx_stmt *s)
{
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_LABEL: extend(r, s->sym); break;
    case PTX_DECL: extend(r, s->var->sym); break;
    case PTX_TARGETS: extend(r, s->targets->sym); break;
    case PTX_PROTOTYPE:
        extend(r, s->proto->sym);
        extend_vars(r, s->proto->rets, s->proto->nrets);
        extend_vars(r, s->proto->params, s->proto->nparams);
        break;
    default: break;
    }
}

static bool begin(struct cloning *c, struct edit *e, const struct ptx_func *f)
{
    struct range r = {UINT32_MAX, 0};
    extend_vars(&r, f->rets, f->nrets);
    extend_vars(&r, f->params, f->nparams);
    for (uint32_t i = 0; i < f->nstmts; i++)
        extend_stmt(&r, &f->stmts[i]);
    *c = (struct cloning){.e = e, .first = r.low, .nsyms = r.low <= r.high ? r.high - r.low + 1 : 0};
    c->syms = e->error ? NULL : arena_array(&e->scratch, c->nsyms + 1u, sizeof *c->syms);
    if (!c->syms) {
        edit_fail(e, -ENOMEM);
        return false;
    }
    memset(c->syms, 0xFF, c->nsyms * sizeof *c->syms);
    return true;
}

// Its parameters are its own.
void edit_declare(struct edit *e, const struct ptx_func *f)
{
    struct cloning c;
    struct ptx_func *to = begin(&c, e, f) ? edit_alloc(e, 1, sizeof *to) : NULL;
    if (!to)
        return;
    *to = *f;
    to->has_body = false;
    to->nstmts = to->nregs = to->nreg_vars = 0;
    to->ndirectives = f->is_entry ? 0 : f->ndirectives;  // those of a kernel belong to its definition
    to->rets = clone_vars(&c, f->rets, f->nrets);
    to->params = clone_vars(&c, f->params, f->nparams);
    if (vec_push(&e->declared, (struct ptx_item){.kind = PTX_ITEM_FUNC, .pos = PTX_NONE, .func = to}))
        edit_fail(e, -ENOMEM);
}

struct ptx_func *edit_clone_func(struct edit *e, const struct ptx_func *f, struct str name)
{
    struct cloning c;
    assert(f->has_body && e->f != f);
    if (!e->error && map_get(&e->m->globals, name) != MAP_NONE)
        edit_fail(e, -EEXIST);
    struct ptx_func *to = begin(&c, e, f) ? edit_alloc(e, 1, sizeof *to) : NULL;
    struct str kept = to ? arena_str(&e->m->arena, name) : STR("");
    if (!to || !kept.ptr) {
        edit_fail(e, -ENOMEM);
        return NULL;
    }
    *to = *f;
    to->pos = PTX_NONE;
    to->sym = edit_new_sym(e, (struct ptx_sym){.name = kept, .kind = PTX_SYM_FUNC, .func = to}, true);
    to->rets = clone_vars(&c, f->rets, f->nrets);
    to->params = clone_vars(&c, f->params, f->nparams);
    if (!e->error)
        clone_body(&c, f, to);
    if (!f->is_entry && !e->error)
        edit_declare(e, to);
    if (vec_push(&e->defined, (struct ptx_item){.kind = PTX_ITEM_FUNC, .pos = PTX_NONE, .func = to}))
        edit_fail(e, -ENOMEM);
    return e->error ? NULL : to;
}

// --- one statement -----------------------------------------------------------------------------------------

static void put_copy(struct edit *e, uint32_t to, struct ptx_stmt s)
{
    if (!e->error && vec_push(&e->made, s))
        edit_fail(e, -ENOMEM);
    if (!e->error)
        edit_change_at(e, 4 * (uint64_t)to + EDIT_KEY_BEFORE, (uint32_t)e->made.len - 1, 1);
}

void edit_copy_stmt(struct edit *e, uint32_t to, uint32_t stmt)
{
    assert(e->f && to <= e->f->nstmts && stmt < e->f->nstmts);
    struct ptx_stmt s = e->f->stmts[stmt];
    assert(s.kind == PTX_INSN || s.kind == PTX_LOC);
    if (s.kind == PTX_INSN)
        s.operands = copy_operands(e, &s);
    put_copy(e, to, s);
}

void edit_copy_guarded(struct edit *e, uint32_t to, uint32_t stmt, uint32_t guard)
{
    assert(e->f && to <= e->f->nstmts && stmt < e->f->nstmts);
    struct ptx_stmt s = e->f->stmts[stmt];
    assert(s.kind == PTX_INSN);
    s.operands = copy_operands(e, &s);
    s.guard = guard;
    s.guard_negated = false;
    put_copy(e, to, s);
}

void edit_copy_renamed(struct edit *e, uint32_t to, uint32_t stmt, edit_rename_fn *rename, void *ctx)
{
    assert(e->f && to <= e->f->nstmts && stmt < e->f->nstmts);
    struct ptx_stmt s = e->f->stmts[stmt];
    assert(s.kind == PTX_INSN && s.guard == PTX_NONE);
    const struct ptx_operand *second = s.nslots ? ptx_next(s.operands) : s.operands;
    uint32_t written = (uint32_t)(second - s.operands);
    s.operands = copy_operands(e, &s);
    for (uint32_t i = 0; s.operands && i < s.nslots; i++) {
        struct ptx_operand *o = &s.operands[i];
        if (o->kind == PTX_REG || (o->kind == PTX_ADDR && o->sub == PTX_BASE_REG))
            o->id = rename(ctx, o->id, i < written);
    }
    put_copy(e, to, s);
}
