// SPDX-License-Identifier: MIT
// Texts to insert: each is parsed once, then copied with its arguments filled in.
#include <assert.h>

#include "ptx/edit_state.h"
#include "ptx/quote.h"

// --- forms -------------------------------------------------------------------------------------------------

static bool grow_forms(struct edit *e)
{
    struct ptx_module *m = e->m;
    if (m->nforms < e->forms_cap)
        return true;
    uint32_t cap = m->nforms * 2 + 32;
    const struct ptx_form **forms = edit_alloc(e, cap, sizeof *forms);
    if (!forms)
        return false;
    if (m->nforms)
        memcpy(forms, m->forms, m->nforms * sizeof *forms);
    m->forms = forms;
    e->forms_cap = cap;
    return true;
}

// A linear search suffices: a module has a few hundred forms, and the search runs once per statement of a
// text.
const struct ptx_form *edit_form(struct edit *e, const struct ptx_form *form)
{
    struct ptx_module *m = e->m;
    for (uint32_t i = 0; i < m->nforms; i++)
        if (str_eq(m->forms[i]->name, form->name))
            return m->forms[i];
    struct ptx_form *own = grow_forms(e) ? edit_alloc(e, 1, sizeof *own) : NULL;
    struct str name = own ? arena_str(&m->arena, form->name) : STR("");
    if (!own || !name.ptr) {
        edit_fail(e, -ENOMEM);
        return form;
    }
    *own = *form;
    own->name = name;
    own->pos = PTX_NONE;
    m->forms[m->nforms++] = own;
    return own;
}

void edit_set_space(struct edit *e, uint32_t stmt, enum ptx_space from, enum ptx_space to)
{
    assert(e->f && stmt < e->f->nstmts && e->f->stmts[stmt].kind == PTX_INSN);
    struct ptx_stmt *s = &e->f->stmts[stmt];
    struct str old = s->form->name, was = ptx_space_name(from), is = ptx_space_name(to);
    char name[256];
    size_t n = 0;
    for (size_t i = 0; i < old.len && n < sizeof name - is.len; i++) {
        size_t end = i + 1 + was.len;
        name[n++] = old.ptr[i];
        if (old.ptr[i] == '.' && end <= old.len && !memcmp(old.ptr + i + 1, was.ptr, was.len) &&
            (end == old.len || old.ptr[end] == '.')) {
            memcpy(name + n, is.ptr, is.len);
            n += is.len;
            i += was.len;
        }
    }
    struct ptx_form form;
    ptx_form_decode((struct str){name, n}, &form);
    s->form = edit_form(e, &form);
    e->set = true;
}

void edit_unspell(struct ptx_operand *o)
{
    if (o->kind == PTX_IMM && o->spelled) {
        o->id = 0;
        o->span = 0;
        o->spelled = false;
    }
}

// --- reading a text ----------------------------------------------------------------------------------------

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define ARGS ".reg .b64 %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15;"
_Static_assert(EDIT_MOST_ARGS == 16, "ARGS declares as many");

static void bad_text(struct edit *e, const struct edit_text *t, const struct ptx_stmt *s, const char *why)
{
    diag_report(e->sink, DIAG_ERROR, &t->m->source, s->pos, 1, "%s", why);
    edit_fail(e, -EINVAL);
}

static void need_arg(struct edit_text *t, uint32_t arg)
{
    if (arg >= t->nargs)
        t->nargs = arg + 1;
}

static const char *read_operand(struct edit_text *t, struct ptx_operand *o)
{
    bool is_addr = o->kind == PTX_ADDR;
    edit_unspell(o);
    if (o->kind == PTX_REG || (is_addr && o->sub == PTX_BASE_REG)) {
        need_arg(t, o->id);
        o->spelled = false;
    } else if (o->kind == PTX_SYM || (is_addr && o->sub == PTX_BASE_SYM)) {
        const struct ptx_sym *sym = ptx_sym(t->m, o->id);
        if (sym->kind != PTX_SYM_LABEL)
            return "only labels have names in an inserted text: other symbols are arguments";
        o->id = sym->stmt;
    }
    return NULL;
}

