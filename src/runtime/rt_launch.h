// SPDX-License-Identifier: MIT
#ifndef MOAT_RUNTIME_RT_LAUNCH_H
#define MOAT_RUNTIME_RT_LAUNCH_H

#include "runtime/rt.h"

// After rt_enter. A NULL kernel is one that could not be had earlier.
cudaError_t rt_launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             CUstream stream);

// The driver's configuration that says the same.
void rt_launch_config(CUlaunchConfig *to, const cudaLaunchConfig_t *from);

#endif
