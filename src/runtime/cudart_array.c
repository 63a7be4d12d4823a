// SPDX-License-Identifier: MIT
//
// Arrays, textures and surfaces.
#include "runtime/rt_channel.h"

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind)
{
    return (cudaChannelFormatDesc){x, y, z, w, kind};
}

static cudaError_t describe(CUDA_ARRAY3D_DESCRIPTOR *to, const cudaChannelFormatDesc *desc, cudaExtent extent,
                            unsigned flags)
{
    *to = (CUDA_ARRAY3D_DESCRIPTOR){
        .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags};
    return desc ? rt_channel_to_driver(desc, &to->Format, &to->NumChannels) : cudaErrorInvalidValue;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, cudaExtent extent,
                              unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR driver_desc;

    RT_ENTER();
    RT_REQUIRE(array);
    RT_TRY(describe(&driver_desc, desc, extent, flags));
    return RT_CALL(cuArray3DCreate_v2, array, &driver_desc);
}

cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *desc, size_t width,
                            size_t height, unsigned int flags)
{
    return cudaMalloc3DArray(array, desc, (cudaExtent){width, height, 0}, flags);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const cudaChannelFormatDesc *desc,
                                     cudaExtent extent, unsigned int levels, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR driver_desc;

    RT_ENTER();
    RT_REQUIRE(array);
    RT_TRY(describe(&driver_desc, desc, extent, flags));
    return RT_CALL(cuMipmappedArrayCreate, array, &driver_desc, levels);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
    RT_ENTER();
    return array ? RT_CALL(cuArrayDestroy, array) : cudaSuccess;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
    RT_ENTER();
    return array ? RT_CALL(cuMipmappedArrayDestroy, array) : cudaSuccess;
}

RT_THIN(cudaGetMipmappedArrayLevel,
        (cudaArray_t * level_array, cudaMipmappedArray_const_t array, unsigned int level),
        cuMipmappedArrayGetLevel, level_array, (CUmipmappedArray)(uintptr_t)array, level)
RT_THIN(cudaArrayGetPlane, (cudaArray_t * plane, cudaArray_t array, unsigned int index), cuArrayGetPlane,
        plane, array, index)
RT_THIN(cudaArrayGetSparseProperties, (cudaArraySparseProperties * properties, cudaArray_t array),
        cuArrayGetSparseProperties, properties, array)
RT_THIN(cudaMipmappedArrayGetSparseProperties,
        (cudaArraySparseProperties * properties, cudaMipmappedArray_t array),
        cuMipmappedArrayGetSparseProperties, properties, array)

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements *requirements, cudaArray_t array,
                                           int device)
{
    RT_TRY(rt_check_device(device));
    RT_ENTER();
    return RT_CALL(cuArrayGetMemoryRequirements, requirements, array, rt_device(device));
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements *requirements,
                                                    cudaMipmappedArray_t array, int device)
{
    RT_TRY(rt_check_device(device));
    RT_ENTER();
    return RT_CALL(cuMipmappedArrayGetMemoryRequirements, requirements, array, rt_device(device));
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc *desc, cudaExtent *extent, unsigned int *flags,
                             cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR found;

    RT_ENTER();
    RT_TRY(rt_error(RT_RAW(cuArray3DGetDescriptor_v2, &found, array)));
    if (desc)
        RT_TRY(rt_channel_from_driver(found.Format, found.NumChannels, desc));
    if (extent)
        *extent = (cudaExtent){found.Width, found.Height, found.Depth};
    if (flags)
        *flags = found.Flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    RT_REQUIRE(desc);
    return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)(uintptr_t)array);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *desc, int device)
{
    CUarray_format format;
    unsigned channels;

    RT_TRY(rt_check_device(device));
    RT_REQUIRE(width && desc);
    RT_TRY(rt_channel_to_driver(desc, &format, &channels));
    return RT_CALL(cuDeviceGetTexture1DLinearMaxWidth, width, format, channels, rt_device(device));
}

