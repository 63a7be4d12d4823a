// SPDX-License-Identifier: MIT
// Canary mode on the CPU device, which is linked in: failures of any driver call, and several threads. What
// programs see is tested by test/guard/canary.sh.
#include "canary/canary.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "canary/canary_order.h"
#include "canary/canary_cache.h"
#include "canary/canary_testing.h"

enum { SMALL = 1000, LARGE = (3 << 20) - 100, LOCK_STEP = 60000000 };

WRAP(cuMemAllocManaged, (CUdeviceptr * p, size_t n, unsigned f), (p, n, f))
WRAP(cuMemAllocHost_v2, (void **p, size_t n), (p, n))
WRAP(cuMemHostAlloc, (void **p, size_t n, unsigned f), (p, n, f))
WRAP(cuMemAllocAsync, (CUdeviceptr * p, size_t n, CUstream q), (p, n, q))
WRAP(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *c, CUstream q), (c, q))
WRAP(cuStreamWaitEvent, (CUstream q, CUevent e, unsigned f), (q, e, f))
WRAP(cuMemcpyBatchAsync_v2,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t n, CUmemcpyAttributes *how, size_t *first,
      size_t kinds, CUstream q),
     (to, from, sizes, n, how, first, kinds, q))
WRAP(cuMemsetD2D32Async, (CUdeviceptr p, size_t pitch, unsigned v, size_t w, size_t h, CUstream q),
     (p, pitch, v, w, h, q))

// The monitor sleeps for a minute, so that all scans are the test's own.
static int setup(void **state)
{
    use_cpu_device();
    TRIED(cuMemsetD2D32Async);
    REAL(cuMemFreeHost);
    REAL(cuMemFreeAsync);
    REAL(cuMemAllocFromPoolAsync);
    TRIED(cuMemcpy2DAsync_v2);
    TRIED(cuMemcpyBatchAsync_v2);
    TRIED(cuStreamWaitEvent);
    REAL(cuEventSynchronize);
    REAL(cuStreamGetId);
    REAL(cuThreadExchangeStreamCaptureMode);
    TRIED(cuMemAllocManaged);
    TRIED(cuMemAllocHost_v2);
    TRIED(cuMemHostAlloc);
    TRIED(cuMemAllocAsync);
    guard.options.mode = 1 << OPTION_MODE_CANARY;
    guard.options.canary_interval = LOCK_STEP;
    canary_start();
    return !canary_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

static bool whole;  // the kind of scan

// For buffers of each size, in a slab or alone, a byte changed on either side is found by a scan, once.
static void each_side_of_each_size(void **state)
{
    static const size_t sizes[] = {1, 3, 464, 465, 512, 1000, 4096, 65000, 65488, 65489, 1 << 20, LARGE};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    CUdeviceptr p[SIZES][3];
    CUresult r;
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned k = 0; k < 3; k++) {
            assert_true(canary_alloc(&p[i][k], sizes[i], &r) && !r);
            assert_int_equal(p[i][k] % 512, 0);
        }
    scan(whole);
    assert_int_equal(atomic_load(&findings), 0);
    unsigned expected = 0;
    for (unsigned i = 0; i < SIZES; i++) {
        change(p[i][1] + sizes[i]);
        scan(whole);
        assert_int_equal(atomic_load(&findings), ++expected);
        change(p[i][1] - 1);
        scan(whole);
        assert_int_equal(atomic_load(&findings), ++expected);
        scan(whole);
        assert_int_equal(atomic_load(&findings), expected);
    }
    for (unsigned i = 0; i < SIZES; i++)
        for (unsigned k = 0; k < 3; k++)
            free_now(p[i][k]);
    assert_int_equal(atomic_load(&findings), expected);
    atomic_store(&findings, 0);
}

// The last byte before the next buffer's head counts too.
static void the_whole_slack_counts(void **state)
{
    CUdeviceptr p[2];
    CUresult r;
    assert_true(canary_alloc(&p[0], 200, &r) && canary_alloc(&p[1], 200, &r));
    change(p[0] + 479);
    free_now(p[0]);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    free_now(p[1]);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    atomic_store(&findings, 0);
}

