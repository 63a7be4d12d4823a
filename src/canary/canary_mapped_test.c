// SPDX-License-Identifier: MIT
// Large buffers in mapped memory, on the CPU device, which is linked in and has a granularity of 2 MiB as
// GPUs do.
#include "canary/canary_mapped.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "canary/canary.h"
#include "canary/canary_free.h"
#include "canary/canary_testing.h"

#define MIB ((size_t)1 << 20)
#define GRAIN (2 * MIB)
enum { LOCK_STEP = 60000000 };

WRAP(cuMemCreate,
     (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *p, unsigned long long f),
     (h, n, p, f))
WRAP(cuMemMap, (CUdeviceptr p, size_t n, size_t o, CUmemGenericAllocationHandle h, unsigned long long f),
     (p, n, o, h, f))
WRAP(cuMemSetAccess, (CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t c), (p, n, d, c))
WRAP(cuMemAddressReserve, (CUdeviceptr * p, size_t n, size_t a, CUdeviceptr w, unsigned long long f),
     (p, n, a, w, f))
WRAP(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *c, CUstream q), (c, q))

// The monitor sleeps for a minute, so that all scans are the test's own.
static int setup(void **state)
{
    use_cpu_device();
    TRIED(cuMemcpy2DAsync_v2), REAL(cuMemcpyBatchAsync_v2), REAL(cuMemHostAlloc), REAL(cuMemFreeHost);
    REAL(cuEventSynchronize), REAL(cuStreamGetId), REAL(cuThreadExchangeStreamCaptureMode);
    TRIED(cuMemCreate), TRIED(cuMemMap), TRIED(cuMemSetAccess), TRIED(cuMemAddressReserve);
    REAL(cuMemRelease), REAL(cuMemUnmap), REAL(cuMemAddressFree), REAL(cuMemGetAllocationGranularity);
    REAL(cuMemExportToShareableHandle), REAL(cuDeviceGetCount);
    guard.options.mode = 1 << OPTION_MODE_CANARY;
    guard.options.canary_interval = LOCK_STEP;
    guard.options.canary_memory = OPTION_CANARY_MEMORY_MAPPED;
    canary_start();
    return !canary_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

static CUdeviceptr make(size_t size)
{
    CUdeviceptr p = 0;
    CUresult r = CUDA_ERROR_UNKNOWN;
    assert_true(canary_alloc(&p, size, &r) && !r);
    return p;
}

// The first free allocates what all frees wait with; that memory stays.
static void the_first_one(void **state)
{
    free_now(make(MIB));
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

static bool is_mapped(CUdeviceptr p)
{
    struct share_memory m;
    bool is = canary_mapped_share(p, 1, &m);
    if (is)
        share_close_fds(&m);
    return is;
}

// What the program has left according to cuMemGetInfo.
static size_t left(void)
{
    return available() + canary_reclaimable();
}

// Buffers of any size lose at most a thousandth of the device's memory, besides the granule that the first
// one starts.
static void many_lose_little(void **state)
{
    static const size_t sizes[] = {MIB,     MIB + 1,  2 * MIB,  2 * MIB - 512,
                                   3 * MIB, 16 * MIB, 17 * MIB, 100 * MIB};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned count = (unsigned)(1024 * MIB / sizes[i]);
        canary_reclaim();
        size_t before = left();
        if (before < 1100 * MIB)
            skip();
        CUdeviceptr *p = calloc(count, sizeof *p);
        for (unsigned k = 0; k < count; k++)
            p[k] = make(sizes[i]);
        assert_true(is_mapped(p[count - 1]));
        size_t taken = before - left(), asked = count * sizes[i];
        assert_in_range(taken, asked, asked + asked / 1000 + GRAIN + (GRAIN / 2));
        // What was mapped ahead is returned, and nothing else.
        canary_reclaim();
        assert_in_range(before - available(), taken - GRAIN, taken);
        for (unsigned k = 0; k < count; k++)
            free_now(p[k]);
        free(p);
        canary_reclaim();
        assert_int_equal(available(), before);
        assert_int_equal(canary_store_slabs(), 0);
    }
    assert_int_equal(atomic_load(&findings), 0);
}

// Memory that has been unused for long enough is returned while kernels run, without waiting for them.
static void goes_back_meanwhile(void **state)
{
    enum { COUNT = 16 };
    struct context *ctx = context_current();
    const size_t size = 32 * MIB;
    CUdeviceptr p[COUNT];
    canary_reclaim();
    size_t before = available();
    if (before < 2 * COUNT * size)
        skip();
    for (unsigned i = 0; i < COUNT; i++)
        p[i] = make(size);
    for (unsigned i = 0; i < COUNT; i++)
        free_now(p[i]);
    canary_monitor_lock();
    canary_drop_cached(ctx, 0);
    canary_free_trim(ctx, false);
    canary_monitor_unlock();
    assert_in_range(available(), before - context_device_part(ctx->device, 512, 64 * MIB, 256 * MIB), before);
    canary_reclaim();
    assert_int_equal(available(), before);
}

// Both sides of a buffer are still watched after the buffers and memory around it are gone.
static void neighbours_go(void **state)
{
    static const size_t sizes[] = {MIB, 2 * MIB, 16 * MIB};
    enum { COUNT = 12 };
    unsigned expected = 0;
    for (unsigned i = 0; i < 3; i++) {
        CUdeviceptr p[COUNT];
        canary_reclaim();
        size_t before = available();
        for (unsigned k = 0; k < COUNT; k++)
            p[k] = make(sizes[i]);
        for (unsigned k = 0; k < COUNT; k++)
            if (k % 4)
                free_now(p[k]);
        canary_reclaim();
        // Three of four are gone, except for granules that others share.
        assert_in_range(before - available(), 3 * sizes[i], 3 * sizes[i] + 8 * GRAIN);
        scan(true);
        assert_int_equal(atomic_load(&findings), expected);
        for (unsigned k = 0; k < COUNT; k += 4) {
            change(p[k] - 1);
            scan(true);
            assert_int_equal(atomic_load(&findings), ++expected);
            change(p[k] + sizes[i]);
            scan(true);
            assert_int_equal(atomic_load(&findings), ++expected);
            free_now(p[k]);
        }
        canary_reclaim();
        assert_int_equal(available(), before);
    }
    atomic_store(&findings, 0);
}

// Random buffers of many sizes keep their bytes and canaries, while unused memory is returned now and then.
static void comes_and_goes(void **state)
{
    enum { MANY = 24 };
    struct {
        CUdeviceptr at;
        size_t size;
        unsigned char mark;
    } b[MANY] = {{0}};
    unsigned seed = 11;
    canary_reclaim();
    size_t before = available();
    for (unsigned i = 0; i < 600; i++) {
        unsigned k = (unsigned)rand_r(&seed) % MANY;
        if (b[k].at) {
            unsigned char ends[2];
            assert_int_equal(cuMemcpyDtoH_v2(&ends[0], b[k].at, 1), 0);
            assert_int_equal(cuMemcpyDtoH_v2(&ends[1], b[k].at + b[k].size - 1, 1), 0);
            assert_true(ends[0] == b[k].mark && ends[1] == b[k].mark);
            free_now(b[k].at);
        }
        b[k].size = MIB + (size_t)rand_r(&seed) % (k < MANY / 2 ? 2 * MIB : 12 * MIB);
        b[k].mark = (unsigned char)rand_r(&seed);
        b[k].at = make(b[k].size);
        assert_int_equal(b[k].at % 512, 0);
        assert_int_equal(cuMemsetD8_v2(b[k].at, b[k].mark, MIB), 0);
        assert_int_equal(cuMemsetD8_v2(b[k].at + b[k].size - 4096, b[k].mark, 4096), 0);
        if (i % 20 == 0)
            scan(true);
        if (i % 50 == 49)
            canary_reclaim();
    }
    scan(true);
    assert_int_equal(atomic_load(&findings), 0);
    for (unsigned k = 0; k < MANY; k++)
        if (b[k].at)
            free_now(b[k].at);
    canary_reclaim();
    assert_int_equal(atomic_load(&findings), 0);
    assert_int_equal(available(), before);
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUdeviceptr p[8] = {0};
    CUresult r;
    cuCtxSetCurrent(context);
    for (unsigned i = 0; i < 150; i++) {
        unsigned k = (unsigned)rand_r(&seed) % 8;
        if (p[k] && (!canary_free(p[k], DRIVER_cuMemFree_v2, &r) || r))
            return "lost";
        if (!canary_alloc(&p[k], MIB + (size_t)rand_r(&seed) % (4 * MIB), &r) || r)
            p[k] = 0;
        if (i % 40 == 0)
            canary_reclaim();
        canary_reclaimable();
    }
    for (unsigned k = 0; k < 8; k++)
        if (p[k] && (!canary_free(p[k], DRIVER_cuMemFree_v2, &r) || r))
            return "lost";
    return NULL;
}

static void threads_at_once(void **state)
{
    pthread_t t[4];
    void *result;
    canary_reclaim();
    size_t before = available();
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(t[i], &result), 0);
        assert_null(result);
    }
    scan(true);
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(available(), before);
    assert_int_equal(atomic_load(&findings), 0);
}

