// SPDX-License-Identifier: MIT
// Turns PTX texts into a program: parses, links by name, places every variable, decodes.
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exec/load.h"
#include "exec/native.h"
#include "exec/space.h"

// --- texts -------------------------------------------------------------------------------------------------

// Passes on errors only: the verifier's warnings are for people who read PTX, not for those who run it.
struct errors_only {
    struct diag_sink sink;
    struct diag_sink *to;
};

static void emit_errors(struct diag_sink *sink, const struct diag *d)
{
    struct errors_only *e = (void *)sink;
    if (d->severity == DIAG_ERROR)
        diag_report(e->to, DIAG_ERROR, &d->source, d->offset, d->len, "%s", d->message);
}

static int parse(struct load *l, struct exec_module *m, const struct exec_text *text)
{
    size_t name = strlen(text->name) + 1;
    m->text = mem_alloc(name + text->ptx.len + 1);
    if (!m->text)
        return -ENOMEM;
    memcpy(m->text, text->name, name);
    if (text->ptx.len)
        memcpy(m->text + name, text->ptx.ptr, text->ptx.len);
    m->text[name + text->ptx.len] = 0;
    m->name = m->text;
    struct str ptx = {m->text + name, text->ptx.len};
    int err = ptx_parse(m->name, ptx, l->sink, NULL, &m->ptx);
    if (err)
        return err;
    struct errors_only errors = {{emit_errors, 0, 0}, l->sink};
    err = ptx_verify(m->ptx, &errors.sink, NULL);
    if (err)
        return err;
    if (m->ptx->address_size == 32) {
        diag_report(l->sink, DIAG_ERROR, &m->ptx->source, 0, 1, "addresses of 32 bits are not executed");
        return -ENOTSUP;
    }
    m->symbols = ARENA_ARRAY(&l->program->arena, struct exec_symbol, m->ptx->nsyms);
    return 0;
}

// --- names -------------------------------------------------------------------------------------------------

int load_error(struct load *l, const struct exec_module *m, uint32_t pos, int err, const char *what,
               struct str name)
{
    if (pos == PTX_NONE)
        pos = 0;
    diag_report(l->sink, DIAG_ERROR, &m->ptx->source, pos, 1, "%s " STR_FMT, what, STR_ARG(name));
    return err;
}

static bool is_global(uint8_t linkage)
{
    return linkage == PTX_VISIBLE || linkage == PTX_WEAK || linkage == PTX_COMMON;
}

static uint64_t size_of(const struct exec_module *m, uint32_t sym)
{
    const struct ptx_sym *s = ptx_sym(m->ptx, sym);
    return s->kind == PTX_SYM_VAR ? ptx_var_size(s->var) : 0;
}

// Adds a definition visible to other texts. A weak definition yields to another; of common ones the largest
// counts.
static int define(struct load *l, struct exec_module *m, uint32_t sym, uint8_t linkage)
{
    struct str name = ptx_sym(m->ptx, sym)->name;
    uint32_t known = map_get(&l->names, name);
    if (known == MAP_NONE) {
        if (vec_push(&l->definitions, (struct definition){m, sym, linkage}))
            return -ENOMEM;
        return map_put(&l->names, name, (uint32_t)l->definitions.len - 1);
    }
    struct definition *d = &l->definitions.items[known];
    bool larger =
        linkage == PTX_COMMON && d->linkage == PTX_COMMON && size_of(m, sym) > size_of(d->module, d->sym);
    if (linkage != PTX_VISIBLE && !larger)
        return 0;
    if (d->linkage == PTX_VISIBLE)
        return load_error(l, m, ptx_sym(m->ptx, sym)->pos, -EEXIST, "another module defines", name);
    *d = (struct definition){m, sym, linkage};
    return 0;
}

