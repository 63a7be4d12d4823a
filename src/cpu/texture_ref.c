// SPDX-License-Identifier: MIT
// References of modules to textures and surfaces, as programs before CUDA 5 use them. A module's reference is
// a variable that holds a handle; every change of its settings makes a new texture, after earlier work has
// ended.
#include <string.h>

#include "base/mem.h"
#include "cpu/array.h"
#include "cpu/module.h"
#include "exec/space.h"

struct CUtexref_st {
    struct array_head head;
    bool bound;
    CUDA_RESOURCE_DESC resource;
    CUDA_TEXTURE_DESC desc;
    CUarray_format format;  // of linear memory
    unsigned channels;
};

struct CUsurfref_st {
    struct array_head head;
    CUarray array;
};

static CUresult texref(CUtexref r)
{
    struct CUctx_st *ctx;
    CUresult error = cpu_context_current(&ctx);
    return error ? error : array_is(r, ARRAY_TEXTURE_REF) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Stores a new handle in the module's variable and removes the old texture. Earlier work must have ended.
static void publish(struct array_head *h, uint64_t handle)
{
    if (h->reference)
        memcpy(space_host(h->reference), &handle, sizeof handle);
    texture_remove(h->handle);
    h->handle = handle;
}

// Makes the texture anew, if something is bound.
static CUresult update(CUtexref r)
{
    struct texture t;
    uint64_t handle = 0;
    CUresult error = cpu_context_wait(r->head.ctx);
    if (!error && r->bound)
        error = texture_object_describe(&r->resource, &r->desc, NULL, &t);
    if (error)
        return error;
    if (r->bound && !(handle = texture_add(&t)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    publish(&r->head, handle);
    return CUDA_SUCCESS;
}

static CUresult new_texref(struct CUctx_st *ctx, uint64_t address, CUtexref *out)
{
    struct CUtexref_st *r = mem_zalloc(1, sizeof *r);
    if (!r)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r->head.reference = address;
    r->format = CU_AD_FORMAT_FLOAT;
    r->channels = 1;
    r->desc.maxMipmapLevelClamp = 1000;
    for (unsigned k = 0; k < 3; k++)
        r->desc.addressMode[k] = CU_TR_ADDRESS_MODE_CLAMP;
    CUresult error = array_register(&r->head, ARRAY_TEXTURE_REF, ctx);
    if (error)
        mem_free(r);
    else
        *out = r;
    return error;
}

// --- references of modules ---------------------------------------------------------------------------------

static CUresult find(CUmodule m, const char *name, void *out, enum exec_variable_kind kind, uint64_t *address)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!handle_is(m, HANDLE_MODULE))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || !out)
        return CUDA_ERROR_INVALID_VALUE;
    const struct exec_variable *v = exec_find_reference(m->program, str_from(name));
    *address = v ? v->address : 0;
    return v && v->kind == kind ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// A module's reference is freed with the module.
CUresult cuModuleGetTexRef(CUtexref *out, CUmodule m, const char *name)
{
    uint64_t address;
    CUresult r = find(m, name, out, EXEC_TEXREF, &address);
    if (r)
        return r;
    struct array_head *known = array_reference(ARRAY_TEXTURE_REF, address);
    if (known) {
        *out = (CUtexref)known;
        return CUDA_SUCCESS;
    }
    return new_texref(m->ctx, address, out);
}

CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule m, const char *name)
{
    uint64_t address;
    CUresult r = find(m, name, out, EXEC_SURFREF, &address);
    if (r)
        return r;
    struct CUsurfref_st *s = (struct CUsurfref_st *)array_reference(ARRAY_SURFACE_REF, address);
    if (!s) {
        s = mem_zalloc(1, sizeof *s);
        if (!s)
            return CUDA_ERROR_OUT_OF_MEMORY;
        s->head.reference = address;
        r = array_register(&s->head, ARRAY_SURFACE_REF, m->ctx);
    }
    if (r)
        mem_free(s);
    else
        *out = s;
    return r;
}

CUresult cuTexRefCreate(CUtexref *out)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : out ? new_texref(ctx, 0, out) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexRefDestroy(CUtexref r)
{
    CUresult error = texref(r);
    // A module's reference can only be freed with the module.
    if (error || r->head.reference)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    texture_remove(r->head.handle);
    if (array_unregister(&r->head))
        mem_free(r);
    return CUDA_SUCCESS;
}