static void destroy_context(CUcontext c)
{
    canary_context_ends(c, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(cuCtxDestroy_v2(c), 0);
    forget_context(c);
    assert_int_equal(cuCtxSetCurrent(context), 0);
}

// Every driver call fails once: the buffer then lies elsewhere, or is left to the driver, and nothing leaks.
static void any_call_may_fail(void **state)
{
    bool done = false;
    for (int n = 0; !done && n < 200; n++) {
        CUcontext other;
        CUdeviceptr p[3] = {0};
        CUresult r = CUDA_SUCCESS;
        assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
        size_t before = available();
        atomic_store(&calls_left, n);
        for (unsigned i = 0; i < 3; i++)
            if (!canary_alloc(&p[i], 3 * MIB + i, &r) || r)
                p[i] = 0;
        done = atomic_load(&calls_left) > 0;
        atomic_store(&calls_left, -1);
        for (unsigned i = 0; i < 3; i++)
            if (p[i])
                free_now(p[i]);
        canary_reclaim();
        assert_int_equal(canary_store_slabs(), 0);
        assert_true(available() + 4 * MIB >= before);  // what frees wait with stays
        destroy_context(other);
    }
    assert_true(done);
    assert_int_equal(atomic_load(&findings), 0);
}

static _Atomic unsigned refused;  // copies into mapped memory

static CUresult refuse(const CUDA_MEMCPY2D *c, CUstream q)
{
    return is_mapped(c->dstDevice + MIB / 2) && ++refused ? CUDA_ERROR_INVALID_VALUE
                                                          : cuMemcpy2DAsync_v2(c, q);
}

// If a copy into mapped memory fails, buffers lie in plain memory, with canaries; the remaining mapped memory
// is not tried again.
static void a_failed_copy_disables_it(void **state)
{
    CUcontext other;
    CUdeviceptr p[4];
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    for (unsigned i = 0; i < 3; i++)
        p[i] = make(3 * MIB);
    assert_true(is_mapped(p[2]) && canary_mapped_usable(context_current()));
    guard.real.cuMemcpy2DAsync_v2 = refuse;
    refused = 0;
    p[3] = make(3 * MIB + 512);
    assert_int_equal(refused, 1);
    assert_false(is_mapped(p[3]) || canary_mapped_usable(context_current()));
    free_now(make(3 * MIB + 1024));
    assert_int_equal(refused, 1);
    TRIED(cuMemcpy2DAsync_v2);
    for (unsigned i = 0; i < 4; i++)
        free_now(p[i]);
    destroy_context(other);
    assert_int_equal(atomic_load(&findings), 0);
}

static _Atomic uint64_t created;

static CUresult count_created(CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *p,
                              unsigned long long f)
{
    created += n;
    return cuMemCreate(h, n, p, f);
}

// No attempt is made to map more than the device has, since others would miss that memory for a moment.
static void takes_nothing_in_vain(void **state)
{
    CUdeviceptr p;
    CUresult r;
    guard.real.cuMemCreate = count_created;
    REAL(cuMemGetInfo_v2);
    created = 0;
    assert_false(canary_alloc(&p, available() + GRAIN, &r));
    assert_int_equal(created, 0);
    free_now(make(20 * MIB));
    assert_true(created >= 20 * MIB);
    canary_reclaim();
    TRIED(cuMemCreate);
}

static void goes_with_its_context(void **state)
{
    CUcontext other;
    canary_reclaim();
    size_t before = available();
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    CUdeviceptr p = make(40 * MIB);
    struct share_memory m;
    CUipcMemHandle handle;
    assert_true(canary_mapped_share(p, 40 * MIB, &m));
    assert_int_equal(share_offer(p, &m, &handle), 0);
    assert_true(share_offered(p, &handle));
    destroy_context(other);
    assert_false(is_mapped(p));
    assert_false(share_offered(p, &handle));  // the next buffer there is another one
    assert_int_equal(canary_ask(p, &(uint64_t){0}, &(uint64_t){0}), MODE_NOT_OURS);
    assert_int_equal(available(), before);
}

// All pieces of a buffer are exported, with its offset in the first.
static void exports_its_pieces(void **state)
{
    struct share_memory m;
    CUdeviceptr p[3];
    for (unsigned i = 0; i < 3; i++)
        p[i] = make(20 * MIB);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(canary_mapped_share(p[i], 20 * MIB, &m));
        assert_true(m.more >= 1);
        uint64_t first = m.bytes;
        for (unsigned k = 0; k < m.more; k++)
            first -= m.parts[k];
        assert_true(m.offset < first && m.offset + m.size <= m.bytes);
        assert_int_equal((p[i] - m.offset) % GRAIN, 0);
        share_close_fds(&m);
    }
    for (unsigned i = 0; i < 3; i++)
        free_now(p[i]);
    canary_reclaim();
}

