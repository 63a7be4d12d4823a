// SPDX-License-Identifier: MIT
// The checked variants of a module's kernels as a module of their own: see pass_variants.h.
#include "pass/pass_variants.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/vec.h"
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "pass/pass_cold.h"

enum { NAME = 64, MOST_VARIABLES = 4096 };

// Functions that are reached from some kernels.
struct kept {
    const struct ptx_module *m;
    bool *keep;  // by symbol
    VEC(struct ptx_func *) work;
};

static bool is_ours(struct str name)
{
    return str_starts(name, STR("moat_")) || str_starts(name, STR(EDIT_PREFIX));
}

static struct ptx_func *func_of(const struct ptx_module *m, uint32_t sym)
{
    const struct ptx_sym *s = sym < m->nsyms ? ptx_sym_behind_alias(m, sym) : NULL;
    return s && s->kind == PTX_SYM_FUNC ? s->func : NULL;
}

static int keep(struct kept *r, struct ptx_func *f)
{
    if (r->keep[f->sym])
        return 0;
    r->keep[f->sym] = true;
    return f->has_body ? vec_push(&r->work, f) : 0;
}

// Returns the function that a statement calls by name, or NULL.
static struct ptx_func *callee_of(const struct ptx_module *m, const struct ptx_stmt *s)
{
    const struct ptx_operand *callee =
        s->kind == PTX_INSN && s->form->id == PTX_OP_CALL ? ptx_operand(s, 1) : NULL;
    return callee && callee->kind == PTX_SYM ? func_of(m, callee->id) : NULL;
}

static int open_kept(struct kept *r, struct ptx_module *m)
{
    *r = (struct kept){.m = m, .keep = ARENA_ARRAY(&m->arena, bool, m->nsyms + 1u)};
    if (!r->keep)
        return -ENOMEM;
    memset(r->keep, 0, m->nsyms + 1u);
    return 0;
}

// Keeps the kernels that are wanted, and all that they call. `wanted` is called with ctx.
static int follow(struct kept *r, bool (*wanted)(const void *ctx, struct str name), const void *ctx)
{
    int err = 0;
    for (uint32_t i = 0; i < r->m->nitems && !err; i++) {
        struct ptx_func *f = r->m->items[i].kind == PTX_ITEM_FUNC ? r->m->items[i].func : NULL;
        if (f && f->is_entry && f->has_body && wanted(ctx, ptx_func_name(r->m, f)))
            err = keep(r, f);
    }
    for (size_t i = 0; i < r->work.len && !err; i++) {
        const struct ptx_func *f = r->work.items[i];
        for (uint32_t k = 0; k < f->nstmts && !err; k++) {
            struct ptx_func *callee = callee_of(r->m, &f->stmts[k]);
            err = callee ? keep(r, callee) : 0;
        }
    }
    return err;
}

static void close_kept(struct kept *r)
{
    vec_free(&r->work);
}

// --- may the variants leave? -------------------------------------------------------------------------------

struct variants {
    struct pass_context *c;
    struct kept reach;
    uint32_t *row;  // by symbol: index of the variable in pass_check.variables; PTX_NONE: it has none
    uint32_t table;
    const char *why;  // the variants must stay; NULL: they may leave
};

static bool is_variant(const void *ctx, struct str name)
{
    return str_starts(name, STR(KCHECK_PREFIX)) || str_starts(name, STR(KCHECK_REST_PREFIX));
}

static bool is_module_data(const struct ptx_var *v)
{
    return v->space == PTX_SPACE_GLOBAL || v->space == PTX_SPACE_CONST;
}

static const struct ptx_sym *sym_of(const struct ptx_module *m, const struct ptx_operand *o)
{
    bool is = o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM);
    return is && o->id < m->nsyms ? ptx_sym_behind_alias(m, o->id) : NULL;
}

// Returns the variable's row in the table; PTX_NONE if the operand names none of the program's.
static uint32_t row_of(const struct variants *v, const struct ptx_operand *o)
{
    bool is = o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM);
    return is ? v->row[o->id] : PTX_NONE;
}

