// SPDX-License-Identifier: MIT
// Parses declarations of variables, registers and parameters.
#include "ptx/parser.h"
#include "ptx/words.h"

enum { MOST_REGISTERS = 1 << 24, MOST_DIMENSIONS = 16 };
static const uint64_t most_bytes = (uint64_t)1 << 48;  // of a variable: more than any address space has

enum ptx_linkage decl_linkage(struct parser *p)
{
    for (unsigned i = 1; i < WORDS_LINKAGE; i++) {
        if (parser_at_word(p, words_linkage[i])) {
            lexer_advance(&p->lex);
            return (enum ptx_linkage)i;
        }
    }
    return PTX_LINK_NONE;
}

// Takes .attribute(.managed, .unified(1, 2)) verbatim.
struct str decl_attribute(struct parser *p)
{
    const char *from = p->lex.tok.text.ptr;
    lexer_advance(&p->lex);
    parser_skip_group(p, '(', ')');
    return (struct str){from, (size_t)(p->lex.prev_end - from)};
}

static struct str word_name(const struct parser *p)
{
    return str_skip(p->lex.tok.text, 1);
}

static uint32_t parse_align(struct parser *p)
{
    lexer_advance(&p->lex);
    uint32_t pos = parser_pos(p);
    uint64_t align = parser_int(p, "an alignment", 1u << 30);
    if (align == 0 || (align & (align - 1)))
        parser_fail_at(p, pos, 1, "an alignment must be a power of two");
    return (uint32_t)align;
}

// Parses .ptr [.space] [.align N] of an entry's parameter.
static void parse_ptr(struct parser *p, struct ptx_var *var)
{
    var->is_ptr = true;
    lexer_advance(&p->lex);
    if (p->lex.tok.kind == TOK_WORD) {
        enum ptx_space space = ptx_space_find(word_name(p));
        if (space) {
            var->ptr_space = (uint8_t)space;
            lexer_advance(&p->lex);
        }
    }
    if (parser_at_word(p, ".align"))
        var->ptr_align = parse_align(p);
}

// Parses everything between the state space and the first name.
static void parse_specifiers(struct parser *p, struct ptx_var *var)
{
    while (p->lex.tok.kind == TOK_WORD) {
        if (parser_at_word(p, ".align")) {
            var->align = parse_align(p);
        } else if (parser_at_word(p, ".attribute")) {
            var->attribute = decl_attribute(p);
        } else if (parser_at_word(p, ".ptr")) {
            parse_ptr(p, var);
        } else {
            struct str name = word_name(p);
            enum ptx_mod mod = ptx_mod_find(name);
            enum ptx_type type = ptx_type_find(name);
            if (mod == PTX_MOD_V2 || mod == PTX_MOD_V4)
                var->vec = mod == PTX_MOD_V2 ? 2 : 4;
            else if (type && !var->type)
                var->type = (uint8_t)type;
            else
                parser_fail(p, QUOTE_FMT " is not expected in a declaration", QUOTE_ARG(p->lex.tok.text));
            lexer_advance(&p->lex);
        }
    }
    if (!var->type)
        parser_fail(p, "a type is missing");
}

static bool holds_variables(enum ptx_space space)
{
    switch (space) {
    case PTX_SPACE_REG:
    case PTX_SPACE_CONST:
    case PTX_SPACE_GLOBAL:
    case PTX_SPACE_LOCAL:
    case PTX_SPACE_PARAM:
    case PTX_SPACE_SHARED:
    case PTX_SPACE_TEX: return true;
    default: return false;
    }
}

static struct ptx_var parse_head(struct parser *p)
{
    struct ptx_var var = {.vec = 1, .sym = PTX_NONE, .pos = parser_pos(p)};
    if (p->lex.tok.kind != TOK_WORD)
        parser_fail(p, "a state space such as .param is missing");
    var.space = (uint8_t)ptx_space_find(word_name(p));
    if (!holds_variables((enum ptx_space)var.space))
        parser_fail(p, QUOTE_FMT " is no state space that variables can be in", QUOTE_ARG(p->lex.tok.text));
    lexer_advance(&p->lex);
    parse_specifiers(p, &var);
    return var;
}

// Parses [4][8], [] and, as ptxas accepts it, [0], which is the same as [].
static void parse_dims(struct parser *p, struct ptx_var *var)
{
    uint64_t dims[MOST_DIMENSIONS], bytes = ptx_var_size(var);
    while (p->lex.tok.punct == '[') {
        uint32_t pos = parser_pos(p);
        if (var->ndims == MOST_DIMENSIONS)
            parser_fail(p, "an array has more than %d dimensions", MOST_DIMENSIONS);
        lexer_advance(&p->lex);
        uint64_t n = p->lex.tok.punct == ']' ? 0 : parser_int(p, "the size of an array", most_bytes);
        if (n == 0 && var->ndims)
            parser_fail_at(p, pos, 1, "only the first dimension of an array can be left out");
        parser_expect(p, ']');
        if (n && (__builtin_mul_overflow(bytes, n, &bytes) || bytes > most_bytes))
            parser_fail_at(p, pos, 1, "the array is too large");
        dims[var->ndims++] = n;
    }
    if (var->ndims) {
        var->dims = ARENA_ARRAY(&p->m->arena, uint64_t, var->ndims);
        memcpy(var->dims, dims, var->ndims * sizeof *dims);
    }
}

