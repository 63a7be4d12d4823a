// SPDX-License-Identifier: MIT
#include "pass/pass.h"
#include "pass/pass_apart.h"

#include <assert.h>
#include <errno.h>

#include "base/mem.h"
#include "pass/pass_check.h"
#include "pass/pass_fence.h"
#include "pass/pass_kheap.h"

const struct pass_row pass_rows[] = {
#define PASS(name, ...) {#name, __VA_ARGS__},
#include "pass/passes.def"
};
const unsigned pass_row_count = sizeof pass_rows / sizeof *pass_rows;

static pass_fn *const functions[] = {
#define PASS(name, ...) pass_##name,
#include "pass/passes.def"
};

static const char listed[] =
#define PASS(name, ...) ", " #name
#include "pass/passes.def"
    ;
const char *const pass_names = &listed[2];

const char *const pass_why_names[PASS_WHY_COUNT] = {[PASS_REWRITTEN] = "rewritten",
                                                    [PASS_LAUNCHES] = "device-side launch",
                                                    [PASS_UNWANTED] = "not wanted",
                                                    [PASS_UNCOPIED] = "cannot be copied",
                                                    [PASS_CROWDED] = "no registers are left"};

// --- lists of names ----------------------------------------------------------------------------------------

static struct str next_name(struct str *rest)
{
    const char *comma = memchr(rest->ptr, ',', rest->len);
    struct str name = {rest->ptr, comma ? (size_t)(comma - rest->ptr) : rest->len};
    *rest = str_skip(*rest, name.len + (comma != NULL));
    return name;
}

static bool wants(const char *passes, unsigned row)
{
    struct str rest = str_from(passes);
    while (rest.len)
        if (str_eq(next_name(&rest), str_from(pass_rows[row].name)))
            return true;
    return false;
}

static bool is_name(struct str name)
{
    for (unsigned i = 0; i < pass_row_count; i++)
        if (str_eq(name, str_from(pass_rows[i].name)))
            return true;
    return false;
}

bool pass_known(const char *passes)
{
    struct str rest = str_from(passes);
    size_t before;
    do {
        before = rest.len;
        struct str name = next_name(&rest);
        if (!is_name(name))
            return false;
        before -= name.len;
    } while (before);  // a comma, so a name must follow
    return true;
}

static size_t add_key(const struct pass_row *row, bool comma, char *key, size_t size)
{
    size_t len = (size_t)snprintf(key, size, "%s%s.%u", comma ? "," : "", row->name, row->version);
    if (row->sum && len < size)
        len += (size_t)snprintf(key + len, size - len, ":%016llx", (unsigned long long)row->sum());
    return len;
}

void pass_key(const char *passes, char *key, size_t size)
{
    size_t len = 0;
    if (size)
        *key = 0;
    for (unsigned i = 0; i < pass_row_count && len < size; i++)
        if (wants(passes, i))
            len += add_key(&pass_rows[i], len > 0, key + len, size - len);
}

// --- functions ---------------------------------------------------------------------------------------------

// Inside the runtime's library the names begin with underscores.
bool pass_is_launch(struct str name)
{
    static const struct str names[] = {
        {"cudaLaunchDevice", 16}, {"cudaGetParameterBuffer", 22}, {"cudaCDP", 7}};
    while (name.len && name.ptr[0] == '_')
        name = str_skip(name, 1);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (str_starts(name, names[i]))
            return true;
    return false;
}

static bool launches(const struct ptx_module *m, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nstmts; i++) {
        const struct ptx_stmt *s = &f->stmts[i];
        if (s->kind != PTX_INSN || s->form->id != PTX_OP_CALL)
            continue;
        const struct ptx_operand *callee = ptx_operand(s, 1);
        if (callee->kind == PTX_SYM && pass_is_launch(ptx_sym(m, callee->id)->name))
            return true;
    }
    return false;
}

static bool has_body(const struct ptx_item *item)
{
    return item->kind == PTX_ITEM_FUNC && item->func->has_body;
}

