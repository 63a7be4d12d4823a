// SPDX-License-Identifier: MIT
#include "context/context.h"

#include <time.h>

#include "context/green.h"
#include "core/lock.h"
#include "core/guard.h"
#include "core/one_or_many.h"

#define CLOSED ((uint32_t)1 << 31)  // in `held`

enum {
    PAUSE = 50000,            // nanoseconds between looks at `held`
    MOST_FOR_OPEN = 4000,     // so many looks until a closed context counts as lost: 0.2 s
    MOST_FOR_HOLDERS = 40000  // and until a context ends though somebody holds it: 2 s
};

static struct context contexts[CONTEXT_ROWS];
static _Atomic(struct context *) numbered[CONTEXT_CONTEXTS];
static bool attach_lost;                       // a context that was attached to found no row
static bool table_full;                        // a context found no row
static struct one_or_many seen;                // contexts that were begun
static struct lock lock = LOCK_INIT(CONTEXT);  // protects changes to the table; a leaf

// The parent's contexts are invalid in the child: no driver works across a fork. Modes forget their own data
// about them.
void context_after_fork(void)
{
    lock_after_fork(&lock);
    context_device_after_fork();
    for (unsigned i = 0; i < CONTEXT_ROWS; i++) {
        contexts[i].lives = false;
        contexts[i].attached = 0;
        atomic_store_explicit(&contexts[i].held, 0, memory_order_relaxed);
        if (!atomic_load_explicit(&contexts[i].used, memory_order_relaxed))
            atomic_store_explicit(&contexts[i].handle, NULL, memory_order_relaxed);
    }
    table_full = false;
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

static struct context *find_row(CUcontext context)
{
    // Acquire: pairs with the release in add_row, so that a thread that finds the handle sees the row's
    // contents.
    for (unsigned i = 0; i < CONTEXT_ROWS; i++)
        if (atomic_load_explicit(&contexts[i].handle, memory_order_acquire) == context)
            return &contexts[i];
    return NULL;
}

// Requires the lock. Returns NULL if there is no room, which `table_full` remembers.
static struct context *add_row(CUcontext context)
{
    struct context *ctx = find_row(context);
    if (!ctx && (ctx = find_row(NULL))) {
        atomic_store_explicit(&ctx->used, false, memory_order_relaxed);
        ctx->lives = false;
        ctx->attached = 0;
        atomic_fetch_and_explicit(&ctx->held, ~CLOSED, memory_order_relaxed);
        atomic_store_explicit(&ctx->handle, context, memory_order_release);
    }
    table_full |= !ctx;
    return ctx;
}

void context_begun(CUcontext context)
{
    if (!context)
        return;
    one_or_many_note(&seen, context);
    lock_take(&lock);
    struct context *ctx = add_row(context);
    if (ctx)
        ctx->lives = true;
    lock_give(&lock);
}

bool context_only_one(void)
{
    return one_or_many_one(&seen);
}

bool context_lives(CUcontext context)
{
    lock_take(&lock);
    const struct context *ctx = context ? find_row(context) : NULL;
    bool lives = ctx && ctx->lives;
    lock_give(&lock);
    return lives;
}

unsigned context_list(CUcontext list[CONTEXT_ROWS], bool *all)
{
    unsigned n = 0;
    lock_take(&lock);
    for (unsigned i = 0; i < CONTEXT_ROWS; i++) {
        CUcontext context = atomic_load_explicit(&contexts[i].handle, memory_order_relaxed);
        if (context && contexts[i].lives)
            list[n++] = context;
    }
    *all = !table_full;
    lock_give(&lock);
    return n;
}

void context_attach(CUcontext context)
{
    lock_take(&lock);
    struct context *ctx = add_row(context);
    if (ctx)
        ctx->attached++;
    attach_lost |= !ctx;
    lock_give(&lock);
}

bool context_detach(CUcontext context, bool all)
{
    lock_take(&lock);
    struct context *ctx = context ? find_row(context) : NULL;
    bool held = attach_lost;
    if (ctx && ctx->attached) {
        ctx->attached = all ? 0 : ctx->attached - 1;
        held = true;
    }
    lock_give(&lock);
    return held;
}

// Requires the lock.
static void retire(struct context *ctx)
{
    if (!atomic_load_explicit(&ctx->used, memory_order_relaxed))
        return;
    atomic_store_explicit(&numbered[ctx->number], NULL, memory_order_release);
    atomic_store_explicit(&ctx->used, false, memory_order_release);
}

void context_forget(CUcontext context)
{
    lock_take(&lock);
    struct context *ctx = context ? find_row(context) : NULL;
    if (ctx) {
        retire(ctx);
        atomic_store_explicit(&ctx->handle, NULL, memory_order_release);
    }
    lock_give(&lock);
}

// --- where modes work --------------------------------------------------------------------------------------

static bool is_used(const struct context *ctx)
{
    // Acquire: pairs with the release in use.
    return ctx && atomic_load_explicit(&ctx->used, memory_order_acquire);
}

struct context *context_find(CUcontext context)
{
    struct context *ctx = context ? find_row(context) : NULL;
    return is_used(ctx) ? ctx : NULL;
}

unsigned context_number(const struct context *ctx)
{
    return ctx->number;
}

struct context *context_of_number(unsigned number)
{
    // Acquire: pairs with the release in use, so that a thread that finds the row sees its contents.
    return atomic_load_explicit(&numbered[number], memory_order_acquire);
}

static struct context *use(CUcontext context, CUdevice device)
{
    lock_take(&lock);
    struct context *ctx = add_row(context);
    unsigned number = 0;
    while (number < CONTEXT_CONTEXTS && atomic_load_explicit(&numbered[number], memory_order_relaxed))
        number++;
    if (ctx && !is_used(ctx) && number == CONTEXT_CONTEXTS) {
        ctx = NULL;
    } else if (ctx && !is_used(ctx)) {
        ctx->number = number;
        ctx->device = device;
        atomic_store_explicit(&ctx->stream, NULL, memory_order_relaxed);
        atomic_store_explicit(&ctx->anchor, 0, memory_order_relaxed);
        atomic_store_explicit(&ctx->peers, 0, memory_order_relaxed);
        atomic_store_explicit(&ctx->used, true, memory_order_release);
        atomic_store_explicit(&numbered[number], ctx, memory_order_release);
    }
    lock_give(&lock);
    return ctx;
}

struct context *context_current(void)
{
    CUcontext context = NULL;
    CUdevice device;
    if (!guard.real.cuCtxGetCurrent || guard.real.cuCtxGetCurrent(&context) || !context)
        return NULL;
    // A stream that moat created in a green context would be destroyed with it.
    if (green_owner(context) != context)
        return NULL;
    struct context *ctx = context_find(context);
    if (ctx)
        return ctx;
    if (!has_calls() || guard.real.cuCtxGetDevice(&device) || !context_device_of(device))
        return NULL;
    return use(context, device);
}

struct context *context_enter(CUcontext context, bool *pushed)
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
    struct context *ctx = context_current();
    if (!ctx)
        context_leave(*pushed);
    *pushed &= ctx != NULL;
    return ctx;
}

