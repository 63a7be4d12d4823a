// SPDX-License-Identifier: MIT
// Walks initialisers element by element: tables of a megabyte need no tree.
//
// Between two calls, `rest` begins at an element or at a closing brace: the comma after an element is taken
// with it, so that {1 2}, {1,,2} and {1,} are found malformed without any state.
#include <errno.h>

#include "ptx/constant.h"
#include "ptx/ptx.h"

static bool take(struct lexer *l, char punct)
{
    if (l->tok.punct != punct)
        return false;
    lexer_advance(l);
    return true;
}

// Adds "+ 8" or "- 8" to *value, if there is one.
static int read_offset(struct lexer *l, int64_t *value)
{
    if (l->tok.punct != '+' && l->tok.punct != '-')
        return 0;
    take(l, '+');
    struct constant c;
    if (constant_parse(l, &c) || c.kind != PTX_IMM_INT)
        return -EINVAL;
    *value = (int64_t)((uint64_t)*value + c.value);
    return 0;
}

// Reads name, name+8, generic(name) or generic(name)+8.
static int read_address(struct lexer *l, struct ptx_init *out)
{
    if (str_eq(l->tok.text, STR("generic")) && lexer_peek(l) == '(') {
        out->generic = true;
        lexer_advance(l);
        lexer_advance(l);
    }
    if (l->tok.kind != TOK_IDENT)
        return -EINVAL;
    out->text = l->tok.text;
    lexer_advance(l);
    if (out->generic && !take(l, ')'))
        return -EINVAL;
    return read_offset(l, &out->value);
}

// Reads an address, or one byte of it: 0xFF00(address).
static int read_symbol(struct lexer *l, struct ptx_init *out)
{
    out->kind = PTX_INIT_SYM;
    if (l->tok.kind != TOK_INT)
        return read_address(l, out);
    out->mask = l->tok.value;
    lexer_advance(l);
    if (!take(l, '(') || read_address(l, out) || !take(l, ')'))
        return -EINVAL;
    return read_offset(l, &out->value);
}

static int read_number(struct lexer *l, struct ptx_init *out)
{
    struct constant c;
    if (constant_parse(l, &c))
        return -EINVAL;
    out->kind = c.kind == PTX_IMM_INT ? PTX_INIT_INT : c.kind == PTX_IMM_F32 ? PTX_INIT_F32 : PTX_INIT_F64;
    out->value = (int64_t)c.value;
    return 0;
}

static int read_element(struct lexer *l, struct ptx_init *out)
{
    const struct token *t = &l->tok;
    if (t->punct == '{' || t->punct == '}') {
        out->kind = t->punct == '{' ? PTX_INIT_OPEN : PTX_INIT_CLOSE;
        lexer_advance(l);
        return 0;
    }
    if (t->kind == TOK_STRING) {
        out->kind = PTX_INIT_STRING;
        out->text = (struct str){t->text.ptr + 1, t->text.len - 2};
        lexer_advance(l);
        return 0;
    }
    // A field of a sampler: filter_mode = nearest.
    if (t->kind == TOK_IDENT && lexer_peek(l) == '=') {
        out->kind = PTX_INIT_OTHER;
        out->text = lexer_take_verbatim(l, ",}");
        return 0;
    }
    if (t->kind == TOK_IDENT || (t->kind == TOK_INT && lexer_peek(l) == '('))
        return read_symbol(l, out);
    return read_number(l, out);
}

// Checks what follows an element: a comma and another element, a closing brace, or the end.
static bool follows_well(struct lexer *l, const struct ptx_init *element)
{
    if (element->kind == PTX_INIT_OPEN)
        return l->tok.punct != ',';
    if (take(l, ','))
        return l->tok.punct != '}' && l->tok.punct != ',' && l->tok.kind != TOK_END;
    return l->tok.punct == '}' || l->tok.kind == TOK_END;
}

int ptx_init_next(struct str *rest, struct ptx_init *out)
{
    struct lexer l;
    *out = (struct ptx_init){0};
    if (!rest->len)
        return 0;
    lexer_init(&l, *rest);
    if (l.tok.kind == TOK_END)
        return 0;
    bool good = !read_element(&l, out) && follows_well(&l, out);
    const char *at = l.tok.text.ptr;
    *rest = (struct str){at, (size_t)(rest->ptr + rest->len - at)};
    return good ? 1 : -EINVAL;
}
