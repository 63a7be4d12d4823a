// SPDX-License-Identifier: MIT
#include "canary/canary_free.h"

#include "canary/canary.h"
#include "canary/canary_order.h"
#include "canary/canary_cache.h"
#include "canary/canary_mapped.h"
#include "canary/canary_regions.h"
#include "context/green.h"
#include "context/context_copy.h"
#include "core/guard.h"

// Bytes of empty regions that a context keeps: 1/kept_part of the device's memory, between these bounds.
static const uint64_t kept_part = 512, kept_least = 64 << 20, kept_most = 256 << 20;

const struct canary_occasion canary_free_on_reuse = {
    DRIVER_CALLS, NULL, "found when the freed buffer's memory was needed again", true, true};

// Returns memory to the driver. If the driver refuses, the place stays as it was.
static CUresult free_real(const struct canary_place *place)
{
    uint64_t real = place->slab->range.base;
    if (place->slab->memory->kind == CANARY_SUBALLOCATED)
        return CUDA_SUCCESS;
    if (!canary_store_unindex(place))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = place->slab->memory->kind == CANARY_HOST ? guard.real.cuMemFreeHost((void *)(uintptr_t)real)
                                                          : guard.real.cuMemFree_v2(real);
    if (r)
        canary_store_reindex(place);
    return r;
}

// By context: places whose free was postponed because somebody may have been reading them; the next scan
// frees them.
static _Atomic(struct canary_slab *) postponed[CONTEXT_CONTEXTS];
// Returns whether postponed places have been freed on the side stream since the last canary_free_any_freed.
static atomic_bool any_freed[CONTEXT_CONTEXTS];