// Returns a range in as many small pieces as possible, left behind by other ranges.
static uint64_t in_small_pieces(const struct context *ctx, size_t size)
{
    enum { MANY = 1000 };
    const uint64_t small = 3 * MIB / 2;
    uint64_t at[MANY];
    unsigned n = (unsigned)(size / small) + 4;
    for (unsigned i = 0; i < n; i++)
        while (!(at[i] = canary_mapped_take(ctx, small)))
            assert_int_equal(canary_mapped_grow(ctx, small), 0);
    for (unsigned i = 0; i < n; i++)
        canary_mapped_give(ctx, at[i], small);
    uint64_t base = canary_mapped_take(ctx, size);
    assert_true(base);
    return base;
}

// A buffer is shared if it has as many pieces as descriptors fit into a message, but not with one more.
static void has_few_pieces(void **state)
{
    const struct context *ctx = context_current();
    struct share_memory m;
    if (available() < 1100 * MIB)
        skip();
    uint64_t base = in_small_pieces(ctx, 400 * MIB);
    assert_true(canary_mapped_share(base, 400 * MIB, &m));
    assert_in_range(m.more, 150, SHARE_MORE);
    share_close_fds(&m);
    canary_mapped_give(ctx, base, 400 * MIB);
    base = in_small_pieces(ctx, 600 * MIB);
    assert_false(canary_mapped_share(base, 600 * MIB, &m));
    canary_mapped_give(ctx, base, 600 * MIB);
    canary_reclaim();
    assert_int_equal(canary_mapped_spare(ctx, NULL, 0), 0);
}

