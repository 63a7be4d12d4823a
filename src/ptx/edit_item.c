// SPDX-License-Identifier: MIT
// Edits of what is outside of functions, and of parameters.
//
// An added text is parsed as a module of its own. Its items move to the module; each of its symbols gets a
// new number there, or becomes the module's symbol of that name. The parsed text lives as long as the module:
// see ptx_module.added.
#include "ptx/edit_state.h"
#include "ptx/quote.h"

// An added text that is being moved into the module.
struct adding {
    struct edit *e;
    struct ptx_module *from;
    bool last;                      // behind the module's items
    uint32_t *syms;                 // by symbol of `from`: the module's symbol
    const struct ptx_form **forms;  // by index in from->forms
};

// --- symbols -----------------------------------------------------------------------------------------------

static bool only_declares(const struct ptx_sym *sym)
{
    if (sym->kind == PTX_SYM_FUNC)
        return !sym->func->has_body;
    return sym->kind == PTX_SYM_VAR && sym->var->linkage == PTX_EXTERN;
}

// Makes one symbol of two with the same name. At least one of them must be a mere declaration, else -EEXIST.
static void merge_symbol(struct adding *a, const struct ptx_sym *added, struct ptx_sym *known)
{
    if (known->kind != added->kind || (!only_declares(added) && !only_declares(known))) {
        diag_report(a->e->sink, DIAG_ERROR, &a->from->source, 0, 0, "the module has " QUOTE_FMT " already",
                    QUOTE_ARG(added->name));
        edit_fail(a->e, -EEXIST);
    } else if (!only_declares(added)) {
        if (added->kind == PTX_SYM_FUNC)
            known->func = added->func;
        else
            known->var = added->var;
    }
}

static void add_symbols(struct adding *a)
{
    struct ptx_module *m = a->e->m;
    for (uint32_t i = 0; i < a->from->nsyms && !a->e->error; i++) {
        const struct ptx_sym *sym = &a->from->syms[i];
        bool global = map_get(&a->from->globals, sym->name) == i;
        uint32_t known = global ? map_get(&m->globals, sym->name) : MAP_NONE;
        a->syms[i] = known == MAP_NONE ? edit_new_sym(a->e, *sym, global) : known;
        if (known != MAP_NONE)
            merge_symbol(a, sym, &m->syms[known]);
    }
}

// --- everything that names a symbol or a form, or has a place in the text ----------------------------------

static void move_var(const struct adding *a, struct ptx_var *var)
{
    if (var->sym != PTX_NONE)
        var->sym = a->syms[var->sym];
    var->pos = PTX_NONE;
}

static void move_vars(const struct adding *a, struct ptx_var *vars, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        move_var(a, &vars[i]);
}

static void move_insn(const struct adding *a, struct ptx_stmt *s)
{
    for (uint32_t i = 0; i < a->from->nforms; i++)
        if (a->from->forms[i] == s->form) {
            s->form = a->forms[i];
            break;
        }
    for (uint32_t i = 0; i < s->nslots; i++) {
        struct ptx_operand *o = &s->operands[i];
        edit_unspell(o);
        if (o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM))
            o->id = a->syms[o->id];
    }
}

static void move_targets(const struct adding *a, struct ptx_targets *t)
{
    t->sym = a->syms[t->sym];
    for (uint32_t i = 0; i < t->ntargets; i++)
        t->targets[i] = a->syms[t->targets[i]];
}

static void move_stmt(const struct adding *a, struct ptx_stmt *s)
{
    s->pos = PTX_NONE;
    switch ((enum ptx_stmt_kind)s->kind) {
    case PTX_INSN: move_insn(a, s); break;
    case PTX_LABEL: s->sym = a->syms[s->sym]; break;
    case PTX_DECL: move_var(a, s->var); break;
    case PTX_TARGETS: move_targets(a, s->targets); break;
    case PTX_PROTOTYPE:
        s->proto->sym = a->syms[s->proto->sym];
        move_vars(a, s->proto->rets, s->proto->nrets);
        move_vars(a, s->proto->params, s->proto->nparams);
        break;
    default: break;
    }
}

static void move_func(const struct adding *a, struct ptx_func *f)
{
    f->sym = a->syms[f->sym];
    f->pos = PTX_NONE;
    move_vars(a, f->rets, f->nrets);
    move_vars(a, f->params, f->nparams);
    for (uint32_t i = 0; i < f->nstmts; i++)
        move_stmt(a, &f->stmts[i]);
}

// --- items -------------------------------------------------------------------------------------------------

static bool has_registers(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_VAR && m->items[i].var->space == PTX_SPACE_REG)
            return true;
    return false;
}

static bool can_add(const struct ptx_item *item)
{
    return item->kind == PTX_ITEM_FUNC || (item->kind == PTX_ITEM_VAR && item->var->space != PTX_SPACE_REG);
}

static void add_item(struct adding *a, struct ptx_item item)
{
    if (!can_add(&item)) {
        diag_report(a->e->sink, DIAG_ERROR, &a->from->source, item.pos, 1,
                    "only functions and variables can be added");
        edit_fail(a->e, -EINVAL);
        return;
    }
    item.pos = PTX_NONE;
    if (item.kind == PTX_ITEM_FUNC)
        move_func(a, item.func);
    else
        move_var(a, item.var);
    if (a->last ? vec_push(&a->e->defined, item) : vec_push(&a->e->items, item))
        edit_fail(a->e, -ENOMEM);
}

