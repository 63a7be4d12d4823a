// SPDX-License-Identifier: MIT
// Memsets.
#include "cpu/copy.h"

static CUresult set(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned element, size_t width,
                    size_t height, CUstream stream, bool per_thread, bool async)
{
    struct copy_job j = {.height = height, .depth = 1, .element = element, .value = value};
    if (width && height) {
        if (__builtin_mul_overflow(width, element, &j.width) || dst % element)
            return CUDA_ERROR_INVALID_VALUE;
        if (height > 1 && (pitch < j.width || pitch % element))
            return CUDA_ERROR_INVALID_VALUE;
    }
    // Of one row the pitch says nothing.
    j.dst = (struct copy_side){.at = dst, .pitch = height > 1 ? pitch : j.width, .known = true};
    return copy_run(&j, stream, per_thread, async);
}

// Two calls and their twins for each size of the value, and as many for rows.
#define SET_CALLS(bits, type)                                                                              \
    COPY_CALL(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr dst, type value, size_t count),                    \
              set(dst, 0, value, bits / 8, count, 1, NULL, per_thread, false))                             \
    COPY_CALL(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr dst, type value, size_t count, CUstream stream), \
              set(dst, 0, value, bits / 8, count, 1, stream, per_thread, true))                            \
    COPY_CALL(cuMemsetD2D##bits##_v2, _ptds,                                                               \
              (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height),                    \
              set(dst, pitch, value, bits / 8, width, height, NULL, per_thread, false))                    \
    COPY_CALL(cuMemsetD2D##bits##Async, _ptsz,                                                             \
              (CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height, CUstream stream),   \
              set(dst, pitch, value, bits / 8, width, height, stream, per_thread, true))

SET_CALLS(8, unsigned char)
SET_CALLS(16, unsigned short)
SET_CALLS(32, unsigned int)
