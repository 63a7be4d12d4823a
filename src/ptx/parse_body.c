// SPDX-License-Identifier: MIT
// Parses the statements of a function's body.
#include <errno.h>

#include "ptx/parser.h"

static void add(struct parser *p, struct ptx_stmt s)
{
    PUSH(p, &p->stmts, s);
}

static struct str *keep_text(struct parser *p, struct str text)
{
    struct str *kept = ARENA_NEW(&p->m->arena, struct str);
    *kept = text;
    return kept;
}

// --- instructions ------------------------------------------------------------------------------------------

enum { MOST_FORM = 256 };

// Joins the pieces of a form in joined[0 .. MOST_FORM): "ld .global .f32" is "ld.global.f32".
static struct str join_form(struct parser *p, struct str form, char *joined)
{
    size_t len = 0;
    for (struct str piece = form;; lexer_advance(&p->lex)) {
        if (piece.len > MOST_FORM - len)
            parser_fail(p, "an instruction with its modifiers is longer than %d characters", MOST_FORM);
        memcpy(joined + len, piece.ptr, piece.len);
        len += piece.len;
        if (p->lex.tok.kind != TOK_WORD)
            return (struct str){joined, len};
        piece = p->lex.tok.text;
    }
}

static const struct ptx_form *new_form(struct parser *p, struct str text, uint32_t pos)
{
    struct ptx_form *form = ARENA_NEW(&p->m->arena, struct ptx_form);
    ptx_form_decode(text, form);
    form->pos = pos;
    PUSH(p, &p->forms, form);
    if (map_put(&p->form_map, text, (uint32_t)p->forms.len - 1))
        parser_out_of_memory(p);
    return form;
}

static const struct ptx_form *parse_form(struct parser *p)
{
    char joined[MOST_FORM];
    uint32_t pos = parser_pos(p);
    struct str text = lexer_take_form(&p->lex);
    bool join = p->lex.tok.kind == TOK_WORD;
    if (join)
        text = join_form(p, text, joined);
    if (text.len > MOST_FORM)
        parser_fail_at(p, pos, text.len, "an instruction with its modifiers is longer than %d characters",
                       MOST_FORM);
    uint32_t id = quick_get(&p->form_quick, &p->form_map, text);
    if (id != MAP_NONE)
        return p->forms.items[id];
    return new_form(p, join ? arena_str(&p->m->arena, text) : text, pos);
}

static void insert_list(struct parser *p, size_t at)
{
    PUSH(p, &p->operands, (struct ptx_operand){0});
    struct ptx_operand *o = p->operands.items;
    memmove(o + at + 1, o + at, (p->operands.len - 1 - at) * sizeof *o);
    o[at] = (struct ptx_operand){.kind = PTX_LIST};
}

// Completes a call to three operands or four: returned, callee, arguments, prototype. Empty lists replace
// missing ones.
static void complete_call(struct parser *p, uint32_t pos)
{
    if (p->operands.len && p->operands.items[0].kind != PTX_LIST)
        insert_list(p, 0);
    size_t callee = p->operands.len ? 1u + p->operands.items[0].span : 0;
    if (callee >= p->operands.len || ptx_is_group(&p->operands.items[callee]))
        parser_fail_at(p, pos, 1, "a function is missing in this call");
    size_t args = callee + 1;
    if (args >= p->operands.len || p->operands.items[args].kind != PTX_LIST)
        insert_list(p, args);
}

static void parse_operands(struct parser *p, const struct ptx_form *form)
{
    uint32_t pos = parser_pos(p);
    p->operands.len = 0;
    p->in_call = form->id == PTX_OP_CALL;
    if (p->lex.tok.punct == '}' || p->lex.tok.kind == TOK_END)
        parser_fail(p, "';' is missing behind the instruction");
    if (p->lex.tok.punct != ';') {
        do
            operand_parse(p);
        while (parser_accept(p, ','));
    }
    if (p->in_call)
        complete_call(p, pos);
    if (p->lex.tok.punct == '[')
        parser_fail(p, "an index is not supported here: write [name+offset], the offset in bytes");
    if (p->lex.tok.punct != ';')
        parser_fail(p, "';' is missing behind the operands");
}

// Parses the operands of an unknown instruction. Returns false if they do not fit our grammar.
static bool try_operands(struct parser *p, const struct ptx_form *form)
{
    jmp_buf outer;
    memcpy(&outer, &p->escape, sizeof outer);
    p->in_unknown = true;
    int err = setjmp(p->escape);
    if (!err)
        parse_operands(p, form);
    memcpy(&p->escape, &outer, sizeof outer);
    p->in_unknown = false;
    if (err == -ENOMEM)
        parser_out_of_memory(p);
    return !err;
}

