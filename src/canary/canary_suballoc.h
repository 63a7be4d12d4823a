// SPDX-License-Identifier: MIT
// Device memory that canary mode divides up itself. It comes in regions, from cuMemAlloc; ranges are taken out of them
// and given back. The driver rounds an allocation up to 2 MiB, which would double a buffer of just that size: here
// neighbours share what it rounds.
#ifndef MOAT_CANARY_CANARY_SUBALLOC_H
#define MOAT_CANARY_CANARY_SUBALLOC_H

#include <stdbool.h>
#include <stdint.h>

enum { CANARY_SUBALLOC_UNIT = 512 };  // ranges start at multiples of it: what textures and pitches ask for

struct space_range;
struct space_region;

// Starts as zeroes. Not locked: the caller does.
//
// Between two operations, of the regions of a space, each with its free ranges:
//
//   bytes == sum of (region.bytes - region.gone)
//   used  == sum of (region.bytes - region.gone - region.left)
//   region.left == sum of range.bytes
//   region.left + region.gone <= region.bytes, and region.gone < region.bytes
//   ranges are multiples of the unit, not empty, in their region, in the order of addresses, and no two touch
//   no two regions have an address in common, and none has address 0
struct canary_suballoc {
    struct space_region *regions;
    uint64_t bytes, used;  // in regions, and of them in ranges
};

// A region becomes ranges to take. base is a multiple of the unit. 0, or -ENOMEM.
int canary_suballoc_add(struct canary_suballoc *space, uint64_t base, uint64_t bytes);

// A range, of a multiple of the unit; 0: there is none that large, but for regions that are more than
// CANARY_SUBALLOC_SHARE times as large and than 2 MiB: a few bytes must not hold on to such a one.
enum { CANARY_SUBALLOC_SHARE = 512, CANARY_SUBALLOC_LEAST = 2 << 20 };
uint64_t canary_suballoc_take(struct canary_suballoc *space, uint64_t bytes);

uint64_t canary_suballoc_largest(const struct canary_suballoc *space);  // that there is

// Takes back what canary_suballoc_take gave. False: it went with its region, or there is no memory for our own books and the
// range stays unused.
bool canary_suballoc_give(struct canary_suballoc *space, uint64_t base, uint64_t bytes);

// A region of which nothing is taken, taken out of the space: its base, or 0 if there is none; *bytes: its size.
uint64_t canary_suballoc_remove_empty(struct canary_suballoc *space, uint64_t *bytes);
// Bytes in regions of which nothing is taken but these ranges.
struct canary_extent {
    uint64_t base, bytes;
};
uint64_t canary_suballoc_empty(const struct canary_suballoc *space, const struct canary_extent *but,
                               unsigned n);

// The same for memory that comes piece by piece: it belongs to the region that ends where it starts, if there is one, and so
// ranges may reach from one piece into the next. Of such a region ranges of any size can be taken. 0, or -ENOMEM.
int canary_suballoc_extend(struct canary_suballoc *space, uint64_t base, uint64_t bytes);
uint64_t canary_suballoc_before(const struct canary_suballoc *space,
                                uint64_t end);  // free bytes that end there
// Such memory is no more, if nothing of it is taken. False: it is as it was.
bool canary_suballoc_cut(struct canary_suballoc *space, uint64_t base, uint64_t bytes);

// All regions are gone.
void canary_suballoc_clear(struct canary_suballoc *space);

void canary_suballoc_after_fork(void);

// Whether all of that holds. Tests ask, and checked builds after each operation.
bool canary_suballoc_valid(const struct canary_suballoc *space);

static inline uint64_t canary_suballoc_round(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

#endif
