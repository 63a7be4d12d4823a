// SPDX-License-Identifier: MIT
#include "context/home.h"

#include "context/green.h"
#include "core/lock.h"
#include "core/guard.h"
#include "core/only.h"

static struct home homes[HOME_ROWS];
static _Atomic(struct home *) numbered[HOME_CONTEXTS];
static bool attach_lost;                    // one that was attached to found no row
static bool crowded;                        // a context found no row
static struct only seen;                    // of contexts that were begun
static struct lock lock = LOCK_INIT(HOME);  // of changes to the table; a leaf

// The parent's contexts are not the child's: no driver works across a fork. What modes know of them they
// forget themselves.
void home_after_fork(void)
{
    lock_after_fork(&lock);
    home_device_after_fork();
    for (unsigned i = 0; i < HOME_ROWS; i++) {
        homes[i].lives = false;
        homes[i].attached = 0;
        if (!atomic_load_explicit(&homes[i].used, memory_order_relaxed))
            atomic_store_explicit(&homes[i].context, NULL, memory_order_relaxed);
    }
    crowded = false;
}

static bool has_calls(void)
{
    const struct driver *d = &guard.real;
    return d->cuCtxGetCurrent && d->cuCtxGetDevice && d->cuCtxPushCurrent_v2 && d->cuCtxPopCurrent_v2 &&
           d->cuDeviceTotalMem_v2 && d->cuStreamCreate && d->cuStreamSynchronize && d->cuMemcpyHtoDAsync_v2 &&
           d->cuMemcpyDtoHAsync_v2 && d->cuMemAlloc_v2 && d->cuMemFree_v2 && d->cuEventCreate &&
           d->cuEventRecord && d->cuEventQuery && d->cuEventDestroy_v2;
}

// --- rows --------------------------------------------------------------------------------------------------

static struct home *find_row(CUcontext context)
{
    // Acquire pairs with the release in add_row: who finds the context sees what the row says.
    for (unsigned i = 0; i < HOME_ROWS; i++)
        if (atomic_load_explicit(&homes[i].context, memory_order_acquire) == context)
            return &homes[i];
    return NULL;
}

// Under the lock. NULL: there is no room, which is remembered.
static struct home *add_row(CUcontext context)
{
    struct home *h = find_row(context);
    if (!h && (h = find_row(NULL))) {
        atomic_store_explicit(&h->used, false, memory_order_relaxed);
        h->lives = false;
        h->attached = 0;
        atomic_store_explicit(&h->context, context, memory_order_release);
    }
    crowded |= !h;
    return h;
}

void home_begun(CUcontext context)
{
    if (!context)
        return;
    only_note(&seen, context);
    lock_take(&lock);
    struct home *h = add_row(context);
    if (h)
        h->lives = true;
    lock_give(&lock);
}

bool home_only_one(void)
{
    return only_one(&seen);
}

bool home_lives(CUcontext context)
{
    lock_take(&lock);
    const struct home *h = context ? find_row(context) : NULL;
    bool lives = h && h->lives;
    lock_give(&lock);
    return lives;
}

unsigned home_list(CUcontext list[HOME_ROWS], bool *all)
{
    unsigned n = 0;
    lock_take(&lock);
    for (unsigned i = 0; i < HOME_ROWS; i++) {
        CUcontext context = atomic_load_explicit(&homes[i].context, memory_order_relaxed);
        if (context && homes[i].lives)
            list[n++] = context;
    }
    *all = !crowded;
    lock_give(&lock);
    return n;
}

void home_attach(CUcontext context)
{
    lock_take(&lock);
    struct home *h = add_row(context);
    if (h)
        h->attached++;
    attach_lost |= !h;
    lock_give(&lock);
}

bool home_detach(CUcontext context, bool all)
{
    lock_take(&lock);
    struct home *h = context ? find_row(context) : NULL;
    bool held = attach_lost;
    if (h && h->attached) {
        h->attached = all ? 0 : h->attached - 1;
        held = true;
    }
    lock_give(&lock);
    return held;
}

// Under the lock.
static void retire(struct home *h)
{
    if (!atomic_load_explicit(&h->used, memory_order_relaxed))
        return;
    atomic_store_explicit(&numbered[h->number], NULL, memory_order_release);
    atomic_store_explicit(&h->used, false, memory_order_release);
}

void home_forget(CUcontext context)
{
    lock_take(&lock);
    struct home *h = context ? find_row(context) : NULL;
    if (h) {
        retire(h);
        atomic_store_explicit(&h->context, NULL, memory_order_release);
    }
    lock_give(&lock);
}

// --- where modes work --------------------------------------------------------------------------------------

static bool is_used(const struct home *h)
{
    // Acquire pairs with the release in use.
    return h && atomic_load_explicit(&h->used, memory_order_acquire);
}

struct home *home_find(CUcontext context)
{
    struct home *h = context ? find_row(context) : NULL;
    return is_used(h) ? h : NULL;
}

unsigned home_number(const struct home *home)
{
    return home->number;
}

struct home *home_of_number(unsigned number)
{
    // Acquire pairs with the release in use: who finds the row sees what it says.
    return atomic_load_explicit(&numbered[number], memory_order_acquire);
}

static struct home *use(CUcontext context, CUdevice device)
{
    lock_take(&lock);
    struct home *h = add_row(context);
    unsigned number = 0;
    while (number < HOME_CONTEXTS && atomic_load_explicit(&numbered[number], memory_order_relaxed))
        number++;
    if (h && !is_used(h) && number == HOME_CONTEXTS) {
        h = NULL;
    } else if (h && !is_used(h)) {
        h->number = number;
        h->device = device;
        atomic_store_explicit(&h->stream, NULL, memory_order_relaxed);
        atomic_store_explicit(&h->anchor, 0, memory_order_relaxed);
        atomic_store_explicit(&h->peers, 0, memory_order_relaxed);
        atomic_store_explicit(&h->used, true, memory_order_release);
        atomic_store_explicit(&numbered[number], h, memory_order_release);
    }
    lock_give(&lock);
    return h;
}

struct home *home_current(void)
{
    CUcontext context = NULL;
    CUdevice device;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&context) || !context)
        return NULL;
    // A stream that we made in a green one would go with it.
    if (green_owner(context) != context)
        return NULL;
    struct home *h = home_find(context);
    if (h)
        return h;
    if (!has_calls() || guard.real.cuCtxGetDevice(&device) || !home_device(device))
        return NULL;
    return use(context, device);
}

struct home *home_enter(CUcontext context, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&current))
        return NULL;
    if (context && current != context) {
        if (guard.real.cuCtxPushCurrent_v2(context))
            return NULL;
        *pushed = true;
    }
    struct home *h = home_current();
    if (!h)
        home_leave(*pushed);
    *pushed &= h != NULL;
    return h;
}

struct home *home_enter_owner(bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&current) || !current)
        return NULL;
    return home_enter(green_owner(current), pushed);
}

void home_leave(bool pushed)
{
    CUcontext context;
    if (pushed)
        guard.real.cuCtxPopCurrent_v2(&context);
}

CUstreamCaptureMode home_calm(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void home_stir(CUstreamCaptureMode mode)
{
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
}
