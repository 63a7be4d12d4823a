// SPDX-License-Identifier: MIT
// Contexts and each thread's stack of them.
#include "cpu/cpu.h"

#include <sched.h>
#include <string.h>

#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/array.h"
#include "cpu/kernel_stats.h"
#include "cpu/stream.h"

enum { DEPTH = 128 };

// An entry means one life of a context; after its end calls return CUDA_ERROR_CONTEXT_IS_DESTROYED.
struct entry {
    struct CUctx_st *ctx;
    unsigned generation;
    CUcontext shown;           // as the application knows it: ctx, or a green context on top of ctx
    unsigned long long green;  // id of the green context; 0: none
};

static _Thread_local struct {
    unsigned depth;
    struct entry entries[DEPTH];
} stack;

// Guards the two below, and decides which thread ends a context. Outermost; not held while a context ends.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st *free_contexts;
static unsigned long long last_id;

bool cpu_context_flags_valid(unsigned flags)
{
    unsigned schedule = flags & CU_CTX_SCHED_MASK;
    return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
           (schedule == CU_CTX_SCHED_AUTO || schedule == CU_CTX_SCHED_SPIN ||
            schedule == CU_CTX_SCHED_YIELD || schedule == CU_CTX_SCHED_BLOCKING_SYNC);
}

CUresult cpu_context_start(struct CUctx_st *ctx, CUdevice device, unsigned flags)
{
    ctx->device = device;
    ctx->flags = flags;
    mutex_lock(&lock);
    ctx->id = ++last_id;
    mutex_unlock(&lock);
    ctx->modules = NULL;
    memset(ctx->peers, 0, sizeof ctx->peers);
    ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    atomic_store(&ctx->references, 1);
    atomic_store(&ctx->error, CUDA_SUCCESS);
    memset(&ctx->fault, 0, sizeof ctx->fault);
    atomic_store(&ctx->grid_ids, 0);
    cpu_context_limits_init(ctx);
    CUresult r = stream_context_init(ctx);
    if (!r)
        atomic_store_explicit(&ctx->alive, true,
                              memory_order_release);  // partners: look_up, named, stream_error
    return r;
}

