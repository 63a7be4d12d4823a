// SPDX-License-Identifier: MIT
// Buffers of --mode=pages that were freed in stream order. Nothing waits for the stream: a later call finds
// that it has reached the free, and unmaps them.
#ifndef MOAT_PAGES_PAGES_ORDER_H
#define MOAT_PAGES_PAGES_ORDER_H

#include "pages/pages_block.h"

extern _Atomic uint64_t pages_order_waiting;  // blocks

// Takes over a withdrawn block. Otherwise returns the driver's error, and the block remains the caller's.
CUresult pages_order_free(struct pages_block *b, CUstream stream, bool per_thread, enum driver_id call);

// Unmaps the blocks whose streams have reached the free, examining at most `most` blocks. wait: waits for the
// others.
void pages_order_unmap(unsigned most, bool wait);

// Takes over the memory of a waiting block of the same stream, size, context and pool, for an allocation that
// comes later in that stream: *same gets the memory and canaries, and the block keeps only its addresses.
// Returns false if there is none.
bool pages_order_reuse(struct pages_block *same, uint64_t size, const struct context *ctx, CUmemoryPool pool,
                       CUstream stream, bool per_thread);

// Returns whether a buffer that overlaps addresses waits for its stream.
bool pages_order_holds(uint64_t base, uint64_t end);

// Disposes of all blocks of a destroyed context; its events are gone with it.
void pages_order_context_gone(CUcontext context);
void pages_order_after_fork(void);

#endif
