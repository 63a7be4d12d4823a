// SPDX-License-Identifier: MIT
// Registers that a pass keeps in local memory while a function runs that it has put before a statement. A
// value that is cheap to compute anew, of a register that is written once, is left to the compiler: what
// comes from memory is no longer known to be a constant, or equal for all threads of a warp.
#ifndef MOAT_PASS_PASS_SAVED_H
#define MOAT_PASS_PASS_SAVED_H

#include "base/vec.h"
#include "flow/flow.h"
#include "ptx/edit.h"

enum { SAVED_SLOT = 8 };  // bytes for each register

// A slice of saved.all.
struct saved_row {
    uint32_t first, n;
};

struct saved {
    VEC(uint32_t) all;     // numbers of registers
    struct saved_row *at;  // by statement; NULL: nothing is saved
};

// Finds what lives before each statement of f for which `asks` is true. Nothing is saved in functions that
// are too large for the analysis. Requires that nothing has been edited; saved_free is called whatever it
// returns. 0 or -ENOMEM.
int saved_find(struct saved *to, struct flow *flow, const struct ptx_func *f, struct arena *arena,
               const bool *asks);
void saved_free(struct saved *s);
// Stores a register in a slot of the memory whose generic address is in the register `frame`, or loads it.
void saved_move(struct edit *e, const struct ptx_func *f, uint32_t at, uint32_t frame, uint32_t slot,
                uint32_t reg, bool back);

#endif
