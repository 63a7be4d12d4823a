// SPDX-License-Identifier: MIT
// Reads the canaries of a context's buffers by copies on a stream of our own, and passes them to
// canary_verify.h. The copy engine does the reading: a GPU whose multiprocessors are full is watched too, and
// none of our code runs on them.
#ifndef MOAT_CANARY_CANARY_SCAN_H
#define MOAT_CANARY_CANARY_SCAN_H

#include "canary/canary_verify.h"
#include "canary/canary_store.h"

// Returns the number of the last scan that has begun. A buffer whose canaries are in place before this call
// is seen by the next scan.
uint64_t canary_scan_number(void);

// This many kernels, counted in launch order, are known to have ended. Relaxed: only reports use it.
extern _Atomic uint64_t canary_scan_ended;

// Copy calls that scans have made so far; a batched copy counts as several. Relaxed: for the monitor's pace.
extern _Atomic uint64_t canary_scan_calls;

// Scans all buffers of a context, which must be current. managed: also managed memory, which may migrate it
// to the host. whole: every byte of every canary, not only those next to the buffer where there are many. One
// scan at a time in a process. Returns the driver's error; the context may then be in error for good.
CUresult canary_scan_context(struct context *ctx, bool managed, bool whole,
                             const struct canary_occasion *occasion);

// Scans one slab, under the same rules.
CUresult canary_scan_slab(struct context *ctx, struct canary_slab *slab,
                          const struct canary_occasion *occasion);

// Verifies one withdrawn buffer, whose context is current.
CUresult canary_scan_place(struct context *ctx, const struct canary_place *place,
                           const struct canary_occasion *occasion);

#endif
