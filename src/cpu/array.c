// SPDX-License-Identifier: MIT
#include "cpu/array.h"

#include "base/mem.h"
#include "cpu/capture.h"

static void release(struct array_head *h)
{
    texture_remove(h->handle);
    if (h->kind == ARRAY_PLAIN)
        array_memory_free((struct CUarray_st *)h);
    if (h->kind == ARRAY_MIPMAP) {
        struct CUmipmappedArray_st *m = (struct CUmipmappedArray_st *)h;
        for (unsigned k = 0; k < m->nlevels; k++)
            array_memory_free(&m->levels[k]);
    }
    if (h->kind != ARRAY_LEVEL)
        mem_free(h);
}

void array_reference_free(uint64_t address)
{
    for (unsigned kind = ARRAY_TEXTURE_REF; kind <= ARRAY_SURFACE_REF; kind++) {
        struct array_head *h = array_reference((enum array_kind)kind, address);
        if (h && array_unregister(h))
            release(h);
    }
}

// Levels are newer than the mipmapped array they are part of, so they come first.
void array_context_free(struct CUctx_st *ctx)
{
    for (struct array_head *h; (h = array_of(ctx));)
        if (array_unregister(h))
            release(h);
    texture_object_context_free(ctx);
}

// --- descriptions ------------------------------------------------------------------------------------------

bool array_type(CUarray_format format, unsigned channels, uint8_t *type, unsigned *element)
{
    static const struct {
        CUarray_format format;
        uint8_t type, bytes;
    } rows[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, TEXTURE_U8, 1},   {CU_AD_FORMAT_SIGNED_INT8, TEXTURE_S8, 1},
        {CU_AD_FORMAT_UNSIGNED_INT16, TEXTURE_U16, 2}, {CU_AD_FORMAT_SIGNED_INT16, TEXTURE_S16, 2},
        {CU_AD_FORMAT_UNSIGNED_INT32, TEXTURE_U32, 4}, {CU_AD_FORMAT_SIGNED_INT32, TEXTURE_S32, 4},
        {CU_AD_FORMAT_HALF, TEXTURE_F16, 2},           {CU_AD_FORMAT_FLOAT, TEXTURE_F32, 4},
    };
    if (channels != 1 && channels != 2 && channels != 4)
        return false;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (rows[k].format == format) {
            *type = rows[k].type;
            *element = rows[k].bytes * channels;
            return true;
        }
    return false;
}

static bool within(const CUDA_ARRAY3D_DESCRIPTOR *d, CUdevice_attribute width, CUdevice_attribute height,
                   CUdevice_attribute depth)
{
    return d->Width <= (size_t)device_attribute(width) &&
           (!height || d->Height <= (size_t)device_attribute(height)) &&
           (!depth || d->Depth <= (size_t)device_attribute(depth));
}

#define LIMIT(name) CU_DEVICE_ATTRIBUTE_MAXIMUM_##name

// Returns whether a 3D array is within the limits; two of its extents may be larger where the third is
// smaller.
static bool fits_volume(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    return within(d, LIMIT(TEXTURE3D_WIDTH), LIMIT(TEXTURE3D_HEIGHT), LIMIT(TEXTURE3D_DEPTH)) ||
           within(d, LIMIT(TEXTURE3D_WIDTH_ALTERNATE), LIMIT(TEXTURE3D_HEIGHT_ALTERNATE),
                  LIMIT(TEXTURE3D_DEPTH_ALTERNATE));
}

static bool shape_of(const CUDA_ARRAY3D_DESCRIPTOR *d, uint8_t *shape)
{
    bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
    if (!d->Width)
        return false;
    if (cube) {
        *shape = layered ? TEXTURE_ACUBE : TEXTURE_CUBE;
        return d->Width == d->Height && d->Depth && (layered ? d->Depth % 6 == 0 : d->Depth == 6) &&
               within(d, LIMIT(TEXTURECUBEMAP_WIDTH), 0, LIMIT(TEXTURECUBEMAP_LAYERED_LAYERS));
    }
    if (layered) {
        *shape = d->Height ? TEXTURE_A2D : TEXTURE_A1D;
        return d->Depth &&
               (d->Height ? within(d, LIMIT(TEXTURE2D_LAYERED_WIDTH), LIMIT(TEXTURE2D_LAYERED_HEIGHT),
                                   LIMIT(TEXTURE2D_LAYERED_LAYERS))
                          : within(d, LIMIT(TEXTURE1D_LAYERED_WIDTH), 0, LIMIT(TEXTURE1D_LAYERED_LAYERS)));
    }
    if (d->Depth) {
        *shape = TEXTURE_3D;
        return d->Height && fits_volume(d);
    }
    *shape = d->Height ? TEXTURE_2D : TEXTURE_1D;
    return d->Height ? within(d, LIMIT(TEXTURE2D_WIDTH), LIMIT(TEXTURE2D_HEIGHT), 0)
                     : within(d, LIMIT(TEXTURE1D_WIDTH), 0, 0);
}

