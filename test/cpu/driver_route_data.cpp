// SPDX-License-Identifier: MIT
// Memory and copies, streams and events, arrays, graphs.
#include "driver_route.h"

// Memory.

static CUresult allocate_3d(cudaPitchedPtr *p, cudaExtent extent)
{
    *p = {nullptr, 0, extent.width, extent.height};
    return cuMemAllocPitch((CUdeviceptr *)&p->ptr, &p->pitch, extent.width, extent.height * extent.depth, 8);
}

MAP(cudaMalloc, (void **p, size_t bytes), cuMemAlloc((CUdeviceptr *)p, bytes))
MAP(cudaFree, (void *p), p ? cuMemFree(route_at(p)) : CUDA_SUCCESS)
MAP(cudaMallocPitch, (void **p, size_t *pitch, size_t width, size_t height),
    cuMemAllocPitch((CUdeviceptr *)p, pitch, width, height, 16))
MAP(cudaMalloc3D, (cudaPitchedPtr * p, cudaExtent extent), allocate_3d(p, extent))
MAP(cudaMallocManaged, (void **p, size_t bytes, unsigned flags),
    cuMemAllocManaged((CUdeviceptr *)p, bytes, flags))
MAP(cudaMallocAsync, (void **p, size_t bytes, cudaStream_t stream),
    cuMemAllocAsync((CUdeviceptr *)p, bytes, stream))
MAP(cudaFreeAsync, (void *p, cudaStream_t stream), cuMemFreeAsync(route_at(p), stream))
MAP(cudaHostAlloc, (void **p, size_t bytes, unsigned flags),
    flags ? cuMemHostAlloc(p, bytes, flags) : cuMemAllocHost(p, bytes))
MAP(cudaFreeHost, (void *p), cuMemFreeHost(p))
MAP(cudaHostRegister, (void *p, size_t bytes, unsigned flags), cuMemHostRegister(p, bytes, flags))
MAP(cudaHostUnregister, (void *p), cuMemHostUnregister(p))
MAP(cudaHostGetDevicePointer, (void **to, void *p, unsigned flags),
    cuMemHostGetDevicePointer((CUdeviceptr *)to, p, flags))

// Copies.

static CUresult copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyHostToDevice && route_way % 2)
        return cuMemcpyHtoD(route_at(to), from, bytes);
    if (kind == cudaMemcpyDeviceToHost && route_way % 2)
        return cuMemcpyDtoH(to, route_at(from), bytes);
    if (kind == cudaMemcpyDeviceToDevice && route_way % 2)
        return cuMemcpyDtoD(route_at(to), route_at(from), bytes);
    return cuMemcpy(route_at(to), route_at(from), bytes);
}

static CUresult copy_async(void *to, const void *from, size_t bytes, cudaMemcpyKind kind, CUstream stream)
{
    if (kind == cudaMemcpyHostToDevice && route_way % 2)
        return cuMemcpyHtoDAsync(route_at(to), from, bytes, stream);
    if (kind == cudaMemcpyDeviceToHost && route_way % 2)
        return cuMemcpyDtoHAsync(to, route_at(from), bytes, stream);
    if (kind == cudaMemcpyDeviceToDevice && route_way % 2)
        return cuMemcpyDtoDAsync(route_at(to), route_at(from), bytes, stream);
    return cuMemcpyAsync(route_at(to), route_at(from), bytes, stream);
}

static CUresult set(CUdeviceptr to, int value, size_t bytes)
{
    unsigned byte = (unsigned)value & 0xff;
    if ((to | bytes) % 4 == 0)
        return cuMemsetD32(to, byte * 0x01010101u, bytes / 4);
    if ((to | bytes) % 2 == 0)
        return cuMemsetD16(to, (unsigned short)(byte * 0x0101u), bytes / 2);
    return cuMemsetD8(to, (unsigned char)byte, bytes);
}

// A pointer whose side follows from the kind, in the fields of a copy's structure.
#define SIDE(c, side, pointer, host_side)                                           \
    do {                                                                            \
        c.side##MemoryType = host_side ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE; \
        if (host_side)                                                              \
            c.side##Host = pointer;                                                 \
        else                                                                        \
            c.side##Device = route_at(pointer);                                     \
    } while (0)