// Returns whether this definition is the one that its name refers to.
static bool counts(const struct load *l, const struct exec_module *m, uint32_t sym, uint8_t linkage)
{
    if (!is_global(linkage))
        return true;
    uint32_t at = map_get(&l->names, ptx_sym(m->ptx, sym)->name);
    return at != MAP_NONE && l->definitions.items[at].module == m && l->definitions.items[at].sym == sym;
}

static struct exec_func *add_func(struct load *l, struct exec_module *m, const struct ptx_func *f)
{
    struct exec_func *func = ARENA_NEW(&l->program->arena, struct exec_func);
    func->program = l->program;
    func->module = m;
    func->ptx = f;
    func->name = ptx_func_name(m->ptx, f);
    func->id = l->program->nfuncs;
    func->stack_size = UINT32_MAX;
    if (vec_push(&l->funcs, func))
        longjmp(*l->program->arena.on_fail, -ENOMEM);
    l->program->nfuncs++;
    return func;
}

static int define_module(struct load *l, struct exec_module *m)
{
    for (uint32_t k = 0; k < m->ptx->nitems; k++) {
        const struct ptx_item *item = &m->ptx->items[k];
        int err = 0;
        if (item->kind == PTX_ITEM_VAR && is_global(item->var->linkage) && item->var->sym != PTX_NONE)
            err = define(l, m, item->var->sym, item->var->linkage);
        if (item->kind == PTX_ITEM_FUNC && item->func->has_body && is_global(item->func->linkage))
            err = define(l, m, item->func->sym, item->func->linkage);
        if (err)
            return err;
    }
    return 0;
}

// Adds a module's functions, except those replaced by another text's definition.
static void add_functions(struct load *l, struct exec_module *m)
{
    for (uint32_t k = 0; k < m->ptx->nitems; k++) {
        const struct ptx_item *item = &m->ptx->items[k];
        if (item->kind != PTX_ITEM_FUNC || !item->func->has_body ||
            !counts(l, m, item->func->sym, item->func->linkage))
            continue;
        struct exec_func *f = add_func(l, m, item->func);
        m->symbols[item->func->sym] = (struct exec_symbol){.kind = EXEC_SYM_FUNC, .func = f};
    }
}

// --- variables ---------------------------------------------------------------------------------------------

uint32_t load_align(const struct ptx_var *v)
{
    uint32_t own = ptx_type_bits((enum ptx_type)v->type) / 8 * v->vec;
    own = own ? own & -own : 1;
    return v->align > own ? v->align : own;
}

static bool has(struct str s, const char *word)
{
    return s.len && memmem(s.ptr, s.len, word, strlen(word));
}

static int place(struct load *l, struct exec_module *m, const struct ptx_var *v)
{
    struct exec_symbol *s = &m->symbols[v->sym];
    uint64_t size;
    int err = load_size(l, m, v, &size);
    if (err)
        return err;
    enum exec_variable_kind kind = v->space == PTX_SPACE_CONST    ? EXEC_CONST
                                   : has(v->attribute, "managed") ? EXEC_MANAGED
                                                                  : EXEC_GLOBAL;
    uint64_t at = l->program->host.place(l->program->host.ctx, kind, size ? size : 1, load_align(v));
    if (!at)
        return -ENOMEM;
    *s = (struct exec_symbol){.kind = EXEC_SYM_ADDRESS, .placed = true, .value = at};
    struct exec_variable var = {
        .name = ptx_sym(m->ptx, v->sym)->name, .address = at, .size = size, .kind = (uint8_t)kind};
    // Textures, samplers and surfaces are no variables for the host.
    if (ptx_type_class((enum ptx_type)v->type) == PTX_CLASS_OPAQUE) {
        var.kind = v->type == PTX_SURFREF ? EXEC_SURFREF : EXEC_TEXREF;
        return v->type != PTX_SAMPLERREF && vec_push(&l->references, var) ? -ENOMEM : 0;
    }
    return vec_push(&l->variables, var) || vec_push(&l->placed, (struct placed){m, v, at}) ? -ENOMEM : 0;
}

