// SPDX-License-Identifier: MIT
//
// Memory that is not an array: allocation, pools, host memory, advice, sharing.
#include "runtime/rt.h"

// Nothing is allocated for a size of 0. Freeing NULL is left to the driver: it is no error, but the common
// way to query the context's error.

cudaError_t cudaMalloc(void **pointer, size_t size)
{
    RT_ENTER();
    RT_REQUIRE(pointer);
    *pointer = NULL;
    return size ? RT_CALL(cuMemAlloc_v2, (CUdeviceptr *)pointer, size) : cudaSuccess;
}

RT_THIN(cudaFree, (void *pointer), cuMemFree_v2, rt_ptr(pointer))

cudaError_t cudaMallocManaged(void **pointer, size_t size, unsigned int flags)
{
    RT_ENTER();
    RT_REQUIRE(pointer);
    *pointer = NULL;
    return size ? RT_CALL(cuMemAllocManaged, (CUdeviceptr *)pointer, size, flags) : cudaSuccess;
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    RT_ENTER();
    RT_REQUIRE(pointer);
    *pointer = NULL;
    return size ? RT_CALL(cuMemHostAlloc, pointer, size, flags) : cudaSuccess;
}

cudaError_t cudaMallocHost(void **pointer, size_t size)
{
    return cudaHostAlloc(pointer, size, 0);
}

RT_THIN(cudaFreeHost, (void *pointer), cuMemFreeHost, pointer)

// The pitch must suit every element size.
enum { PITCH_ELEMENT = 4 };

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    RT_ENTER();
    RT_REQUIRE(pointer && pitch);
    *pointer = NULL;
    *pitch = 0;
    if (!width || !height)
        return cudaSuccess;
    return RT_CALL(cuMemAllocPitch_v2, (CUdeviceptr *)pointer, pitch, width, height, PITCH_ELEMENT);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr *pitched, cudaExtent extent)
{
    size_t rows;

    RT_REQUIRE(pitched && !__builtin_mul_overflow(extent.height, extent.depth, &rows));
    *pitched = (cudaPitchedPtr){.xsize = extent.width, .ysize = extent.height};
    return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, rows);
}

RT_THIN(cudaMemGetInfo, (size_t * unused, size_t *total), cuMemGetInfo_v2, unused, total)

RT_THIN(cudaHostRegister, (void *pointer, size_t size, unsigned int flags), cuMemHostRegister_v2, pointer,
        size, flags)
RT_THIN(cudaHostUnregister, (void *pointer), cuMemHostUnregister, pointer)
RT_THIN(cudaHostGetFlags, (unsigned int *flags, void *pointer), cuMemHostGetFlags, flags, pointer)
RT_THIN(cudaHostGetDevicePointer, (void **device, void *host, unsigned int flags),
        cuMemHostGetDevicePointer_v2, (CUdeviceptr *)device, host, flags)

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer)
{
    CUmemorytype type = 0;
    CUdeviceptr device = 0;
    void *host = NULL;
    unsigned managed = 0;
    int ordinal = cudaInvalidDeviceId;
    CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                   CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &device, &host, &managed, &ordinal};

    RT_ENTER();
    RT_REQUIRE(attributes);
    *attributes = (cudaPointerAttributes){.type = cudaMemoryTypeUnregistered, .device = cudaInvalidDeviceId};
    RT_TRY(rt_error(
        RT_RAW(cuPointerGetAttributes, sizeof names / sizeof *names, names, values, rt_ptr(pointer))));
    if (!type) {
        attributes->hostPointer = (void *)(uintptr_t)pointer;
        return cudaSuccess;
    }
    attributes->type = managed                      ? cudaMemoryTypeManaged
                       : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                                    : cudaMemoryTypeDevice;
    attributes->device = ordinal;
    attributes->devicePointer = rt_host(device);
    attributes->hostPointer = host;
    return cudaSuccess;
}

RT_THIN(cudaMemAdvise, (const void *pointer, size_t size, cudaMemoryAdvise advice, cudaMemLocation location),
        cuMemAdvise_v2, rt_ptr(pointer), size, advice, location)
RT_THIN(cudaMemPrefetchAsync,
        (const void *pointer, size_t size, cudaMemLocation location, unsigned int flags, cudaStream_t stream),
        cuMemPrefetchAsync_v2, rt_ptr(pointer), size, location, flags, stream)
RT_THIN(cudaMemPrefetchBatchAsync,
        (void **pointers, size_t *sizes, size_t count, cudaMemLocation *locations, size_t *indices,
         size_t location_count, unsigned long long flags, cudaStream_t stream),
        cuMemPrefetchBatchAsync, (CUdeviceptr *)pointers, sizes, count, locations, indices, location_count,
        flags, stream)
