// SPDX-License-Identifier: MIT
// Mipmapped arrays: each level is an array of its own, half as large as the one before, rounded down.
#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/array.h"
#include "cpu/capture.h"

static size_t at_level(size_t size, unsigned level)
{
    return size ? size >> level ? size >> level : 1 : 0;
}

static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    size_t most = d->Width > d->Height ? d->Width : d->Height;
    if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > most)
        most = d->Depth;
    unsigned n = 1;
    while (most >>= 1)
        n++;
    return n < TEXTURE_LEVELS ? n : TEXTURE_LEVELS;
}

static CUresult fill(struct CUmipmappedArray_st *m, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    bool volume = !(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
    CUresult r = CUDA_SUCCESS;
    for (unsigned k = 0; k < m->nlevels && !r; k++) {
        CUDA_ARRAY3D_DESCRIPTOR one = *d;
        one.Width = at_level(d->Width, k);
        one.Height = at_level(d->Height, k);
        one.Depth = volume ? at_level(d->Depth, k) : d->Depth;
        r = array_describe(&m->levels[k], &one);
        if (!r)
            r = array_memory_alloc(&m->levels[k]);
    }
    return r;
}

static void forget(struct CUmipmappedArray_st *m)
{
    for (unsigned k = 0; k < m->nlevels; k++)
        array_memory_free(&m->levels[k]);
    mem_free(m);
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned int levels)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out || !d || !levels)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = capture_unsafe();
    if (r)
        return r;
    struct CUmipmappedArray_st *m = mem_zalloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    unsigned most = most_levels(d);
    m->nlevels = levels < most ? levels : most;
    r = fill(m, d);
    if (!r)
        r = array_register(&m->head, ARRAY_MIPMAP, ctx);
    if (r)
        forget(m);
    else
        *out = m;
    return r;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray m)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!array_is(m, ARRAY_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    r = array_wait(&m->head);
    if (r || !array_unregister(&m->head))
        return r;
    for (unsigned k = 0; k < m->nlevels; k++)
        array_unregister(&m->levels[k].head);
    forget(m);
    return CUDA_SUCCESS;
}

// The handle of a level is made when it is first requested.
CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray m, unsigned int level)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!array_is(m, ARRAY_MIPMAP))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!out || level >= m->nlevels)
        return CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    if (!array_is(&m->levels[level], ARRAY_LEVEL))
        r = array_register(&m->levels[level].head, ARRAY_LEVEL, m->head.ctx);
    mutex_unlock(&lock);
    if (!r)
        *out = &m->levels[level];
    return r;
}

static CUresult find(const void *out, CUmipmappedArray m)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : !array_is(m, ARRAY_MIPMAP) ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

// Both calls are about arrays without memory of their own, which the CPU device does not have.
CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray m)
{
    return find(out, m);
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray m,
                                               CUdevice device)
{
    return find(out, m);
}
