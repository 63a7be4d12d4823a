// SPDX-License-Identifier: MIT
// Entry point of the parser, and functions that the parser's files share.
#include "ptx/parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

// --- errors and small helpers ------------------------------------------------------------------------------

static _Noreturn void vfail(struct parser *p, size_t pos, size_t len, const char *fmt, va_list args)
{
    if (!p->in_unknown)
        diag_vreport(p->sink, DIAG_ERROR, &p->m->source, pos, len, fmt, args);
    va_end(args);
    longjmp(p->escape, -EINVAL);
}

void parser_fail_at(struct parser *p, size_t pos, size_t len, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfail(p, pos, len, fmt, args);
}

// Fails at the current token. If that is a TOK_BAD, its own message is reported instead.
void parser_fail(struct parser *p, const char *fmt, ...)
{
    const struct token *t = &p->lex.tok;
    if (t->kind == TOK_BAD)
        parser_fail_at(p, parser_pos(p), t->text.len, "%s", p->lex.bad);
    va_list args;
    va_start(args, fmt);
    vfail(p, parser_pos(p), t->text.len, fmt, args);
}

void parser_out_of_memory(struct parser *p)
{
    longjmp(p->escape, -ENOMEM);
}

static size_t map_bytes(const struct map *m)
{
    return m->slots ? ((size_t)m->mask + 1) * sizeof *m->slots : 0;
}

// Doubles a vector's capacity if the module's memory limit allows: hostile texts grow vectors as well as the
// arena.
void *parser_grow(struct parser *p, void *items, size_t *cap, size_t size)
{
    size_t more = *cap ? *cap : 16, bytes;
    size_t taken = p->vectors + map_bytes(&p->name_map) + map_bytes(&p->form_map);
    if (__builtin_mul_overflow(more, size, &bytes) || __builtin_add_overflow(taken, bytes, &taken) ||
        taken >= p->limit || p->m->arena.reserved > p->limit - taken)
        parser_out_of_memory(p);
    void *grown = mem_realloc(items, *cap + more, size);
    if (!grown)
        parser_out_of_memory(p);
    *cap += more;
    p->vectors += bytes;
    p->m->arena.limit = p->limit - taken;
    return grown;
}

bool parser_accept(struct parser *p, char punct)
{
    if (p->lex.tok.punct != punct)
        return false;
    lexer_advance(&p->lex);
    return true;
}

void parser_expect(struct parser *p, char punct)
{
    if (parser_accept(p, punct))
        return;
    if (p->lex.tok.kind == TOK_END)
        parser_fail(p, "the text ends where '%c' is expected", punct);
    parser_fail(p, "'%c' is missing before " QUOTE_FMT, punct, QUOTE_ARG(p->lex.tok.text));
}

void parser_skip_group(struct parser *p, char open, char close)
{
    uint32_t pos = parser_pos(p);
    parser_expect(p, open);
    for (unsigned depth = 1; depth; lexer_advance(&p->lex)) {
        if (p->lex.tok.kind == TOK_BAD)
            parser_fail(p, "cannot be read");
        if (p->lex.tok.kind == TOK_END)
            parser_fail_at(p, pos, 1, "this '%c' is never closed", open);
        depth += p->lex.tok.punct == open;
        depth -= p->lex.tok.punct == close;
    }
}

bool parser_at_word(const struct parser *p, const char *word)
{
    return p->lex.tok.kind == TOK_WORD && str_eq(p->lex.tok.text, str_from(word));
}

uint64_t parser_int(struct parser *p, const char *what, uint64_t most)
{
    if (p->lex.tok.kind != TOK_INT)
        parser_fail(p, "%s is missing", what);
    uint64_t value = p->lex.tok.value;
    if (value > most)
        parser_fail(p, "%s must be at most %llu", what, (unsigned long long)most);
    lexer_advance(&p->lex);
    return value;
}

void parser_constant(struct parser *p, struct constant *out)
{
    const char *why = constant_parse(&p->lex, out);
    if (why)
        parser_fail_at(p, (size_t)(out->text.ptr - p->lex.start), out->text.len, "%s", why);
}

// --- the whole ---------------------------------------------------------------------------------------------

// Copies an array to the module's arena. Returns NULL if it is empty.
static void *keep_array(struct parser *p, const void *items, size_t n, size_t size)
{
    if (!n)
        return NULL;
    void *kept = arena_array(&p->m->arena, n, size);
    memcpy(kept, items, n * size);
    return kept;
}