CUresult array_describe(struct CUarray_st *a, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    const unsigned known = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP |
                           CUDA_ARRAY3D_TEXTURE_GATHER | CUDA_ARRAY3D_COLOR_ATTACHMENT;
    if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return not_supported_notify("an array without memory of its own");
    if (d->Flags & ~known || !array_type(d->Format, d->NumChannels, &a->type, &a->element) ||
        !shape_of(d, &a->shape) || (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && a->shape != TEXTURE_2D))
        return CUDA_ERROR_INVALID_VALUE;
    a->desc = *d;
    struct texture_level *l = &a->level;
    l->width = (uint32_t)d->Width;
    l->height = (uint32_t)(d->Height ? d->Height : 1);
    l->slices = (uint32_t)(d->Depth ? d->Depth : 1);
    l->pitch = (uint64_t)l->width * a->element;
    l->slice = l->pitch * l->height;
    a->size = l->slice * l->slices;
    return a->size > device_memory() ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult array_memory_alloc(struct CUarray_st *a)
{
    a->level.at = memory_internal_alloc(a->size, 512);
    return a->level.at ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void array_memory_free(struct CUarray_st *a)
{
    if (!a->level.at)
        return;
    texture_lose(a->level.at, a->size);
    memory_internal_free(a->level.at);
    a->level.at = 0;
}

// --- calls -------------------------------------------------------------------------------------------------

static CUresult create(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (!r)
        r = capture_unsafe();
    if (r)
        return r;
    struct CUarray_st *a = mem_zalloc(1, sizeof *a);
    if (!a)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = array_describe(a, d);
    if (!r)
        r = array_memory_alloc(a);
    if (!r)
        r = array_register(&a->head, ARRAY_PLAIN, ctx);
    if (r) {
        array_memory_free(a);
        mem_free(a);
        return r;
    }
    *out = a;
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : out && d ? create(out, d) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
    if (!d)
        return cuArray3DCreate_v2(out, NULL);
    CUDA_ARRAY3D_DESCRIPTOR wide = {
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return cuArray3DCreate_v2(out, &wide);
}

CUresult cuArray3DCreate(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR_v1 *d)
{
    if (!d)
        return cuArray3DCreate_v2(out, NULL);
    CUDA_ARRAY3D_DESCRIPTOR wide = {.Width = d->Width,
                                    .Height = d->Height,
                                    .Depth = d->Depth,
                                    .Format = d->Format,
                                    .NumChannels = d->NumChannels,
                                    .Flags = d->Flags};
    return cuArray3DCreate_v2(out, &wide);
}

CUresult cuArrayCreate(CUarray *out, const CUDA_ARRAY_DESCRIPTOR_v1 *d)
{
    if (!d)
        return cuArray3DCreate_v2(out, NULL);
    CUDA_ARRAY3D_DESCRIPTOR wide = {
        .Width = d->Width, .Height = d->Height, .Format = d->Format, .NumChannels = d->NumChannels};
    return cuArray3DCreate_v2(out, &wide);
}

CUresult array_wait(const struct array_head *h)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (!r)
        r = capture_unsafe();
    if (!r)
        r = cpu_context_wait(ctx);
    if (!r && h->ctx != ctx)
        r = cpu_context_wait(h->ctx);
    return r;
}

CUresult cuArrayDestroy(CUarray array)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    // A level is destroyed with its mipmapped array only.
    if (!array_is(array, ARRAY_PLAIN))
        return CUDA_ERROR_INVALID_HANDLE;
    r = array_wait(&array->head);
    if (!r && array_unregister(&array->head))
        release(&array->head);
    return r;
}

static CUresult find(const void *out, CUarray handle, struct CUarray_st **array)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    *array = array_get(handle);
    return !*array ? CUDA_ERROR_INVALID_HANDLE : !out ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray handle)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    if (!r)
        *out = a->desc;
    return r;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray handle)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    if (!r)
        *out = (CUDA_ARRAY_DESCRIPTOR){a->desc.Width, a->desc.Height, a->desc.Format, a->desc.NumChannels};
    return r;
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *out, CUarray handle)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    if (!r)
        *out = (CUDA_ARRAY3D_DESCRIPTOR_v1){(unsigned)a->desc.Width, (unsigned)a->desc.Height,
                                            (unsigned)a->desc.Depth, a->desc.Format,
                                            a->desc.NumChannels,     a->desc.Flags};
    return r;
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *out, CUarray handle)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    if (!r)
        *out = (CUDA_ARRAY_DESCRIPTOR_v1){(unsigned)a->desc.Width, (unsigned)a->desc.Height, a->desc.Format,
                                          a->desc.NumChannels};
    return r;
}

// These queries are about sparse and multi-planar arrays, which the CPU device does not have.
CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray handle)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetPlane(CUarray *out, CUarray handle, unsigned int plane)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle, CUdevice device)
{
    struct CUarray_st *a;
    CUresult r = find(out, handle, &a);
    if (!r)
        r = device_check(device);
    return r ? r : CUDA_ERROR_INVALID_VALUE;
}