static void postpone(const struct canary_place *place, bool until_ready)
{
    struct canary_slab *s = place->slab;
    _Atomic(struct canary_slab *) *list = &postponed[context_number(s->ctx)];
    s->postponed_size = place->size;
    s->postponed_until_ready = until_ready;
    s->next_postponed = atomic_load_explicit(list, memory_order_relaxed);
    // Release pairs with the acquire in canary_free_postponed. The list is always taken as a whole, so there
    // is no ABA.
    while (!atomic_compare_exchange_weak_explicit(list, &s->next_postponed, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static bool can_go(struct context *ctx, const struct canary_slab *s)
{
    return s->memory->kind == CANARY_SUBALLOCATED ||
           (!canary_order_side_is_full(ctx) &&
            (!s->postponed_until_ready || !guard.real.cuEventQuery(s->ready)));
}

void canary_free_postponed(struct context *ctx)
{
    struct canary_slab *s =
        atomic_exchange_explicit(&postponed[context_number(ctx)], NULL, memory_order_acquire);
    if (!s)
        return;
    CUstreamCaptureMode mode = context_capture_relax();
    for (struct canary_slab *next; s; s = next) {
        struct canary_place place = {.slab = s, .base = s->base, .size = s->postponed_size};
        next = s->next_postponed;
        if (!can_go(ctx, s)) {
            postpone(&place, s->postponed_until_ready);
            continue;
        }
        canary_free_cached(ctx, &place, true);
        atomic_store_explicit(&any_freed[context_number(ctx)], true,
                              memory_order_relaxed);  // under the scan lock
    }
    context_capture_restore(mode);
}

bool canary_free_any_postponed(const struct context *ctx)
{
    return atomic_load_explicit(&postponed[context_number(ctx)], memory_order_relaxed);
}

bool canary_free_any_freed(struct context *ctx)
{
    return atomic_exchange_explicit(&any_freed[context_number(ctx)], false, memory_order_relaxed);
}

void canary_free_context_gone(struct context *ctx)
{
    atomic_store_explicit(&postponed[context_number(ctx)], NULL, memory_order_relaxed);
    atomic_store_explicit(&any_freed[context_number(ctx)], false, memory_order_relaxed);
}

static void republish(const struct canary_place *place)
{
    canary_slot_publish_again(place, canary_scan_number());
}

static void give(const struct canary_place *place)
{
    CUevent event = place->slab->ready;
    canary_store_give(place, canary_scan_number());
    if (event)
        guard.real.cuEventDestroy_v2(event);
}

// Holds the context of the slab at an address. Returns false if there is none, or if its context ends.
static bool hold(uint64_t pointer, struct context **ctx)
{
    unsigned section = epoch_enter();
    const struct canary_slab *s = canary_store_find(pointer);
    *ctx = s ? s->ctx : NULL;
    CUcontext context = s ? s->context : NULL;
    epoch_leave(section);
    return *ctx && context_hold(*ctx, context);
}

// Withdraws the buffer that starts at `pointer`, and holds its context, which the caller releases.
static bool take(uint64_t pointer, struct canary_place *place, struct context **ctx)
{
    if (!canary_on || !pointer || !canary_used() || !hold(pointer, ctx))
        return false;
    // Another context's buffer may have come to lie there meanwhile.
    if (canary_store_withdraw(pointer, place) && place->slab->ctx == *ctx)
        return true;
    if (place->size)
        republish(place);
    context_release(*ctx);
    return false;
}

// Makes sure that nobody reads a withdrawn place in memory that is about to be returned to the driver.
// Suballocated memory may be read at any time.
static void stop_readers(const struct canary_place *place)
{
    if (place->slab->memory->kind == CANARY_SUBALLOCATED)
        return;
    canary_monitor_lock();
    canary_order_forget(place->slab);
    canary_monitor_unlock();
}

static CUresult synchronize(struct canary_stream in)
{
    const struct driver *d = &guard.real;
    return (in.per_thread ? d->cuStreamSynchronize_ptsz : d->cuStreamSynchronize)(in.stream);
}

static void verify_pending(struct context *ctx)
{
    canary_monitor_lock();
    canary_order_verify(ctx);
    canary_monitor_unlock();
}

// Verifies pending readbacks of earlier buffers in this place, so that their damage is reported in their
// names before this buffer is verified. All work from before the free has ended.
static void verify_earlier(const struct canary_slab *s)
{
    if (!atomic_load_explicit(&s->pending_reads, memory_order_relaxed))
        return;
    canary_order_side_wait(s->ctx);
    verify_pending(s->ctx);
}

// Returns the bytes of empty regions beyond what may be kept.
static uint64_t excess(struct context *ctx, uint64_t *kept)
{
    uint64_t spare = canary_store_spare(ctx, NULL, 0);
    *kept = context_device_part(ctx->device, kept_part, kept_least, kept_most);
    return spare > *kept ? spare - *kept : 0;
}

void canary_free_trim(struct context *ctx, bool idle)
{
    uint64_t kept, over = excess(ctx, &kept);
    if (over && idle)
        canary_store_trim(ctx, kept);
    else if (over)
        canary_mapped_trim(ctx, over);
}

static void trim(struct context *ctx)
{
    uint64_t kept;
    if (!excess(ctx, &kept))
        return;
    canary_monitor_lock();
    canary_free_trim(ctx, true);
    canary_monitor_unlock();
}

// Frees a place after the wait. A suballocated place that is kept for reuse is verified by a scan.
static CUresult free_waited(struct context *ctx, const struct canary_place *place,
                            const struct canary_occasion *occasion)
{
    struct canary_slab *s = place->slab;
    if (s->memory->kind == CANARY_SUBALLOCATED && s->slots > 1) {
        give(place);
        return CUDA_SUCCESS;
    }
    if (s->memory->kind == CANARY_SUBALLOCATED && !canary_slot_reported(s, place->number)) {
        canary_slot_await(place, canary_scan_number());
        if (canary_cache_put(place, 0))
            return CUDA_SUCCESS;
    }
    verify_earlier(s);
    stop_readers(place);
    canary_scan_place(ctx, place, occasion);
    CUresult r = free_real(place);
    if (!r)
        give(place);
    return r;
}

// Returns whether the address is in memory of a context that is ending: the driver may have given it to
// another one.
static bool is_ending(uint64_t pointer)
{
    unsigned section = epoch_enter();
    const struct canary_slab *s = canary_store_find(pointer);
    const struct context *ctx = context_find(s ? s->context : canary_regions_context(pointer));
    epoch_leave(section);
    return ctx && context_is_closed(ctx);
}

// Handles a free of an address in our memory that is no buffer: the driver might take it for an allocation of
// its own. The driver is given an odd address instead, which belongs to nobody, so that the error is its own.
// Returns whether it was such an address.
static bool refuse(uint64_t pointer, CUresult *r)
{
    uint64_t base, size;
    if (canary_ask(pointer, &base, &size) != MODE_AROUND || is_ending(pointer))
        return false;
    *r = guard.real.cuMemFree_v2(pointer | 1);
    return true;
}

bool canary_free(CUdeviceptr pointer, enum driver_id call, CUresult *r)
{
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    struct canary_place place;
    struct context *held;
    bool pushed;
    if (!take(pointer, &place, &held))
        return refuse(pointer, r);
    struct context *ctx = context_enter(place.slab->context, &pushed);
    *r = ctx ? context_wait_as_free(ctx) : CUDA_ERROR_INVALID_CONTEXT;
    if (!*r)
        *r = free_waited(ctx, &place, &occasion);
    if (*r)
        republish(&place);
    if (ctx && !*r)
        trim(ctx);
    if (ctx)
        context_leave(pushed);
    context_release(held);
    return true;
}

bool canary_free_host(void *pointer, enum driver_id call, CUresult *r)
{
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    struct canary_place place;
    struct context *held;
    if (!take((uintptr_t)pointer, &place, &held))
        return false;
    if (place.slab->memory->kind != CANARY_HOST) {
        republish(&place);
        context_release(held);
        return false;
    }
    // The driver's free waits for the device, and after it nothing can be read.
    bool pushed;
    struct context *ctx = context_enter(place.slab->context, &pushed);
    if (ctx)
        context_wait_as_free(ctx);
    stop_readers(&place);
    canary_scan_place(place.slab->ctx, &place, &occasion);
    if (ctx)
        context_leave(pushed);
    *r = free_real(&place);
    if (*r)
        republish(&place);
    else
        give(&place);
    context_release(held);
    return true;
}

// During capture the driver frees only what the same graph allocates and refuses everything else. What it
// accepts all the same is freed whenever the graph runs, so nobody may read it from now on.
static CUresult free_in_graph(const struct canary_place *place, struct canary_stream in)
{
    const struct driver *d = &guard.real;
    if (place->slab->memory->kind == CANARY_SUBALLOCATED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r =
        (in.per_thread ? d->cuMemFreeAsync_ptsz : d->cuMemFreeAsync)(place->slab->range.base, in.stream);
    if (!r) {
        guard_count(GUARD_UNGUARDED);
        stop_readers(place);
        give(place);
    }
    return r;
}

// Makes the buffer's context current for a created stream, which knows its context: the driver frees in its
// order even on a thread whose current context is another one, or none.
static void enter_for(CUstream stream, const struct canary_place *place, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
        !guard.real.cuCtxGetCurrent(&current) && (!current || green_owner(current) != place->slab->context))
        context_enter(place->slab->context, pushed);
}

// Enqueues a readback before a stream-ordered free. This must not wait, not even for a scan, since the stream
// may be waiting for the thread that frees. If too many are pending, completed ones are verified to make
// room.
static CUresult read_in_order(const struct canary_place *place, struct canary_stream in, bool on_side,
                              enum driver_id call)
{
    CUresult r = canary_order_read(place, in, on_side, call);
    if (r != CUDA_ERROR_NOT_READY || !canary_monitor_trylock())
        return r;
    canary_order_make_room(place->slab->ctx);
    canary_monitor_unlock();
    return canary_order_read(place, in, on_side, call);
}

void canary_free_cached(struct context *ctx, const struct canary_place *place, bool scanning)
{
    uint64_t real = place->slab->range.base;
    if (place->slab->memory->kind == CANARY_SUBALLOCATED) {
        if (!canary_slot_is_checked(place->slab, place->number))
            canary_scan_place(ctx, place, &canary_free_on_reuse);
        give(place);
        return;
    }
    if (scanning)
        canary_order_forget(place->slab);
    else
        stop_readers(place);
    // From the driver's call on, another buffer may get the address.
    give(place);
    canary_order_side_free(ctx, real);
}

// Frees a cached place at once, or postpones that rather than wait for the scan lock.
static void free_cached_no_wait(struct context *ctx, const struct canary_place *place)
{
    bool plain = place->slab->memory->kind == CANARY_SUBALLOCATED, held = !plain && canary_monitor_trylock();
    if (plain ? canary_slot_is_checked(place->slab, place->number) : held)
        canary_free_cached(ctx, place, true);
    else
        postpone(place, false);
    if (held)
        canary_monitor_unlock();
}

static bool make_room(const struct canary_place *place)
{
    struct context *ctx = place->slab->ctx;
    struct canary_place oldest;
    if (!canary_cache_wants(place))
        return false;
    if (canary_cache_has_room(place))
        return true;
    if (!canary_cache_drop(ctx, 0, &oldest))
        return false;
    free_cached_no_wait(ctx, &oldest);
    return canary_cache_has_room(place);
}

enum reading { NOT_READ, READ_ON_SIDE, NO_ROOM };

// Caches the place and enqueues its readback on the side stream. Otherwise returns false, and *reading says
// what became of the readback.
static bool cache_place(const struct canary_place *place, struct canary_stream in, enum driver_id call,
                        enum reading *reading)
{
    uint64_t number;
    *reading = NOT_READ;
    if (!place->slab->ready || canary_slot_reported(place->slab, 0) || !canary_order_number(in, &number) ||
        !make_room(place))
        return false;
    CUresult r = read_in_order(place, in, true, call);
    bool full = r == CUDA_ERROR_NOT_READY && !canary_order_side_is_full(place->slab->ctx);
    *reading = !r ? READ_ON_SIDE : full ? NO_ROOM : NOT_READ;
    return !r && canary_cache_put(place, number);
}

// The driver accepts memory of cuMemAlloc here too, and waits for the stream.
static bool free_plain_in_order(CUdeviceptr pointer, struct canary_stream in, enum driver_id call,
                                CUresult *r)
{
    *r = synchronize(in);
    return *r ? true : canary_free(pointer, call, r);
}

// Postpones the free, since somebody may be reading the memory: it is freed on the side stream, behind what
// the program's stream holds now.
static CUresult free_later(const struct canary_place *place, struct canary_stream in)
{
    bool side_full = canary_order_side_is_full(place->slab->ctx);
    CUresult r = side_full ? canary_order_mark(place->slab, in) : canary_order_side_follow(place, in);
    if (r)
        republish(place);
    else
        postpone(place, side_full);
    return r;
}

// Returns memory to the driver in stream order. For memory that is of no pool, the driver itself waits.
static CUresult free_in_order(const struct canary_place *place, struct canary_stream in, enum reading reading,
                              enum driver_id call)
{
    const struct driver *d = &guard.real;
    uint64_t real = place->slab->range.base;
    // A readback on the side stream may be pending, for this buffer if the cache turned out full, or for an
    // earlier one in the same place. A free in the program's stream could come before it, and the memory
    // could have another owner by then.
    bool is_read_on_side = atomic_load_explicit(&place->slab->pending_reads, memory_order_acquire);
    CUresult r = reading == NO_ROOM ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    if (reading == NOT_READ)
        r = read_in_order(place, in, false, call);
    // Too many readbacks are pending, or the stream is another context's: the buffer is freed without a
    // check.
    if (r)
        guard_count(GUARD_UNGUARDED);
    if (!place->slab->ready)
        canary_monitor_lock();
    else if (is_read_on_side || !canary_monitor_trylock())
        return free_later(place, in);
    canary_order_forget(place->slab);
    canary_monitor_unlock();
    // From the driver's call on, another buffer may get the address.
    give(place);
    return (in.per_thread ? d->cuMemFreeAsync_ptsz : d->cuMemFreeAsync)(real, in.stream);
}

bool canary_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                       enum driver_id call, CUresult *r)
{
    const struct canary_stream in = {stream, per_thread};
    struct canary_place place;
    struct context *held;
    enum reading reading;
    bool pushed;
    if (!take(pointer, &place, &held))
        return refuse(pointer, r);
    if (captured) {
        *r = free_in_graph(&place, in);
        if (*r)
            republish(&place);
        context_release(held);
        return true;
    }
    if (place.slab->memory->kind == CANARY_SUBALLOCATED) {
        republish(&place);
        context_release(held);
        return free_plain_in_order(pointer, in, call, r);
    }
    enter_for(stream, &place, &pushed);
    *r = cache_place(&place, in, call, &reading) ? CUDA_SUCCESS : free_in_order(&place, in, reading, call);
    context_leave(pushed);
    context_release(held);
    return true;
}