CUresult cuSurfRefSetArray(CUsurfref s, CUarray array, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    if (!array_is(s, ARRAY_SURFACE_REF) || flags)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    struct texture t;
    r = surface_object_describe(&resource, &t);
    if (!r)
        r = cpu_context_wait(s->head.ctx);
    if (r)
        return r;
    uint64_t handle = texture_add(&t);
    if (!handle)
        return CUDA_ERROR_OUT_OF_MEMORY;
    publish(&s->head, handle);
    s->array = array;
    return CUDA_SUCCESS;
}

CUresult cuSurfRefGetArray(CUarray *out, CUsurfref s)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out || !array_is(s, ARRAY_SURFACE_REF) || !s->array)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = s->array;
    return CUDA_SUCCESS;
}

// --- binding -----------------------------------------------------------------------------------------------

// Binds a resource. An unsuitable resource leaves the reference as it was.
static CUresult bind(CUtexref r, const CUDA_RESOURCE_DESC *resource)
{
    CUDA_RESOURCE_DESC before = r->resource;
    bool bound = r->bound;
    r->resource = *resource;
    r->bound = true;
    CUresult error = update(r);
    if (error) {
        r->resource = before;
        r->bound = bound;
    }
    return error;
}

CUresult cuTexRefSetArray(CUtexref r, CUarray array, unsigned int flags)
{
    CUresult error = texref(r);
    struct CUarray_st *a = error ? NULL : array_get(array);
    if (error || !a || flags != CU_TRSA_OVERRIDE_FORMAT)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
    r->format = a->desc.Format;
    r->channels = a->desc.NumChannels;
    return bind(r, &d);
}

CUresult cuTexRefSetMipmappedArray(CUtexref r, CUmipmappedArray array, unsigned int flags)
{
    CUresult error = texref(r);
    if (error || !array_is(array, ARRAY_MIPMAP) || flags != CU_TRSA_OVERRIDE_FORMAT)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .res.mipmap.hMipmappedArray = array};
    return bind(r, &d);
}

// *offset receives the distance from the aligned address before `at`, in bytes.
CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref r, CUdeviceptr at, size_t size)
{
    CUresult error = texref(r);
    if (error)
        return error;
    size_t behind = at % (size_t)device_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT);
    if (behind && !offset)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_LINEAR};
    d.res.linear.devPtr = at - behind;
    d.res.linear.format = r->format;
    d.res.linear.numChannels = r->channels;
    d.res.linear.sizeInBytes = size + behind;
    error = bind(r, &d);
    if (!error && offset)
        *offset = behind;
    return error;
}

CUresult cuTexRefSetAddress2D_v3(CUtexref r, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr at, size_t pitch)
{
    CUresult error = texref(r);
    if (error || !desc)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_PITCH2D};
    d.res.pitch2D.devPtr = at;
    d.res.pitch2D.format = desc->Format;
    d.res.pitch2D.numChannels = desc->NumChannels;
    d.res.pitch2D.width = desc->Width;
    d.res.pitch2D.height = desc->Height;
    d.res.pitch2D.pitchInBytes = pitch;
    return bind(r, &d);
}

CUresult cuTexRefSetAddress2D_v2(CUtexref r, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr at, size_t pitch)
{
    return cuTexRefSetAddress2D_v3(r, desc, at, pitch);
}

