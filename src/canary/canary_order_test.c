// SPDX-License-Identifier: MIT
// Pool buffers, allocated and freed in stream order, on the CPU device: their places are cached, and read on
// the side stream.
#include "canary/canary_order.h"

#include <pthread.h>
#include <unistd.h>

#include "canary/canary_staging.h"
#include "canary/canary_free.h"
#include "canary/canary_cache.h"
#include "canary/canary_testing.h"

enum { LOCK_STEP = 60000000 };

static const bool whole = false;

// The monitor sleeps for a minute, so that all scans are the test's own.
static int setup(void **state)
{
    use_cpu_device();
    REAL(cuMemAllocHost_v2), REAL(cuMemHostAlloc), REAL(cuMemFreeHost);
    REAL(cuMemsetD2D32Async), REAL(cuMemcpy2DAsync_v2), REAL(cuMemcpyBatchAsync_v2);
    REAL(cuMemAllocAsync), REAL(cuMemAllocFromPoolAsync), REAL(cuMemFreeAsync);
    REAL(cuStreamWaitEvent), REAL(cuStreamQuery), REAL(cuStreamGetId), REAL(cuEventSynchronize),
        REAL(cuThreadExchangeStreamCaptureMode);
    guard.options.mode = 1 << OPTION_MODE_CANARY;
    guard.options.canary_interval = LOCK_STEP;
    canary_start();
    return !canary_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

// Of two buffers that had the same place, each is reported for what was written while it lived.
static void places_of_a_pool_come_again(void **state)
{
    CUdeviceptr p, q;
    CUresult r;
    for (unsigned size = 4000; size < 4008; size += 3) {
        assert_true(canary_alloc_async(&p, size, NULL, NULL, false, &r) && !r);
        change(p + size);
        assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
        assert_true(canary_alloc_async(&q, size, NULL, NULL, false, &r) && !r);
        assert_true(p == q);
        assert_int_equal(cuCtxSynchronize(), 0);
        scan(whole);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 1);
        change(q - 1);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 2);
        assert_true(canary_free_async(q, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
        assert_int_equal(cuCtxSynchronize(), 0);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 2);
        // A damaged place is not reused.
        assert_true(canary_alloc_async(&p, size, NULL, NULL, false, &r) && !r);
        change(p + size);
        assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
        assert_int_equal(cuCtxSynchronize(), 0);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 3);
        assert_true(canary_alloc_async(&q, size, NULL, NULL, false, &r) && !r);
        assert_true(p != q);
        assert_true(canary_free_async(q, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
        atomic_store(&findings, 0);
    }
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

enum { IN_ORDER = 4000 };

// Returns a pool buffer in the place of one whose tail was damaged, before the readback of that is verified.
static CUdeviceptr after_a_damaged_one(CUmemoryPool pool)
{
    CUdeviceptr p, q;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, pool, NULL, false, &r) && !r);
    change(p + IN_ORDER);
    assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    assert_true(canary_alloc_async(&q, IN_ORDER, pool, NULL, false, &r) && !r);
    assert_true(p == q);
    return q;
}

static void free_in_order(CUdeviceptr p)
{
    CUresult r;
    assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
}

static void are_reported(unsigned count)
{
    assert_int_equal(cuCtxSynchronize(), 0);
    canary_order_side_wait(context_current());
    scan(whole);
    assert_int_equal(atomic_load(&findings), count);
    canary_reclaim();
    assert_int_equal(atomic_exchange(&findings, 0), count);
    assert_int_equal(canary_store_slabs(), 0);
}

static void is_reported_once(void)
{
    are_reported(1);
}

// Such a place leaves the full cache before it is verified: the damage of its first buffer is reported once.
static void a_full_cache_reports_once(void **state)
{
    enum { PLACES = 100 };
    CUdeviceptr p;
    CUresult r;
    free_in_order(after_a_damaged_one(NULL));
    for (unsigned i = 1; i <= PLACES; i++) {
        assert_true(canary_alloc_async(&p, IN_ORDER + 4 * i, NULL, NULL, false, &r) && !r);
        free_in_order(p);
    }
    is_reported_once();
}

// Such a place goes with its pool: the damage of its first buffer is reported once.
static void destroying_a_pool_reports_once(void **state)
{
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemoryPool pool;
    assert_int_equal(cuMemPoolCreate(&pool, &properties), 0);
    free_in_order(after_a_damaged_one(pool));
    canary_pool_ends(pool);
    assert_int_equal(cuMemPoolDestroy(pool), 0);
    is_reported_once();
}

