// SPDX-License-Identifier: MIT
#include "cpu/module.h"

#include <errno.h>
#include <sched.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/array.h"
#include "exec/space.h"

enum { PAGE = 4096 };

// Allocates constants. Rights are those of pages, so constants have pages of their own.
static uint64_t place_const(uint64_t size)
{
    size = (size + PAGE - 1) / PAGE * PAGE;
    uint64_t address = memory_internal_alloc(size, PAGE);
    if (address)
        memory_internal_protect(address, size, false);
    return address;
}

static void unplace(const struct module_place *p)
{
    array_reference_free(p->address);
    if (p->tracked)
        memory_untrack_variable(p->address);
    memory_internal_free(p->address);
}

static uint64_t place(void *ctx, enum exec_variable_kind kind, uint64_t size, uint64_t align)
{
    struct CUmod_st *m = ctx;
    if (size > device_memory() || align > PAGE || vec_reserve(&m->places, 1))
        return 0;
    uint64_t real = size + !size;
    uint64_t address = kind == EXEC_MANAGED ? memory_internal_managed(real, align ? align : 1)
                       : kind == EXEC_CONST ? place_const(real)
                                            : memory_internal_alloc(real, align ? align : 1);
    if (address)
        m->places.items[m->places.len++] = (struct module_place){address, size, kind, false};
    return address;
}

static void heap_alloc(void *ctx, uint32_t lanes, const uint64_t *sizes, uint64_t *at)
{
    struct CUmod_st *m = ctx;
    memory_heap_alloc(m->ctx, lanes, sizes, at);
}

static uint32_t heap_free(void *ctx, uint32_t lanes, const uint64_t *at)
{
    struct CUmod_st *m = ctx;
    return memory_heap_free(m->ctx, lanes, at);
}

static bool heap_was_block(void *ctx, uint64_t at)
{
    struct CUmod_st *m = ctx;
    return memory_heap_was_block(m->ctx, at);
}

static void print(void *ctx, const char *text, size_t len)
{
    output_append(text, len);
}

static CUresult load_result(int err)
{
    switch (err) {
    case 0: return CUDA_SUCCESS;
    case -ENOMEM: return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        // -ENOTSUP too: as a driver's answer to an instruction it does not know.
        return CUDA_ERROR_INVALID_PTX;
    }
}

static CUresult load(struct CUmod_st *m, const struct sources *s, struct jit *jit)
{
    struct exec_host host = {m, place, heap_alloc, heap_free, print, heap_was_block};
    int err = exec_load(s->texts, s->count, &host, &jit->sink, &m->program);
    jit->ours |= err == -ENOTSUP;
    jit->unlinked |= err == -ENOENT || err == -EEXIST;
    if (err)
        return load_result(err);
    unsigned n = exec_kernel_count(m->program);
    m->functions = mem_zalloc(n + !n, sizeof *m->functions);
    if (!m->functions)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < n; i++) {
        struct CUfunc_st *f = &m->functions[i];
        f->module = m;
        f->kernel = exec_kernel(m->program, i);
        f->settings = &f->own;
        function_settings_init(&f->own, f->kernel);
    }
    return CUDA_SUCCESS;
}