// Behind a buffer that has its canaries for itself too.
static void the_rest_of_a_place_counts(void **state)
{
    static const size_t sizes[] = {4096, 65536, 1 << 20, 2 << 20};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (unsigned at = 0; at < 480; at += at == 448 ? 31 : 64) {
            CUdeviceptr p = 0, behind = 0;
            CUresult r;
            assert_true(canary_alloc(&p, sizes[i], &r) && canary_alloc(&behind, sizes[i], &r));
            change(p + sizes[i] + at);
            scan(true);
            assert_int_equal(atomic_exchange(&findings, 0), 1);
            free_now(p);
            free_now(behind);
            canary_reclaim();
        }
    assert_int_equal(atomic_load(&findings), 0);
}

// Fresh memory holds what the driver's does, whatever the sizes are: the CPU device gives zeros.
static void fresh_buffers_are_zero(void **state)
{
    enum { COUNT = 200 };
    static uint8_t bytes[5000];
    CUdeviceptr p[COUNT];
    CUresult r;
    canary_reclaim();
    for (unsigned i = 0; i < COUNT; i++) {
        size_t size = i % 4 ? 1 + i * 37 % 460 : 1 + i * 4099 % sizeof bytes;
        assert_true(canary_alloc(&p[i], size, &r));
        assert_int_equal(cuMemcpyDtoH_v2(bytes, p[i], size), 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(bytes[k], 0);
    }
    scan(true);
    for (unsigned i = 0; i < COUNT; i++)
        free_now(p[i]);
    scan(true);
    assert_int_equal(atomic_load(&findings), 0);
    canary_reclaim();
}

// Besides the driver's own rounding to 512 bytes, a buffer loses at most 512 bytes, and a large one a
// thousandth.
static void takes_little_memory(void **state)
{
    static const size_t odd[] = {
        1,     464,   465,   488,    511,           512,     513,     1000,           1023, 65488,
        65489, 65535, 70000, 300000, (1 << 20) - 1, 1 << 20, 1 << 21, (1 << 21) + 47, LARGE};
    CUresult r;
    canary_reclaim();
    for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
        CUdeviceptr p[20];
        uint64_t before = canary_store_extra();
        for (unsigned k = 0; k < 20; k++)
            assert_true(canary_alloc(&p[k], odd[i], &r));
        uint64_t rounded = (odd[i] + 511) / 512 * 512, each = (canary_store_extra() - before) / 20;
        assert_true(odd[i] + each <= rounded + 512);
        assert_true(odd[i] <= 1 << 20 || each <= odd[i] / 1000);
        for (unsigned k = 0; k < 20; k++)
            free_now(p[k]);
    }
    scan(whole);
    canary_reclaim();
    // This includes memory that is not handed out yet.
    enum { COUNT = 20000 };
    static CUdeviceptr p[COUNT];
    size_t start = available();
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(canary_alloc(&p[i], SMALL, &r));
    assert_true(start - available() <= (size_t)COUNT * 1536 / 32 * 33 + (4 << 20));
    for (unsigned i = 0; i < COUNT; i++)
        free_now(p[i]);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

// The head of a slab's first buffer lies behind the neighbour's last buffer: neither is overwritten by the
// other's.
static void slabs_lie_side_by_side(void **state)
{
    enum { MANY = 64 };
    CUdeviceptr p[MANY] = {0};
    unsigned seed = 5, expected = 0;
    CUresult r;
    canary_reclaim();
    whole = true;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned k = (unsigned)rand_r(&seed) % MANY;
        if (p[k])
            free_now(p[k]);
        size_t size = 1 + (size_t)rand_r(&seed) % (k < MANY / 2 ? 3000 : 200000);
        assert_true(canary_alloc(&p[k], size, &r));
        assert_int_equal(cuMemsetD8_v2(p[k], 0, size), 0);
        if (i % 50 == 0)
            scan(whole);
    }
    scan(whole);
    assert_int_equal(atomic_load(&findings), 0);
    for (unsigned k = 0; k < MANY; k++) {
        if (!p[k])
            continue;
        change(p[k] - 32);
        scan(whole);
        assert_int_equal(atomic_load(&findings), ++expected);
        free_now(p[k]);
    }
    scan(whole);
    assert_int_equal(atomic_load(&findings), expected);
    whole = false;
    atomic_store(&findings, 0);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

static void answers(void **state)
{
    CUdeviceptr p;
    CUresult r;
    uint64_t base, size;
    assert_true(canary_alloc(&p, 700, &r));
    assert_int_equal(canary_ask(p + 699, &base, &size), MODE_BUFFER);
    assert_true(base == p && size == 700);
    assert_int_equal(canary_ask(p + 700, &base, &size), MODE_AROUND);
    assert_int_equal(canary_ask(p - 1, &base, &size), MODE_AROUND);
    assert_int_equal(canary_ask(0x1000, &base, &size), MODE_NOT_OURS);
    free_now(p);
    assert_int_equal(canary_ask(p, &base, &size), MODE_AROUND);
    // An address in our memory that is no buffer does not reach the driver, which gave us a region that
    // starts nearby.
    for (int at = -8; at <= 8; at++) {
        r = CUDA_SUCCESS;
        assert_true(!canary_free(p + (uint64_t)(int64_t)at * 256, DRIVER_cuMemFree_v2, &r) ||
                    r == CUDA_ERROR_INVALID_VALUE);
    }
    assert_true(canary_free(p, DRIVER_cuMemFree_v2, &r) && r == CUDA_ERROR_INVALID_VALUE);
    assert_true(canary_free(p - 1024, DRIVER_cuMemFree_v2, &r) && r == CUDA_ERROR_INVALID_VALUE);
    assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) &&
                r == CUDA_ERROR_INVALID_VALUE);
    assert_false(canary_free(0x1000, DRIVER_cuMemFree_v2, &r));
}

