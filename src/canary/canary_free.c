// SPDX-License-Identifier: MIT
#include "canary/canary_free.h"

#include "canary/canary.h"
#include "canary/canary_order.h"
#include "canary/canary_shelf.h"
#include "canary/canary_tract.h"
#include "context/green.h"
#include "context/home_copy.h"
#include "core/guard.h"

// Bytes of empty regions that a context holds on to: a part of what the device has, between these.
static const uint64_t kept_part = 512, kept_least = 64 << 20, kept_most = 256 << 20;

const struct canary_occasion canary_free_wanted_again = {
    DRIVER_CALLS, NULL, "found when the freed buffer's memory was needed again", true, true};

// Gives memory of the driver's back to it; the place stays if the driver refuses.
static CUresult free_real(const struct canary_place *place)
{
    uint64_t real = place->slab->range.base;
    if (place->slab->memory->kind == CANARY_OURS)
        return CUDA_SUCCESS;
    if (!canary_store_hide(place))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = place->slab->memory->kind == CANARY_HOST ? guard.real.cuMemFreeHost((void *)(uintptr_t)real)
                                                          : guard.real.cuMemFree_v2(real);
    if (r)
        canary_store_show(place);
    return r;
}

// Places whose memory was to go while somebody may have been reading it, by home: who scans gives them back.
static _Atomic(struct canary_slab *) postponed[HOME_CONTEXTS];
static atomic_bool
    gone_aside[HOME_CONTEXTS];  // such have been given back, beside streams, and nobody has waited for it

