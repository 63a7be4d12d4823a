// SPDX-License-Identifier: MIT
// Runs the cases on a libcuda.
#ifndef MOAT_TEST_GOLDEN_SAMPLING_RUN_H
#define MOAT_TEST_GOLDEN_SAMPLING_RUN_H

#include "driver/driver.h"
#include "sampling_cases.h"

enum { SAMPLING_MOST = 1 << 20 };  // bytes of a level

// How far a case came, and the driver's result then.
enum stage { STAGE_DONE, STAGE_ARRAY, STAGE_COPY, STAGE_OBJECT, STAGE_MODULE, STAGE_LAUNCH };

struct sampler {
    struct driver api;
    CUcontext context;
    CUdeviceptr in, out, memory;
    size_t pitch;
    CUarray array;
    CUmipmappedArray mipmap;
    CUtexObject object;
    char device[64];
    char code[256];  // that the module was compiled from
    CUmodule module;
    char log[1024];
};

static CUresult sampler_context(struct sampler *s)
{
    CUresult r = s->api.cuCtxCreate_v2(&s->context, 0, 0);
    s->module = NULL;
    if (!r)
        r = s->api.cuMemAlloc_v2(&s->in, SAMPLING_ROWS * SAMPLING_IN * 4);
    if (!r)
        r = s->api.cuMemAlloc_v2(&s->out, SAMPLING_ROWS * SAMPLING_OUT * 4);
    if (!r)
        r = s->api.cuMemAllocPitch_v2(&s->memory, &s->pitch, 4096, 64, 4);
    return r;
}

static int sampler_open(struct sampler *s, const char *libcuda)
{
    char why[256];
    *s = (struct sampler){0};
    if (driver_open(&s->api, libcuda, why, sizeof why)) {
        fprintf(stderr, "sampling: %s\n", why);
        return -1;
    }
    CUresult r = s->api.cuInit(0);
    if (!r)
        r = s->api.cuDeviceGetName(s->device, sizeof s->device, 0);
    if (!r)
        r = sampler_context(s);
    if (r)
        fprintf(stderr, "sampling: no device: %d\n", r);
    return r ? -1 : 0;
}

static void sampler_close(struct sampler *s)
{
    if (s->context)
        s->api.cuCtxDestroy_v2(s->context);
    driver_close(&s->api);
}

// --- resources --------------------------------------------------------------------------------------------

static CUDA_ARRAY3D_DESCRIPTOR describe(const struct sampling *c)
{
    bool cube = c->shape == SHAPE_CUBE || c->shape == SHAPE_ACUBE;
    return (CUDA_ARRAY3D_DESCRIPTOR){.Width = c->width,
                                     .Height = c->height,
                                     .Depth = cube ? 6 * c->depth : c->depth,
                                     .Format = c->format,
                                     .NumChannels = c->channels,
                                     .Flags = c->array_flags};
}

static CUresult make_array(struct sampler *s, const struct sampling *c)
{
    CUDA_ARRAY3D_DESCRIPTOR d = describe(c);
    if (c->shape >= SHAPE_LINEAR)
        return CUDA_SUCCESS;
    return c->levels > 1 ? s->api.cuMipmappedArrayCreate(&s->mipmap, &d, c->levels)
                         : s->api.cuArray3DCreate_v2(&s->array, &d);
}

static CUresult copy_level(struct sampler *s, const struct sampling *c, unsigned level, void *data, bool back)
{
    CUarray array = s->array;
    CUresult r = c->levels > 1 ? s->api.cuMipmappedArrayGetLevel(&array, s->mipmap, level) : CUDA_SUCCESS;
    size_t row = (size_t)at_level(c->width, level) * sampling_element(c);
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = data,
                          .srcPitch = row,
                          .srcHeight = sampling_height(c, level),
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = array,
                          .WidthInBytes = row,
                          .Height = sampling_height(c, level),
                          .Depth = sampling_slices(c, level)};
    if (back)
        copy = (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_HOST,
                               .dstHost = data,
                               .dstPitch = row,
                               .dstHeight = sampling_height(c, level),
                               .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                               .srcArray = array,
                               .WidthInBytes = row,
                               .Height = sampling_height(c, level),
                               .Depth = sampling_slices(c, level)};
    return r ? r : s->api.cuMemcpy3D_v2(&copy);
}

static CUresult fill_resource(struct sampler *s, const struct sampling *c)
{
    static char data[SAMPLING_MOST];
    CUresult r = CUDA_SUCCESS;
    for (unsigned level = 0; level < c->levels && !r; level++) {
        sampling_texels(c, level, data);
        size_t row = (size_t)c->width * sampling_element(c);
        if (c->shape == SHAPE_LINEAR)
            r = s->api.cuMemcpyHtoD_v2(s->memory, data, row);
        else if (c->shape == SHAPE_PITCH)
            for (unsigned y = 0; y < c->height && !r; y++)
                r = s->api.cuMemcpyHtoD_v2(s->memory + y * s->pitch, data + y * row, row);
        else
            r = copy_level(s, c, level, data, false);
    }
    return r;
}

static CUresult make_object(struct sampler *s, const struct sampling *c)
{
    CUDA_RESOURCE_DESC d = {.resType = CU_RESOURCE_TYPE_ARRAY};
    d.res.array.hArray = s->array;
    if (c->levels > 1) {
        d.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        d.res.mipmap.hMipmappedArray = s->mipmap;
    } else if (c->shape == SHAPE_LINEAR) {
        d.resType = CU_RESOURCE_TYPE_LINEAR;
        d.res.linear.devPtr = s->memory;
        d.res.linear.format = c->format;
        d.res.linear.numChannels = c->channels;
        d.res.linear.sizeInBytes = (size_t)c->width * sampling_element(c);
    } else if (c->shape == SHAPE_PITCH) {
        d.resType = CU_RESOURCE_TYPE_PITCH2D;
        d.res.pitch2D.devPtr = s->memory;
        d.res.pitch2D.format = c->format;
        d.res.pitch2D.numChannels = c->channels;
        d.res.pitch2D.width = c->width;
        d.res.pitch2D.height = c->height;
        d.res.pitch2D.pitchInBytes = s->pitch;
    }
    return c->surface ? s->api.cuSurfObjectCreate(&s->object, &d)
                      : s->api.cuTexObjectCreate(&s->object, &d, &c->texture, c->has_view ? &c->view : NULL);
}

