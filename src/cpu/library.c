// SPDX-License-Identifier: MIT
// Libraries: loaded into each context that needs them, when something of them is first needed there.
#include <stdlib.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/logs.h"
#include "cpu/module.h"

// Makes the kernels that the application will see, the same for all contexts.
static CUresult make_kernels(struct CUlib_st *l, const struct CUmod_st *m)
{
    unsigned n = exec_kernel_count(m->program);
    struct CUkern_st *kernels = mem_zalloc(n + !n, sizeof *kernels);
    if (!kernels)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < n; i++) {
        kernels[i].library = l;
        kernels[i].index = i;
        function_settings_init(&kernels[i].settings, exec_kernel(m->program, i));
    }
    l->kernels = kernels;
    l->nkernels = n;
    return CUDA_SUCCESS;
}

// Loads the library; ctx may be NULL. The library's lock must be held.
static CUresult load(struct CUlib_st *l, struct CUctx_st *ctx, struct CUmod_st **out)
{
    struct jit jit;
    if (l->failed)
        return l->failed;
    CUresult r = jit_begin(&jit, 0, NULL, NULL);
    if (r)
        return r;
    struct CUmod_st *m = NULL;
    r = jit_end(&jit, module_new(ctx, &l->source, &jit, &m));
    if (r) {
        // Out of memory may be temporary.
        l->failed = r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : r;
        return r;
    }
    if (!l->kernels)
        r = make_kernels(l, m);
    if (!r && handle_add(m, HANDLE_MODULE))
        r = CUDA_ERROR_OUT_OF_MEMORY;
    if (r) {
        module_list_remove(m);
        module_free(m);
        return r;
    }
    m->library = l;
    for (unsigned i = 0; i < l->nkernels; i++)
        m->functions[i].settings = &l->kernels[i].settings;
    m->next_in_library = l->modules;
    l->modules = m;
    *out = m;
    return CUDA_SUCCESS;
}

// Returns the module of the context, or one that is not bound to a context yet; any module if ctx is NULL.
// The lock must be held.
static struct CUmod_st *find(const struct CUlib_st *l, const struct CUctx_st *ctx)
{
    struct CUmod_st *unbound = NULL;
    for (struct CUmod_st *m = l->modules; m; m = m->next_in_library) {
        if (!ctx || m->ctx == ctx)
            return m;
        if (!m->ctx)
            unbound = m;
    }
    return unbound;
}

CUresult library_module(struct CUlib_st *l, struct CUctx_st *ctx, struct CUmod_st **out)
{
    CUresult r = CUDA_SUCCESS;
    mutex_lock(&l->lock);
    struct CUmod_st *m = find(l, ctx);
    if (!m)
        r = load(l, ctx, &m);
    else if (ctx && !m->ctx)
        r = module_adopt(m, ctx);
    mutex_unlock(&l->lock);
    if (!r)
        *out = m;
    return r;
}

// The lock must be held.
static void unlink_module(struct CUlib_st *l, struct CUmod_st *m)
{
    struct CUmod_st **at = &l->modules;
    while (*at && *at != m)
        at = &(*at)->next_in_library;
    if (*at)
        *at = m->next_in_library;
    for (unsigned i = 0; i < l->nkernels; i++)
        if (atomic_load(&l->kernels[i].recent) == &m->functions[i])
            atomic_store(&l->kernels[i].recent, NULL);
}

void library_forget(struct CUmod_st *m)
{
    mutex_lock(&m->library->lock);
    unlink_module(m->library, m);
    mutex_unlock(&m->library->lock);
}

CUresult library_function(struct CUkern_st *k, struct CUctx_st *ctx, struct CUfunc_st **out)
{
    struct CUmod_st *m;
    // Acquire: pairs with the store below, which follows everything that was stored in the function.
    struct CUfunc_st *f = atomic_load_explicit(&k->recent, memory_order_acquire);
    if (f && f->module->ctx == ctx) {
        *out = f;
        return CUDA_SUCCESS;
    }
    CUresult r = library_module(k->library, ctx, &m);
    if (!r)
        r = module_function_at(m, k->index, out);
    if (!r)
        atomic_store_explicit(&k->recent, *out, memory_order_release);
    return r;
}

