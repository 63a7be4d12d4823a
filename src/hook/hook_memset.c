// SPDX-License-Identifier: MIT
// Memsets.
#include "hook/bounds.h"
#include "core/guard.h"
#include "hook/hook.h"

static CUresult check_line(enum driver_id call, CUdeviceptr to, size_t count, size_t element)
{
    uint64_t bytes;
    guard_count(GUARD_TRANSFERS);
    if (__builtin_mul_overflow(count, element, &bytes))
        return CUDA_SUCCESS;
    return bounds_check(call, &(struct bounds_range){to, bytes, REPORT_WRITE, true});
}

static CUresult check_rows(enum driver_id call, CUdeviceptr to, size_t pitch, size_t width, size_t height,
                           size_t element)
{
    uint64_t bytes;
    guard_count(GUARD_TRANSFERS);
    if (__builtin_mul_overflow(width, element, &bytes))
        return CUDA_SUCCESS;
    return bounds_check_rows(call, &(struct bounds_range){to, bytes, REPORT_WRITE, true}, pitch, height, 0,
                             1);
}

#define LINE(symbol, stream, type, parameters, arguments)                                \
    CUresult hook_##symbol parameters                                                    \
    {                                                                                    \
        CUresult r = check_line(DRIVER_##symbol, to, n, sizeof(type));                   \
        return r ? bounds_refused(r, stream) : bounds_done(guard.real.symbol arguments); \
    }
#define ROWS(symbol, stream, type, parameters, arguments)                                \
    CUresult hook_##symbol parameters                                                    \
    {                                                                                    \
        CUresult r = check_rows(DRIVER_##symbol, to, pitch, w, h, sizeof(type));         \
        return r ? bounds_refused(r, stream) : bounds_done(guard.real.symbol arguments); \
    }
#define MEMSETS(bits, type)                                                                               \
    LINE(cuMemsetD##bits##_v2, NULL, type, (CUdeviceptr to, type v, size_t n), (to, v, n))                \
    LINE(cuMemsetD##bits##_v2_ptds, NULL, type, (CUdeviceptr to, type v, size_t n), (to, v, n))           \
    LINE(cuMemsetD##bits##Async, q, type, (CUdeviceptr to, type v, size_t n, CUstream q), (to, v, n, q))  \
    LINE(cuMemsetD##bits##Async_ptsz, q, type, (CUdeviceptr to, type v, size_t n, CUstream q),            \
         (to, v, n, q))                                                                                   \
    ROWS(cuMemsetD2D##bits##_v2, NULL, type, (CUdeviceptr to, size_t pitch, type v, size_t w, size_t h),  \
         (to, pitch, v, w, h))                                                                            \
    ROWS(cuMemsetD2D##bits##_v2_ptds, NULL, type,                                                         \
         (CUdeviceptr to, size_t pitch, type v, size_t w, size_t h), (to, pitch, v, w, h))                \
    ROWS(cuMemsetD2D##bits##Async, q, type,                                                               \
         (CUdeviceptr to, size_t pitch, type v, size_t w, size_t h, CUstream q), (to, pitch, v, w, h, q)) \
    ROWS(cuMemsetD2D##bits##Async_ptsz, q, type,                                                          \
         (CUdeviceptr to, size_t pitch, type v, size_t w, size_t h, CUstream q), (to, pitch, v, w, h, q))

MEMSETS(8, unsigned char)
MEMSETS(16, unsigned short)
MEMSETS(32, unsigned int)
