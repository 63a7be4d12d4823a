// SPDX-License-Identifier: MIT
// The ends of contexts: blocks in them are gone, and those not yet freed have leaked.
#include "hook/hook_context.h"

#include "context/context.h"
#include "context/green.h"
#include "context/kernels.h"
#include "core/lock.h"
#include "core/guard.h"
#include "hook/hook.h"
#include "track/leak.h"
#include "mode/mode.h"
#include "track/track.h"

// Held from before the driver ends a context until all records of it are removed: the driver may reuse its
// handle at once, and a thread that gets the handle waits for this lock. First in rank; recursive, because a
// call into the driver may call back into libmoat.so.
static struct lock ending = LOCK_INIT_RECURSIVE(CONTEXT_ENDS);

void hook_context_after_fork(void)
{
    ending = (struct lock)LOCK_INIT_RECURSIVE(CONTEXT_ENDS);
}

static void gone(CUcontext context, enum driver_id call)
{
    if (!guard.watching || !context)
        return;
    leak_report(context);
    track_owner_gone(context, call);
    mode_context_gone(context);
    context_forget(context);
}

// ends is called before the driver's call and over after it, always in pairs. last: nobody else is known to
// hold the context.
static void ends(CUcontext context, enum driver_id call, bool last)
{
    if (last)
        mode_context_last_look(context);
    lock_take(&ending);
    context_close(context);
    kernels_context_ends(context, true);
    mode_context_ends(context, call);
}

// The same for the primary context of a device. Which one that is is known for certain only under the lock:
// another thread may be ending it, and the next is another.
static void primary_ends(CUdevice device, enum driver_id call, bool last)
{
    if (last)
        mode_context_last_look(context_device_primary(device));
    lock_take(&ending);
    ends(context_device_primary(device), call, false);
    lock_give(&ending);
}

static void over(CUcontext context, enum driver_id call, bool is_gone)
{
    if (is_gone) {
        gone(context, call);
    } else {
        kernels_context_ends(context, false);
        mode_context_stays(context);
    }
    context_open(context);
    lock_give(&ending);
}

static void wait_for_ends(void)
{
    lock_take(&ending);
    lock_give(&ending);
}

static void retain(CUdevice device, CUcontext context)
{
    context_device_retained(device, context);
    context_begun(context);
}

CUresult hook_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    // Otherwise a context that is being released here would be taken for one that stays alive.
    lock_take(&ending);
    CUresult r = guard.real.cuDevicePrimaryCtxRetain(context, device);
    if (!r)
        retain(device, *context);
    lock_give(&ending);
    return r;
}

// A context must be recorded when it is created, because libraries are loaded into it without a call that
// moat sees.
#define CREATE(symbol, parameters, arguments)     \
    CUresult hook_##symbol parameters             \
    {                                             \
        CUresult r = guard.real.symbol arguments; \
        wait_for_ends();                          \
        if (!r)                                   \
            context_begun(*context);              \
        return r;                                 \
    }
CREATE(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device), (context, flags, device))
CREATE(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device), (context, flags, device))
CREATE(cuCtxCreate_v3,
       (CUcontext * context, CUexecAffinityParam *affinity, int n, unsigned flags, CUdevice device),
       (context, affinity, n, flags, device))
CREATE(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams *how, unsigned flags, CUdevice device),
       (context, how, flags, device))

static CUresult reset(enum driver_id call, __typeof__(cuDevicePrimaryCtxReset) *real, CUdevice device)
{
    primary_ends(device, call, true);
    CUresult r = real(device);
    if (!r)
        green_primary_gone(context_device_primary(device));
    over(context_device_primary(device), call, !r);
    return r;
}

// releases is called before a call that releases a primary context, and released after it.
static void releases(enum driver_id call, CUdevice device)
{
    bool last = context_device_releases(device);
    primary_ends(device, call, last);
}

static CUresult released(enum driver_id call, CUdevice device, CUresult r)
{
    unsigned flags;
    int active = 1;
    if (r)
        retain(device, NULL);
    bool is_gone = !r && guard.real.cuDevicePrimaryCtxGetState &&
                   !guard.real.cuDevicePrimaryCtxGetState(device, &flags, &active) && !active;
    if (is_gone)
        green_primary_gone(context_device_primary(device));
    over(context_device_primary(device), call, is_gone);
    return r;
}

static CUresult release(enum driver_id call, __typeof__(cuDevicePrimaryCtxRelease) *real, CUdevice device)
{
    releases(call, device);
    return released(call, device, real(device));
}

static CUresult destroy(enum driver_id call, __typeof__(cuCtxDestroy) *real, CUcontext context)
{
    ends(context, call, true);
    CUresult r = real(context);
    if (!r)
        context_detach(context, true);
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

// cuCtxAttach and cuCtxDetach, the oldest way to hold contexts: the last detach destroys the context.

CUresult hook_cuCtxAttach(CUcontext *context, unsigned flags)
{
    CUresult r = guard.real.cuCtxAttach(context, flags);
    if (!r)
        context_attach(*context);
    return r;
}

CUresult hook_cuCtxDetach(CUcontext context)
{
    if (!context_detach(context, false))
        return destroy(DRIVER_cuCtxDetach, guard.real.cuCtxDetach, context);
    CUresult r = guard.real.cuCtxDetach(context);
    if (r)
        context_attach(context);
    return r;
}

// A green context holds the primary context of its device.

static CUcontext find_primary(CUdevice device)
{
    const struct driver *d = &guard.real;
    CUcontext context = context_device_primary(device);
    if (!context && d->cuDevicePrimaryCtxRetain && d->cuDevicePrimaryCtxRelease_v2 &&
        !d->cuDevicePrimaryCtxRetain(&context, device))
        d->cuDevicePrimaryCtxRelease_v2(device);
    return context;
}

CUresult hook_cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
    CUresult r = guard.real.cuGreenCtxCreate(green, desc, device, flags);
    if (!r) {
        retain(device, find_primary(device));
        green_made(*green, device, context_device_primary(device));
    }
    return r;
}

CUresult hook_cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    CUresult r = guard.real.cuCtxFromGreenCtx(context, green);
    if (!r)
        green_current_as(green, *context);
    return r;
}

// The green context is removed from the records before the driver's call, because afterwards another may have
// its handles.
CUresult hook_cuGreenCtxDestroy(CUgreenCtx green)
{
    enum driver_id call = DRIVER_cuGreenCtxDestroy;
    CUdevice device = green_device(green);
    releases(call, device);
    CUcontext context = green_gone(green);
    CUresult r = guard.real.cuGreenCtxDestroy(green);
    if (r && device >= 0) {
        green_made(green, device, context_device_primary(device));
        green_current_as(green, context);
    } else if (context && guard.watching) {
        track_owner_gone(context, call);  // it owns nothing, but its handle may be reused
    }
    return released(call, device, r);
}

CUresult hook_cuCtxSetLimit(CUlimit limit, size_t value)
{
    CUresult r = guard.real.cuCtxSetLimit(limit, value);
    if (!r)
        mode_limit_set(limit);
    return r;
}

CUresult hook_cuCtxGetLimit(size_t *value, CUlimit limit)
{
    CUresult r = guard.real.cuCtxGetLimit(value, limit);
    if (!r)
        mode_limit(limit, value);
    return r;
}
