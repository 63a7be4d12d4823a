// SPDX-License-Identifier: MIT
// Addresses for --mode=pages, in units of 2 MiB. Each is handed out once, as long as the driver reserves
// more; from then on, those that were given back first are reused first.
//
//   every unit of a piece is in one of: a range that is handed out, [next, end) of the newest piece, one
//   entry of the queue; or it is lost, because the queue was full
//
// and so, whenever the lock is free:
//
//   next <= end; last - first <= PAGES_ADDRESS_QUEUE; queue == NULL implies first == last
//   no two entries have a unit in common, nor one with [next, end); the entry at `first` is not used up
//   pieces <= PAGES_ADDRESS_PIECES; piece == 0 if they are equal, and always piece <= PAGES_ADDRESS_LARGEST
#ifndef MOAT_PAGES_PAGES_ADDRESS_H
#define MOAT_PAGES_PAGES_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/lock.h"

enum {
    PAGES_ADDRESS_BITS = 21,                 // of a unit
    PAGES_ADDRESS_QUEUE = 1 << 24,           // most ranges that are remembered; a power of two
    PAGES_ADDRESS_UNITS = 1 << (47 - 21),    // in the whole address space
    PAGES_ADDRESS_PIECES = 16,               // at most this many are reserved, ...
    PAGES_ADDRESS_LARGEST = 1 << (42 - 21),  // ... of this many units each
    PAGES_ADDRESS_LEAST = 1 << (32 - 21),    // after a failure half as many are tried, down to this
};
#define PAGES_ADDRESS_UNIT ((uint64_t)1 << PAGES_ADDRESS_BITS)

struct pages_address_range {
    uint32_t unit, units;  // units == 0: used up
};

// Initialised by PAGES_ADDRESS_INIT.
struct pages_address {
    struct lock lock;                               // of all below; not held over `reserve`
    int (*reserve)(uint64_t size, uint64_t *base);  // returns nonzero if that many bytes cannot be reserved
    uint32_t next, end;                             // of the newest piece: not handed out yet
    uint32_t piece;                                 // units to reserve next; 0: no more
    unsigned pieces;
    struct pages_address_range *queue;  // entries [first, last), modulo its size
    uint64_t first, last;
    uint64_t reused;  // takes from the queue
};

#define PAGES_ADDRESS_INIT(function)                                                                       \
    {                                                                                                      \
        .lock = LOCK_INIT(PAGES_ADDRESS), .reserve = (function), .piece = PAGES_ADDRESS_LARGEST, .next = 0 \
    }

// Takes addresses of this many units. Returns 0, or -ENOMEM if there are none. *again is set if they come
// from the queue: all of these were handed out before, except the rest of a piece that was left when the next
// one was reserved.
int pages_address_take(struct pages_address *a, uint32_t units, uint64_t *base, bool *again);
void pages_address_give(struct pages_address *a, uint64_t base, uint32_t units);

// Returns whether the equations above hold, or true if out of memory for the check. Takes the lock.
bool pages_address_valid(struct pages_address *a);

#endif
