// SPDX-License-Identifier: MIT
// Texture objects, and the list of all texture and surface objects, by number of the handle.
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "base/vec.h"
#include "cpu/array.h"
#include "cpu/memory.h"
#include "exec/space.h"

// --- descriptions ------------------------------------------------------------------------------------------

static bool attribute_allows(size_t value, CUdevice_attribute a)
{
    return value <= (size_t)device_attribute(a);
}

static bool aligned(uint64_t value, CUdevice_attribute a)
{
    return value % (uint64_t)device_attribute(a) == 0;
}

// Returns whether the range is memory of the application that kernels may read.
static bool readable(uint64_t at, uint64_t size)
{
    enum memory_where where = memory_block_check(at, size, SPACE_READ);
    return where != MEMORY_BAD && where != MEMORY_UNKNOWN;
}

static CUresult take_linear(const CUDA_RESOURCE_DESC *r, struct texture *t)
{
    unsigned element;
    if (!array_type(r->res.linear.format, r->res.linear.numChannels, &t->type, &element))
        return CUDA_ERROR_INVALID_VALUE;
    size_t width = r->res.linear.sizeInBytes / element;
    if (!width || !attribute_allows(width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH) ||
        !aligned(r->res.linear.devPtr, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) ||
        !readable(r->res.linear.devPtr, width * element))
        return CUDA_ERROR_INVALID_VALUE;
    t->shape = TEXTURE_LINEAR;
    t->channels = (uint8_t)r->res.linear.numChannels;
    t->element = (uint8_t)element;
    t->level[0] = (struct texture_level){
        .at = r->res.linear.devPtr, .width = (uint32_t)width, .height = 1, .slices = 1};
    return CUDA_SUCCESS;
}

static CUresult take_pitched(const CUDA_RESOURCE_DESC *r, struct texture *t)
{
    unsigned element;
    size_t width = r->res.pitch2D.width, height = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
    if (!array_type(r->res.pitch2D.format, r->res.pitch2D.numChannels, &t->type, &element))
        return CUDA_ERROR_INVALID_VALUE;
    if (!width || !height || !attribute_allows(width, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) ||
        !attribute_allows(height, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT) ||
        !attribute_allows(pitch, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH) ||
        pitch < width * element || !aligned(r->res.pitch2D.devPtr, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) ||
        !aligned(pitch, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) ||
        !readable(r->res.pitch2D.devPtr, (height - 1) * pitch + width * element))
        return CUDA_ERROR_INVALID_VALUE;
    t->shape = TEXTURE_2D;
    t->channels = (uint8_t)r->res.pitch2D.numChannels;
    t->element = (uint8_t)element;
    t->level[0] = (struct texture_level){.at = r->res.pitch2D.devPtr,
                                         .width = (uint32_t)width,
                                         .height = (uint32_t)height,
                                         .slices = 1,
                                         .pitch = pitch};
    return CUDA_SUCCESS;
}

static void take_array(const struct CUarray_st *a, struct texture *t)
{
    t->shape = a->shape;
    t->type = a->type;
    t->channels = (uint8_t)a->desc.NumChannels;
    t->element = (uint8_t)a->element;
    t->array = true;
    t->level[0] = a->level;
}