static CUresult new_library(CUlibrary *out, struct sources *source)
{
    struct CUlib_st *l = mem_zalloc(1, sizeof *l);
    if (!l || pthread_mutex_init(&l->lock, NULL) || handle_add(l, HANDLE_LIBRARY)) {
        mem_free(l);
        sources_free(source);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    l->source = *source;
    *out = l;
    return CUDA_SUCCESS;
}

static void free_library(struct CUlib_st *l)
{
    while (l->modules) {
        struct CUmod_st *m = l->modules;
        unlink_module(l, m);
        handle_remove(m);
        module_list_remove(m);
        module_free(m);
    }
    for (unsigned i = 0; i < l->nkernels; i++) {
        if (l->kernels[i].name)
            handle_remove(&l->kernels[i]);
        mem_free(l->kernels[i].name);
    }
    mem_free(l->kernels);
    sources_free(&l->source);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

static CUresult check_options(const CUlibraryOption *options, void **values, unsigned count)
{
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++)
        if ((unsigned)options[i] >= CU_LIBRARY_NUM_OPTIONS)
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static bool eager(void)
{
    const char *mode = getenv("CUDA_MODULE_LOADING");
    return mode && strcmp(mode, "EAGER") == 0;
}

// The same as library_module, and calls the callbacks of cuLogs* if loading fails. No lock may be held.
static CUresult loaded(struct CUlib_st *l, struct CUctx_st *ctx, struct CUmod_st **out)
{
    CUresult r = library_module(l, ctx, out);
    if (r)
        logs_notify();
    return r;
}

static CUresult load_library(CUlibrary *out, const void *image, const char *path, CUjit_option *jit_options,
                             void **jit_values, unsigned njit)
{
    struct sources source;
    struct jit jit;
    struct CUlib_st *l = NULL;
    struct CUmod_st *m;
    CUresult r = jit_begin(&jit, njit, jit_options, jit_values);
    if (r)
        return r;
    r = path ? sources_from_file(&source, path, &jit) : sources_from_memory(&source, image, &jit);
    r = jit_end_notify(&jit, r);
    if (!r)
        r = new_library(&l, &source);
    if (!r && eager()) {
        r = loaded(l, NULL, &m);
        if (r) {
            handle_remove(l);
            free_library(l);
        }
    }
    if (!r)
        *out = l;
    return r;
}

CUresult cuLibraryLoadData(CUlibrary *out, const void *image, CUjit_option *jit_options, void **jit_values,
                           unsigned int njit, CUlibraryOption *options, void **values, unsigned int count)
{
    CUresult r = device_ready();
    if (!r)
        r = check_options(options, values, count);
    if (r || !out || !image)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return load_library(out, image, NULL, jit_options, jit_values, njit);
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit_options, void **jit_values,
                               unsigned int njit, CUlibraryOption *options, void **values, unsigned int count)
{
    CUresult r = device_ready();
    if (!r)
        r = check_options(options, values, count);
    if (r || !out || !path)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return load_library(out, NULL, path, jit_options, jit_values, njit);
}

static CUresult check(CUlibrary l)
{
    CUresult r = device_ready();
    return r ? r : handle_is(l, HANDLE_LIBRARY) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryUnload(CUlibrary l)
{
    CUresult r = check(l);
    if (r)
        return r;
    handle_remove(l);
    free_library(l);
    return CUDA_SUCCESS;
}

// Returns the kernel's handle and registers it. The library must be loaded.
static CUresult give_kernel(struct CUlib_st *l, const struct exec_kernel *kernel, unsigned index,
                            CUkernel *out)
{
    struct CUkern_st *k = &l->kernels[index];
    CUresult r = CUDA_SUCCESS;
    mutex_lock(&l->lock);
    if (!k->name) {
        char *copy = mem_alloc(kernel->name.len + 1);
        if (!copy || handle_add(k, HANDLE_KERNEL)) {
            mem_free(copy);
            r = CUDA_ERROR_OUT_OF_MEMORY;
        } else {
            memcpy(copy, kernel->name.ptr, kernel->name.len);
            copy[kernel->name.len] = '\0';
            k->name = copy;
        }
    }
    mutex_unlock(&l->lock);
    if (!r)
        *out = k;
    return r;
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary l, const char *name)
{
    struct CUmod_st *m;
    CUresult r = check(l);
    if (r || !out || !name)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = loaded(l, NULL, &m);
    if (r)
        return r;
    const struct exec_kernel *k = exec_find_kernel(m->program, str_from(name));
    if (!k)
        return CUDA_ERROR_NOT_FOUND;
    unsigned i = 0;
    while (m->functions[i].kernel != k)
        i++;
    return give_kernel(l, k, i, out);
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary l)
{
    struct CUmod_st *m;
    CUresult r = check(l);
    if (r || !count)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = loaded(l, NULL, &m);
    if (!r)
        *count = l->nkernels;
    return r;
}

CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned int room, CUlibrary l)
{
    struct CUmod_st *m;
    CUresult r = check(l);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = loaded(l, NULL, &m);
    for (unsigned i = 0; !r && i < room && i < l->nkernels; i++)
        r = give_kernel(l, exec_kernel(m->program, i), i, &out[i]);
    return r;
}

// Finds the library's module in the current context.
static CUresult current_module(CUlibrary l, struct CUmod_st **out)
{
    struct CUctx_st *ctx;
    CUresult r = check(l);
    if (!r)
        r = cpu_context_current(&ctx);
    return r ? r : loaded(l, ctx, out);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary l)
{
    CUresult r = check(l);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return current_module(l, out);
}

static CUresult get_variable(CUdeviceptr *address, size_t *size, CUlibrary l, const char *name, bool managed)
{
    struct CUmod_st *m;
    CUresult r = check(l);
    if (r || !name || (!address && !size))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    // Managed variables need no context.
    r = managed && cpu_context_current_any(&(struct CUctx_st *){NULL}) ? loaded(l, NULL, &m)
                                                                       : current_module(l, &m);
    if (r)
        return r;
    const struct exec_variable *v = exec_find_variable(m->program, str_from(name));
    if (!v && !managed && exec_find_kernel(m->program, str_from(name)))
        return CUDA_ERROR_INVALID_VALUE;
    if (!v || (managed && v->kind != EXEC_MANAGED))
        return CUDA_ERROR_NOT_FOUND;
    if (address)
        *address = v->address;
    if (size)
        *size = v->size;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary l, const char *name)
{
    return get_variable(address, size, l, name, false);
}

CUresult cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary l, const char *name)
{
    return get_variable(address, size, l, name, true);
}

// No function of ours has an address that is valid on both host and device.
CUresult cuLibraryGetUnifiedFunction(void **out, CUlibrary l, const char *name)
{
    CUresult r = check(l);
    if (r || !out || !name)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_FOUND;
}