static const char *read_stmt(struct edit *e, struct edit_text *t, struct ptx_stmt *s)
{
    if (s->kind == PTX_LABEL) {
        s->sym = ptx_sym(t->m, s->sym)->stmt;
        return NULL;
    }
    if (s->kind != PTX_INSN)
        return "an inserted text has instructions and labels only";
    if (s->form->id == PTX_OP_UNKNOWN || s->form->odd)
        return "an inserted text has an instruction that is not known";
    s->form = edit_form(e, s->form);
    if (s->guard != PTX_NONE)
        need_arg(t, s->guard);
    for (uint32_t i = 0; i < s->nslots; i++) {
        const char *why = read_operand(t, &s->operands[i]);
        if (why)
            return why;
    }
    return NULL;
}

// Numbers the labels of a text: from here on a label's `stmt` is its number.
static void number_labels(struct edit_text *t, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_LABEL)
            ptx_sym(t->m, f->stmts[i].sym)->stmt = t->nlabels++;
}

static void read_text(struct edit *e, struct edit_text *t)
{
    const struct ptx_func *f = t->m->items[0].func;
    number_labels(t, f);
    t->stmts = f->stmts + EDIT_MOST_ARGS;  // after the declarations of ARGS
    t->nstmts = f->nstmts - EDIT_MOST_ARGS;
    for (uint32_t i = EDIT_MOST_ARGS; i < f->nstmts && !e->error; i++) {
        uint32_t pos = f->stmts[i].pos;
        const char *why = read_stmt(e, t, &f->stmts[i]);
        if (why)
            bad_text(e, t, &f->stmts[i], why);
        assert(f->stmts[i].pos == pos);
    }
}

static bool parse_text(struct edit *e, struct str text, struct edit_text *t)
{
    static const char before[] = HEAD ".func inserted()\n{" ARGS "\n", after[] = "\n}";
    size_t len = sizeof before - 1 + text.len + sizeof after - 1;
    char *whole = arena_alloc(&e->scratch, len);
    if (!whole) {
        edit_fail(e, -ENOMEM);
        return false;
    }
    memcpy(mempcpy(mempcpy(whole, before, sizeof before - 1), text.ptr, text.len), after, sizeof after - 1);
    int err = ptx_parse("inserted text", (struct str){whole, len}, e->sink, NULL, &t->m);
    // A text with a surplus closing brace would parse as two functions.
    if (!err && (t->m->nitems != 1 || t->m->items[0].kind != PTX_ITEM_FUNC))
        err = -EINVAL;
    if (err)
        edit_fail(e, err);
    return !err;
}

// Parses a text and remembers it. The result is kept after a failure too, so that edit_close frees it.
static void add_text(struct edit *e, struct str text)
{
    struct edit_text t = {0};
    struct str key = arena_str(&e->scratch, text);
    if (!key.ptr || vec_reserve(&e->parsed, 1)) {
        edit_fail(e, -ENOMEM);
        return;
    }
    if (parse_text(e, text, &t))
        read_text(e, &t);
    (void)vec_push(&e->parsed, t);  // cannot fail: space is reserved
    if (map_put(&e->texts, key, (uint32_t)e->parsed.len - 1))
        edit_fail(e, -ENOMEM);
}

const struct edit_text *edit_text_find(struct edit *e, const char *text)
{
    struct str key = str_from(text);
    if (e->error)
        return NULL;
    uint32_t id = map_get(&e->texts, key);
    if (id == MAP_NONE) {
        add_text(e, key);
        id = (uint32_t)e->parsed.len - 1;
    }
    return e->error ? NULL : &e->parsed.items[id];
}

// --- putting it in -----------------------------------------------------------------------------------------

struct ptx_operand edit_guard(const struct ptx_stmt *s)
{
    assert(s->guard != PTX_NONE);
    return (struct ptx_operand){.kind = PTX_REG, .id = s->guard, .negated = s->guard_negated};
}

struct ptx_operand edit_base(const struct ptx_operand *addr)
{
    assert(addr->kind == PTX_ADDR);
    switch ((enum ptx_base_kind)addr->sub) {
    case PTX_BASE_REG: return edit_reg(addr->id);
    case PTX_BASE_SYM: return edit_sym(addr->id);
    case PTX_BASE_NONE: break;
    }
    return edit_imm(0);
}

