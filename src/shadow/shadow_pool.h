// SPDX-License-Identifier: MIT
// Memory that allocators hand out in pieces, which they announce: only the pieces may be accessed. A piece
// that was taken back, or a buffer that has become a pool, stays accessible until all kernels that were
// launched before have ended (it is pending), since they may use it rightly.
//
//   pools    disjoint; each lies in one block of memory whose shadow can be changed
//   pieces   live ones, by ascending base, disjoint, and each inside its pool
//   pending  in the order of their launches
//
// Not thread-safe: all functions need the lock of check_host.c.
#ifndef MOAT_SHADOW_SHADOW_POOL_H
#define MOAT_SHADOW_SHADOW_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "track/track.h"

struct shadow_pool_range {
    uint64_t base, end;
};

// Makes a pool of [base, end), where none is. The functions that return int return 0 or -ENOMEM; after that
// the pools are no longer right.
int shadow_pool_make(uint64_t base, uint64_t end, uint64_t launches);
// Forgets the pools that overlap the range. Returns false if there are none.
bool shadow_pool_drop(uint64_t base, uint64_t end);
bool shadow_pool_find(uint64_t address, struct shadow_pool_range *pool);

// Adds a piece, which is cut to its pool; nothing happens outside of pools. Others that it overlaps are
// forgotten, and pending where they leave it.
int shadow_pool_add(const struct track_copy *piece, uint64_t launches);
// Makes the pieces that overlap the range pending. stack: of who has taken them back.
int shadow_pool_remove(uint64_t base, uint64_t end, uint64_t launches, uint32_t stack);

// All launches up to this number have ended.
void shadow_pool_ended(uint64_t launches);
uint64_t shadow_pool_launches_ended(void);
// Takes a range that is no longer pending. Returns false if there is none.
bool shadow_pool_due(struct shadow_pool_range *range);

// Returns the byte of the shadow for a granule, whose pool is known to contain its start.
uint8_t shadow_pool_byte(unsigned shift, uint64_t granule);
// Returns where the granules end, at most at `end`, that have the byte of the first one.
uint64_t shadow_pool_run(unsigned shift, uint64_t granule, uint64_t end, uint8_t *byte);

// Copies the piece that an address is in, or else one that was taken back there, or else the nearest one of
// its pool. Returns false if there is none.
bool shadow_pool_near(uint64_t address, struct track_copy *piece);

// Calls f for each pool until it returns false.
void shadow_pool_each(bool (*f)(const struct shadow_pool_range *pool, void *argument), void *argument);
void shadow_pool_reset(void);  // for tests

#endif
