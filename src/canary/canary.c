// SPDX-License-Identifier: MIT
#include "canary/canary.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cancel.h"
#include "canary/canary_staging.h"
#include "canary/canary_free.h"
#include "canary/canary_regions.h"
#include "canary/canary_managed.h"
#include "canary/canary_order.h"
#include "canary/canary_cache.h"
#include "canary/canary_suballoc.h"
#include "canary/canary_mapped.h"
#include "canary/canary_write.h"
#include "context/green.h"
#include "core/guard.h"
#include "track/guard_report.h"

bool canary_on;
static _Atomic(bool) stopped;  // relaxed, like `used`: no other memory depends on it
static _Atomic(bool) used;
static int owner;  // the process that uses the mode
// The memory of plain buffers; NULL: they are suballocated. Set once, at the start.
static const struct canary_memory *separate;

void canary_start(void)
{
    canary_on = guard.watching && guard.options.mode >> OPTION_MODE_CANARY & 1;
    if (canary_on && canary_bytes_init()) {
        guard_report_note("canary: no memory for a key, so buffers have no canaries");
        canary_on = false;
    }
    owner = getpid();
    separate = canary_managed_chosen();
}

// A driver that was used does not work in a forked child. If the parent has not used it, the child may.
void canary_after_fork(void)
{
    canary_on &= !canary_used();
    owner = getpid();
    canary_store_after_fork();
    canary_cache_after_fork();
    canary_write_after_fork();
    canary_order_after_fork();
    canary_monitor_after_fork();
}

// Registered after the driver's own exit handler, so it runs before the driver shuts down.
static void at_exit(void)
{
    if (canary_on && owner == getpid())
        canary_monitor_end();
}

void canary_aborts(void)
{
    if (canary_on && canary_used() && owner == getpid())
        canary_monitor_aborts();
}

static pthread_once_t first_use = PTHREAD_ONCE_INIT;

static void begin(void)
{
    atomic_store_explicit(&used, true, memory_order_relaxed);
    if (atexit(at_exit))
        guard_report_note("canary: buffers that are never freed are not checked when the program ends");
    canary_monitor_start();
}

void canary_use(void)
{
    cancel_hold();
    pthread_once(&first_use, begin);
    cancel_release();
}

bool canary_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

// Returns the context of an allocation, held (context_hold) and prepared for scans; NULL if the allocation
// must be plain.
static struct context *ready(size_t size)
{
    if (!size || atomic_load_explicit(&stopped, memory_order_relaxed))
        return NULL;
    CUcontext current = NULL;
    struct context *ctx = context_current();
    if (!ctx || guard.real.cuCtxGetCurrent(&current) || !context_hold(ctx, current))
        return NULL;
    canary_use();
    if (!canary_staging_prepared(ctx)) {
        canary_monitor_lock();
        if (!canary_staging_prepared(ctx))
            canary_staging_prepare(ctx);
        canary_monitor_unlock();
    }
    return ctx;
}

static bool plain(size_t size)
{
    if (size)
        guard_count(GUARD_UNGUARDED);
    return false;
}

// Ends an allocation for which ready returned a context. Returns `done`.
static bool finish(struct context *ctx, bool done)
{
    context_release(ctx);
    return done;
}

static uint64_t count_buffer(const struct canary_place *place)
{
    guard_count(GUARD_CANARY_BUFFERS);
    guard_most(GUARD_CANARY_EXTRA, canary_store_extra());
    return place->base;
}

// Publishes a place whose canaries are in place, or will be before the program's next operation in the same
// order.
static uint64_t publish(const struct canary_place *place)
{
    canary_slot_publish(place, canary_scan_number());
    return count_buffer(place);
}

// Publishes a place that had a buffer of the same size, so that its canaries are intact.
static uint64_t publish_again(const struct canary_place *place)
{
    canary_slot_publish_again(place, canary_scan_number());
    return count_buffer(place);
}