static void postpone(const struct canary_place *place, bool asks)
{
    struct canary_slab *s = place->slab;
    _Atomic(struct canary_slab *) *list = &postponed[home_number(s->home)];
    s->later_size = place->size;
    s->later_asks = asks;
    s->later = atomic_load_explicit(list, memory_order_relaxed);
    // Release pairs with the acquire in canary_free_postponed. All are taken at once, so none comes again meanwhile.
    while (!atomic_compare_exchange_weak_explicit(list, &s->later, s, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

static bool can_go(struct home *home, const struct canary_slab *s)
{
    return s->memory->kind == CANARY_OURS ||
           (!canary_order_is_crowded(home) && (!s->later_asks || !guard.real.cuEventQuery(s->ready)));
}

void canary_free_postponed(struct home *home)
{
    struct canary_slab *s =
        atomic_exchange_explicit(&postponed[home_number(home)], NULL, memory_order_acquire);
    if (!s)
        return;
    CUstreamCaptureMode mode = home_calm();
    for (struct canary_slab *next; s; s = next) {
        struct canary_place place = {.slab = s, .base = s->base, .size = s->later_size};
        next = s->later;
        if (!can_go(home, s)) {
            postpone(&place, s->later_asks);
            continue;
        }
        canary_free_kept(home, &place, true);
        atomic_store_explicit(&gone_aside[home_number(home)], true, memory_order_relaxed);  // under scan_lock
    }
    home_stir(mode);
}

bool canary_free_any_postponed(const struct home *home)
{
    return atomic_load_explicit(&postponed[home_number(home)], memory_order_relaxed);
}

bool canary_free_gone_aside(struct home *home)
{
    return atomic_exchange_explicit(&gone_aside[home_number(home)], false, memory_order_relaxed);
}

void canary_free_context_gone(struct home *home)
{
    atomic_store_explicit(&postponed[home_number(home)], NULL, memory_order_relaxed);
    atomic_store_explicit(&gone_aside[home_number(home)], false, memory_order_relaxed);
}

static void put_back(const struct canary_place *place)
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

static bool take(uint64_t pointer, struct canary_place *place)
{
    return canary_on && pointer && canary_used() && canary_store_withdraw(pointer, place);
}

// A withdrawn place in the driver's memory, before that goes: nobody reads it any more. Memory that we keep may be read
// at any time.
static void part_from(const struct canary_place *place)
{
    if (place->slab->memory->kind == CANARY_OURS)
        return;
    canary_monitor_hold();
    canary_order_forget(place->slab);
    canary_monitor_go_on();
}

static CUresult synchronize(struct canary_stream in)
{
    const struct driver *d = &guard.real;
    return (in.per_thread ? d->cuStreamSynchronize_ptsz : d->cuStreamSynchronize)(in.stream);
}

static void settle(struct home *home)
{
    canary_monitor_hold();
    canary_order_settle(home);
    canary_monitor_go_on();
}

// What an earlier buffer in the place left is told under its own name, before anybody looks at this one's. All work of the time
// before has ended.
static void settle_readings(const struct canary_slab *s)
{
    if (!atomic_load_explicit(&s->unread, memory_order_relaxed))
        return;
    canary_order_wait_aside(s->home);
    settle(s->home);
}

// Bytes of empty regions beyond what may be held.
static uint64_t too_much(struct home *home, uint64_t *kept)
{
    uint64_t spare = canary_store_spare(home, NULL, 0);
    *kept = home_device_part(home->device, kept_part, kept_least, kept_most);
    return spare > *kept ? spare - *kept : 0;
}

void canary_free_trim(struct home *home, bool idle)
{
    uint64_t kept, much = too_much(home, &kept);
    if (much && idle)
        canary_store_trim(home, kept);
    else if (much)
        canary_tract_trim(home, much);
}

static void trim(struct home *home)
{
    uint64_t kept;
    if (!too_much(home, &kept))
        return;
    canary_monitor_hold();
    canary_free_trim(home, true);
    canary_monitor_go_on();
}

// After the wait: in memory that we divide up a scan looks at it, if its place waits for another buffer.
static CUresult free_waited(struct home *home, const struct canary_place *place,
                            const struct canary_occasion *occasion)
{
    struct canary_slab *s = place->slab;
    if (s->memory->kind == CANARY_OURS && s->slots > 1) {
        give(place);
        return CUDA_SUCCESS;
    }
    if (s->memory->kind == CANARY_OURS && !canary_slot_told(s, place->number)) {
        canary_slot_await(place, canary_scan_number());
        if (canary_shelf_put(place, 0))
            return CUDA_SUCCESS;
    }
    settle_readings(s);
    part_from(place);
    canary_scan_place(home, place, occasion);
    CUresult r = free_real(place);
    if (!r)
        give(place);
    return r;
}

// What is ours and no buffer: the driver might take it for one of its own. It is asked about an odd address instead, which is nobody's:
// why it refuses is its own to say. Whether it was.
static bool refuse(uint64_t pointer, CUresult *r)
{
    uint64_t base, size;
    if (canary_ask(pointer, &base, &size) != MODE_AROUND)
        return false;
    *r = guard.real.cuMemFree_v2(pointer | 1);
    return true;
}

bool canary_free(CUdeviceptr pointer, enum driver_id call, CUresult *r)
{
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    struct canary_place place;
    bool pushed;
    if (!take(pointer, &place))
        return refuse(pointer, r);
    struct home *home = home_enter(place.slab->context, &pushed);
    *r = home ? home_wait_as_free(home) : CUDA_ERROR_INVALID_CONTEXT;
    if (!*r)
        *r = free_waited(home, &place, &occasion);
    if (*r)
        put_back(&place);
    if (home && !*r)
        trim(home);
    if (home)
        home_leave(pushed);
    return true;
}

bool canary_free_host(void *pointer, enum driver_id call, CUresult *r)
{
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    struct canary_place place;
    if (!canary_on || !take((uintptr_t)pointer, &place))
        return false;
    if (place.slab->memory->kind != CANARY_HOST) {
        put_back(&place);
        return false;
    }
    part_from(&place);
    canary_scan_place(place.slab->home, &place, &occasion);
    *r = free_real(&place);
    if (*r)
        put_back(&place);
    else
        give(&place);
    return true;
}

// In a capture the driver frees what the same graph allocates, and refuses all else. What it takes all the same, it frees whenever
// the graph runs: from then on nobody may look.
static CUresult free_in_graph(const struct canary_place *place, struct canary_stream in)
{
    const struct driver *d = &guard.real;
    if (place->slab->memory->kind == CANARY_OURS)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r =
        (in.per_thread ? d->cuMemFreeAsync_ptsz : d->cuMemFreeAsync)(place->slab->range.base, in.stream);
    if (!r) {
        guard_count(GUARD_UNGUARDED);
        part_from(place);
        give(place);
    }
    return r;
}

// A stream of its own knows its context: the driver frees in its order on a thread that has another, or none.
static void enter_for(CUstream stream, const struct canary_place *place, bool *pushed)
{
    CUcontext current = NULL;
    *pushed = false;
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
        !guard.real.cuCtxGetCurrent(&current) && (!current || green_owner(current) != place->slab->context))
        home_enter(place->slab->context, pushed);
}

// The canaries, before a free in the order of the stream. That must not wait, for a scan neither: the stream may be waiting for
// who frees. What was read makes room for more.
static CUresult read_in_order(const struct canary_place *place, struct canary_stream in, bool aside,
                              enum driver_id call)
{
    CUresult r = canary_order_read(place, in, aside, call);
    if (r != CUDA_ERROR_NOT_READY || !canary_monitor_try_hold())
        return r;
    canary_order_make_room(place->slab->home);
    canary_monitor_go_on();
    return canary_order_read(place, in, aside, call);
}

void canary_free_kept(struct home *home, const struct canary_place *place, bool scanning)
{
    uint64_t real = place->slab->range.base;
    if (place->slab->memory->kind == CANARY_OURS) {
        if (!canary_slot_is_checked(place->slab, place->number))
            canary_scan_place(home, place, &canary_free_wanted_again);
        give(place);
        return;
    }
    if (scanning)
        canary_order_forget(place->slab);
    else
        part_from(place);
    // From the driver's call on the address may be another buffer's.
    give(place);
    canary_order_free_aside(home, real);
}

// The same for who must not wait.
static void free_kept_some_time(struct home *home, const struct canary_place *place)
{
    bool plain = place->slab->memory->kind == CANARY_OURS, held = !plain && canary_monitor_try_hold();
    if (plain ? canary_slot_is_checked(place->slab, place->number) : held)
        canary_free_kept(home, place, true);
    else
        postpone(place, false);
    if (held)
        canary_monitor_go_on();
}

static bool make_room(const struct canary_place *place)
{
    struct home *home = place->slab->home;
    struct canary_place oldest;
    if (!canary_shelf_wants(place))
        return false;
    if (canary_shelf_has_room(place))
        return true;
    if (!canary_shelf_drop(home, 0, &oldest))
        return false;
    free_kept_some_time(home, &oldest);
    return canary_shelf_has_room(place);
}

enum reading { NOT_READ, READ_ASIDE, NO_ROOM };

// The place is kept for a buffer like it, and its canaries are read beside the stream. Otherwise *reading is what became of that.
static bool shelve(const struct canary_place *place, struct canary_stream in, enum driver_id call,
                   enum reading *reading)
{
    uint64_t number;
    *reading = NOT_READ;
    if (!place->slab->ready || canary_slot_told(place->slab, 0) || !canary_order_number(in, &number) ||
        !make_room(place))
        return false;
    CUresult r = read_in_order(place, in, true, call);
    bool full = r == CUDA_ERROR_NOT_READY && !canary_order_is_crowded(place->slab->home);
    *reading = !r ? READ_ASIDE : full ? NO_ROOM : NOT_READ;
    return !r && canary_shelf_put(place, number);
}

// The driver takes plain memory here too, and waits for it.
static bool free_plain_in_order(const struct canary_place *place, struct canary_stream in,
                                enum driver_id call, CUresult *r)
{
    put_back(place);
    *r = synchronize(in);
    return *r ? true : canary_free(place->base, call, r);
}

// Somebody may be reading it: the memory goes back after that, beside the stream, when this has come so far.
static CUresult free_later(const struct canary_place *place, struct canary_stream in)
{
    bool crowded = canary_order_is_crowded(place->slab->home);
    CUresult r = crowded ? canary_order_mark(place->slab, in) : canary_order_follow(place, in);
    if (r)
        put_back(place);
    else
        postpone(place, crowded);
    return r;
}

// Memory of the driver's, given back in the order of the stream. What is of no pool the driver itself waits for.
static CUresult free_in_order(const struct canary_place *place, struct canary_stream in, enum reading reading,
                              enum driver_id call)
{
    const struct driver *d = &guard.real;
    uint64_t real = place->slab->range.base;
    // It may be read beside the stream yet, for this buffer, if the shelf was full then, or for an earlier one in its place. In the
    // stream the memory could be another's before that.
    bool is_read_aside = atomic_load_explicit(&place->slab->unread, memory_order_acquire);
    CUresult r = reading == NO_ROOM ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
    if (reading == NOT_READ)
        r = read_in_order(place, in, false, call);
    // Too many readings are under way, or the stream is another context's: it goes without a look.
    if (r)
        guard_count(GUARD_UNGUARDED);
    if (!place->slab->ready)
        canary_monitor_hold();
    else if (is_read_aside || !canary_monitor_try_hold())
        return free_later(place, in);
    canary_order_forget(place->slab);
    canary_monitor_go_on();
    // From the driver's call on the address may be another buffer's.
    give(place);
    return (in.per_thread ? d->cuMemFreeAsync_ptsz : d->cuMemFreeAsync)(real, in.stream);
}

bool canary_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                       enum driver_id call, CUresult *r)
{
    const struct canary_stream in = {stream, per_thread};
    struct canary_place place;
    enum reading reading;
    bool pushed;
    if (!take(pointer, &place))
        return refuse(pointer, r);
    if (captured) {
        *r = free_in_graph(&place, in);
        if (*r)
            put_back(&place);
        return true;
    }
    if (place.slab->memory->kind == CANARY_OURS)
        return free_plain_in_order(&place, in, call, r);
    enter_for(stream, &place, &pushed);
    *r = shelve(&place, in, call, &reading) ? CUDA_SUCCESS : free_in_order(&place, in, reading, call);
    home_leave(pushed);
    return true;
}
