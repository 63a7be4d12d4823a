// SPDX-License-Identifier: MIT
// The primary context: one for the process, alive while somebody retains it. Its handle never changes and stays
// valid; while it is not alive, calls on it return CUDA_ERROR_CONTEXT_IS_DESTROYED.
#include "base/mem.h"
#include "cpu/cpu.h"

// Held while it begins and ends, so that nobody finds it half made. Outermost, before context.c's.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st *primary;
static unsigned retained;
static unsigned next_flags;  // of its next life

static bool alive(void)
{
    return primary && atomic_load(&primary->alive);
}

static CUresult make_primary(void)
{
    struct CUctx_st *ctx = mem_zalloc(1, sizeof *ctx);
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->primary = true;
    if (pthread_mutex_init(&ctx->lock, NULL) || handle_add(ctx, HANDLE_CONTEXT)) {
        mem_free(ctx);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    primary = ctx;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
    CUresult r = device_ready();
    if (r || !out)
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!primary)
        r = make_primary();
    if (!r && !alive())
        r = context_start(primary, device, next_flags);
    if (!r) {
        retained++;
        *out = primary;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static void end(void)
{
    if (alive())
        context_end(primary);
    next_flags = 0;
}

static CUresult release(CUdevice device)
{
    CUresult r = device_check(device);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    if (!retained)
        r = CUDA_ERROR_INVALID_CONTEXT;
    else if (--retained == 0)
        end();
    pthread_mutex_unlock(&lock);
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

// Those who retained it still have to release it.
static CUresult reset(CUdevice device)
{
    CUresult r = device_check(device);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    end();
    pthread_mutex_unlock(&lock);
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
    if (r || !context_flags_valid(flags))
        return r ? r : CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&lock);
    next_flags = flags;
    if (alive())
        primary->flags = flags;
    pthread_mutex_unlock(&lock);
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
    if (device != 0)
        return CUDA_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    *active = alive();
    *flags = *active ? primary->flags : next_flags;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}
