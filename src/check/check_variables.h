// SPDX-License-Identifier: MIT
// The variables of checked modules: their addresses are read from the module's own table of them
// (pass/pass_check.h) in each context, or asked of the driver for kernels whose variants are apart, and they
// are recorded as memory of the program, like those that it
// asks the driver for.
#ifndef MOAT_CHECK_CHECK_VARIABLES_H
#define MOAT_CHECK_CHECK_VARIABLES_H

#include "context/context.h"
#include "rewrite/modules.h"

// Records the variables of a held module or library in ctx, which must be current. Call it without the lock
// of check_host.c, which hears of what is recorded.
void check_variables_record(struct context *ctx, const struct modules_row *row);

// Writes the addresses of the program's variables in ctx, which must be current, into the table of a module
// with variants that are apart from the program's.
CUresult check_variables_place(struct context *ctx, const struct modules_row *row);

#endif
