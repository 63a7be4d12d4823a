// SPDX-License-Identifier: MIT
// Addresses for --mode=pages, in units of 2 MiB: each is given out once, until no more can be had from the driver; from
// then on those that were given back first come first.
//
//   every unit of a piece is in one of: what is given out, [next, end) of the newest piece, one entry of the queue
//   (or lost, where the queue had no room)
//
// and so, whenever the lock is free:
//
//   next <= end; last - first <= PAGES_ADDRESS_QUEUE; queue == NULL implies first == last
//   no two entries have a unit in common, nor one with [next, end); the one at first is not used up
//   pieces <= PAGES_ADDRESS_PIECES; piece == 0 if they are as many, and always piece <= PAGES_ADDRESS_LARGEST
#ifndef MOAT_PAGES_PAGES_ADDRESS_H
#define MOAT_PAGES_PAGES_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

enum {
    PAGES_ADDRESS_BITS = 21,                 // of a unit
    PAGES_ADDRESS_QUEUE = 1 << 24,           // ranges given back that are remembered; a power of two
    PAGES_ADDRESS_UNITS = 1 << (47 - 21),    // that any address can have
    PAGES_ADDRESS_PIECES = 16,               // at most so many are asked for ...
    PAGES_ADDRESS_LARGEST = 1 << (42 - 21),  // ... of so many units
    PAGES_ADDRESS_LEAST = 1 << (32 - 21),    // the driver is asked for half until this
};
#define PAGES_ADDRESS_UNIT ((uint64_t)1 << PAGES_ADDRESS_BITS)

struct pages_address_range {
    uint32_t unit, units;  // units 0: used up
};

// Starts as PAGES_ADDRESS_INIT.
struct pages_address {
    struct lock lock;                               // of all below; not held over `reserve`
    int (*reserve)(uint64_t size, uint64_t *base);  // 0, or nonzero if there is none of that size
    uint32_t next, end;                             // of the newest piece: never given out
    uint32_t piece;                                 // units to ask for next; 0: no more
    unsigned pieces;
    struct pages_address_range *queue;  // [first, last), modulo its size
    uint64_t first, last;
    uint64_t reused;  // how often addresses were given out that had been before
};

#define PAGES_ADDRESS_INIT(function)                                                                       \
    {                                                                                                      \
        .lock = LOCK_INIT(PAGES_ADDRESS), .reserve = (function), .piece = PAGES_ADDRESS_LARGEST, .next = 0 \
    }

// 0, and the first address of so many units; -ENOMEM: there are none. *again: they were given out before.
int pages_address_take(struct pages_address *a, uint32_t units, uint64_t *base, bool *again);
void pages_address_give(struct pages_address *a, uint64_t base, uint32_t units);

// Whether the equations above hold; takes the lock. Returns true if there is no memory to look.
bool pages_address_valid(struct pages_address *a);

#endif
