// SPDX-License-Identifier: MIT
// Arrays, with and without mipmaps, which have handles instead of addresses.
#include "hook/bounds.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "track/track.h"

static CUresult made(CUresult r, enum driver_id call, const void *handle, uint64_t bytes)
{
    if (!r && guard.watching)
        track_made(TRACK_ARRAY, call, (uintptr_t)handle, bytes);
    return r;
}

static uint64_t bytes_of(CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (!guard.real.cuArray3DGetDescriptor_v2 || guard.real.cuArray3DGetDescriptor_v2(&d, array))
        return 0;
    return (uint64_t)d.Width * (d.Height ? d.Height : 1) * (d.Depth ? d.Depth : 1) * d.NumChannels *
           driver_format_bytes(d.Format);
}

CUresult hook_cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
    CUresult r = guard.real.cuArrayCreate_v2(array, desc);
    if (hook_reclaim(r))
        r = guard.real.cuArrayCreate_v2(array, desc);
    return made(r, DRIVER_cuArrayCreate_v2, r ? NULL : *array, r ? 0 : bytes_of(*array));
}

CUresult hook_cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    CUresult r = guard.real.cuArray3DCreate_v2(array, desc);
    if (hook_reclaim(r))
        r = guard.real.cuArray3DCreate_v2(array, desc);
    return made(r, DRIVER_cuArray3DCreate_v2, r ? NULL : *array, r ? 0 : bytes_of(*array));
}

CUresult hook_cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *desc,
                                     unsigned levels)
{
    CUresult r = guard.real.cuMipmappedArrayCreate(array, desc, levels);
    if (hook_reclaim(r))
        r = guard.real.cuMipmappedArrayCreate(array, desc, levels);
    return made(r, DRIVER_cuMipmappedArrayCreate, r ? NULL : *array, 0);
}

// The driver dereferences the handle, so one that is known to be destroyed is not passed to it.
static bool destroyed_before(enum driver_id call, const void *handle)
{
    unsigned section = epoch_enter();
    bool again = !track_handle((uintptr_t)handle) && track_freed_handle((uintptr_t)handle);
    epoch_leave(section);
    if (again)
        bounds_bad_free(call, (uintptr_t)handle, TRACK_BY_ARRAY);
    return again;
}

#define DESTROY(symbol, type)                                                                            \
    CUresult hook_##symbol(type array)                                                                   \
    {                                                                                                    \
        if (guard.watching && destroyed_before(DRIVER_##symbol, array))                                  \
            return CUDA_ERROR_CONTEXT_IS_DESTROYED;                                                      \
        bool known = guard.watching && track_freeing((uintptr_t)array, TRACK_BY_ARRAY, DRIVER_##symbol); \
        CUresult r = guard.real.symbol(array);                                                           \
        if (r && known)                                                                                  \
            track_array_not_freed((uintptr_t)array);                                                     \
        return r;                                                                                        \
    }

// Arrays that belong to something else. They are not tracked; the handle may be one that a tracked array had.
#define PART(symbol, parameters, arguments)         \
    CUresult hook_##symbol parameters               \
    {                                               \
        CUresult r = guard.real.symbol arguments;   \
        if (!r && guard.watching)                   \
            track_array_foreign((uintptr_t)*array); \
        return r;                                   \
    }

PART(cuMipmappedArrayGetLevel, (CUarray * array, CUmipmappedArray whole, unsigned level),
     (array, whole, level))
PART(cuArrayGetPlane, (CUarray * array, CUarray whole, unsigned plane), (array, whole, plane))
PART(cuExternalMemoryGetMappedMipmappedArray,
     (CUmipmappedArray * array, CUexternalMemory memory,
      const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc),
     (array, memory, desc))
PART(cuGraphicsSubResourceGetMappedArray,
     (CUarray * array, CUgraphicsResource resource, unsigned index, unsigned level),
     (array, resource, index, level))
PART(cuGraphicsResourceGetMappedMipmappedArray, (CUmipmappedArray * array, CUgraphicsResource resource),
     (array, resource))

DESTROY(cuArrayDestroy, CUarray)
DESTROY(cuMipmappedArrayDestroy, CUmipmappedArray)
