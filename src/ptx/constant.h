// SPDX-License-Identifier: MIT
// Constant expressions: 1, -0x10, 0f3F800000, (4+4)*2, x ? y : z. C's operators and precedences, 64 bits; signs
// as ptxas has them: a % b and ~a are unsigned, x ? y : z is what y or z alone would be.
#ifndef MOAT_PTX_CONSTANT_H
#define MOAT_PTX_CONSTANT_H

#include <stdbool.h>
#include <stdint.h>

#include "ptx/lexer.h"

struct constant {
    uint8_t kind;      // enum ptx_imm_kind
    bool is_unsigned;  // as C would have it
    uint64_t value;    // the bits
    struct str text;   // as written; after an error: what is wrong
};

// Reads one from the current token on. Returns NULL, or a sentence that says what is wrong with out->text.
const char *constant_parse(struct lexer *l, struct constant *out);

#endif
