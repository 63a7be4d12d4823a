// SPDX-License-Identifier: MIT
// The edit session, and the new layout of a function's statements.
#include "ptx/edit.h"

#include <assert.h>
#include <stdlib.h>

#include "ptx/edit_state.h"

void edit_fail(struct edit *e, int error)
{
    if (!e->error)
        e->error = error;
}

void *edit_alloc(struct edit *e, size_t count, size_t size)
{
    // An arena without chunks returns NULL for 0 bytes, which would look like a failure.
    void *p = e->error ? NULL : arena_array(&e->m->arena, count ? count : 1, size);
    if (!p)
        edit_fail(e, -ENOMEM);
    return p;
}

int edit_error(const struct edit *e)
{
    return e->error;
}

// --- names -------------------------------------------------------------------------------------------------

// Finds the number in a name such as %__moat_12_. Returns false for other names.
static bool own_number(struct str name, uint64_t *number)
{
    struct str prefix = STR(EDIT_PREFIX);
    if (name.len && (name.ptr[0] == '%' || name.ptr[0] == '$'))
        name = str_skip(name, 1);
    if (!str_starts(name, prefix))
        return false;
    size_t i = prefix.len;
    for (*number = 0; i < name.len && i < prefix.len + 18 && name.ptr[i] >= '0' && name.ptr[i] <= '9'; i++)
        *number = *number * 10 + (uint64_t)(name.ptr[i] - '0');
    return i > prefix.len;
}

// Skips the numbers of names in the module: it may have been edited before.
static void skip_used_names(struct edit *e)
{
    uint64_t number;
    for (uint32_t i = 0; i < e->m->nsyms; i++)
        if (own_number(e->m->syms[i].name, &number) && number >= e->named)
            e->named = number + 1;
}

// The name ends in an underscore, because with a number at its end a register %a_1 and the range %a_<2> would
// clash.
struct str edit_name(struct edit *e, const char *before)
{
    char name[64];
    int len =
        snprintf(name, sizeof name, "%.16s" EDIT_PREFIX "%llu_", before, (unsigned long long)e->named++);
    char *kept = edit_alloc(e, (size_t)len, 1);
    if (!kept)
        return STR("");
    memcpy(kept, name, (size_t)len);
    return (struct str){kept, (size_t)len};
}

static bool grow_syms(struct edit *e)
{
    struct ptx_module *m = e->m;
    if (m->nsyms < e->syms_cap)
        return true;
    uint32_t cap = m->nsyms + m->nsyms / 2 + 64;
    struct ptx_sym *syms = cap > m->nsyms ? edit_alloc(e, cap, sizeof *syms) : NULL;
    if (!syms)
        return false;
    if (m->nsyms)
        memcpy(syms, m->syms, m->nsyms * sizeof *syms);
    m->syms = syms;
    e->syms_cap = cap;
    return true;
}

uint32_t edit_new_sym(struct edit *e, struct ptx_sym sym, bool global)
{
    struct ptx_module *m = e->m;
    if (!grow_syms(e))
        return 0;
    if (global && map_put(&m->globals, sym.name, m->nsyms)) {
        edit_fail(e, -ENOMEM);
        return 0;
    }
    sym.pos = PTX_NONE;
    m->syms[m->nsyms] = sym;
    return m->nsyms++;
}

// --- the session -------------------------------------------------------------------------------------------

int edit_open(struct ptx_module *m, struct diag_sink *sink, struct edit **out)
{
    struct edit *e = *out = mem_zalloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->m = m;
    e->sink = sink;
    e->syms_cap = m->nsyms;
    e->forms_cap = m->nforms;
    arena_init(&e->scratch, 0);
    m->arena.limit = 0;
    skip_used_names(e);
    return 0;
}

static void end_func(struct edit *e);

