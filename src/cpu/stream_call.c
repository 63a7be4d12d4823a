// SPDX-License-Identifier: MIT
// The calls on streams: making, queries, waiting, callbacks, attributes.
#include <string.h>

#include "base/mem.h"
#include "cpu/stream.h"

// --- making and freeing ------------------------------------------------------------------------------------

static int clamp_priority(int p)
{
    return p > STREAM_PRIORITY_LEAST      ? STREAM_PRIORITY_LEAST
           : p < STREAM_PRIORITY_GREATEST ? STREAM_PRIORITY_GREATEST
                                          : p;
}

CUresult stream_create(CUstream *out, struct CUctx_st *ctx, unsigned long long green, unsigned flags,
                       int priority)
{
    struct CUstream_st *s = stream_new(ctx, flags, clamp_priority(priority));
    if (!s)
        return CUDA_ERROR_OUT_OF_MEMORY;
    s->green = green;
    CUresult rc = stream_enter(s);
    if (!rc && handle_add(s, HANDLE_STREAM))
        rc = CUDA_ERROR_OUT_OF_MEMORY;
    if (rc)
        stream_leave(s);
    else
        *out = s;
    return rc;
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority)
{
    struct CUctx_st *ctx;
    CUresult rc = stream_context_for_new(&ctx);
    if (rc)
        return rc;
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    return stream_create(out, ctx, cpu_context_green(), flags, priority);
}

CUresult cuStreamCreate(CUstream *out, unsigned int flags)
{
    return cuStreamCreateWithPriority(out, flags, 0);
}

// Pending work runs to its end; the stream is freed after it.
CUresult cuStreamDestroy_v2(CUstream handle)
{
    struct CUstream_st *s;
    CUresult rc = pool_in_callback() ? CUDA_ERROR_NOT_PERMITTED : stream_find(handle, false, &s);
    if (rc)
        return rc;
    if (s != handle)
        return CUDA_ERROR_INVALID_HANDLE;
    rc = stream_error(s->ctx);
    handle_remove(s);
    stream_leave(s);
    return rc;
}

CUresult cuStreamDestroy(CUstream handle)
{
    return cuStreamDestroy_v2(handle);
}

// --- queries -----------------------------------------------------------------------------------------------

// Gets the stream for a call with an out-parameter.
static CUresult ask(bool per_thread, CUstream handle, const void *out, struct CUstream_st **s)
{
    CUresult rc = stream_get(handle, per_thread, s);
    return rc ? rc : out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult get_priority(bool per_thread, CUstream handle, int *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (!rc)
        *out = s->priority;
    return rc;
}
STREAM_CALL(cuStreamGetPriority, get_priority, (CUstream handle, int *out), handle, out)

static CUresult get_flags(bool per_thread, CUstream handle, unsigned int *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (!rc)
        *out = s->flags;
    return rc;
}
STREAM_CALL(cuStreamGetFlags, get_flags, (CUstream handle, unsigned int *out), handle, out)

static CUresult get_id(bool per_thread, CUstream handle, unsigned long long *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (!rc)
        *out = s->id;
    return rc;
}
STREAM_CALL(cuStreamGetId, get_id, (CUstream handle, unsigned long long *out), handle, out)

static CUresult get_ctx(bool per_thread, CUstream handle, CUcontext *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (!rc)
        *out = s->ctx;
    return rc;
}
STREAM_CALL(cuStreamGetCtx, get_ctx, (CUstream handle, CUcontext *out), handle, out)

// Returns the green context that the stream was made for, or that was current when it was made; for a stream
// without a handle, the current one.
static CUresult get_green(bool per_thread, CUstream handle, CUgreenCtx *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (rc)
        return rc;
    unsigned long long green = s == handle ? s->green : cpu_context_green();
    *out = green ? green_context_of(green) : NULL;
    return CUDA_SUCCESS;
}

static CUresult get_ctx_v2(bool per_thread, CUstream handle, CUcontext *out, CUgreenCtx *green)
{
    CUcontext ctx;
    CUresult rc = get_ctx(per_thread, handle, &ctx);
    if (!rc && out)
        *out = ctx;
    if (!rc && green)
        rc = get_green(per_thread, handle, green);
    return rc;
}
STREAM_CALL(cuStreamGetCtx_v2, get_ctx_v2, (CUstream handle, CUcontext *out, CUgreenCtx *green), handle, out,
            green)

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out)
{
    return get_green(false, handle, out);
}

