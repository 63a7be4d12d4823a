// SPDX-License-Identifier: MIT
#include "exec/native.h"

#include <pthread.h>
#include <string.h>

#include "base/mutex.h"
#include "exec/cluster.h"
#include "exec/intrinsic.h"

// The rights that exec/space.h stores are those that native functions read.
_Static_assert((int)NATIVE_READ == SPACE_READ && (int)NATIVE_WRITE == SPACE_WRITE &&
                   (int)NATIVE_FINE == SPACE_FINE && (int)NATIVE_BITS == SPACE_BITS &&
                   (int)NATIVE_COARSE_BITS == SPACE_COARSE_BITS && (int)NATIVE_FINE_BITS == SPACE_FINE_BITS &&
                   (int)NATIVE_LANES == EXEC_LANES,
               "base/native_rows.h says what space.h and warp.h say");

// --- offers ------------------------------------------------------------------------------------------------

enum { OFFERS_MOST = 32 };
static const struct native_row *offers[OFFERS_MOST];
static unsigned noffers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // protects offers and noffers; rank: leaf

int exec_native_add(const struct native_row *rows, unsigned n, struct native_space *s)
{
    int err = space_init();
    if (err)
        return err;
    *s = (struct native_space){space.coarse, space.fine,          space.device_base, space.device_size,
                               space.alias,  space.shared_window, 2 * SPACE_WINDOW};
    mutex_lock(&lock);
    bool known = false;
    for (unsigned k = 0; k < noffers; k++)
        known |= offers[k] == rows;
    for (unsigned k = 0; k < n && !known && noffers < OFFERS_MOST; k++)
        offers[noffers++] = &rows[k];
    mutex_unlock(&lock);
    return 0;
}

// --- texts -------------------------------------------------------------------------------------------------

// Where a function's text begins, at `.func`, and its name.
struct definition_text {
    struct str rest;  // from `.func` to the end of the whole text
    struct str name;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$';
}

static struct str skip_blank(struct str s)
{
    while (s.len && is_blank(*s.ptr))
        s = str_skip(s, 1);
    return s;
}

// Finds the first function in a text, defined or declared.
static bool find_function(struct str text, struct definition_text *d)
{
    const char *word = text.len ? memmem(text.ptr, text.len, ".func", 5) : NULL;
    if (!word)
        return false;
    d->rest = str_skip(text, (size_t)(word - text.ptr));
    struct str s = skip_blank(str_skip(d->rest, 5));
    if (s.len && *s.ptr == '(') {
        const char *end = memchr(s.ptr, ')', s.len);
        s = end ? skip_blank(str_skip(s, (size_t)(end + 1 - s.ptr))) : str_skip(s, s.len);
    }
    size_t n = 0;
    while (n < s.len && is_name(s.ptr[n]))
        n++;
    d->name = (struct str){s.ptr, n};
    return n;
}

// Returns the bytes of a function's text up to its closing brace, 0 if it is only declared.
static size_t body_end(struct str rest)
{
    unsigned depth = 0;
    for (size_t k = 0; k < rest.len; k++) {
        if (rest.ptr[k] == ';' && !depth)
            return 0;
        depth += rest.ptr[k] == '{';
        if (rest.ptr[k] == '}' && (!depth || !--depth))
            return k + 1;
    }
    return 0;
}

// Returns whether two texts differ in white space only.
static bool same(struct str a, struct str b)
{
    for (;;) {
        a = skip_blank(a);
        b = skip_blank(b);
        if (!a.len || !b.len)
            return a.len == b.len;
        if (*a.ptr != *b.ptr)
            return false;
        a = str_skip(a, 1);
        b = str_skip(b, 1);
    }
}

// Returns the function that a name stands for in a module, NULL if it is not defined in that module.
static struct exec_func *defined_in(const struct exec_module *m, struct str name)
{
    const struct ptx_sym *sym = ptx_find(m->ptx, name);
    if (!sym || sym->kind != PTX_SYM_FUNC)
        return NULL;
    const struct exec_symbol *s = &m->symbols[sym - m->ptx->syms];
    return s->kind == EXEC_SYM_FUNC && s->func->module == m && !s->func->intrinsic ? s->func : NULL;
}

// Returns where a text is in a module's, byte by byte; its end, if it is not. Whoever links a text of its own
// with others has it there as it is.
static size_t copy_of(const struct exec_module *m, struct str text)
{
    struct str all = m->ptx->source.text;
    const char *at = memmem(all.ptr, all.len, text.ptr, text.len);
    return at ? (size_t)(at - all.ptr) : all.len;
}

// Returns whether the module has every function that the text defines, in the same words.
static bool has_all(const struct exec_module *m, struct str text)
{
    struct definition_text ours, theirs;
    size_t copy = copy_of(m, text), end = copy + text.len;
    for (; find_function(text, &ours); text = str_skip(ours.rest, 5)) {
        const struct exec_func *known = copy < end ? defined_in(m, ours.name) : NULL;
        if (known && known->ptx->pos >= copy && known->ptx->pos < end)
            continue;
        size_t n = body_end(ours.rest);
        if (!n)
            continue;
        const struct exec_func *f = defined_in(m, ours.name);
        struct str all = m->ptx->source.text;
        if (!f || f->ptx->pos >= all.len || !find_function(str_skip(all, f->ptx->pos), &theirs) ||
            !same((struct str){ours.rest.ptr, n}, (struct str){theirs.rest.ptr, body_end(theirs.rest)}))
            return false;
    }
    return true;
}

