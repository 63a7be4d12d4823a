// SPDX-License-Identifier: MIT
// Kernels, libraries of kernels, and how many blocks of a kernel fit on a device.
#include "runtime/rt_launch.h"
#include "runtime/rt_registry.h"

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
    RT_ENTER();
    RT_REQUIRE(kernel);
    *kernel = NULL;
    return rt_return(rt_registry_kernel(func, kernel));
}

// Finds the kernel's function in the current context; loads it.
static cudaError_t function_of(const void *func, CUkernel *kernel, CUfunction *function)
{
    cudaError_t error = rt_registry_kernel(func, kernel);
    return error ? error : rt_error(RT_RAW(cuKernelGetFunction, function, *kernel));
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *func)
{
    CUkernel kernel;

    RT_ENTER();
    RT_REQUIRE(function);
    return rt_return(function_of(func, &kernel, function));
}

struct func_field {
    size_t offset;
    bool wide;  // a size_t, not an int
    CUfunction_attribute attribute;
};

#define WIDE(field, attribute)                                                   \
    {                                                                            \
        offsetof(cudaFuncAttributes, field), true, CU_FUNC_ATTRIBUTE_##attribute \
    }
#define FIELD(field, attribute)                                                   \
    {                                                                             \
        offsetof(cudaFuncAttributes, field), false, CU_FUNC_ATTRIBUTE_##attribute \
    }

static const struct func_field func_fields[] = {
    WIDE(sharedSizeBytes, SHARED_SIZE_BYTES),
    WIDE(constSizeBytes, CONST_SIZE_BYTES),
    WIDE(localSizeBytes, LOCAL_SIZE_BYTES),
    FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    FIELD(numRegs, NUM_REGS),
    FIELD(ptxVersion, PTX_VERSION),
    FIELD(binaryVersion, BINARY_VERSION),
    FIELD(cacheModeCA, CACHE_MODE_CA),
    FIELD(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES),
    FIELD(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT),
    FIELD(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET),
    FIELD(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH),
    FIELD(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT),
    FIELD(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH),
    FIELD(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE),
    FIELD(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
};

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *func)
{
    CUkernel kernel;
    CUfunction function;
    CUdevice device;

    RT_ENTER();
    RT_REQUIRE(attributes);
    RT_TRY(function_of(func, &kernel, &function));
    RT_TRY(rt_current_device(NULL, &device));
    *attributes = (cudaFuncAttributes){0};
    for (size_t i = 0; i < sizeof func_fields / sizeof *func_fields; i++) {
        char *field = (char *)attributes + func_fields[i].offset;
        int value = 0;

        RT_TRY(rt_error(RT_RAW(cuKernelGetAttribute, &value, func_fields[i].attribute, kernel, device)));
        if (func_fields[i].wide)
            *(size_t *)field = (size_t)value;
        else
            *(int *)field = value;
    }
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *func, cudaFuncAttribute attribute, int value)
{
    CUkernel kernel;
    CUfunction function;
    CUdevice device;

    RT_ENTER();
    RT_TRY(function_of(func, &kernel, &function));
    RT_TRY(rt_current_device(NULL, &device));
    return RT_CALL(cuKernelSetAttribute, attribute, value, kernel, device);
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                            int device)
{
    RT_TRY(rt_check_device(device));
    RT_ENTER();
    return RT_CALL(cuKernelSetAttribute, attribute, value, kernel, rt_device(device));
}

cudaError_t cudaFuncSetCacheConfig(const void *func, cudaFuncCache config)
{
    CUkernel kernel;
    CUfunction function;
    CUdevice device;

    RT_ENTER();
    RT_TRY(function_of(func, &kernel, &function));
    RT_TRY(rt_current_device(NULL, &device));
    return RT_CALL(cuKernelSetCacheConfig, kernel, config, device);
}

cudaError_t cudaFuncSetSharedMemConfig(const void *func, cudaSharedMemConfig config)
{
    CUkernel kernel;
    CUfunction function;

    RT_ENTER();
    RT_TRY(function_of(func, &kernel, &function));
    return RT_CALL(cuFuncSetSharedMemConfig, function, config);
}

cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    CUkernel kernel;

    RT_ENTER();
    RT_REQUIRE(name);
    RT_TRY(rt_registry_kernel(func, &kernel));
    return RT_CALL(cuKernelGetName, name, kernel);
}

cudaError_t cudaFuncGetParamInfo(const void *func, size_t index, size_t *offset, size_t *size)
{
    CUkernel kernel;

    RT_ENTER();
    RT_TRY(rt_registry_kernel(func, &kernel));
    return RT_CALL(cuKernelGetParamInfo, kernel, index, offset, size);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
                                                                   int block_size, size_t shared,
                                                                   unsigned int flags)
{
    CUkernel kernel;
    CUfunction function;

    RT_ENTER();
    RT_TRY(function_of(func, &kernel, &function));
    return RT_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, function, block_size, shared,
                   flags);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func, int block_size,
                                                          size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block_size, shared, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *func, int blocks,
                                                      int block_size)
{
    CUkernel kernel;
    CUfunction function;

    RT_ENTER();
    RT_TRY(function_of(func, &kernel, &function));
    return RT_CALL(cuOccupancyAvailableDynamicSMemPerBlock, size, function, blocks, block_size);
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
                                                 const cudaLaunchConfig_t *config)
{
    CUlaunchConfig driver_config;
    CUkernel kernel;
    CUfunction function;

    RT_ENTER();
    RT_REQUIRE(config);
    RT_TRY(function_of(func, &kernel, &function));
    rt_launch_config(&driver_config, config);
    return RT_CALL(cuOccupancyMaxPotentialClusterSize, size, function, &driver_config);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *func, const cudaLaunchConfig_t *config)
{
    CUlaunchConfig driver_config;
    CUkernel kernel;
    CUfunction function;

    RT_ENTER();
    RT_REQUIRE(config);
    RT_TRY(function_of(func, &kernel, &function));
    rt_launch_config(&driver_config, config);
    return RT_CALL(cuOccupancyMaxActiveClusters, clusters, function, &driver_config);
}

RT_THIN(cudaLibraryLoadData,
        (cudaLibrary_t * library, const void *image, cudaJitOption *jit, void **jit_values,
         unsigned int jit_count, cudaLibraryOption *options, void **values, unsigned int count),
        cuLibraryLoadData, library, image, jit, jit_values, jit_count, options, values, count)
RT_THIN(cudaLibraryLoadFromFile,
        (cudaLibrary_t * library, const char *file, cudaJitOption *jit, void **jit_values,
         unsigned int jit_count, cudaLibraryOption *options, void **values, unsigned int count),
        cuLibraryLoadFromFile, library, file, jit, jit_values, jit_count, options, values, count)
RT_THIN(cudaLibraryUnload, (cudaLibrary_t library), cuLibraryUnload, library)
RT_THIN(cudaLibraryGetGlobal, (void **pointer, size_t *size, cudaLibrary_t library, const char *name),
        cuLibraryGetGlobal, (CUdeviceptr *)pointer, size, library, name)
RT_THIN(cudaLibraryGetManaged, (void **pointer, size_t *size, cudaLibrary_t library, const char *name),
        cuLibraryGetManaged, (CUdeviceptr *)pointer, size, library, name)
RT_THIN(cudaLibraryGetUnifiedFunction, (void **pointer, cudaLibrary_t library, const char *name),
        cuLibraryGetUnifiedFunction, pointer, library, name)
RT_THIN(cudaLibraryGetKernelCount, (unsigned int *count, cudaLibrary_t library), cuLibraryGetKernelCount,
        count, library)

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    RT_ENTER();
    RT_REQUIRE(kernel);
    RT_TRY(rt_error(RT_RAW(cuLibraryGetKernel, kernel, library, name)));
    rt_registry_know(*kernel);
    return cudaSuccess;
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count, cudaLibrary_t library)
{
    RT_ENTER();
    RT_TRY(rt_error(RT_RAW(cuLibraryEnumerateKernels, kernels, count, library)));
    for (unsigned int i = 0; i < count && kernels; i++)
        if (kernels[i])
            rt_registry_know(kernels[i]);
    return cudaSuccess;
}