// A call that waits frees the second buffer: the damage of the first buffer is reported once.
static void a_free_that_waits_reports_once(void **state)
{
    free_now(after_a_damaged_one(NULL));
    assert_int_equal(atomic_load(&findings), 1);
    is_reported_once();
}

// Of two readbacks of one place the first is verified first: what both show is reported for its buffer.
static void the_first_is_reported(void **state)
{
    CUresult r;
    CUdeviceptr second = after_a_damaged_one(NULL);
    assert_true(canary_free_async(second, NULL, false, false, DRIVER_cuMemFreeAsync_ptsz, &r) && !r);
    is_reported_once();
    assert_int_equal(told_by, DRIVER_cuMemFreeAsync);
}

static CUresult is_never_there(CUevent event)
{
    return CUDA_ERROR_NOT_READY;
}

static CUdeviceptr others[CANARY_CACHE_MOST];  // freed during another free; all of them, or 0
static unsigned freed_in_the_stream;

static CUresult wait_and_free_others(CUstream q, CUevent e, unsigned f)
{
    for (unsigned i = 0; i < CANARY_CACHE_MOST && others[i]; i++) {
        CUdeviceptr p = others[i];
        others[i] = 0;
        free_in_order(p);
    }
    return cuStreamWaitEvent(q, e, f);
}

static CUresult note_stream(CUdeviceptr p, CUstream q)
{
    freed_in_the_stream += !q;
    return cuMemFreeAsync(p, q);
}

static CUstream the_programs;
static unsigned copies, frees, steps;  // in streams other than the_programs

static CUresult count_copies(const CUDA_MEMCPY2D *copy, CUstream stream)
{
    copies += stream != the_programs;
    return cuMemcpy2DAsync_v2(copy, stream);
}

static CUresult count_frees(CUdeviceptr p, CUstream stream)
{
    frees += stream != the_programs;
    return cuMemFreeAsync(p, stream);
}

static CUresult count_steps(CUstream stream, CUevent event, unsigned flags)
{
    steps++;
    return cuStreamWaitEvent(stream, event, flags);
}

// A place that is read on the side stream is freed there too: after a free in the program's stream the memory
// could have another owner, whose writes would be taken for damage.
static void the_cache_fills_meanwhile(void **state)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    for (unsigned i = 0; i < CANARY_CACHE_MOST; i++)
        assert_true(canary_alloc_async(&others[i], IN_ORDER + 4 + 4 * i, NULL, NULL, false, &r) && !r);
    guard.real.cuStreamWaitEvent = wait_and_free_others;
    guard.real.cuMemFreeAsync = note_stream;
    guard.real.cuMemcpy2DAsync_v2 = count_copies;
    copies = 0;
    free_in_order(p);
    REAL(cuMemcpy2DAsync_v2);
    assert_int_equal(copies, 1 + CANARY_CACHE_MOST);  // each is read once
    REAL(cuStreamWaitEvent);
    REAL(cuMemFreeAsync);
    assert_int_equal(others[0], 0);
    assert_int_equal(freed_in_the_stream, 0);
    are_reported(0);
}

// No readback is left and one of an earlier buffer in the place is pending: the side stream frees the place.
static void readbacks_run_out(void **state)
{
    CUdeviceptr p, q;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    free_in_order(p);
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    guard.real.cuEventQuery = is_never_there;
    for (unsigned i = 1; i < CANARY_READBACKS; i++) {
        assert_true(canary_alloc_async(&q, IN_ORDER + 4 * i, NULL, NULL, false, &r) && !r);
        free_in_order(q);
    }
    guard.real.cuMemFreeAsync = note_stream;
    freed_in_the_stream = 0;
    uint64_t unguarded = guard.counts[GUARD_UNGUARDED];
    free_in_order(p);
    assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded + 1);
    assert_int_equal(freed_in_the_stream, 0);
    REAL(cuMemFreeAsync);
    REAL(cuEventQuery);
    are_reported(0);
}

static unsigned allocated;

static CUresult count_allocations(CUdeviceptr *p, size_t size, CUstream q)
{
    allocated++;
    return cuMemAllocAsync(p, size, q);
}

