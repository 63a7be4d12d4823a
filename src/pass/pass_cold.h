// SPDX-License-Identifier: MIT
// Tells the driver's compiler which code of a checked kernel is rarely executed: blocks that ask the judge,
// and those that only such blocks lead to. From PTX 9.0 on a pragma says how often a block is executed. Where
// that is a hundredth of what it is elsewhere, the compiler puts the block behind all others, and prefers it
// for what registers have no room for. Without it a slow copy stands in the midst of the code that it was
// made for, and most of the instructions that a GPU fetches are never executed.
#ifndef MOAT_PASS_PASS_COLD_H
#define MOAT_PASS_PASS_COLD_H

#include <stddef.h>

#include "ptx/edit.h"

// The function that asks KCHECK_ACCESS.
#define PASS_COLD_CALL EDIT_PREFIX "check_call"

// Marks the blocks of n functions that have bodies, and raises the module's PTX version for it. Nothing is
// marked in functions with few cold blocks, which stand behind the others anyway: it would cost some
// instructions. Nor in modules of versions before 8.0, in functions whose control flow is uncertain, and in
// those that say themselves how often their blocks are executed. *marked: whether the first function has
// marks. The module may only be printed then. Returns 0 or a negative code.
int pass_cold_mark(struct ptx_module *m, struct ptx_func *const *functions, size_t n, bool *marked);

#endif
