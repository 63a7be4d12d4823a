// SPDX-License-Identifier: MIT
// Device memory from cuMemAlloc in regions, and an index of the addresses that are in regions, mapped memory
// included. canary_suballoc.h keeps track of the ranges in them.
#ifndef MOAT_CANARY_CANARY_REGIONS_H
#define MOAT_CANARY_CANARY_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"

// Allocates a region of ctx, which must be current, for several ranges of `need` bytes, or for one if the
// driver has no more. elastic: a smaller range will do, so the region may be as small as 2 MiB. total: bytes
// in the context's regions so far. Returns 0 or -ENOMEM.
int canary_regions_get(const struct context *ctx, uint64_t need, bool elastic, uint64_t total, uint64_t *base,
                       uint64_t *bytes);
void canary_regions_give(uint64_t base);  // frees it; its context is current

// Enters memory that was allocated elsewhere into the index. What the index has there is removed: it belongs
// to a context that the driver has ended, although canary mode does not know yet. Returns 0 or -ENOMEM.
int canary_regions_add(const struct context *ctx, uint64_t base, uint64_t bytes, bool mapped);
void canary_regions_remove(uint64_t base);  // removes it from the index

// Returns whether the address is in mapped memory; *context is set to its owner, or to NULL if it is in no
// region. Call it in an epoch section.
bool canary_regions_is_mapped(uint64_t address, CUcontext *context);
bool canary_regions_owns(uint64_t address);  // whether it is in any region; in an epoch section

CUcontext canary_regions_context(uint64_t address);  // its owner, NULL: in no region; in an epoch section

void canary_regions_context_gone(CUcontext context);  // removes the regions of a destroyed context
void canary_regions_after_fork(void);

#endif
