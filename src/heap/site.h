// SPDX-License-Identifier: MIT
// Who allocated or freed a block: a number for each calling context, small enough to stand in a block's head.
//
// To unwind the stack at every allocation would cost more than all else that we do. But the return address together with
// the depth of the stack names the calling path nearly always, and programs have few paths compared with allocations.
// So a table maps that pair to a stack that was unwound once. Unwinding is rationed per thread (SITE_FIRST stacks, then one
// for SITE_EVERY operations), so that a program that only starts up does not pay for it; a path whose turn has not come yet
// has one frame, its return address. Two paths that share address and depth share a stack, that of the first: the outer
// frames of a report can then be another path's.
//
// What holds at any time (site_valid): nothing is ever taken back.
//   an entry of an index names a slot that was taken, 0 < slot < slots_used; no two entries name the same
//   a slot's stack is 0, or a place in the pool with 1 to SITE_FRAMES frames behind it
#ifndef MOAT_HEAP_SITE_H
#define MOAT_HEAP_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SITE_FRAMES = 24, SITE_FIRST = 32, SITE_EVERY = 4096 };

enum site_depth { SITE_RATIONED, SITE_CALLER_ONLY, SITE_ALWAYS };

int site_init(void);  // 0 or -ENOMEM
void site_set_depth(enum site_depth depth);

// The calling context, 0 if there is no room for more. `from`: the return address of the program's call of us; `depth`: bytes
// of stack above it; *unwound: stacks that this thread has unwound so far; operations: how many calls it made.
uint32_t site_of(const void *from, size_t depth, uint32_t *unwound, uint64_t operations);

// Its frames, innermost first; how many.
size_t site_frames(uint32_t site, uint64_t *frames);

bool site_valid(void);

#endif
