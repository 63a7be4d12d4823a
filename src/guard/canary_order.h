// SPDX-License-Identifier: MIT
// Buffers that are freed in the order of a stream: their canaries are read in that order just before, and looked at when
// the stream has come so far.
#ifndef MOAT_GUARD_CANARY_ORDER_H
#define MOAT_GUARD_CANARY_ORDER_H

#include "guard/canary_scan.h"

// Enqueues the reading. The place is withdrawn and still the caller's. Otherwise the driver's error, and nothing was
// enqueued that matters.
CUresult canary_order_read(const struct canary_place *place, CUstream stream, bool per_thread,
                           enum driver_id call);

// Looks at what has been read. The home's context is current; one thread at a time.
void canary_order_settle(struct home *home);

void canary_order_context_gone(struct home *home);
void canary_order_after_fork(void);

#endif