static void add_module(struct edit *e, struct ptx_module *from, bool last)
{
    struct adding a = {.e = e, .from = from, .last = last};
    from->added = e->m->added;
    e->m->added = from;
    a.syms = arena_array(&e->scratch, from->nsyms + 1u, sizeof *a.syms);
    a.forms = arena_array(&e->scratch, from->nforms + 1u, sizeof *a.forms);
    if (!a.syms || !a.forms)
        edit_fail(e, -ENOMEM);
    // The functions' registers would have to be renumbered after the module's. Compilers do not write such
    // modules.
    if (has_registers(e->m))
        edit_fail(e, -ENOTSUP);
    if (e->error)
        return;
    add_symbols(&a);
    for (uint32_t i = 0; i < from->nforms && !e->error; i++)
        a.forms[i] = edit_form(e, from->forms[i]);
    for (uint32_t i = 0; i < from->nitems && !e->error; i++)
        add_item(&a, from->items[i]);
}

static void add_text(struct edit *e, struct str text, bool last)
{
    static const char head[] = ".version 9.0\n.target sm_90\n.address_size 64\n";
    size_t len = sizeof head - 1 + text.len;
    char *whole = edit_alloc(e, len, 1);
    if (!whole)
        return;
    memcpy(mempcpy(whole, head, sizeof head - 1), text.ptr, text.len);
    struct ptx_module *from;
    int err = ptx_parse("added text", (struct str){whole, len}, e->sink, NULL, &from);
    if (err)
        edit_fail(e, err);
    else
        add_module(e, from, last);
}

void edit_add(struct edit *e, struct str text)
{
    add_text(e, text, false);
}

void edit_add_last(struct edit *e, struct str text)
{
    add_text(e, text, true);
}

uint32_t edit_find(struct edit *e, struct str name)
{
    uint32_t id = e->error ? MAP_NONE : map_get(&e->m->globals, name);
    if (id != MAP_NONE)
        return id;
    edit_fail(e, -EINVAL);
    return 0;
}

static bool is_code_or_data(const struct ptx_item *item)
{
    return item->kind == PTX_ITEM_VAR || item->kind == PTX_ITEM_FUNC;
}

static struct ptx_item *put_items(struct ptx_item *to, const struct ptx_item *from, size_t n)
{
    if (n)
        memcpy(to, from, n * sizeof *to);
    return to + n;
}

// Places the added items, and declarations of the copies of functions, before all that may use them, and the
// copies behind all that they may use.
void edit_place_items(struct edit *e)
{
    struct ptx_module *m = e->m;
    size_t added = e->items.len, copied = e->declared.len + e->defined.len, first = 0, last = m->nitems;
    if (!(added + copied) || e->error)
        return;
    while (first < m->nitems && !is_code_or_data(&m->items[first]))
        first++;
    while (last > first && m->items[last - 1].kind != PTX_ITEM_ALIAS && !is_code_or_data(&m->items[last - 1]))
        last--;
    struct ptx_item *items = edit_alloc(e, m->nitems + added + copied, sizeof *items), *to = items;
    if (!items)
        return;
    to = put_items(to, m->items, first);
    to = put_items(to, e->items.items, added);
    to = put_items(to, e->declared.items, e->declared.len);
    to = put_items(to, m->items + first, last - first);
    to = put_items(to, e->defined.items, e->defined.len);
    to = put_items(to, m->items + last, m->nitems - last);
    m->items = items;
    m->nitems = (uint32_t)(to - items);
}

// --- parameters --------------------------------------------------------------------------------------------

// Moves the parameters to a larger array; symbols and reg_vars that refer to them are updated.
static struct ptx_var *move_params(struct edit *e, struct ptx_func *f)
{
    struct ptx_var *params = edit_alloc(e, f->nparams + 1u, sizeof *params);
    for (uint32_t i = 0; params && i < f->nparams; i++) {
        params[i] = f->params[i];
        if (params[i].sym != PTX_NONE)
            e->m->syms[params[i].sym].var = &params[i];
        for (uint32_t k = 0; params[i].space == PTX_SPACE_REG && k < f->nreg_vars; k++)
            if (f->reg_vars[k] == &f->params[i])
                f->reg_vars[k] = &params[i];
    }
    return params;
}

static void add_param(struct edit *e, struct ptx_func *f, struct ptx_var param)
{
    struct str name = edit_name(e, "");
    struct ptx_var *params = move_params(e, f);
    if (!params)
        return;
    struct ptx_var *added = &params[f->nparams];
    *added = param;
    added->sym = edit_new_sym(e, (struct ptx_sym){.name = name, .kind = PTX_SYM_VAR, .var = added}, false);
    f->params = params;
    f->nparams++;
}

uint32_t edit_add_param(struct edit *e, struct ptx_func *f, enum ptx_type type, uint32_t align,
                        uint64_t count)
{
    struct ptx_var param = {
        .pos = PTX_NONE, .space = PTX_SPACE_PARAM, .type = (uint8_t)type, .vec = 1, .align = align};
    if (count > 1) {
        param.dims = edit_alloc(e, 1, sizeof *param.dims);
        if (!param.dims)
            return 0;
        *param.dims = count;
        param.ndims = 1;
    }
    for (size_t i = 0; i < e->m->nitems + e->declared.len; i++) {
        const struct ptx_item *item =
            i < e->m->nitems ? &e->m->items[i] : &e->declared.items[i - e->m->nitems];
        if (item->kind == PTX_ITEM_FUNC && item->func != f && item->func->sym == f->sym)
            add_param(e, item->func, param);
    }
    add_param(e, f, param);
    return e->error ? 0 : f->params[f->nparams - 1].sym;
}
