// SPDX-License-Identifier: MIT
// Copies to and from arrays: where their rows lie, and the calls that count bytes from an array's start.
#include "cpu/array.h"
#include "cpu/copy.h"

static bool reaches(size_t from, size_t n, size_t size)
{
    return from <= size && n <= size - from;
}

CUresult copy_array_side(struct CUarray_st *handle, size_t x, size_t y, size_t z, const struct copy_job *j,
                         struct copy_side *out)
{
    const struct CUarray_st *a = array_get(handle);
    if (!a)
        return handle ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    const struct texture_level *l = &a->level;
    if (!reaches(x, j->width, l->pitch) || !reaches(y, j->height, l->height) ||
        !reaches(z, j->depth, l->slices) || x % a->element || j->width % a->element)
        return CUDA_ERROR_INVALID_VALUE;
    *out = (struct copy_side){
        .at = l->at + z * l->slice + y * l->pitch + x,
        .pitch = l->pitch,
        .slice = l->slice,
        .known = true,
        .where = MEMORY_ON_DEVICE,
        .array = handle,
        .x = x,
        .y = y,
        .z = z,
    };
    return CUDA_SUCCESS;
}

// --- one row -----------------------------------------------------------------------------------------------

static CUresult array_end(CUarray array, size_t at, const struct copy_job *j, struct copy_side *out)
{
    return copy_array_side(array, at, 0, 0, j, out);
}

static struct copy_side memory_end(uint64_t at, size_t size, bool device)
{
    return (struct copy_side){.at = at, .pitch = size, .slice = size, .known = device};
}

static CUresult to_array(CUarray dst, size_t at, uint64_t src, bool device, size_t size, CUstream stream,
                         bool per_thread, bool async)
{
    struct copy_job j = {.src = memory_end(src, size, device), .width = size, .height = 1, .depth = 1};
    CUresult r = array_end(dst, at, &j, &j.dst);
    return r ? r : copy_run(&j, stream, per_thread, async);
}

static CUresult from_array(uint64_t dst, bool device, CUarray src, size_t at, size_t size, CUstream stream,
                           bool per_thread, bool async)
{
    struct copy_job j = {.dst = memory_end(dst, size, device), .width = size, .height = 1, .depth = 1};
    CUresult r = array_end(src, at, &j, &j.src);
    return r ? r : copy_run(&j, stream, per_thread, async);
}

static CUresult between(CUarray dst, size_t to, CUarray src, size_t from, size_t size, bool per_thread)
{
    struct copy_job j = {.width = size, .height = 1, .depth = 1};
    CUresult r = array_end(dst, to, &j, &j.dst);
    if (!r)
        r = array_end(src, from, &j, &j.src);
    return r ? r : copy_run(&j, NULL, per_thread, false);
}

COPY_CALL(cuMemcpyHtoA_v2, _ptds, (CUarray dst, size_t at, const void *src, size_t size),
          to_array(dst, at, (uintptr_t)src, false, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyDtoA_v2, _ptds, (CUarray dst, size_t at, CUdeviceptr src, size_t size),
          to_array(dst, at, src, true, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyAtoH_v2, _ptds, (void *dst, CUarray src, size_t at, size_t size),
          from_array((uintptr_t)dst, false, src, at, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dst, CUarray src, size_t at, size_t size),
          from_array(dst, true, src, at, size, NULL, per_thread, false))
COPY_CALL(cuMemcpyAtoA_v2, _ptds, (CUarray dst, size_t to, CUarray src, size_t from, size_t size),
          between(dst, to, src, from, size, per_thread))
COPY_CALL(cuMemcpyHtoAAsync_v2, _ptsz,
          (CUarray dst, size_t at, const void *src, size_t size, CUstream stream),
          to_array(dst, at, (uintptr_t)src, false, size, stream, per_thread, true))
COPY_CALL(cuMemcpyAtoHAsync_v2, _ptsz, (void *dst, CUarray src, size_t at, size_t size, CUstream stream),
          from_array((uintptr_t)dst, false, src, at, size, stream, per_thread, true))
