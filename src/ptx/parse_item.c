// SPDX-License-Identifier: MIT
// Parses modules: header, functions, everything outside functions.
#include "ptx/parser.h"

static void add_item(struct parser *p, struct ptx_item item)
{
    PUSH(p, &p->items, item);
}

static void add_text_item(struct parser *p, enum ptx_item_kind kind, uint32_t pos)
{
    struct str *text = ARENA_NEW(&p->m->arena, struct str);
    const char *from = p->lex.start + pos;
    *text = (struct str){from, (size_t)(p->lex.prev_end - from)};
    add_item(p, (struct ptx_item){.kind = (uint8_t)kind, .pos = pos, .text = text});
}

// --- header ------------------------------------------------------------------------------------------------

static bool read_version(struct str t, unsigned *major, unsigned *minor)
{
    unsigned *part = major;
    size_t digits = 0;
    *major = *minor = 0;
    for (size_t i = 0; i < t.len; i++) {
        if (t.ptr[i] == '.' && part == major && digits) {
            part = minor;
            digits = 0;
        } else if (t.ptr[i] >= '0' && t.ptr[i] <= '9' && ++digits <= 3) {
            *part = *part * 10 + (unsigned)(t.ptr[i] - '0');
        } else {
            return false;
        }
    }
    return part == minor && digits;
}

static void parse_version(struct parser *p)
{
    lexer_advance(&p->lex);
    if (!read_version(p->lex.tok.text, &p->m->version_major, &p->m->version_minor))
        parser_fail(p, "a version such as 9.0 is missing");
    lexer_advance(&p->lex);
}

static void parse_target(struct parser *p)
{
    if (p->m->target.len)
        parser_fail(p, "there is a second .target");
    lexer_advance(&p->lex);
    const char *from = p->lex.tok.text.ptr;
    do {
        if (p->lex.tok.kind != TOK_IDENT)
            parser_fail(p, "a target such as sm_90 is missing");
        lexer_advance(&p->lex);
    } while (parser_accept(p, ','));
    p->m->target = (struct str){from, (size_t)(p->lex.prev_end - from)};
}

static void parse_address_size(struct parser *p)
{
    if (p->m->address_size)
        parser_fail(p, "there is a second .address_size");
    lexer_advance(&p->lex);
    if (p->lex.tok.kind != TOK_INT || (p->lex.tok.value != 32 && p->lex.tok.value != 64))
        parser_fail(p, "an address size must be 32 or 64");
    p->m->address_size = (unsigned)p->lex.tok.value;
    lexer_advance(&p->lex);
}

// --- functions ---------------------------------------------------------------------------------------------

static void parse_directives(struct parser *p, struct ptx_func *f)
{
    p->directives.len = 0;
    while (p->lex.tok.kind == TOK_WORD) {
        struct ptx_directive d = {.name = p->lex.tok.text};
        bool pragma = parser_at_word(p, ".pragma");
        lexer_advance(&p->lex);
        const char *from = p->lex.tok.text.ptr, *to = from;
        while (p->lex.tok.kind == TOK_INT || p->lex.tok.kind == TOK_STRING || p->lex.tok.kind == TOK_IDENT ||
               p->lex.tok.punct == ',') {
            to = p->lex.next;
            lexer_advance(&p->lex);
        }
        d.args = (struct str){from, (size_t)(to - from)};
        if (pragma)
            parser_expect(p, ';');
        PUSH(p, &p->directives, d);
    }
    f->ndirectives = (uint32_t)p->directives.len;
    f->directives = ARENA_ARRAY(&p->m->arena, struct ptx_directive, f->ndirectives);
    if (f->ndirectives)
        memcpy(f->directives, p->directives.items, f->ndirectives * sizeof *f->directives);
}

// Declares a function. Its name is behind the returned parameters, but must be declared outside their scope.
static uint32_t declare_function(struct parser *p, uint32_t *name_pos)
{
    struct lexer here = p->lex;
    if (p->lex.tok.punct == '(')
        parser_skip_group(p, '(', ')');
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "a function's name is missing");
    *name_pos = parser_pos(p);
    uint32_t sym = name_declare_again(p, p->lex.tok.text, PTX_SYM_FUNC, *name_pos);
    p->lex = here;
    return sym;
}

