// SPDX-License-Identifier: MIT
// Types of the CUDA runtime API (CUDA 13.0). A type of the runtime with the layout and the values of the
// driver's is the driver's type under another name: such a value is passed on unchanged. Not to be mixed with
// cuda_runtime_api.h in one file.
#ifndef MOAT_RUNTIME_CUDART_TYPES_H
#define MOAT_RUNTIME_CUDART_TYPES_H

#include <stddef.h>

#include "driver/cuda_api.h"

// clang-format off

typedef enum {
#define ERROR(name, value, text) name = value,
#include "driver/cudart_errors.def"
} cudaError_t;

// Handles.

typedef CUarray cudaArray_t;
typedef const struct CUarray_st *cudaArray_const_t;
typedef CUmipmappedArray cudaMipmappedArray_t;
typedef const struct CUmipmappedArray_st *cudaMipmappedArray_const_t;
typedef CUasyncCallbackHandle cudaAsyncCallbackHandle_t;
typedef CUeglStreamConnection cudaEglStreamConnection;
typedef CUevent cudaEvent_t;
typedef CUexternalMemory cudaExternalMemory_t;
typedef CUexternalSemaphore cudaExternalSemaphore_t;
typedef CUfunction cudaFunction_t;
typedef CUgraph cudaGraph_t;
typedef CUgraphConditionalHandle cudaGraphConditionalHandle;
typedef CUgraphExec cudaGraphExec_t;
typedef CUgraphNode cudaGraphNode_t;
typedef CUgraphicsResource cudaGraphicsResource_t;
typedef struct CUgraphicsResource_st cudaGraphicsResource;
typedef CUkernel cudaKernel_t;
typedef CUlibrary cudaLibrary_t;
typedef CUlogIterator cudaLogIterator;
typedef CUlogsCallbackHandle cudaLogsCallbackHandle;
typedef CUmemoryPool cudaMemPool_t;
typedef CUstream cudaStream_t;
typedef CUsurfObject cudaSurfaceObject_t;
typedef CUtexObject cudaTextureObject_t;
typedef CUuserObject cudaUserObject_t;

// Enumerations whose values are the driver's.

typedef CUaddress_mode cudaTextureAddressMode;
typedef CUatomicOperation cudaAtomicOperation;
typedef CUdevice_P2PAttribute cudaDeviceP2PAttr;
typedef CUdevice_attribute cudaDeviceAttr;
typedef CUdriverProcAddressQueryResult cudaDriverEntryPointQueryResult;
typedef CUfilter_mode cudaTextureFilterMode;
typedef CUflushGPUDirectRDMAWritesScope cudaFlushGPUDirectRDMAWritesScope;
typedef CUflushGPUDirectRDMAWritesTarget cudaFlushGPUDirectRDMAWritesTarget;
typedef CUfunc_cache cudaFuncCache;
typedef CUfunction_attribute cudaFuncAttribute;
typedef CUgraphMem_attribute cudaGraphMemAttributeType;
typedef CUgraphNodeType cudaGraphNodeType;
typedef CUjit_option cudaJitOption;
typedef CUlaunchAttributeID cudaLaunchAttributeID;
typedef CUlibraryOption cudaLibraryOption;
typedef CUlimit cudaLimit;
typedef CUlogLevel cudaLogLevel;
typedef CUmemAccess_flags cudaMemAccessFlags;
typedef CUmemAllocationHandleType cudaMemAllocationHandleType;
typedef CUmemAllocationType cudaMemAllocationType;
typedef CUmemPool_attribute cudaMemPoolAttr;
typedef CUmem_advise cudaMemoryAdvise;
typedef CUmem_range_attribute cudaMemRangeAttribute;
typedef CUresourceViewFormat cudaResourceViewFormat;
typedef CUresourcetype cudaResourceType;
typedef CUsharedconfig cudaSharedMemConfig;
typedef CUstreamCaptureMode cudaStreamCaptureMode;
typedef CUstreamCaptureStatus cudaStreamCaptureStatus;

// Structures whose layout is the driver's.

