// SPDX-License-Identifier: MIT
// The words by which the blocks of a cooperative launch wait for each other. They lie in memory of the
// driver's, whose address a kernel finds in %envreg1 and %envreg2. The compiler's code of grid.sync() uses
// them, and no program knows them by other ways.
#ifndef MOAT_FLOW_GRID_WORDS_H
#define MOAT_FLOW_GRID_WORDS_H

#include "flow/reach.h"

// Returns whether the address of an access is computed from %envreg registers and constants alone. `f` is the
// function that `r` describes.
bool grid_words_address(const struct ptx_func *f, const struct reach *r, uint32_t stmt,
                        const struct ptx_operand *address);

#endif
