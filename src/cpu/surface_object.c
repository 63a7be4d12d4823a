// SPDX-License-Identifier: MIT
#include "cpu/array.h"

CUresult surface_object_describe(const CUDA_RESOURCE_DESC *resource, struct texture *out)
{
    *out = (struct texture){.surface = true, .array = true, .nlevels = 1, .as_integers = true};
    if (resource->resType != CU_RESOURCE_TYPE_ARRAY || resource->flags)
        return CUDA_ERROR_INVALID_VALUE;
    const struct CUarray_st *a = array_get(resource->res.array.hArray);
    if (!a)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!(a->desc.Flags & CUDA_ARRAY3D_SURFACE_LDST))
        return CUDA_ERROR_INVALID_VALUE;
    out->shape = a->shape;
    out->type = a->type;
    out->channels = (uint8_t)a->desc.NumChannels;
    out->element = (uint8_t)a->element;
    out->level[0] = a->level;
    return CUDA_SUCCESS;
}

CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource)
{
    struct texture_object o = {.surface = true};
    struct texture t;
    CUresult r = cpu_context_current(&o.ctx);
    if (r || !out || !resource)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = surface_object_describe(resource, &t);
    if (r)
        return r;
    o.resource = *resource;
    uint64_t handle;
    r = texture_object_add(&o, &t, &handle);
    if (!r)
        *out = handle;
    return r;
}

CUresult cuSurfObjectDestroy(CUsurfObject object)
{
    return texture_object_remove(object, true);
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject object)
{
    return texture_object_resource(object, true, out);
}
