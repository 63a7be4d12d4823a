// SPDX-License-Identifier: MIT
// The ends of contexts: what they held is gone, and what the program still held has leaked.
#include "guard/canary.h"
#include "guard/count_read.h"
#include "guard/guard.h"
#include "guard/hook.h"
#include "guard/kheap_host.h"
#include "guard/leak.h"
#include "guard/pages.h"
#include "guard/track.h"

enum { DEVICES = 64 };

// The primary context of each device, once somebody has retained it. Relaxed: it never changes to another.
static _Atomic(CUcontext) primary[DEVICES];
static _Atomic(int)
    retained[DEVICES];  // how often; relaxed: it tells when it may be the last time, and no more

static void gone(CUcontext context, enum driver_id call)
{
    if (!guard.watching || !context)
        return;
    leak_report(context);
    track_owner_gone(context, call);
    count_read_context_ended(context);
    canary_context_gone(context);
    pages_context_gone(context);
}

// Before the driver's call, and after it.
static void ends(CUcontext context, enum driver_id call)
{
    pages_context_ends(context, call);
    canary_context_ends(context, call);
}

static void over(CUcontext context, enum driver_id call, bool is_gone)
{
    if (is_gone)
        gone(context, call);
    else
        canary_context_stays(context);
}

static CUcontext primary_of(CUdevice device)
{
    return device >= 0 && device < DEVICES ? atomic_load_explicit(&primary[device], memory_order_relaxed)
                                           : NULL;
}

CUresult hook_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult r = guard.real.cuDevicePrimaryCtxRetain(context, device);
    if (!r && device >= 0 && device < DEVICES) {
        atomic_store_explicit(&primary[device], *context, memory_order_relaxed);
        atomic_fetch_add_explicit(&retained[device], 1, memory_order_relaxed);
    }
    return r;
}

static CUresult reset(enum driver_id call, __typeof__(cuDevicePrimaryCtxReset) *real, CUdevice device)
{
    count_read_context_ending(primary_of(device));
    ends(primary_of(device), call);
    CUresult r = real(device);
    over(primary_of(device), call, !r);
    return r;
}

static CUresult release(enum driver_id call, __typeof__(cuDevicePrimaryCtxRelease) *real, CUdevice device)
{
    unsigned flags;
    int active = 1;
    if (device >= 0 && device < DEVICES &&
        atomic_fetch_sub_explicit(&retained[device], 1, memory_order_relaxed) <= 1)
        count_read_context_ending(primary_of(device));
    ends(primary_of(device), call);
    CUresult r = real(device);
    bool is_gone = !r && guard.real.cuDevicePrimaryCtxGetState &&
                   !guard.real.cuDevicePrimaryCtxGetState(device, &flags, &active) && !active;
    over(primary_of(device), call, is_gone);
    return r;
}

static CUresult destroy(enum driver_id call, __typeof__(cuCtxDestroy) *real, CUcontext context)
{
    count_read_context_ending(context);
    ends(context, call);
    CUresult r = real(context);
    over(context, call, !r);
    return r;
}

// A call and its older version.
#define ENDS(symbol, end, type)                                          \
    CUresult hook_##symbol(type which)                                   \
    {                                                                    \
        return end(DRIVER_##symbol, guard.real.symbol, which);           \
    }                                                                    \
    CUresult hook_##symbol##_v2(type which)                              \
    {                                                                    \
        return end(DRIVER_##symbol##_v2, guard.real.symbol##_v2, which); \
    }

ENDS(cuDevicePrimaryCtxReset, reset, CUdevice)
ENDS(cuDevicePrimaryCtxRelease, release, CUdevice)
ENDS(cuCtxDestroy, destroy, CUcontext)

CUresult hook_cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult r = guard.real.cuCtxSetLimit(limit, value);
    if (!r && limit == CU_LIMIT_MALLOC_HEAP_SIZE)
        kheap_host_limit_set();
    return r;
}