static CUresult resource_is(CUtexref r, const void *out, CUresourcetype type)
{
    CUresult error = texref(r);
    return error                                            ? error
           : out && r->bound && r->resource.resType == type ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexRefGetArray(CUarray *out, CUtexref r)
{
    CUresult error = resource_is(r, out, CU_RESOURCE_TYPE_ARRAY);
    if (!error)
        *out = r->resource.res.array.hArray;
    return error;
}

CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *out, CUtexref r)
{
    CUresult error = resource_is(r, out, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
    if (!error)
        *out = r->resource.res.mipmap.hMipmappedArray;
    return error;
}

CUresult cuTexRefGetAddress_v2(CUdeviceptr *out, CUtexref r)
{
    CUresult error = texref(r);
    if (error || !out || !r->bound || r->resource.resType < CU_RESOURCE_TYPE_LINEAR)
        return error ? error : CUDA_ERROR_INVALID_VALUE;
    *out = r->resource.res.linear.devPtr;
    return CUDA_SUCCESS;
}

// --- sampling ----------------------------------------------------------------------------------------------

// Defines a call that sets part of a description; an invalid setting is undone.
#define SETTER(name, parameters, valid, ...)                 \
    CUresult name parameters                                 \
    {                                                        \
        CUresult error = texref(r);                          \
        if (error || !(valid))                               \
            return error ? error : CUDA_ERROR_INVALID_VALUE; \
        struct CUtexref_st before = *r;                      \
        __VA_ARGS__;                                         \
        error = update(r);                                   \
        if (error) {                                         \
            r->desc = before.desc;                           \
            r->format = before.format;                       \
            r->channels = before.channels;                   \
        }                                                    \
        return error;                                        \
    }

// Defines a call that returns part of a description.
#define GETTER(name, parameters, valid, ...)                 \
    CUresult name parameters                                 \
    {                                                        \
        CUresult error = texref(r);                          \
        if (error || !(valid))                               \
            return error ? error : CUDA_ERROR_INVALID_VALUE; \
        __VA_ARGS__;                                         \
        return CUDA_SUCCESS;                                 \
    }

SETTER(cuTexRefSetAddressMode, (CUtexref r, int axis, CUaddress_mode mode),
       axis >= 0 && axis < 3 && (unsigned)mode <= CU_TR_ADDRESS_MODE_BORDER, r->desc.addressMode[axis] = mode)
SETTER(cuTexRefSetFilterMode, (CUtexref r, CUfilter_mode mode), (unsigned)mode <= CU_TR_FILTER_MODE_LINEAR,
       r->desc.filterMode = mode)
SETTER(cuTexRefSetFlags, (CUtexref r, unsigned int flags), true, r->desc.flags = flags)
SETTER(cuTexRefSetFormat, (CUtexref r, CUarray_format format, int channels),
       array_type(format, (unsigned)channels, &(uint8_t){0}, &(unsigned){0}), r->format = format,
       r->channels = (unsigned)channels)
SETTER(cuTexRefSetMaxAnisotropy, (CUtexref r, unsigned int most), true, r->desc.maxAnisotropy = most)
SETTER(cuTexRefSetMipmapFilterMode, (CUtexref r, CUfilter_mode mode),
       (unsigned)mode <= CU_TR_FILTER_MODE_LINEAR, r->desc.mipmapFilterMode = mode)
SETTER(cuTexRefSetMipmapLevelBias, (CUtexref r, float bias), true, r->desc.mipmapLevelBias = bias)
SETTER(cuTexRefSetMipmapLevelClamp, (CUtexref r, float least, float most), true,
       r->desc.minMipmapLevelClamp = least, r->desc.maxMipmapLevelClamp = most)
SETTER(cuTexRefSetBorderColor, (CUtexref r, float *colour), colour != NULL,
       memcpy(r->desc.borderColor, colour, sizeof r->desc.borderColor))

GETTER(cuTexRefGetAddressMode, (CUaddress_mode * out, CUtexref r, int axis), out &&axis >= 0 && axis < 3,
       *out = r->desc.addressMode[axis])
GETTER(cuTexRefGetFilterMode, (CUfilter_mode * out, CUtexref r), out, *out = r->desc.filterMode)
GETTER(cuTexRefGetFlags, (unsigned int *out, CUtexref r), out, *out = r->desc.flags)
GETTER(cuTexRefGetFormat, (CUarray_format * format, int *channels, CUtexref r), format &&channels,
       *format = r->format, *channels = (int)r->channels)
GETTER(cuTexRefGetMaxAnisotropy, (int *out, CUtexref r), out, *out = (int)r->desc.maxAnisotropy)
GETTER(cuTexRefGetMipmapFilterMode, (CUfilter_mode * out, CUtexref r), out, *out = r->desc.mipmapFilterMode)
GETTER(cuTexRefGetMipmapLevelBias, (float *out, CUtexref r), out, *out = r->desc.mipmapLevelBias)
GETTER(cuTexRefGetMipmapLevelClamp, (float *least, float *most, CUtexref r), least &&most,
       *least = r->desc.minMipmapLevelClamp, *most = r->desc.maxMipmapLevelClamp)
GETTER(cuTexRefGetBorderColor, (float *out, CUtexref r), out,
       memcpy(out, r->desc.borderColor, sizeof r->desc.borderColor))

// This call is from the time when a launch named its textures; a module's references are known without it.
CUresult cuParamSetTexRef(CUfunction f, int unit, CUtexref r)
{
    CUresult error = texref(r);
    return error ? error : handle_is(f, HANDLE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