// Puts an argument into [%n + offset]; an argument that is an address replaces its base and adds its offset.
static struct ptx_operand fill_address(struct ptx_operand o, const struct ptx_operand *arg)
{
    static const uint8_t bases[] = {
        [PTX_REG] = PTX_BASE_REG, [PTX_SYM] = PTX_BASE_SYM, [PTX_IMM] = PTX_BASE_NONE};
    assert(arg->kind == PTX_REG || arg->kind == PTX_SYM || arg->kind == PTX_IMM || arg->kind == PTX_ADDR);
    o.sub = arg->kind == PTX_ADDR ? arg->sub : bases[arg->kind];
    o.id = o.sub == PTX_BASE_NONE ? 0 : arg->id;
    o.unified |= arg->kind == PTX_ADDR && arg->unified;
    if (arg->kind != PTX_REG)
        o.value += arg->value;
    return o;
}

static struct ptx_operand fill(struct ptx_operand o, const struct ptx_operand *args, uint32_t labels)
{
    if (o.kind == PTX_ADDR && o.sub == PTX_BASE_REG)
        return fill_address(o, &args[o.id]);
    if (o.kind == PTX_SYM) {
        o.id += labels;
    } else if (o.kind == PTX_REG) {
        struct ptx_operand arg = args[o.id];
        assert(!ptx_is_group(&arg) && arg.kind != PTX_ADDR);
        if (o.sub != PTX_SEL_NONE) {
            assert(arg.kind == PTX_REG);
            arg.sub = o.sub;
            arg.span = o.span;
            arg.value = o.value;
        }
        arg.negated ^= o.negated;
        return arg;
    }
    return o;
}

static void copy_stmt(struct edit *e, const struct ptx_stmt *from, const struct ptx_operand *args,
                      uint32_t labels)
{
    struct ptx_stmt s = *from;
    s.pos = PTX_NONE;
    if (s.kind == PTX_LABEL) {
        s.sym += labels;
    } else {
        if (s.guard != PTX_NONE) {
            const struct ptx_operand *guard = &args[s.guard];
            assert(guard->kind == PTX_REG);
            s.guard = guard->id;
            s.guard_negated ^= guard->negated;
        }
        s.operands = edit_alloc(e, s.nslots, sizeof *s.operands);
        for (uint32_t i = 0; s.operands && i < s.nslots; i++)
            s.operands[i] = fill(from->operands[i], args, labels);
    }
    e->made.items[e->made.len++] = s;
}

// Makes n labels with consecutive numbers and returns the first.
static uint32_t new_labels(struct edit *e, uint32_t n)
{
    uint32_t first = e->m->nsyms;
    for (uint32_t i = 0; i < n; i++)
        edit_new_label(e);
    return first;
}

// Returns the index behind the declarations and pragmas that a function begins with.
static uint32_t entry_of(const struct ptx_func *f)
{
    uint32_t i = 0;
    while (i < f->nstmts && (f->stmts[i].kind == PTX_DECL || f->stmts[i].kind == PTX_PRAGMA))
        i++;
    return i;
}

static uint64_t key_of(const struct edit *e, enum edit_place place, uint32_t stmt)
{
    switch (place) {
    case EDIT_ENTRY: return 4 * (uint64_t)entry_of(e->f) + EDIT_KEY_ENTRY;
    case EDIT_BEFORE: return 4 * (uint64_t)stmt + EDIT_KEY_BEFORE;
    case EDIT_AFTER: break;
    }
    assert(stmt < e->f->nstmts);
    return 4 * (uint64_t)stmt + EDIT_KEY_AFTER;
}

void edit_insert(struct edit *e, enum edit_place place, uint32_t stmt, const char *text, unsigned nargs,
                 const struct ptx_operand *args)
{
    assert(e->f && stmt <= e->f->nstmts && nargs <= EDIT_MOST_ARGS);
    const struct edit_text *t = edit_text_find(e, text);
    if (!t)
        return;
    assert(t->nargs <= nargs);
    if (vec_reserve(&e->made, t->nstmts)) {
        edit_fail(e, -ENOMEM);
        return;
    }
    uint32_t labels = new_labels(e, t->nlabels), first = (uint32_t)e->made.len;
    for (uint32_t i = 0; i < t->nstmts && !e->error; i++)
        copy_stmt(e, &t->stmts[i], args, labels);
    edit_change_at(e, key_of(e, place, stmt), first, t->nstmts);
}
