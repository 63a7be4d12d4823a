// SPDX-License-Identifier: MIT
// Copies of rows and slices.
#include "cpu/copy.h"

// One side of a copy, as the 2D and 3D structures describe it.
struct corner {
    CUmemorytype type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;  // pitch, height: 0 for no gaps
};

// Fills in zero pitches and heights, and checks that the rows hold what is copied from them.
static CUresult place(const struct corner *c, const struct copy_job *j, struct copy_side *out)
{
    size_t width, rows, pitch = c->pitch, height = c->height;
    if (c->type == CU_MEMORYTYPE_ARRAY)
        return copy_array_side(c->array, c->x, c->y, c->z, j, out);
    if (c->type != CU_MEMORYTYPE_HOST && c->type != CU_MEMORYTYPE_DEVICE && c->type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_add_overflow(c->x, j->width, &width) || __builtin_add_overflow(c->y, j->height, &rows))
        return CUDA_ERROR_INVALID_VALUE;
    pitch = pitch ? pitch : width;
    height = height ? height : rows;
    size_t slice, down, back;
    if (pitch < width || height < rows || __builtin_mul_overflow(pitch, height, &slice) ||
        __builtin_mul_overflow(pitch, c->y, &down) || __builtin_mul_overflow(slice, c->z, &back))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t at = c->type == CU_MEMORYTYPE_HOST ? (uintptr_t)c->host : c->device;
    if (!at || __builtin_add_overflow(at, c->x, &at) || __builtin_add_overflow(at, down, &at) ||
        __builtin_add_overflow(at, back, &at))
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct copy_side){
        .at = at, .pitch = pitch, .slice = slice, .known = c->type == CU_MEMORYTYPE_DEVICE};
    return CUDA_SUCCESS;
}

static CUresult describe(const struct corner *dst, const struct corner *src, struct copy_job *j)
{
    if (!j->width || !j->height || !j->depth)
        return CUDA_SUCCESS;
    CUresult r = place(dst, j, &j->dst);
    return r ? r : place(src, j, &j->src);
}

static CUresult shape(const struct corner *dst, const struct corner *src, struct copy_job *j, CUstream stream,
                      bool per_thread, bool async)
{
    CUresult r = describe(dst, src, j);
    return r ? r : copy_run(j, stream, per_thread, async);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c, CUstream stream, bool per_thread, bool async)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    struct corner src = {.type = c->srcMemoryType,
                         .host = c->srcHost,
                         .device = c->srcDevice,
                         .array = c->srcArray,
                         .x = c->srcXInBytes,
                         .y = c->srcY,
                         .pitch = c->srcPitch};
    struct corner dst = {.type = c->dstMemoryType,
                         .host = c->dstHost,
                         .device = c->dstDevice,
                         .array = c->dstArray,
                         .x = c->dstXInBytes,
                         .y = c->dstY,
                         .pitch = c->dstPitch};
    struct copy_job j = {.width = c->WidthInBytes, .height = c->Height, .depth = 1};
    return shape(&dst, &src, &j, stream, per_thread, async);
}

// The structures for one device and for two differ only in their contexts.
#define CORNER(c, side)                                                                    \
    {                                                                                      \
        .type = c->side##MemoryType, .host = c->side##Host, .device = c->side##Device,     \
        .array = c->side##Array, .x = c->side##XInBytes, .y = c->side##Y, .z = c->side##Z, \
        .pitch = c->side##Pitch, .height = c->side##Height,                                \
    }

CUresult copy_shape_job(const CUDA_MEMCPY3D *c, struct copy_job *j)
{
    struct corner dst = CORNER(c, dst), src = CORNER(c, src);
    *j = (struct copy_job){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    return describe(&dst, &src, j);
}

static CUmemorytype type_of(const struct copy_side *s)
{
    return s->array                                                  ? CU_MEMORYTYPE_ARRAY
           : s->known                                                ? CU_MEMORYTYPE_DEVICE
           : s->where == MEMORY_UNKNOWN || s->where == MEMORY_PINNED ? CU_MEMORYTYPE_HOST
                                                                     : CU_MEMORYTYPE_UNIFIED;
}

void copy_shape_params(const struct copy_job *j, CUDA_MEMCPY3D *out)
{
    *out = (CUDA_MEMCPY3D){
        .srcMemoryType = type_of(&j->src),
        .srcPitch = j->src.pitch,
        .srcHeight = j->depth > 1 ? j->src.slice / j->src.pitch : j->height,
        .dstMemoryType = type_of(&j->dst),
        .dstPitch = j->dst.pitch,
        .dstHeight = j->depth > 1 ? j->dst.slice / j->dst.pitch : j->height,
        .WidthInBytes = j->width,
        .Height = j->height,
        .Depth = j->depth,
    };
    if (j->src.array) {
        out->srcArray = j->src.array;
        out->srcXInBytes = j->src.x;
        out->srcY = j->src.y;
        out->srcZ = j->src.z;
        out->srcPitch = out->srcHeight = 0;
    } else if (out->srcMemoryType == CU_MEMORYTYPE_HOST)
        out->srcHost = (const void *)(uintptr_t)j->src.at;
    else
        out->srcDevice = j->src.at;
    if (j->dst.array) {
        out->dstArray = j->dst.array;
        out->dstXInBytes = j->dst.x;
        out->dstY = j->dst.y;
        out->dstZ = j->dst.z;
        out->dstPitch = out->dstHeight = 0;
    } else if (out->dstMemoryType == CU_MEMORYTYPE_HOST)
        out->dstHost = (void *)(uintptr_t)j->dst.at;
    else
        out->dstDevice = j->dst.at;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *c, CUstream stream, bool per_thread, bool async)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    struct corner dst = CORNER(c, dst), src = CORNER(c, src);
    struct copy_job j = {.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    return shape(&dst, &src, &j, stream, per_thread, async);
}

static CUresult copy_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool per_thread, bool async)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    if ((c->srcContext && !cpu_context_named(c->srcContext)) ||
        (c->dstContext && !cpu_context_named(c->dstContext)))
        return CUDA_ERROR_INVALID_CONTEXT;
    struct corner dst = CORNER(c, dst), src = CORNER(c, src);
    struct copy_job j = {.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    return shape(&dst, &src, &j, stream, per_thread, async);
}

COPY_CALL(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *c), copy_2d(c, NULL, per_thread, false))
COPY_CALL(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *c), copy_2d(c, NULL, per_thread, false))
COPY_CALL(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *c, CUstream stream),
          copy_2d(c, stream, per_thread, true))
COPY_CALL(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *c), copy_3d(c, NULL, per_thread, false))
COPY_CALL(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *c, CUstream stream),
          copy_3d(c, stream, per_thread, true))
COPY_CALL(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *c), copy_peer(c, NULL, per_thread, false))
COPY_CALL(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *c, CUstream stream),
          copy_peer(c, stream, per_thread, true))