static void look_at_operand(struct variants *v, const struct ptx_operand *o, bool callee)
{
    const struct ptx_module *m = v->c->m;
    const struct ptx_sym *s = sym_of(m, o);
    struct pass_check *check = v->c->result->check;
    if (!s || callee)
        return;
    if (s->kind == PTX_SYM_FUNC)
        v->why = "a kernel takes the address of a function";
    else if (s->kind == PTX_SYM_UNDEFINED)
        v->why = "a symbol is not defined";
    else if (s->kind == PTX_SYM_VAR && row_of(v, o) != PTX_NONE)
        check->variables[row_of(v, o)].needed = true;
    else if (s->kind == PTX_SYM_VAR && s->var->sym == o->id && !is_ours(s->name) &&
             (is_module_data(s->var) || s->var->space == PTX_SPACE_TEX))
        v->why = "a kernel uses a variable whose address is not known";
}

// Returns whether code that names constant memory can name global memory instead.
static bool can_move(const struct ptx_stmt *s)
{
    for (unsigned i = 0; i < s->form->nspaces; i++)
        if (s->form->spaces[i] == PTX_SPACE_CONST && s->form->id != PTX_OP_LD && s->form->id != PTX_OP_CVTA)
            return false;
    return !s->form->odd && s->form->id != PTX_OP_UNKNOWN;
}

static void look_at_stmt(struct variants *v, const struct ptx_stmt *s)
{
    bool calls = s->kind == PTX_INSN && s->form->id == PTX_OP_CALL;
    if (s->kind == PTX_VERBATIM || s->kind == PTX_PROTOTYPE ||
        (s->kind == PTX_TARGETS && s->targets->calls) || (calls && !callee_of(v->c->m, s)))
        v->why = "a kernel calls a function by its address";
    if (s->kind != PTX_INSN)
        return;
    if (!can_move(s))
        v->why = "an instruction is not known";
    const struct ptx_operand *callee = calls ? ptx_operand(s, 1) : NULL;
    for (uint32_t i = 0; i < s->nslots; i++)
        look_at_operand(v, &s->operands[i], &s->operands[i] == callee);
}

// Returns whether an initialiser names a function: then pointers to functions may be in memory.
static bool names_function(const struct ptx_module *m, struct str init)
{
    struct ptx_init item;
    while (ptx_init_next(&init, &item) == 1) {
        uint32_t sym = item.kind == PTX_INIT_SYM ? map_get(&m->globals, item.text) : MAP_NONE;
        if (sym != MAP_NONE && func_of(m, sym))
            return true;
    }
    return false;
}

static void look_at_item(struct variants *v, const struct ptx_item *item)
{
    switch (item->kind) {
    case PTX_ITEM_VAR:
        if (names_function(v->c->m, item->var->init))
            v->why = "a variable holds the address of a function";
        if (item->var->linkage == PTX_EXTERN && is_module_data(item->var))
            v->why = "a variable is defined elsewhere";
        break;
    case PTX_ITEM_SECTION:
        if (!memmem(item->text->ptr, item->text->len, ".debug_str", strlen(".debug_str")))
            v->why = "it has debug information";
        break;
    case PTX_ITEM_FUNC:
        if (pass_is_launch(ptx_sym(v->c->m, item->func->sym)->name))
            v->why = "a kernel launches kernels";
        break;
    case PTX_ITEM_ALIAS:
    case PTX_ITEM_VERBATIM: v->why = "it has an item that is not known"; break;
    default: break;
    }
}

bool pass_variants_of(const char *pass)
{
    return !strcmp(pass, "check") || !strncmp(pass, "shadow", strlen("shadow"));
}

static void look_at_result(struct variants *v)
{
    const struct pass_result *r = v->c->result;
    for (uint32_t i = 0; i < r->nsymbols; i++)
        if (!pass_variants_of(r->symbols[i].pass))
            v->why = "another pass has rewritten it, too";
    if (r->check->nvariables > MOST_VARIABLES)
        v->why = "it has too many variables";
}

static int find_rows(struct variants *v)
{
    struct ptx_module *m = v->c->m;
    const struct pass_check *check = v->c->result->check;
    v->row = ARENA_ARRAY(&m->arena, uint32_t, m->nsyms + 1u);
    if (!v->row)
        return -ENOMEM;
    memset(v->row, 0xFF, (m->nsyms + 1u) * sizeof *v->row);
    for (uint32_t i = 0; i < check->nvariables; i++) {
        uint32_t sym = map_get(&m->globals, check->variables[i].name);
        if (sym != MAP_NONE)
            v->row[sym] = i;
    }
    return 0;
}