static int place_var(struct load *l, struct exec_module *m, const struct ptx_var *v, bool in_function)
{
    enum ptx_space where = ptx_space_is((enum ptx_space)v->space);
    // A variable without a name cannot be used; one declared several times in a text is placed once.
    if (v->sym == PTX_NONE || ptx_sym(m->ptx, v->sym)->var != v)
        return 0;
    struct exec_symbol *s = &m->symbols[v->sym];
    if (where == PTX_SPACE_SHARED) {
        uint64_t size;
        int err = load_size(l, m, v, &size);
        s->kind = v->linkage == PTX_EXTERN || size == 0 ? EXEC_SYM_DYNAMIC : EXEC_SYM_SHARED;
        return err;
    }
    if ((where != PTX_SPACE_GLOBAL && where != PTX_SPACE_CONST) || v->linkage == PTX_EXTERN)
        return 0;
    return in_function || counts(l, m, v->sym, v->linkage) ? place(l, m, v) : 0;
}

static int place_locals(struct load *l, struct exec_module *m, const struct ptx_func *f)
{
    for (uint32_t n = 0; n < f->nstmts; n++) {
        int err = f->stmts[n].kind == PTX_DECL ? place_var(l, m, f->stmts[n].var, true) : 0;
        if (err)
            return err;
    }
    return 0;
}

static int place_module(struct load *l, struct exec_module *m)
{
    for (uint32_t k = 0; k < m->ptx->nitems; k++) {
        const struct ptx_item *item = &m->ptx->items[k];
        int err = 0;
        if (item->kind == PTX_ITEM_VAR)
            err = place_var(l, m, item->var, false);
        else if (item->kind == PTX_ITEM_FUNC && m->symbols[item->func->sym].kind == EXEC_SYM_FUNC)
            err = place_locals(l, m, item->func);
        if (err)
            return err;
    }
    return 0;
}

// Resolves a name that this module only declares.
static int resolve(struct load *l, struct exec_module *m, uint32_t sym, bool is_func)
{
    struct exec_symbol *s = &m->symbols[sym];
    if (s->kind != EXEC_SYM_NONE)
        return 0;
    struct str name = ptx_sym(m->ptx, sym)->name;
    uint32_t at = map_get(&l->names, name);
    if (at != MAP_NONE) {
        const struct definition *d = &l->definitions.items[at];
        *s = d->module->symbols[d->sym];
        return 0;
    }
    exec_fn *intrinsic = is_func ? intrinsic_find(name) : NULL;
    if (intrinsic) {
        s->kind = EXEC_SYM_FUNC;
        s->func = add_func(l, m, ptx_sym(m->ptx, sym)->func);
        s->func->intrinsic = intrinsic;
    }
    // An undefined name is an error only where it is used.
    return 0;
}

static int resolve_module(struct load *l, struct exec_module *m)
{
    for (uint32_t k = 0; k < m->ptx->nitems; k++) {
        const struct ptx_item *item = &m->ptx->items[k];
        int err = 0;
        if (item->kind == PTX_ITEM_FUNC)
            err = resolve(l, m, item->func->sym, true);
        else if (item->kind == PTX_ITEM_VAR && item->var->sym != PTX_NONE)
            err = resolve(l, m, item->var->sym, false);
        if (err)
            return err;
    }
    for (uint32_t k = 0; k < m->ptx->nsyms; k++)
        if (m->ptx->syms[k].kind == PTX_SYM_ALIAS) {
            const struct ptx_sym *target = ptx_sym_behind_alias(m->ptx, k);
            if (target->kind == PTX_SYM_FUNC)
                m->symbols[k] = m->symbols[target->func->sym];
        }
    return 0;
}

// --- kernels -----------------------------------------------------------------------------------------------