CUresult module_new(struct CUctx_st *ctx, const struct sources *s, struct jit *jit, struct CUmod_st **out)
{
    struct CUmod_st *m = mem_zalloc(1, sizeof *m);
    if (!m)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (pthread_mutex_init(&m->lock, NULL)) {
        mem_free(m);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult r = load(m, s, jit);
    if (!r && ctx)
        r = module_adopt(m, ctx);
    if (r) {
        module_free(m);
        return r;
    }
    *out = m;
    return CUDA_SUCCESS;
}

CUresult module_adopt(struct CUmod_st *m, struct CUctx_st *ctx)
{
    for (size_t i = 0; i < m->places.len; i++) {
        struct module_place *p = &m->places.items[i];
        if (memory_track_variable(ctx, p->address, p->size, p->kind == EXEC_MANAGED))
            return CUDA_ERROR_OUT_OF_MEMORY;
        p->tracked = true;
    }
    m->ctx = ctx;
    mutex_lock(&ctx->lock);
    m->next_in_context = ctx->modules;
    ctx->modules = m;
    mutex_unlock(&ctx->lock);
    return CUDA_SUCCESS;
}

void module_list_remove(struct CUmod_st *m)
{
    if (!m->ctx)
        return;
    mutex_lock(&m->ctx->lock);
    struct CUmod_st **at = &m->ctx->modules;
    while (*at && *at != m)
        at = &(*at)->next_in_context;
    if (*at)
        *at = m->next_in_context;
    mutex_unlock(&m->ctx->lock);
}

void module_free(struct CUmod_st *m)
{
    if (!m)
        return;
    // A kernel of the module may still run.
    while (atomic_load_explicit(&m->grids, memory_order_acquire)) {
        cpu_context_wait(m->ctx);
        sched_yield();
    }
    unsigned n = m->functions ? exec_kernel_count(m->program) : 0;
    for (unsigned i = 0; i < n; i++)
        function_free(&m->functions[i]);
    mem_free(m->functions);
    exec_program_free(m->program);
    for (size_t i = 0; i < m->places.len; i++)
        unplace(&m->places.items[i]);
    vec_free(&m->places);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}

void module_context_free(struct CUctx_st *ctx)
{
    for (;;) {
        mutex_lock(&ctx->lock);
        struct CUmod_st *m = ctx->modules;
        if (m)
            ctx->modules = m->next_in_context;
        mutex_unlock(&ctx->lock);
        if (!m)
            return;
        handle_remove(m);
        if (m->library)
            library_forget(m);
        module_free(m);
    }
}

CUresult module_function_at(struct CUmod_st *m, unsigned index, struct CUfunc_st **out)
{
    struct CUfunc_st *f = &m->functions[index];
    CUresult r = CUDA_SUCCESS;

    mutex_lock(&m->lock);
    if (!f->name) {
        struct str name = f->kernel->name;
        char *copy = mem_alloc(name.len + 1);
        if (!copy || handle_add(f, HANDLE_FUNCTION)) {
            mem_free(copy);
            r = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            memcpy(copy, name.ptr, name.len);
            copy[name.len] = '\0';
            f->name = copy;
        }
    }
    mutex_unlock(&m->lock);
    *out = r ? NULL : f;
    return r;
}

CUresult module_function(struct CUmod_st *m, const struct exec_kernel *k, struct CUfunc_st **out)
{
    unsigned i = 0;
    while (m->functions[i].kernel != k)
        i++;
    return module_function_at(m, i, out);
}

static CUresult load_current(CUmodule *out, const void *image, const char *path, unsigned count,
                             CUjit_option *options, void **values)
{
    struct CUctx_st *ctx;
    struct sources source;
    struct jit jit;
    struct CUmod_st *m = NULL;
    CUresult r = cpu_context_current(&ctx);

    if (r || !out || (!image && !path))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = jit_begin(&jit, count, options, values);
    if (r)
        return r;
    r = path ? sources_from_file(&source, path, &jit) : sources_from_memory(&source, image, &jit);
    if (!r) {
        r = module_new(ctx, &source, &jit, &m);
        sources_free(&source);
    }
    if (!r && handle_add(m, HANDLE_MODULE)) {
        module_list_remove(m);
        module_free(m);
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!r)
        *out = m;
    return jit_end_notify(&jit, r);
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
    return load_current(out, NULL, path, 0, NULL, NULL);
}

CUresult cuModuleLoadData(CUmodule *out, const void *image)
{
    return load_current(out, image, NULL, 0, NULL, NULL);
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options,
                            void **values)
{
    return load_current(out, image, NULL, count, options, values);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image)
{
    return load_current(out, image, NULL, 0, NULL, NULL);
}

// Checks a module that the application names, of the current context or any other.
static CUresult check(CUmodule m)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : handle_is(m, HANDLE_MODULE) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleUnload(CUmodule m)
{
    CUresult r = check(m);
    if (r)
        return r;
    if (m->library)
        return CUDA_ERROR_NOT_PERMITTED;
    handle_remove(m);
    module_list_remove(m);
    module_free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    CUresult r = check(m);
    if (r || !out || !name)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    const struct exec_kernel *k = exec_find_kernel(m->program, str_from(name));
    return k ? module_function(m, k, out) : CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule m)
{
    CUresult r = check(m);
    if (r || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *count = exec_kernel_count(m->program);
    return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned int room, CUmodule m)
{
    CUresult r = check(m);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !r && i < room && i < exec_kernel_count(m->program); i++)
        r = module_function_at(m, i, &out[i]);
    return r;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule m, const char *name)
{
    CUresult r = check(m);
    if (r || !name || (!address && !size))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    const struct exec_variable *v = exec_find_variable(m->program, str_from(name));
    if (!v)
        return exec_find_kernel(m->program, str_from(name)) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = v->address;
    if (size)
        *size = v->size;
    return CUDA_SUCCESS;
}

// This version is from the time of 32-bit addresses; ours do not fit.
CUresult cuModuleGetGlobal(CUdeviceptr_v1 *address, unsigned int *size, CUmodule m, const char *name)
{
    CUdeviceptr wide;
    size_t wide_size;
    CUresult r =
        cuModuleGetGlobal_v2(address || size ? &wide : NULL, address || size ? &wide_size : NULL, m, name);
    if (r)
        return r;
    if (address && wide > UINT32_MAX)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (address)
        *address = (CUdeviceptr_v1)wide;
    if (size)
        *size = (unsigned int)wide_size;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    CUresult r = device_ready();
    if (r || !mode)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}