static CUresult get_device(bool per_thread, CUstream handle, CUdevice *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (!rc)
        *out = s->ctx->device;
    return rc;
}
STREAM_CALL(cuStreamGetDevice, get_device, (CUstream handle, CUdevice *out), handle, out)

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    struct CUctx_st *ctx;
    CUresult rc = cpu_context_current(&ctx);
    if (rc)
        return rc;
    if (least)
        *least = STREAM_PRIORITY_LEAST;
    if (greatest)
        *greatest = STREAM_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

// --- waiting -----------------------------------------------------------------------------------------------

// The host may not wait for a captured stream, nor for any other while a capture forbids unsafe calls.
static CUresult refuse(struct CUstream_st *s)
{
    CUresult rc = capture_refuse(s);
    return rc ? rc : capture_unsafe();
}

// Unlike all other calls on streams and events, this one is permitted in a callback.
static CUresult query(bool per_thread, CUstream handle)
{
    struct CUstream_st *s;
    CUresult rc = stream_find(handle, per_thread, &s);
    if (!rc)
        rc = stream_error(s->ctx);
    if (!rc)
        rc = refuse(s);
    if (rc)
        return rc;
    return stream_idle(s) ? stream_error(s->ctx) : CUDA_ERROR_NOT_READY;
}
STREAM_CALL(cuStreamQuery, query, (CUstream handle), handle)

static CUresult synchronize(bool per_thread, CUstream handle)
{
    struct CUstream_st *s;
    CUresult rc = stream_get(handle, per_thread, &s);
    if (!rc)
        rc = refuse(s);
    return rc ? rc : stream_wait(s);
}
STREAM_CALL(cuStreamSynchronize, synchronize, (CUstream handle), handle)

CUresult cuCtxSynchronize(void)
{
    struct CUctx_st *ctx;
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult rc = cpu_context_current(&ctx);
    if (!rc)
        rc = capture_refuse_context(ctx);
    return rc ? rc : cpu_context_wait(ctx);
}

CUresult cuCtxSynchronize_v2(CUcontext ctx)
{
    if (!ctx)
        return cuCtxSynchronize();
    if (pool_in_callback())
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult rc = device_ready();
    if (rc)
        return rc;
    ctx = cpu_context_named(ctx);
    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    rc = stream_error(ctx);
    if (!rc)
        rc = capture_refuse_context(ctx);
    return rc ? rc : cpu_context_wait(ctx);
}

// --- callbacks ---------------------------------------------------------------------------------------------

struct host_call {
    CUhostFn fn;
    CUstreamCallback callback;
    void *data;
    CUstream handle;
    struct CUctx_st *ctx;
};

static void call_host(void *arg, bool run)
{
    struct host_call call = *(struct host_call *)arg;
    mem_free(arg);
    if (run)
        call.fn(call.data);
}

// The callback is called even if the context is in error, with that error.
static void call_callback(void *arg, bool run)
{
    struct host_call call = *(struct host_call *)arg;
    mem_free(arg);
    call.callback(call.handle, stream_fault(call.ctx), call.data);
}