int edit_close(struct edit *e)
{
    if (!e)
        return 0;
    end_func(e);
    edit_place_items(e);
    int error = e->error;
    for (size_t i = 0; i < e->parsed.len; i++)
        ptx_free(e->parsed.items[i].m);
    map_free(&e->texts);
    vec_free(&e->parsed);
    vec_free(&e->items);
    vec_free(&e->declared);
    vec_free(&e->defined);
    vec_free(&e->vars);
    vec_free(&e->made);
    vec_free(&e->changes);
    vec_free(&e->late);
    arena_free(&e->scratch);
    mem_free(e);
    return error;
}

// --- what changes ------------------------------------------------------------------------------------------

void edit_func(struct edit *e, struct ptx_func *f)
{
    assert(f->has_body);
    end_func(e);
    e->f = f;
    e->nregs = f->nregs;
    e->vars.len = e->made.len = e->changes.len = e->late.len = 0;
}

uint32_t edit_new_regs(struct edit *e, enum ptx_type type, uint32_t n)
{
    assert(e->f && n);
    struct ptx_var *var = edit_alloc(e, 1, sizeof *var);
    struct str name = edit_name(e, "%");
    if (!var || e->error)
        return 0;
    *var = (struct ptx_var){.pos = PTX_NONE,
                            .space = PTX_SPACE_REG,
                            .type = (uint8_t)type,
                            .vec = 1,
                            .range = n > 1 ? n : 0,
                            .first_reg = e->nregs};
    var->sym = edit_new_sym(e, (struct ptx_sym){.name = name, .kind = PTX_SYM_VAR, .var = var}, false);
    if (vec_push(&e->vars, var))
        edit_fail(e, -ENOMEM);
    e->nregs += n;
    return var->first_reg;
}

uint32_t edit_new_reg(struct edit *e, enum ptx_type type)
{
    return edit_new_regs(e, type, 1);
}

uint32_t edit_new_label(struct edit *e)
{
    struct str name = edit_name(e, "$");
    return edit_new_sym(e, (struct ptx_sym){.name = name, .kind = PTX_SYM_LABEL, .stmt = PTX_NONE}, false);
}

void edit_change_at(struct edit *e, uint64_t key, uint32_t first, uint32_t count)
{
    struct edit_change c = {key, first, count};
    size_t n = e->changes.len;
    bool in_order = !n || e->changes.items[n - 1].key <= key;
    if (in_order ? vec_push(&e->changes, c) : vec_push(&e->late, c))
        edit_fail(e, -ENOMEM);
}

static void place_at(struct edit *e, uint64_t key, struct ptx_stmt s)
{
    if (e->error)
        return;
    if (vec_push(&e->made, s))
        edit_fail(e, -ENOMEM);
    else
        edit_change_at(e, key, (uint32_t)e->made.len - 1, 1);
}

// Puts a statement before the statement `at`.
static void place(struct edit *e, uint32_t at, struct ptx_stmt s)
{
    place_at(e, 4 * (uint64_t)at + EDIT_KEY_BEFORE, s);
}

void edit_place_label(struct edit *e, uint32_t stmt, uint32_t label)
{
    assert(e->f && stmt <= e->f->nstmts);
    place(e, stmt, (struct ptx_stmt){.kind = PTX_LABEL, .pos = PTX_NONE, .guard = PTX_NONE, .sym = label});
}

void edit_place_label_after(struct edit *e, uint32_t stmt, uint32_t label)
{
    assert(e->f && stmt < e->f->nstmts);
    place_at(e, 4 * (uint64_t)stmt + EDIT_KEY_AFTER,
             (struct ptx_stmt){.kind = PTX_LABEL, .pos = PTX_NONE, .guard = PTX_NONE, .sym = label});
}

