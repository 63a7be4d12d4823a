// SPDX-License-Identifier: MIT
// The set of buffers of canary mode, which scans walk over, and the choice of places for new ones.
//
// Slabs (canary_slab.h) are found through an index (index.h), without a lock, and are not released before all
// readers have left. Their contents are under the store's lock, except for the state of their slots
// (canary_slot.h).
#ifndef MOAT_CANARY_CANARY_STORE_H
#define MOAT_CANARY_CANARY_STORE_H

#include "canary/canary_slot.h"

// Outcomes of taking a place for a buffer of the current context. If no memory is left, more is allocated or
// mapped.
enum canary_took {
    CANARY_TOOK,        // its canaries are intact
    CANARY_TOOK_STALE,  // its canaries must be written
    // No place yet: place->slab is new. Its canaries must be written, then canary_store_open called.
    CANARY_FILL,
    // No place yet: place->slab has many free slots that no scan has verified since.
    CANARY_CHECK,
    CANARY_NONE,  // no memory
};
// patient: CANARY_CHECK may be returned.
enum canary_took canary_store_take(struct context *ctx, uint64_t size, bool patient,
                                   struct canary_place *place);
// Opens a new slab for use if `filled` says that its canaries are written. Otherwise, or if out of memory,
// discards it and returns false.
bool canary_store_open(struct canary_slab *s, bool filled);

// Makes the driver's allocation at `real`, of canary_slab_padded bytes, the place of a buffer. ready: the
// slab's event. Returns 0 or -ENOMEM.
int canary_store_adopt(struct context *ctx, const struct canary_memory *memory, uint64_t real, uint64_t size,
                       CUevent ready, struct canary_place *place);

// Withdraws the buffer that starts at `pointer`; exactly one of several threads succeeds. Returns false if
// there is none. Suballocated buffers are still verified by scans, until their place is reused or closed;
// others no longer.
bool canary_store_withdraw(uint64_t pointer, struct canary_place *place);
// canary_store_unindex removes the slab of a withdrawn place from the index just before its memory is
// returned to the driver, since another buffer may get the addresses then. Returns false if out of memory.
// canary_store_reindex puts it back.
bool canary_store_unindex(const struct canary_place *place);
void canary_store_reindex(const struct canary_place *place);
// Gives back a withdrawn place, or one that was never published; the caller frees what came from the driver.
// A slot of several is reused when a scan after `scan` has verified it.
void canary_store_give(const struct canary_place *place, uint64_t scan);

// Returns the slab at an address. Call it in an epoch section.
struct canary_slab *canary_store_find(uint64_t address);
int canary_store_each(int (*f)(struct index_item *, void *), void *context);  // in an epoch section
size_t canary_store_slabs(void);

// Closes the empty slabs that a scan has verified, except one of each stride; their memory becomes free
// ranges.
void canary_store_tidy(struct context *ctx);
// Returns empty regions and mapped pieces of the current context to the driver, except `keep` bytes. Returns
// the number of bytes. No scan may be running.
uint64_t canary_store_trim(struct context *ctx, uint64_t keep);
// Returns the bytes in regions and pieces that would be empty if the n ranges in `assumed` were free.
uint64_t canary_store_spare(struct context *ctx, const struct canary_extent *assumed, unsigned n);
// Returns the bytes that canaries and rounding take now, in all contexts.
uint64_t canary_store_extra(void);

// Removes all slabs and memory of a destroyed context. No scan may be running.
void canary_store_context_gone(struct context *ctx, CUcontext context);
void canary_store_after_fork(void);

// Returns whether the equations of canary_slab.h and canary_suballoc.h hold for everything in the context,
// and
//
//   for each stride, in units: live == buffers in suballocated slabs; made == slots of open slabs
//   empty == open slabs without a buffer
//
// They hold whenever the store's lock is free. Only tests call this: it visits every slot.
bool canary_store_valid(const struct context *ctx);

#endif
