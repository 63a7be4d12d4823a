// SPDX-License-Identifier: MIT
// Frees of canary mode. The program's own are declared in canary.h; these are of places that were kept. Who frees a buffer
// has withdrawn its place, and from the moment on when memory of the driver's goes nobody reads it.
#ifndef MOAT_CANARY_CANARY_FREE_H
#define MOAT_CANARY_CANARY_FREE_H

#include "canary/canary_scan.h"

// Of a look at a place that no scan of the monitor's has seen since it was freed.
extern const struct canary_occasion canary_free_wanted_again;

// What was kept for a buffer like it goes; its canaries are read before, beside all streams. scanning: the caller keeps scans
// from beginning.
void canary_free_kept(struct context *ctx, const struct canary_place *place, bool scanning);

// Gives back what went while a scan may have read it. The context's context is current, and the caller keeps scans from beginning.
void canary_free_postponed(struct context *ctx);
bool canary_free_any_postponed(const struct context *ctx);
// Whether there was any since the last call: the device may not have it yet.
bool canary_free_gone_aside(struct context *ctx);
void canary_free_context_gone(struct context *ctx);

// Memory without buffers beyond what may be held goes back to the driver. idle: so does what the driver would otherwise wait
// for all that runs for. The caller keeps scans from beginning.
void canary_free_trim(struct context *ctx, bool idle);

#endif
