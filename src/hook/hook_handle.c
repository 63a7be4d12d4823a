// SPDX-License-Identifier: MIT
// Textures and surfaces: modes learn which ones there are.
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