static void drop(struct sampler *s, const struct sampling *c)
{
    if (s->object)
        c->surface ? s->api.cuSurfObjectDestroy(s->object) : s->api.cuTexObjectDestroy(s->object);
    if (s->array)
        s->api.cuArrayDestroy(s->array);
    if (s->mipmap)
        s->api.cuMipmappedArrayDestroy(s->mipmap);
    s->object = 0;
    s->array = NULL;
    s->mipmap = NULL;
}

// --- kernels ----------------------------------------------------------------------------------------------

static CUresult load(struct sampler *s, const struct sampling *c)
{
    static const char head[] =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u64 object, .param .u64 in, .param .u64 out, .param .u32 n)\n{\n"
        "\t.reg .b64 %rd<8>;\n\t.reg .b32 %x<12>, %i<4>;\n\t.reg .b16 %h<4>;\n\t.reg .pred %p;\n"
        "\tld.param.u64 %rd1, [object];\n\tld.param.u64 %rd2, [in];\n\tld.param.u64 %rd3, [out];\n"
        "\tld.param.u32 %i0, [n];\n\tmov.u32 %i1, %ctaid.x;\n\tmov.u32 %i2, %tid.x;\n\tmad.lo.u32 %i1, %i1, "
        "128, %i2;\n"
        "\tsetp.ge.u32 %p, %i1, %i0;\n\t@%p ret;\n"
        "\tmad.wide.u32 %rd2, %i1, 32, %rd2;\n\tmad.wide.u32 %rd3, %i1, 16, %rd3;\n"
        "\tld.global.v4.b32 {%x0, %x1, %x2, %x3}, [%rd2];\n\tld.global.v4.b32 {%x4, %x5, %x6, %x7}, "
        "[%rd2+16];\n"
        "\tmov.b32 %x8, 0;\n\tmov.b32 %x9, 0;\n\tmov.b32 %x10, 0;\n\tmov.b32 %x11, 0;\n\t";
    char text[4096];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {s->log, (void *)(uintptr_t)(sizeof s->log - 1)};
    if (s->module && !strcmp(s->code, c->code))
        return CUDA_SUCCESS;
    if (s->module)
        s->api.cuModuleUnload(s->module);
    s->module = NULL;
    snprintf(s->code, sizeof s->code, "%s", c->code);
    snprintf(text, sizeof text, "%s%s\n\tst.global.v4.b32 [%%rd3], {%%x8, %%x9, %%x10, %%x11};\n\tret;\n}\n",
             head, c->code);
    CUresult r = s->api.cuModuleLoadDataEx(&s->module, text, 2, options, values);
    if (r)
        s->module = NULL;
    return r;
}

static CUresult launch(struct sampler *s, const struct sampling *c, uint32_t *out)
{
    static uint32_t in[SAMPLING_ROWS * SAMPLING_IN];
    CUfunction f;
    unsigned n = c->rows;
    for (unsigned i = 0; i < n * SAMPLING_IN; i++)
        in[i] = sampling_word(c, i / SAMPLING_IN, i % SAMPLING_IN);
    CUresult r = s->api.cuModuleGetFunction(&f, s->module, "k");
    if (!r)
        r = s->api.cuMemcpyHtoD_v2(s->in, in, (size_t)n * SAMPLING_IN * 4);
    void *params[] = {&s->object, &s->in, &s->out, &n};
    if (!r)
        r = s->api.cuLaunchKernel(f, (n + 127) / 128, 1, 1, 128, 1, 1, 0, NULL, params, NULL);
    if (!r)
        r = s->api.cuCtxSynchronize();
    if (!r)
        r = s->api.cuMemcpyDtoH_v2(out, s->out, (size_t)n * SAMPLING_OUT * 4);
    return r;
}

// The results of a case, and how many words they are.
struct outcome {
    enum stage stage;
    CUresult result;
    unsigned n;
    uint32_t words[SAMPLING_MOST / 4];
};

static void sampler_run(struct sampler *s, const struct sampling *c, struct outcome *o)
{
    o->n = c->rows * SAMPLING_OUT;
    if ((o->result = make_array(s, c)))
        o->stage = STAGE_ARRAY;
    else if ((o->result = fill_resource(s, c)))
        o->stage = STAGE_COPY;
    else if ((o->result = make_object(s, c)))
        o->stage = STAGE_OBJECT;
    else if ((o->result = load(s, c)))
        o->stage = STAGE_MODULE;
    else if ((o->result = launch(s, c, o->words)))
        o->stage = STAGE_LAUNCH;
    else
        o->stage = STAGE_DONE;
    if (!o->stage && c->shows) {
        o->n = (unsigned)(sampling_bytes(c, 0) + 3) / 4;
        o->words[o->n - 1] = 0;
        o->result = copy_level(s, c, 0, o->words, true);
    }
    if (o->stage == STAGE_LAUNCH) {
        s->object = 0;
        s->array = NULL;
        s->mipmap = NULL;
        s->api.cuCtxDestroy_v2(s->context);
        sampler_context(s);
    }
    if (o->stage)
        o->n = 0;
    drop(s, c);
}

#endif