static bool make(unsigned kind, CUdeviceptr *p, CUresult *r)
{
    size_t pitch;
    void *host = NULL;
    unsigned flags = 0;
    bool made = false;
    switch (kind) {
    case 0: return canary_alloc(p, LARGE, r);
    case 1: return canary_alloc(p, SMALL, r);
    case 2: return canary_alloc_pitch(p, &pitch, 3000, 1000, 4, r);
    case 3: return canary_alloc_managed(p, SMALL, CU_MEM_ATTACH_GLOBAL, r);
    case 4: made = canary_alloc_host(&host, SMALL, NULL, r); break;
    case 5: made = canary_alloc_host(&host, LARGE, &flags, r); break;
    default: return canary_alloc_async(p, SMALL, NULL, NULL, false, r);
    }
    *p = (uintptr_t)host;
    return made;
}

static bool unmake(unsigned kind, CUdeviceptr p, CUresult *r)
{
    if (kind == 4 || kind == 5)
        return canary_free_host((void *)(uintptr_t)p, DRIVER_cuMemFreeHost, r);
    return kind == 6 ? canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, r)
                     : canary_free(p, DRIVER_cuMemFree_v2, r);
}

// Every driver call fails once: the buffer exists or is left to the driver, and nothing leaks.
static void any_call_may_fail(void **state)
{
    bool done = false;
    canary_reclaim();
    size_t before = available();
    for (int n = 0; !done && n < 200; n++) {
        CUdeviceptr p[7] = {0};
        CUresult r = CUDA_SUCCESS;
        atomic_store(&calls_left, n);
        bool have[7];
        for (unsigned i = 0; i < 7; i++)
            have[i] = make(i, &p[i], &r) && !r;
        for (unsigned i = 0; i < 7; i++) {
            if (!have[i])
                continue;
            assert_true(unmake(i, p[i], &r));
            // After a refused free the buffer is as it was.
            if (r)
                assert_true(unmake(i, p[i], &r) && !r);
        }
        done = atomic_load(&calls_left) > 0;
        atomic_store(&calls_left, -1);
        assert_int_equal(cuCtxSynchronize(), 0);
        scan(whole);
        canary_reclaim();
        assert_int_equal(canary_store_slabs(), 0);
        assert_int_equal(canary_store_extra(), 0);
    }
    assert_true(done);
    assert_true(available() + (4 << 20) >= before);  // the memory that frees wait with stays
    assert_int_equal(atomic_load(&findings), 0);
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUdeviceptr p[16] = {0};
    CUresult r;
    cuCtxSetCurrent(context);
    for (unsigned i = 0; i < 400; i++) {
        unsigned k = (unsigned)rand_r(&seed) % 16;
        if (p[k] && (!unmake(k % 7, p[k], &r) || r))
            return "lost";
        if (!make(k % 7, &p[k], &r) || r)
            p[k] = 0;
    }
    for (unsigned k = 0; k < 16; k++)
        if (p[k] && (!unmake(k % 7, p[k], &r) || r))
            return "lost";
    return NULL;
}