// Skips to the semicolon, which must come after all braces that were opened.
static void skip_unknown(struct parser *p)
{
    unsigned open = 0;
    for (; p->lex.tok.punct != ';' || open; lexer_advance(&p->lex)) {
        char c = p->lex.tok.punct;
        if (p->lex.tok.kind == TOK_END || p->lex.tok.kind == TOK_BAD || c == ';' || (c == '}' && !open))
            parser_fail(p, "';' is missing behind an instruction that is not known");
        open += c == '{';
        open -= c == '}';
    }
}

static void parse_unknown(struct parser *p, struct ptx_stmt *s, uint32_t start)
{
    struct lexer before = p->lex;
    if (try_operands(p, s->form))
        return;
    p->lex = before;
    skip_unknown(p);
    const char *from = p->lex.start + start;
    s->kind = PTX_VERBATIM;
    s->text = keep_text(p, (struct str){from, (size_t)(p->lex.prev_end - from)});
    p->operands.len = 0;
}

static uint32_t parse_guard(struct parser *p, bool *negated)
{
    if (!parser_accept(p, '@'))
        return PTX_NONE;
    *negated = parser_accept(p, '!');
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "a predicate register is missing behind '@'");
    struct str text = p->lex.tok.text;
    uint32_t pos = parser_pos(p);
    struct name_use use = name_lookup(p, text, pos);
    if (use.is != NAME_IS_REG)
        parser_fail_at(p, pos, text.len, QUOTE_FMT " is not a register that is declared here",
                       QUOTE_ARG(text));
    lexer_advance(&p->lex);
    return use.id;
}

// Copies the operands to the arena. The result is never NULL, so that loops over no operands need no special
// case.
static struct ptx_operand *keep_operands(struct parser *p)
{
    const struct ptx_operand *from = p->operands.items;
    struct ptx_operand *to = arena_alloc(&p->m->arena, p->operands.len * sizeof *to);
    // Most instructions have few operands; copies of constant size need no call.
    switch (p->operands.len) {
    case 0: break;
    case 1: memcpy(to, from, 1 * sizeof *to); break;
    case 2: memcpy(to, from, 2 * sizeof *to); break;
    case 3: memcpy(to, from, 3 * sizeof *to); break;
    case 4: memcpy(to, from, 4 * sizeof *to); break;
    default: memcpy(to, from, p->operands.len * sizeof *to); break;
    }
    return to;
}

static void parse_instruction(struct parser *p, struct ptx_func *f)
{
    uint32_t start = parser_pos(p);
    struct ptx_stmt s = {.kind = PTX_INSN};
    s.guard = parse_guard(p, &s.guard_negated);
    s.pos = parser_pos(p);
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "an instruction is missing behind the guard");
    s.form = parse_form(p);
    if (s.form->id == PTX_OP_UNKNOWN) {
        f->nunknown++;
        parse_unknown(p, &s, start);
    } else {
        f->nunknown += s.form->odd;
        p->want_labels = s.form->op->control == PTX_BRANCH;
        parse_operands(p, s.form);
        p->want_labels = false;
    }
    s.nslots = (uint16_t)p->operands.len;
    s.operands = keep_operands(p);
    parser_expect(p, ';');
    add(p, s);
}

// --- labels, directives ------------------------------------------------------------------------------------

static void parse_targets(struct parser *p, uint32_t sym, bool calls)
{
    struct ptx_targets *t = ARENA_NEW(&p->m->arena, struct ptx_targets);
    *t = (struct ptx_targets){.sym = sym, .calls = calls};
    p->ids.len = 0;
    p->want_labels = !calls;
    do {
        if (p->lex.tok.kind != TOK_IDENT)
            parser_fail(p, "the name of a target is missing");
        struct name_use use = name_lookup(p, p->lex.tok.text, parser_pos(p));
        if (use.is != NAME_IS_SYM)
            parser_fail(p, "a register cannot be a target");
        PUSH(p, &p->ids, use.id);
        lexer_advance(&p->lex);
    } while (parser_accept(p, ','));
    p->want_labels = false;
    t->ntargets = (uint32_t)p->ids.len;
    t->targets = ARENA_ARRAY(&p->m->arena, uint32_t, t->ntargets);
    memcpy(t->targets, p->ids.items, t->ntargets * sizeof *t->targets);
    parser_expect(p, ';');
    p->syms.items[sym].targets = t;
    add(p, (struct ptx_stmt){
               .kind = PTX_TARGETS, .pos = p->syms.items[sym].pos, .guard = PTX_NONE, .targets = t});
}