// Sequentially consistent, as in cpu_context_end: either the end sees the call, or the call sees the end.
CUresult cpu_context_enter(struct CUctx_st *ctx)
{
    atomic_fetch_add(&ctx->launching, 1);
    if (atomic_load(&ctx->alive))
        return CUDA_SUCCESS;
    cpu_context_leave(ctx);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void cpu_context_leave(struct CUctx_st *ctx)
{
    atomic_fetch_sub(&ctx->launching, 1);
}

void cpu_context_end(struct CUctx_st *ctx)
{
    atomic_store(&ctx->alive, false);
    while (atomic_load(&ctx->launching))
        sched_yield();
    stream_context_free(ctx);
    module_context_free(ctx);
    array_context_free(ctx);
    memory_context_free(ctx);
    coredump_context_free(ctx);
    kernel_stats_print();
}

static struct CUctx_st *take_memory(void)
{
    mutex_lock(&lock);
    struct CUctx_st *ctx = free_contexts;
    if (ctx)
        free_contexts = ctx->next_free;
    mutex_unlock(&lock);
    if (ctx)
        return ctx;
    ctx = mem_zalloc(1, sizeof *ctx);
    if (ctx && pthread_mutex_init(&ctx->lock, NULL)) {
        mem_free(ctx);
        ctx = NULL;
    }
    return ctx;
}

static void return_memory(struct CUctx_st *ctx)
{
    atomic_fetch_add(&ctx->generation, 1);
    mutex_lock(&lock);
    ctx->next_free = free_contexts;
    free_contexts = ctx;
    mutex_unlock(&lock);
}

struct CUctx_st *cpu_context_named(CUcontext handle)
{
    return handle_is(handle, HANDLE_CONTEXT) ? handle : green_context_base(handle, NULL);
}

static CUresult push(CUcontext handle)
{
    unsigned long long green = 0;
    struct CUctx_st *ctx = handle_is(handle, HANDLE_CONTEXT) ? handle : green_context_base(handle, &green);
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth == DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack.entries[stack.depth++] = (struct entry){ctx, atomic_load(&ctx->generation), handle, green};
    return CUDA_SUCCESS;
}

unsigned long long cpu_context_green(void)
{
    return stack.depth ? stack.entries[stack.depth - 1].green : 0;
}

// Returns CUDA_SUCCESS, or why there is no living context. *out is the context on top of the stack in either
// case, NULL if there is none.
static CUresult look_up(struct CUctx_st **out)
{
    CUresult r = device_ready();
    *out = NULL;
    if (r)
        return r;
    if (!stack.depth)
        return CUDA_ERROR_INVALID_CONTEXT;
    const struct entry *top = &stack.entries[stack.depth - 1];
    *out = top->ctx;
    if (!atomic_load_explicit(&top->ctx->alive, memory_order_acquire) ||
        atomic_load_explicit(&top->ctx->generation, memory_order_relaxed) != top->generation ||
        (top->green && !green_context_of(top->green)))
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return CUDA_SUCCESS;
}

CUresult cpu_context_current_any(struct CUctx_st **out)
{
    CUresult r = look_up(out);
    if (r)
        *out = NULL;
    return r;
}

CUresult cpu_context_current(struct CUctx_st **out)
{
    CUresult r = cpu_context_current_any(out);
    return r ? r : stream_error(*out);
}

CUresult cpu_context_error_of(enum exec_fault_kind kind)
{
    static const CUresult results[] = {
        [EXEC_NO_FAULT] = CUDA_SUCCESS,
        [EXEC_ILLEGAL_ADDRESS] = CUDA_ERROR_ILLEGAL_ADDRESS,
        [EXEC_ASSERT] = CUDA_ERROR_ASSERT,
        [EXEC_MISALIGNED_ADDRESS] = CUDA_ERROR_MISALIGNED_ADDRESS,
        [EXEC_INVALID_ADDRESS_SPACE] = CUDA_ERROR_INVALID_ADDRESS_SPACE,
        [EXEC_INVALID_PC] = CUDA_ERROR_INVALID_PC,
        [EXEC_ILLEGAL_INSTRUCTION] = CUDA_ERROR_ILLEGAL_INSTRUCTION,
        [EXEC_LAUNCH_FAILED] = CUDA_ERROR_LAUNCH_FAILED,
        [EXEC_OUT_OF_MEMORY] = CUDA_ERROR_OUT_OF_MEMORY,
    };
    return (size_t)kind < sizeof results / sizeof *results ? results[kind] : CUDA_ERROR_UNKNOWN;
}

void cpu_context_fail(struct CUctx_st *ctx, const struct exec_fault *fault)
{
    CUresult error = cpu_context_error_of(fault->kind);
    mutex_lock(&ctx->lock);
    if (error && !atomic_load(&ctx->error)) {
        ctx->fault = *fault;
        fault_query_keep(&ctx->fault_report, fault, error);
        atomic_store_explicit(&ctx->error, (int)error, memory_order_release);  // partner: cpu_context_current
    }
    mutex_unlock(&ctx->lock);
}

static CUresult create(CUcontext *out, unsigned flags, CUdevice device)
{
    CUresult r = device_ready();
    if (r || !out || !cpu_context_flags_valid(flags))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (device_check(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (stack.depth == DEPTH)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct CUctx_st *ctx = take_memory();
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    r = cpu_context_start(ctx, device, flags);
    if (r) {
        return_memory(ctx);
        return r;
    }
    if (handle_add(ctx, HANDLE_CONTEXT)) {
        cpu_context_end(ctx);
        return_memory(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    push(ctx);
    *out = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice device)
{
    return create(out, flags, device);
}

CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device)
{
    return create(out, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *params, int count, unsigned int flags,
                        CUdevice device)
{
    if (count < 0 || (count && !params))
        return device_ready() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_VALUE;
    if (count)
        return device_ready() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(out, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
    if (params && params->cigParams)
        return device_ready() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_NOT_SUPPORTED;
    return cuCtxCreate_v3(out, params ? params->execAffinityParams : NULL,
                          params ? params->numExecAffinityParams : 0, flags, device);
}

static CUresult destroy(CUcontext ctx)
{
    CUresult r = device_ready();
    if (r || !ctx)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    bool ours = handle_is(ctx, HANDLE_CONTEXT) && !ctx->primary;
    if (ours)
        handle_remove(ctx);
    mutex_unlock(&lock);
    if (!ours)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth && stack.entries[stack.depth - 1].ctx == ctx)
        stack.depth--;
    cpu_context_end(ctx);
    return_memory(ctx);
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
    return destroy(ctx);
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
    return destroy(ctx);
}

CUresult cuCtxAttach(CUcontext *out, unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !out || flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_add(&ctx->references, 1);
    *out = ctx;
    return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
    CUresult r = device_ready();
    if (r)
        return r;
    if (!handle_is(ctx, HANDLE_CONTEXT) || ctx->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return atomic_fetch_sub(&ctx->references, 1) > 1 ? CUDA_SUCCESS : destroy(ctx);
}

static CUresult push_current(CUcontext ctx)
{
    CUresult r = device_ready();
    if (r || !ctx)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    return push(ctx);
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
    return push_current(ctx);
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    return push_current(ctx);
}

static CUresult pop_current(CUcontext *out)
{
    CUresult r = device_ready();
    if (r || !stack.depth)
        return r ? r : CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (out)
        *out = stack.entries[stack.depth].shown;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *out)
{
    return pop_current(out);
}

CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
    return pop_current(out);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
    CUresult r = device_ready();
    if (r)
        return r;
    if (ctx && !cpu_context_named(ctx))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth)
        stack.depth--;
    return ctx ? push(ctx) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *out)
{
    CUresult r = device_ready();
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *out = stack.depth ? stack.entries[stack.depth - 1].shown : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    struct CUctx_st *ctx;
    CUresult r = look_up(&ctx);
    if (!ctx || !device)
        return ctx ? CUDA_ERROR_INVALID_VALUE : r;
    *device = ctx->device;
    return CUDA_SUCCESS;
}

// Finds the context that the application names; NULL names the current one.
static CUresult named(CUcontext handle, struct CUctx_st **out)
{
    if (!handle)
        return cpu_context_current_any(out);
    CUresult r = device_ready();
    *out = r ? NULL : cpu_context_named(handle);
    if (r || !*out)
        return r ? r : CUDA_ERROR_INVALID_CONTEXT;
    return atomic_load_explicit(&(*out)->alive, memory_order_acquire)
               ? CUDA_SUCCESS  // partner: cpu_context_start
               : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
    struct CUctx_st *ctx;
    CUresult r = named(handle, &ctx);
    if (r || !device)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *device = ctx->device;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
    struct CUctx_st *ctx;
    CUresult r = named(handle, &ctx);
    if (r || !id)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *id = ctx->id;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
    struct CUctx_st *ctx;
    CUresult r = named(handle, &ctx);
    if (r || !version)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current_any(&ctx);
    if (r || !flags)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    // Every primary context may map host memory.
    *flags = ctx->flags | (ctx->primary ? CU_CTX_MAP_HOST : 0);
    return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned int flags)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !cpu_context_flags_valid(flags))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    ctx->flags = flags;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !config)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *config = ctx->cache_config;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || (unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    ctx->cache_config = config;
    return CUDA_SUCCESS;
}

// Banks of shared memory have four bytes whatever was set, as on every recent GPU.
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !config)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache(void)
{
    struct CUctx_st *ctx;
    return cpu_context_current(&ctx);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam *param, CUexecAffinityType type)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r || !param)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    param->type = type;
    param->param.smCount.val = device_sm_count();
    return CUDA_SUCCESS;
}

// Writes of other devices into our memory are visible at once.
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    struct CUctx_st *ctx;
    CUresult r = cpu_context_current(&ctx);
    if (r)
        return r;
    return target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX &&
                   (scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                    scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuProfilerStart(void)
{
    struct CUctx_st *ctx;
    return cpu_context_current(&ctx);
}

CUresult cuProfilerStop(void)
{
    struct CUctx_st *ctx;
    return cpu_context_current(&ctx);
}
