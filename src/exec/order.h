// SPDX-License-Identifier: MIT
// The order in which the blocks of a function are laid out. Internal to src/exec.
//
// A reverse postorder in which what leaves a loop comes after the loop:
//   an edge u -> v with rank[v] <= rank[u] closes a cycle
//   the blocks of a natural loop of a reducible graph are contiguous
// sched.c relies on the first for its notion of being behind; the second makes it good.
#ifndef MOAT_EXEC_ORDER_H
#define MOAT_EXEC_ORDER_H

#include "flow/cfg.h"
#include "flow/loops.h"

// Blocks that can be reached, at most c->nblocks; how many. 0 or -ENOMEM.
int order_blocks(const struct cfg *c, const struct loops *l, uint32_t *order, uint32_t *n);

#endif
