// SPDX-License-Identifier: MIT
// Maps memory of --mode=pages at addresses that are not used twice (pages_address.h).
#ifndef MOAT_PAGES_PAGES_MAP_H
#define MOAT_PAGES_PAGES_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "context/context.h"

// Takes `front` and `units` units of addresses and maps the handle of `bytes` bytes behind the first `front`,
// with access for the device and for its peers, a bit each. Returns 0, or -1 with nothing changed.
int pages_map(CUmemGenericAllocationHandle handle, uint64_t bytes, uint32_t front, uint32_t units,
              CUdevice device, uint64_t peers, uint64_t *base);
// Gives peers, a bit each, access to mapped memory. Returns false if the driver refuses.
bool pages_map_open(uint64_t base, uint64_t bytes, CUdevice device, uint64_t peers);
// Unmaps the memory and gives back the addresses. Returns false if the driver refuses; then the context is
// broken, and neither the addresses nor the memory may be used again.
bool pages_unmap(uint64_t base, uint64_t bytes, uint32_t front, uint32_t units);

// Has addresses reserved at multiples of `align` bytes, a power of two. Called once, at the start.
void pages_map_align(uint64_t align);
// Returns the n-th piece that was reserved, and how many bytes of it have been handed out; 0: none or no such
// piece.
uint64_t pages_map_used(unsigned n, uint64_t *base);
enum { PAGES_MAP_PIECES = 32 };  // most that there are
// Returns whether all addresses from base on were reserved for this mode.
bool pages_map_owns(uint64_t base, uint64_t size);

void pages_map_after_fork(void);

#endif