static cudaError_t resource_to_driver(CUDA_RESOURCE_DESC *to, const cudaResourceDesc *from)
{
    *to = (CUDA_RESOURCE_DESC){.resType = from->resType, .flags = from->flags};
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY: to->res.array.hArray = from->res.array.array; return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        to->res.mipmap.hMipmappedArray = from->res.mipmap.mipmap;
        return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
        to->res.linear.devPtr = rt_ptr(from->res.linear.devPtr);
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return rt_channel_to_driver(&from->res.linear.desc, &to->res.linear.format,
                                    &to->res.linear.numChannels);
    case CU_RESOURCE_TYPE_PITCH2D:
        to->res.pitch2D.devPtr = rt_ptr(from->res.pitch2D.devPtr);
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return rt_channel_to_driver(&from->res.pitch2D.desc, &to->res.pitch2D.format,
                                    &to->res.pitch2D.numChannels);
    default: return cudaErrorInvalidValue;
    }
}

static cudaError_t resource_from_driver(cudaResourceDesc *to, const CUDA_RESOURCE_DESC *from)
{
    *to = (cudaResourceDesc){.resType = from->resType, .flags = from->flags};
    switch (from->resType) {
    case CU_RESOURCE_TYPE_ARRAY: to->res.array.array = from->res.array.hArray; return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
        to->res.mipmap.mipmap = from->res.mipmap.hMipmappedArray;
        return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
        to->res.linear.devPtr = rt_host(from->res.linear.devPtr);
        to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
        return rt_channel_from_driver(from->res.linear.format, from->res.linear.numChannels,
                                      &to->res.linear.desc);
    case CU_RESOURCE_TYPE_PITCH2D:
        to->res.pitch2D.devPtr = rt_host(from->res.pitch2D.devPtr);
        to->res.pitch2D.width = from->res.pitch2D.width;
        to->res.pitch2D.height = from->res.pitch2D.height;
        to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
        return rt_channel_from_driver(from->res.pitch2D.format, from->res.pitch2D.numChannels,
                                      &to->res.pitch2D.desc);
    default: return cudaErrorInvalidValue;
    }
}

// Returns the format of the resource that a texture reads.
static cudaError_t resource_format(const CUDA_RESOURCE_DESC *resource, CUarray_format *format)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    CUarray array = resource->res.array.hArray;
    CUresult result = CUDA_SUCCESS;

    if (resource->resType == CU_RESOURCE_TYPE_LINEAR || resource->resType == CU_RESOURCE_TYPE_PITCH2D) {
        *format = resource->res.linear.format;  // both have it at the same place
        return cudaSuccess;
    }
    if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        result = RT_RAW(cuMipmappedArrayGetLevel, &array, resource->res.mipmap.hMipmappedArray, 0);
    if (!result)
        result = RT_RAW(cuArray3DGetDescriptor_v2, &desc, array);
    *format = desc.Format;
    return rt_error(result);
}

_Static_assert(offsetof(CUDA_RESOURCE_DESC, res.linear.format) ==
                   offsetof(CUDA_RESOURCE_DESC, res.pitch2D.format),
               "linear and pitched resources begin alike");

static bool is_integer(CUarray_format format)
{
    return format >= CU_AD_FORMAT_UNSIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32;
}

