// SPDX-License-Identifier: MIT
// Divisions by a constant, which compilers replace by a product whose upper half is shifted.
#ifndef MOAT_FLOW_ACCESS_DIVISION_H
#define MOAT_FLOW_ACCESS_DIVISION_H

#include <stdbool.h>
#include <stdint.h>

#include "flow/proof.h"

struct access_division {
    uint32_t dividend;  // an instruction
    int64_t divisor;    // at least 2
};

// Returns whether an instruction is the quotient of 32-bit numbers, signed or not, as compilers compute it.
bool access_division(const struct proof *p, uint32_t at, struct access_division *d);

#endif
