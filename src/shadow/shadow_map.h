// SPDX-License-Identifier: MIT
// The mappings that a shadow is made of (shadow_device.h), for kernels: at `at`, where the shadow is or is
// about to be. Access to them is given by whoever maps them.
#ifndef MOAT_SHADOW_SHADOW_MAP_H
#define MOAT_SHADOW_SHADOW_MAP_H

#include "shadow/shadow_device.h"

CUresult shadow_map(struct shadow_device *d, CUdeviceptr at, uint64_t size,
                    CUmemGenericAllocationHandle handle);
// Maps a handle many times over.
CUresult shadow_map_over(struct shadow_device *d, CUdeviceptr at, uint64_t size, uint64_t unit,
                         CUmemGenericAllocationHandle handle);
CUresult shadow_map_access(CUdevice device, CUdeviceptr at, uint64_t size, CUmemAccess_flags flags);

// Map a part by what is known of it, by its number. A span is noted in next_spans.
CUresult shadow_map_block(struct shadow_device *d, CUdeviceptr at, uint64_t block);
CUresult shadow_map_piece(struct shadow_device *d, CUdeviceptr at, uint64_t piece);
CUresult shadow_map_span(struct shadow_device *d, CUdeviceptr at, uint64_t span);
CUresult shadow_map_pieces(struct shadow_device *d, CUdeviceptr at, uint64_t span);  // of a span

CUresult shadow_map_page(struct shadow_device *d, CUdeviceptr at, uint64_t page);

bool shadow_has_real(const struct shadow_device *d, uint64_t block);  // a page of it is real
// Return whether a page, or a span, describes addresses of --mode=pages only.
bool shadow_owns_page(const struct shadow_device *d, uint64_t page);
bool shadow_owns_span(const struct shadow_device *d, uint64_t span);

#endif