static int by_number(const void *a, const void *b)
{
    const struct ptx_source_file *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static void keep(struct parser *p)
{
    struct ptx_module *m = p->m;
    m->nitems = (uint32_t)p->items.len;
    m->nsyms = (uint32_t)p->syms.len;
    m->nforms = (uint32_t)p->forms.len;
    m->items = keep_array(p, p->items.items, m->nitems, sizeof *m->items);
    m->syms = keep_array(p, p->syms.items, m->nsyms, sizeof *m->syms);
    m->forms = keep_array(p, p->forms.items, m->nforms, sizeof *m->forms);
    m->nfiles = (uint32_t)p->files.len;
    m->files = keep_array(p, p->files.items, m->nfiles, sizeof *m->files);
    if (m->nfiles)
        qsort(m->files, m->nfiles, sizeof *m->files, by_number);
    for (size_t i = 0; i < p->names.len; i++) {
        const struct name *n = &p->names.items[i];
        if (n->sym != PTX_NONE && map_put(&m->globals, n->text, n->sym))
            parser_out_of_memory(p);
    }
}

static void parser_free(struct parser *p)
{
    map_free(&p->name_map);
    map_free(&p->form_map);
    vec_free(&p->names);
    vec_free(&p->ranges);
    vec_free(&p->bindings);
    vec_free(&p->scopes);
    vec_free(&p->pending);
    vec_free(&p->syms);
    vec_free(&p->forwards);
    vec_free(&p->forms);
    vec_free(&p->items);
    vec_free(&p->files);
    vec_free(&p->reg_vars);
    vec_free(&p->stmts);
    vec_free(&p->operands);
    vec_free(&p->var_ptrs);
    vec_free(&p->directives);
    vec_free(&p->ids);
    mem_free(p);
}

static size_t memory_limit(const struct ptx_limits *limits, size_t text)
{
    enum { PER_BYTE = 32, LEAST = 64 << 20 };
    if (limits && limits->memory)
        return limits->memory;
    return text > LEAST / PER_BYTE ? text * PER_BYTE : LEAST;
}

// Parses the module. setjmp and everything that may jump to it run inside this call, which ends only by
// return.
static int run(struct parser *p)
{
    int err = setjmp(p->escape);
    if (err)
        return err;
    p->m->arena.on_fail = &p->escape;
    lexer_init(&p->lex, p->m->source.text);
    item_parse_module(p);
    keep(p);
    return 0;
}

static int parse(struct parser *p, struct ptx_module *m, const struct ptx_limits *limits)
{
    p->limit = memory_limit(limits, m->source.text.len);
    p->m = m;
    arena_init(&m->arena, p->limit);
    int err = run(p);
    m->arena.on_fail = NULL;
    m->arena.limit = p->limit;
    if (err == -ENOMEM)
        diag_report(p->sink, DIAG_ERROR, &m->source, parser_pos(p), p->lex.tok.text.len,
                    "there is not enough memory: a module of this size may take %zu MiB", p->limit >> 20);
    return err;
}

int ptx_parse(const char *name, struct str text, struct diag_sink *sink, const struct ptx_limits *limits,
              struct ptx_module **out)
{
    *out = NULL;
    if (!text.ptr)
        text = STR("");
    struct diag_source source = {name, text};
    if (text.len > INT32_MAX) {
        diag_report(sink, DIAG_ERROR, &source, 0, 0, "the text is 2 GiB or longer");
        return -EINVAL;
    }
    struct ptx_module *m = mem_zalloc(1, sizeof *m);
    struct parser *p = mem_zalloc(1, sizeof *p);
    int err = -ENOMEM;
    if (m && p) {
        m->source = source;
        p->sink = sink;
        err = parse(p, m, limits);
    } else {
        diag_report(sink, DIAG_ERROR, &source, 0, 0, "there is not enough memory");
    }
    if (p)
        parser_free(p);
    if (err)
        ptx_free(m);
    else
        *out = m;
    return err;
}

void ptx_free(struct ptx_module *m)
{
    while (m) {
        struct ptx_module *added = m->added;
        map_free(&m->globals);
        map_free(&m->debug_strings);
        arena_free(&m->arena);
        mem_free(m);
        m = added;
    }
}