static int kernel_params(struct load *l, struct exec_kernel *k, const struct exec_func *f)
{
    struct exec_param *params = ARENA_ARRAY(&l->program->arena, struct exec_param, f->ptx->nparams);
    uint64_t at = 0;
    for (uint32_t n = 0; n < f->ptx->nparams; n++) {
        const struct ptx_var *v = &f->ptx->params[n];
        uint64_t align = load_align(v), size;
        int err = load_size(l, f->module, v, &size);
        if (err)
            return err;
        at = (at + align - 1) / align * align;
        if (v->space != PTX_SPACE_PARAM)
            return load_error(l, f->module, v->pos, -ENOTSUP,
                              "parameters in registers are not executed, as in", f->name);
        if (size > EXEC_MOST_PARAMS || at + size > EXEC_MOST_PARAMS)
            return load_error(l, f->module, v->pos, -EINVAL, "more parameters than a kernel may have in",
                              f->name);
        params[n] = (struct exec_param){(uint32_t)at, (uint32_t)size, (uint32_t)align};
        if (v->sym != PTX_NONE)
            f->module->symbols[v->sym] =
                (struct exec_symbol){.kind = EXEC_SYM_PARAM, .placed = true, .value = at};
        at += size;
    }
    k->params = params;
    k->nparams = f->ptx->nparams;
    k->param_size = (uint32_t)at;
    return 0;
}

static unsigned numbers(struct str s, uint32_t out[3])
{
    unsigned n = 0;
    for (size_t at = 0; at < s.len && n < 3;) {
        char *end;
        out[n] = (uint32_t)strtoul(s.ptr + at, &end, 10);
        if (end == s.ptr + at)
            break;
        n++;
        at = (size_t)(end - s.ptr);
        while (at < s.len && (s.ptr[at] == ',' || s.ptr[at] == ' ' || s.ptr[at] == '\t'))
            at++;
    }
    return n;
}

static void number_if(const struct ptx_directive *d, struct str name, uint32_t *out)
{
    uint32_t read[3] = {0};
    if (str_eq(d->name, name) && numbers(d->args, read))
        *out = read[0];
}

static void cluster_limits(struct exec_kernel *k, const struct ptx_directive *d)
{
    if (str_eq(d->name, STR(".explicitcluster")))
        k->needs_cluster = true;
    if (!str_eq(d->name, STR(".reqnctapercluster")))
        return;
    uint32_t size[3] = {1, 1, 1};
    numbers(d->args, size);
    memcpy(k->required_cluster, size, sizeof size);
}

// As many registers as a compiler may give a thread so that the blocks which the kernel asks for fit into a
// multiprocessor: blocks that wait for each other rely on it.
static uint32_t most_registers(const struct exec_kernel *k, uint32_t blocks, uint32_t limit)
{
    enum { OF_A_MULTIPROCESSOR = 65536, LEAST = 16, MOST = 255 };
    uint32_t warps = (k->max_threads + 31) / 32 + 3, most = MOST;
    warps -= warps % 4;  // a block gets registers for four warps at a time
    if (blocks && blocks <= OF_A_MULTIPROCESSOR / 32 / warps)
        most = OF_A_MULTIPROCESSOR / 32 / (warps * blocks) / 8 * 8;
    if (limit && limit < most)
        most = limit;
    return most < LEAST ? LEAST : most > MOST ? MOST : most;
}

static void kernel_limits(struct exec_kernel *k, const struct exec_func *f)
{
    uint32_t blocks = 0, limit = 0;
    k->max_threads = 1024;
    for (uint32_t n = 0; n < f->ptx->ndirectives; n++) {
        const struct ptx_directive *d = &f->ptx->directives[n];
        cluster_limits(k, d);
        number_if(d, STR(".minnctapersm"), &blocks);
        number_if(d, STR(".maxnreg"), &limit);
        bool required = str_eq(d->name, STR(".reqntid"));
        if (!required && !str_eq(d->name, STR(".maxntid")))
            continue;
        uint32_t size[3] = {1, 1, 1};
        numbers(d->args, size);
        uint64_t most = (uint64_t)size[0] * size[1] * size[2];
        if (most && most < k->max_threads)
            k->max_threads = (uint32_t)most;
        if (required)
            memcpy(k->required_block, size, sizeof size);
    }
    k->max_registers = most_registers(k, blocks, limit);
    struct str target = f->module->ptx->target;
    const char *sm = target.len ? memmem(target.ptr, target.len, "sm_", 3) : NULL;
    if (sm)
        k->ptx_version = atoi(sm + 3);
}

