// SPDX-License-Identifier: MIT
//
// Memory and semaphores of other interfaces, mapped graphics resources, the driver's log.
#include "runtime/rt_channel.h"

RT_THIN(cudaImportExternalMemory, (cudaExternalMemory_t * memory, const cudaExternalMemoryHandleDesc *desc),
        cuImportExternalMemory, memory, desc)
RT_THIN(cudaDestroyExternalMemory, (cudaExternalMemory_t memory), cuDestroyExternalMemory, memory)
RT_THIN(cudaExternalMemoryGetMappedBuffer,
        (void **pointer, cudaExternalMemory_t memory, const cudaExternalMemoryBufferDesc *desc),
        cuExternalMemoryGetMappedBuffer, (CUdeviceptr *)pointer, memory, desc)

cudaError_t cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *array,
                                                      cudaExternalMemory_t memory,
                                                      const cudaExternalMemoryMipmappedArrayDesc *desc)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC driver_desc = {0};

    RT_ENTER();
    RT_REQUIRE(desc);
    driver_desc.offset = desc->offset;
    driver_desc.numLevels = desc->numLevels;
    driver_desc.arrayDesc = (CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->extent.width,
                                                      .Height = desc->extent.height,
                                                      .Depth = desc->extent.depth,
                                                      .Flags = desc->flags};
    RT_TRY(rt_channel_to_driver(&desc->formatDesc, &driver_desc.arrayDesc.Format,
                                &driver_desc.arrayDesc.NumChannels));
    return RT_CALL(cuExternalMemoryGetMappedMipmappedArray, array, memory, &driver_desc);
}

RT_THIN(cudaImportExternalSemaphore,
        (cudaExternalSemaphore_t * semaphore, const cudaExternalSemaphoreHandleDesc *desc),
        cuImportExternalSemaphore, semaphore, desc)
RT_THIN(cudaDestroyExternalSemaphore, (cudaExternalSemaphore_t semaphore), cuDestroyExternalSemaphore,
        semaphore)
RT_THIN(cudaSignalExternalSemaphoresAsync,
        (const cudaExternalSemaphore_t *semaphores, const cudaExternalSemaphoreSignalParams *params,
         unsigned int count, cudaStream_t stream),
        cuSignalExternalSemaphoresAsync, semaphores, params, count, stream)
RT_THIN(cudaWaitExternalSemaphoresAsync,
        (const cudaExternalSemaphore_t *semaphores, const cudaExternalSemaphoreWaitParams *params,
         unsigned int count, cudaStream_t stream),
        cuWaitExternalSemaphoresAsync, semaphores, params, count, stream)

RT_THIN(cudaGraphicsUnregisterResource, (cudaGraphicsResource_t resource), cuGraphicsUnregisterResource,
        resource)
RT_THIN(cudaGraphicsResourceSetMapFlags, (cudaGraphicsResource_t resource, unsigned int flags),
        cuGraphicsResourceSetMapFlags_v2, resource, flags)
RT_THIN(cudaGraphicsMapResources, (int count, cudaGraphicsResource_t *resources, cudaStream_t stream),
        cuGraphicsMapResources, (unsigned)count, resources, stream)
RT_THIN(cudaGraphicsUnmapResources, (int count, cudaGraphicsResource_t *resources, cudaStream_t stream),
        cuGraphicsUnmapResources, (unsigned)count, resources, stream)
RT_THIN(cudaGraphicsResourceGetMappedPointer, (void **pointer, size_t *size, cudaGraphicsResource_t resource),
        cuGraphicsResourceGetMappedPointer_v2, (CUdeviceptr *)pointer, size, resource)
RT_THIN(cudaGraphicsSubResourceGetMappedArray,
        (cudaArray_t * array, cudaGraphicsResource_t resource, unsigned int index, unsigned int level),
        cuGraphicsSubResourceGetMappedArray, array, resource, index, level)
RT_THIN(cudaGraphicsResourceGetMappedMipmappedArray,
        (cudaMipmappedArray_t * array, cudaGraphicsResource_t resource),
        cuGraphicsResourceGetMappedMipmappedArray, array, resource)

RT_THIN(cudaLogsCurrent, (cudaLogIterator * iterator, unsigned int flags), cuLogsCurrent, iterator, flags)
RT_THIN(cudaLogsDumpToFile, (cudaLogIterator * iterator, const char *path, unsigned int flags),
        cuLogsDumpToFile, iterator, path, flags)
RT_THIN(cudaLogsDumpToMemory, (cudaLogIterator * iterator, char *buffer, size_t *size, unsigned int flags),
        cuLogsDumpToMemory, iterator, buffer, size, flags)
RT_THIN(cudaLogsRegisterCallback, (cudaLogsCallback_t callback, void *data, cudaLogsCallbackHandle *handle),
        cuLogsRegisterCallback, callback, data, handle)
RT_THIN(cudaLogsUnregisterCallback, (cudaLogsCallbackHandle handle), cuLogsUnregisterCallback, handle)