// The number of bytes to spare is exact at any time, and trimming returns just that many.
static void spare_bytes_are_exact(void **state)
{
    enum { MANY = 16 };
    const struct context *ctx = context_current();
    struct canary_extent at[MANY] = {{0}}, assumed[2];
    unsigned seed = 5;
    canary_reclaim();
    for (unsigned i = 0; i < 3000; i++) {
        unsigned k = (unsigned)rand_r(&seed) % MANY, b = (unsigned)rand_r(&seed) % MANY;
        if (at[k].base) {
            canary_mapped_give(ctx, at[k].base, at[k].bytes);
            at[k].base = 0;
            continue;
        }
        // Ranges end at ends of pieces, or just beside them.
        at[k].bytes = (1 + (unsigned)rand_r(&seed) % (k % 8 ? 6 : 40)) * (MIB / 2) +
                      (unsigned)rand_r(&seed) % 3 * 512 - 512;
        while (!(at[k].base = canary_mapped_take(ctx, at[k].bytes)))
            assert_int_equal(canary_mapped_grow(ctx, at[k].bytes), 0);
        if (i % 3)
            continue;
        // The prediction for two ranges must equal the result of freeing them.
        unsigned n = 0;
        assumed[n++] = at[k];
        if (b != k && at[b].base)
            assumed[n++] = at[b];
        uint64_t expected = canary_mapped_spare(ctx, assumed, n), before = canary_mapped_spare(ctx, NULL, 0);
        assert_int_equal(canary_mapped_spare(ctx, NULL, 0), before);
        assert_true(expected >= before);
        for (unsigned j = 0; j < n; j++)
            canary_mapped_give(ctx, assumed[j].base, assumed[j].bytes);
        assert_int_equal(canary_mapped_spare(ctx, NULL, 0), expected);
        at[k].base = 0;
        if (n > 1)
            at[b].base = 0;
        if (i % 4 == 0) {
            assert_int_equal(canary_mapped_trim(ctx, UINT64_MAX), expected);
            assert_int_equal(canary_mapped_spare(ctx, NULL, 0), 0);
        }
    }
    for (unsigned k = 0; k < MANY; k++)
        if (at[k].base)
            canary_mapped_give(ctx, at[k].base, at[k].bytes);
    canary_mapped_trim(ctx, UINT64_MAX);
    assert_int_equal(canary_mapped_spare(ctx, NULL, 0), 0);
}

