// SPDX-License-Identifier: MIT
// Parses operands. One grammar serves all instructions; the verifier checks which operands an instruction
// takes.
//
//   operand := item [ '|' item ]
//   item    := '!' name | '-' name | '{' items '}' | '[' address ']' | '_' | name [ '.x' ] [ '+' int ]
//            | constant expression
//   A call has lists too: '(' items ')'
//   address := base [ '+' int ] { ',' operand }; .unified may follow its ']'
#include <errno.h>

#include "ptx/constant.h"
#include "ptx/parser.h"
#include "ptx/words.h"

enum { MOST_NESTING = 8 };

static size_t push(struct parser *p, struct ptx_operand o)
{
    // The limit makes a span and a statement's number of slots fit 16 bits; a call may get two lists more.
    if (p->operands.len >= UINT16_MAX - 2)
        parser_fail(p, "an instruction has more than %d operands", UINT16_MAX - 2);
    PUSH(p, &p->operands, o);
    return p->operands.len - 1;
}

// Closes the group at index `at`: everything after that index is inside it.
static void end_group(struct parser *p, size_t at, int64_t items)
{
    p->operands.items[at].span = (uint16_t)(p->operands.len - at - 1);
    p->operands.items[at].value = items;
}

// Parses a selector of bytes or halves by their numbers: .b3210, .h10. Returns false if it is another one.
static bool select_lanes(struct parser *p, struct ptx_operand *o)
{
    struct str t = p->lex.tok.text;
    if (t.len < 4 || t.len > 6 || (t.ptr[1] != 'b' && t.ptr[1] != 'h'))
        return false;
    for (size_t i = 2; i < t.len; i++) {
        if (t.ptr[i] < '0' || t.ptr[i] > '7')
            return false;
        o->value = o->value * 16 + (t.ptr[i] - '0');
    }
    o->sub = t.ptr[1] == 'b' ? PTX_SEL_BYTES : PTX_SEL_HALVES;
    o->span = (uint16_t)(t.len - 2);
    lexer_advance(&p->lex);
    return true;
}

static void select_part(struct parser *p, struct ptx_operand *o)
{
    for (unsigned i = 1; i < WORDS_SELECT; i++) {
        if (parser_at_word(p, words_select[i])) {
            lexer_advance(&p->lex);
            o->sub = (uint8_t)i;
            return;
        }
    }
    if (!select_lanes(p, o))
        parser_fail(p, QUOTE_FMT " is no part of a register", QUOTE_ARG(p->lex.tok.text));
}

static void parse_constant(struct parser *p)
{
    uint32_t pos = parser_pos(p);
    struct constant c;
    parser_constant(p, &c);
    size_t len = c.text.len;
    if (len > UINT16_MAX)
        parser_fail_at(p, pos, 1, "a constant is longer than %d characters", UINT16_MAX);
    push(p, (struct ptx_operand){.kind = PTX_IMM,
                                 .sub = c.kind,
                                 .spelled = true,
                                 .span = (uint16_t)len,
                                 .id = pos,
                                 .value = (int64_t)c.value});
}

static void parse_int(struct parser *p, struct constant *c)
{
    uint32_t pos = parser_pos(p);
    parser_constant(p, c);
    if (c->kind != PTX_IMM_INT)
        parser_fail_at(p, pos, c->text.len, "an address must be an integer");
}

// Parses an optional "+ 8", "+-8" or "-8" after a name.
static void parse_offset(struct parser *p, struct ptx_operand *o)
{
    if (p->lex.tok.punct != '+' && p->lex.tok.punct != '-')
        return;
    if (p->lex.tok.punct == '+')
        lexer_advance(&p->lex);
    struct constant c;
    parse_int(p, &c);
    o->value = (int64_t)c.value;
    o->spelled = true;
}

static void parse_name(struct parser *p)
{
    struct str text = p->lex.tok.text;
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    if (text.len == 1 && text.ptr[0] == '_') {
        push(p, (struct ptx_operand){.kind = PTX_SINK});
        return;
    }
    struct name_use use = name_lookup(p, text, pos);
    struct ptx_operand o = {.id = use.id};
    o.kind = use.is == NAME_IS_REG ? PTX_REG : use.is == NAME_IS_SREG ? PTX_SREG : PTX_SYM;
    if (p->lex.tok.kind == TOK_WORD) {
        // Only registers have parts: there is no v.x of a vector variable in memory.
        if (o.kind == PTX_SYM)
            parser_fail_at(p, pos, text.len, QUOTE_FMT " is not a register", QUOTE_ARG(text));
        select_part(p, &o);
    }
    if (o.kind == PTX_SYM)
        parse_offset(p, &o);
    push(p, o);
}

