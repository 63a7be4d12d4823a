// SPDX-License-Identifier: MIT
#include "runtime/rt_copy3d.h"

#include "runtime/rt_channel.h"

// Sets one side of a copy. Positions in an array count its elements, those in other memory bytes; the width
// of a copy counts the elements of whichever array takes part. *size receives the size of the array's
// elements and is unchanged if there is no array.
static cudaError_t set_source(CUDA_MEMCPY3D *to, cudaArray_const_t array, cudaPos pos, cudaPitchedPtr ptr,
                              CUmemorytype type, size_t *size)
{
    size_t unit = 1;
    cudaError_t error = array ? rt_channel_array_size(array, &unit) : cudaSuccess;

    if (error)
        return error;
    to->srcXInBytes = pos.x * unit;
    to->srcY = pos.y;
    to->srcZ = pos.z;
    if (array) {
        *size = unit;
        to->srcMemoryType = CU_MEMORYTYPE_ARRAY;
        to->srcArray = (CUarray)(uintptr_t)array;
        return cudaSuccess;
    }
    to->srcMemoryType = type;
    to->srcHost = ptr.ptr;
    to->srcDevice = rt_ptr(ptr.ptr);
    to->srcPitch = ptr.pitch;
    to->srcHeight = ptr.ysize;
    return cudaSuccess;
}

static cudaError_t set_target(CUDA_MEMCPY3D *to, cudaArray_const_t array, cudaPos pos, cudaPitchedPtr ptr,
                              CUmemorytype type, size_t *size)
{
    size_t unit = 1;
    cudaError_t error = array ? rt_channel_array_size(array, &unit) : cudaSuccess;

    if (error)
        return error;
    to->dstXInBytes = pos.x * unit;
    to->dstY = pos.y;
    to->dstZ = pos.z;
    if (array) {
        *size = unit;
        to->dstMemoryType = CU_MEMORYTYPE_ARRAY;
        to->dstArray = (CUarray)(uintptr_t)array;
        return cudaSuccess;
    }
    to->dstMemoryType = type;
    to->dstHost = ptr.ptr;
    to->dstDevice = rt_ptr(ptr.ptr);
    to->dstPitch = ptr.pitch;
    to->dstHeight = ptr.ysize;
    return cudaSuccess;
}

// Converts a copy of the runtime to the driver's structure; kind applies to the sides that are no arrays.
cudaError_t rt_copy3d_to_driver(CUDA_MEMCPY3D *to, const cudaMemcpy3DParms *from)
{
    size_t size = 1;
    cudaError_t error;

    if (!rt_copy_kind_valid(from->kind))
        return cudaErrorInvalidMemcpyDirection;
    if (!from->srcArray == !from->srcPtr.ptr || !from->dstArray == !from->dstPtr.ptr)
        return cudaErrorInvalidValue;
    *to = (CUDA_MEMCPY3D){.Height = from->extent.height, .Depth = from->extent.depth};
    error =
        set_source(to, from->srcArray, from->srcPos, from->srcPtr, rt_copy_source_type(from->kind), &size);
    if (!error)
        error = set_target(to, from->dstArray, from->dstPos, from->dstPtr, rt_copy_target_type(from->kind),
                           &size);
    to->WidthInBytes = from->extent.width * size;
    return error;
}

static void side_from_driver(CUmemorytype type, const void *host, CUdeviceptr device, size_t pitch,
                             size_t height, cudaPitchedPtr *ptr)
{
    void *pointer = type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : rt_host(device);
    *ptr = (cudaPitchedPtr){pointer, pitch, pitch, height};
}

static cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to)
{
    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (from == CU_MEMORYTYPE_HOST)
        return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t rt_copy3d_from_driver(cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *from)
{
    size_t size = 1, source = 1, target = 1;
    cudaError_t error = cudaSuccess;

    *to = (cudaMemcpy3DParms){.kind = kind_of(from->srcMemoryType, from->dstMemoryType)};
    if (from->srcMemoryType == CU_MEMORYTYPE_ARRAY) {
        to->srcArray = from->srcArray;
        error = rt_channel_array_size(from->srcArray, &source);
        size = source;
    } else {
        side_from_driver(from->srcMemoryType, from->srcHost, from->srcDevice, from->srcPitch, from->srcHeight,
                         &to->srcPtr);
    }
    if (from->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
        to->dstArray = from->dstArray;
        error = error ? error : rt_channel_array_size(from->dstArray, &target);
        size = target;
    } else {
        side_from_driver(from->dstMemoryType, from->dstHost, from->dstDevice, from->dstPitch, from->dstHeight,
                         &to->dstPtr);
    }
    if (error || !size || !source || !target)
        return error ? error : cudaErrorInvalidValue;
    to->srcPos = (cudaPos){from->srcXInBytes / source, from->srcY, from->srcZ};
    to->dstPos = (cudaPos){from->dstXInBytes / target, from->dstY, from->dstZ};
    to->extent = (cudaExtent){from->WidthInBytes / size, from->Height, from->Depth};
    return cudaSuccess;
}

static cudaError_t volume(const cudaMemcpy3DParms *parms, struct rt_copy_how how)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error;

    if (!parms)
        return cudaErrorInvalidValue;
    if (!parms->extent.width || !parms->extent.height || !parms->extent.depth)
        return cudaSuccess;
    error = rt_copy3d_to_driver(&copy, parms);
    return error ? error : rt_copy_volume(&copy, how);
}

static cudaError_t peer_volume(const cudaMemcpy3DPeerParms *parms, struct rt_copy_how how)
{
    cudaMemcpy3DParms plain;
    CUDA_MEMCPY3D copy;
    CUDA_MEMCPY3D_PEER between;
    cudaError_t error = parms ? rt_check_device(parms->srcDevice) : cudaErrorInvalidValue;

    if (!error)
        error = rt_check_device(parms->dstDevice);
    if (error)
        return error;
    plain = (cudaMemcpy3DParms){parms->srcArray, parms->srcPos, parms->srcPtr, parms->dstArray,
                                parms->dstPos,   parms->dstPtr, parms->extent, cudaMemcpyDeviceToDevice};
    error = rt_copy3d_to_driver(&copy, &plain);
    if (error)
        return error;
    // The two structures differ in the contexts, which are reserved in the first.
    _Static_assert(sizeof copy == sizeof between, "a copy between contexts has the layout of one within");
    __builtin_memcpy(&between, &copy, sizeof copy);
    error = rt_primary(parms->srcDevice, &between.srcContext);
    if (!error)
        error = rt_primary(parms->dstDevice, &between.dstContext);
    if (error)
        return error;
    if (!how.async)
        return rt_error(RT_RAW(cuMemcpy3DPeer, &between));
    error = rt_error(RT_RAW(cuMemcpy3DPeerAsync, &between, how.stream));
    return error || !how.wait ? error : rt_error(RT_RAW(cuStreamSynchronize, how.stream));
}

// Calls that name arrays have offsets and widths in bytes.
struct side {
    cudaArray_const_t array;
    size_t x, y;
    const void *pointer;
    size_t pitch;
};

static cudaError_t plane(struct side dst, struct side src, size_t width, size_t height, cudaMemcpyKind kind,
                         struct rt_copy_how how)
{
    CUDA_MEMCPY3D copy = {.WidthInBytes = width, .Height = height, .Depth = 1};

    if (!rt_copy_kind_valid(kind))
        return cudaErrorInvalidMemcpyDirection;
    if ((!dst.array && width > dst.pitch) || (!src.array && width > src.pitch))
        return cudaErrorInvalidPitchValue;
    copy.srcXInBytes = src.x;
    copy.srcY = src.y;
    copy.srcMemoryType = src.array ? CU_MEMORYTYPE_ARRAY : rt_copy_source_type(kind);
    copy.srcArray = (CUarray)(uintptr_t)src.array;
    copy.srcHost = src.pointer;
    copy.srcDevice = rt_ptr(src.pointer);
    copy.srcPitch = src.pitch;
    copy.srcHeight = src.array ? 0 : height;
    copy.dstXInBytes = dst.x;
    copy.dstY = dst.y;
    copy.dstMemoryType = dst.array ? CU_MEMORYTYPE_ARRAY : rt_copy_target_type(kind);
    copy.dstArray = (CUarray)(uintptr_t)dst.array;
    copy.dstHost = (void *)(uintptr_t)dst.pointer;
    copy.dstDevice = rt_ptr(dst.pointer);
    copy.dstPitch = dst.pitch;
    copy.dstHeight = dst.array ? 0 : height;
    return rt_copy_volume(&copy, how);
}

