// SPDX-License-Identifier: MIT
#include "canary/canary.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "canary/canary_bench.h"
#include "canary/canary_free.h"
#include "canary/canary_ground.h"
#include "canary/canary_managed.h"
#include "canary/canary_order.h"
#include "canary/canary_shelf.h"
#include "canary/canary_space.h"
#include "canary/canary_tract.h"
#include "canary/canary_write.h"
#include "context/green.h"
#include "core/guard.h"
#include "track/guard_report.h"

bool canary_on;
static _Atomic(bool) stopped;  // relaxed, and so is `used`: each is a fact of its own
static _Atomic(bool) used;
static int owner;  // the process that uses it
static const struct canary_memory
    *apart;  // that plain buffers get; NULL: that which we divide up. Set once, at the start

void canary_start(void)
{
    canary_on = guard.watching && guard.options.mode >> OPTION_MODE_CANARY & 1;
    if (canary_on && canary_bytes_init()) {
        guard_report_note("canary: no memory for a key, so buffers have no canaries");
        canary_on = false;
    }
    owner = getpid();
    apart = canary_managed_chosen();
}

// A driver does not work in the child of a process that used it. If ours did not, the child may.
void canary_after_fork(void)
{
    canary_on &= !canary_used();
    owner = getpid();
    canary_store_after_fork();
    canary_shelf_after_fork();
    canary_write_after_fork();
    canary_order_after_fork();
    canary_monitor_after_fork();
}

// Registered after the driver's own, so it runs before the driver goes.
static void at_exit(void)
{
    if (canary_on && owner == getpid())
        canary_monitor_end();
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
    pthread_once(&first_use, begin);
}

bool canary_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

// The home of an allocation; NULL: it gets plain memory.
static struct home *ready(size_t size)
{
    if (!size || atomic_load_explicit(&stopped, memory_order_relaxed))
        return NULL;
    struct home *home = home_current();
    if (!home)
        return NULL;
    canary_use();
    if (!canary_bench_prepared(home)) {
        canary_monitor_hold();
        if (!canary_bench_prepared(home))
            canary_bench_prepare(home);
        canary_monitor_go_on();
    }
    return home;
}

static bool plain(size_t size)
{
    if (size)
        guard_count(GUARD_UNGUARDED);
    return false;
}

static uint64_t count_buffer(const struct canary_place *place)
{
    guard_count(GUARD_CANARY_BUFFERS);
    guard_most(GUARD_CANARY_EXTRA, canary_store_extra());
    return place->base;
}

// The canaries are in place, or will be before the program's next operation in the same order.
static uint64_t publish(const struct canary_place *place)
{
    canary_slot_publish(place, canary_scan_number());
    return count_buffer(place);
}

// The same, of a place that had a buffer just like it.
static uint64_t publish_again(const struct canary_place *place)
{
    canary_slot_publish_again(place, canary_scan_number());
    return count_buffer(place);
}

// What the driver gave becomes a buffer. False: it is still the caller's.
static bool adopt(struct home *home, const struct canary_memory *memory, uint64_t real, size_t size,
                  uint64_t *base)
{
    struct canary_place place;
    if (canary_store_adopt(home, memory, real, size, NULL, &place))
        return false;
    if (canary_write_place(home, &place)) {
        canary_store_give(&place, 0);
        return false;
    }
    *base = publish(&place);
    return true;
}

// A place of plain memory that a buffer of this size had. False: there is none.
static bool take_again(struct home *home, size_t size, struct canary_place *place)
{
    while (canary_shelf_take(home, CANARY_OURS, NULL, 0, size, place)) {
        bool checked = canary_slot_is_checked(place->slab, place->number) ||
                       !canary_scan_place(home, place, &canary_free_wanted_again);
        if (checked && !canary_slot_told(place->slab, place->number))
            return true;
        canary_store_give(place, 0);
    }
    return false;
}

// A place between canaries, which stand.
static bool take_place(struct home *home, size_t size, struct canary_place *place)
{
    for (bool patient = true;;) {
        // The slab that is to be checked may be closed meanwhile: it must not become another.
        unsigned section = epoch_enter();
        enum canary_took took = canary_store_take(home, size, patient, place);
        if (took == CANARY_CHECK) {
            canary_monitor_check(home, place->slab, &canary_free_wanted_again);
            patient = false;
        }
        epoch_leave(section);
        if (took == CANARY_FILL && !canary_store_open(place->slab, !canary_write_slab(home, place->slab)))
            return false;
        CUresult r = took == CANARY_TOOK_STALE ? canary_write_place(home, place) : CUDA_SUCCESS;
        if (r) {
            bool across = r == CUDA_ERROR_INVALID_VALUE && place->slab->mapped && canary_tract_usable(home);
            canary_store_give(place, canary_scan_number());
            if (!across)
                return false;
            canary_tract_give_up(home, "a copy across pieces of memory fails");
            continue;
        }
        if (took == CANARY_TOOK || took == CANARY_TOOK_STALE)
            return true;
        if (took == CANARY_NONE)
            return false;
    }
}

