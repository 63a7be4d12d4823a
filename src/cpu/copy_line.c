// SPDX-License-Identifier: MIT
// Copies of one run of bytes.
#include "cpu/copy.h"

enum { DEVICE = 1, HOST = 0 };  // a device pointer must lie in an allocation

static CUresult line(uint64_t dst, bool dst_device, uint64_t src, bool src_device, size_t size,
                     CUstream stream, bool per_thread, bool async)
{
    struct copy_job j = {
        .dst = {.at = dst, .pitch = size, .slice = size, .known = dst_device},
        .src = {.at = src, .pitch = size, .slice = size, .known = src_device},
        .width = size,
        .height = 1,
        .depth = 1,
    };
    return copy_run(&j, stream, per_thread, async);
}

static bool context_or_none(CUcontext c)
{
    return !c || cpu_context_named(c);
}

// The address alone identifies the memory; the contexts only have to exist.
static CUresult peer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size,
                     CUstream stream, bool per_thread, bool async)
{
    if (!context_or_none(to) || !context_or_none(from))
        return CUDA_ERROR_INVALID_CONTEXT;
    return line(dst, DEVICE, src, DEVICE, size, stream, per_thread, async);
}

COPY_CALL(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t size),
          line(dst, DEVICE, (uintptr_t)src, HOST, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t size),
          line((uintptr_t)dst, HOST, src, DEVICE, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size),
          line(dst, DEVICE, src, DEVICE, size, NULL, per_thread, false))
COPY_CALL(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t size),
          line(dst, HOST, src, HOST, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyPeer, _ptds, (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size),
          peer(dst, to, src, from, size, NULL, per_thread, false))

COPY_CALL(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dst, const void *src, size_t size, CUstream stream),
          line(dst, DEVICE, (uintptr_t)src, HOST, size, stream, per_thread, true))
COPY_CALL(cuMemcpyDtoHAsync_v2, _ptsz, (void *dst, CUdeviceptr src, size_t size, CUstream stream),
          line((uintptr_t)dst, HOST, src, DEVICE, size, stream, per_thread, true))
COPY_CALL(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
          line(dst, DEVICE, src, DEVICE, size, stream, per_thread, true))
COPY_CALL(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream),
          line(dst, HOST, src, HOST, size, stream, per_thread, true))
COPY_CALL(cuMemcpyPeerAsync, _ptsz,
          (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size, CUstream stream),
          peer(dst, to, src, from, size, stream, per_thread, true))
