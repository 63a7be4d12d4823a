// SPDX-License-Identifier: MIT
#include "runtime/rt_launch.h"

#include "runtime/rt_registry.h"

// cuLaunchKernel accepts a kernel in the place of a function.
cudaError_t rt_launch_kernel(CUkernel kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             CUstream stream)
{
    if (!kernel)
        return rt_return(rt_registry_failure());
    if (shared > UINT32_MAX)
        return rt_return(cudaErrorInvalidValue);
    return RT_CALL(cuLaunchKernel, (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                   (unsigned)shared, stream, args, NULL);
}

void rt_launch_config(CUlaunchConfig *to, const cudaLaunchConfig_t *from)
{
    *to = (CUlaunchConfig){
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = from->dynamicSmemBytes > UINT32_MAX ? UINT32_MAX : (unsigned)from->dynamicSmemBytes,
        .hStream = from->stream,
        .attrs = from->attrs,
        .numAttrs = from->numAttrs,
    };
}

cudaError_t cudaLaunchKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
    CUkernel kernel;

    RT_ENTER();
    RT_TRY(rt_registry_kernel(func, &kernel));
    return rt_launch_kernel(kernel, grid, block, args, shared, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    CUlaunchConfig driver_config;
    CUkernel kernel;

    RT_ENTER();
    RT_REQUIRE(config);
    RT_TRY(rt_registry_kernel(func, &kernel));
    rt_launch_config(&driver_config, config);
    return RT_CALL(cuLaunchKernelEx, &driver_config, (CUfunction)kernel, args, NULL);
}

cudaError_t cudaLaunchCooperativeKernel(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                                        cudaStream_t stream)
{
    CUkernel kernel;

    RT_ENTER();
    RT_TRY(rt_registry_kernel(func, &kernel));
    RT_REQUIRE(shared <= UINT32_MAX);
    return RT_CALL(cuLaunchCooperativeKernel, (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y,
                   block.z, (unsigned)shared, stream, args);
}

RT_THIN(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), cuLaunchHostFunc,
        stream, function, data)
