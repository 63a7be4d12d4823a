// SPDX-License-Identifier: MIT
// The memory outside of partitions that kernels may access: a sorted list. The caller serialises all calls.
//
//   ranges do not overlap, except that equal ones are one entry that is counted
#ifndef MOAT_FENCE_FENCE_RANGES_H
#define MOAT_FENCE_FENCE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kfence/kfence.h"

struct fence_ranges_entry {
    uint64_t base, end;
    const void *owner;  // a module whose variable it is; NULL: it is memory
    uint32_t count;
};
struct fence_ranges {
    struct fence_ranges_entry *entries;
    size_t count, room;
};

// Returns false if out of memory, or if the range overlaps another one and is not equal to it.
bool fence_ranges_add(struct fence_ranges *r, uint64_t base, uint64_t end, const void *owner);
bool fence_ranges_remove(struct fence_ranges *r, uint64_t base);
bool fence_ranges_remove_owner(struct fence_ranges *r, const void *owner);
// Writes the ranges, those that touch as one, and returns how many; at most `most`.
size_t fence_ranges_list(const struct fence_ranges *r, struct kfence_range *to, size_t most);
// Returns the widest piece of which no gap between two ranges is of `gap` bytes or more; empty if there is no
// range.
struct kfence_range fence_ranges_widest(const struct fence_ranges *r, uint64_t gap);
void fence_ranges_free(struct fence_ranges *r);

#endif
