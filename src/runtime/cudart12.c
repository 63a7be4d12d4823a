// SPDX-License-Identifier: MIT
// Functions that CUDA 12's libcudart has and CUDA 13's has not, or has with other parameters. libcudart.so.12
// is the runtime with these functions under their names without the prefix; they replace those of the runtime
// with the same names. The names are those of CUDA 12's headers: NAME_v2 is what 13 calls NAME.
#include "runtime/cudart12.h"

#include <string.h>

#include "runtime/rt.h"

// --- devices -----------------------------------------------------------------------------------------------

_Static_assert(sizeof(struct cudart12_prop) == 1032, "as CUDA 12's headers have it");

static cudaError_t attribute(int *value, CUdevice_attribute which, int device)
{
    return cudaDeviceGetAttribute(value, which, device);
}

// Fills in the fields that 13 no longer has.
static cudaError_t fill_old(struct cudart12_prop *to, int device)
{
    const struct {
        int *value;
        CUdevice_attribute which;
    } rows[] = {
        {&to->clockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
        {&to->deviceOverlap, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP},
        {&to->kernelExecTimeoutEnabled, CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT},
        {&to->computeMode, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE},
        {&to->maxTexture1DLinear, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH},
        {&to->memoryClockRate, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE},
        {&to->singleToDoublePrecisionPerfRatio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO},
        {&to->cooperativeMultiDeviceLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        RT_TRY(attribute(rows[k].value, rows[k].which, device));
    return cudaSuccess;
}

cudaError_t cudart12_cudaGetDeviceProperties_v2(struct cudart12_prop *to, int device)
{
    cudaDeviceProp from;
    RT_REQUIRE(to);
    RT_TRY(cudaGetDeviceProperties(&from, device));
    memset(to, 0, sizeof *to);
    // Some fields are arrays; both structures have the same.
#define FIELD(name) memcpy(&to->name, &from.name, sizeof to->name);
#include "runtime/cudart12_fields.def"
#undef FIELD
    return fill_old(to, device);
}

cudaError_t cudart12_cudaGetDeviceProperties(struct cudart12_prop *to, int device)
{
    return cudart12_cudaGetDeviceProperties_v2(to, device);
}

cudaError_t cudart12_cudaChooseDevice(int *device, const struct cudart12_prop *wish)
{
    cudaDeviceProp converted = {0};
    RT_REQUIRE(wish);
#define FIELD(name) memcpy(&converted.name, &wish->name, sizeof converted.name);
#include "runtime/cudart12_fields.def"
#undef FIELD
    return cudaChooseDevice(device, &converted);
}

cudaError_t cudart12_cudaChooseDevice_v2(int *device, const struct cudart12_prop *wish)
{
    return cudart12_cudaChooseDevice(device, wish);
}

// Returns the last version of 12.
cudaError_t cudart12_cudaRuntimeGetVersion(int *version)
{
    RT_TRY(cudaRuntimeGetVersion(version));
    *version = CUDART12_VERSION;
    return cudaSuccess;
}

// --- structures that have grown ----------------------------------------------------------------------------

_Static_assert(sizeof(struct cudart12_pointer) == 24, "as CUDA 12's headers have it");
_Static_assert(sizeof(struct cudart12_resource) == 64, "as CUDA 12's headers have it");
_Static_assert(sizeof(struct cudart12_view) == 48, "as CUDA 12's headers have it");

// A caller that was built for CUDA 12 has room for the old structure only, and nothing behind it counts.
#define SHORTENED(to, type, call)           \
    do {                                    \
        type found;                         \
        RT_REQUIRE(to);                     \
        RT_TRY(call);                       \
        memcpy((to), &found, sizeof *(to)); \
        return cudaSuccess;                 \
    } while (0)

static const cudaResourceDesc *lengthened(cudaResourceDesc *to, const struct cudart12_resource *from)
{
    if (!from)
        return NULL;
    memset(to, 0, sizeof *to);
    memcpy(to, from, sizeof *from);
    return to;
}

cudaError_t cudart12_cudaPointerGetAttributes(struct cudart12_pointer *to, const void *pointer)
{
    SHORTENED(to, cudaPointerAttributes, cudaPointerGetAttributes(&found, pointer));
}

cudaError_t cudart12_cudaCreateTextureObject(cudaTextureObject_t *texture,
                                             const struct cudart12_resource *resource,
                                             const cudaTextureDesc *desc, const struct cudart12_view *view)
{
    cudaResourceDesc full;
    cudaResourceViewDesc full_view = {0};
    if (view)
        memcpy(&full_view, view, sizeof *view);
    return cudaCreateTextureObject(texture, lengthened(&full, resource), desc, view ? &full_view : NULL);
}

cudaError_t cudart12_cudaCreateSurfaceObject(cudaSurfaceObject_t *surface,
                                             const struct cudart12_resource *resource)
{
    cudaResourceDesc full;
    return cudaCreateSurfaceObject(surface, lengthened(&full, resource));
}

cudaError_t cudart12_cudaGetTextureObjectResourceDesc(struct cudart12_resource *to,
                                                      cudaTextureObject_t texture)
{
    SHORTENED(to, cudaResourceDesc, cudaGetTextureObjectResourceDesc(&found, texture));
}

cudaError_t cudart12_cudaGetSurfaceObjectResourceDesc(struct cudart12_resource *to,
                                                      cudaSurfaceObject_t surface)
{
    SHORTENED(to, cudaResourceDesc, cudaGetSurfaceObjectResourceDesc(&found, surface));
}

cudaError_t cudart12_cudaGetTextureObjectResourceViewDesc(struct cudart12_view *to,
                                                          cudaTextureObject_t texture)
{
    SHORTENED(to, cudaResourceViewDesc, cudaGetTextureObjectResourceViewDesc(&found, texture));
}

// --- names from before contexts belonged to devices --------------------------------------------------------

cudaError_t cudart12_cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

cudaError_t cudart12_cudaThreadExit(void)
{
    return cudaDeviceReset();
}

cudaError_t cudart12_cudaThreadGetLimit(size_t *value, cudaLimit limit)
{
    return cudaDeviceGetLimit(value, limit);
}

cudaError_t cudart12_cudaThreadSetLimit(cudaLimit limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

cudaError_t cudart12_cudaThreadGetCacheConfig(cudaFuncCache *config)
{
    return cudaDeviceGetCacheConfig(config);
}

cudaError_t cudart12_cudaThreadSetCacheConfig(cudaFuncCache config)
{
    return cudaDeviceSetCacheConfig(config);
}

// --- managed memory ----------------------------------------------------------------------------------------

// Returns a location; 12 names it by the device's number, or -1 for the host.
static cudaMemLocation place(int device)
{
    if (device == -1)
        return (cudaMemLocation){.type = CU_MEM_LOCATION_TYPE_HOST};
    return (cudaMemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
}

cudaError_t cudart12_cudaMemAdvise(const void *pointer, size_t size, cudaMemoryAdvise advice, int device)
{
    return cudaMemAdvise(pointer, size, advice, place(device));
}

cudaError_t cudart12_cudaMemAdvise_v2(const void *pointer, size_t size, cudaMemoryAdvise advice,
                                      cudaMemLocation where)
{
    return cudaMemAdvise(pointer, size, advice, where);
}

cudaError_t cudart12_cudaMemPrefetchAsync(const void *pointer, size_t size, int device, cudaStream_t stream)
{
    return cudaMemPrefetchAsync(pointer, size, place(device), 0, stream);
}

cudaError_t cudart12_cudaMemPrefetchAsync_ptsz(const void *pointer, size_t size, int device,
                                               cudaStream_t stream)
{
    return cudaMemPrefetchAsync_ptsz(pointer, size, place(device), 0, stream);
}

cudaError_t cudart12_cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation where,
                                             unsigned int flags, cudaStream_t stream)
{
    return cudaMemPrefetchAsync(pointer, size, where, flags, stream);
}

cudaError_t cudart12_cudaMemPrefetchAsync_v2_ptsz(const void *pointer, size_t size, cudaMemLocation where,
                                                  unsigned int flags, cudaStream_t stream)
{
    return cudaMemPrefetchAsync_ptsz(pointer, size, where, flags, stream);
}

// --- events, launches --------------------------------------------------------------------------------------

cudaError_t cudart12_cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}

// Such a launch can have only one device here.
cudaError_t cudart12_cudaLaunchCooperativeKernelMultiDevice(struct cudart12_launch *launches,
                                                            unsigned int count, unsigned int flags)
{
    RT_REQUIRE(launches);
    RT_REQUIRE(count == 1 && flags <= 3);
    return cudaLaunchCooperativeKernel(launches->func, launches->grid, launches->block, launches->args,
                                       launches->shared, launches->stream);
}

// --- graphs ------------------------------------------------------------------------------------------------

cudaError_t cudart12_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                      size_t count, cudaGraphNodeParams *params)
{
    return cudaGraphAddNode(node, graph, before, NULL, count, params);
}

cudaError_t cudart12_cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *before, const cudaGraphEdgeData *edges,
                                         size_t count, cudaGraphNodeParams *params)
{
    return cudaGraphAddNode(node, graph, before, edges, count, params);
}

#define PAIRS(name)                                                                                        \
    cudaError_t cudart12_##name(cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, \
                                size_t count)                                                              \
    {                                                                                                      \
        return name(graph, from, to, NULL, count);                                                         \
    }                                                                                                      \
    cudaError_t cudart12_##name##_v2(cudaGraph_t graph, const cudaGraphNode_t *from,                       \
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,            \
                                     size_t count)                                                         \
    {                                                                                                      \
        return name(graph, from, to, edges, count);                                                        \
    }
