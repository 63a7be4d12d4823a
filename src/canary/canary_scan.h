// SPDX-License-Identifier: MIT
// Reads the canaries of a context's buffers, by copies on a stream of our own, and has those that have changed reported
// (canary_verify.h). The copy engine does it: a GPU whose multiprocessors are full is watched too, and nothing of ours runs on
// them.
#ifndef MOAT_CANARY_CANARY_SCAN_H
#define MOAT_CANARY_CANARY_SCAN_H

#include "canary/canary_verify.h"
#include "canary/canary_store.h"

// The number of the last scan that has begun. A buffer whose canaries are in place before it is read is seen by the next.
uint64_t canary_scan_number(void);

// So many kernels, of the first that were launched, are known to have ended. Relaxed: for what reports name.
extern _Atomic uint64_t canary_scan_ended;

// Calls for copies that scans have made, so far; one of many copies counts for several. Relaxed: for the monitor's pace.
extern _Atomic uint64_t canary_scan_calls;

// All buffers of the context, whose context is current. managed: those too, which may move them to the host; whole: every
// byte of every canary, not only those next to the buffer where there are many. One scan at a time in a process. An error is
// the driver's, and the context may be in error for good.
CUresult canary_scan_context(struct context *ctx, bool managed, bool whole,
                             const struct canary_occasion *occasion);

// One slab, as canary_scan_context does.
CUresult canary_scan_slab(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion);

// One buffer that is withdrawn; its context is current.
CUresult canary_scan_place(struct context *ctx, const struct canary_place *place,
                           const struct canary_occasion *occasion);

#endif