static int add_kernels(struct load *l)
{
    struct exec_program *p = l->program;
    for (uint32_t k = 0; k < p->nfuncs; k++)
        p->nkernels += l->funcs.items[k]->ptx->is_entry;
    p->kernels = ARENA_ARRAY(&p->arena, struct exec_kernel, p->nkernels);
    p->entries = ARENA_ARRAY(&p->arena, struct exec_func *, p->nkernels);
    uint32_t at = 0;
    for (uint32_t k = 0; k < p->nfuncs; k++) {
        struct exec_func *f = l->funcs.items[k];
        if (!f->ptx->is_entry)
            continue;
        struct exec_kernel *kernel = &p->kernels[at];
        p->entries[at] = f;
        f->kernel = kernel;
        kernel->name = f->name;
        kernel->program = p;
        int err = kernel_params(l, kernel, f);
        if (err)
            return err;
        kernel_limits(kernel, f);
        if (map_put(&p->kernel_names, f->name, at++))
            return -ENOMEM;
    }
    return 0;
}

// --- all ---------------------------------------------------------------------------------------------------

static int finish(struct load *l)
{
    struct exec_program *p = l->program;
    p->funcs = ARENA_ARRAY(&p->arena, struct exec_func *, p->nfuncs);
    if (p->nfuncs)
        memcpy(p->funcs, l->funcs.items, p->nfuncs * sizeof *p->funcs);
    p->nvariables = (uint32_t)l->variables.len;
    p->variables = ARENA_ARRAY(&p->arena, struct exec_variable, p->nvariables);
    if (p->nvariables)
        memcpy(p->variables, l->variables.items, p->nvariables * sizeof *p->variables);
    for (uint32_t k = 0; k < p->nvariables; k++)
        if (map_put(&p->variable_names, p->variables[k].name, k))
            return -ENOMEM;
    p->nreferences = (uint32_t)l->references.len;
    p->references = ARENA_ARRAY(&p->arena, struct exec_variable, p->nreferences);
    if (p->nreferences)
        memcpy(p->references, l->references.items, p->nreferences * sizeof *p->references);
    p->nlocs = (uint32_t)l->locs.len;
    p->locs = ARENA_ARRAY(&p->arena, const struct ptx_loc *, p->nlocs);
    if (p->nlocs)
        memcpy(p->locs, l->locs.items, p->nlocs * sizeof *p->locs);
    return 0;
}

static int load_all(struct load *l, const struct exec_text *texts)
{
    struct exec_program *p = l->program;
    int err = 0;
    for (unsigned k = 0; k < p->nmodules && !err; k++)
        err = parse(l, &p->modules[k], &texts[k]);
    for (unsigned k = 0; k < p->nmodules && !err; k++)
        err = define_module(l, &p->modules[k]);
    for (unsigned k = 0; k < p->nmodules && !err; k++)
        add_functions(l, &p->modules[k]);
    for (unsigned k = 0; k < p->nmodules && !err; k++)
        err = place_module(l, &p->modules[k]);
    for (unsigned k = 0; k < p->nmodules && !err; k++)
        err = resolve_module(l, &p->modules[k]);
    if (!err)
        err = add_kernels(l);
    for (uint32_t k = 0; k < p->nfuncs && !err; k++) {
        l->funcs.items[k]->code_address = code_add(l->funcs.items[k]);
        if (!l->funcs.items[k]->code_address)
            err = -ENOMEM;
    }
    if (!err)
        err = load_layout(l);
    if (!err)
        native_bind(l);
    for (size_t k = 0; k < l->placed.len && !err; k++)
        err = load_initialise(l, &l->placed.items[k]);
    for (uint32_t k = 0; k < p->nfuncs && !err; k++)
        if (!l->funcs.items[k]->intrinsic)
            err = decode_func(l, l->funcs.items[k]);
    if (!err)
        err = load_stacks(l);
    return err ? err : finish(l);
}