PAIRS(cudaGraphAddDependencies)
PAIRS(cudaGraphRemoveDependencies)

cudaError_t cudart12_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                       size_t *count)
{
    return cudaGraphGetEdges(graph, from, to, NULL, count);
}

cudaError_t cudart12_cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                          cudaGraphEdgeData *edges, size_t *count)
{
    return cudaGraphGetEdges(graph, from, to, edges, count);
}

#define NEIGHBOURS(name)                                                                      \
    cudaError_t cudart12_##name(cudaGraphNode_t node, cudaGraphNode_t *others, size_t *count) \
    {                                                                                         \
        return name(node, others, NULL, count);                                               \
    }                                                                                         \
    cudaError_t cudart12_##name##_v2(cudaGraphNode_t node, cudaGraphNode_t *others,           \
                                     cudaGraphEdgeData *edges, size_t *count)                 \
    {                                                                                         \
        return name(node, others, edges, count);                                              \
    }
NEIGHBOURS(cudaGraphNodeGetDependencies)
NEIGHBOURS(cudaGraphNodeGetDependentNodes)

// --- capture -----------------------------------------------------------------------------------------------

// With `end`, the variants for both meanings of stream 0.
#define CAPTURE(end)                                                                                         \
    cudaError_t cudart12_cudaStreamGetCaptureInfo##end(cudaStream_t stream, cudaStreamCaptureStatus *status, \
                                                       unsigned long long *id)                               \
    {                                                                                                        \
        return cudaStreamGetCaptureInfo##end(stream, status, id, NULL, NULL, NULL, NULL);                    \
    }                                                                                                        \
    cudaError_t cudart12_cudaStreamGetCaptureInfo_v2##end(                                                   \
        cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,    \
        const cudaGraphNode_t **before, size_t *count)                                                       \
    {                                                                                                        \
        return cudaStreamGetCaptureInfo##end(stream, status, id, graph, before, NULL, count);                \
    }                                                                                                        \
    cudaError_t cudart12_cudaStreamGetCaptureInfo_v3##end(                                                   \
        cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id, cudaGraph_t *graph,    \
        const cudaGraphNode_t **before, const cudaGraphEdgeData **edges, size_t *count)                      \
    {                                                                                                        \
        return cudaStreamGetCaptureInfo##end(stream, status, id, graph, before, edges, count);               \
    }                                                                                                        \
    cudaError_t cudart12_cudaStreamUpdateCaptureDependencies##end(                                           \
        cudaStream_t stream, cudaGraphNode_t *before, size_t count, unsigned int flags)                      \
    {                                                                                                        \
        return cudaStreamUpdateCaptureDependencies##end(stream, before, NULL, count, flags);                 \
    }                                                                                                        \
    cudaError_t cudart12_cudaStreamUpdateCaptureDependencies_v2##end(                                        \
        cudaStream_t stream, cudaGraphNode_t *before, const cudaGraphEdgeData *edges, size_t count,          \
        unsigned int flags)                                                                                  \
    {                                                                                                        \
        return cudaStreamUpdateCaptureDependencies##end(stream, before, edges, count, flags);                \
    }
CAPTURE()
CAPTURE(_ptsz)
