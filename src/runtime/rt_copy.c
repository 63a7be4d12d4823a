// SPDX-License-Identifier: MIT
#include "runtime/rt_copy.h"

#include <dlfcn.h>

#include "driver/driver_refused.h"
#include "runtime/rt_registry.h"

bool rt_copy_kind_valid(cudaMemcpyKind kind)
{
    return (unsigned)kind <= cudaMemcpyDefault;
}

CUmemorytype rt_copy_source_type(cudaMemcpyKind kind)
{
    static const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE,
                                         CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
    return types[kind];
}

CUmemorytype rt_copy_target_type(cudaMemcpyKind kind)
{
    static const CUmemorytype types[] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST,
                                         CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED};
    return types[kind];
}

static cudaError_t finish(CUresult result, struct rt_copy_how how)
{
    if (!result && how.wait)
        result = RT_RAW(cuStreamSynchronize, how.stream);
    return rt_error(result);
}

static CUresult bytes_now(void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return RT_RAW(cuMemcpyHtoD_v2, rt_ptr(dst), src, size);
    case cudaMemcpyDeviceToHost: return RT_RAW(cuMemcpyDtoH_v2, dst, rt_ptr(src), size);
    case cudaMemcpyDeviceToDevice: return RT_RAW(cuMemcpyDtoD_v2, rt_ptr(dst), rt_ptr(src), size);
    default: return RT_RAW(cuMemcpy, rt_ptr(dst), rt_ptr(src), size);
    }
}

static CUresult bytes_later(void *dst, const void *src, size_t size, cudaMemcpyKind kind, CUstream stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return RT_RAW(cuMemcpyHtoDAsync_v2, rt_ptr(dst), src, size, stream);
    case cudaMemcpyDeviceToHost: return RT_RAW(cuMemcpyDtoHAsync_v2, dst, rt_ptr(src), size, stream);
    case cudaMemcpyDeviceToDevice:
        return RT_RAW(cuMemcpyDtoDAsync_v2, rt_ptr(dst), rt_ptr(src), size, stream);
    default: return RT_RAW(cuMemcpyAsync, rt_ptr(dst), rt_ptr(src), size, stream);
    }
}