static CUresult take_resource(const CUDA_RESOURCE_DESC *r, struct texture *t)
{
    t->nlevels = 1;
    if (r->flags)
        return CUDA_ERROR_INVALID_VALUE;
    switch (r->resType) {
    case CU_RESOURCE_TYPE_ARRAY: {
        const struct CUarray_st *a = array_get(r->res.array.hArray);
        if (a)
            take_array(a, t);
        return a ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
        const struct CUmipmappedArray_st *m = r->res.mipmap.hMipmappedArray;
        if (!array_is(m, ARRAY_MIPMAP))
            return CUDA_ERROR_INVALID_HANDLE;
        take_array(&m->levels[0], t);
        t->nlevels = (uint8_t)m->nlevels;
        for (unsigned k = 0; k < m->nlevels; k++)
            t->level[k] = m->levels[k].level;
        return CUDA_SUCCESS;
    }
    case CU_RESOURCE_TYPE_LINEAR: return take_linear(r, t);
    case CU_RESOURCE_TYPE_PITCH2D: return take_pitched(r, t);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

// --- views -------------------------------------------------------------------------------------------------

static bool view_type(CUresourceViewFormat f, uint8_t *type, unsigned *channels)
{
    static const uint8_t types[] = {TEXTURE_U8,  TEXTURE_S8,  TEXTURE_U16, TEXTURE_S16,
                                    TEXTURE_U32, TEXTURE_S32, TEXTURE_F16, TEXTURE_F32};
    if (f < CU_RES_VIEW_FORMAT_UINT_1X8 || f > CU_RES_VIEW_FORMAT_FLOAT_4X32)
        return false;
    unsigned k = (unsigned)f - CU_RES_VIEW_FORMAT_UINT_1X8;
    *type = types[k / 3];
    *channels = 1u << k % 3;
    return true;
}

static unsigned type_bytes(uint8_t type)
{
    return type <= TEXTURE_S8 ? 1 : type <= TEXTURE_S16 || type == TEXTURE_F16 ? 2 : 4;
}

// Applies a view: another format of the same size, and fewer levels and layers.
static CUresult take_view(const CUDA_RESOURCE_VIEW_DESC *v, struct texture *t)
{
    uint8_t type = t->type;
    unsigned channels = t->channels;
    const struct texture_level *l = &t->level[0];
    bool deep = t->shape != TEXTURE_1D && t->shape != TEXTURE_2D;
    if (!t->array || (v->format != CU_RES_VIEW_FORMAT_NONE && !view_type(v->format, &type, &channels)) ||
        type_bytes(type) * channels != t->element || v->width != l->width ||
        (v->height ? v->height : 1) != l->height || v->depth != (deep ? l->slices : 0) ||
        v->firstMipmapLevel > v->lastMipmapLevel || v->lastMipmapLevel >= t->nlevels ||
        v->firstLayer > v->lastLayer || v->lastLayer >= l->slices)
        return CUDA_ERROR_INVALID_VALUE;
    t->type = type;
    t->channels = (uint8_t)channels;
    t->nlevels = (uint8_t)(v->lastMipmapLevel - v->firstMipmapLevel + 1);
    memmove(t->level, t->level + v->firstMipmapLevel, t->nlevels * sizeof *t->level);
    if (t->shape >= TEXTURE_A1D)
        for (unsigned k = 0; k < t->nlevels; k++) {
            t->level[k].at += v->firstLayer * t->level[k].slice;
            t->level[k].slices = v->lastLayer - v->firstLayer + 1;
        }
    return CUDA_SUCCESS;
}

// --- sampling ----------------------------------------------------------------------------------------------

static bool is_integer(uint8_t type)
{
    return type <= TEXTURE_S32;
}

static CUresult take_desc(const CUDA_TEXTURE_DESC *d, struct texture *t)
{
    const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
                           CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
    if (d->flags & ~known || (unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR ||
        (unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    t->normalized = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
    t->as_integers = t->type == TEXTURE_U32 || t->type == TEXTURE_S32 ||
                     (is_integer(t->type) && d->flags & CU_TRSF_READ_AS_INTEGER);
    t->srgb = d->flags & CU_TRSF_SRGB;
    t->seamless = d->flags & CU_TRSF_SEAMLESS_CUBEMAP;
    t->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
    t->linear_levels = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
    t->anisotropy = (uint8_t)(d->maxAnisotropy < 16 ? d->maxAnisotropy : 16);
    t->bias = d->mipmapLevelBias;
    t->least = d->minMipmapLevelClamp;
    t->most = d->maxMipmapLevelClamp;
    memcpy(t->border, d->borderColor, sizeof t->border);
    if (t->linear && t->as_integers)
        return CUDA_ERROR_INVALID_VALUE;
    if (t->nlevels > 1 && !t->normalized)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned k = 0; k < 3; k++) {
        if ((unsigned)d->addressMode[k] > CU_TR_ADDRESS_MODE_BORDER)
            return CUDA_ERROR_INVALID_VALUE;
        // Without normalised coordinates nothing can wrap.
        bool repeats =
            d->addressMode[k] == CU_TR_ADDRESS_MODE_WRAP || d->addressMode[k] == CU_TR_ADDRESS_MODE_MIRROR;
        t->mode[k] = (uint8_t)(repeats && !t->normalized ? TEXTURE_CLAMP : (unsigned)d->addressMode[k]);
    }
    return CUDA_SUCCESS;
}

CUresult texture_object_describe(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *desc,
                                 const CUDA_RESOURCE_VIEW_DESC *view, struct texture *out)
{
    *out = (struct texture){0};
    CUresult r = take_resource(resource, out);
    if (!r && view)
        r = take_view(view, out);
    return r ? r : take_desc(desc, out);
}

// --- the list ----------------------------------------------------------------------------------------------

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // rank: inside a context's lock
static struct texture_object *buckets[256];

static struct texture_object **bucket(uint64_t handle)
{
    return &buckets[handle % (sizeof buckets / sizeof *buckets)];
}

CUresult texture_object_add(const struct texture_object *o, const struct texture *t, uint64_t *out)
{
    struct texture_object *kept = mem_alloc(sizeof *kept);
    if (!kept)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *kept = *o;
    kept->handle = texture_add(t);
    if (!kept->handle) {
        mem_free(kept);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    mutex_lock(&lock);
    struct texture_object **at = bucket(kept->handle);
    kept->next = *at;
    *at = kept;
    mutex_unlock(&lock);
    *out = kept->handle;
    return CUDA_SUCCESS;
}

static struct texture_object **find(uint64_t handle, bool surface)
{
    struct texture_object **at = bucket(handle);
    while (*at && ((*at)->handle != handle || (*at)->surface != surface))
        at = &(*at)->next;
    return at;
}

CUresult texture_object_find(uint64_t handle, bool surface, struct texture_object *out)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    mutex_lock(&lock);
    struct texture_object **at = find(handle, surface);
    if (*at)
        *out = **at;
    r = *at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    mutex_unlock(&lock);
    return r;
}

static void drop(struct texture_object **at)
{
    struct texture_object *o = *at;
    *at = o->next;
    texture_remove(o->handle);
    mem_free(o);
}

CUresult texture_object_remove(uint64_t handle, bool surface)
{
    struct texture_object o;
    CUresult r = texture_object_find(handle, surface, &o);
    // Kernels that use the texture run to their end.
    if (!r)
        r = cpu_context_wait(o.ctx);
    if (r)
        return r;
    mutex_lock(&lock);
    struct texture_object **at = find(handle, surface);
    if (*at)
        drop(at);
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

void texture_object_context_free(struct CUctx_st *ctx)
{
    mutex_lock(&lock);
    for (size_t k = 0; k < sizeof buckets / sizeof *buckets; k++)
        for (struct texture_object **at = &buckets[k]; *at;)
            if ((*at)->ctx == ctx)
                drop(at);
            else
                at = &(*at)->next;
    mutex_unlock(&lock);
}

// --- calls -------------------------------------------------------------------------------------------------

CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource,
                           const CUDA_TEXTURE_DESC *desc, const CUDA_RESOURCE_VIEW_DESC *view)
{
    struct texture_object o = {0};
    struct texture t;
    CUresult r = cpu_context_current(&o.ctx);
    if (r || !out || !resource || !desc)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = texture_object_describe(resource, desc, view, &t);
    if (r)
        return r;
    o.resource = *resource;
    o.desc = *desc;
    o.has_view = view;
    if (view)
        o.view = *view;
    uint64_t handle;
    r = texture_object_add(&o, &t, &handle);
    if (!r)
        *out = handle;
    return r;
}

CUresult cuTexObjectDestroy(CUtexObject object)
{
    return texture_object_remove(object, false);
}

CUresult texture_object_resource(uint64_t handle, bool surface, CUDA_RESOURCE_DESC *out)
{
    struct texture_object o;
    CUresult r = texture_object_find(handle, surface, &o);
    if (!r && out)
        *out = o.resource;
    return r ? r : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject object)
{
    return texture_object_resource(object, false, out);
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject object)
{
    struct texture_object o;
    CUresult r = texture_object_find(object, false, &o);
    if (!r && out)
        *out = o.desc;
    return r ? r : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject object)
{
    struct texture_object o;
    CUresult r = texture_object_find(object, false, &o);
    if (r || !out || !o.has_view)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = o.view;
    return CUDA_SUCCESS;
}
