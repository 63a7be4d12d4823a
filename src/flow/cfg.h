// SPDX-License-Identifier: MIT
// Basic blocks: the statements of a function, cut where control may enter or leave.
//
// A block starts at the first statement, at a label that something refers to, and after an instruction that
// may not continue with the next. Declarations, .loc, braces and other labels belong to the block around
// them.
//
//   instruction                      edges
//   bra                              to its label; guarded: also to the next block
//   brx.idx                          to every label of its .branchtargets; guarded: also to the next block
//   ret, exit, trap                  none, the block exits; guarded: also to the next block
//   call of a .noreturn function     as exit
//   one that is not in ops.def       to every label that it names, and to the next block
//   the end of the function          none, the block exits
//
// Calls are assumed to return, and only to the next statement. A function is `uncertain` if a statement may
// do more than that: an instruction that is not in ops.def or has a modifier that is not in mods.def, a
// statement kept verbatim, a label where none is expected or none where one is. Its graph may lack edges, and
// no pass may rely on it.
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

// Builds the blocks of a function, which must have a body. The result keeps pointers to it and is invalid
// once its statements change. Returns 0, -ENOMEM, or -E2BIG for more than CFG_MOST_EDGES edges: a switch with
// many targets, repeated many times.
enum { CFG_MOST_EDGES = 1 << 24 };
int cfg_build(const struct ptx_module *m, const struct ptx_func *f, struct cfg **out);
void cfg_free(struct cfg *c);
bool cfg_valid(const struct cfg *c);

#endif
