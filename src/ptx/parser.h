// SPDX-License-Identifier: MIT
// Private to the parser's files.
//
// Errors leave by longjmp to ptx_parse, which frees everything, so the functions below have no error returns.
// What outlives the parse is in the module's arena; all else is in the vectors of struct parser.
#ifndef MOAT_PTX_PARSER_H
#define MOAT_PTX_PARSER_H

#include <setjmp.h>

#include "base/map.h"
#include "base/vec.h"
#include "ptx/constant.h"
#include "ptx/lexer.h"
#include "ptx/ptx.h"
#include "ptx/quick.h"
#include "ptx/quote.h"

// A name and its meaning at the place that the parser has reached.
struct name {
    struct str text;
    uint32_t sym;        // PTX_NONE: not bound
    uint32_t depth;      // of the scope that bound sym
    uint32_t range;      // the innermost of the ranges name<N>, PTX_NONE if none
    int16_t sreg;        // enum ptx_sreg, -1 if none
    bool prefixes_name;  // a name that is this one and digits has been declared
};

// Registers name0 to name(count - 1). A register beyond the range may belong to the range of an outer scope.
struct range {
    uint32_t first, count;
    uint32_t depth;  // of the scope that declares it
    uint32_t outer;  // the range of the same name in an outer scope, PTX_NONE if none
};

// The binding to restore when its scope closes.
struct binding {
    uint32_t name;
    uint32_t sym, range, depth;
};

struct scope {
    size_t bindings, pending, ranges;  // lengths of the parser's vectors when the scope opened
};

// A name used before its declaration: a label, if it is legal at all.
struct pending {
    uint32_t name, sym;
};

struct parser {
    struct lexer lex;
    struct ptx_module *m;
    struct diag_sink *sink;
    jmp_buf escape;
    size_t limit;    // bytes that the module and the vectors below may take together
    size_t vectors;  // bytes that those vectors take
    struct map name_map, form_map;
    struct quick name_quick, form_quick;
    VEC(struct name) names;
    VEC(struct range) ranges;
    VEC(struct binding) bindings;
    VEC(struct scope) scopes;
    VEC(struct pending) pending;
    VEC(struct ptx_sym) syms;
    VEC(uint32_t) forwards;  // by symbol: the one it was resolved to, PTX_NONE; shorter than syms
    VEC(const struct ptx_form *) forms;
    VEC(struct ptx_item) items;
    VEC(struct ptx_source_file) files;
    VEC(struct ptx_var *) reg_vars;
    VEC(struct ptx_stmt) stmts;
    VEC(struct ptx_operand) operands;
    VEC(struct ptx_var *) var_ptrs;
    VEC(struct ptx_directive) directives;
    VEC(uint32_t) ids;
    size_t module_reg_vars;
    uint32_t nregs, module_regs;
    bool has_forwards;
    bool in_unknown;   // reading operands of an instruction that ops.def does not know
    bool in_call;      // reading the operands of a call
    bool want_labels;  // reading the operand of a branch
};

// parser.c
_Noreturn void parser_fail_at(struct parser *p, size_t pos, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void parser_fail(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void parser_out_of_memory(struct parser *p);
void parser_expect(struct parser *p, char punct);
bool parser_accept(struct parser *p, char punct);
void parser_skip_group(struct parser *p, char open, char close);  // from open to behind its close, nested
bool parser_at_word(const struct parser *p, const char *word);
uint64_t parser_int(struct parser *p, const char *what, uint64_t most);
void parser_constant(struct parser *p, struct constant *out);
void *parser_grow(struct parser *p, void *items, size_t *cap, size_t size);

static inline uint32_t parser_pos(const struct parser *p)
{
    return (uint32_t)(p->lex.tok.text.ptr - p->lex.start);
}

// Appends to a vector of the parser within the module's memory limit.
#define PUSH(p, vec, ...)                                                                     \
    do {                                                                                      \
        if ((vec)->len == (vec)->cap)                                                         \
            (vec)->items = parser_grow((p), (vec)->items, &(vec)->cap, sizeof *(vec)->items); \
        (vec)->items[(vec)->len++] = (__VA_ARGS__);                                           \
    } while (0)

// parse_name.c
void name_open_scope(struct parser *p);
void name_close_scope(struct parser *p);  // reports what stayed undeclared when it closes a function
uint32_t name_declare(struct parser *p, struct str text, enum ptx_sym_kind kind, uint32_t pos);
void name_declare_range(struct parser *p, const struct ptx_var *var, struct str text);
// Declares a name at module scope, or returns the symbol that it has (functions and variables may be declared
// repeatedly).
uint32_t name_declare_again(struct parser *p, struct str text, enum ptx_sym_kind kind, uint32_t pos);
uint32_t name_resolve_forward(const struct parser *p, uint32_t sym);

struct name_use {
    enum { NAME_IS_SYM, NAME_IS_REG, NAME_IS_SREG } is;
    uint32_t id;
};
uint32_t name_find(const struct parser *p, struct str text);  // its current symbol, PTX_NONE if none
struct name_use name_lookup(struct parser *p, struct str text, uint32_t pos);

// parse_operand.c
void operand_parse(struct parser *p);  // appends to p->operands

// parse_decl.c
enum ptx_linkage decl_linkage(struct parser *p);
void decl_variables(struct parser *p, enum ptx_linkage linkage, bool in_function);
uint32_t decl_params(struct parser *p, struct ptx_var **out);
struct str decl_attribute(struct parser *p);

// parse_body.c
void body_parse(struct parser *p, struct ptx_func *f);

// parse_item.c
void item_parse_module(struct parser *p);  // from the current token to the end of the text

#endif