static void threads_at_once(void **state)
{
    pthread_t t[4];
    void *wrong;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, (void *)i), 0);
    for (unsigned i = 0; i < 200; i++)
        scan(whole);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(t[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(cuCtxSynchronize(), 0);
    scan(whole);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(canary_store_extra(), 0);
    assert_int_equal(atomic_load(&findings), 0);
}

static atomic_bool all_opened;

static void *open_slabs(void *ctx)
{
    void *wrong = NULL;
    cuCtxSetCurrent(context);
    for (unsigned i = 0; i < 2000 && !wrong; i++) {
        struct canary_place place;
        enum canary_took took = canary_store_take(ctx, SMALL, false, &place);
        if (took == CANARY_FILL && canary_store_open(place.slab, true))
            canary_store_trim(ctx, 0);
        else
            wrong = "no new slab";
    }
    atomic_store(&all_opened, true);
    return wrong;
}

// While a thread opens and closes slabs, whoever has the lock finds those in the index whose flag says so.
static void index_agrees_with_flags(void **state)
{
    pthread_t t;
    void *wrong;
    canary_reclaim();
    atomic_store(&all_opened, false);
    assert_int_equal(pthread_create(&t, NULL, open_slabs, context_current()), 0);
    bool valid = true;
    while (!atomic_load(&all_opened))
        valid = canary_store_valid(context_current()) && valid;
    pthread_join(t, &wrong);
    assert_null(wrong);
    assert_true(valid);
    assert_int_equal(canary_store_slabs(), 0);
}

// Many small buffers lie in few slabs.
static void thousands_in_few_slabs(void **state)
{
    enum { COUNT = 5000 };
    static CUdeviceptr p[COUNT];
    CUresult r;
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(canary_alloc(&p[i], 100 + i % 300, &r));
    assert_true(canary_store_slabs() < 20);
    change(p[3333] + 100 + 3333 % 300);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    change(p[4999] - 32);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 2);
    for (unsigned i = 0; i < COUNT; i++)
        free_now(p[i]);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    atomic_store(&findings, 0);
}

// In a slab of many similar buffers a scan reads the first bytes behind each; whole scans and frees read all.
static void alike_are_read_narrowly(void **state)
{
    enum { COUNT = 3000 };
    static CUdeviceptr p[COUNT];
    CUresult r;
    for (unsigned i = 0; i < COUNT; i++)
        assert_true(canary_alloc(&p[i], 1100 + i % 7, &r));
    for (unsigned k = 0; k < 3; k++) {
        unsigned n = k * 1499;
        change(p[n] + 1100 + n % 7);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 1 + 2 * k);
        change(p[n] - 1);
        for (unsigned i = 0; i < 4; i++)
            scan(whole);
        assert_int_equal(atomic_load(&findings), 2 + 2 * k);
    }
    change(p[2500] + 1100 + 2500 % 7 + 200);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 6);
    whole = true;
    scan(whole);
    whole = false;
    assert_int_equal(atomic_load(&findings), 7);
    change(p[2501] + 1100 + 2501 % 7 + 200);
    for (unsigned i = 0; i < COUNT; i++)
        free_now(p[i]);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 8);
    atomic_store(&findings, 0);
    canary_reclaim();
}

// Returns the number of driver calls, of those wrapped here, in `rounds` rounds of `part`.
static int calls_of(void (*part)(unsigned), unsigned rounds)
{
    enum { MANY = 1 << 30 };
    atomic_store(&calls_left, MANY);
    for (unsigned i = 0; i < rounds; i++)
        part(i);
    return MANY - atomic_exchange(&calls_left, -1);
}