static void parse_signature(struct parser *p, struct ptx_func *f)
{
    uint32_t name_pos;
    f->sym = declare_function(p, &name_pos);
    p->nregs = p->module_regs;
    p->reg_vars.len = p->module_reg_vars;
    name_open_scope(p);
    if (p->lex.tok.punct == '(')
        f->nrets = decl_params(p, &f->rets);
    if (parser_pos(p) != name_pos)
        parser_fail(p, "a function's name is missing");
    lexer_advance(&p->lex);
    if (p->lex.tok.punct == '(')
        f->nparams = decl_params(p, &f->params);
    parse_directives(p, f);
}

static void parse_function(struct parser *p, enum ptx_linkage linkage, uint32_t pos)
{
    struct ptx_func *f = ARENA_NEW(&p->m->arena, struct ptx_func);
    f->linkage = (uint8_t)linkage;
    f->is_entry = parser_at_word(p, ".entry");
    f->pos = pos;
    lexer_advance(&p->lex);
    if (parser_at_word(p, ".attribute"))
        f->attribute = decl_attribute(p);
    parse_signature(p, f);
    if (p->lex.tok.punct != '{' && p->lex.tok.punct != ';')
        parser_fail(p, "'{' or ';' is missing behind the function's head");
    struct ptx_sym *sym = &p->syms.items[f->sym];
    f->has_body = p->lex.tok.punct == '{';
    if (f->has_body && sym->func && sym->func->has_body)
        parser_fail(p, QUOTE_FMT " has a second body", QUOTE_ARG(sym->name));
    if (!sym->func || f->has_body)
        sym->func = f;
    add_item(p, (struct ptx_item){.kind = PTX_ITEM_FUNC, .pos = pos, .func = f});
    if (parser_accept(p, '{')) {
        body_parse(p, f);
    } else {
        parser_expect(p, ';');
        name_close_scope(p);
    }
}

// --- everything else outside functions ---------------------------------------------------------------------

// Parses .file 1 "a.cu" [, time, size].
static void parse_file(struct parser *p)
{
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    uint32_t number = (uint32_t)parser_int(p, "a file number", UINT32_MAX);
    if (p->lex.tok.kind != TOK_STRING)
        parser_fail(p, "a file name is missing");
    struct str name = {p->lex.tok.text.ptr + 1, p->lex.tok.text.len - 2};
    PUSH(p, &p->files, (struct ptx_source_file){number, name});
    lexer_advance(&p->lex);
    while (parser_accept(p, ','))
        parser_int(p, "a number", UINT64_MAX);
    add_text_item(p, PTX_ITEM_FILE, pos);
}

// Notes the labels up to the section's end. Each line of inlined code refers to one, and there may be
// thousands.
static void note_debug_strings(struct parser *p)
{
    const char *text = p->m->source.text.ptr;
    for (struct lexer lex = p->lex;
         lex.tok.kind != TOK_END && lex.tok.kind != TOK_BAD && lex.tok.punct != '}'; lexer_advance(&lex)) {
        struct str label = lex.tok.text;
        if (lex.tok.kind == TOK_IDENT && lexer_peek(&lex) == ':' &&
            map_get(&p->m->debug_strings, label) == MAP_NONE &&
            map_put(&p->m->debug_strings, label, (uint32_t)(lex.next - text)))
            parser_out_of_memory(p);
    }
}

static void parse_section(struct parser *p)
{
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    if (p->lex.tok.kind != TOK_WORD && p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "a section's name is missing");
    bool strings = str_eq(p->lex.tok.text, STR(".debug_str"));
    lexer_advance(&p->lex);
    if (strings)
        note_debug_strings(p);
    parser_skip_group(p, '{', '}');
    add_text_item(p, PTX_ITEM_SECTION, pos);
}