static int look(struct variants *v)
{
    int err = find_rows(v);
    if (!err)
        err = open_kept(&v->reach, v->c->m);
    if (!err)
        err = follow(&v->reach, is_variant, NULL);
    if (err)
        return err;
    look_at_result(v);
    for (uint32_t i = 0; i < v->c->m->nitems; i++)
        look_at_item(v, &v->c->m->items[i]);
    for (size_t i = 0; i < v->reach.work.len; i++)
        for (uint32_t k = 0; k < v->reach.work.items[i]->nstmts; k++)
            look_at_stmt(v, &v->reach.work.items[i]->stmts[k]);
    return 0;
}

// --- leaving -----------------------------------------------------------------------------------------------

// The table is constant, so that an address costs no load from memory.
static int add_table(struct variants *v)
{
    struct pass_context *c = v->c;
    struct pass_check *check = c->result->check;
    char name[NAME], text[2 * NAME];
    if (!check->nvariables)
        return 0;
    int length = snprintf(name, sizeof name, EDIT_PREFIX "check_addresses_%08x", check->tag);
    check->table = arena_str(&c->result->arena, (struct str){name, (size_t)length});
    if (!check->table.ptr)
        return -ENOMEM;
    length = snprintf(text, sizeof text, ".visible .const .align 8 .u64 %s[%u];\n", name, check->nvariables);
    edit_add(c->edit, (struct str){text, (size_t)length});
    v->table = edit_find(c->edit, check->table);
    return edit_error(c->edit);
}

// Copies of a statement may share its operands.
static int own_operands(struct variants *v, struct ptx_stmt *s)
{
    struct ptx_operand *own = ARENA_ARRAY(&v->c->m->arena, struct ptx_operand, s->nslots + 1u);
    if (!own)
        return -ENOMEM;
    if (s->nslots)
        memcpy(own, s->operands, s->nslots * sizeof *own);
    s->operands = own;
    return 0;
}

// Makes a statement take a variable's address from the table.
static void replace(struct variants *v, uint32_t stmt, unsigned slot, const struct ptx_operand *old)
{
    struct edit *e = v->c->edit;
    uint32_t reg = edit_new_reg(e, PTX_U64);
    edit_before(e, stmt, "ld.const.u64 %0, [%1];", edit_reg(reg),
                edit_sym_at(v->table, (int64_t)sizeof(uint64_t) * v->row[old->id]));
    if (old->kind == PTX_SYM && old->value)
        edit_before(e, stmt, "add.s64 %0, %0, %1;", edit_reg(reg), edit_imm(old->value));
    edit_set(e, stmt, slot, old->kind == PTX_SYM ? edit_reg(reg) : edit_addr(reg, old->value));
}

// Constant memory that is addressed by a register is the program's, which no longer is constant memory of
// this module.
static bool names_constant(const struct variants *v, const struct ptx_stmt *s)
{
    bool ours = false, constant = false;
    for (uint32_t i = 0; i < s->nslots; i++) {
        const struct ptx_sym *sym = sym_of(v->c->m, &s->operands[i]);
        ours |= sym && sym->kind == PTX_SYM_VAR && sym->var->space == PTX_SPACE_CONST && is_ours(sym->name);
    }
    for (unsigned i = 0; i < s->form->nspaces; i++)
        constant |= s->form->spaces[i] == PTX_SPACE_CONST;
    return constant && !ours;
}

static int change_func(struct variants *v, struct ptx_func *f)
{
    int err = 0;
    edit_func(v->c->edit, f);
    for (uint32_t i = 0; i < f->nstmts && !err; i++) {
        struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN)
            continue;
        bool constant = names_constant(v, s), owned = false;
        for (unsigned k = 0; k < s->nslots && !err; k++) {
            const struct ptx_operand old = s->operands[k];
            if (row_of(v, &old) == PTX_NONE)
                continue;
            err = owned ? 0 : own_operands(v, s);
            owned = true;
            if (!err)
                replace(v, i, k, &old);
        }
        if (constant && !err)
            edit_set_space(v->c->edit, i, PTX_SPACE_CONST, PTX_SPACE_GLOBAL);
    }
    return err ? err : edit_error(v->c->edit);
}