static void alloc_small(unsigned round)
{
    static CUdeviceptr p[4000];
    CUresult r;
    assert_true(canary_alloc(&p[round], 300, &r));
    if (round == 3999)
        for (unsigned i = 0; i < 4000; i++)
            free_now(p[i]);
}

static void alloc_and_free(unsigned round)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc(&p, 900, &r));
    free_now(p);
}

static void alloc_and_free_large(unsigned round)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc(&p, 300000, &r));
    free_now(p);
    scan(whole);
}

static void alloc_and_free_in_order(unsigned round)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc_async(&p, 4000 + 400 * (round % 5), NULL, NULL, false, &r));
    assert_true(canary_free_async(p, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    scan(whole);
}

// A free waits by means of an allocation; a scan is a copy or two with an event.
static void few_calls(void **state)
{
    canary_reclaim();
    alloc_and_free(0);
    int small = calls_of(alloc_small, 4000), again = calls_of(alloc_and_free, 4000);
    assert_true(small < 4000 + 200);
    assert_true(again < 4000 + 1000);
    canary_reclaim();
    alloc_and_free_large(0);
    int large = calls_of(alloc_and_free_large, 100);
    assert_true(large <= 100 * 4);
    canary_reclaim();
    for (unsigned i = 0; i < 5; i++)
        alloc_and_free_in_order(i);
    // A readback on the side stream: an event, a wait, a copy, an event, which is created at first.
    int ordered = calls_of(alloc_and_free_in_order, 100);
    assert_true(ordered <= 100 * 5);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(atomic_load(&findings), 0);
}

static void scan_once(unsigned round)
{
    scan(whole);
}

// Lone buffers are read by one call, or one by one if the driver refuses that.
static void large_ones_are_read_together(void **state)
{
    enum { BUFFERS = 300 };
    CUdeviceptr p[BUFFERS];
    CUresult r;
    canary_reclaim();
    for (unsigned i = 0; i < BUFFERS; i++)
        assert_true(canary_alloc(&p[i], 70000 + i, &r) && !r);
    assert_in_range(calls_of(scan_once, 1), 1, 4);
    unsigned expected = 0;
    for (unsigned i = 0; i < BUFFERS; i += 50) {
        change(i % 20 ? p[i] + 70000 + i : p[i] - 1);
        scan(whole);
        assert_int_equal(atomic_load(&findings), ++expected);
    }
    __typeof__(guard.real.cuMemcpyBatchAsync_v2) batch = guard.real.cuMemcpyBatchAsync_v2;
    guard.real.cuMemcpyBatchAsync_v2 = NULL;
    assert_in_range(calls_of(scan_once, 1), BUFFERS, BUFFERS + 4);
    guard.real.cuMemcpyBatchAsync_v2 = batch;
    atomic_store(&calls_left, 0);  // the batch fails
    change(p[1] - 1);
    scan(whole);
    atomic_store(&calls_left, -1);
    assert_int_equal(atomic_load(&findings), ++expected);
    for (unsigned i = 0; i < BUFFERS; i++)
        free_now(p[i]);
    canary_reclaim();
    assert_int_equal(atomic_load(&findings), expected);
    atomic_store(&findings, 0);
}

// Slabs with few buffers are read together too.
static void slabs_of_a_few_are_read_together(void **state)
{
    static const size_t sizes[] = {100, 101, 600, 1500, 1501, 1502, 6000, 30000, 70000};
    enum { BUFFERS = sizeof sizes / sizeof *sizes };
    CUdeviceptr p[BUFFERS];
    CUresult r;
    canary_reclaim();
    for (unsigned i = 0; i < BUFFERS; i++)
        assert_true(canary_alloc(&p[i], sizes[i], &r) && !r);
    assert_in_range(calls_of(scan_once, 1), 1, 3);
    for (unsigned i = 0; i < BUFFERS; i++) {
        change(p[i] + sizes[i]);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 2 * i + 1);
        change(p[i] - 1);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 2 * i + 2);
    }
    for (unsigned i = 0; i < BUFFERS; i++)
        free_now(p[i]);
    canary_reclaim();
    assert_int_equal(atomic_load(&findings), 2 * BUFFERS);
    atomic_store(&findings, 0);
}