static void parse_base(struct parser *p, struct ptx_operand *o)
{
    if (p->lex.tok.kind != TOK_IDENT) {
        struct constant c;
        parse_int(p, &c);
        o->sub = PTX_BASE_NONE;
        o->value = (int64_t)c.value;
        return;
    }
    struct str text = p->lex.tok.text;
    uint32_t pos = parser_pos(p);
    lexer_advance(&p->lex);
    struct name_use use = name_lookup(p, text, pos);
    if (use.is == NAME_IS_SREG)
        parser_fail_at(p, pos, text.len, "a special register cannot be an address");
    o->sub = use.is == NAME_IS_REG ? PTX_BASE_REG : PTX_BASE_SYM;
    o->id = use.id;
    parse_offset(p, o);
}

static void parse_item(struct parser *p, unsigned nesting);

static void parse_address(struct parser *p, unsigned nesting)
{
    lexer_advance(&p->lex);
    size_t at = push(p, (struct ptx_operand){.kind = PTX_ADDR});
    struct ptx_operand base = {.kind = PTX_ADDR};
    parse_base(p, &base);
    if (parser_accept(p, ']')) {
        p->operands.items[at] = base;
        p->operands.items[at].unified = parser_at_word(p, ".unified");
        if (p->operands.items[at].unified)
            lexer_advance(&p->lex);
    } else {
        p->operands.items[at].kind = PTX_TUPLE;
        push(p, base);
        int64_t items = 1;
        while (parser_accept(p, ',')) {
            parse_item(p, nesting);
            items++;
        }
        end_group(p, at, items);
        parser_expect(p, ']');
    }
}

static void parse_group(struct parser *p, enum ptx_operand_kind kind, char close, unsigned nesting)
{
    lexer_advance(&p->lex);
    size_t at = push(p, (struct ptx_operand){.kind = (uint8_t)kind});
    int64_t items = 0;
    if (p->lex.tok.punct != close) {
        do {
            parse_item(p, nesting);
            items++;
        } while (parser_accept(p, ','));
    }
    if (kind == PTX_VEC && !items)
        parser_fail(p, "this vector is empty");
    end_group(p, at, items);
    parser_expect(p, close);
}

static void parse_negated(struct parser *p)
{
    lexer_advance(&p->lex);
    size_t at = p->operands.len;
    parse_name(p);
    p->operands.items[at].negated = true;
}

static bool starts_name(char c)
{
    return c == '%' || c == '$' || c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool at_negated(const struct parser *p)
{
    struct lexer ahead = p->lex;
    if ((ahead.tok.punct != '!' && ahead.tok.punct != '-') || !starts_name(lexer_peek(&ahead)))
        return false;
    lexer_advance(&ahead);
    return ahead.tok.kind == TOK_IDENT;  // WARP_SZ is a number
}

static void parse_item(struct parser *p, unsigned nesting)
{
    if (nesting == MOST_NESTING)
        parser_fail(p, "operands are nested more than %d deep", MOST_NESTING);
    const struct token *t = &p->lex.tok;
    if (t->kind == TOK_IDENT)
        parse_name(p);
    else if (t->punct == '[')
        parse_address(p, nesting + 1);
    else if (t->punct == '{')
        parse_group(p, PTX_VEC, '}', nesting + 1);
    else if (t->punct == '(' && p->in_call && nesting == 0)
        parse_group(p, PTX_LIST, ')', nesting + 1);
    else if (at_negated(p))
        parse_negated(p);
    else
        parse_constant(p);
}

void operand_parse(struct parser *p)
{
    size_t at = p->operands.len;
    parse_item(p, 0);
    if (p->lex.tok.punct != '|')
        return;
    lexer_advance(&p->lex);
    parse_item(p, 0);
    // Makes room for the pair before its two items.
    push(p, (struct ptx_operand){0});
    struct ptx_operand *items = p->operands.items;
    memmove(items + at + 1, items + at, (p->operands.len - 1 - at) * sizeof *items);
    items[at] = (struct ptx_operand){.kind = PTX_PAIR};
    end_group(p, at, 2);
}
