// SPDX-License-Identifier: MIT
// Real pages of the shadow in which no buffer is left: where addresses are not used twice, each would hold
// its memory for ever. Another page gets it once nobody can need what is in it: all of the page is forbidden
// then, as it was.
//
//   live[page]    buffers of --mode=pages in what a page describes, as far as they were seen to be made
//   empty         the pages of which the last one was freed, oldest first, each at most once
//
// A page that has a buffer after all, for one was not seen, becomes forbidden, and the table decides each
// access: it is slow, and nothing right is reported.
#ifndef MOAT_SHADOW_SHADOW_EMPTY_H
#define MOAT_SHADOW_SHADOW_EMPTY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SHADOW_EMPTY_MOST = 1 << 13,  // as many as there are real pages
    SHADOW_EMPTY_KEPT = 16,       // that keep their memory, since buffers may come again
};

struct shadow_empty {
    uint32_t *live;         // by number of the page
    uint8_t *queued;        // by number of the page: 1: it is among those below
    uint32_t *pages;        // SHADOW_EMPTY_MOST, a ring
    uint32_t first, count;  // count <= SHADOW_EMPTY_MOST
};

// A buffer was made, or freed, in what pages first to last describe.
void shadow_empty_made(struct shadow_empty *e, uint64_t first, uint64_t last);
void shadow_empty_freed(struct shadow_empty *e, uint64_t first, uint64_t last);

// Takes the page that has been empty for longest, if so many others are. Returns false if there is none.
bool shadow_empty_take(struct shadow_empty *e, uint32_t kept, uint64_t *page);
// Gives back a page that was taken, for now: it is the newest then.
void shadow_empty_put(struct shadow_empty *e, uint64_t page);

#endif
