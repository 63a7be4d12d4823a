// SPDX-License-Identifier: MIT
// Lets the blocks of a cooperative launch wait for each other. nvcc takes two seconds over the header of
// cooperative groups, most of them for the host, where nothing of it is needed.
#pragma once

#ifdef __CUDA_ARCH__
#include <cooperative_groups.h>
#endif

static __device__ __forceinline__ void grid_sync(void)
{
#ifdef __CUDA_ARCH__
    cooperative_groups::this_grid().sync();
#endif
}