CUcontext context_current_owner(void)
{
    CUcontext current = NULL;
    return guard.real.cuCtxGetCurrent && !guard.real.cuCtxGetCurrent(&current) && current
               ? green_owner(current)
               : NULL;
}

struct context *context_enter_owner(bool *pushed)
{
    CUcontext owner = context_current_owner();
    *pushed = false;
    return owner ? context_enter(owner, pushed) : NULL;
}

void context_leave(bool pushed)
{
    CUcontext context;
    if (pushed)
        guard.real.cuCtxPopCurrent_v2(&context);
}

// --- ends, while others work -------------------------------------------------------------------------------

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = PAUSE}, NULL);
}

bool context_hold(struct context *ctx, CUcontext context)
{
    for (unsigned looks = 0;; looks++) {
        // Both seq_cst, as is context_close: either this thread sees that the context is closed, or the one
        // that closes it sees that it is held. The acquire in is_used pairs with the release in use.
        uint32_t held = atomic_fetch_add(&ctx->held, 1);
        bool same = atomic_load(&ctx->handle) == context && is_used(ctx);
        if (same && !(held & CLOSED))
            return true;
        context_release(ctx);
        if (!same || looks == MOST_FOR_OPEN)
            return false;
        rest();
    }
}

void context_release(struct context *ctx)
{
    // Release pairs with the acquire in context_close.
    atomic_fetch_sub_explicit(&ctx->held, 1, memory_order_release);
}

void context_close(CUcontext context)
{
    struct context *h = context ? find_row(context) : NULL;
    if (!h)
        return;
    atomic_fetch_or(&h->held, CLOSED);
    for (unsigned looks = 0;
         atomic_load_explicit(&h->held, memory_order_acquire) & ~CLOSED && looks < MOST_FOR_HOLDERS; looks++)
        rest();
}

void context_open(CUcontext context)
{
    struct context *h = context ? find_row(context) : NULL;
    if (h)
        atomic_fetch_and_explicit(&h->held, ~CLOSED, memory_order_release);
}

bool context_is_closed(const struct context *ctx)
{
    return atomic_load_explicit(&ctx->held, memory_order_relaxed) & CLOSED;
}

CUstreamCaptureMode context_capture_relax(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
    return mode;
}

void context_capture_restore(CUstreamCaptureMode mode)
{
    if (guard.real.cuThreadExchangeStreamCaptureMode)
        guard.real.cuThreadExchangeStreamCaptureMode(&mode);
}