// A place is reused however often it was freed since the last scan, since completed readbacks are verified to
// make room.
static void readbacks_make_room(void **state)
{
    CUdeviceptr p;
    CUresult r;
    guard.real.cuMemAllocAsync = count_allocations;
    for (unsigned i = 0; i < 2 * CANARY_READBACKS; i++) {
        assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
        free_in_order(p);
        if (i % CANARY_READBACKS == CANARY_READBACKS - 1)
            canary_order_side_wait(context_current());
    }
    REAL(cuMemAllocAsync);
    assert_int_equal(allocated, 1);
    are_reported(0);
}

static CUevent late;  // the first event queried from now on; NULL: none yet

static CUresult is_late(CUevent event)
{
    late = late ? late : event;
    return event == late ? CUDA_ERROR_NOT_READY : cuEventQuery(event);
}

// If the first buffer's readback is late, the damage that the second one's shows is not reported for the
// second.
static void a_late_readback_is_waited_for(void **state)
{
    free_in_order(after_a_damaged_one(NULL));
    assert_int_equal(cuCtxSynchronize(), 0);
    canary_order_side_wait(context_current());
    guard.real.cuEventQuery = is_late;
    late = NULL;
    canary_monitor_lock();
    canary_order_verify(context_current());
    assert_int_equal(atomic_load(&findings), 0);
    // Nor if their place has been closed.
    canary_drop_cached(context_current(), 0);
    late = NULL;
    canary_order_verify(context_current());
    canary_monitor_unlock();
    assert_int_equal(atomic_load(&findings), 0);
    guard.real.cuEventQuery = cuEventQuery;
    is_reported_once();
}

// A stream-ordered free does not wait for a scan, whether the place is cached, replaces another in the cache,
// or is freed at once.
static void a_free_in_order_waits_for_no_scan(void **state)
{
    enum { PLACES = 100 };
    CUdeviceptr p[PLACES];
    CUresult r;
    for (unsigned i = 0; i < PLACES; i++)
        assert_true(canary_alloc_async(&p[i], IN_ORDER + 4 * i, NULL, NULL, false, &r) && !r);
    change(p[PLACES / 2] + IN_ORDER + 4 * (PLACES / 2));
    scan(whole);  // such a place is not cached
    assert_int_equal(atomic_load(&findings), 1);
    size_t before = canary_store_slabs();
    alarm(60);
    canary_monitor_lock();
    free_in_order(p[PLACES / 2]);
    for (unsigned i = 0; i < PLACES; i++)
        if (i != PLACES / 2)
            free_in_order(p[i]);
    assert_int_equal(canary_store_slabs(), before);  // nobody has removed what a scan may be reading
    canary_monitor_unlock();
    alarm(0);
    is_reported_once();
}

// Damage that was reported is not reported again when the buffer is freed, in any way, or when a free is
// refused.
static void damage_is_reported_once(void **state)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc(&p, IN_ORDER, &r) && !r);
    change(p + IN_ORDER);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    assert_false(canary_free_host((void *)(uintptr_t)p, DRIVER_cuMemFreeHost, &r));
    scan(whole);
    free_in_order(p);
    is_reported_once();
}

static void await_flag(void *flag)
{
    while (!atomic_load((atomic_bool *)flag))
        usleep(1000);
}

// A stream may wait for the thread that frees in its order: such a free never waits, however many are
// pending.
static void frees_in_order_never_wait(void **state)
{
    enum { MANY = CANARY_READBACKS + 200 };
    atomic_bool flag = false;
    CUstream stream;
    CUdeviceptr p;
    CUresult r;
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    assert_int_equal(cuLaunchHostFunc(stream, await_flag, &flag), 0);
    for (unsigned i = 0; i < MANY; i++) {
        assert_true(canary_alloc_async(&p, 1000 + 4 * i, NULL, stream, false, &r) && !r);
        assert_true(canary_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    }
    atomic_store(&flag, true);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    canary_order_side_wait(context_current());
    scan(whole);
    canary_reclaim();
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
    assert_int_equal(atomic_load(&findings), 0);
    assert_int_equal(canary_store_slabs(), 0);
}

static unsigned asked;

static CUresult count_questions(CUevent event)
{
    asked++;
    return cuEventQuery(event);
}

// Operations that a stream holds before an H200's driver blocks callers
static const unsigned bearable = 1000;

static void alloc_and_free(size_t size, CUstream stream)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc_async(&p, size, NULL, stream, false, &r) && !r);
    assert_true(canary_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
}