typedef CUDA_ARRAY_MEMORY_REQUIREMENTS cudaArrayMemoryRequirements;
typedef CUDA_ARRAY_SPARSE_PROPERTIES cudaArraySparseProperties;
typedef CUasyncNotificationInfo cudaAsyncNotificationInfo_t;
typedef CUDA_CHILD_GRAPH_NODE_PARAMS cudaChildGraphNodeParams;
typedef CUDA_EVENT_RECORD_NODE_PARAMS cudaEventRecordNodeParams;
typedef CUDA_EVENT_WAIT_NODE_PARAMS cudaEventWaitNodeParams;
typedef CUDA_EXTERNAL_MEMORY_BUFFER_DESC cudaExternalMemoryBufferDesc;
typedef CUDA_EXTERNAL_MEMORY_HANDLE_DESC cudaExternalMemoryHandleDesc;
typedef CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC cudaExternalSemaphoreHandleDesc;
typedef CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS cudaExternalSemaphoreSignalParams;
typedef CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS cudaExternalSemaphoreWaitParams;
typedef CUDA_EXT_SEM_SIGNAL_NODE_PARAMS cudaExternalSemaphoreSignalNodeParams;
typedef CUDA_EXT_SEM_WAIT_NODE_PARAMS cudaExternalSemaphoreWaitNodeParams;
typedef CUgraphEdgeData cudaGraphEdgeData;
typedef CUgraphExecUpdateResultInfo cudaGraphExecUpdateResultInfo;
typedef CUDA_GRAPH_INSTANTIATE_PARAMS cudaGraphInstantiateParams;
typedef CUDA_HOST_NODE_PARAMS cudaHostNodeParams;
typedef CUipcEventHandle cudaIpcEventHandle_t;
typedef CUipcMemHandle cudaIpcMemHandle_t;
typedef CUlaunchAttribute cudaLaunchAttribute;
typedef CUlaunchAttributeValue cudaLaunchAttributeValue;
typedef CUmemAccessDesc cudaMemAccessDesc;
typedef CUDA_MEM_ALLOC_NODE_PARAMS cudaMemAllocNodeParams;
typedef CUDA_MEM_FREE_NODE_PARAMS cudaMemFreeNodeParams;
typedef CUmemLocation cudaMemLocation;
typedef CUmemPoolProps cudaMemPoolProps;
typedef CUmemPoolPtrExportData cudaMemPoolPtrExportData;
typedef CUmemcpyAttributes cudaMemcpyAttributes;
typedef CUDA_MEMCPY3D_BATCH_OP cudaMemcpy3DBatchOp;
typedef CUDA_MEMSET_NODE_PARAMS cudaMemsetParams;
typedef CUDA_RESOURCE_VIEW_DESC cudaResourceViewDesc;
typedef CUuuid cudaUUID_t;

typedef CUasyncCallback cudaAsyncCallback;
typedef CUhostFn cudaHostFn_t;
typedef CUlogsCallback cudaLogsCallback_t;
typedef void (*cudaStreamCallback_t)(cudaStream_t, cudaError_t, void *);

// Types that only the runtime has.

typedef struct { unsigned int x, y, z; } dim3, uint3;

typedef enum {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4,
} cudaMemcpyKind;

typedef enum {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3,
} cudaMemoryType;

typedef enum {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2,
    cudaChannelFormatKindNone = 3,
    cudaChannelFormatKindNV12 = 4,
    cudaChannelFormatKindUnsignedNormalized8X1 = 5,
    cudaChannelFormatKindUnsignedNormalized8X2 = 6,
    cudaChannelFormatKindUnsignedNormalized8X4 = 7,
    cudaChannelFormatKindUnsignedNormalized16X1 = 8,
    cudaChannelFormatKindUnsignedNormalized16X2 = 9,
    cudaChannelFormatKindUnsignedNormalized16X4 = 10,
    cudaChannelFormatKindSignedNormalized8X1 = 11,
    cudaChannelFormatKindSignedNormalized8X2 = 12,
    cudaChannelFormatKindSignedNormalized8X4 = 13,
    cudaChannelFormatKindSignedNormalized16X1 = 14,
    cudaChannelFormatKindSignedNormalized16X2 = 15,
    cudaChannelFormatKindSignedNormalized16X4 = 16,
    cudaChannelFormatKindUnsignedBlockCompressed1 = 17,
    cudaChannelFormatKindUnsignedBlockCompressed1SRGB = 18,
    cudaChannelFormatKindUnsignedBlockCompressed2 = 19,
    cudaChannelFormatKindUnsignedBlockCompressed2SRGB = 20,
    cudaChannelFormatKindUnsignedBlockCompressed3 = 21,
    cudaChannelFormatKindUnsignedBlockCompressed3SRGB = 22,
    cudaChannelFormatKindUnsignedBlockCompressed4 = 23,
    cudaChannelFormatKindSignedBlockCompressed4 = 24,
    cudaChannelFormatKindUnsignedBlockCompressed5 = 25,
    cudaChannelFormatKindSignedBlockCompressed5 = 26,
    cudaChannelFormatKindUnsignedBlockCompressed6H = 27,
    cudaChannelFormatKindSignedBlockCompressed6H = 28,
    cudaChannelFormatKindUnsignedBlockCompressed7 = 29,
    cudaChannelFormatKindUnsignedBlockCompressed7SRGB = 30,
    cudaChannelFormatKindUnsignedNormalized1010102 = 31,
} cudaChannelFormatKind;

