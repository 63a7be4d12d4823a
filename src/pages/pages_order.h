// SPDX-License-Identifier: MIT
// Buffers of --mode=pages that were freed in the order of a stream. Nothing waits for the stream: a later call finds
// that it has come so far, and unmaps them.
#ifndef MOAT_PAGES_PAGES_ORDER_H
#define MOAT_PAGES_PAGES_ORDER_H

#include "pages/pages_block.h"

extern _Atomic uint64_t pages_order_waiting;  // blocks

// Takes over a withdrawn block, or says why not: then it is still the caller's.
CUresult pages_order_free(struct pages_block *b, CUstream stream, bool per_thread, enum driver_id call);

// Unmaps what can be, looking at no more than `most` blocks. wait: waits for the others.
void pages_order_settle(unsigned most, bool wait);

// A block of the same stream, size and context that waits, to be used again by what comes later in that stream: its
// memory passes to the copy in *same, and the block keeps its addresses only. False: there is none.
bool pages_order_reuse(struct pages_block *same, uint64_t size, const struct context *ctx, CUmemoryPool pool,
                       CUstream stream, bool per_thread);

// A context is gone, and its events with it: all of its blocks are disposed of.
void pages_order_context_gone(CUcontext context);
void pages_order_after_fork(void);

#endif
