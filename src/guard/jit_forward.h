// SPDX-License-Identifier: MIT
// PTX that a run-time compiler in this process had, on its way to where modules are loaded: the modes that
// rewrite, and the CPU device. A process that only compiles never starts the guard; what it compiles is kept
// and passed on when the guard starts.
#ifndef MOAT_GUARD_JIT_FORWARD_H
#define MOAT_GUARD_JIT_FORWARD_H

#include <stdbool.h>

#include "base/str.h"

// Returns whether PTX is wanted: --jit-ptx.
bool jit_forward_wanted(void);

// Keeps the PTX of machine code. If it cannot be kept, or there is none (ptx.len is 0), the report says that
// the PTX of what `whose` has made could not be had.
void jit_forward_keep(struct str code, struct str ptx, const char *whose);

// Passes on what was kept before. The guard calls it once, when the driver is open.
void jit_forward_start(void);

#endif