// Makes memory from the driver a buffer. Returns false if that fails; the caller then still owns the memory.
static bool adopt(struct context *ctx, const struct canary_memory *memory, uint64_t real, size_t size,
                  uint64_t *base)
{
    struct canary_place place;
    if (canary_store_adopt(ctx, memory, real, size, NULL, &place))
        return false;
    if (canary_write_place(ctx, &place)) {
        canary_store_give(&place, 0);
        return false;
    }
    *base = publish(&place);
    return true;
}

// Takes a cached suballocated place of this size, undamaged. Returns false if there is none.
static bool take_cached(struct context *ctx, size_t size, struct canary_place *place)
{
    while (canary_cache_take(ctx, CANARY_SUBALLOCATED, NULL, 0, size, place)) {
        bool checked = canary_slot_is_checked(place->slab, place->number) ||
                       !canary_scan_place(ctx, place, &canary_free_on_reuse);
        if (checked && !canary_slot_reported(place->slab, place->number))
            return true;
        canary_store_give(place, 0);
    }
    return false;
}

// Takes a place and writes its canaries unless they are intact. Returns false if out of memory.
static bool take_place(struct context *ctx, size_t size, struct canary_place *place)
{
    for (bool patient = true;;) {
        // Another thread may close the slab that is to be checked; the epoch keeps it from being reused.
        unsigned section = epoch_enter();
        enum canary_took took = canary_store_take(ctx, size, patient, place);
        if (took == CANARY_CHECK) {
            canary_monitor_check(ctx, place->slab, &canary_free_on_reuse);
            patient = false;
        }
        epoch_leave(section);
        if (took == CANARY_FILL && !canary_store_open(place->slab, !canary_write_slab(ctx, place->slab)))
            return false;
        CUresult r = took == CANARY_TOOK_STALE ? canary_write_place(ctx, place) : CUDA_SUCCESS;
        if (r) {
            bool across = r == CUDA_ERROR_INVALID_VALUE && place->slab->mapped && canary_mapped_usable(ctx);
            canary_store_give(place, canary_scan_number());
            if (!across)
                return false;
            canary_mapped_disable(ctx, "a copy across pieces of memory fails");
            continue;
        }
        if (took == CANARY_TOOK || took == CANARY_TOOK_STALE)
            return true;
        if (took == CANARY_NONE)
            return false;
    }
}

// Allocates a plain buffer from the driver by itself.
static bool alloc_separate(struct context *ctx, CUdeviceptr *pointer, size_t size, CUresult *r)
{
    CUdeviceptr real;
    uint64_t base;
    if (!separate->take(canary_slab_padded(separate, size), &real))
        return plain(size);
    if (!adopt(ctx, separate, real, size, &base)) {
        guard.real.cuMemFree_v2(real);
        return plain(size);
    }
    separate->placed(ctx, base, size);
    *pointer = base;
    *r = CUDA_SUCCESS;
    return true;
}

static bool alloc_plain(struct context *ctx, CUdeviceptr *pointer, size_t size, CUresult *r)
{
    struct canary_place place;
    if (separate)
        return alloc_separate(ctx, pointer, size, r);
    if (take_cached(ctx, size, &place))
        *pointer = publish_again(&place);
    else if (take_place(ctx, size, &place) || (canary_reclaim() && take_place(ctx, size, &place)))
        *pointer = publish(&place);
    else
        return plain(size);
    *r = CUDA_SUCCESS;
    return true;
}

bool canary_alloc(CUdeviceptr *pointer, size_t size, CUresult *r)
{
    struct context *ctx = canary_on && pointer && size <= SIZE_MAX / 2 ? ready(size) : NULL;
    if (!ctx)
        return canary_on && plain(size);
    return finish(ctx, alloc_plain(ctx, pointer, size, r));
}

bool canary_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                        CUresult *r)
{
    bool right = pointer && pitch && width && height && (element == 4 || element == 8 || element == 16);
    struct context *ctx = canary_on && right ? context_current() : NULL;
    size_t granule = ctx ? context_device_pitch(ctx->device) : 0, row, size;
    if (!granule || granule > CANARY_SUBALLOC_UNIT || __builtin_add_overflow(width, granule - 1, &row))
        return canary_on && right && plain(width);
    row &= ~(granule - 1);
    if (__builtin_mul_overflow(row, height, &size) || !canary_alloc(pointer, size, r))
        return false;
    *pitch = row;
    return true;
}

