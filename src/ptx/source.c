// SPDX-License-Identifier: MIT
// Maps .loc directives to lines of source code.
#include "ptx/lexer.h"
#include "ptx/ptx.h"

static const struct ptx_source_file *find_file(const struct ptx_module *m, uint32_t number)
{
    uint32_t low = 0, high = m->nfiles;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (m->files[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < m->nfiles && m->files[low].number == number ? &m->files[low] : NULL;
}

bool ptx_loc_source(const struct ptx_module *m, const struct ptx_loc *loc, struct ptx_source *out)
{
    const struct ptx_source_file *file = find_file(m, loc->file);
    if (!file || loc->line == 0)
        return false;
    *out = (struct ptx_source){file->name, loc->line, loc->column};
    return true;
}

// Returns what follows "label:" in the module's .debug_str, from byte `offset` on; empty if there is no
// such label.
static struct str find_string(const struct ptx_module *m, struct str label, uint64_t offset)
{
    uint32_t pos = map_get(&m->debug_strings, label);
    if (pos == MAP_NONE)
        return (struct str){NULL, 0};
    struct str bytes = str_skip(m->source.text, pos);
    if (!offset)
        return bytes;
    struct lexer lex;
    lexer_init(&lex, bytes);
    for (;; lexer_advance(&lex)) {
        if (lex.tok.kind == TOK_END || lex.tok.kind == TOK_BAD || lex.tok.punct == '}')
            return (struct str){NULL, 0};
        if (lex.tok.kind == TOK_INT && !--offset)
            return str_skip(bytes, (size_t)(lex.next - bytes.ptr));
    }
}

// The parser has checked that there is a number.
static uint32_t take_number(struct lexer *lex)
{
    lexer_advance(lex);
    return (uint32_t)lex->tok.value;
}

bool ptx_loc_inlined(const struct ptx_module *m, const struct ptx_loc *loc, struct ptx_inlined *out)
{
    bool found = false;
    struct lexer lex;
    *out = (struct ptx_inlined){0};
    if (!loc->inlined.len)
        return false;
    lexer_init(&lex, loc->inlined);
    for (; lex.tok.kind != TOK_END && lex.tok.kind != TOK_BAD; lexer_advance(&lex)) {
        if (str_eq(lex.tok.text, STR("inlined_at"))) {
            out->file = take_number(&lex);
            out->line = take_number(&lex);
            out->column = take_number(&lex);
            found = true;
        } else if (str_eq(lex.tok.text, STR("function_name"))) {
            lexer_advance(&lex);
            struct str label = lex.tok.text;
            uint64_t offset = 0;
            if (lexer_peek(&lex) == '+') {
                lexer_advance(&lex);
                offset = take_number(&lex);
            }
            out->function = find_string(m, label, offset);
        }
    }
    return found;
}

size_t ptx_debug_text(struct str bytes, char *to, size_t size)
{
    struct lexer lex;
    size_t n = 0;
    lexer_init(&lex, bytes);
    for (; n + 1 < size && lex.tok.kind != TOK_END && lex.tok.kind != TOK_BAD && lex.tok.punct != '}';
         lexer_advance(&lex)) {
        if (lex.tok.kind != TOK_INT)
            continue;
        if (!(unsigned char)lex.tok.value)
            break;
        to[n++] = (char)lex.tok.value;
    }
    if (size)
        to[n] = 0;
    return n;
}
