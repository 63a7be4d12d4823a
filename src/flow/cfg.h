// SPDX-License-Identifier: MIT
// Basic blocks: the statements of a function, cut where control may come in or go out.
//
// A block starts at the first statement, at a label that something refers to, and behind an instruction that
// may not go on to the next. Declarations, .loc, braces and other labels belong to the block they stand in.
//
//   instruction                      edges
//   bra                              to its label; guarded: also to the next block
//   brx.idx                          to every label of its .branchtargets; guarded: also to the next block
//   ret, exit, trap                  none, the block exits; guarded: also to the next block
//   call of a .noreturn function     as exit
//   one that ops.def does not know   to every label that it names, and to the next block
//   the end of the function          none, the block exits
//
// Calls are taken to return, and to nowhere else. A function with an instruction that ops.def does not know
// is `uncertain`: the graph may lack edges, and no pass may rely on it.
//
//   blocks[b].first < blocks[b].last == blocks[b + 1].first, from 0 to nstmts; only a function without
//   statements has an empty block; block_of[s] == b <=> blocks[b].first <= s < blocks[b].last
//   the entry is block 0; it may have predecessors
#ifndef MOAT_FLOW_CFG_H
#define MOAT_FLOW_CFG_H

#include "flow/graph.h"
#include "ptx/ptx.h"

struct cfg_block {
    uint32_t first, last;  // statements [first, last)
};

struct cfg {
    struct arena arena;
    const struct ptx_func *func;
    uint32_t nblocks;
    struct cfg_block *blocks;
    uint32_t *block_of;  // by statement
    bool *exits;         // by block: control may end there
    bool falls_off;      // the last block may run into the end of the function, as if into a ret
    bool uncertain;
    struct graph *graph;  // nodes are blocks
};

// Requires a function with a body; keeps pointers to it, and is void when its statements change.
// 0, -ENOMEM, or -E2BIG for more than CFG_MOST_EDGES: a switch with many targets, repeated many times.
enum { CFG_MOST_EDGES = 1 << 24 };
int cfg_build(const struct ptx_module *m, const struct ptx_func *f, struct cfg **out);
void cfg_free(struct cfg *c);
bool cfg_valid(const struct cfg *c);

#endif