// --- memory from the driver, with room for canaries --------------------------------------------------------

static bool alloc_managed(struct context *ctx, CUdeviceptr *pointer, size_t size, unsigned flags, CUresult *r)
{
    CUdeviceptr real;
    uint64_t base;
    const struct canary_memory *memory = &canary_slab_memory[CANARY_MANAGED];
    *r = guard.real.cuMemAllocManaged(&real, canary_slab_padded(memory, size), flags);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);  // without canaries it may fit
    if (*r)
        return true;
    if (!adopt(ctx, memory, real, size, &base)) {
        guard.real.cuMemFree_v2(real);
        return plain(size);
    }
    *pointer = base;
    return true;
}

bool canary_alloc_managed(CUdeviceptr *pointer, size_t size, unsigned flags, CUresult *r)
{
    struct context *ctx = canary_on && pointer && size <= SIZE_MAX / 2 ? ready(size) : NULL;
    if (!ctx)
        return canary_on && plain(size);
    return finish(ctx, alloc_managed(ctx, pointer, size, flags, r));
}

static bool alloc_host(struct context *ctx, void **pointer, size_t size, const unsigned *flags, CUresult *r)
{
    void *real = NULL;
    uint64_t base;
    const struct canary_memory *memory = &canary_slab_memory[CANARY_HOST];
    size_t padded = canary_slab_padded(memory, size);
    *r = flags ? guard.real.cuMemHostAlloc(&real, padded, *flags)
               : guard.real.cuMemAllocHost_v2(&real, padded);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);
    if (*r)
        return true;
    if (!adopt(ctx, memory, (uintptr_t)real, size, &base)) {
        guard.real.cuMemFreeHost(real);
        return plain(size);
    }
    *pointer = (void *)(uintptr_t)base;
    return true;
}

bool canary_alloc_host(void **pointer, size_t size, const unsigned *flags, CUresult *r)
{
    struct context *ctx = canary_on && pointer && size <= SIZE_MAX / 2 ? ready(size) : NULL;
    if (!ctx)
        return canary_on && plain(size);
    return finish(ctx, alloc_host(ctx, pointer, size, flags, r));
}

static CUresult pool_alloc(CUdeviceptr *real, size_t size, CUmemoryPool pool, CUstream stream,
                           bool per_thread)
{
    const struct driver *d = &guard.real;
    if (pool)
        return (per_thread ? d->cuMemAllocFromPoolAsync_ptsz : d->cuMemAllocFromPoolAsync)(real, size, pool,
                                                                                           stream);
    return (per_thread ? d->cuMemAllocAsync_ptsz : d->cuMemAllocAsync)(real, size, stream);
}

// Writes head and tail by one memset.
static CUresult set_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    __typeof__(cuMemsetD2D32Async) *set = per_thread ? d->cuMemsetD2D32Async_ptsz : d->cuMemsetD2D32Async;
    return set(place->base - CANARY_HEAD, place->size + CANARY_HEAD, (unsigned)canary_slab_seed(place).start,
               CANARY_HEAD / 4, 2, stream);
}

static CUresult copy_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    __typeof__(cuMemcpyHtoDAsync_v2) *copy =
        per_thread ? d->cuMemcpyHtoDAsync_v2_ptsz : d->cuMemcpyHtoDAsync_v2;
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count;
    canary_write_make(place, head, tail, &count);
    CUresult r = copy(place->base - CANARY_HEAD, head, CANARY_HEAD, stream);
    return r ? r : copy(place->base + place->size, tail, count, stream);
}

// Writes the canaries in stream order, and records the slab's event behind them.
static CUresult write_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    __typeof__(cuEventRecord) *record = per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    bool one = canary_slab_is_flat(place->slab, place->size) && place->size < INT32_MAX - CANARY_HEAD;
    CUresult r = one ? set_in_order(place, stream, per_thread) : copy_in_order(place, stream, per_thread);
    return r ? r : record(place->slab->ready, stream);
}