// A scan may have read a buffer whose damage was reported and whose place has another buffer by now: the old
// one is not reported again, nor mistaken for the new one.
static void reports_the_buffer_that_was_read(void **state)
{
    CUdeviceptr p;
    CUresult r;
    struct canary_buffer old, new;
    canary_reclaim();
    assert_true(canary_alloc(&p, 70000, &r));
    struct canary_slab *s = canary_store_find(p);
    assert_true(canary_slot_read(s, 0, UINT64_MAX, &old));
    assert_true(canary_slot_mark_reported(s, 0, old.reported, CANARY_HEAD_SIDE));
    assert_false(canary_slot_mark_reported(s, 0, old.reported, CANARY_HEAD_SIDE));
    assert_int_equal(canary_slot_reported(s, 0), CANARY_HEAD_SIDE);
    canary_slot_publish(&(struct canary_place){.slab = s, .base = p, .size = 70000}, 0);
    assert_false(canary_slot_mark_reported(s, 0, old.reported, CANARY_HEAD_SIDE));
    assert_false(canary_slot_mark_reported(s, 0, old.reported, CANARY_TAIL_SIDE));
    assert_int_equal(canary_slot_reported(s, 0), 0);
    assert_true(canary_slot_read(s, 0, UINT64_MAX, &new));
    assert_true(canary_slot_mark_reported(s, 0, new.reported, CANARY_TAIL_SIDE));
    assert_true(canary_slot_mark_reported(s, 0, new.reported, CANARY_HEAD_SIDE));
    canary_slot_publish(&(struct canary_place){.slab = s, .base = p, .size = 70000}, 0);
    free_now(p);
    canary_reclaim();
    assert_int_equal(atomic_load(&findings), 0);
}

// A slot that is being changed is not read, and its slab does not count as checked by that scan.
static void a_slot_that_changes_is_not_checked(void **state)
{
    static const size_t sizes[] = {300, LARGE};
    CUdeviceptr p;
    CUresult r;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(canary_alloc(&p, sizes[i], &r));
        struct canary_slab *s = canary_store_find(p);
        struct canary_slot *t = &s->slot[(p - s->base) / s->stride];
        scan(true);
        uint64_t checked = s->checked;
        change(p - 1);
        t->seq++;
        scan(true);
        assert_int_equal(s->checked, checked);
        t->seq--;
        scan(true);
        assert_true(s->checked > checked);
        assert_int_equal(atomic_load(&findings), 1);
        free_now(p);
        atomic_store(&findings, 0);
    }
    canary_reclaim();
}

static CUdeviceptr freed_meanwhile;

static CUresult free_while_scanned(CUevent e)
{
    CUdeviceptr p = freed_meanwhile;
    freed_meanwhile = 0;
    if (p)
        free_now(p);
    return cuEventSynchronize(e);
}

// A scan that could not verify a slot, because it was being changed or freed, does not call the context
// clean: the next report still names kernels that had ended before.
static void what_was_missed_is_not_clean(void **state)
{
    static const size_t sizes[] = {300, LARGE};
    CUdeviceptr p;
    CUresult r;
    for (unsigned i = 0; i < 4; i++) {
        assert_true(canary_alloc(&p, sizes[i / 2], &r));
        struct canary_slab *s = canary_store_find(p);
        struct canary_slot *t = &s->slot[(p - s->base) / s->stride];
        scan(true);
        launch_ring.count = canary_scan_ended = 5;
        change(p - 1);
        t->seq += !(i % 2);
        freed_meanwhile = i % 2 ? p : 0;
        guard.real.cuEventSynchronize = free_while_scanned;
        scan(true);
        REAL(cuEventSynchronize);
        t->seq -= !(i % 2);
        scan(true);
        assert_int_equal(atomic_load(&findings), 1);
        assert_int_equal(blamed_since, 0);
        launch_ring.count = canary_scan_ended = 0;
        if (!(i % 2))
            free_now(p);
        scan(true);
        atomic_store(&findings, 0);
    }
    canary_reclaim();
}

