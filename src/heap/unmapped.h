// SPDX-License-Identifier: MIT
// Large blocks that went back to the system, as mappings of their own: their heads are no longer readable, so
// what is needed to report a second free is kept here, for the most recent ones. Other memory may have been
// mapped there since, perhaps with a new block: an entry counts only where nothing is mapped.
#ifndef MOAT_HEAP_UNMAPPED_H
#define MOAT_HEAP_UNMAPPED_H

#include "heap/block.h"

enum { UNMAPPED_LEAST = 100 << 10, UNMAPPED_PAGE = 1 << 12, UNMAPPED_OFFSET = 16 + BLOCK_HEAD };

// Returns whether p lies where a block lies that the C library mapped by itself: 16 bytes of its own and our
// head behind the start of a page.
static inline bool unmapped_may_be(const void *p)
{
    return (uintptr_t)p % UNMAPPED_PAGE == UNMAPPED_OFFSET;
}

// Records a block with this head, before or after it goes back to the system.
void unmapped_note(const void *block, struct block_head head, uint32_t freed_at);
void unmapped_forget(const void *block);  // a new block is there
// Returns whether the block was recorded and nothing is mapped there; then *head is its last head, marked as
// freed.
bool unmapped_is(const void *p, struct block_head *head);

#endif
