// SPDX-License-Identifier: MIT
// Many copies in one call: all are checked before the first is appended to the stream.
#include "base/mem.h"
#include "cpu/array.h"
#include "cpu/copy.h"
#include "cpu/stream.h"

static CUresult source_of(CUmemcpySrcAccessOrder order, enum copy_source *out)
{
    switch (order) {
    case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
    case CU_MEMCPY_SRC_ACCESS_ORDER_ANY: *out = COPY_IN_ORDER; return CUDA_SUCCESS;
    case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL: *out = COPY_IN_CALL; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// Gets the stream of a batch. NULL and the legacy stream are refused.
static CUresult batch_stream(CUstream stream, bool per_thread, struct CUstream_st **out)
{
    CUresult r = stream_get(stream, per_thread, out);
    return !r && (!stream || (*out)->legacy) ? CUDA_ERROR_INVALID_VALUE : r;
}

// Checks and submits the jobs. fail: NULL, or receives the index of the wrong copy.
static CUresult submit(struct copy_job *jobs, size_t count, size_t *fail, struct CUstream_st *s)
{
    CUresult r = CUDA_SUCCESS;
    for (size_t i = 0; i < count && !r; i++) {
        r = copy_run_check(&jobs[i], stream_captures(s) ? COPY_CAPTURED : COPY_NOW);
        if (r && fail)
            *fail = i;
    }
    for (size_t i = 0; i < count && !r; i++)
        r = copy_run_submit(&jobs[i], s, true);
    return r;
}

// attributes[k] hold for the copies from first[k] up to first[k + 1].
static CUresult check_attributes(const CUmemcpyAttributes *attributes, const size_t *first, size_t n,
                                 size_t count)
{
    enum copy_source source;
    if (!attributes || !first || !n || n > count || first[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t k = 0; k < n; k++) {
        if (source_of(attributes[k].srcAccessOrder, &source) || (k && first[k] <= first[k - 1]) ||
            first[k] >= count || attributes[k].flags & ~CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult batch(CUdeviceptr *dst, CUdeviceptr *src, size_t *sizes, size_t count,
                      CUmemcpyAttributes *attributes, size_t *first, size_t n, size_t *fail, CUstream stream,
                      bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = batch_stream(stream, per_thread, &s);
    if (fail)
        *fail = SIZE_MAX;
    if (!r && (!dst || !src || !sizes || !count))
        r = CUDA_ERROR_INVALID_VALUE;
    if (!r)
        r = check_attributes(attributes, first, n, count);
    if (r)
        return r;
    struct copy_job *jobs = mem_zalloc(count, sizeof *jobs);
    if (!jobs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0, k = 0; i < count && !r; i++) {
        struct copy_job *j = &jobs[i];
        if (k + 1 < n && first[k + 1] == i)
            k++;
        source_of(attributes[k].srcAccessOrder, &j->source);
        j->dst.at = dst[i];
        j->src.at = src[i];
        j->width = j->dst.pitch = j->dst.slice = j->src.pitch = j->src.slice = sizes[i];
        j->height = j->depth = 1;
        if (!sizes[i]) {
            r = CUDA_ERROR_INVALID_VALUE;
            if (fail)
                *fail = i;
        }
    }
    if (!r)
        r = submit(jobs, count, fail, s);
    mem_free(jobs);
    return r;
}

COPY_CALL(cuMemcpyBatchAsync, _ptsz,
          (CUdeviceptr * dst, CUdeviceptr *src, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
           size_t *first, size_t n, size_t *fail, CUstream stream),
          batch(dst, src, sizes, count, attributes, first, n, fail, stream, per_thread))
COPY_CALL(cuMemcpyBatchAsync_v2, _ptsz,
          (CUdeviceptr * dst, CUdeviceptr *src, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
           size_t *first, size_t n, CUstream stream),
          batch(dst, src, sizes, count, attributes, first, n, NULL, stream, per_thread))

// --- slices ------------------------------------------------------------------------------------------------

// Returns the unit of widths and positions along a row: an element if an array takes part, otherwise a byte.
static size_t unit_of(const CUmemcpy3DOperand *o)
{
    const struct CUarray_st *a =
        o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY ? array_get(o->op.array.array) : NULL;
    return a ? a->element : 1;
}

static CUresult operand(const CUmemcpy3DOperand *o, const struct copy_job *j, size_t unit,
                        struct copy_side *out)
{
    if (o->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
        const CUoffset3D *at = &o->op.array.offset;
        return copy_array_side(o->op.array.array, at->x * unit_of(o), at->y, at->z, j, out);
    }
    size_t pitch = o->op.ptr.rowLength ? o->op.ptr.rowLength * unit : j->width;
    size_t height = o->op.ptr.layerHeight ? o->op.ptr.layerHeight : j->height;
    if (o->type != CU_MEMCPY_OPERAND_TYPE_POINTER || pitch < j->width || height < j->height ||
        __builtin_mul_overflow(pitch, height, &out->slice))
        return CUDA_ERROR_INVALID_VALUE;
    out->at = o->op.ptr.ptr;
    out->pitch = pitch;
    return CUDA_SUCCESS;
}

static CUresult describe(const CUDA_MEMCPY3D_BATCH_OP *op, struct copy_job *j)
{
    const CUextent3D *e = &op->extent;
    size_t of_dst = unit_of(&op->dst), of_src = unit_of(&op->src), unit = of_dst > 1 ? of_dst : of_src;
    if (!e->width || !e->height || !e->depth || source_of(op->srcAccessOrder, &j->source) ||
        __builtin_mul_overflow(e->width, unit, &j->width))
        return CUDA_ERROR_INVALID_VALUE;
    j->height = e->height;
    j->depth = e->depth;
    CUresult r = operand(&op->dst, j, unit, &j->dst);
    return r ? r : operand(&op->src, j, unit, &j->src);
}

static CUresult batch_3d(size_t count, const CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail,
                         unsigned long long flags, CUstream stream, bool per_thread)
{
    struct CUstream_st *s;
    CUresult r = batch_stream(stream, per_thread, &s);
    if (fail)
        *fail = SIZE_MAX;
    if (!r && (!count || !ops || flags))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r)
        return r;
    struct copy_job *jobs = mem_zalloc(count, sizeof *jobs);
    if (!jobs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && !r; i++) {
        r = describe(&ops[i], &jobs[i]);
        if (r && fail)
            *fail = i;
    }
    if (!r)
        r = submit(jobs, count, fail, s);
    mem_free(jobs);
    return r;
}

COPY_CALL(cuMemcpy3DBatchAsync, _ptsz,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, size_t *fail, unsigned long long flags,
           CUstream stream),
          batch_3d(count, ops, fail, flags, stream, per_thread))
COPY_CALL(cuMemcpy3DBatchAsync_v2, _ptsz,
          (size_t count, CUDA_MEMCPY3D_BATCH_OP *ops, unsigned long long flags, CUstream stream),
          batch_3d(count, ops, NULL, flags, stream, per_thread))