static bool stays(const struct kept *r, const struct ptx_item *item)
{
    const struct ptx_sym *s;
    switch (item->kind) {
    case PTX_ITEM_FUNC: return r->keep[item->func->sym];
    case PTX_ITEM_VAR:
        s = item->var->sym == PTX_NONE ? NULL : ptx_sym(r->m, item->var->sym);
        return s && (!is_module_data(item->var) || is_ours(s->name));
    default: return true;
    }
}

static void drop_items(struct ptx_module *m, const struct kept *r, const char *table)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_item *item = &m->items[i];
        bool old = item->kind == PTX_ITEM_VAR && table && item->var->sym != PTX_NONE &&
                   str_eq(ptx_sym(m, item->var->sym)->name, str_from(table));
        if (stays(r, item) && !old)
            m->items[n++] = *item;
    }
    m->nitems = n;
}

static int leave(struct variants *v)
{
    struct ptx_module *m = v->c->m;
    struct pass_check *check = v->c->result->check;
    char old[NAME + 32];
    snprintf(old, sizeof old, STR_FMT, STR_ARG(check->table));
    drop_items(m, &v->reach, check->nvariables ? old : NULL);
    int err = add_table(v);
    for (size_t i = 0; i < v->reach.work.len && !err && check->nvariables; i++)
        err = change_func(v, v->reach.work.items[i]);
    check->apart = !err;
    return err;
}

int pass_variants(struct pass_context *c)
{
    struct variants v = {.c = c};
    if (!c->result->check || !c->result->check->nkernels)
        return 0;
    int err = look(&v);
    if (!err && !v.why)
        err = leave(&v);
    close_kept(&v.reach);
    return err;
}

// --- one of them -------------------------------------------------------------------------------------------

static bool is_named(const void *ctx, struct str name)
{
    return str_eq(name, *(const struct str *)ctx);
}

// Sets .maxnreg of a kernel. The compiler heeds it beside .maxntid and .minnctapersm too, unlike the option
// for a whole text.
static int limit(struct ptx_module *m, struct ptx_func *f, unsigned registers)
{
    const struct str name = STR(".maxnreg");
    struct ptx_directive *all = ARENA_ARRAY(&m->arena, struct ptx_directive, f->ndirectives + 1u);
    char *text = ARENA_ARRAY(&m->arena, char, 12);
    uint32_t n = 0;
    if (!all || !text)
        return -ENOMEM;
    for (uint32_t i = 0; i < f->ndirectives; i++) {
        char own[12];
        snprintf(own, sizeof own, STR_FMT, STR_ARG(f->directives[i].args));
        if (!str_eq(f->directives[i].name, name))
            all[n++] = f->directives[i];
        else if (strtoul(own, NULL, 0) && strtoul(own, NULL, 0) < registers)
            registers = (unsigned)strtoul(own, NULL, 0);
    }
    all[n] = (struct ptx_directive){.name = name, .args = {text, 0}};
    all[n++].args.len = (size_t)snprintf(text, 12, "%u", registers);
    f->directives = all;
    f->ndirectives = n;
    return 0;
}

int pass_variants_cut(struct str text, struct str name, const struct pass_variants_way *way,
                      struct diag_sink *sink, struct out *to)
{
    struct ptx_module *m;
    struct kept r;
    int err = ptx_parse("variants", text, sink, NULL, &m);
    if (err)
        return err;
    err = open_kept(&r, m);
    if (!err)
        err = follow(&r, is_named, &name);
    if (!err && !r.work.len)
        err = -ENOENT;
    bool marked = false;
    if (!err && way->cold)
        err = pass_cold_mark(m, r.work.items, r.work.len, &marked);
    // The kernel itself is the first function that is kept.
    if (!err && way->registers)
        err = limit(m, r.work.items[0], way->registers);
    if (!err && way->beside && marked)
        err = limit(m, r.work.items[0], way->beside);
    if (!err) {
        drop_items(m, &r, NULL);
        ptx_print(m, to);
        out_char(to, 0);
        err = to->error;
    }
    close_kept(&r);
    ptx_free(m);
    return err;
}