// Allocates from a pool, and writes canaries in stream order.
static bool alloc_in_order(struct context *ctx, CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
                           CUstream stream, bool per_thread, CUresult *r)
{
    struct canary_place place;
    CUdeviceptr real;
    CUevent event = NULL;
    const struct canary_memory *memory = &canary_slab_memory[CANARY_POOL];
    size_t padded = canary_slab_padded(memory, size);
    if (guard.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
        return plain(size);
    *r = pool_alloc(&real, padded, pool, stream, per_thread);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY && canary_reclaim())
        *r = pool_alloc(&real, padded, pool, stream, per_thread);
    if (*r) {
        guard.real.cuEventDestroy_v2(event);
        return *r == CUDA_ERROR_OUT_OF_MEMORY ? plain(size) : true;
    }
    if (!canary_store_adopt(ctx, memory, real, size, event, &place)) {
        place.slab->pool = pool;
        if (!write_in_order(&place, stream, per_thread)) {
            *pointer = publish(&place);
            return true;
        }
        canary_store_give(&place, 0);
    }
    guard.real.cuEventDestroy_v2(event);
    (per_thread ? guard.real.cuMemFreeAsync_ptsz : guard.real.cuMemFreeAsync)(real, stream);
    return plain(size);
}

bool canary_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream,
                        bool per_thread, CUresult *r)
{
    struct context *ctx = canary_on && pointer && size <= SIZE_MAX / 2 ? ready(size) : NULL;
    struct canary_place place;
    uint64_t number;
    if (!ctx)
        return canary_on && plain(size);
    if (canary_order_number((struct canary_stream){stream, per_thread}, &number) &&
        canary_cache_take(ctx, CANARY_POOL, pool, number, size, &place)) {
        *pointer = publish_again(&place);
        *r = CUDA_SUCCESS;
        return finish(ctx, true);
    }
    return finish(ctx, alloc_in_order(ctx, pointer, size, pool, stream, per_thread, r));
}

// --- the rest ----------------------------------------------------------------------------------------------

void canary_drop_cached(struct context *ctx, uint64_t age)
{
    struct canary_place place;
    while (canary_cache_drop(ctx, age, &place))
        canary_free_cached(ctx, &place, true);
}

void canary_pool_ends(CUmemoryPool pool)
{
    struct canary_place place;
    bool pushed;
    for (unsigned i = 0; canary_on && pool && i < CONTEXT_CONTEXTS; i++) {
        struct context *ctx = context_of_number(i);
        if (!ctx || !canary_cache_any(ctx))
            continue;
        CUcontext its = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
        if (!context_hold(ctx, its))
            continue;
        bool entered = context_enter(its, &pushed);
        while (entered && canary_cache_drop_of(ctx, pool, &place))
            canary_free_cached(ctx, &place, false);
        context_leave(entered && pushed);
        context_release(ctx);
    }
}

// Verifies all freed places, then returns unused memory to the driver. idle: as for canary_free_trim.
static uint64_t scan_and_trim(struct context *ctx, bool idle)
{
    CUresult r = canary_scan_context(ctx, false, true, &canary_free_on_reuse);
    // After a failed scan its copies may still be running.
    if (r && canary_staging_of(ctx))
        return 0;
    return idle ? canary_store_trim(ctx, 0) : canary_mapped_trim(ctx, UINT64_MAX);
}

static bool reclaim(struct context *ctx)
{
    enum { PASSES = 8 };  // others may go on freeing meanwhile
    bool any = canary_cache_any(ctx), more = true;
    for (unsigned i = 0; i < PASSES && more; i++) {
        canary_monitor_lock();
        canary_order_verify(ctx);
        canary_drop_cached(ctx, 0);
        canary_free_postponed(ctx);
        more = canary_free_any_freed(ctx);
        any |= more;
        more |= canary_free_any_postponed(ctx);
        canary_monitor_unlock();
        // This waits for streams of the program, which may wait for another thread of it: no lock of ours may
        // be held.
        if (any || more)
            canary_order_side_wait(ctx);
    }
    canary_monitor_lock();
    uint64_t given = scan_and_trim(ctx, true);
    canary_monitor_unlock();
    return given || any;
}

