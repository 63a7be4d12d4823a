// SPDX-License-Identifier: MIT
// Private to the roots*.c files: how the value that a statement writes follows from what the statement reads.
#ifndef MOAT_FLOW_ROOTS_RULE_H
#define MOAT_FLOW_ROOTS_RULE_H

#include "flow/roots.h"

enum roots_how {
    ROOTS_FIXED,    // a.of
    ROOTS_ITSELF,   // a pointer that is not computed: loaded, returned
    ROOTS_COPY,     // a
    ROOTS_SUM,      // a + b
    ROOTS_DIFF,     // a - b
    ROOTS_PICK,     // a or b
    ROOTS_CONVERT,  // a, as an address of the space `space`
};

// What is read: a value, or with REACH_NONE a constant with that root.
struct roots_source {
    uint32_t value;
    struct roots_of of;
};

struct roots_rule {
    struct roots_source a, b;
    uint8_t how;
    bool pointer;   // it is certainly a pointer: .ptr, cvta
    uint8_t space;  // CONVERT: enum ptx_space
};

// Fills the rule of a DEF, and marks the values that its statement uses as factors.
void roots_rule_of(const struct roots *r, uint32_t def, struct roots_rule *rule, bool *factor);

struct roots_of roots_of_symbol(const struct ptx_module *m, uint32_t sym);

// Returns the root of an address that cvta has converted: of a generic address to one of the space `to`, or
// to a generic one. OTHER if it is not that of a variable.
struct roots_of roots_convert(const struct ptx_module *m, struct roots_of of, enum ptx_space to);

#endif