static cudaError_t texture_to_driver(CUDA_TEXTURE_DESC *to, const cudaTextureDesc *from,
                                     CUarray_format format)
{
    bool as_is = from->readMode == cudaReadModeElementType;

    if (as_is && is_integer(format) && from->filterMode == CU_TR_FILTER_MODE_LINEAR)
        return cudaErrorInvalidFilterSetting;
    if (!as_is && (format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32))
        return cudaErrorInvalidNormSetting;
    *to = (CUDA_TEXTURE_DESC){
        .filterMode = from->filterMode,
        .flags = (as_is && is_integer(format) ? CU_TRSF_READ_AS_INTEGER : 0) |
                 (from->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
                 (from->sRGB ? CU_TRSF_SRGB : 0) |
                 (from->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
                 (from->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0),
        .maxAnisotropy = from->maxAnisotropy,
        .mipmapFilterMode = from->mipmapFilterMode,
        .mipmapLevelBias = from->mipmapLevelBias,
        .minMipmapLevelClamp = from->minMipmapLevelClamp,
        .maxMipmapLevelClamp = from->maxMipmapLevelClamp,
    };
    for (int i = 0; i < 3; i++)
        to->addressMode[i] = from->addressMode[i];
    for (int i = 0; i < 4; i++)
        to->borderColor[i] = from->borderColor[i];
    return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const cudaResourceDesc *resource,
                                    const cudaTextureDesc *desc, const cudaResourceViewDesc *view)
{
    CUDA_RESOURCE_DESC driver_resource;
    CUDA_TEXTURE_DESC driver_desc;
    CUarray_format format;

    RT_ENTER();
    RT_REQUIRE(texture && resource && desc);
    RT_TRY(resource_to_driver(&driver_resource, resource));
    RT_TRY(resource_format(&driver_resource, &format));
    RT_TRY(texture_to_driver(&driver_desc, desc, format));
    return RT_CALL(cuTexObjectCreate, texture, &driver_resource, &driver_desc, view);
}

RT_THIN(cudaDestroyTextureObject, (cudaTextureObject_t texture), cuTexObjectDestroy, texture)
RT_THIN(cudaDestroySurfaceObject, (cudaSurfaceObject_t surface), cuSurfObjectDestroy, surface)
RT_THIN(cudaGetTextureObjectResourceViewDesc, (cudaResourceViewDesc * view, cudaTextureObject_t texture),
        cuTexObjectGetResourceViewDesc, view, texture)

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const cudaResourceDesc *resource)
{
    CUDA_RESOURCE_DESC driver_resource;

    RT_ENTER();
    RT_REQUIRE(surface && resource);
    RT_TRY(resource_to_driver(&driver_resource, resource));
    return RT_CALL(cuSurfObjectCreate, surface, &driver_resource);
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc *resource, cudaTextureObject_t texture)
{
    CUDA_RESOURCE_DESC found;

    RT_ENTER();
    RT_REQUIRE(resource);
    RT_TRY(rt_error(RT_RAW(cuTexObjectGetResourceDesc, &found, texture)));
    return rt_return(resource_from_driver(resource, &found));
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc *resource, cudaSurfaceObject_t surface)
{
    CUDA_RESOURCE_DESC found;

    RT_ENTER();
    RT_REQUIRE(resource);
    RT_TRY(rt_error(RT_RAW(cuSurfObjectGetResourceDesc, &found, surface)));
    return rt_return(resource_from_driver(resource, &found));
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc *desc, cudaTextureObject_t texture)
{
    CUDA_TEXTURE_DESC found;
    CUDA_RESOURCE_DESC resource;
    CUarray_format format;

    RT_ENTER();
    RT_REQUIRE(desc);
    RT_TRY(rt_error(RT_RAW(cuTexObjectGetTextureDesc, &found, texture)));
    RT_TRY(rt_error(RT_RAW(cuTexObjectGetResourceDesc, &resource, texture)));
    RT_TRY(resource_format(&resource, &format));
    *desc = (cudaTextureDesc){
        .filterMode = found.filterMode,
        .readMode = is_integer(format) && !(found.flags & CU_TRSF_READ_AS_INTEGER)
                        ? cudaReadModeNormalizedFloat
                        : cudaReadModeElementType,
        .sRGB = (found.flags & CU_TRSF_SRGB) != 0,
        .normalizedCoords = (found.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0,
        .maxAnisotropy = found.maxAnisotropy,
        .mipmapFilterMode = found.mipmapFilterMode,
        .mipmapLevelBias = found.mipmapLevelBias,
        .minMipmapLevelClamp = found.minMipmapLevelClamp,
        .maxMipmapLevelClamp = found.maxMipmapLevelClamp,
        .disableTrilinearOptimization = (found.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0,
        .seamlessCubemap = (found.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0,
    };
    for (int i = 0; i < 3; i++)
        desc->addressMode[i] = found.addressMode[i];
    for (int i = 0; i < 4; i++)
        desc->borderColor[i] = found.borderColor[i];
    return cudaSuccess;
}