#define FROM_HOST(kind) ((kind) == cudaMemcpyHostToDevice || (kind) == cudaMemcpyHostToHost)
#define TO_HOST(kind) ((kind) == cudaMemcpyDeviceToHost || (kind) == cudaMemcpyHostToHost)

static CUresult copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                        size_t height, cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D c = {};
    SIDE(c, src, from, FROM_HOST(kind));
    SIDE(c, dst, to, TO_HOST(kind));
    c.srcPitch = from_pitch;
    c.dstPitch = to_pitch;
    c.WidthInBytes = width;
    c.Height = height;
    return route_way % 2 ? cuMemcpy2D(&c) : cuMemcpy2DUnaligned(&c);
}

static CUresult copy_3d(const cudaMemcpy3DParms *p)
{
    CUDA_MEMCPY3D c = {};
    if (p->srcArray || p->dstArray)
        return CUDA_ERROR_NOT_SUPPORTED;
    SIDE(c, src, p->srcPtr.ptr, FROM_HOST(p->kind));
    SIDE(c, dst, p->dstPtr.ptr, TO_HOST(p->kind));
    c.srcXInBytes = p->srcPos.x;
    c.srcY = p->srcPos.y;
    c.srcZ = p->srcPos.z;
    c.dstXInBytes = p->dstPos.x;
    c.dstY = p->dstPos.y;
    c.dstZ = p->dstPos.z;
    c.srcPitch = p->srcPtr.pitch;
    c.srcHeight = p->srcPtr.ysize;
    c.dstPitch = p->dstPtr.pitch;
    c.dstHeight = p->dstPtr.ysize;
    c.WidthInBytes = p->extent.width;
    c.Height = p->extent.height;
    c.Depth = p->extent.depth;
    return cuMemcpy3D(&c);
}

static CUresult copy_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset)
{
    CUdeviceptr p;
    size_t size;
    ROUTE_TRY(route_variable(symbol, &p, &size));
    return offset + bytes > size ? CUDA_ERROR_INVALID_VALUE : cuMemcpyHtoD(p + offset, from, bytes);
}

static CUresult copy_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset)
{
    CUdeviceptr p;
    size_t size;
    ROUTE_TRY(route_variable(symbol, &p, &size));
    return offset + bytes > size ? CUDA_ERROR_INVALID_VALUE : cuMemcpyDtoH(to, p + offset, bytes);
}

MAP(cudaMemcpy, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind), copy(to, from, bytes, kind))
MAP(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream),
    copy_async(to, from, bytes, kind, stream))
MAP(cudaMemcpy2D,
    (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
     cudaMemcpyKind kind),
    copy_2d(to, to_pitch, from, from_pitch, width, height, kind))
MAP(cudaMemcpy3D, (const cudaMemcpy3DParms *parameters), copy_3d(parameters))
MAP(cudaMemset, (void *to, int value, size_t bytes), set(route_at(to), value, bytes))
MAP(cudaMemsetAsync, (void *to, int value, size_t bytes, cudaStream_t stream),
    cuMemsetD8Async(route_at(to), (unsigned char)value, bytes, stream))
MAP(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset, cudaMemcpyKind),
    copy_to_symbol(symbol, from, bytes, offset))
MAP(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t bytes, size_t offset, cudaMemcpyKind),
    copy_from_symbol(to, symbol, bytes, offset))
MAP(cudaGetSymbolAddress, (void **p, const void *symbol), route_variable(symbol, (CUdeviceptr *)p, nullptr))
MAP(cudaGetSymbolSize, (size_t * size, const void *symbol), route_variable(symbol, nullptr, size))

// Streams and events.

