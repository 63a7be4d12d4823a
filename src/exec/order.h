// SPDX-License-Identifier: MIT
// The order in which the blocks of a function are laid out. Internal to src/exec.
//
// It is a reverse postorder in which the code that follows a loop comes after the loop:
//   an edge u -> v with rank[v] <= rank[u] closes a cycle
//   the blocks of a natural loop of a reducible graph are contiguous
// sched.c relies on the first for its choice of the split to run; the second makes that choice a good one.
#ifndef MOAT_EXEC_ORDER_H
#define MOAT_EXEC_ORDER_H

#include "flow/cfg.h"
#include "flow/loops.h"

// Stores the reachable blocks, at most c->nblocks, in order[] and their number in *n. Returns 0 or -ENOMEM.
int order_blocks(const struct cfg *c, const struct loops *l, uint32_t *order, uint32_t *n);

#endif