// However many frees are pending, nothing is put into the side stream that would block; all places are read
// as long as there are readbacks; and no event is queried in vain over and over.
static void a_full_side_stream_is_not_used(void **state)
{
    enum { LATER = 100, HELD = 600 };
    atomic_bool flag = false;
    CUdeviceptr reported;
    CUresult r;
    assert_int_equal(cuStreamCreate(&the_programs, CU_STREAM_NON_BLOCKING), 0);
    assert_true(canary_alloc_async(&reported, IN_ORDER, NULL, the_programs, false, &r) && !r);
    assert_int_equal(cuStreamSynchronize(the_programs), 0);
    change(reported + IN_ORDER);
    scan(whole);  // such a place is not cached
    assert_int_equal(cuLaunchHostFunc(the_programs, await_flag, &flag), 0);
    guard.real.cuMemcpy2DAsync_v2 = count_copies;
    guard.real.cuMemFreeAsync = count_frees;
    guard.real.cuStreamWaitEvent = count_steps;
    copies = frees = steps = 0;
    uint64_t unguarded = guard.counts[GUARD_UNGUARDED];
    unsigned size = 1000;
    for (unsigned i = 0; i < CANARY_READBACKS; i++)
        alloc_and_free(size += 4, the_programs);
    assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded);
    for (unsigned i = 0; i < CANARY_READBACKS; i++)
        alloc_and_free(size += 4, the_programs);
    assert_true(copies + frees < bearable && steps < bearable);
    // Nor during a scan; and the monitor adds none of the postponed frees.
    canary_monitor_lock();
    assert_true(canary_free_async(reported, the_programs, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    for (unsigned i = 0; i < HELD; i++)
        alloc_and_free(size += 4, the_programs);
    canary_free_postponed(context_current());
    canary_monitor_unlock();
    assert_true(copies + frees < bearable && steps < bearable);
    REAL(cuMemcpy2DAsync_v2), REAL(cuMemFreeAsync), REAL(cuStreamWaitEvent);
    guard.real.cuEventQuery = count_questions;
    asked = 0;
    for (unsigned i = 0; i < LATER; i++)
        alloc_and_free(size += 4, the_programs);
    assert_true(asked <= 2 * LATER);
    REAL(cuEventQuery);
    atomic_store(&flag, true);
    assert_int_equal(cuStreamSynchronize(the_programs), 0);
    is_reported_once();
    assert_int_equal(cuStreamDestroy_v2(the_programs), 0);
    the_programs = NULL;
}

// Operations in the side stream are known to have ended even if none of them was a readback.
static void the_side_stream_drains(void **state)
{
    struct canary_place place;
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    assert_true(canary_store_withdraw(p, &place));
    for (unsigned i = 0; i < bearable; i++)
        assert_int_equal(canary_order_side_follow(&place, (struct canary_stream){NULL, false}), 0);
    assert_true(canary_order_side_is_full(context_current()));
    canary_slot_publish_again(&place, canary_scan_number());
    canary_order_side_wait(context_current());
    scan(whole);
    assert_false(canary_order_side_is_full(context_current()));
    free_in_order(p);
    are_reported(0);
}

// During capture the driver refuses to free what no graph allocated: the buffer stays, and is watched.
static void a_refused_free_changes_nothing(void **state)
{
    CUstream stream;
    CUgraph graph;
    CUresult r;
    CUdeviceptr p, again;
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, stream, false, &r) && !r);
    assert_true(canary_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    assert_true(canary_alloc_async(&again, IN_ORDER, NULL, stream, false, &r) && !r && p == again);
    uint64_t unguarded = guard.counts[GUARD_UNGUARDED];
    assert_int_equal(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    assert_true(canary_free_async(p, stream, false, true, DRIVER_cuMemFreeAsync, &r));
    assert_int_equal(r, CUDA_ERROR_INVALID_VALUE);
    cuStreamEndCapture(stream, &graph);
    assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    canary_order_side_wait(context_current());
    scan(whole);
    change(p + IN_ORDER);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    assert_true(canary_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    is_reported_once();
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

// A place whose readbacks were forgotten, and which stays all the same, does not wait for them.
static void forgotten_readbacks_are_gone(void **state)
{
    CUresult r;
    CUdeviceptr p;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    free_in_order(p);
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    assert_int_equal(cuCtxSynchronize(), 0);
    canary_monitor_lock();
    canary_order_forget(canary_store_find(p));
    canary_monitor_unlock();
    change(p + IN_ORDER);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    free_in_order(p);
    is_reported_once();
}

static CUresult record_at_context(CUevent event, CUstream stream)
{
    CUcontext current;
    assert_int_equal(cuCtxGetCurrent(&current), 0);
    assert_ptr_equal(current, context);
    return cuEventRecord(event, stream);
}

// The driver frees in stream order whatever context is current; events must be of the stream's context.
static void another_context_may_be_current(void **state)
{
    CUcontext other;
    CUstream stream;
    CUresult r;
    CUdeviceptr p;
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, stream, false, &r) && !r);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    change(p + IN_ORDER);
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    guard.real.cuEventRecord = record_at_context;
    assert_true(canary_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r));
    assert_int_equal(r, 0);
    REAL(cuEventRecord);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    forget_context(other);
    assert_int_equal(cuCtxSetCurrent(context), 0);
    assert_int_equal(cuStreamSynchronize(stream), 0);
    is_reported_once();
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

static CUresult refuse_events(CUevent event, CUstream stream)
{
    return CUDA_ERROR_INVALID_HANDLE;
}

// A stream of another context does not accept our events; the driver decides whether it frees.
static void a_stream_may_be_foreign(void **state)
{
    CUdeviceptr p;
    CUresult r;
    uint64_t unguarded = guard.counts[GUARD_UNGUARDED];
    for (unsigned i = 1; i <= CANARY_READBACKS + 1; i++) {
        assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
        guard.real.cuEventRecord = refuse_events;
        free_in_order(p);
        REAL(cuEventRecord);
        assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded + i);
    }
    free_in_order(after_a_damaged_one(NULL));
    assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded + CANARY_READBACKS + 1);
    is_reported_once();
}

