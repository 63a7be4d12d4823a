// SPDX-License-Identifier: MIT
// Places of buffers that the program has freed, with their canaries, for the next buffer that is just like them: of the
// same size, and of the same pool where there are pools. Such a buffer comes without a call of the driver's.
//
// Memory of a pool goes to a buffer of the stream that freed it, or of any once the stream has come so far. What is here
// is bounded, goes back after a while, and at once when the device is full.
//
// Whenever the shelf's lock is free, of a context:
//
//   count == places on the shelf <= CANARY_CACHE_MOST; no slab has two of them
//   plain == sum of slab.range.size over those in memory that we divide up; pool == the same over all others
//   each is withdrawn (size == 0), alone in a slab of this context with used == 1; of plain memory, stream == 0
#ifndef MOAT_CANARY_CANARY_CACHE_H
#define MOAT_CANARY_CANARY_CACHE_H

#include "canary/canary_store.h"

// A withdrawn place is the shelf's. stream: that freed it; of plain memory 0. False: no room, and it is still the caller's.
bool canary_cache_put(const struct canary_place *place, uint64_t stream);

// A place for a buffer of this size is the caller's. False: there is none.
bool canary_cache_take(const struct context *ctx, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                       uint64_t size, struct canary_place *place);

// The place that is here longest, if it is for at least so many nanoseconds, is the caller's, to give it back. False: there is
// none.
bool canary_cache_drop(const struct context *ctx, uint64_t age, struct canary_place *place);
bool canary_cache_wants(const struct canary_place *place);  // where there is room
bool canary_cache_has_room(const struct canary_place *place);
bool canary_cache_any(const struct context *ctx);
// Where places in plain memory lie that are here; how many.
enum { CANARY_CACHE_MOST = 64 };
unsigned canary_cache_plain(const struct context *ctx, struct canary_extent at[CANARY_CACHE_MOST]);

// The same, of memory of one pool.
bool canary_cache_drop_of(const struct context *ctx, CUmemoryPool pool, struct canary_place *place);

void canary_cache_context_gone(const struct context *ctx);
void canary_cache_after_fork(void);

bool canary_cache_valid(const struct context *ctx);  // whether the equations above hold

#endif
