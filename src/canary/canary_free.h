// SPDX-License-Identifier: MIT
// Frees of canary mode. The program's own frees are declared in canary.h; these free places that were kept.
// Whoever frees a buffer has withdrawn its place, and nobody reads memory of the driver's once it is being
// returned.
#ifndef MOAT_CANARY_CANARY_FREE_H
#define MOAT_CANARY_CANARY_FREE_H

#include "canary/canary_scan.h"

// The occasion of verifying a place that no scan of the monitor has seen since it was freed.
extern const struct canary_occasion canary_free_on_reuse;

// Frees a place that was kept for reuse. A suballocated one is verified first, if no scan has done so. Pool
// memory is returned on the side stream, behind the copies that read its canaries. scanning: the caller holds
// the scan lock.
void canary_free_cached(struct context *ctx, const struct canary_place *place, bool scanning);

// Frees the places whose free was postponed because a scan may have been reading them. Requires ctx to be
// current and the scan lock to be held.
void canary_free_postponed(struct context *ctx);
bool canary_free_any_postponed(const struct context *ctx);
// Returns whether canary_free_postponed has freed anything since the last call; the device may not have it
// back yet.
bool canary_free_any_freed(struct context *ctx);
void canary_free_context_gone(struct context *ctx);

// Returns memory without buffers, beyond what may be kept, to the driver: mapped pieces, and if `idle`
// regions too, whose cuMemFree waits for all running work. Requires the scan lock to be held.
void canary_free_trim(struct context *ctx, bool idle);

#endif