// Takes the text from behind '=' to the comma or semicolon that ends the declaration; see init.c.
static void parse_init(struct parser *p, struct ptx_var *var)
{
    const char *from = p->lex.tok.text.ptr;
    unsigned open = 0;
    for (;; lexer_advance(&p->lex)) {
        if (p->lex.tok.kind == TOK_END)
            parser_fail_at(p, var->pos, 1, "this initialiser has no end");
        if (p->lex.tok.kind == TOK_BAD)
            parser_fail(p, "cannot be read");
        char c = p->lex.tok.punct;
        if (c == ';' && open)
            parser_fail(p, "the initialiser is not closed before ';'");
        if (!open && (c == ',' || c == ';'))
            break;
        open += c == '{' || c == '(';
        if (c == '}' || c == ')') {
            if (!open)
                parser_fail(p, "this '%c' closes nothing", c);
            open--;
        }
    }
    var->init = (struct str){from, p->lex.prev_end > from ? (size_t)(p->lex.prev_end - from) : 0};
    if (!var->init.len)
        parser_fail(p, "an initialiser is missing");
}

static void number_registers(struct parser *p, struct ptx_var *var)
{
    uint32_t count = var->range ? var->range : 1;
    if (count > MOST_REGISTERS - p->nregs)
        parser_fail_at(p, var->pos, 1, "there are more than %d registers", MOST_REGISTERS);
    var->first_reg = p->nregs;
    p->nregs += count;
    PUSH(p, &p->reg_vars, var);
}

// Parses <N> after a name. Returns false if N is 0, which declares nothing.
static bool parse_range(struct parser *p, struct ptx_var *var)
{
    if (var->space != PTX_SPACE_REG)
        parser_fail(p, "only registers can be declared in ranges");
    lexer_advance(&p->lex);
    var->range = (uint32_t)parser_int(p, "the number of registers", MOST_REGISTERS);
    parser_expect(p, '>');
    return var->range;
}

static uint32_t declare(struct parser *p, struct ptx_var *var, struct str name)
{
    if (var->range) {
        PUSH(p, &p->syms, (struct ptx_sym){.name = name, .kind = PTX_SYM_VAR, .pos = var->pos, .var = var});
        name_declare_range(p, var, name);
        return (uint32_t)p->syms.len - 1;
    }
    bool again = p->scopes.len == 0 && var->space != PTX_SPACE_REG;
    uint32_t sym = again ? name_declare_again(p, name, PTX_SYM_VAR, var->pos)
                         : name_declare(p, name, PTX_SYM_VAR, var->pos);
    struct ptx_sym *s = &p->syms.items[sym];
    if (s->var && s->var->linkage != PTX_EXTERN && var->linkage != PTX_EXTERN)
        parser_fail_at(p, var->pos, name.len, QUOTE_FMT " is declared twice", QUOTE_ARG(name));
    // An external declaration does not replace the definition.
    if (!s->var || var->linkage != PTX_EXTERN)
        s->var = var;
    return sym;
}

// Parses one name with what belongs to it alone; head is what all names of the declaration share. Returns
// NULL if nothing is declared.
static struct ptx_var *parse_declarator(struct parser *p, const struct ptx_var *head)
{
    struct ptx_var *var = ARENA_NEW(&p->m->arena, struct ptx_var);
    *var = *head;
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "a name is missing in this declaration");
    struct str name = p->lex.tok.text;
    var->pos = parser_pos(p);
    lexer_advance(&p->lex);
    if (p->lex.tok.punct == '<' && !parse_range(p, var))
        return NULL;
    parse_dims(p, var);
    if (var->space == PTX_SPACE_REG && var->ndims)
        parser_fail_at(p, var->pos, name.len, "registers cannot be arrays");
    if (parser_accept(p, '='))
        parse_init(p, var);
    if (var->space == PTX_SPACE_REG)
        number_registers(p, var);
    if (!(name.len == 1 && name.ptr[0] == '_'))
        var->sym = declare(p, var, name);
    return var;
}

void decl_variables(struct parser *p, enum ptx_linkage linkage, bool in_function)
{
    uint32_t pos = parser_pos(p);
    struct ptx_var head = parse_head(p);
    head.linkage = (uint8_t)linkage;
    do {
        struct ptx_var *var = parse_declarator(p, &head);
        if (var && in_function)
            PUSH(p, &p->stmts,
                 (struct ptx_stmt){.kind = PTX_DECL, .pos = var->pos, .guard = PTX_NONE, .var = var});
        else if (var)
            PUSH(p, &p->items, (struct ptx_item){.kind = PTX_ITEM_VAR, .pos = pos, .var = var});
    } while (parser_accept(p, ','));
    parser_expect(p, ';');
}

// Moves parameters into one array and updates the symbols and reg_vars that point to them. reg_vars lists
// registers in the same order.
static void move_params(struct parser *p, struct ptx_var *const *from, size_t n, size_t reg,
                        struct ptx_var *to)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = *from[i];
        if (to[i].sym != PTX_NONE)
            p->syms.items[to[i].sym].var = &to[i];
        if (to[i].space == PTX_SPACE_REG)
            p->reg_vars.items[reg++] = &to[i];
    }
}

uint32_t decl_params(struct parser *p, struct ptx_var **out)
{
    size_t reg = p->reg_vars.len;
    *out = NULL;
    p->var_ptrs.len = 0;
    parser_expect(p, '(');
    if (p->lex.tok.punct != ')') {
        do {
            struct ptx_var head = parse_head(p), *var = parse_declarator(p, &head);
            if (!var || var->init.len)
                parser_fail_at(p, var ? var->pos : parser_pos(p), 1, "this cannot be a parameter");
            PUSH(p, &p->var_ptrs, var);
        } while (parser_accept(p, ','));
    }
    parser_expect(p, ')');
    size_t n = p->var_ptrs.len;
    if (n) {
        *out = ARENA_ARRAY(&p->m->arena, struct ptx_var, n);
        move_params(p, p->var_ptrs.items, n, reg, *out);
    }
    return (uint32_t)n;
}