// Copies bytes in the order of an array's rows: the rest of the first row, whole rows, the start of the last.
static cudaError_t run(struct side dst, struct side src, size_t size, cudaMemcpyKind kind,
                       struct rt_copy_how how)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    struct side *array = dst.array ? &dst : &src, *linear = dst.array ? &src : &dst;
    size_t unit, row;
    cudaError_t error = rt_channel_array_size(array->array, &unit);

    if (!error)
        error = rt_error(RT_RAW(cuArray3DGetDescriptor_v2, &desc, (CUarray)(uintptr_t)array->array));
    if (error)
        return error;
    row = desc.Width * unit;
    if (!row || array->x >= row)
        return cudaErrorInvalidValue;
    while (size && !error) {
        size_t width = size < row - array->x ? size : row - array->x, rows = 1;
        if (array->x == 0 && size >= row)
            rows = size / row;
        linear->pitch = width;
        error = plane(dst, src, width, rows, kind, how);
        linear->pointer = (const char *)linear->pointer + width * rows;
        array->x = 0;
        array->y += rows;
        size -= width * rows;
    }
    return error;
}

#define ARRAY(array, x, y) ((struct side){array, x, y, NULL, 0})
#define LINEAR(pointer, pitch) ((struct side){NULL, 0, 0, pointer, pitch})

RT_COPY_SYNC_CALLS(cudaMemcpy3D, (const cudaMemcpy3DParms *parms), volume(parms, how))
RT_COPY_ASYNC_CALLS(cudaMemcpy3DAsync, (const cudaMemcpy3DParms *parms, cudaStream_t stream),
                    volume(parms, how))
RT_COPY_SYNC_CALLS(cudaMemcpy3DPeer, (const cudaMemcpy3DPeerParms *parms), peer_volume(parms, how))
RT_COPY_ASYNC_CALLS(cudaMemcpy3DPeerAsync, (const cudaMemcpy3DPeerParms *parms, cudaStream_t stream),
                    peer_volume(parms, how))

RT_COPY_SYNC_CALLS(cudaMemcpy2DToArray,
                   (cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width,
                    size_t height, cudaMemcpyKind kind),
                   plane(ARRAY(dst, x, y), LINEAR(src, pitch), width, height, kind, how))
RT_COPY_ASYNC_CALLS(cudaMemcpy2DToArrayAsync,
                    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch, size_t width,
                     size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                    plane(ARRAY(dst, x, y), LINEAR(src, pitch), width, height, kind, how))
RT_COPY_SYNC_CALLS(cudaMemcpy2DFromArray,
                   (void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                    size_t height, cudaMemcpyKind kind),
                   plane(LINEAR(dst, pitch), ARRAY(src, x, y), width, height, kind, how))
RT_COPY_ASYNC_CALLS(cudaMemcpy2DFromArrayAsync,
                    (void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
                     size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                    plane(LINEAR(dst, pitch), ARRAY(src, x, y), width, height, kind, how))
RT_COPY_SYNC_CALLS(cudaMemcpy2DArrayToArray,
                   (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,
                    size_t src_y, size_t width, size_t height, cudaMemcpyKind kind),
                   plane(ARRAY(dst, dst_x, dst_y), ARRAY(src, src_x, src_y), width, height, kind, how))

RT_COPY_SYNC_CALLS(cudaMemcpyToArray,
                   (cudaArray_t dst, size_t x, size_t y, const void *src, size_t size, cudaMemcpyKind kind),
                   run(ARRAY(dst, x, y), LINEAR(src, 0), size, kind, how))
RT_COPY_ASYNC_CALLS(cudaMemcpyToArrayAsync,
                    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t size, cudaMemcpyKind kind,
                     cudaStream_t stream),
                    run(ARRAY(dst, x, y), LINEAR(src, 0), size, kind, how))
RT_COPY_SYNC_CALLS(cudaMemcpyFromArray,
                   (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t size, cudaMemcpyKind kind),
                   run(LINEAR(dst, 0), ARRAY(src, x, y), size, kind, how))
RT_COPY_ASYNC_CALLS(cudaMemcpyFromArrayAsync,
                    (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t size, cudaMemcpyKind kind,
                     cudaStream_t stream),
                    run(LINEAR(dst, 0), ARRAY(src, x, y), size, kind, how))
// A copy between two arrays is limited to parts of one row.
RT_COPY_SYNC_CALLS(cudaMemcpyArrayToArray,
                   (cudaArray_t dst, size_t dst_x, size_t dst_y, cudaArray_const_t src, size_t src_x,
                    size_t src_y, size_t size, cudaMemcpyKind kind),
                   plane(ARRAY(dst, dst_x, dst_y), ARRAY(src, src_x, src_y), size, 1, kind, how))
