// SPDX-License-Identifier: MIT
// The _ptsz twins of calls that take a stream: for them stream 0 is the calling thread's own. The twins of
// copies and memsets are in rt_copy.c and rt_copy3d.c.
#include "runtime/rt.h"

// The parameters, then the arguments with OWN where the stream goes.
#define TWIN(name, parameters, ...)    \
    cudaError_t name##_ptsz parameters \
    {                                  \
        return name(__VA_ARGS__);      \
    }
#define OWN rt_own_stream(stream)

TWIN(cudaLaunchKernel,
     (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream), func, grid,
     block, args, shared, OWN)
TWIN(cudaLaunchCooperativeKernel,
     (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream), func, grid,
     block, args, shared, OWN)
TWIN(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t function, void *data), OWN, function, data)

TWIN(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), event, OWN)
TWIN(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, OWN,
     flags)

TWIN(cudaStreamSynchronize, (cudaStream_t stream), OWN)
TWIN(cudaStreamQuery, (cudaStream_t stream), OWN)
TWIN(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), OWN, event, flags)
TWIN(cudaStreamAddCallback,
     (cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned int flags), OWN, function,
     data, flags)
TWIN(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t length, unsigned int flags), OWN,
     pointer, length, flags)
TWIN(cudaStreamGetDevice, (cudaStream_t stream, int *device), OWN, device)
TWIN(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), OWN, flags)
TWIN(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), OWN, id)
TWIN(cudaStreamGetPriority, (cudaStream_t stream, int *priority), OWN, priority)
TWIN(cudaStreamCopyAttributes, (cudaStream_t stream, cudaStream_t from), OWN, rt_own_stream(from))
TWIN(cudaStreamGetAttribute,
     (cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *value), OWN, attribute,
     value)
TWIN(cudaStreamSetAttribute,
     (cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue *value), OWN,
     attribute, value)
TWIN(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), OWN, mode)
TWIN(cudaStreamBeginCaptureToGraph,
     (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
      const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode),
     OWN, graph, dependencies, edges, count, mode)
TWIN(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), OWN, graph)
TWIN(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status), OWN, status)
TWIN(cudaStreamGetCaptureInfo,
     (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
      const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
     OWN, status, id, graph, dependencies, edges, count)
TWIN(cudaStreamUpdateCaptureDependencies,
     (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges, size_t count,
      unsigned int flags),
     OWN, dependencies, edges, count, flags)

TWIN(cudaMallocAsync, (void **pointer, size_t size, cudaStream_t stream), pointer, size, OWN)
TWIN(cudaMallocFromPoolAsync, (void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream), pointer,
     size, pool, OWN)
TWIN(cudaFreeAsync, (void *pointer, cudaStream_t stream), pointer, OWN)
TWIN(cudaMemPrefetchAsync,
     (const void *pointer, size_t size, cudaMemLocation location, unsigned int flags, cudaStream_t stream),
     pointer, size, location, flags, OWN)
TWIN(cudaMemPrefetchBatchAsync,
     (void **pointers, size_t *sizes, size_t count, cudaMemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, cudaStream_t stream),
     pointers, sizes, count, locations, indices, location_count, flags, OWN)
TWIN(cudaMemDiscardBatchAsync,
     (void **pointers, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream), pointers,
     sizes, count, flags, OWN)
TWIN(cudaMemDiscardAndPrefetchBatchAsync,
     (void **pointers, size_t *sizes, size_t count, cudaMemLocation *locations, size_t *indices,
      size_t location_count, unsigned long long flags, cudaStream_t stream),
     pointers, sizes, count, locations, indices, location_count, flags, OWN)
TWIN(cudaMemcpyBatchAsync,
     (void *const *dst, const void *const *src, const size_t *sizes, size_t count,
      cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count, cudaStream_t stream),
     dst, src, sizes, count, attributes, indices, attribute_count, OWN)
TWIN(cudaMemcpy3DBatchAsync,
     (size_t count, cudaMemcpy3DBatchOp *operations, unsigned long long flags, cudaStream_t stream), count,
     operations, flags, OWN)

TWIN(cudaGraphLaunch, (cudaGraphExec_t exec, cudaStream_t stream), exec, OWN)
TWIN(cudaGraphUpload, (cudaGraphExec_t exec, cudaStream_t stream), exec, OWN)

TWIN(cudaSignalExternalSemaphoresAsync,
     (const cudaExternalSemaphore_t *semaphores, const cudaExternalSemaphoreSignalParams *params,
      unsigned int count, cudaStream_t stream),
     semaphores, params, count, OWN)
TWIN(cudaWaitExternalSemaphoresAsync,
     (const cudaExternalSemaphore_t *semaphores, const cudaExternalSemaphoreWaitParams *params,
      unsigned int count, cudaStream_t stream),
     semaphores, params, count, OWN)

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *func, void **args)
{
    cudaLaunchConfig_t own;

    RT_REQUIRE(config);
    own = *config;
    own.stream = rt_own_stream(config->stream);
    return cudaLaunchKernelExC(&own, func, args);
}

cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                cudaGraphInstantiateParams *params)
{
    RT_REQUIRE(params);
    params->hUploadStream = rt_own_stream(params->hUploadStream);
    return cudaGraphInstantiateWithParams(exec, graph, params);
}
