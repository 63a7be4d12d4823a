// SPDX-License-Identifier: MIT
// Functions and kernels: their attributes and settings.
#include "base/mem.h"
#include "cpu/module.h"

// Returns the shared memory that a block may have, static and dynamic together, unless its function was
// allowed more.
static int usual_shared(void)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
}

static int most_shared(void)
{
    return device_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
}

void function_settings_init(struct function_settings *s, const struct exec_kernel *k)
{
    int left = usual_shared() - (int)k->shared_size;
    atomic_init(&s->max_dynamic_shared, left > 0 ? left : 0);
    atomic_init(&s->carveout, CU_SHAREDMEM_CARVEOUT_DEFAULT);
}

void function_free(struct CUfunc_st *f)
{
    if (f->name)
        handle_remove(f);
    mem_free(f->name);
    mem_free(f->legacy);
}

CUresult function_get(CUfunction handle, struct CUctx_st *ctx, bool kernels, struct CUfunc_st **out)
{
    if (handle_is(handle, HANDLE_FUNCTION)) {
        *out = handle;
        return handle->module->ctx == ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    if (kernels && handle_is(handle, HANDLE_KERNEL))
        return library_function((struct CUkern_st *)(void *)handle, ctx, out);
    return CUDA_ERROR_INVALID_HANDLE;
}

// Checks a function that the application names, of any context.
static CUresult check(CUfunction f)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    return r ? r : handle_is(f, HANDLE_FUNCTION) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult function_attribute(const struct exec_kernel *k, const struct function_settings *s,
                            CUfunction_attribute a, int *value)
{
    switch ((int)a) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:  // .reqntid is ignored, as on a GPU
        *value = k->required_block[0] ? device_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
                                      : (int)k->max_threads;
        break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = (int)k->shared_size; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = (int)k->const_size; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = (int)k->local_size; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = (int)k->nregs; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = k->ptx_version; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = device_capability(); break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = k->needs_cluster; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = atomic_load(&s->max_dynamic_shared); break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = atomic_load(&s->carveout); break;
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        *value = k->required_cluster[0]
                     ? (int)k->required_cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]
                     : atomic_load(&s->cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH]);
        break;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = atomic_load(&s->nonportable_cluster);
        break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        *value = atomic_load(&s->cluster_policy);
        break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult store(atomic_int *to, int value, int least, int most)
{
    if (value < least || value > most)
        return CUDA_ERROR_INVALID_VALUE;
    atomic_store(to, value);
    return CUDA_SUCCESS;
}

CUresult function_set(const struct exec_kernel *k, struct function_settings *s, CUfunction_attribute a,
                      int value)
{
    switch ((int)a) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        return store(&s->max_dynamic_shared, value, 0, most_shared() - (int)k->shared_size);
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return store(&s->carveout, value, -1, 100);
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
        return store(&s->cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH], value, 0, INT32_MAX);
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        return store(&s->nonportable_cluster, value != 0, 0, 1);
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return store(&s->cluster_policy, value, 0, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    CUresult r = check(f);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return function_attribute(f->kernel, f->settings, attribute, value);
}

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value)
{
    CUresult r = check(f);
    return r ? r : function_set(f->kernel, f->settings, attribute, value);
}

// Checks and ignores a preference between caches, which the CPU device does not have.
CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache config)
{
    CUresult r = check(f);
    return r ? r : (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction f, CUsharedconfig config)
{
    CUresult r = check(f);
    return r                                                              ? r
           : (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                          : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction f)
{
    CUresult r = check(f);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = f->module;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction f)
{
    CUresult r = check(f);
    if (r || !name)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *name = f->name;
    return CUDA_SUCCESS;
}

static CUresult param_info(const struct exec_kernel *k, size_t index, size_t *offset, size_t *size)
{
    if (!offset || index >= k->nparams)
        return CUDA_ERROR_INVALID_VALUE;
    *offset = k->params[index].offset;
    if (size)
        *size = k->params[index].size;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    CUresult r = check(f);
    return r ? r : param_info(f->kernel, index, offset, size);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction f)
{
    CUresult r = check(f);
    if (r || !state)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction f)
{
    return check(f);
}

// Finds a library's kernel in any program of the library, as kernels of libraries need no context. A handle
// exists only after the library was loaded once.
static CUresult check_kernel(CUkernel k, const struct exec_kernel **out)
{
    CUresult r = device_ready();
    if (r)
        return r;
    if (!handle_is(k, HANDLE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    struct CUmod_st *m;
    r = library_module(k->library, NULL, &m);
    if (!r)
        *out = exec_kernel(m->program, k->index);
    return r;
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel k)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return handle_is(k, HANDLE_KERNEL) ? library_function(k, ctx, out) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel k, CUdevice device)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    if (r || !value)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return device_check(device) ? CUDA_ERROR_INVALID_DEVICE
                                : function_attribute(kernel, &k->settings, attribute, value);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel k, CUdevice device)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    if (r)
        return r;
    return device_check(device) ? CUDA_ERROR_INVALID_DEVICE
                                : function_set(kernel, &k->settings, attribute, value);
}

CUresult cuKernelSetCacheConfig(CUkernel k, CUfunc_cache config, CUdevice device)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    if (r)
        return r;
    return device_check(device)                            ? CUDA_ERROR_INVALID_DEVICE
           : (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL ? CUDA_ERROR_INVALID_VALUE
                                                           : CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char **name, CUkernel k)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    if (r || !name)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *name = k->name;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    return r ? r : param_info(kernel, index, offset, size);
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel k)
{
    const struct exec_kernel *kernel;
    CUresult r = check_kernel(k, &kernel);
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = k->library;
    return CUDA_SUCCESS;
}
