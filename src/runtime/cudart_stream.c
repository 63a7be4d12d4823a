// SPDX-License-Identifier: MIT
//
// Streams and events.
#include "base/mem.h"
#include "runtime/rt.h"

RT_THIN(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate, stream, 0)
RT_THIN(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags), cuStreamCreate, stream, flags)
RT_THIN(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
        cuStreamCreateWithPriority, stream, flags, priority)
RT_THIN(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy_v2, stream)
RT_THIN(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize, stream)
RT_THIN(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery, stream)
RT_THIN(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags), cuStreamWaitEvent,
        stream, event, flags)
RT_THIN(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), cuStreamGetFlags, stream, flags)
RT_THIN(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), cuStreamGetId, stream, id)
RT_THIN(cudaStreamGetPriority, (cudaStream_t stream, int *priority), cuStreamGetPriority, stream, priority)
RT_THIN(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from), cuStreamCopyAttributes, to, from)
RT_THIN(cudaStreamGetAttribute,
        (cudaStream_t stream, cudaLaunchAttributeID attribute, cudaLaunchAttributeValue *value),
        cuStreamGetAttribute, stream, attribute, value)
RT_THIN(cudaStreamSetAttribute,
        (cudaStream_t stream, cudaLaunchAttributeID attribute, const cudaLaunchAttributeValue *value),
        cuStreamSetAttribute, stream, attribute, value)

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    CUdevice found;

    RT_ENTER();
    RT_REQUIRE(device);
    RT_TRY(rt_error(RT_RAW(cuStreamGetDevice, stream, &found)));
    for (int i = 0; i < rt_device_count(); i++)
        if (rt_device(i) == found)
            *device = i;
    return cudaSuccess;
}

// A length of 0 is the whole allocation.
RT_THIN(cudaStreamAttachMemAsync, (cudaStream_t stream, void *pointer, size_t length, unsigned int flags),
        cuStreamAttachMemAsync, stream, rt_ptr(pointer), length, flags)

struct callback {
    cudaStreamCallback_t function;
    void *data;
};

static void call_back(CUstream stream, CUresult result, void *data)
{
    struct callback callback = *(struct callback *)data;

    mem_free(data);
    callback.function(stream, rt_error(result), callback.data);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function, void *data,
                                  unsigned int flags)
{
    struct callback *callback;
    CUresult result;

    RT_ENTER();
    RT_REQUIRE(function);
    callback = mem_alloc(sizeof *callback);  // freed by call_back
    if (!callback)
        return rt_return(cudaErrorMemoryAllocation);
    *callback = (struct callback){function, data};
    result = RT_RAW(cuStreamAddCallback, stream, call_back, callback, flags);
    if (result)
        mem_free(callback);
    return rt_return(rt_error(result));
}

RT_THIN(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode), cuStreamBeginCapture_v2,
        stream, mode)
RT_THIN(cudaStreamBeginCaptureToGraph,
        (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
         const cudaGraphEdgeData *edges, size_t count, cudaStreamCaptureMode mode),
        cuStreamBeginCaptureToGraph, stream, graph, dependencies, edges, count, mode)
RT_THIN(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture, stream, graph)
RT_THIN(cudaStreamIsCapturing, (cudaStream_t stream, cudaStreamCaptureStatus *status), cuStreamIsCapturing,
        stream, status)
RT_THIN(cudaStreamGetCaptureInfo,
        (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,
         const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges, size_t *count),
        cuStreamGetCaptureInfo_v3, stream, status, (cuuint64_t *)id, graph, dependencies, edges, count)
RT_THIN(cudaStreamUpdateCaptureDependencies,
        (cudaStream_t stream, cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges, size_t count,
         unsigned int flags),
        cuStreamUpdateCaptureDependencies_v2, stream, dependencies, edges, count, flags)
RT_THIN(cudaThreadExchangeStreamCaptureMode, (cudaStreamCaptureMode * mode),
        cuThreadExchangeStreamCaptureMode, mode)

RT_THIN(cudaEventCreate, (cudaEvent_t * event), cuEventCreate, event, 0)
RT_THIN(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags), cuEventCreate, event, flags)
RT_THIN(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy_v2, event)
RT_THIN(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord, event, stream)
RT_THIN(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
        cuEventRecordWithFlags, event, stream, flags)
RT_THIN(cudaEventQuery, (cudaEvent_t event), cuEventQuery, event)
RT_THIN(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize, event)

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    RT_ENTER();
    RT_REQUIRE(milliseconds);
    return RT_CALL(cuEventElapsedTime_v2, milliseconds, start, end);
}