// Reclaims without waiting for kernels or streams. ctx need not be current, and may be about to be destroyed.
static bool reclaim_at_once(struct context *ctx)
{
    uint64_t given = 0;
    bool pushed;
    canary_monitor_lock();
    CUcontext its = atomic_load_explicit(&ctx->handle, memory_order_relaxed);
    if (its && canary_monitor_watches(ctx) && context_enter(its, &pushed)) {
        canary_drop_cached(ctx, 0);
        given = scan_and_trim(ctx, canary_monitor_is_idle());
        context_leave(pushed);
    }
    canary_monitor_unlock();
    return given;
}

static bool reclaim_all(bool patient)
{
    bool pushed, any = false;
    struct context *ctx = canary_on && canary_used() ? context_enter_owner(&pushed) : NULL;
    if (!ctx)
        return false;
    if (patient && context_hold(ctx, atomic_load_explicit(&ctx->handle, memory_order_relaxed))) {
        any = reclaim(ctx);
        context_release(ctx);
    }
    for (unsigned i = 0; i < CONTEXT_CONTEXTS; i++) {
        struct context *other = context_of_number(i);
        if (other && (!patient || other != ctx) && other->device == ctx->device)
            any |= reclaim_at_once(other);
    }
    context_leave(pushed);
    return any;
}

bool canary_reclaim(void)
{
    return reclaim_all(true);
}

bool canary_reclaim_at_once(void)
{
    return reclaim_all(false);
}

uint64_t canary_reclaimable(void)
{
    CUcontext current = NULL;
    if (!canary_on || !canary_used() || guard.real.cuCtxGetCurrent(&current) || !current)
        return 0;
    struct context *ctx = context_find(green_owner(current));
    struct canary_extent waiting[CANARY_CACHE_MOST];
    return ctx ? canary_store_spare(ctx, waiting, canary_cache_plain(ctx, waiting)) : 0;
}

void canary_stop(const char *why)
{
    if (canary_on && !atomic_exchange_explicit(&stopped, true, memory_order_relaxed))
        guard_report_note("canary: %s: memory allocated from now on has no canaries", why);
}

enum mode_what canary_ask(uint64_t address, uint64_t *base, uint64_t *size)
{
    struct canary_buffer b;
    enum mode_what what = MODE_NOT_OURS;
    if (!canary_on)
        return what;
    unsigned section = epoch_enter();
    struct canary_slab *s = canary_store_find(address);
    if (!s && canary_regions_owns(address))
        what = MODE_AROUND;
    if (s) {
        uint64_t number = address >= s->base ? (address - s->base) / s->stride : UINT64_MAX;
        what = MODE_AROUND;
        if (number < s->slots && canary_slot_read(s, (uint32_t)number, UINT64_MAX, &b) && !b.freed &&
            address - canary_slab_base(s, (uint32_t)number) < b.size) {
            what = MODE_BUFFER;
            *base = canary_slab_base(s, (uint32_t)number);
            *size = b.size;
        }
    }
    epoch_leave(section);
    return what;
}

void canary_context_ends(CUcontext context, enum driver_id call)
{
    if (canary_on && context)
        canary_monitor_context_ends(context, call);
}

void canary_context_stays(CUcontext context)
{
    if (canary_on && context)
        canary_monitor_context_stays(context);
}

void canary_context_gone(CUcontext context)
{
    struct context *ctx = canary_on && context ? context_find(context) : NULL;
    if (!ctx)
        return;
    canary_monitor_lock();
    canary_cache_context_gone(ctx);
    canary_free_context_gone(ctx);
    canary_store_context_gone(ctx, context);
    canary_staging_context_gone(ctx);
    canary_verify_context_gone(ctx);
    canary_order_context_gone(ctx);
    canary_monitor_context_gone(ctx);
    context_forget(context);  // a thread that waits for the lock then finds no context here
    canary_monitor_unlock();
}