// Parses a name of an alias; both must have been declared.
static uint32_t parse_alias_name(struct parser *p, bool is_target)
{
    struct str text = p->lex.tok.text;
    uint32_t pos = parser_pos(p);
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "a function's name is missing");
    uint32_t sym = name_find(p, text);
    uint8_t kind = sym == PTX_NONE ? PTX_SYM_UNDEFINED : p->syms.items[sym].kind;
    if (kind != PTX_SYM_FUNC && !(is_target && kind == PTX_SYM_ALIAS))
        parser_fail_at(p, pos, text.len, QUOTE_FMT " is not a function that is declared here",
                       QUOTE_ARG(text));
    lexer_advance(&p->lex);
    return sym;
}

// Parses .alias name, target;
static void parse_alias(struct parser *p)
{
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    uint32_t name = parse_alias_name(p, false);
    parser_expect(p, ',');
    uint32_t target = parse_alias_name(p, true);
    parser_expect(p, ';');
    p->syms.items[name].kind = PTX_SYM_ALIAS;
    p->syms.items[name].target = target;
    add_text_item(p, PTX_ITEM_ALIAS, pos);
}

static bool at_item(const struct parser *p)
{
    static const char *const words[] = {".entry", ".func",   ".visible", ".extern",
                                        ".weak",  ".common", ".file",    ".section"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (parser_at_word(p, words[i]))
            return true;
    return false;
}

// Skips an unknown directive up to its ; or behind its { }. One that has neither ends where the next item
// begins, so that it swallows no function.
static void parse_unknown_item(struct parser *p, enum ptx_item_kind kind)
{
    uint32_t pos = parser_pos(p);
    do {
        if (p->lex.tok.kind == TOK_BAD)
            parser_fail(p, "cannot be read");
        lexer_advance(&p->lex);
    } while (p->lex.tok.kind != TOK_END && p->lex.tok.punct != ';' && p->lex.tok.punct != '{' && !at_item(p));
    if (p->lex.tok.punct == '{')
        parser_skip_group(p, '{', '}');
    else if (!parser_accept(p, ';') && !at_item(p))
        parser_fail(p, "the text ends where ';' is expected");
    add_text_item(p, kind, pos);
}

// Parses variables and registers outside functions. Such registers are in every function, numbered before its
// own.
static void parse_variables(struct parser *p, enum ptx_linkage linkage)
{
    p->nregs = p->module_regs;
    p->reg_vars.len = p->module_reg_vars;
    decl_variables(p, linkage, false);
    p->module_regs = p->nregs;
    p->module_reg_vars = p->reg_vars.len;
}

static void parse_item(struct parser *p)
{
    if (parser_accept(p, ';'))
        return;
    if (p->lex.tok.kind != TOK_WORD)
        parser_fail(p, QUOTE_FMT " is not expected outside of a function", QUOTE_ARG(p->lex.tok.text));
    uint32_t pos = parser_pos(p);
    enum ptx_linkage linkage = decl_linkage(p);
    if (parser_at_word(p, ".entry") || parser_at_word(p, ".func"))
        parse_function(p, linkage, pos);
    else if (p->lex.tok.kind == TOK_WORD && ptx_space_find(str_skip(p->lex.tok.text, 1)) != PTX_SPACE_GENERIC)
        parse_variables(p, linkage);
    else if (linkage != PTX_LINK_NONE)
        parser_fail(p, "a function or variable is missing behind the linkage");
    else if (parser_at_word(p, ".file"))
        parse_file(p);
    else if (parser_at_word(p, ".section"))
        parse_section(p);
    else if (parser_at_word(p, ".alias"))
        parse_alias(p);
    else if (parser_at_word(p, ".target"))
        parse_target(p);
    else if (parser_at_word(p, ".address_size"))
        parse_address_size(p);
    else if (parser_at_word(p, ".version"))
        parser_fail(p, "there is a second .version");
    else
        parse_unknown_item(p, parser_at_word(p, ".pragma") ? PTX_ITEM_PRAGMA : PTX_ITEM_VERBATIM);
}

void item_parse_module(struct parser *p)
{
    if (!parser_at_word(p, ".version"))
        parser_fail(p, "PTX begins with .version");
    parse_version(p);
    while (p->lex.tok.kind != TOK_END)
        parse_item(p);
}