// --- binding -----------------------------------------------------------------------------------------------

static bool fits(const struct exec_func *f)
{
    bool fits = f->nparams <= NATIVE_ARGUMENTS && f->nrets <= 1;
    for (uint32_t k = 0; k < f->nparams && fits; k++)
        fits = f->params[k].size == 4 || f->params[k].size == 8;
    return fits && (!f->nrets || f->rets[0].size == 4 || f->rets[0].size == 8);
}

static bool find_variables(const struct exec_module *m, const struct native_row *row, struct native_bound *to)
{
    for (unsigned k = 0; k < NATIVE_VARIABLES && row->variables[k]; k++) {
        const struct ptx_sym *sym = ptx_find(m->ptx, str_from(row->variables[k]));
        if (!sym || m->symbols[sym - m->ptx->syms].kind != EXEC_SYM_ADDRESS)
            return false;
        to->variables[k] = m->symbols[sym - m->ptx->syms].value;
    }
    return true;
}

static void find_constants(struct load *l)
{
    struct exec_program *p = l->program;
    if (p->constants)
        return;
    p->constants = ARENA_ARRAY(&p->arena, struct native_range, l->variables.len + 1);
    for (size_t k = 0; k < l->variables.len; k++)
        if (l->variables.items[k].kind == EXEC_CONST)
            p->constants[p->nconstants++] =
                (struct native_range){l->variables.items[k].address, l->variables.items[k].size};
}

static void bind_module(struct load *l, const struct exec_module *m, const struct native_row *const *rows,
                        unsigned n)
{
    const char *text = NULL;  // the last one that was compared
    bool has = false;
    for (unsigned k = 0; k < n; k++) {
        struct exec_func *f = defined_in(m, str_from(rows[k]->name));
        if (!f || !fits(f))
            continue;
        if (rows[k]->text != text)
            has = has_all(m, str_from(rows[k]->text));
        text = rows[k]->text;
        struct native_bound *bound = has ? ARENA_NEW(&l->program->arena, struct native_bound) : NULL;
        if (!bound || !find_variables(m, rows[k], bound))
            continue;
        bound->row = rows[k];
        f->native = bound;
        find_constants(l);
    }
}

void native_bind(struct load *l)
{
    const struct native_row *rows[OFFERS_MOST];
    mutex_lock(&lock);
    unsigned n = noffers;
    memcpy(rows, offers, n * sizeof *rows);
    mutex_unlock(&lock);
    for (unsigned k = 0; k < l->program->nmodules; k++)
        bind_module(l, &l->program->modules[k], rows, n);
}

// --- calls -------------------------------------------------------------------------------------------------

static uint32_t *words(const struct exec_warp *w, const struct exec_place *p)
{
    return (uint32_t *)w->local + (size_t)(w->frame->local_base + p->offset) / 4 * EXEC_LANES;
}

static void read_argument(const struct exec_warp *w, const struct exec_place *from, uint32_t size,
                          uint64_t to[EXEC_LANES])
{
    const uint32_t *word = words(w, from);
    bool wide = size > 4 && from->size > 4;
    for (unsigned l = 0; l < EXEC_LANES; l++)
        to[l] = word[l] | (wide ? (uint64_t)word[EXEC_LANES + l] << 32 : 0);
}

static void write_result(const struct exec_warp *w, const struct exec_place *to, uint32_t size,
                         const uint64_t from[EXEC_LANES], uint32_t lanes)
{
    uint32_t *word = words(w, to);
    FOR_LANES(lanes)
    {
        word[l] = (uint32_t)from[l];
        if (size > 4 && to->size > 4)
            word[EXEC_LANES + l] = (uint32_t)(from[l] >> 32);
    }
}

bool native_call(struct exec_warp *w, const struct exec_insn *i, const struct exec_func *f)
{
    const struct control_call *call = i->ptr;
    const struct exec_block *b = w->block;
    const struct exec_launch *launch = &b->grid->launch;
    if (b->grid->stats)  // they count instructions of PTX
        return false;
    struct native_call c;
    c.mask = w->mask;
    c.smid = b->runner->number % (launch->sm_count ? launch->sm_count : 1);
    c.grid = launch->grid_id;
    for (unsigned k = 0; k < 3; k++) {
        c.block[k] = b->ctaid[k];
        c.blocks[k] = launch->grid[k];
        c.threads[k] = launch->block[k];
    }
    c.thread = w->tid;
    c.variables = f->native->variables;
    c.constants = f->program->constants;
    c.nconstants = f->program->nconstants;
    for (uint32_t k = 0; k < f->nparams; k++)
        read_argument(w, &call->args[k], f->params[k].size, c.argument[k]);
    uint32_t done = f->native->row->fn(&c) & w->mask;
    if (!done)
        return false;
    if (f->nrets)
        write_result(w, &call->rets[0], f->rets[0].size, c.result, done);
    if (done != w->mask) {
        sched_push(w, i, w->mask & ~done);
        w->mask = done;
    }
    return true;
}
