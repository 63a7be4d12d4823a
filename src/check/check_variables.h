// SPDX-License-Identifier: MIT
// The variables of checked modules: their addresses are read from the module's own table of them
// (pass/pass_check.h) in each context, and they are recorded as memory of the program, like those that it
// asks the driver for.
#ifndef MOAT_CHECK_CHECK_VARIABLES_H
#define MOAT_CHECK_CHECK_VARIABLES_H

#include "context/context.h"
#include "rewrite/modules.h"

// Records the variables of a held module or library in ctx, which must be current. Call it without the lock
// of check_host.c, which hears of what is recorded.
void check_variables_record(struct context *ctx, const struct modules_row *row);

#endif