uint32_t edit_new_local(struct edit *e, uint32_t bytes)
{
    assert(e->f && bytes);
    struct ptx_var *var = edit_alloc(e, 1, sizeof *var);
    uint64_t *dims = edit_alloc(e, 1, sizeof *dims);
    struct str name = edit_name(e, "");
    if (!var || !dims || e->error)
        return 0;
    *dims = bytes;
    *var = (struct ptx_var){.pos = PTX_NONE,
                            .space = PTX_SPACE_LOCAL,
                            .type = PTX_B8,
                            .vec = 1,
                            .align = 8,
                            .ndims = 1,
                            .dims = dims};
    var->sym = edit_new_sym(e, (struct ptx_sym){.name = name, .kind = PTX_SYM_VAR, .var = var}, false);
    place(e, 0, (struct ptx_stmt){.kind = PTX_DECL, .pos = PTX_NONE, .guard = PTX_NONE, .var = var});
    return var->sym;
}

void edit_delete(struct edit *e, uint32_t stmt)
{
    assert(e->f && stmt < e->f->nstmts);
    edit_change_at(e, 4 * (uint64_t)stmt + EDIT_KEY_DELETE, 0, 0);
}

void edit_set(struct edit *e, uint32_t stmt, unsigned slot, struct ptx_operand operand)
{
    assert(e->f && stmt < e->f->nstmts);
    struct ptx_stmt *s = &e->f->stmts[stmt];
    assert(s->kind == PTX_INSN && slot < s->nslots);
    assert(!ptx_is_group(&s->operands[slot]) && !ptx_is_group(&operand));
    s->operands[slot] = operand;
    e->set = true;
}

void edit_add_args(struct edit *e, uint32_t stmt, unsigned nargs, const struct ptx_operand *args)
{
    assert(e->f && stmt < e->f->nstmts);
    struct ptx_stmt *s = &e->f->stmts[stmt];
    assert(s->kind == PTX_INSN && s->form->id == PTX_OP_CALL);
    const struct ptx_operand *list = ptx_operand(s, 2);
    assert(list && list->kind == PTX_LIST);
    size_t at = (size_t)(list - s->operands), end = at + 1 + list->span, n = s->nslots + (size_t)nargs;
    if (n > UINT16_MAX) {
        edit_fail(e, -E2BIG);
        return;
    }
    struct ptx_operand *operands = edit_alloc(e, n, sizeof *operands);
    if (!operands)
        return;
    memcpy(operands, s->operands, end * sizeof *operands);
    memcpy(operands + end, args, nargs * sizeof *operands);
    if (end < s->nslots)
        memcpy(operands + end + nargs, s->operands + end, (s->nslots - end) * sizeof *operands);
    operands[at].span = (uint16_t)(operands[at].span + nargs);
    operands[at].value += nargs;
    s->operands = operands;
    s->nslots = (uint16_t)n;
    e->set = true;
}

bool edit_is_exit(const struct ptx_stmt *s)
{
    return s->kind == PTX_INSN && (s->form->op->control == PTX_RETURN || s->form->op->control == PTX_EXIT);
}

bool edit_falls_off(const struct ptx_func *f)
{
    for (uint32_t i = f->nstmts; i-- > 0;) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind == PTX_LABEL || s->kind == PTX_VERBATIM)
            return true;
        if (s->kind != PTX_INSN)
            continue;
        uint8_t control = s->form->op->control;
        bool stays = edit_is_exit(s) || control == PTX_BRANCH || control == PTX_SWITCH || control == PTX_TRAP;
        return !stays || s->guard != PTX_NONE;
    }
    return true;
}

void edit_insert_exits(struct edit *e, const char *text, unsigned nargs, const struct ptx_operand *args)
{
    const struct ptx_func *f = e->f;
    for (uint32_t i = 0; i < f->nstmts && !e->error; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (!edit_is_exit(s))
            continue;
        if (s->guard == PTX_NONE) {
            edit_insert(e, EDIT_BEFORE, i, text, nargs, args);
            continue;
        }
        uint32_t past = edit_new_label(e);
        edit_before(e, i, "@!%0 bra %1;", edit_guard(s), edit_sym(past));
        edit_insert(e, EDIT_BEFORE, i, text, nargs, args);
        edit_place_label(e, i, past);
    }
    if (edit_falls_off(f))
        edit_insert(e, EDIT_BEFORE, f->nstmts, text, nargs, args);
}

