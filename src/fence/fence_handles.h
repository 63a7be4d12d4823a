// SPDX-License-Identifier: MIT
// Calls that make and destroy what kernels use by handles: textures, surfaces, tensor maps.
#ifndef MOAT_FENCE_FENCE_HANDLES_H
#define MOAT_FENCE_FENCE_HANDLES_H

#include "mode/mode.h"

// A texture or surface of the current context was made, or will be destroyed.
void fence_handles_object(enum mode_object what, uint64_t handle, bool made);
// Returns whether the current context has the texture or surface.
bool fence_handles_has(enum mode_object what, uint64_t handle);
void fence_handles_tensor(const CUtensorMap *map, const struct mode_tensor *tensor);
// A range outside of the partitions is no longer listed. Requires the lock of fence_host.
void fence_handles_range_ends(uint64_t base);

#endif
