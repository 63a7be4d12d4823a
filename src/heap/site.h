// SPDX-License-Identifier: MIT
// Who allocated or freed a block: a site is a number for a calling context, small enough for a block's head.
//
// Unwinding the stack at every allocation would cost more than all else that we do. But the return address
// together with the depth of the stack nearly always identifies the calling path, and programs have few paths
// compared with allocations. So a table maps that pair to a stack that was unwound once. Unwinding is
// rationed per thread (SITE_FIRST stacks, then one per SITE_EVERY operations), so that short programs do not
// pay for it; a path that has not been unwound yet has one frame, its return address. Two paths with the same
// address and depth share the stack of the first, so the outer frames of a report can belong to another path.
//
// What holds at any time (site_valid); nothing is ever removed:
//   an index entry names a used slot, 0 < slot < slots_used; no two entries name the same slot
//   a slot's stack is 0, or the position in the pool of a count from 1 to SITE_FRAMES and as many frames
#ifndef MOAT_HEAP_SITE_H
#define MOAT_HEAP_SITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SITE_FRAMES = 24, SITE_FIRST = 32, SITE_EVERY = 4096 };

enum site_depth { SITE_RATIONED, SITE_CALLER_ONLY, SITE_ALWAYS };

int site_init(void);  // 0 or -ENOMEM
void site_set_depth(enum site_depth depth);

// Returns the site of a call, 0 if the tables are full. `from`: the return address of the program's call;
// `depth`: bytes of stack above it; *unwound: stacks that this thread has unwound so far; operations:
// allocations it has made.
uint32_t site_of(const void *from, size_t depth, uint32_t *unwound, uint64_t operations);

// Writes the site's frames, innermost first, and returns how many.
size_t site_frames(uint32_t site, uint64_t *frames);

bool site_valid(void);

#endif
