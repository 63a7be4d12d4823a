// SPDX-License-Identifier: MIT
// Runs a warp like the plain loop of grid.c, and counts what it does; slower.
#ifndef MOAT_EXEC_STATS_H
#define MOAT_EXEC_STATS_H

#include "exec/warp.h"

void stats_run(struct exec_warp *w, const struct exec_insn *i);

#endif