typedef enum { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 } cudaTextureReadMode;

enum {
    cudaEnableLegacyStream = 1,
    cudaEnablePerThreadDefaultStream = 2,
    cudaInitDeviceFlagsAreValid = 1,
    cudaIpcMemLazyEnablePeerAccess = 1,
    cudaCpuDeviceId = -1,
    cudaInvalidDeviceId = -2,
    CUDART_VERSION = 13000,
};

typedef struct { int x, y, z, w; cudaChannelFormatKind f; } cudaChannelFormatDesc;

typedef struct { void *ptr; size_t pitch, xsize, ysize; } cudaPitchedPtr;

typedef struct { size_t width, height, depth; } cudaExtent;

typedef struct { size_t x, y, z; } cudaPos;

typedef struct {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    cudaExtent extent;
    cudaMemcpyKind kind;
} cudaMemcpy3DParms;

typedef struct {
    cudaArray_t srcArray;
    cudaPos srcPos;
    cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    cudaPos dstPos;
    cudaPitchedPtr dstPtr;
    int dstDevice;
    cudaExtent extent;
} cudaMemcpy3DPeerParms;

typedef struct {
    cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
    long reserved[8];
} cudaPointerAttributes;

typedef struct {
    size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
    int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA, maxDynamicSharedSizeBytes,
        preferredShmemCarveout, clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight,
        requiredClusterDepth, clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed,
        reserved[16];
} cudaFuncAttributes;

typedef struct {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
} cudaLaunchConfig_t;

typedef struct {
    void *func;
    dim3 gridDim, blockDim;
    unsigned int sharedMemBytes;
    void **kernelParams, **extra;
} cudaKernelNodeParams;

typedef struct { int flags, reserved[3]; cudaMemcpy3DParms copyParams; } cudaMemcpyNodeParams;

typedef struct {
    cudaGraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    unsigned int size;
    cudaGraph_t *phGraph_out;
} cudaConditionalNodeParams;

typedef struct {
    cudaGraphNodeType type;
    int reserved0[3];
    union {
        long long reserved1[29];
        cudaKernelNodeParams kernel;
        cudaMemcpyNodeParams memcpy;
        cudaMemsetParams memset;
        cudaHostNodeParams host;
        cudaChildGraphNodeParams graph;
        cudaEventWaitNodeParams eventWait;
        cudaEventRecordNodeParams eventRecord;
        cudaExternalSemaphoreSignalNodeParams extSemSignal;
        cudaExternalSemaphoreWaitNodeParams extSemWait;
        cudaMemAllocNodeParams alloc;
        cudaMemFreeNodeParams free;
        cudaConditionalNodeParams conditional;
    };
    long long reserved2;
} cudaGraphNodeParams;

typedef struct {
    cudaResourceType resType;
    union {
        struct { cudaArray_t array; } array;
        struct { cudaMipmappedArray_t mipmap; } mipmap;
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t sizeInBytes; } linear;
        struct { void *devPtr; cudaChannelFormatDesc desc; size_t width, height, pitchInBytes; } pitch2D;
        struct { int reserved[32]; } reserved;
    } res;
    unsigned int flags;
} cudaResourceDesc;

typedef struct {
    cudaTextureAddressMode addressMode[3];
    cudaTextureFilterMode filterMode;
    cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization, seamlessCubemap;
} cudaTextureDesc;

typedef struct {
    unsigned long long offset;
    cudaChannelFormatDesc formatDesc;
    cudaExtent extent;
    unsigned int flags, numLevels, reserved[16];
} cudaExternalMemoryMipmappedArrayDesc;

typedef struct {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int multiProcessorCount, integrated, canMapHostMemory, maxTexture1D, maxTexture1DMipmap, maxTexture2D[2],
        maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2], maxTexture3D[3],
        maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3],
        maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2],
        maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver, asyncEngineCount,
        unifiedAddressing, memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor,
        streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID,
        hostNativeAtomicSupported,
        pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
        canUseHostPointerForRegisteredMem, cooperativeLaunch;
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
        deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
} cudaDeviceProp;

// Graphics: our driver supports none of it, so the contents of these types are never used.

typedef struct cudaEglFrame_st cudaEglFrame;
typedef unsigned int GLuint, GLenum, VdpDevice, VdpOutputSurface, VdpVideoSurface;
typedef int EGLint;
typedef void *EGLImageKHR, *EGLStreamKHR, *EGLSyncKHR;
typedef unsigned int cudaGLDeviceList, cudaEglResourceLocationFlags, cudaGLMapFlags;
typedef unsigned int VdpGetProcAddress(VdpDevice, unsigned int, void **);

#endif
