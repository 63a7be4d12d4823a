// SPDX-License-Identifier: MIT
// Memsets.
#include "cpu/copy.h"

CUresult copy_set_job(const CUDA_MEMSET_NODE_PARAMS_v2 *p, struct copy_job *j)
{
    unsigned element = p->elementSize;
    *j = (struct copy_job){.height = p->height, .depth = 1, .element = element, .value = p->value};
    if (p->width && p->height) {
        if (__builtin_mul_overflow(p->width, element, &j->width) || p->dst % element)
            return CUDA_ERROR_INVALID_VALUE;
        if (p->height > 1 && (p->pitch < j->width || p->pitch % element))
            return CUDA_ERROR_INVALID_VALUE;
    }
    // The pitch of a single row is ignored.
    j->dst = (struct copy_side){.at = p->dst, .pitch = p->height > 1 ? p->pitch : j->width, .known = true};
    return CUDA_SUCCESS;
}

void copy_set_params(const struct copy_job *j, CUDA_MEMSET_NODE_PARAMS_v2 *out)
{
    *out = (CUDA_MEMSET_NODE_PARAMS_v2){
        .dst = j->dst.at,
        .pitch = j->height > 1 ? j->dst.pitch : 0,
        .value = j->value,
        .elementSize = j->element,
        .width = j->width / j->element,
        .height = j->height,
    };
}

static CUresult set(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned element, size_t width,
                    size_t height, CUstream stream, bool per_thread, bool async)
{
    struct copy_job j;
    CUDA_MEMSET_NODE_PARAMS_v2 p = {dst, pitch, value, element, width, height, NULL};
    CUresult r = copy_set_job(&p, &j);
    return r ? r : copy_run(&j, stream, per_thread, async);
}

// Defines two calls and their twins for each size of the value, and as many for rows.
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
