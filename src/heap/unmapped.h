// SPDX-License-Identifier: MIT
// Large blocks that went back to the system, page by page: their heads cannot be read any more, so that what a second free needs is
// kept here, for the last of them. Other memory may lie there by now, somebody's block among it: an entry counts only where none does.
#ifndef MOAT_HEAP_UNMAPPED_H
#define MOAT_HEAP_UNMAPPED_H

#include "heap/block.h"

enum { UNMAPPED_LEAST = 100 << 10, UNMAPPED_PAGE = 1 << 12, UNMAPPED_OFFSET = 16 + BLOCK_HEAD };

// Whether it is where a block lies that the C library mapped for itself: behind 16 bytes of its own, and our head.
static inline bool unmapped_may_be(const void *p)
{
    return (uintptr_t)p % UNMAPPED_PAGE == UNMAPPED_OFFSET;
}

// A block with this head may go back now, or has gone.
void unmapped_note(const void *block, struct block_head head, uint32_t freed_at);
void unmapped_forget(const void *block);  // there is one again
// Whether it went back and nothing is there; the head it had then, marked as freed.
bool unmapped_is(const void *p, struct block_head *head);

#endif
