// SPDX-License-Identifier: MIT
// Which buffers of canary mode there are, and where the next ones go: what the scans go by.
//
// Slabs (canary_slab.h) are found through an index (index.h), without a lock, and stay as they are until all readers have
// left. What is in them is under the lock of the store, but for what their slots say (canary_slot.h).
#ifndef MOAT_CANARY_CANARY_STORE_H
#define MOAT_CANARY_CANARY_STORE_H

#include "canary/canary_slot.h"

// A place for a buffer of the current context: memory comes from cuMemAlloc when there is none left.
enum canary_took {
    CANARY_TOOK,        // its canaries stand
    CANARY_TOOK_STALE,  // they are to be written
    CANARY_FILL,  // none yet: place->slab is a new slab whose canaries are to be written, then canary_store_open
    CANARY_CHECK,  // none yet: many are free in place->slab that no scan has looked at since
    CANARY_NONE,   // no memory
};
// patient: CANARY_CHECK may be the answer.
enum canary_took canary_store_take(struct context *ctx, uint64_t size, bool patient,
                                   struct canary_place *place);
// filled: the slab's canaries stand, and it is in use from now on; otherwise it goes again. False: so it is, for no memory.
bool canary_store_open(struct canary_slab *s, bool filled);

// What the driver gave, at least canary_slab_padded bytes, becomes the place of a buffer. ready: as in the slab. 0, or
// -ENOMEM.
int canary_store_adopt(struct context *ctx, const struct canary_memory *memory, uint64_t real, uint64_t size,
                       CUevent ready, struct canary_place *place);

// The buffer that starts there is free, for of several threads one gets it. False: there is none. In memory that we divide
// up it is looked at still, until its place has another buffer or is none; elsewhere no longer.
bool canary_store_withdraw(uint64_t pointer, struct canary_place *place);
// A withdrawn place in the driver's memory, just before that is given back: from then on its addresses may be another
// buffer's. False: no memory to do so. canary_store_show undoes it.
bool canary_store_hide(const struct canary_place *place);
void canary_store_show(const struct canary_place *place);
// A withdrawn place, or one that was never published, is free; what the driver gave is the caller's to give back. In a slab
// of many it is given out again when a scan beyond this one has looked at it.
void canary_store_give(const struct canary_place *place, uint64_t scan);

// The slab at an address. Inside an epoch section.
struct canary_slab *canary_store_find(uint64_t address);
int canary_store_each(int (*f)(struct index_item *, void *), void *context);  // inside an epoch section
size_t canary_store_slabs(void);

// Slabs without buffers that a scan has looked at are space again, but for one of each kind.
void canary_store_tidy(struct context *ctx);
// Gives empty regions of the current context back to the driver beyond `keep` bytes; how many bytes. No scan may be
// under way.
uint64_t canary_store_trim(struct context *ctx, uint64_t keep);
// Bytes of regions that have no slab, or none but these.
uint64_t canary_store_spare(struct context *ctx, const struct canary_extent *but, unsigned n);
// Bytes in all that canaries and rounding take, now.
uint64_t canary_store_extra(void);

// A context and its memory are gone. No scan may be under way.
void canary_store_context_gone(struct context *ctx, CUcontext context);
void canary_store_after_fork(void);

// Whether what canary_slab.h and canary_suballoc.h say holds of all that the context has, and
//
//   of each stride, in units: live == buffers in slabs of ours; made == slots of open slabs
//   empty == open slabs without a buffer
//
// It holds whenever the store's lock is free. Only the tests call it: it walks over everything.
bool canary_store_valid(const struct context *ctx);

#endif
