// SPDX-License-Identifier: MIT
//
// Copies in three dimensions, and of arrays in any number of them.
#ifndef MOAT_RUNTIME_RT_COPY3D_H
#define MOAT_RUNTIME_RT_COPY3D_H

#include "runtime/rt_copy.h"

// Convert a copy between the runtime's and the driver's structures.
cudaError_t rt_copy3d_to_driver(CUDA_MEMCPY3D *to, const cudaMemcpy3DParms *from);
cudaError_t rt_copy3d_from_driver(cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *from);

#endif