// A plain buffer in memory that the driver gives for it alone.
static bool alloc_apart(struct home *home, CUdeviceptr *pointer, size_t size, CUresult *r)
{
    CUdeviceptr real;
    uint64_t base;
    if (!apart->take(canary_slab_padded(apart, size), &real))
        return plain(size);
    if (!adopt(home, apart, real, size, &base)) {
        guard.real.cuMemFree_v2(real);
        return plain(size);
    }
    apart->placed(home, base, size);
    *pointer = base;
    *r = CUDA_SUCCESS;
    return true;
}

bool canary_alloc(CUdeviceptr *pointer, size_t size, CUresult *r)
{
    struct canary_place place;
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    if (!home || size > SIZE_MAX / 2)
        return canary_on && plain(size);
    if (apart)
        return alloc_apart(home, pointer, size, r);
    if (take_again(home, size, &place))
        *pointer = publish_again(&place);
    else if (take_place(home, size, &place) || (canary_reclaim() && take_place(home, size, &place)))
        *pointer = publish(&place);
    else
        return plain(size);
    *r = CUDA_SUCCESS;
    return true;
}

bool canary_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                        CUresult *r)
{
    bool right = pointer && pitch && width && height && (element == 4 || element == 8 || element == 16);
    struct home *home = canary_on && right ? ready(width) : NULL;
    size_t granule = home ? home_device_pitch(home->device) : 0, row, size;
    if (!granule || granule > CANARY_SPACE_UNIT || __builtin_add_overflow(width, granule - 1, &row))
        return canary_on && right && plain(width);
    row &= ~(granule - 1);
    if (__builtin_mul_overflow(row, height, &size) || !canary_alloc(pointer, size, r))
        return false;
    *pitch = row;
    return true;
}

// --- memory of the driver's with room for canaries -----------------------------------------------------------

bool canary_alloc_managed(CUdeviceptr *pointer, size_t size, unsigned flags, CUresult *r)
{
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    CUdeviceptr real;
    uint64_t base;
    if (!home || size > SIZE_MAX / 2)
        return canary_on && plain(size);
    const struct canary_memory *memory = &canary_slab_memory[CANARY_MANAGED];
    *r = guard.real.cuMemAllocManaged(&real, canary_slab_padded(memory, size), flags);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);  // without canaries it may fit
    if (*r)
        return true;
    if (!adopt(home, memory, real, size, &base)) {
        guard.real.cuMemFree_v2(real);
        return plain(size);
    }
    *pointer = base;
    return true;
}

bool canary_alloc_host(void **pointer, size_t size, const unsigned *flags, CUresult *r)
{
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    void *real = NULL;
    uint64_t base;
    if (!home || size > SIZE_MAX / 2)
        return canary_on && plain(size);
    const struct canary_memory *memory = &canary_slab_memory[CANARY_HOST];
    size_t padded = canary_slab_padded(memory, size);
    *r = flags ? guard.real.cuMemHostAlloc(&real, padded, *flags)
               : guard.real.cuMemAllocHost_v2(&real, padded);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);
    if (*r)
        return true;
    if (!adopt(home, memory, (uintptr_t)real, size, &base)) {
        guard.real.cuMemFreeHost(real);
        return plain(size);
    }
    *pointer = (void *)(uintptr_t)base;
    return true;
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

// Both sides by one memset.
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

// Canaries in the order of the stream, and an event when they are there.
static CUresult write_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    __typeof__(cuEventRecord) *record = per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    bool one = canary_slab_is_flat(place->slab, place->size) && place->size < INT32_MAX - CANARY_HEAD;
    CUresult r = one ? set_in_order(place, stream, per_thread) : copy_in_order(place, stream, per_thread);
    return r ? r : record(place->slab->ready, stream);
}