RT_THIN(cudaMemDiscardBatchAsync,
        (void **pointers, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream),
        cuMemDiscardBatchAsync, (CUdeviceptr *)pointers, sizes, count, flags, stream)
RT_THIN(cudaMemDiscardAndPrefetchBatchAsync,
        (void **pointers, size_t *sizes, size_t count, cudaMemLocation *locations, size_t *indices,
         size_t location_count, unsigned long long flags, cudaStream_t stream),
        cuMemDiscardAndPrefetchBatchAsync, (CUdeviceptr *)pointers, sizes, count, locations, indices,
        location_count, flags, stream)
RT_THIN(cudaMemRangeGetAttribute,
        (void *data, size_t data_size, cudaMemRangeAttribute attribute, const void *pointer, size_t size),
        cuMemRangeGetAttribute, data, data_size, attribute, rt_ptr(pointer), size)
RT_THIN(cudaMemRangeGetAttributes,
        (void **data, size_t *data_sizes, cudaMemRangeAttribute *attributes, size_t count,
         const void *pointer, size_t size),
        cuMemRangeGetAttributes, data, data_sizes, attributes, count, rt_ptr(pointer), size)

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
    RT_ENTER();
    RT_REQUIRE(pointer);
    *pointer = NULL;
    return size ? RT_CALL(cuMemAllocAsync, (CUdeviceptr *)pointer, size, stream) : cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
    RT_ENTER();
    RT_REQUIRE(pointer);
    *pointer = NULL;
    return size ? RT_CALL(cuMemAllocFromPoolAsync, (CUdeviceptr *)pointer, size, pool, stream) : cudaSuccess;
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
    RT_ENTER();
    return pointer ? RT_CALL(cuMemFreeAsync, rt_ptr(pointer), stream) : cudaSuccess;
}

RT_THIN(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps *props), cuMemPoolCreate, pool,
        props)
RT_THIN(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy, pool)
RT_THIN(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), cuMemPoolTrimTo, pool, keep)
RT_THIN(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),
        cuMemPoolGetAttribute, pool, attribute, value)
RT_THIN(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void *value),
        cuMemPoolSetAttribute, pool, attribute, value)
RT_THIN(cudaMemPoolGetAccess, (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation *location),
        cuMemPoolGetAccess, flags, pool, location)
RT_THIN(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc *list, size_t count),
        cuMemPoolSetAccess, pool, list, count)
RT_THIN(cudaMemPoolExportToShareableHandle,
        (void *handle, cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned int flags),
        cuMemPoolExportToShareableHandle, handle, pool, type, flags)
RT_THIN(cudaMemPoolImportFromShareableHandle,
        (cudaMemPool_t * pool, void *handle, cudaMemAllocationHandleType type, unsigned int flags),
        cuMemPoolImportFromShareableHandle, pool, handle, type, flags)
RT_THIN(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData * data, void *pointer), cuMemPoolExportPointer,
        data, rt_ptr(pointer))
RT_THIN(cudaMemPoolImportPointer, (void **pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData *data),
        cuMemPoolImportPointer, (CUdeviceptr *)pointer, pool, data)
RT_THIN(cudaMemGetDefaultMemPool,
        (cudaMemPool_t * pool, cudaMemLocation *location, cudaMemAllocationType type), cuMemGetDefaultMemPool,
        pool, location, type)
RT_THIN(cudaMemGetMemPool, (cudaMemPool_t * pool, cudaMemLocation *location, cudaMemAllocationType type),
        cuMemGetMemPool, pool, location, type)
RT_THIN(cudaMemSetMemPool, (cudaMemLocation * location, cudaMemAllocationType type, cudaMemPool_t pool),
        cuMemSetMemPool, location, type, pool)

RT_THIN(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *pointer), cuIpcGetMemHandle, handle,
        rt_ptr(pointer))
RT_THIN(cudaIpcOpenMemHandle, (void **pointer, cudaIpcMemHandle_t handle, unsigned int flags),
        cuIpcOpenMemHandle_v2, (CUdeviceptr *)pointer, handle, flags)
RT_THIN(cudaIpcCloseMemHandle, (void *pointer), cuIpcCloseMemHandle, rt_ptr(pointer))
RT_THIN(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event), cuIpcGetEventHandle,
        handle, event)
RT_THIN(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle), cuIpcOpenEventHandle,
        event, handle)
