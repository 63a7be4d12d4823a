// SPDX-License-Identifier: MIT
// Textures, surfaces and tensor maps: modes learn which ones there are.
#include "core/guard.h"
#include "hook/hook.h"
#include "launch/kernel_fault.h"
#include "mode/mode.h"

CUresult hook_cuTexObjectCreate(CUtexObject *object, const CUDA_RESOURCE_DESC *resource,
                                const CUDA_TEXTURE_DESC *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
    CUresult r = guard.real.cuTexObjectCreate(object, resource, texture, view);
    if (!r)
        mode_object(MODE_TEXTURE, *object, true);
    return kernel_fault_seen(r);
}

CUresult hook_cuTexObjectDestroy(CUtexObject object)
{
    mode_object(MODE_TEXTURE, object, false);
    CUresult r = guard.real.cuTexObjectDestroy(object);
    CUDA_RESOURCE_DESC is_there;
    if (r && !guard.real.cuTexObjectGetResourceDesc(&is_there, object))
        mode_object(MODE_TEXTURE, object, true);
    return kernel_fault_seen(r);
}

CUresult hook_cuSurfObjectCreate(CUsurfObject *object, const CUDA_RESOURCE_DESC *resource)
{
    CUresult r = guard.real.cuSurfObjectCreate(object, resource);
    if (!r)
        mode_object(MODE_SURFACE, *object, true);
    return kernel_fault_seen(r);
}

CUresult hook_cuSurfObjectDestroy(CUsurfObject object)
{
    mode_object(MODE_SURFACE, object, false);
    CUresult r = guard.real.cuSurfObjectDestroy(object);
    CUDA_RESOURCE_DESC is_there;
    if (r && !guard.real.cuSurfObjectGetResourceDesc(&is_there, object))
        mode_object(MODE_SURFACE, object, true);
    return kernel_fault_seen(r);
}

CUresult hook_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                     const cuuint32_t *box, const cuuint32_t *steps,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r = guard.real.cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box, steps,
                                                   interleave, swizzle, promotion, fill);
    const struct mode_tensor t = {type, rank, (uintptr_t)address, dims, strides, box, steps};
    if (!r)
        mode_tensor(map, &t);
    return r;
}

CUresult hook_cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
                                      void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                      const int *lower, const int *upper, cuuint32_t channels,
                                      cuuint32_t pixels, const cuuint32_t *steps,
                                      CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                      CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    CUresult r =
        guard.real.cuTensorMapEncodeIm2col(map, type, rank, address, dims, strides, lower, upper, channels,
                                           pixels, steps, interleave, swizzle, promotion, fill);
    const cuuint32_t box[5] = {channels, pixels, 1, 1, 1};
    const struct mode_tensor t = {type, rank, (uintptr_t)address, dims, strides, box, NULL};
    if (!r)
        mode_tensor(map, &t);
    return r;
}