// Returns a buffer that was intact at the last whole scan, and damaged by the seventh kernel, which has
// ended.
static CUdeviceptr damaged_by_the_seventh(void)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    assert_int_equal(cuCtxSynchronize(), 0);
    scan(true);
    change(p + IN_ORDER);
    atomic_store(&canary_scan_ended, 7);
    return p;
}

static void the_seventh_is_named(void)
{
    is_reported_once();
    atomic_store(&canary_scan_ended, 0);
    assert_true(blamed_since < 7);
}

static CUresult free_after_a_scan(CUdeviceptr p)
{
    guard.real.cuMemFree_v2 = cuMemFree_v2;
    scan(true);
    return cuMemFree_v2(p);
}

// The same as below, while a free waits.
static void waited_for_is_not_clean(void **state)
{
    CUdeviceptr p = damaged_by_the_seventh();
    guard.real.cuMemFree_v2 = free_after_a_scan;
    free_now(p);
    REAL(cuMemFree_v2);
    the_seventh_is_named();
}

// A context may be destroyed while readbacks are pending, and another may take its slot.
static void goes_with_its_context(void **state)
{
    enum { ROUNDS = 20, BUFFERS = 100 };
    for (unsigned i = 0; i < unit_cases(ROUNDS); i++) {
        CUcontext other;
        CUdeviceptr p;
        CUresult r;
        assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
        guard.real.cuEventQuery = is_never_there;
        for (unsigned k = 0; k < BUFFERS; k++) {
            assert_true(canary_alloc_async(&p, IN_ORDER + 4 * k, NULL, NULL, false, &r) && !r);
            free_in_order(p);
        }
        canary_drop_cached(context_current(), 0);
        canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
        assert_int_equal(cuCtxDestroy_v2(other), 0);
        forget_context(other);
        REAL(cuEventQuery);
        // The new context starts afresh: nothing of the old one may be verified, or occupy a readback.
        assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
        uint64_t unguarded = guard.counts[GUARD_UNGUARDED];
        for (unsigned k = 0; k < CANARY_READBACKS; k++) {
            assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
            free_in_order(p);
        }
        assert_int_equal(guard.counts[GUARD_UNGUARDED], unguarded);
        free_in_order(after_a_damaged_one(NULL));
        is_reported_once();
        canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
        assert_int_equal(cuCtxDestroy_v2(other), 0);
        forget_context(other);
        assert_int_equal(cuCtxSetCurrent(context), 0);
    }
    assert_int_equal(atomic_load(&findings), 0);
}