static CUresult push_call(struct CUstream_st *s, stream_fn *fn, struct host_call call)
{
    struct host_call *copy = mem_alloc(sizeof *copy);
    if (!copy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *copy = call;
    CUresult rc = stream_push_callback(s, fn, copy);
    if (rc)
        mem_free(copy);
    return rc;
}

static CUresult launch_host(bool per_thread, CUstream handle, CUhostFn fn, void *data)
{
    struct CUstream_st *s;
    CUresult rc = stream_get(handle, per_thread, &s);
    if (rc)
        return rc;
    if (!fn)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream_captures(s)) {
        CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {fn, data}};
        if (capture_take(s, &node, NULL, 0, &rc))
            return rc;
    }
    return push_call(s, call_host, (struct host_call){.fn = fn, .data = data, .ctx = s->ctx});
}
STREAM_CALL(cuLaunchHostFunc, launch_host, (CUstream handle, CUhostFn fn, void *data), handle, fn, data)

static CUresult add_callback(bool per_thread, CUstream handle, CUstreamCallback callback, void *data,
                             unsigned flags)
{
    struct CUstream_st *s;
    CUresult rc = stream_get(handle, per_thread, &s);
    if (rc)
        return rc;
    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    return push_call(s, call_callback,
                     (struct host_call){.callback = callback, .data = data, .handle = handle, .ctx = s->ctx});
}
STREAM_CALL(cuStreamAddCallback, add_callback,
            (CUstream handle, CUstreamCallback callback, void *data, unsigned int flags), handle, callback,
            data, flags)

// --- attributes --------------------------------------------------------------------------------------------

static CUresult copy_attributes(bool per_thread, CUstream to, CUstream from)
{
    struct CUstream_st *dst, *src;
    CUresult rc = stream_get(to, per_thread, &dst);
    if (!rc)
        rc = stream_get(from, per_thread, &src);
    if (rc)
        return rc;
    pool_lock();
    dst->window = src->window;
    dst->sync_policy = src->sync_policy;
    dst->domain_map = src->domain_map;
    dst->domain = src->domain;
    pool_unlock();
    return CUDA_SUCCESS;
}
STREAM_CALL(cuStreamCopyAttributes, copy_attributes, (CUstream to, CUstream from), to, from)

static CUresult attribute_out(const struct CUstream_st *s, CUstreamAttrID id, CUstreamAttrValue *out)
{
    switch ((int)id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW: out->accessPolicyWindow = s->window; break;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY: out->syncPolicy = s->sync_policy; break;
    case CU_STREAM_ATTRIBUTE_PRIORITY: out->priority = s->priority; break;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: out->memSyncDomainMap = s->domain_map; break;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN: out->memSyncDomain = s->domain; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult attribute_in(struct CUstream_st *s, CUstreamAttrID id, const CUstreamAttrValue *in)
{
    if (id == CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY &&
        (in->syncPolicy < CU_SYNC_POLICY_AUTO || in->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC))
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)id) {
    case CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW: s->window = in->accessPolicyWindow; break;
    case CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY: s->sync_policy = in->syncPolicy; break;
    case CU_STREAM_ATTRIBUTE_PRIORITY: s->priority = clamp_priority(in->priority); break;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP: s->domain_map = in->memSyncDomainMap; break;
    case CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN: s->domain = in->memSyncDomain; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult get_attribute(bool per_thread, CUstream handle, CUstreamAttrID id, CUstreamAttrValue *out)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, out, &s);
    if (rc)
        return rc;
    memset(out, 0, sizeof *out);
    pool_lock();
    rc = attribute_out(s, id, out);
    pool_unlock();
    return rc;
}
STREAM_CALL(cuStreamGetAttribute, get_attribute, (CUstream handle, CUstreamAttrID id, CUstreamAttrValue *out),
            handle, id, out)

static CUresult set_attribute(bool per_thread, CUstream handle, CUstreamAttrID id,
                              const CUstreamAttrValue *in)
{
    struct CUstream_st *s;
    CUresult rc = ask(per_thread, handle, in, &s);
    if (rc)
        return rc;
    pool_lock();
    rc = attribute_in(s, id, in);
    pool_unlock();
    return rc;
}
STREAM_CALL(cuStreamSetAttribute, set_attribute,
            (CUstream handle, CUstreamAttrID id, const CUstreamAttrValue *in), handle, id, in)
