// SPDX-License-Identifier: MIT
#include "guard/canary.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "guard/canary_order.h"
#include "guard/canary_space.h"
#include "guard/guard.h"
#include "guard/guard_report.h"

static const uint64_t kept = 64 << 20;  // bytes of empty regions that a context holds on to

bool canary_on;
static _Atomic(bool) stopped;  // relaxed, and so is `used`: each is a fact of its own
static _Atomic(bool) used;
static int owner;  // the process that uses it

void canary_start(void)
{
    canary_on = guard.watching && guard.options.mode >> OPTION_MODE_CANARY & 1;
    if (canary_on && canary_bytes_init()) {
        guard_report_note("canary: no memory for a key: buffers are plain");
        canary_on = false;
    }
    owner = getpid();
}

// A driver does not work in the child of a process that used it. If ours did not, the child may.
void canary_after_fork(void)
{
    canary_on &= !atomic_load_explicit(&used, memory_order_relaxed);
    owner = getpid();
    canary_store_after_fork();
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
        guard_report_note("canary: buffers that are never freed are not looked at when the program ends");
    canary_monitor_start();
}

// The home of an allocation; NULL: it gets plain memory.
static struct home *ready(size_t size)
{
    if (!size || atomic_load_explicit(&stopped, memory_order_relaxed))
        return NULL;
    struct home *home = home_current();
    if (!home)
        return NULL;
    pthread_once(&first_use, begin);
    if (!canary_scan_prepared(home)) {
        canary_monitor_hold();
        if (!canary_scan_prepared(home))
            canary_scan_prepare(home);
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

// The canaries are in place, or will be before the program's next operation in the same order.
static uint64_t publish(const struct canary_place *place)
{
    canary_store_publish(place, canary_scan_number());
    guard_count(GUARD_CANARY_BUFFERS);
    guard_most(GUARD_CANARY_EXTRA, canary_store_extra());
    return place->base;
}

// What the driver gave becomes a buffer. False: it is still the caller's.
static bool adopt(struct home *home, enum canary_kind kind, uint64_t real, size_t size, uint64_t *base)
{
    struct canary_place place;
    if (canary_store_adopt(home, kind, real, size, NULL, &place))
        return false;
    if (canary_scan_write(home, &place)) {
        canary_store_give(&place);
        return false;
    }
    *base = publish(&place);
    return true;
}

// Buffers as GMODx has them: the pages of the canaries are read on both sides, the buffer itself is taken to the device.
static bool alloc_shared(struct home *home, CUdeviceptr *pointer, size_t size, CUresult *r)
{
    const struct driver *d = &guard.real;
    CUdeviceptr real;
    uint64_t base;
    if (!d->cuMemAllocManaged ||
        d->cuMemAllocManaged(&real, canary_store_padded(CANARY_SHARED, size), CU_MEM_ATTACH_GLOBAL))
        return plain(size);
    if (!adopt(home, CANARY_SHARED, real, size, &base)) {
        d->cuMemFree_v2(real);
        return plain(size);
    }
    uint64_t page = base - real, behind = base + canary_store_far(size) / page * page;
    if (d->cuMemAdvise) {
        d->cuMemAdvise(real, page, CU_MEM_ADVISE_SET_READ_MOSTLY, home->device);
        d->cuMemAdvise(behind, page, CU_MEM_ADVISE_SET_READ_MOSTLY, home->device);
    }
    if (d->cuMemPrefetchAsync)
        d->cuMemPrefetchAsync(base, size, home->device, NULL);
    *pointer = base;
    *r = CUDA_SUCCESS;
    return true;
}

bool canary_alloc(CUdeviceptr *pointer, size_t size, CUresult *r)
{
    struct canary_place place;
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    if (home && size <= SIZE_MAX / 2 && guard.options.canary_scan == OPTION_CANARY_SCAN_MANAGED)
        return alloc_shared(home, pointer, size, r);
    if (!home || size > SIZE_MAX / 2 || canary_store_take(home, size, &place))
        return canary_on && plain(size);
    if (canary_scan_write(home, &place)) {
        canary_store_give(&place);
        return plain(size);
    }
    *pointer = publish(&place);
    *r = CUDA_SUCCESS;
    return true;
}

bool canary_alloc_pitch(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned element,
                        CUresult *r)
{
    bool right = pointer && pitch && width && height && (element == 4 || element == 8 || element == 16);
    struct home *home = canary_on && right ? ready(width) : NULL;
    size_t granule = home ? home_pitch(home->device) : 0, row, size;
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
    *r = guard.real.cuMemAllocManaged(&real, canary_store_padded(CANARY_MANAGED, size), flags);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);  // without canaries it may fit
    if (*r)
        return true;
    if (!adopt(home, CANARY_MANAGED, real, size, &base)) {
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
    size_t padded = canary_store_padded(CANARY_HOST, size);
    *r = flags ? guard.real.cuMemHostAlloc(&real, padded, *flags)
               : guard.real.cuMemAllocHost_v2(&real, padded);
    if (*r == CUDA_ERROR_OUT_OF_MEMORY)
        return plain(size);
    if (*r)
        return true;
    if (!adopt(home, CANARY_HOST, (uintptr_t)real, size, &base)) {
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
    return set(place->base - CANARY_HEAD, place->size + CANARY_HEAD, (unsigned)canary_store_seed(place).start,
               CANARY_HEAD / 4, 2, stream);
}

static CUresult copy_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    const struct driver *d = &guard.real;
    __typeof__(cuMemcpyHtoDAsync_v2) *copy =
        per_thread ? d->cuMemcpyHtoDAsync_v2_ptsz : d->cuMemcpyHtoDAsync_v2;
    uint8_t head[CANARY_HEAD], tail[CANARY_TAIL_MOST];
    uint32_t count;
    canary_scan_make(place, head, tail, &count);
    CUresult r = copy(place->base - CANARY_HEAD, head, CANARY_HEAD, stream);
    return r ? r : copy(place->base + place->size, tail, count, stream);
}

// Canaries in the order of the stream, and an event when they are there.
static CUresult write_in_order(const struct canary_place *place, CUstream stream, bool per_thread)
{
    __typeof__(cuEventRecord) *record = per_thread ? guard.real.cuEventRecord_ptsz : guard.real.cuEventRecord;
    bool one = canary_store_is_flat(place->slab, place->size) && place->size < INT32_MAX - CANARY_HEAD;
    CUresult r = one ? set_in_order(place, stream, per_thread) : copy_in_order(place, stream, per_thread);
    return r ? r : record(place->slab->ready, stream);
}

bool canary_alloc_async(CUdeviceptr *pointer, size_t size, CUmemoryPool pool, CUstream stream,
                        bool per_thread, CUresult *r)
{
    struct home *home = canary_on && pointer ? ready(size) : NULL;
    struct canary_place place;
    CUdeviceptr real;
    CUevent event = NULL;
    if (!home || size > SIZE_MAX / 2 || guard.real.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
        return canary_on && plain(size);
    *r = pool_alloc(&real, canary_store_padded(CANARY_POOL, size), pool, stream, per_thread);
    if (*r) {
        guard.real.cuEventDestroy_v2(event);
        return *r == CUDA_ERROR_OUT_OF_MEMORY ? plain(size) : true;
    }
    if (!canary_store_adopt(home, CANARY_POOL, real, size, event, &place)) {
        if (!write_in_order(&place, stream, per_thread)) {
            *pointer = publish(&place);
            return true;
        }
        canary_store_give(&place);
    }
    guard.real.cuEventDestroy_v2(event);
    (per_thread ? guard.real.cuMemFreeAsync_ptsz : guard.real.cuMemFreeAsync)(real, stream);
    return plain(size);
}

// --- frees --------------------------------------------------------------------------------------------------

// Gives memory of the driver's back to it; the place stays if the driver refuses.
static CUresult free_real(const struct canary_place *place)
{
    uint64_t real = place->slab->range.base;
    if (place->slab->kind == CANARY_OURS)
        return CUDA_SUCCESS;
    if (!canary_store_hide(place))
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult r = place->slab->kind == CANARY_HOST ? guard.real.cuMemFreeHost((void *)(uintptr_t)real)
                                                  : guard.real.cuMemFree_v2(real);
    if (r)
        canary_store_show(place);
    return r;
}

static void put_back(const struct canary_place *place)
{
    canary_store_publish(place, canary_scan_number());
}

static void give(const struct canary_place *place)
{
    if (place->slab->ready)
        guard.real.cuEventDestroy_v2(place->slab->ready);
    canary_store_give(place);
}

// Withdrawn, and no scan is reading it any more.
static bool take(uint64_t pointer, struct canary_place *place)
{
    if (!canary_on || !pointer || !atomic_load_explicit(&used, memory_order_relaxed) ||
        !canary_store_withdraw(pointer, place))
        return false;
    // Memory that we keep may be read at any time.
    if (place->slab->kind != CANARY_OURS) {
        canary_monitor_hold();
        canary_monitor_go_on();
    }
    return true;
}

static void trim(struct home *home)
{
    if (canary_store_spare(home) <= kept)
        return;
    canary_monitor_hold();
    canary_store_trim(home, kept);
    canary_monitor_go_on();
}

bool canary_free(CUdeviceptr pointer, enum driver_id call, CUresult *r)
{
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    struct canary_place place;
    bool pushed;
    if (!take(pointer, &place))
        return false;
    struct home *home = home_enter(place.slab->context, &pushed);
    *r = home ? home_wait_as_free(home) : CUDA_ERROR_INVALID_CONTEXT;
    if (!*r)
        canary_scan_place(home, &place, &occasion);
    if (!*r)
        *r = free_real(&place);
    if (*r)
        put_back(&place);
    else
        give(&place);
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
    if (place.slab->kind != CANARY_HOST) {
        put_back(&place);
        return false;
    }
    canary_scan_place(place.slab->home, &place, &occasion);
    *r = free_real(&place);
    if (*r)
        put_back(&place);
    else
        give(&place);
    return true;
}

static CUresult free_in_graph(const struct canary_place *place, CUstream stream, bool per_thread)
{
    guard_count(GUARD_UNGUARDED);
    return (per_thread ? guard.real.cuMemFreeAsync_ptsz : guard.real.cuMemFreeAsync)(place->slab->range.base,
                                                                                     stream);
}

// The canaries, before a free in the order of the stream. A stream of its own knows its context: the driver frees in its
// order on a thread that has none.
static CUresult read_in_order(const struct canary_place *place, CUstream stream, bool per_thread,
                              enum driver_id call)
{
    const struct driver *d = &guard.real;
    const struct canary_occasion occasion = {call, NULL, "found when the buffer was freed", false, true};
    CUcontext current = NULL;
    bool pushed = false;
    if (stream && stream != CU_STREAM_LEGACY && stream != CU_STREAM_PER_THREAD &&
        !d->cuCtxGetCurrent(&current) && !current)
        home_enter(place->slab->context, &pushed);
    CUresult r = canary_order_read(place, stream, per_thread, call);
    if (r == CUDA_ERROR_NOT_READY) {
        r = (per_thread ? d->cuStreamSynchronize_ptsz : d->cuStreamSynchronize)(stream);
        if (!r)
            canary_scan_place(place->slab->home, place, &occasion);
    }
    home_leave(pushed);
    return r;
}

bool canary_free_async(CUdeviceptr pointer, CUstream stream, bool per_thread, bool captured,
                       enum driver_id call, CUresult *r)
{
    const struct driver *d = &guard.real;
    struct canary_place place;
    if (!take(pointer, &place))
        return false;
    if (captured) {
        // The graph frees it whenever it runs: from now on nobody may look.
        *r = place.slab->kind == CANARY_OURS ? CUDA_ERROR_INVALID_VALUE
                                             : free_in_graph(&place, stream, per_thread);
        if (*r)
            put_back(&place);
        else
            give(&place);
        return true;
    }
    if (place.slab->kind == CANARY_OURS) {
        // The driver takes plain memory here too, and waits for it.
        put_back(&place);
        *r = (per_thread ? d->cuStreamSynchronize_ptsz : d->cuStreamSynchronize)(stream);
        return *r ? true : canary_free(pointer, call, r);
    }
    *r = read_in_order(&place, stream, per_thread, call);
    if (*r) {
        put_back(&place);
        return true;
    }
    // From the driver's call on the address may be another buffer's.
    uint64_t real = place.slab->range.base;
    CUevent event = place.slab->ready;
    canary_store_give(&place);
    *r = (per_thread ? d->cuMemFreeAsync_ptsz : d->cuMemFreeAsync)(real, stream);
    if (event)
        d->cuEventDestroy_v2(event);
    return true;
}

// --- the rest -----------------------------------------------------------------------------------------------

bool canary_reclaim(void)
{
    struct home *home =
        canary_on && atomic_load_explicit(&used, memory_order_relaxed) ? home_current() : NULL;
    if (!home)
        return false;
    canary_monitor_hold();
    uint64_t given = canary_store_trim(home, 0);
    canary_monitor_go_on();
    return given;
}

void canary_stop(const char *why)
{
    if (canary_on && !atomic_exchange_explicit(&stopped, true, memory_order_relaxed))
        guard_report_note("canary: %s: memory allocated from now on is plain", why);
}

enum canary_what canary_ask(uint64_t address, uint64_t *base, uint64_t *size)
{
    struct canary_buffer b;
    enum canary_what what = CANARY_NOT_OURS;
    if (!canary_on)
        return what;
    unsigned section = epoch_enter();
    struct canary_slab *s = canary_store_find(address);
    if (!s && canary_store_owns(address))
        what = CANARY_AROUND;
    if (s) {
        uint64_t number = address >= s->base ? (address - s->base) / s->stride : UINT64_MAX;
        what = CANARY_AROUND;
        if (number < s->slots && canary_store_read(s, (uint32_t)number, UINT64_MAX, &b) &&
            address - canary_store_base(s, (uint32_t)number) < b.size) {
            what = CANARY_BUFFER;
            *base = canary_store_base(s, (uint32_t)number);
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
    canary_store_context_gone(home, context);
    canary_scan_context_gone(home);
    canary_order_context_gone(home);
    canary_monitor_context_gone(home);
    home_forget(context);
    canary_monitor_go_on();
}
