// SPDX-License-Identifier: MIT
// Launches in the style before CUDA 4.0: calls set the shape and the parameters in the function one by one.
#include "base/mem.h"
#include "cpu/module.h"

enum { MOST_BYTES = 4096 };

struct legacy_call {
    unsigned block[3], shared, size;
    char bytes[MOST_BYTES];
};

// Returns the function's call, made at the first use. As on a GPU, threads that share it must synchronise
// themselves.
static CUresult get(CUfunction f, struct legacy_call **out)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!handle_is(f, HANDLE_FUNCTION))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!f->legacy) {
        f->legacy = mem_zalloc(1, sizeof *f->legacy);
        if (!f->legacy)
            return CUDA_ERROR_OUT_OF_MEMORY;
        f->legacy->block[0] = f->legacy->block[1] = f->legacy->block[2] = 1;
    }
    *out = f->legacy;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z)
{
    struct legacy_call *call;
    CUresult r = get(f, &call);
    if (r || x <= 0 || y <= 0 || z <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    call->block[0] = (unsigned)x;
    call->block[1] = (unsigned)y;
    call->block[2] = (unsigned)z;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedSize(CUfunction f, unsigned int bytes)
{
    struct legacy_call *call;
    CUresult r = get(f, &call);
    if (!r)
        call->shared = bytes;
    return r;
}

CUresult cuParamSetSize(CUfunction f, unsigned int bytes)
{
    struct legacy_call *call;
    CUresult r = get(f, &call);
    if (r || bytes > MOST_BYTES)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    call->size = bytes;
    return CUDA_SUCCESS;
}

static CUresult set_bytes(CUfunction f, int offset, const void *from, unsigned n)
{
    struct legacy_call *call;
    CUresult r = get(f, &call);
    if (r || offset < 0 || offset > MOST_BYTES || n > MOST_BYTES - (unsigned)offset || (n && !from))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (n)
        memcpy(call->bytes + offset, from, n);
    return CUDA_SUCCESS;
}

CUresult cuParamSeti(CUfunction f, int offset, unsigned int value)
{
    return set_bytes(f, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction f, int offset, float value)
{
    return set_bytes(f, offset, &value, sizeof value);
}

CUresult cuParamSetv(CUfunction f, int offset, void *from, unsigned int n)
{
    return set_bytes(f, offset, from, n);
}

static CUresult launch(CUfunction f, int width, int height, CUstream stream)
{
    struct legacy_call *call;
    CUresult r = get(f, &call);
    if (r || width <= 0 || height <= 0)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    size_t size = call->size;
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, call->bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END,
    };
    return cuLaunchKernel(f, (unsigned)width, (unsigned)height, 1, call->block[0], call->block[1],
                          call->block[2], call->shared, stream, NULL, size ? extra : NULL);
}

CUresult cuLaunch(CUfunction f)
{
    return launch(f, 1, 1, NULL);
}

CUresult cuLaunchGrid(CUfunction f, int width, int height)
{
    return launch(f, width, height, NULL);
}

CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream stream)
{
    return launch(f, width, height, stream);
}