// That memory was freed on the side stream of a context is not reported for the context that takes its slot.
static void side_frees_go_with_the_context(void **state)
{
    enum { BUFFERS = CANARY_CACHE_MOST + 10 };
    CUdeviceptr p[BUFFERS];
    CUcontext other;
    CUresult r;
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    const struct context *ctx = context_current();
    for (unsigned i = 0; i < BUFFERS; i++)
        assert_true(canary_alloc_async(&p[i], IN_ORDER + 4 * i, NULL, NULL, false, &r) && !r);
    canary_monitor_lock();
    for (unsigned i = 0; i < BUFFERS; i++)
        free_in_order(p[i]);
    assert_true(canary_free_any_postponed(ctx));
    canary_free_postponed(context_current());
    canary_monitor_unlock();
    assert_true(canary_free_any_freed(context_current()));
    assert_false(canary_free_any_freed(context_current()));
    // The same again, without a query before the context is destroyed.
    assert_true(canary_alloc_async(&p[0], 2 * IN_ORDER, NULL, NULL, false, &r) && !r);
    canary_monitor_lock();
    free_in_order(p[0]);
    canary_free_postponed(context_current());
    canary_monitor_unlock();
    canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    forget_context(other);
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    assert_ptr_equal(context_current(), ctx);
    assert_false(canary_free_any_postponed(ctx));
    assert_false(canary_free_any_freed(context_current()));
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    forget_context(other);
    assert_int_equal(cuCtxSetCurrent(context), 0);
}

// Readbacks whose places were forgotten are reused again and again.
static void forgotten_readbacks_are_reused(void **state)
{
    CUdeviceptr p;
    CUresult r;
    for (unsigned i = 0; i <= CANARY_READBACKS; i++) {
        assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
        free_in_order(p);
        if (i % 2) {
            canary_monitor_lock();
            canary_drop_cached(context_current(), 0);
            canary_monitor_unlock();
        }
        canary_order_side_wait(context_current());
        scan(whole);
    }
    are_reported(0);
}

// If a scan skips a place because a readback of an earlier buffer is pending, it clears no kernel.
static void passed_over_is_not_clean(void **state)
{
    CUdeviceptr p, q;
    CUresult r;
    assert_true(canary_alloc_async(&p, IN_ORDER, NULL, NULL, false, &r) && !r);
    free_in_order(p);
    assert_true(canary_alloc_async(&q, IN_ORDER, NULL, NULL, false, &r) && !r && p == q);
    assert_int_equal(cuCtxSynchronize(), 0);
    canary_order_side_wait(context_current());
    change(q + IN_ORDER);
    atomic_store(&canary_scan_ended, 5);  // it was the fifth
    scan(true);
    assert_int_equal(atomic_load(&findings), 0);
    scan(true);
    assert_int_equal(atomic_load(&findings), 1);
    assert_true(blamed_since < 5);
    atomic_store(&canary_scan_ended, 0);
    free_in_order(q);
    is_reported_once();
}

static CUresult scan_and_wait(CUstream stream, CUevent event, unsigned flags)
{
    REAL(cuStreamWaitEvent);
    scan(true);
    return cuStreamWaitEvent(stream, event, flags);
}

// A scan between withdrawal and verification of a buffer has not verified it: the report must name the same
// kernels as without that scan.
static void withdrawn_is_not_clean(void **state)
{
    CUdeviceptr p = damaged_by_the_seventh();
    guard.real.cuStreamWaitEvent = scan_and_wait;
    free_in_order(p);
    the_seventh_is_named();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_of_a_pool_come_again),
        cmocka_unit_test(a_full_cache_reports_once),
        cmocka_unit_test(the_cache_fills_meanwhile),
        cmocka_unit_test(readbacks_run_out),
        cmocka_unit_test(destroying_a_pool_reports_once),
        cmocka_unit_test(a_free_that_waits_reports_once),
        cmocka_unit_test(a_late_readback_is_waited_for),
        cmocka_unit_test(a_free_in_order_waits_for_no_scan),
        cmocka_unit_test(damage_is_reported_once),
        cmocka_unit_test(frees_in_order_never_wait),
        cmocka_unit_test(readbacks_make_room),
        cmocka_unit_test(the_first_is_reported),
        cmocka_unit_test(a_full_side_stream_is_not_used),
        cmocka_unit_test(a_refused_free_changes_nothing),
        cmocka_unit_test(forgotten_readbacks_are_gone),
        cmocka_unit_test(another_context_may_be_current),
        cmocka_unit_test(the_side_stream_drains),
        cmocka_unit_test(forgotten_readbacks_are_reused),
        cmocka_unit_test(passed_over_is_not_clean),
        cmocka_unit_test(goes_with_its_context),
        cmocka_unit_test(side_frees_go_with_the_context),
        cmocka_unit_test(withdrawn_is_not_clean),
        cmocka_unit_test(a_stream_may_be_foreign),
        cmocka_unit_test(waited_for_is_not_clean),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
