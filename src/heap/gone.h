// SPDX-License-Identifier: MIT
// Large blocks that went back to the system, page by page: their heads cannot be read any more, so that what a second free needs is
// kept here, for the last of them. Other memory may lie there by now, somebody's block among it: an entry counts only where none does.
#ifndef MOAT_HEAP_GONE_H
#define MOAT_HEAP_GONE_H

#include "heap/block.h"

enum { GONE_LEAST = 100 << 10, GONE_PAGE = 1 << 12, GONE_OFFSET = 16 + BLOCK_HEAD };

// Whether it is where a block lies that the C library mapped for itself: behind 16 bytes of its own, and our head.
static inline bool gone_may_be(const void *p)
{
    return (uintptr_t)p % GONE_PAGE == GONE_OFFSET;
}

// A block with this head may go back now, or has gone.
void gone_note(const void *block, struct block_head head, uint32_t freed_at);
void gone_forget(const void *block);  // there is one again
// Whether it went back and nothing is there; the head it had then, marked as freed.
bool gone_is(const void *p, struct block_head *head);

#endif