int exec_load(const struct exec_text *texts, unsigned ntexts, const struct exec_host *host,
              struct diag_sink *sink, struct exec_program **out)
{
    *out = NULL;
    int err = space_init();
    if (err)
        return err;
    struct exec_program *p = mem_zalloc(1, sizeof *p);
    if (!p)
        return -ENOMEM;
    arena_init(&p->arena, 0);
    p->host = *host;
    struct load l = {.program = p, .sink = sink};
    jmp_buf fail;
    err = setjmp(fail);
    if (!err) {
        p->arena.on_fail = &fail;
        p->modules = ARENA_ARRAY(&p->arena, struct exec_module, ntexts ? ntexts : 1);
        p->nmodules = ntexts;
        err = load_all(&l, texts);
    }
    p->arena.on_fail = NULL;
    if (err && p->nfuncs && !p->funcs) {
        for (uint32_t k = 0; k < l.funcs.len; k++)
            code_remove(l.funcs.items[k]->code_address);
        p->nfuncs = 0;
    }
    map_free(&l.names);
    vec_free(&l.definitions);
    vec_free(&l.funcs);
    vec_free(&l.variables);
    vec_free(&l.references);
    vec_free(&l.placed);
    vec_free(&l.locs);
    if (err)
        exec_program_free(p);
    else
        *out = p;
    return err;
}

void exec_program_free(struct exec_program *p)
{
    if (!p)
        return;
    for (uint32_t k = 0; k < p->nfuncs; k++)
        code_remove(p->funcs[k]->code_address);
    for (unsigned k = 0; k < p->nmodules; k++) {
        ptx_free(p->modules[k].ptx);
        mem_free(p->modules[k].text);
    }
    map_free(&p->kernel_names);
    map_free(&p->variable_names);
    arena_free(&p->arena);
    mem_free(p);
}

// --- queries -----------------------------------------------------------------------------------------------

unsigned exec_kernel_count(const struct exec_program *p)
{
    return p->nkernels;
}

const struct exec_kernel *exec_kernel(const struct exec_program *p, unsigned i)
{
    return &p->kernels[i];
}

const struct exec_kernel *exec_find_kernel(const struct exec_program *p, struct str name)
{
    uint32_t at = map_get(&p->kernel_names, name);
    return at == MAP_NONE ? NULL : &p->kernels[at];
}

unsigned exec_variable_count(const struct exec_program *p)
{
    return p->nvariables;
}

const struct exec_variable *exec_variable(const struct exec_program *p, unsigned i)
{
    return &p->variables[i];
}

const struct exec_variable *exec_find_variable(const struct exec_program *p, struct str name)
{
    uint32_t at = map_get(&p->variable_names, name);
    return at == MAP_NONE ? NULL : &p->variables[at];
}

const struct exec_variable *exec_find_reference(const struct exec_program *p, struct str name)
{
    for (uint32_t k = 0; k < p->nreferences; k++)
        if (str_eq(p->references[k].name, name))
            return &p->references[k];
    return NULL;
}

struct str exec_runtime_call(const struct exec_program *p)
{
    for (uint32_t i = 0; i < p->nfuncs; i++)
        for (uint32_t k = 0; k < p->funcs[i]->ncallees; k++) {
            const struct exec_func *callee = p->funcs[i]->callees[k];
            if (callee->intrinsic && str_starts(callee->name, STR("__cudaCDP2")))
                return callee->name;
        }
    return (struct str){"", 0};
}
