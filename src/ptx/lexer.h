// SPDX-License-Identifier: MIT
// Splits PTX into tokens. The lexer never fails: text that is no token becomes a TOK_BAD, which the parser
// reports.
#ifndef MOAT_PTX_LEXER_H
#define MOAT_PTX_LEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum token_kind {
    TOK_END,
    TOK_IDENT,   // foo, $L1, %r5
    TOK_WORD,    // .global, .shared::cta: text includes the dot
    TOK_INT,     // 12, 0x1F, WARP_SZ: value
    TOK_F32,     // 0f3F800000: value has the bits
    TOK_F64,     // 0d3FF0000000000000, 1.5e3: value has the bits
    TOK_STRING,  // "..." with its quotes
    TOK_PUNCT,   // one character
    TOK_BAD,     // why: see lexer.bad
};

struct token {
    uint8_t kind;
    char punct;  // the character, 0 for other kinds
    struct str text;
    uint64_t value;
};

struct lexer {
    const char *start, *next, *end;
    const char *prev_end;  // end of the token before the current one
    const char *bad;       // what is wrong with the last TOK_BAD
    struct token tok;
};

void lexer_init(struct lexer *l, struct str text);
void lexer_advance(struct lexer *l);

// Takes the current identifier and all modifiers that follow without space: "ld.global.v4.f32". The token
// after them becomes the current one.
struct str lexer_take_form(struct lexer *l);

// Returns the first character of the token after the current one, 0 if there is none.
char lexer_peek(const struct lexer *l);

// Takes the text from the current token to the next one in `stops`, which becomes the current token and is
// not part of the result. TOK_END and TOK_BAD end it too.
struct str lexer_take_verbatim(struct lexer *l, const char *stops);

#endif