static void parse_prototype(struct parser *p, uint32_t sym)
{
    struct ptx_proto *proto = ARENA_NEW(&p->m->arena, struct ptx_proto);
    proto->sym = sym;
    name_open_scope(p);
    uint32_t nregs = p->nregs;
    size_t nvars = p->reg_vars.len;
    if (p->lex.tok.punct == '(')
        proto->nrets = decl_params(p, &proto->rets);
    if (p->lex.tok.kind != TOK_IDENT)
        parser_fail(p, "'_' is missing in this prototype");
    lexer_advance(&p->lex);
    if (p->lex.tok.punct == '(')
        proto->nparams = decl_params(p, &proto->params);
    name_close_scope(p);
    // The registers of a prototype are types, not registers of the function.
    p->nregs = nregs;
    p->reg_vars.len = nvars;
    proto->directives = lexer_take_verbatim(&p->lex, ";{}");
    parser_expect(p, ';');
    p->syms.items[sym].proto = proto;
    add(p, (struct ptx_stmt){
               .kind = PTX_PROTOTYPE, .pos = p->syms.items[sym].pos, .guard = PTX_NONE, .proto = proto});
}

static bool at_list(const struct parser *p)
{
    return parser_at_word(p, ".branchtargets") || parser_at_word(p, ".calltargets") ||
           parser_at_word(p, ".callprototype");
}

static void parse_label(struct parser *p, struct str name, uint32_t pos)
{
    if (!at_list(p)) {
        uint32_t sym = name_declare(p, name, PTX_SYM_LABEL, pos);
        p->syms.items[sym].stmt = (uint32_t)p->stmts.len;
        add(p, (struct ptx_stmt){.kind = PTX_LABEL, .pos = pos, .guard = PTX_NONE, .sym = sym});
        return;
    }
    bool prototype = parser_at_word(p, ".callprototype"), calls = parser_at_word(p, ".calltargets");
    uint32_t sym = name_declare(p, name, prototype ? PTX_SYM_PROTO : PTX_SYM_TARGETS, pos);
    lexer_advance(&p->lex);
    if (prototype)
        parse_prototype(p, sym);
    else
        parse_targets(p, sym, calls);
}

// Skips ", function_name $L [+ 5], inlined_at 1 12 5": nothing marks its end.
static void skip_inlined(struct parser *p)
{
    if (str_eq(p->lex.tok.text, STR("function_name"))) {
        lexer_advance(&p->lex);
        if (p->lex.tok.kind != TOK_IDENT)
            parser_fail(p, "a label is missing behind function_name");
        lexer_advance(&p->lex);
        if (parser_accept(p, '+'))
            parser_int(p, "the offset of a function's name", UINT64_MAX);
    } else if (str_eq(p->lex.tok.text, STR("inlined_at"))) {
        lexer_advance(&p->lex);
        parser_int(p, "a file number", UINT32_MAX);
        parser_int(p, "a line number", UINT32_MAX);
        parser_int(p, "a column number", UINT32_MAX);
    } else {
        parser_fail(p, "function_name or inlined_at is missing");
    }
}

static void parse_loc(struct parser *p)
{
    struct ptx_loc *loc = ARENA_NEW(&p->m->arena, struct ptx_loc);
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    loc->file = (uint32_t)parser_int(p, "a file number", UINT32_MAX);
    loc->line = (uint32_t)parser_int(p, "a line number", UINT32_MAX);
    loc->column = (uint32_t)parser_int(p, "a column number", UINT32_MAX);
    const char *from = p->lex.tok.text.ptr;
    if (p->lex.tok.punct == ',') {
        while (parser_accept(p, ','))
            skip_inlined(p);
        loc->inlined = (struct str){from, (size_t)(p->lex.prev_end - from)};
    }
    add(p, (struct ptx_stmt){.kind = PTX_LOC, .pos = pos, .guard = PTX_NONE, .loc = loc});
}

static void parse_verbatim(struct parser *p, enum ptx_stmt_kind kind)
{
    uint32_t pos = parser_pos(p);
    struct str text = lexer_take_verbatim(&p->lex, ";{}");
    parser_expect(p, ';');
    add(p,
        (struct ptx_stmt){.kind = (uint8_t)kind, .pos = pos, .guard = PTX_NONE, .text = keep_text(p, text)});
}

