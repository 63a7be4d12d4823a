// SPDX-License-Identifier: MIT
// Types and functions of CUDA 12's runtime that differ from 13's: see cudart12.c.
#ifndef MOAT_RUNTIME_CUDART12_H
#define MOAT_RUNTIME_CUDART12_H

#include "runtime/cudart_api.h"

enum { CUDART12_VERSION = 12090 };

// cudaDeviceProp of CUDA 12.
struct cudart12_prop {
    char name[256];
    CUuuid uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory,
        computeMode;
    int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear, maxTexture2D[2], maxTexture2DMipmap[2],
        maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap,
        maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3],
        maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,
        unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
        maxThreadsPerMultiProcessor, streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
        hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess,
        concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem,
        cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost, maxBlocksPerMultiProcessor,
        accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported,
        timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers,
        reserved[63];
};

// cudaLaunchParams.
struct cudart12_launch {
    void *func;
    dim3 grid, block;
    void **args;
    size_t shared;
    cudaStream_t stream;
};

// cudaPointerAttributes, cudaResourceDesc and cudaResourceViewDesc: those of CUDA 13 begin so and are larger.
struct cudart12_pointer {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};

struct cudart12_resource {
    cudaResourceType resType;
    unsigned long long res[7];
};

struct cudart12_view {
    int format;
    unsigned long long width, height, depth;
    unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};

// Exported by libcudart.so.12, under other names.
#pragma GCC visibility push(default)
cudaError_t cudart12_cudaRuntimeGetVersion(int *version);
cudaError_t cudart12_cudaGetDeviceProperties_v2(struct cudart12_prop *to, int device);
cudaError_t cudart12_cudaGetDeviceProperties(struct cudart12_prop *to, int device);
cudaError_t cudart12_cudaChooseDevice(int *device, const struct cudart12_prop *wish);
cudaError_t cudart12_cudaChooseDevice_v2(int *device, const struct cudart12_prop *wish);
cudaError_t cudart12_cudaPointerGetAttributes(struct cudart12_pointer *to, const void *pointer);
cudaError_t cudart12_cudaCreateTextureObject(cudaTextureObject_t *texture,
                                             const struct cudart12_resource *resource,
                                             const cudaTextureDesc *desc, const struct cudart12_view *view);
cudaError_t cudart12_cudaCreateSurfaceObject(cudaSurfaceObject_t *surface,
                                             const struct cudart12_resource *resource);
cudaError_t cudart12_cudaGetTextureObjectResourceDesc(struct cudart12_resource *to,
                                                      cudaTextureObject_t texture);
cudaError_t cudart12_cudaGetSurfaceObjectResourceDesc(struct cudart12_resource *to,
                                                      cudaSurfaceObject_t surface);
cudaError_t cudart12_cudaGetTextureObjectResourceViewDesc(struct cudart12_view *to,
                                                          cudaTextureObject_t texture);
cudaError_t cudart12_cudaThreadSynchronize(void);
cudaError_t cudart12_cudaThreadExit(void);
cudaError_t cudart12_cudaThreadGetLimit(size_t *value, cudaLimit limit);
cudaError_t cudart12_cudaThreadSetLimit(cudaLimit limit, size_t value);
cudaError_t cudart12_cudaThreadGetCacheConfig(cudaFuncCache *config);
cudaError_t cudart12_cudaThreadSetCacheConfig(cudaFuncCache config);
cudaError_t cudart12_cudaMemAdvise(const void *pointer, size_t size, cudaMemoryAdvise advice, int device);
cudaError_t cudart12_cudaMemAdvise_v2(const void *pointer, size_t size, cudaMemoryAdvise advice,
                                      cudaMemLocation where);
cudaError_t cudart12_cudaMemPrefetchAsync(const void *pointer, size_t size, int device, cudaStream_t stream);
cudaError_t cudart12_cudaMemPrefetchAsync_ptsz(const void *pointer, size_t size, int device,
                                               cudaStream_t stream);
cudaError_t cudart12_cudaMemPrefetchAsync_v2(const void *pointer, size_t size, cudaMemLocation where,
                                             unsigned int flags, cudaStream_t stream);
cudaError_t cudart12_cudaMemPrefetchAsync_v2_ptsz(const void *pointer, size_t size, cudaMemLocation where,
                                                  unsigned int flags, cudaStream_t stream);
cudaError_t cudart12_cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudart12_cudaLaunchCooperativeKernelMultiDevice(struct cudart12_launch *launches,
                                                            unsigned int count, unsigned int flags);
cudaError_t cudart12_cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *before,
                                      size_t count, cudaGraphNodeParams *params);
cudaError_t cudart12_cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                         const cudaGraphNode_t *before, const cudaGraphEdgeData *edges,
                                         size_t count, cudaGraphNodeParams *params);
cudaError_t cudart12_cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                              const cudaGraphNode_t *to, size_t count);
cudaError_t cudart12_cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                 const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                                 size_t count);
cudaError_t cudart12_cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                 const cudaGraphNode_t *to, size_t count);
cudaError_t cudart12_cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                                    const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                                    size_t count);
cudaError_t cudart12_cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                       size_t *count);
cudaError_t cudart12_cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                          cudaGraphEdgeData *edges, size_t *count);
cudaError_t cudart12_cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *others,
                                                  size_t *count);
cudaError_t cudart12_cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *others,
                                                     cudaGraphEdgeData *edges, size_t *count);
cudaError_t cudart12_cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *others,
                                                    size_t *count);
cudaError_t cudart12_cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *others,
                                                       cudaGraphEdgeData *edges, size_t *count);
cudaError_t cudart12_cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                              unsigned long long *id);
cudaError_t cudart12_cudaStreamGetCaptureInfo_v2(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                 unsigned long long *id, cudaGraph_t *graph,
                                                 const cudaGraphNode_t **before, size_t *count);
cudaError_t cudart12_cudaStreamGetCaptureInfo_v3(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                 unsigned long long *id, cudaGraph_t *graph,
                                                 const cudaGraphNode_t **before,
                                                 const cudaGraphEdgeData **edges, size_t *count);
cudaError_t cudart12_cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *before,
                                                         size_t count, unsigned int flags);
cudaError_t cudart12_cudaStreamUpdateCaptureDependencies_v2(cudaStream_t stream, cudaGraphNode_t *before,
                                                            const cudaGraphEdgeData *edges, size_t count,
                                                            unsigned int flags);
cudaError_t cudart12_cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                   unsigned long long *id);
cudaError_t cudart12_cudaStreamGetCaptureInfo_v2_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                      unsigned long long *id, cudaGraph_t *graph,
                                                      const cudaGraphNode_t **before, size_t *count);
cudaError_t cudart12_cudaStreamGetCaptureInfo_v3_ptsz(cudaStream_t stream, cudaStreamCaptureStatus *status,
                                                      unsigned long long *id, cudaGraph_t *graph,
                                                      const cudaGraphNode_t **before,
                                                      const cudaGraphEdgeData **edges, size_t *count);
cudaError_t cudart12_cudaStreamUpdateCaptureDependencies_ptsz(cudaStream_t stream, cudaGraphNode_t *before,
                                                              size_t count, unsigned int flags);
cudaError_t cudart12_cudaStreamUpdateCaptureDependencies_v2_ptsz(cudaStream_t stream, cudaGraphNode_t *before,
                                                                 const cudaGraphEdgeData *edges, size_t count,
                                                                 unsigned int flags);
#pragma GCC visibility pop

#endif