MAP(cudaStreamCreate, (cudaStream_t * stream), cuStreamCreate(stream, CU_STREAM_DEFAULT))
MAP(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags), cuStreamCreate(stream, flags))
MAP(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
MAP(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
MAP(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
    cuStreamWaitEvent(stream, event, flags))
MAP(cudaEventCreate, (cudaEvent_t * event), cuEventCreate(event, CU_EVENT_DEFAULT))
MAP(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags), cuEventCreate(event, flags))
MAP(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
MAP(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
MAP(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
MAP(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime(ms, start, end))

// Arrays, textures and surfaces: of two dimensions, as the suite has them.

extern "C" cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind)
{
    return {x, y, z, w, kind};
}

static CUarray_format format_of(const cudaChannelFormatDesc &f)
{
    static const CUarray_format whole[2][3] = {
        {CU_AD_FORMAT_SIGNED_INT8, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_SIGNED_INT32},
        {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32}};
    if (f.f == cudaChannelFormatKindFloat)
        return f.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    return whole[f.f == cudaChannelFormatKindUnsigned][f.x / 16];
}

static unsigned channels_of(const cudaChannelFormatDesc &f)
{
    return 1u + !!f.y + !!f.z + !!f.w;
}

static CUresult create_array(cudaArray_t *array, const cudaChannelFormatDesc &f, size_t width, size_t height,
                             unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {width, height, 0, format_of(f), channels_of(f), flags};
    return cuArray3DCreate((CUarray *)array, &d);
}

static CUresult copy_array(cudaArray_const_t array, size_t x, size_t y, const void *from, void *to,
                           size_t pitch, size_t width, size_t height)
{
    CUDA_MEMCPY2D c = {};
    if (from) {
        SIDE(c, src, from, true);
        c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    } else {
        SIDE(c, dst, to, true);
        c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    }
    (from ? c.dstArray : c.srcArray) = (CUarray)array;
    (from ? c.dstXInBytes : c.srcXInBytes) = x;
    (from ? c.dstY : c.srcY) = y;
    (from ? c.srcPitch : c.dstPitch) = pitch;
    c.WidthInBytes = width;
    c.Height = height;
    return cuMemcpy2D(&c);
}

static CUDA_RESOURCE_DESC resource_of(const cudaResourceDesc *r)
{
    CUDA_RESOURCE_DESC d = {};
    d.resType = (CUresourcetype)r->resType;
    if (r->resType == cudaResourceTypeArray) {
        d.res.array.hArray = (CUarray)r->res.array.array;
    } else {
        d.res.linear.devPtr = route_at(r->res.linear.devPtr);
        d.res.linear.format = format_of(r->res.linear.desc);
        d.res.linear.numChannels = channels_of(r->res.linear.desc);
        d.res.linear.sizeInBytes = r->res.linear.sizeInBytes;
    }
    return d;
}

static CUresult create_texture(cudaTextureObject_t *texture, const cudaResourceDesc *r,
                               const cudaTextureDesc *t)
{
    CUDA_RESOURCE_DESC resource = resource_of(r);
    CUDA_TEXTURE_DESC d = {};
    for (int i = 0; i < 3; i++)
        d.addressMode[i] = (CUaddress_mode)t->addressMode[i];
    d.filterMode = (CUfilter_mode)t->filterMode;
    d.flags = (t->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
              (t->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u);
    return cuTexObjectCreate(texture, &resource, &d, nullptr);
}

static CUresult create_surface(cudaSurfaceObject_t *surface, const cudaResourceDesc *r)
{
    CUDA_RESOURCE_DESC resource = resource_of(r);
    return cuSurfObjectCreate(surface, &resource);
}

MAP(cudaMallocArray,
    (cudaArray_t * array, const cudaChannelFormatDesc *format, size_t width, size_t height, unsigned flags),
    create_array(array, *format, width, height, flags))
MAP(cudaFreeArray, (cudaArray_t array), cuArrayDestroy((CUarray)array))
MAP(cudaMemcpy2DToArray,
    (cudaArray_t array, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
     cudaMemcpyKind),
    copy_array(array, x, y, from, nullptr, pitch, width, height))
MAP(cudaMemcpy2DFromArray,
    (void *to, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width, size_t height,
     cudaMemcpyKind),
    copy_array(array, x, y, nullptr, to, pitch, width, height))
MAP(cudaCreateTextureObject,
    (cudaTextureObject_t * texture, const cudaResourceDesc *resource, const cudaTextureDesc *description,
     const cudaResourceViewDesc *),
    create_texture(texture, resource, description))
MAP(cudaDestroyTextureObject, (cudaTextureObject_t texture), cuTexObjectDestroy(texture))
MAP(cudaCreateSurfaceObject, (cudaSurfaceObject_t * surface, const cudaResourceDesc *resource),
    create_surface(surface, resource))
MAP(cudaDestroySurfaceObject, (cudaSurfaceObject_t surface), cuSurfObjectDestroy(surface))

// Graphs.

static CUresult kernel_node(CUDA_KERNEL_NODE_PARAMS *d, const cudaKernelNodeParams *p)
{
    *d = {};
    ROUTE_TRY(route_kernel(p->func, &d->func));
    d->gridDimX = p->gridDim.x;
    d->gridDimY = p->gridDim.y;
    d->gridDimZ = p->gridDim.z;
    d->blockDimX = p->blockDim.x;
    d->blockDimY = p->blockDim.y;
    d->blockDimZ = p->blockDim.z;
    d->sharedMemBytes = p->sharedMemBytes;
    d->kernelParams = p->kernelParams;
    return CUDA_SUCCESS;
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                           const cudaKernelNodeParams *p)
{
    CUDA_KERNEL_NODE_PARAMS d;
    ROUTE_TRY(kernel_node(&d, p));
    return cuGraphAddKernelNode(node, graph, after, count, &d);
}

static CUresult change_kernel(CUgraphExec executable, CUgraphNode node, const cudaKernelNodeParams *p)
{
    CUDA_KERNEL_NODE_PARAMS d;
    ROUTE_TRY(kernel_node(&d, p));
    return cuGraphExecKernelNodeSetParams(executable, node, &d);
}

static CUresult add_memset(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                           const cudaMemsetParams *p)
{
    CUDA_MEMSET_NODE_PARAMS d = {route_at(p->dst), p->pitch, p->value, p->elementSize, p->width, p->height};
    return cuGraphAddMemsetNode(node, graph, after, count, &d, route_context);
}

static CUresult add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, void *to,
                         const void *from, size_t bytes, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D c = {};
    SIDE(c, src, from, FROM_HOST(kind));
    SIDE(c, dst, to, TO_HOST(kind));
    c.srcPitch = c.dstPitch = c.WidthInBytes = bytes;
    c.srcHeight = c.dstHeight = c.Height = c.Depth = 1;
    return cuGraphAddMemcpyNode(node, graph, after, count, &c, route_context);
}

static CUresult add_host(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                         const cudaHostNodeParams *p)
{
    CUDA_HOST_NODE_PARAMS d = {p->fn, p->userData};
    return cuGraphAddHostNode(node, graph, after, count, &d);
}

#define NODE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count

MAP(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), cuGraphCreate(graph, flags))
MAP(cudaGraphDestroy, (cudaGraph_t graph), cuGraphDestroy(graph))
MAP(cudaGraphAddKernelNode, (NODE, const cudaKernelNodeParams *p), add_kernel(node, graph, after, count, p))
MAP(cudaGraphAddMemsetNode, (NODE, const cudaMemsetParams *p), add_memset(node, graph, after, count, p))
MAP(cudaGraphAddMemcpyNode1D, (NODE, void *to, const void *from, size_t bytes, cudaMemcpyKind kind),
    add_copy(node, graph, after, count, to, from, bytes, kind))
MAP(cudaGraphAddHostNode, (NODE, const cudaHostNodeParams *p), add_host(node, graph, after, count, p))
MAP(cudaGraphExecKernelNodeSetParams,
    (cudaGraphExec_t executable, cudaGraphNode_t node, const cudaKernelNodeParams *p),
    change_kernel(executable, node, p))
MAP(cudaGraphInstantiate, (cudaGraphExec_t * executable, cudaGraph_t graph, unsigned long long flags),
    cuGraphInstantiateWithFlags(executable, graph, flags))
MAP(cudaGraphExecDestroy, (cudaGraphExec_t executable), cuGraphExecDestroy(executable))
MAP(cudaGraphLaunch, (cudaGraphExec_t executable, cudaStream_t stream), cuGraphLaunch(executable, stream))
MAP(cudaStreamBeginCapture, (cudaStream_t stream, cudaStreamCaptureMode mode),
    cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode))
MAP(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph), cuStreamEndCapture(stream, graph))