static void parse_directive(struct parser *p, struct ptx_func *f)
{
    if (ptx_space_find(str_skip(p->lex.tok.text, 1)) != PTX_SPACE_GENERIC) {
        decl_variables(p, PTX_LINK_NONE, true);
    } else if (parser_at_word(p, ".loc")) {
        parse_loc(p);
    } else if (parser_at_word(p, ".pragma")) {
        parse_verbatim(p, PTX_PRAGMA);
    } else if (parser_at_word(p, ".extern") || parser_at_word(p, ".visible") || parser_at_word(p, ".weak")) {
        enum ptx_linkage linkage = decl_linkage(p);
        decl_variables(p, linkage, true);
    } else if (at_list(p)) {
        parser_fail(p, "a name and ':' are missing in front of this directive");
    } else {
        f->nunknown++;
        parse_verbatim(p, PTX_VERBATIM);
    }
}

static void parse_stmt(struct parser *p, struct ptx_func *f)
{
    const struct token *t = &p->lex.tok;
    if (t->kind == TOK_IDENT && lexer_peek(&p->lex) == ':') {
        struct str name = t->text;
        uint32_t pos = parser_pos(p);
        lexer_advance(&p->lex);
        parser_expect(p, ':');
        parse_label(p, name, pos);
    } else if (t->kind == TOK_IDENT || t->punct == '@') {
        parse_instruction(p, f);
    } else if (t->kind == TOK_WORD) {
        parse_directive(p, f);
    } else if (!parser_accept(p, ';')) {
        if (t->kind == TOK_END)
            parser_fail_at(p, f->pos, 1, "this function has no end: '}' is missing");
        parser_fail(p, "an instruction, label or directive is expected, not " QUOTE_FMT, QUOTE_ARG(t->text));
    }
}

// --- the whole ---------------------------------------------------------------------------------------------

// Replaces references to labels that were resolved in an outer scope.
static void resolve_forwards(struct parser *p)
{
    for (size_t i = 0; i < p->stmts.len; i++) {
        struct ptx_stmt *s = &p->stmts.items[i];
        for (unsigned k = 0; s->kind == PTX_INSN && k < s->nslots; k++) {
            struct ptx_operand *o = &s->operands[k];
            if (o->kind == PTX_SYM || (o->kind == PTX_ADDR && o->sub == PTX_BASE_SYM))
                o->id = name_resolve_forward(p, o->id);
        }
        for (unsigned k = 0; s->kind == PTX_TARGETS && k < s->targets->ntargets; k++)
            s->targets->targets[k] = name_resolve_forward(p, s->targets->targets[k]);
    }
    p->has_forwards = false;
}

static void keep(struct parser *p, struct ptx_func *f)
{
    f->nstmts = (uint32_t)p->stmts.len;
    f->stmts = ARENA_ARRAY(&p->m->arena, struct ptx_stmt, f->nstmts);
    if (f->nstmts)
        memcpy(f->stmts, p->stmts.items, f->nstmts * sizeof *f->stmts);
    f->nregs = p->nregs;
    f->nreg_vars = (uint32_t)p->reg_vars.len;
    f->reg_vars = ARENA_ARRAY(&p->m->arena, struct ptx_var *, f->nreg_vars);
    if (f->nreg_vars)
        memcpy(f->reg_vars, p->reg_vars.items, f->nreg_vars * sizeof *f->reg_vars);
}

// Parses from behind the opening brace to behind the closing one. The caller has opened the function's scope;
// it is closed here, so that labels are resolved before the function is kept.
void body_parse(struct parser *p, struct ptx_func *f)
{
    p->stmts.len = 0;
    size_t outermost = p->scopes.len;
    for (;;) {
        uint32_t pos = parser_pos(p);
        if (p->lex.tok.punct == '{') {
            name_open_scope(p);
            lexer_advance(&p->lex);
            add(p, (struct ptx_stmt){.kind = PTX_OPEN, .pos = pos, .guard = PTX_NONE});
        } else if (parser_accept(p, '}')) {
            bool last = p->scopes.len == outermost;
            name_close_scope(p);
            if (last)
                break;
            add(p, (struct ptx_stmt){.kind = PTX_CLOSE, .pos = pos, .guard = PTX_NONE});
        } else {
            parse_stmt(p, f);
        }
    }
    if (p->has_forwards)
        resolve_forwards(p);
    keep(p, f);
}
