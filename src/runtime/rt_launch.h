// SPDX-License-Identifier: MIT
#ifndef MOAT_RUNTIME_RT_LAUNCH_H
#define MOAT_RUNTIME_RT_LAUNCH_H

#include "runtime/rt.h"

// rt_enter must have been called. A NULL kernel is one whose lookup failed before.
cudaError_t rt_launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             CUstream stream);

// Converts a configuration to the driver's.
void rt_launch_config(CUlaunchConfig *to, const cudaLaunchConfig_t *from);

#endif