static int list_funcs(struct pass_context *c)
{
    struct pass_result *r = c->result;
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->m->nitems; i++)
        n += has_body(&c->m->items[i]);
    r->funcs = ARENA_ARRAY(&r->arena, struct pass_func, n + 1);
    c->funcs = ARENA_ARRAY(&c->m->arena, struct ptx_func *, n + 1);
    c->flows = ARENA_ARRAY(&c->m->arena, struct flow, n + 1);
    c->flow_edits = ARENA_ARRAY(&c->m->arena, uint32_t, n + 1);
    if (!r->funcs || !c->funcs || !c->flows || !c->flow_edits)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->m->nitems; i++) {
        if (!has_body(&c->m->items[i]))
            continue;
        struct ptx_func *f = c->m->items[i].func;
        struct pass_func *to = &r->funcs[r->nfuncs];
        *to =
            (struct pass_func){.name = arena_str(&r->arena, ptx_func_name(c->m, f)), .is_entry = f->is_entry};
        if (!to->name.ptr)
            return -ENOMEM;
        bool wanted = !f->is_entry || !c->wants || c->wants(to->name);
        to->why = !wanted ? PASS_UNWANTED : launches(c->m, f) ? PASS_LAUNCHES : PASS_REWRITTEN;
        c->flows[r->nfuncs] = (struct flow){.m = c->m, .f = f};
        c->flow_edits[r->nfuncs] = f->nedits;
        c->funcs[r->nfuncs++] = f;
    }
    return 0;
}

// The array is copied for each symbol: there are few.
int pass_add_symbol(struct pass_context *c, struct str name, uint64_t bytes)
{
    struct pass_result *r = c->result;
    struct pass_symbol *symbols = ARENA_ARRAY(&r->arena, struct pass_symbol, r->nsymbols + 1u);
    struct str kept = arena_str(&r->arena, name);
    if (!symbols || !kept.ptr)
        return -ENOMEM;
    if (r->nsymbols)
        memcpy(symbols, r->symbols, r->nsymbols * sizeof *symbols);
    symbols[r->nsymbols++] = (struct pass_symbol){c->pass, kept, bytes};
    r->symbols = symbols;
    return 0;
}

const struct pass_symbol *pass_symbol_of(const struct pass_result *r, const char *pass)
{
    for (uint32_t i = 0; i < r->nsymbols; i++)
        if (strcmp(r->symbols[i].pass, pass) == 0)
            return &r->symbols[i];
    return NULL;
}

// --- analyses ----------------------------------------------------------------------------------------------

struct flow *pass_flow(struct pass_context *c, uint32_t func)
{
    assert(func < c->result->nfuncs);
    if (c->flow_edits[func] != c->funcs[func]->nedits)
        flow_drop(&c->flows[func]);
    c->flow_edits[func] = c->funcs[func]->nedits;
    return &c->flows[func];
}

void pass_break(struct pass_context *c, unsigned facts)
{
    for (uint32_t i = 0; (facts & (PASS_INSNS | PASS_BLOCKS)) && i < c->result->nfuncs; i++)
        flow_drop(&c->flows[i]);
}

// --- running -----------------------------------------------------------------------------------------------

static int run_pass(struct pass_context *c, unsigned row)
{
    int err = edit_open(c->m, c->sink, &c->edit);
    if (err)
        return err;
    c->pass = pass_rows[row].name;
    err = functions[row](c);
    int edit = edit_close(c->edit);
    c->edit = NULL;
    return edit ? edit : err;
}

// Drops warnings: they are about the program, which is not what is verified here.
struct errors_only {
    struct diag_sink sink;
    struct diag_sink *to;
};

static void emit_errors(struct diag_sink *sink, const struct diag *d)
{
    struct diag_sink *to = ((struct errors_only *)sink)->to;
    if (d->severity != DIAG_ERROR)
        return;
    to->errors++;
    to->emit(to, d);
}

static int verify(struct pass_context *c, const struct pass_request *request)
{
    struct errors_only errors = {{.emit = emit_errors}, c->sink};
    return request->verify ? ptx_verify(c->m, &errors.sink, NULL) : 0;
}

static int run_passes(struct pass_context *c, const struct pass_request *request)
{
    unsigned facts = PASS_ALL_FACTS;
    for (unsigned i = 0; i < pass_row_count; i++) {
        if (!wants(request->passes, i))
            continue;
        const struct pass_row *row = &pass_rows[i];
        assert((row->requires & ~facts) == 0);
        assert((row->keeps | row->breaks) == PASS_ALL_FACTS && !(row->keeps & row->breaks));
        int err = run_pass(c, i);
        if (!err)
            err = verify(c, request);
        if (err)
            return err;
        facts &= ~row->breaks;
        pass_break(c, row->breaks);
    }
    return 0;
}

