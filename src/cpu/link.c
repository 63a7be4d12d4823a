// SPDX-License-Identifier: MIT
// Linking: texts are collected, tried together, and returned in a container that module loading knows.
#include "base/mem.h"
#include "cpu/module.h"

struct CUlinkState_st {
    struct sources source;
    void *image;   // result of cuLinkComplete
    bool runtime;  // the device's runtime was added
    // The options of cuLinkCreate hold until cuLinkDestroy; their buffers and values are the application's.
    unsigned count;
    CUjit_option *options;
    void **values;
    size_t error_room, info_room;  // sizes of the logs; earlier calls have stored results in their place
};

// Begins the logs of one call; jit_end_notify finishes them.
static CUresult begin(struct CUlinkState_st *l, struct jit *jit)
{
    CUresult r = jit_begin(jit, l->count, l->options, l->values);
    jit->error.size = l->error_room;
    jit->info.size = l->info_room;
    return r;
}

static void free_link(struct CUlinkState_st *l)
{
    sources_free(&l->source);
    mem_free(l->image);
    mem_free(l->options);
    mem_free(l);
}

static CUresult create(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    struct CUctx_st *ctx;
    struct jit jit;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = jit_begin(&jit, count, options, values);
    if (r)
        return r;
    jit_end(&jit, CUDA_SUCCESS);
    struct CUlinkState_st *l = mem_zalloc(1, sizeof *l);
    if (!l || !(l->options = mem_alloc((count + !count) * sizeof *options)) || handle_add(l, HANDLE_LINK)) {
        if (l)
            free_link(l);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (count)
        memcpy(l->options, options, count * sizeof *options);
    l->values = values;
    l->error_room = jit.error.size;
    l->info_room = jit.info.size;
    l->count = count;
    *out = l;
    return CUDA_SUCCESS;
}

CUresult cuLinkCreate(unsigned int count, CUjit_option *options, void **values, CUlinkState *out)
{
    return create(count, options, values, out);
}

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *out)
{
    return create(count, options, values, out);
}

static CUresult check(CUlinkState l)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : handle_is(l, HANDLE_LINK) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Objects and libraries of host code contain fatbins and are accepted like fatbins. Intermediate code, which
// only a linker understands, is not.
static CUresult check_type(CUjitInputType type)
{
    if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    return type == CU_JIT_INPUT_NVVM ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

// Adds bytes, or the file at name if bytes is NULL.
static CUresult add(CUlinkState l, CUjitInputType type, const void *bytes, size_t size, const char *name)
{
    struct jit jit;
    struct sources source;
    CUresult r = check_type(type);
    if (!r)
        r = begin(l, &jit);
    if (r)
        return r;
    if (!bytes)
        r = sources_from_file(&source, name, &jit);
    else {
        if (type == CU_JIT_INPUT_PTX)
            size = strnlen(bytes, size);
        r = sources_from_bytes(&source, name ? name : "input", bytes, size, &jit);
    }
    if (!r) {
        r = sources_append(&l->source, &source);
        sources_free(&source);
    } else if (r == CUDA_ERROR_NO_BINARY_FOR_GPU &&
               sources_have_runtime(name ? name : "input", bytes, size)) {
        l->runtime = true;
        r = CUDA_SUCCESS;
    }
    return jit_end_notify(&jit, r);
}

static CUresult add_data(CUlinkState l, CUjitInputType type, void *bytes, size_t size, const char *name,
                         unsigned count, CUjit_option *options, void **values)
{
    CUresult r = check(l);
    if (r || !bytes || !size || (count && (!options || !values)))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return add(l, type, bytes, size, name);
}

CUresult cuLinkAddData(CUlinkState l, CUjitInputType type, void *bytes, size_t size, const char *name,
                       unsigned int count, CUjit_option *options, void **values)
{
    return add_data(l, type, bytes, size, name, count, options, values);
}

CUresult cuLinkAddData_v2(CUlinkState l, CUjitInputType type, void *bytes, size_t size, const char *name,
                          unsigned int count, CUjit_option *options, void **values)
{
    return add_data(l, type, bytes, size, name, count, options, values);
}

static CUresult add_file(CUlinkState l, CUjitInputType type, const char *path, unsigned count,
                         CUjit_option *options, void **values)
{
    CUresult r = check(l);
    if (r || !path || (count && (!options || !values)))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return add(l, type, NULL, 0, path);
}

CUresult cuLinkAddFile(CUlinkState l, CUjitInputType type, const char *path, unsigned int count,
                       CUjit_option *options, void **values)
{
    return add_file(l, type, path, count, options, values);
}

CUresult cuLinkAddFile_v2(CUlinkState l, CUjitInputType type, const char *path, unsigned int count,
                          CUjit_option *options, void **values)
{
    return add_file(l, type, path, count, options, values);
}

// The calls of the device's runtime are undefined unless it is linked, as on a GPU.
static CUresult check_runtime(const struct CUlinkState_st *l, const struct CUmod_st *m, struct jit *jit)
{
    struct str call = exec_runtime_call(m->program);
    if (!call.len || l->runtime)
        return CUDA_SUCCESS;
    jit_error(jit, "link", "undefined reference to " STR_FMT ", of the device's runtime (libcudadevrt.a)",
              STR_ARG(call));
    return CUDA_ERROR_INVALID_SOURCE;
}

CUresult cuLinkComplete(CUlinkState l, void **image, size_t *size)
{
    struct jit jit;
    struct CUmod_st *m;
    size_t n;
    CUresult r = check(l);
    if (r || !image)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = begin(l, &jit);
    if (r)
        return r;
    // The program is loaded once for its errors, as programs expect them here.
    r = module_new(NULL, &l->source, &jit, &m);
    if (!r) {
        r = check_runtime(l, m, &jit);
        module_free(m);
    }
    if (r == CUDA_ERROR_INVALID_PTX && jit.unlinked)
        r = CUDA_ERROR_INVALID_SOURCE;
    void *packed = r ? NULL : sources_pack(&l->source, &n);
    if (!r && !packed)
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (!r) {
        mem_free(l->image);
        *image = l->image = packed;
        if (size)
            *size = n;
    }
    return jit_end_notify(&jit, r);
}

CUresult cuLinkDestroy(CUlinkState l)
{
    CUresult r = check(l);
    if (r)
        return r;
    handle_remove(l);
    free_link(l);
    return CUDA_SUCCESS;
}