cudaError_t rt_copy_bytes(void *dst, const void *src, size_t size, cudaMemcpyKind kind,
                          struct rt_copy_how how)
{
    if (!rt_copy_kind_valid(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (!size)
        return cudaSuccess;
    return finish(how.async ? bytes_later(dst, src, size, kind, how.stream) : bytes_now(dst, src, size, kind),
                  how);
}

cudaError_t rt_copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                          size_t height, cudaMemcpyKind kind, struct rt_copy_how how)
{
    CUDA_MEMCPY2D copy = {
        .srcHost = src,
        .srcDevice = rt_ptr(src),
        .srcPitch = src_pitch,
        .dstHost = dst,
        .dstDevice = rt_ptr(dst),
        .dstPitch = dst_pitch,
        .WidthInBytes = width,
        .Height = height,
    };

    if (!rt_copy_kind_valid(kind))
        return cudaErrorInvalidMemcpyDirection;
    if (!width || !height)
        return cudaSuccess;
    if (width > dst_pitch || width > src_pitch)
        return cudaErrorInvalidPitchValue;
    copy.srcMemoryType = rt_copy_source_type(kind);
    copy.dstMemoryType = rt_copy_target_type(kind);
    return finish(how.async ? RT_RAW(cuMemcpy2DAsync_v2, &copy, how.stream)
                            : RT_RAW(cuMemcpy2DUnaligned_v2, &copy),
                  how);
}

cudaError_t rt_copy_volume(const CUDA_MEMCPY3D *copy, struct rt_copy_how how)
{
    if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
        return cudaSuccess;
    return finish(how.async ? RT_RAW(cuMemcpy3DAsync_v2, copy, how.stream) : RT_RAW(cuMemcpy3D_v2, copy),
                  how);
}

cudaError_t rt_copy_line(CUDA_MEMCPY3D *to, void *dst, const void *src, size_t size, cudaMemcpyKind kind)
{
    if (!rt_copy_kind_valid(kind))
        return cudaErrorInvalidMemcpyDirection;
    *to = (CUDA_MEMCPY3D){
        .srcMemoryType = rt_copy_source_type(kind),
        .srcHost = src,
        .srcDevice = rt_ptr(src),
        .srcPitch = size,
        .srcHeight = 1,
        .dstMemoryType = rt_copy_target_type(kind),
        .dstHost = dst,
        .dstDevice = rt_ptr(dst),
        .dstPitch = size,
        .dstHeight = 1,
        .WidthInBytes = size,
        .Height = 1,
        .Depth = 1,
    };
    return cudaSuccess;
}

cudaError_t rt_copy_symbol(const void *symbol, size_t offset, size_t size, void **address)
{
    CUdeviceptr base;
    size_t whole;
    cudaError_t error = rt_registry_variable(symbol, &base, &whole);

    if (error)
        return error;
    if (offset > whole || size > whole - offset)
        return cudaErrorInvalidValue;
    *address = rt_host(base + offset);
    return cudaSuccess;
}

// Tells moat's guard, if it watches this process, of a transfer that leaves its variable.
static void tell_refused(const void *symbol, size_t offset, size_t size, bool writes)
{
    CUdeviceptr base;
    size_t whole;
    driver_refused_fn *tell = (driver_refused_fn *)dlsym(RTLD_DEFAULT, DRIVER_REFUSED_SYMBOL);

    if (tell && !rt_registry_variable(symbol, &base, &whole))
        tell(base, offset, size, writes);
}

// The calls, each with its twins.

#define COPY_CALLS(name, parameters, stream_parameters, call) \
    RT_COPY_SYNC_CALLS(name, parameters, call)                \
    RT_COPY_ASYNC_CALLS(name##Async, stream_parameters, call)

COPY_CALLS(cudaMemcpy, (void *dst, const void *src, size_t size, cudaMemcpyKind kind),
           (void *dst, const void *src, size_t size, cudaMemcpyKind kind, cudaStream_t stream),
           rt_copy_bytes(dst, src, size, kind, how))

COPY_CALLS(cudaMemcpy2D,
           (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
            cudaMemcpyKind kind),
           (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
            cudaMemcpyKind kind, cudaStream_t stream),
           rt_copy_plane(dst, dst_pitch, src, src_pitch, width, height, kind, how))

static cudaError_t to_symbol(const void *symbol, const void *src, size_t size, size_t offset,
                             cudaMemcpyKind kind, struct rt_copy_how how)
{
    void *address;
    cudaError_t error;

    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    error = rt_copy_symbol(symbol, offset, size, &address);
    if (error == cudaErrorInvalidValue)
        tell_refused(symbol, offset, size, true);
    return error ? error : rt_copy_bytes(address, src, size, kind, how);
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind,
                               struct rt_copy_how how)
{
    void *address;
    cudaError_t error;

    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    error = rt_copy_symbol(symbol, offset, size, &address);
    if (error == cudaErrorInvalidValue)
        tell_refused(symbol, offset, size, false);
    return error ? error : rt_copy_bytes(dst, address, size, kind, how);
}

COPY_CALLS(cudaMemcpyToSymbol,
           (const void *symbol, const void *src, size_t size, size_t offset, cudaMemcpyKind kind),
           (const void *symbol, const void *src, size_t size, size_t offset, cudaMemcpyKind kind,
            cudaStream_t stream),
           to_symbol(symbol, src, size, offset, kind, how))

COPY_CALLS(cudaMemcpyFromSymbol,
           (void *dst, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind),
           (void *dst, const void *symbol, size_t size, size_t offset, cudaMemcpyKind kind,
            cudaStream_t stream),
           from_symbol(dst, symbol, size, offset, kind, how))

static cudaError_t fill(void *dst, int value, size_t size, struct rt_copy_how how)
{
    unsigned char byte = (unsigned char)value;

    if (!size)
        return cudaSuccess;
    return finish(how.async ? RT_RAW(cuMemsetD8Async, rt_ptr(dst), byte, size, how.stream)
                            : RT_RAW(cuMemsetD8_v2, rt_ptr(dst), byte, size),
                  how);
}

static cudaError_t fill_plane(void *dst, size_t pitch, int value, size_t width, size_t height,
                              struct rt_copy_how how)
{
    unsigned char byte = (unsigned char)value;

    if (!width || !height)
        return cudaSuccess;
    if (height > 1 && width > pitch)
        return cudaErrorInvalidValue;
    return finish(how.async ? RT_RAW(cuMemsetD2D8Async, rt_ptr(dst), pitch, byte, width, height, how.stream)
                            : RT_RAW(cuMemsetD2D8_v2, rt_ptr(dst), pitch, byte, width, height),
                  how);
}

// Fills one plane if all rows are equally far apart, otherwise plane by plane.
static cudaError_t fill_volume(cudaPitchedPtr dst, int value, cudaExtent extent, struct rt_copy_how how)
{
    size_t slice = dst.pitch * dst.ysize;
    cudaError_t error = cudaSuccess;

    if (!extent.width || !extent.height || !extent.depth)
        return cudaSuccess;
    if (extent.depth == 1 || extent.height == dst.ysize)
        return fill_plane(dst.ptr, dst.pitch, value, extent.width, extent.height * extent.depth, how);
    for (size_t z = 0; z < extent.depth && !error; z++)
        error = fill_plane((char *)dst.ptr + z * slice, dst.pitch, value, extent.width, extent.height, how);
    return error;
}

COPY_CALLS(cudaMemset, (void *dst, int value, size_t size),
           (void *dst, int value, size_t size, cudaStream_t stream), fill(dst, value, size, how))

COPY_CALLS(cudaMemset2D, (void *dst, size_t pitch, int value, size_t width, size_t height),
           (void *dst, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
           fill_plane(dst, pitch, value, width, height, how))

COPY_CALLS(cudaMemset3D, (cudaPitchedPtr dst, int value, cudaExtent extent),
           (cudaPitchedPtr dst, int value, cudaExtent extent, cudaStream_t stream),
           fill_volume(dst, value, extent, how))

RT_THIN(cudaMemcpyBatchAsync,
        (void *const *dst, const void *const *src, const size_t *sizes, size_t count,
         cudaMemcpyAttributes *attributes, size_t *indices, size_t attribute_count, cudaStream_t stream),
        cuMemcpyBatchAsync_v2, (CUdeviceptr *)(uintptr_t)dst, (CUdeviceptr *)(uintptr_t)src,
        (size_t *)(uintptr_t)sizes, count, attributes, indices, attribute_count, stream)
RT_THIN(cudaMemcpy3DBatchAsync,
        (size_t count, cudaMemcpy3DBatchOp *operations, unsigned long long flags, cudaStream_t stream),
        cuMemcpy3DBatchAsync_v2, count, operations, flags, stream)

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    CUdeviceptr found;
    size_t size;

    RT_ENTER();
    RT_REQUIRE(address);
    RT_TRY(rt_registry_variable(symbol, &found, &size));
    *address = rt_host(found);
    return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *size, const void *symbol)
{
    CUdeviceptr found;

    RT_ENTER();
    RT_REQUIRE(size);
    return rt_return(rt_registry_variable(symbol, &found, size));
}

static cudaError_t peer(void *dst, int dst_device, const void *src, int src_device, size_t size,
                        CUstream stream, bool async)
{
    CUcontext from, to;

    RT_TRY(rt_check_device(dst_device));
    RT_TRY(rt_check_device(src_device));
    RT_ENTER();
    RT_TRY(rt_primary(dst_device, &to));
    RT_TRY(rt_primary(src_device, &from));
    if (!size)
        return cudaSuccess;
    if (async)
        return RT_CALL(cuMemcpyPeerAsync, rt_ptr(dst), to, rt_ptr(src), from, size, stream);
    return RT_CALL(cuMemcpyPeer, rt_ptr(dst), to, rt_ptr(src), from, size);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t size)
{
    return peer(dst, dst_device, src, src_device, size, NULL, false);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device, size_t size,
                                cudaStream_t stream)
{
    return peer(dst, dst_device, src, src_device, size, stream, true);
}
