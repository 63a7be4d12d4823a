// SPDX-License-Identifier: MIT
// Which bytes of the partition's memory buffers have: extents in the order of their addresses, and lists of
// the free ones by size.
//
//   [first extent][next] ...   each is free or taken; two free ones that touch are one
//   class of a free extent     8 classes for each power of two: the first extent of a class that is at least
//                              the next class's least size fits
//
// Every size and base is a multiple of FENCE_SPACE_GRAIN. The caller serialises all calls.
#ifndef MOAT_FENCE_FENCE_SPACE_H
#define MOAT_FENCE_FENCE_SPACE_H

#include <stdbool.h>
#include <stdint.h>

enum { FENCE_SPACE_GRAIN = 512, FENCE_SPACE_CLASSES = 8 * 48 };

struct fence_extent {
    uint64_t base, size;
    bool free;
    struct fence_extent *before, *after;   // by address; those that touch or not
    struct fence_extent *previous, *next;  // of a free one: in its list
};

// Initialised by {0}.
struct fence_space {
    struct fence_extent *first, *last;
    struct fence_extent *lists[FENCE_SPACE_CLASSES];
    uint64_t used[FENCE_SPACE_CLASSES / 64];  // a bit for each list that is not empty
    uint64_t taken;                           // bytes
};

// Adds memory where there is none. Returns false if out of memory.
bool fence_space_add(struct fence_space *s, uint64_t base, uint64_t size);
// Takes at least `size` bytes. Returns NULL if no free extent is large enough, or out of memory.
struct fence_extent *fence_space_take(struct fence_space *s, uint64_t size);
// Returns the free extent that e has become, or become part of.
struct fence_extent *fence_space_give(struct fence_space *s, struct fence_extent *e);
// Removes a part of a free extent, which keeps what lies before the part. Returns false if out of memory;
// *rest: e, or NULL if nothing lies before.
bool fence_space_cut(struct fence_space *s, struct fence_extent *e, uint64_t base, uint64_t size,
                     struct fence_extent **rest);

bool fence_space_valid(const struct fence_space *s);  // whether what is said above holds
void fence_space_after_fork(void);

#endif
