// SPDX-License-Identifier: MIT
//
// Scalars, handles and constants of the driver API (CUDA 13.0).
#ifndef MOAT_DRIVER_CUDA_TYPES_H
#define MOAT_DRIVER_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

// A macro, because programs test it with #if.
#define CUDA_VERSION 13000

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef int CUdevice_v1, CUdevice;
typedef unsigned int CUdeviceptr_v1;
typedef unsigned long long CUdeviceptr_v2, CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle_v1, CUmemGenericAllocationHandle;
typedef unsigned long long CUsurfObject_v1, CUsurfObject;
typedef unsigned long long CUtexObject_v1, CUtexObject;
typedef cuuint64_t CUgraphConditionalHandle;
typedef unsigned int CUlogIterator;

// The tags are part of the interface: the runtime API names the same structures.
#define HANDLE(name, tag) typedef struct tag *name
HANDLE(CUarray, CUarray_st);
HANDLE(CUasyncCallbackHandle, CUasyncCallbackEntry_st);
HANDLE(CUcontext, CUctx_st);
HANDLE(CUdevResourceDesc, CUdevResourceDesc_st);
HANDLE(CUeglStreamConnection, CUeglStreamConnection_st);
HANDLE(CUevent, CUevent_st);
HANDLE(CUexternalMemory, CUextMemory_st);
HANDLE(CUexternalSemaphore, CUextSemaphore_st);
HANDLE(CUfunction, CUfunc_st);
HANDLE(CUgraph, CUgraph_st);
HANDLE(CUgraphDeviceNode, CUgraphDeviceUpdatableNode_st);
HANDLE(CUgraphExec, CUgraphExec_st);
HANDLE(CUgraphNode, CUgraphNode_st);
HANDLE(CUgraphicsResource, CUgraphicsResource_st);
HANDLE(CUgreenCtx, CUgreenCtx_st);
HANDLE(CUkernel, CUkern_st);
HANDLE(CUlibrary, CUlib_st);
HANDLE(CUlinkState, CUlinkState_st);
HANDLE(CUlogsCallbackHandle, CUlogsCallbackEntry_st);
HANDLE(CUmemoryPool, CUmemPoolHandle_st);
HANDLE(CUmipmappedArray, CUmipmappedArray_st);
HANDLE(CUmodule, CUmod_st);
HANDLE(CUstream, CUstream_st);
HANDLE(CUsurfref, CUsurfref_st);
HANDLE(CUtexref, CUtexref_st);
HANDLE(CUuserObject, CUuserObject_st);
#undef HANDLE

typedef void (*CUhostFn)(void *);
typedef size_t (*CUoccupancyB2DSize)(int);

#define CU_STREAM_LEGACY ((CUstream)1)
#define CU_STREAM_PER_THREAD ((CUstream)2)

#define CU_DEVICE_CPU ((CUdevice)-1)
#define CU_DEVICE_INVALID ((CUdevice)-2)

#define CU_LAUNCH_PARAM_END ((void *)CU_LAUNCH_PARAM_END_AS_INT)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT)
#define CU_LAUNCH_PARAM_BUFFER_SIZE ((void *)CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT)

#define CUDA_EGL_INFINITE_TIMEOUT 0xffffffffu

// Sizes in structures.
enum {
    CU_IPC_HANDLE_SIZE = 64,
    CU_TENSOR_MAP_NUM_QWORDS = 16,
    RESOURCE_ABI_VERSION = 1,
    RESOURCE_ABI_EXTERNAL_BYTES = 48,
};

// Host memory, physical memory and pools.
enum {
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2,
    CU_MEMHOSTALLOC_WRITECOMBINED = 4,
    CU_MEMHOSTREGISTER_PORTABLE = 1,
    CU_MEMHOSTREGISTER_DEVICEMAP = 2,
    CU_MEMHOSTREGISTER_IOMEMORY = 4,
    CU_MEMHOSTREGISTER_READ_ONLY = 8,
    CU_MEM_CREATE_USAGE_TILE_POOL = 1,
    CU_MEM_CREATE_USAGE_HW_DECOMPRESS = 2,
    CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS = 2,
    CUDA_EXTERNAL_MEMORY_DEDICATED = 1,
};

// Arrays and texture references.
enum {
    CUDA_ARRAY3D_LAYERED = 1,
    CUDA_ARRAY3D_2DARRAY = 1,
    CUDA_ARRAY3D_SURFACE_LDST = 2,
    CUDA_ARRAY3D_CUBEMAP = 4,
    CUDA_ARRAY3D_TEXTURE_GATHER = 8,
    CUDA_ARRAY3D_DEPTH_TEXTURE = 0x10,
    CUDA_ARRAY3D_COLOR_ATTACHMENT = 0x20,
    CUDA_ARRAY3D_SPARSE = 0x40,
    CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80,
    CUDA_ARRAY3D_VIDEO_ENCODE_DECODE = 0x100,
    CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL = 1,
    CU_TRSA_OVERRIDE_FORMAT = 1,
    CU_TRSF_READ_AS_INTEGER = 1,
    CU_TRSF_NORMALIZED_COORDINATES = 2,
    CU_TRSF_SRGB = 0x10,
    CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION = 0x20,
    CU_TRSF_SEAMLESS_CUBEMAP = 0x40,
    CU_PARAM_TR_DEFAULT = -1,
};

// Launches, graphs, compilation targets, synchronisation with others.
enum {
    CU_LAUNCH_KERNEL_REQUIRED_BLOCK_DIM = 1,
    CU_LAUNCH_PARAM_END_AS_INT = 0,
    CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT = 1,
    CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT = 2,
    CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC = 1,
    CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC = 2,
    CU_GRAPH_COND_ASSIGN_DEFAULT = 1,
    CU_GRAPH_KERNEL_NODE_PORT_DEFAULT = 0,
    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
    CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER = 2,
    CU_COMPUTE_ACCELERATED_TARGET_BASE = 0x10000,
    CU_COMPUTE_FAMILY_TARGET_BASE = 0x20000,
    CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC = 1,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC = 2,
    CUDA_NVSCISYNC_ATTR_SIGNAL = 1,
    CUDA_NVSCISYNC_ATTR_WAIT = 2,
};

#endif
