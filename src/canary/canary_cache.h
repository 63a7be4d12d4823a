// SPDX-License-Identifier: MIT
// Cache of places whose buffers were freed, with canaries intact. An allocation of the same size (and of the
// same pool, for pool memory) reuses such a place without a driver call.
//
// Pool memory is reused by an allocation on the stream that freed it, or on any stream once no readback of
// the place is pending. The cache is bounded; places leave it after a while, and at once when the device is
// out of memory.
//
// Whenever the cache's lock is free, for each context:
//
//   count == places in the cache <= CANARY_CACHE_MOST; no slab has two of them
//   plain == sum of slab.range.size over suballocated places; pool == the same sum over all others
//   each place is withdrawn (size == 0) and alone in a slab of this context with used == 1
//   stream == 0 for each suballocated place
#ifndef MOAT_CANARY_CANARY_CACHE_H
#define MOAT_CANARY_CANARY_CACHE_H

#include "canary/canary_store.h"

// Caches a withdrawn place. stream: the id of the stream that freed it, 0 for suballocated memory. Returns
// false if there is no room; the place then remains the caller's.
bool canary_cache_put(const struct canary_place *place, uint64_t stream);

// Moves a place for a buffer of this size out of the cache, to the caller. Returns false if there is none.
bool canary_cache_take(const struct context *ctx, enum canary_kind kind, CUmemoryPool pool, uint64_t stream,
                       uint64_t size, struct canary_place *place);

// Moves the place that has been cached longest to the caller, who frees it, if its age is at least `age`
// nanoseconds. Returns false if there is none.
bool canary_cache_drop(const struct context *ctx, uint64_t age, struct canary_place *place);
bool canary_cache_wants(const struct canary_place *place);  // whether it would be cached, given room
bool canary_cache_has_room(const struct canary_place *place);
bool canary_cache_any(const struct context *ctx);
// Stores the ranges of the cached suballocated places in at[]. Returns their number.
enum { CANARY_CACHE_MOST = 64 };
unsigned canary_cache_plain(const struct context *ctx, struct canary_extent at[CANARY_CACHE_MOST]);

// Moves a cached place of this pool to the caller, like canary_cache_drop with age 0.
bool canary_cache_drop_of(const struct context *ctx, CUmemoryPool pool, struct canary_place *place);

void canary_cache_context_gone(const struct context *ctx);
void canary_cache_after_fork(void);

bool canary_cache_valid(const struct context *ctx);  // whether the equations above hold

#endif
