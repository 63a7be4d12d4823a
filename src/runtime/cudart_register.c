// SPDX-License-Identifier: MIT
// Functions that compiled host code calls by itself: registration from static constructors, and launches from
// stubs.
#include "runtime/rt_launch.h"
#include "runtime/rt_registry.h"

void **__cudaRegisterFatBinary(void *wrapper)
{
    return (void **)rt_registry_add_module(wrapper);
}

void __cudaRegisterFatBinaryEnd(void **module)
{
}

void __cudaUnregisterFatBinary(void **module)
{
    rt_registry_remove_module((struct rt_registry_module *)module);
}

void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name, int thread_limit,
                            uint3 *thread, uint3 *block, dim3 *block_size, dim3 *grid_size, int *warp_size)
{
    rt_registry_add((struct rt_registry_module *)module, RT_KERNEL, host, name, 0);
}

void __cudaRegisterVar(void **module, char *host, char *device, const char *name, int external, size_t size,
                       int constant, int global)
{
    rt_registry_add((struct rt_registry_module *)module, RT_VARIABLE, host, name, size);
}

void __cudaRegisterManagedVar(void **module, void **host, char *device, const char *name, int external,
                              size_t size, int constant, int global)
{
    rt_registry_add((struct rt_registry_module *)module, RT_MANAGED, host, name, size);
}

// Called before the first use of a managed variable in a file.
char __cudaInitModule(void **module)
{
    cudaError_t error = rt_enter();

    if (!error)
        error = rt_registry_load((struct rt_registry_module *)module);
    return (char)(rt_return(error) == cudaSuccess);
}

unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    struct rt_thread *t = &rt_thread;

    if (t->configs == RT_CONFIGS)
        return rt_return(cudaErrorMissingConfiguration);
    t->config[t->configs++] = (struct rt_config){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    struct rt_thread *t = &rt_thread;
    struct rt_config *config;

    if (!t->configs)
        return rt_return(cudaErrorMissingConfiguration);
    config = &t->config[--t->configs];
    *grid = config->grid;
    *block = config->block;
    *shared = config->shared;
    *(cudaStream_t *)stream = config->stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    return cudaGetKernel(kernel, stub);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                               cudaStream_t stream)
{
    RT_ENTER();
    return rt_launch_kernel(kernel, grid, block, args, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                    cudaStream_t stream)
{
    RT_ENTER();
    return rt_launch_kernel(kernel, grid, block, args, shared, rt_own_stream(stream));
}