// Small buffers, and all buffers under --canary-memory=plain, are not mapped.
static void small_ones_lie_elsewhere(void **state)
{
    CUdeviceptr p = make(300000);
    assert_false(is_mapped(p));
    free_now(p);
    guard.options.canary_memory = OPTION_CANARY_MEMORY_PLAIN;
    p = make(5 * MIB);
    assert_false(is_mapped(p));
    free_now(p);
    guard.options.canary_memory = OPTION_CANARY_MEMORY_MAPPED;
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

// With several devices, buffers are mapped only if the user asks for it.
static void with_one_device(void **state)
{
    struct context_device *device = (struct context_device *)context_device_of(0);
    guard.options.canary_memory = OPTION_CANARY_MEMORY_AUTO;
    for (int n = 0; n < 2; n++) {
        CUdeviceptr p = make(5 * MIB);
        assert_int_equal(is_mapped(p), device->alone);
        free_now(p);
        canary_reclaim();
        device->alone = !device->alone;
    }
    guard.options.canary_memory = OPTION_CANARY_MEMORY_MAPPED;
    assert_true(device->alone);  // as before
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one),         cmocka_unit_test(many_lose_little),
        cmocka_unit_test(goes_back_meanwhile),   cmocka_unit_test(neighbours_go),
        cmocka_unit_test(comes_and_goes),        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(any_call_may_fail),     cmocka_unit_test(a_failed_copy_disables_it),
        cmocka_unit_test(takes_nothing_in_vain), cmocka_unit_test(goes_with_its_context),
        cmocka_unit_test(exports_its_pieces),    cmocka_unit_test(has_few_pieces),
        cmocka_unit_test(spare_bytes_are_exact), cmocka_unit_test(small_ones_lie_elsewhere),
        cmocka_unit_test(with_one_device),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