// Memory of the driver's, with canaries in the order of the stream.
static bool alloc_in_order(struct home *home, CUdeviceptr *pointer, size_t size, CUmemoryPool pool,
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
    if (!canary_store_adopt(home, memory, real, size, event, &place)) {
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
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    struct canary_place place;
    uint64_t number;
    if (!home || size > SIZE_MAX / 2)
        return canary_on && plain(size);
    if (canary_order_number((struct canary_stream){stream, per_thread}, &number) &&
        canary_shelf_take(home, CANARY_POOL, pool, number, size, &place)) {
        *pointer = publish_again(&place);
        *r = CUDA_SUCCESS;
        return true;
    }
    return alloc_in_order(home, pointer, size, pool, stream, per_thread, r);
}

// --- the rest -----------------------------------------------------------------------------------------------

void canary_let_go(struct home *home, uint64_t age)
{
    struct canary_place place;
    while (canary_shelf_drop(home, age, &place))
        canary_free_kept(home, &place, true);
}

void canary_pool_ends(CUmemoryPool pool)
{
    struct canary_place place;
    bool pushed;
    for (unsigned i = 0; canary_on && pool && i < HOME_CONTEXTS; i++) {
        struct home *home = home_of_number(i);
        if (!home || !canary_shelf_any(home))
            continue;
        home = home_enter(atomic_load_explicit(&home->context, memory_order_relaxed), &pushed);
        while (home && canary_shelf_drop_of(home, pool, &place))
            canary_free_kept(home, &place, false);
        home_leave(home && pushed);
    }
}

// Who has looked at all places that wait may give the memory back. idle: see canary_free_trim.
static uint64_t scan_and_trim(struct home *home, bool idle)
{
    CUresult r = canary_scan_home(home, false, true, &canary_free_wanted_again);
    // Where a scan fails, its copies may be under way still.
    if (r && canary_bench_of(home))
        return 0;
    return idle ? canary_store_trim(home, 0) : canary_tract_trim(home, UINT64_MAX);
}

static bool reclaim(struct home *home)
{
    enum { PASSES = 8 };  // others may go on freeing meanwhile
    bool any = canary_shelf_any(home), more = true;
    for (unsigned i = 0; i < PASSES && more; i++) {
        canary_monitor_hold();
        canary_order_settle(home);
        canary_let_go(home, 0);
        canary_free_postponed(home);
        more = canary_free_gone_aside(home);
        any |= more;
        more |= canary_free_any_postponed(home);
        canary_monitor_go_on();
        // For the program's streams, which may wait for another thread of its: nothing of ours is held.
        if (any || more)
            canary_order_wait_aside(home);
    }
    canary_monitor_hold();
    uint64_t given = scan_and_trim(home, true);
    canary_monitor_go_on();
    return given || any;
}

// Without waiting for kernels or streams. The context may be another one, and about to end.
static bool reclaim_at_once(struct home *home)
{
    uint64_t given = 0;
    bool pushed;
    canary_monitor_hold();
    CUcontext its = atomic_load_explicit(&home->context, memory_order_relaxed);
    if (its && canary_monitor_watches(home) && home_enter(its, &pushed)) {
        canary_let_go(home, 0);
        given = scan_and_trim(home, canary_monitor_is_idle());
        home_leave(pushed);
    }
    canary_monitor_go_on();
    return given;
}

static bool reclaim_all(bool patient)
{
    bool pushed, any = false;
    struct home *home = canary_on && canary_used() ? home_enter_owner(&pushed) : NULL;
    if (!home)
        return false;
    if (patient)
        any = reclaim(home);
    for (unsigned i = 0; i < HOME_CONTEXTS; i++) {
        struct home *other = home_of_number(i);
        if (other && (!patient || other != home) && other->device == home->device)
            any |= reclaim_at_once(other);
    }
    home_leave(pushed);
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

uint64_t canary_held(void)
{
    CUcontext current = NULL;
    if (!canary_on || !canary_used() || guard.real.cuCtxGetCurrent(&current) || !current)
        return 0;
    struct home *home = home_find(green_owner(current));
    struct canary_extent waiting[CANARY_SHELF_MOST];
    return home ? canary_store_spare(home, waiting, canary_shelf_plain(home, waiting)) : 0;
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
    if (!s && canary_ground_owns(address))
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
    struct home *home = canary_on && context ? home_find(context) : NULL;
    if (!home)
        return;
    canary_monitor_hold();
    canary_shelf_context_gone(home);
    canary_free_context_gone(home);
    canary_store_context_gone(home, context);
    canary_bench_context_gone(home);
    canary_look_context_gone(home);
    canary_order_context_gone(home);
    canary_monitor_context_gone(home);
    home_forget(context);  // whoever waits for the lock finds no context in the row
    canary_monitor_go_on();
}
