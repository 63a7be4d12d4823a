// SPDX-License-Identifier: MIT
// A suballocator for device memory. The memory comes in regions; ranges are taken out of them and given back.
// The driver rounds an allocation up to 2 MiB, which would double a buffer of just that size; here neighbours
// share the rounding.
#ifndef MOAT_CANARY_CANARY_SUBALLOC_H
#define MOAT_CANARY_CANARY_SUBALLOC_H

#include <stdbool.h>
#include <stdint.h>

enum { CANARY_SUBALLOC_UNIT = 512 };  // alignment of ranges: enough for textures and pitches

struct canary_suballoc_range;
struct canary_suballoc_region;

// Zero-initialised. The caller locks. Between two operations, where each region has a list of free ranges:
//
//   bytes == sum of (region.bytes - region.cut_bytes)
//   used  == sum of (region.bytes - region.cut_bytes - region.free_bytes)
//   region.free_bytes == sum of range.bytes
//   region.free_bytes + region.cut_bytes <= region.bytes, and region.cut_bytes < region.bytes
//   ranges are multiples of the unit, not empty, in their region, in the order of addresses, and no two touch
//   no two regions have an address in common, and none has address 0
struct canary_suballoc {
    struct canary_suballoc_region *regions;
    uint64_t bytes, used;  // in regions, and how many of them are taken
};

// Adds a region. base and bytes are multiples of the unit. Returns 0 or -ENOMEM.
int canary_suballoc_add(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes);

// Takes a range; bytes is a multiple of the unit. Returns its base, or 0 if no free range is large enough.
// Regions of more than 2 MiB and more than CANARY_SUBALLOC_SHARE times the range do not count: a few bytes
// must not keep such a region from being returned.
enum { CANARY_SUBALLOC_SHARE = 512, CANARY_SUBALLOC_LEAST = 2 << 20 };
uint64_t canary_suballoc_take(struct canary_suballoc *suballoc, uint64_t bytes);

uint64_t canary_suballoc_largest(const struct canary_suballoc *suballoc);  // bytes of the largest free range

// Gives back a range from canary_suballoc_take. Returns false if its region is no longer there, or if out of
// memory for our own records; the range then stays unused.
bool canary_suballoc_give(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes);

// Removes a region without taken ranges. Returns its base, or 0 if there is none; *bytes is its size.
uint64_t canary_suballoc_remove_empty(struct canary_suballoc *suballoc, uint64_t *bytes);
// Returns the bytes in regions that would have no taken range if the n ranges in `assumed` were free.
struct canary_extent {
    uint64_t base, bytes;
};
uint64_t canary_suballoc_empty(const struct canary_suballoc *suballoc, const struct canary_extent *assumed,
                               unsigned n);

// Adds memory that comes piece by piece: it extends the region that ends at base, if there is one, so that
// ranges may reach from one piece into the next. Ranges of any size can be taken from such a region. Returns
// 0 or -ENOMEM.
int canary_suballoc_extend(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes);
uint64_t canary_suballoc_before(const struct canary_suballoc *suballoc,
                                uint64_t end);  // size of the free range that ends at `end`
// Cuts memory out of its region if no range in it is taken. Returns false if one is, or if out of memory;
// nothing has changed then.
bool canary_suballoc_cut(struct canary_suballoc *suballoc, uint64_t base, uint64_t bytes);

// Removes all regions.
void canary_suballoc_clear(struct canary_suballoc *suballoc);

void canary_suballoc_after_fork(void);

// Returns whether the equations hold. Tests call it, and checked builds after each operation.
bool canary_suballoc_valid(const struct canary_suballoc *suballoc);

static inline uint64_t canary_suballoc_round(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