// A freed place is not reused before it is verified, and not if its canary is damaged.
static void freed_places_are_looked_at(void **state)
{
    CUdeviceptr p, q[40];
    CUresult r;
    canary_reclaim();
    assert_true(canary_alloc(&p, 300, &r));
    change(p + 300);
    free_now(p);
    for (unsigned i = 0; i < 40; i++) {
        assert_true(canary_alloc(&q[i], 300, &r));
        assert_true(q[i] != p || atomic_load(&findings));
    }
    scan(whole);
    assert_int_equal(atomic_load(&findings), 1);
    for (unsigned i = 0; i < 40; i++)
        free_now(q[i]);
    scan(whole);
    // In the same places: larger and smaller ones, and the first size again.
    for (unsigned size = 100; size < 460; size += 90)
        for (unsigned i = 0; i < 40; i++) {
            assert_true(canary_alloc(&q[i], size, &r));
            scan(whole);
            change(q[i] + size);
            scan(whole);
            assert_int_equal(atomic_load(&findings), 2);
            change(q[i] + size);
            free_now(q[i]);
            scan(whole);
            atomic_store(&findings, 1);
        }
    // A write next to a freed buffer is found too.
    change(p - 1);
    scan(whole);
    assert_int_equal(atomic_load(&findings), 2);
    atomic_store(&findings, 0);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

// What a freed buffer held must not change until its place is reused.
static void freed_buffers_are_left_alone(void **state)
{
    static const size_t sizes[] = {5, 300, 2000, 300000};
    CUdeviceptr p, q, kept;
    CUresult r;
    canary_reclaim();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_true(canary_alloc(&kept, sizes[i], &r) && canary_alloc(&p, sizes[i], &r));
        change(p);
        free_now(p);
        scan(whole);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 0);
        change(p + 3);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 1);
        change(p + 2);
        scan(whole);
        assert_int_equal(atomic_load(&findings), 1);
        // Reused, and freed again.
        for (unsigned k = 0; k < 20; k++) {
            assert_true(canary_alloc(&q, sizes[i] - k % 3, &r));
            change(q);
            scan(whole);
            free_now(q);
            scan(whole);
        }
        assert_int_equal(atomic_load(&findings), 1);
        atomic_store(&findings, 0);
        free_now(kept);
        scan(whole);
    }
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

