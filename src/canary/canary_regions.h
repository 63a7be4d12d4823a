// SPDX-License-Identifier: MIT
// The regions that canary mode divides up: device memory from cuMemAlloc, and which addresses are such, for whoever asks.
// Which ranges of them are taken is canary_space's to know.
#ifndef MOAT_CANARY_CANARY_REGIONS_H
#define MOAT_CANARY_CANARY_REGIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"

// A region of the current context, which is the context's, for several ranges of so many bytes, or for one if the driver has
// not more. elastic: a range may be smaller, and a region too, but of 2 MiB. total: bytes in the context's regions so far.
// 0, or -ENOMEM.
int canary_regions_get(const struct context *ctx, uint64_t need, bool elastic, uint64_t total, uint64_t *base,
                       uint64_t *bytes);
void canary_regions_give(uint64_t base);  // back to the driver; its context is current

// Memory that came otherwise counts as a region too. 0, or -ENOMEM.
int canary_regions_claim(const struct context *ctx, uint64_t base, uint64_t bytes, bool mapped);
void canary_regions_forget(uint64_t base);  // it is no more

// Inside an epoch section: whether it was mapped, and whose it is.
bool canary_regions_is_mapped(uint64_t address, CUcontext *context);
bool canary_regions_owns(uint64_t address);  // whether there is a slab or not. Inside an epoch section

void canary_regions_context_gone(CUcontext context);  // and its memory
void canary_regions_after_fork(void);

#endif
