// SPDX-License-Identifier: MIT
// From statements to lines of source code: .loc and .file.
#include "ptx/lexer.h"
#include "ptx/ptx.h"

// Is the item .file NUMBER "name"? The parser has made sure of its form.
static bool is_file(const struct ptx_item *item, uint32_t number, struct str *name)
{
    if (item->kind != PTX_ITEM_FILE)
        return false;
    struct lexer l;
    lexer_init(&l, *item->text);
    lexer_advance(&l);
    if (l.tok.kind != TOK_INT || l.tok.value != number)
        return false;
    lexer_advance(&l);
    *name = (struct str){l.tok.text.ptr + 1, l.tok.text.len - 2};
    return true;
}

bool ptx_stmt_source(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_stmt *s,
                     struct ptx_source *out)
{
    while (s > f->stmts && s->kind != PTX_LOC)
        s--;
    if (s->kind != PTX_LOC || s->loc->line == 0)
        return false;
    *out = (struct ptx_source){.line = s->loc->line, .column = s->loc->column};
    for (uint32_t i = 0; i < m->nitems; i++)
        if (is_file(&m->items[i], s->loc->file, &out->file))
            return true;
    return false;
}