// Cached memory counts as free, and a few bytes do not keep a large region from being returned.
static void cached_memory_counts_as_free(void **state)
{
    enum { HUGE = 96 << 20, SLACK = 4 << 20 };
    CUdeviceptr p = 0, q = 0;
    CUresult r;
    canary_reclaim();
    size_t before = available();
    assert_int_equal(canary_reclaimable(), 0);
    assert_true(canary_alloc(&p, HUGE, &r) && canary_alloc(&q, 100, &r));
    size_t taken = available();
    assert_true(before - taken >= HUGE);
    assert_in_range(canary_reclaimable(), 0, SLACK);
    free_now(p);
    assert_in_range(available() + canary_reclaimable(), before - SLACK, before);
    canary_reclaim();
    assert_in_range(available(), before - SLACK, before);
    free_now(q);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

// Memory may be reclaimed while another thread captures, without disturbing the capture.
static void goes_back_during_a_capture(void **state)
{
    CUdeviceptr p;
    CUstream stream;
    CUgraph graph;
    CUresult r;
    canary_reclaim();
    size_t before = available();
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    assert_true(canary_alloc(&p, LARGE, &r) && !r);
    free_now(p);
    assert_int_equal(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
    assert_true(canary_reclaim_at_once());
    assert_int_equal(cuStreamEndCapture(stream, &graph), 0);
    assert_int_equal(available(), before);
    assert_int_equal(cuGraphDestroy(graph), 0);
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
}

// At most a 16th of the device's memory is cached.
static void the_cache_is_bounded(void **state)
{
    enum { BUFFERS = 10 };
    struct canary_extent waiting[CANARY_CACHE_MOST];
    CUdeviceptr p[BUFFERS];
    CUresult r;
    size_t left, all, held = 0;
    assert_int_equal(cuMemGetInfo_v2(&left, &all), 0);
    const size_t part = all / 16 / 4;
    if (left < 2 * BUFFERS * part)
        skip();
    for (unsigned i = 0; i < BUFFERS; i++)
        assert_true(canary_alloc(&p[i], part, &r) && !r);
    for (unsigned i = 0; i < BUFFERS; i++)
        free_now(p[i]);
    unsigned n = canary_cache_plain(context_current(), waiting);
    for (unsigned i = 0; i < n; i++)
        held += waiting[i].bytes;
    assert_in_range(held, 1, all / 16);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

static void goes_with_its_context(void **state)
{
    CUcontext other;
    CUdeviceptr p[4];
    CUresult r;
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    assert_true(canary_alloc(&p[0], LARGE, &r) && canary_alloc(&p[1], SMALL, &r) &&
                canary_alloc_managed(&p[2], SMALL, CU_MEM_ATTACH_GLOBAL, &r));
    change(p[1] + SMALL);
    canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(atomic_load(&findings), 1);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    forget_context(other);
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(canary_ask(p[0], &(uint64_t){0}, &(uint64_t){0}), MODE_NOT_OURS);
    assert_int_equal(cuCtxSetCurrent(context), 0);
    atomic_store(&findings, 0);
}

// The driver has ended a context and gives its memory to another one before canary mode knows.
static void gives_way_to_the_next_context(void **state)
{
    CUcontext other;
    CUdeviceptr old[2], p[3];
    CUresult r;
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    assert_true(canary_alloc(&old[0], LARGE, &r) && canary_alloc(&old[1], SMALL, &r));
    context_close(other);
    canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    assert_int_equal(cuCtxSetCurrent(context), 0);
    for (unsigned round = 0; round < 2; round++) {
        assert_true(canary_alloc(&p[0], LARGE, &r) && canary_alloc(&p[1], SMALL, &r) &&
                    canary_alloc_managed(&p[2], SMALL, CU_MEM_ATTACH_GLOBAL, &r));
        assert_true(round || (p[0] == old[0] && p[1] == old[1]));
        for (unsigned i = 0; round == 0 && i < 3; i++)
            free_now(p[i]);
    }
    forget_context(other);
    for (unsigned i = 0; i < 3; i++) {
        uint64_t base, size;
        assert_int_equal(canary_ask(p[i], &base, &size), MODE_BUFFER);
        change(p[i] - 1);
    }
    scan(true);
    assert_int_equal(atomic_exchange(&findings, 0), 3);
    for (unsigned i = 0; i < 3; i++)
        free_now(p[i]);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

static void stops(void **state)
{
    CUdeviceptr p;
    CUresult r;
    canary_stop("for this test");
    assert_false(canary_alloc(&p, LARGE, &r));
    assert_int_equal(atomic_load(&findings), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_side_of_each_size),
        cmocka_unit_test(the_whole_slack_counts),
        cmocka_unit_test(the_rest_of_a_place_counts),
        cmocka_unit_test(fresh_buffers_are_zero),
        cmocka_unit_test(takes_little_memory),
        cmocka_unit_test(slabs_lie_side_by_side),
        cmocka_unit_test(answers),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(index_agrees_with_flags),
        cmocka_unit_test(thousands_in_few_slabs),
        cmocka_unit_test(alike_are_read_narrowly),
        cmocka_unit_test(few_calls),
        cmocka_unit_test(large_ones_are_read_together),
        cmocka_unit_test(slabs_of_a_few_are_read_together),
        cmocka_unit_test(reports_the_buffer_that_was_read),
        cmocka_unit_test(a_slot_that_changes_is_not_checked),
        cmocka_unit_test(what_was_missed_is_not_clean),
        cmocka_unit_test(freed_places_are_looked_at),
        cmocka_unit_test(freed_buffers_are_left_alone),
        cmocka_unit_test(cached_memory_counts_as_free),
        cmocka_unit_test(goes_back_during_a_capture),
        cmocka_unit_test(the_cache_is_bounded),
        cmocka_unit_test(goes_with_its_context),
        cmocka_unit_test(gives_way_to_the_next_context),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