static bool was_rewritten(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nsyms; i++)
        if (str_starts(m->syms[i].name, STR(EDIT_PREFIX)))
            return true;
    return false;
}

static int refuse(struct pass_context *c, const char *why)
{
    diag_report(c->sink, DIAG_ERROR, &c->m->source, 0, 0, "%s", why);
    return -ENOTSUP;
}

// Compilers do not write such modules: the functions' registers would have to be renumbered after theirs.
static bool has_registers(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_VAR && m->items[i].var->space == PTX_SPACE_REG)
            return true;
    return false;
}

static int print(const struct pass_context *c)
{
    struct pass_result *r = c->result;
    int err = out_to_memory(&r->out);
    if (err)
        return err;
    ptx_print(c->m, &r->out);
    out_char(&r->out, 0);
    r->text = (struct str){r->out.buf, r->out.len - 1};
    return r->out.error;
}

static int rewrite(struct pass_context *c, const struct pass_request *request)
{
    struct pass_result *r = c->result;
    bool old = c->m->version_major < 2 || (c->m->version_major == 2 && c->m->version_minor < 3);
    if (c->m->address_size == 32 || (!c->m->address_size && old))
        return refuse(c, "addresses of 32 bits are not rewritten");
    if (has_registers(c->m))
        return refuse(c, "registers outside of functions are not rewritten");
    c->m->address_size = 64;  // what the driver's compiler assumes if a text does not say it
    if (was_rewritten(c->m))
        return -EEXIST;
    int err = verify(c, request);
    if (!err)
        err = list_funcs(c);
    if (!err && request->arch)
        err = edit_target(c->m, request->arch, &r->lowered);
    if (!err && request->linked)
        pass_apart_align(c->m);
    if (!err)
        err = run_passes(c, request);
    return err ? err : print(c);
}

static int retarget(struct pass_context *c, const struct pass_request *request)
{
    int err = edit_target(c->m, request->arch, &c->result->lowered);
    return err ? err : print(c);
}

static int make(const char *name, struct str text, const struct pass_request *request, struct diag_sink *sink,
                int (*change)(struct pass_context *c, const struct pass_request *request),
                struct pass_result **out)
{
    struct pass_context c = {
        .sink = sink, .wants = request->wants, .judge = request->judge, .linked = request->linked};
    *out = NULL;
    int err = ptx_parse(name, text, sink, NULL, &c.m);
    if (err)
        return err;
    c.result = mem_zalloc(1, sizeof *c.result);
    if (c.result)
        arena_init(&c.result->arena, 0);
    err = c.result ? change(&c, request) : -ENOMEM;
    if (c.result)
        pass_break(&c, PASS_ALL_FACTS);
    ptx_free(c.m);
    if (err)
        pass_result_free(c.result);
    else
        *out = c.result;
    return err;
}

int pass_rewrite(const char *name, struct str text, const struct pass_request *request,
                 struct diag_sink *sink, struct pass_result **out)
{
    *out = NULL;
    return pass_known(request->passes) ? make(name, text, request, sink, rewrite, out) : -ENOENT;
}

int pass_retarget(const char *name, struct str text, unsigned arch, struct diag_sink *sink,
                  struct pass_result **out)
{
    return make(name, text, &(struct pass_request){.arch = arch}, sink, retarget, out);
}

void pass_result_free(struct pass_result *r)
{
    if (!r)
        return;
    if (r->out.buf)
        out_close(&r->out);
    arena_free(&r->arena);
    mem_free(r);
}

// --- versions ----------------------------------------------------------------------------------------------

enum { OLDEST = 70 };  // oldest architecture whose kernels are rewritten

void pass_raise_to(struct ptx_module *m, uint32_t major, uint32_t minor)
{
    if (m->version_major > major || (m->version_major == major && m->version_minor >= minor))
        return;
    m->version_major = major;
    m->version_minor = minor;
}

int pass_raise_version(struct pass_context *c, unsigned *arch)
{
    char suffix;
    if (!edit_target_parse(c->m->target, arch, &suffix) || *arch < OLDEST) {
        diag_report(c->sink, DIAG_ERROR, &c->m->source, 0, 0,
                    "code for " STR_FMT " is not rewritten, only for sm_%d and newer ones",
                    STR_ARG(c->m->target), OLDEST);
        return -ENOTSUP;
    }
    pass_raise_to(c->m, 6, 3);
    return 0;
}
