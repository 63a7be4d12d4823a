// SPDX-License-Identifier: MIT
// Primary contexts: one for each device, alive while somebody retains it. Its handle never changes and stays
// valid; while the context is not alive, calls on it return CUDA_ERROR_CONTEXT_IS_DESTROYED.
#include "base/mem.h"
#include "base/mutex.h"
#include "cpu/config.h"
#include "cpu/cpu.h"

struct primary {
    struct CUctx_st *ctx;  // NULL: never retained
    unsigned retained;
    unsigned next_flags;  // of its next life
};

// Held while a primary context begins and ends, so that nobody finds one half made. Outermost, before
// cpu_context.c's.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct primary primaries[CONFIG_DEVICES];

static bool alive(const struct primary *p)
{
    return p->ctx && atomic_load(&p->ctx->alive);
}

static CUresult make(struct primary *p)
{
    struct CUctx_st *ctx = mem_zalloc(1, sizeof *ctx);
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->primary = true;
    if (pthread_mutex_init(&ctx->lock, NULL) || handle_add(ctx, HANDLE_CONTEXT)) {
        mem_free(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    p->ctx = ctx;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult r = device_ready();
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = device_check(device);
    if (r)
        return r;
    mutex_lock(&lock);
    struct primary *p = &primaries[device];
    if (!p->ctx)
        r = make(p);
    if (!r && !alive(p))
        r = cpu_context_start(p->ctx, device, p->next_flags);
    if (!r) {
        p->retained++;
        *out = p->ctx;
    }
    mutex_unlock(&lock);
    return r;
}

static void end(struct primary *p)
{
    if (alive(p))
        cpu_context_end(p->ctx);
    p->next_flags = 0;
}

static CUresult release(CUdevice device)
{
    CUresult r = device_check(device);
    if (r)
        return r;
    mutex_lock(&lock);
    struct primary *p = &primaries[device];
    if (!p->retained)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (--p->retained == 0)
        end(p);
    mutex_unlock(&lock);
    return r;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    return release(device);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    return release(device);
}

// Every retain still has to be matched by a release.
static CUresult reset(CUdevice device)
{
    CUresult r = device_check(device);
    if (r)
        return r;
    mutex_lock(&lock);
    end(&primaries[device]);
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
    return reset(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return reset(device);
}

static CUresult set_flags(CUdevice device, unsigned flags)
{
    CUresult r = device_check(device);
    if (r || !cpu_context_flags_valid(flags))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    mutex_lock(&lock);
    struct primary *p = &primaries[device];
    p->next_flags = flags;
    if (alive(p))
        p->ctx->flags = flags;
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
    return set_flags(device, flags);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
    return set_flags(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUresult r = device_ready();
    if (r || !flags || !active)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    r = device_check(device);
    if (r)
        return r;
    mutex_lock(&lock);
    const struct primary *p = &primaries[device];
    *active = alive(p);
    *flags = *active ? p->ctx->flags : p->next_flags;
    mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