// --- laying out --------------------------------------------------------------------------------------------

// Orders changes by key, and those of one key by age: later statements have larger indices in `made`.
static int by_key(const void *a, const void *b)
{
    const struct edit_change *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

// Takes the next change from the two sorted lists. Returns NULL after the last.
static const struct edit_change *next_change(const struct edit *e, size_t *in_order, size_t *late)
{
    const struct edit_change *a = *in_order < e->changes.len ? &e->changes.items[*in_order] : NULL;
    const struct edit_change *b = *late < e->late.len ? &e->late.items[*late] : NULL;
    if (a && (!b || a->key <= b->key)) {
        ++*in_order;
        return a;
    }
    if (b)
        ++*late;
    return b;
}

static struct ptx_stmt *put(struct ptx_stmt *to, const struct ptx_stmt *from, size_t n)
{
    if (n)
        memcpy(to, from, n * sizeof *to);
    return to + n;
}

// Writes the old statements and the changes in order. Returns the end of the output.
static struct ptx_stmt *lay_out(struct edit *e, struct ptx_stmt *to)
{
    size_t in_order = 0, late = 0;
    uint64_t done = 0;  // number of old statements written or deleted
    for (size_t i = 0; i < e->vars.len; i++)
        *to++ =
            (struct ptx_stmt){.kind = PTX_DECL, .pos = PTX_NONE, .guard = PTX_NONE, .var = e->vars.items[i]};
    for (const struct edit_change *c; (c = next_change(e, &in_order, &late));) {
        uint64_t upto = c->key / 4 + (c->key % 4 == EDIT_KEY_AFTER);
        if (upto > done) {
            to = put(to, e->f->stmts + done, upto - done);
            done = upto;
        }
        if (c->key % 4 == EDIT_KEY_DELETE)
            done = upto + 1;
        to = put(to, e->made.items + c->first, c->count);
    }
    return put(to, e->f->stmts + done, e->f->nstmts - done);
}

static void place_labels(struct ptx_module *m, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_LABEL)
            m->syms[f->stmts[i].sym].stmt = i;
}

static void keep_vars(struct edit *e)
{
    struct ptx_func *f = e->f;
    if (!e->vars.len)
        return;
    struct ptx_var **vars = edit_alloc(e, f->nreg_vars + e->vars.len, sizeof *vars);
    if (!vars)
        return;
    if (f->nreg_vars)
        memcpy(vars, f->reg_vars, f->nreg_vars * sizeof *vars);
    memcpy(vars + f->nreg_vars, e->vars.items, e->vars.len * sizeof *vars);
    f->reg_vars = vars;
    f->nreg_vars += (uint32_t)e->vars.len;
    f->nregs = e->nregs;
}

static void end_func(struct edit *e)
{
    struct ptx_func *f = e->f;
    if (f && (e->changes.len || e->vars.len || e->set))
        f->nedits++;
    e->set = false;
    if (!f || e->error || (!e->changes.len && !e->vars.len)) {
        e->f = NULL;
        return;
    }
    if (e->late.len)
        qsort(e->late.items, e->late.len, sizeof *e->late.items, by_key);
    size_t n = f->nstmts + e->vars.len + e->made.len;
    struct ptx_stmt *stmts = n <= UINT32_MAX ? edit_alloc(e, n, sizeof *stmts) : NULL;
    keep_vars(e);
    if (stmts && !e->error) {
        f->nstmts = (uint32_t)(lay_out(e, stmts) - stmts);
        f->stmts = stmts;
        place_labels(e->m, f);
    }
    e->f = NULL;
}
