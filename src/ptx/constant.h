// SPDX-License-Identifier: MIT
// Constant expressions: 1, -0x10, 0f3F800000, (4+4)*2, x ? y : z. Operators and precedences are C's, on 64
// bits; signs follow ptxas: a % b and ~a are unsigned, and x ? y : z has the sign of the chosen y or z.
#ifndef MOAT_PTX_CONSTANT_H
#define MOAT_PTX_CONSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "ptx/lexer.h"

struct constant {
    uint8_t kind;      // enum ptx_imm_kind
    bool is_unsigned;  // as C would have it
    uint64_t value;    // the bits
    struct str text;   // as written; after an error: the part that is wrong
};

// Reads an expression from the current token on. Returns NULL, or a sentence that says what is wrong with
// out->text.
const char *constant_parse(struct lexer *l, struct constant *out);

#endif
