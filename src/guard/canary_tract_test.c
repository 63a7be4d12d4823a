// SPDX-License-Identifier: MIT
// Large buffers in memory that is mapped piece by piece, over the CPU device, which is linked in and gives 2 MiB at a time as
// GPUs do.
#include "guard/canary_tract.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/canary.h"
#include "guard/mode_testing.h"

#define MIB ((size_t)1 << 20)
#define GRAIN (2 * MIB)
enum { LOCK_STEP = 60000000 };

struct launch_ring launch_ring;

unsigned launch_ring_since(uint64_t count, const char **names, unsigned most)
{
    return 0;
}

WRAP(cuMemCreate,
     (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *p, unsigned long long f),
     (h, n, p, f))
WRAP(cuMemMap, (CUdeviceptr p, size_t n, size_t o, CUmemGenericAllocationHandle h, unsigned long long f),
     (p, n, o, h, f))
WRAP(cuMemSetAccess, (CUdeviceptr p, size_t n, const CUmemAccessDesc *d, size_t c), (p, n, d, c))
WRAP(cuMemAddressReserve, (CUdeviceptr * p, size_t n, size_t a, CUdeviceptr w, unsigned long long f),
     (p, n, a, w, f))
WRAP(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *c, CUstream q), (c, q))

// The monitor rests for a minute: scans are those of the test.
static int setup(void **state)
{
    use_cpu_device();
    TRIED(cuMemcpy2DAsync_v2), REAL(cuMemcpyBatchAsync_v2), REAL(cuMemHostAlloc), REAL(cuMemFreeHost);
    REAL(cuEventSynchronize), REAL(cuStreamGetId), REAL(cuThreadExchangeStreamCaptureMode);
    TRIED(cuMemCreate), TRIED(cuMemMap), TRIED(cuMemSetAccess), TRIED(cuMemAddressReserve);
    REAL(cuMemRelease), REAL(cuMemUnmap), REAL(cuMemAddressFree), REAL(cuMemGetAllocationGranularity);
    REAL(cuMemExportToShareableHandle);
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

static void unmake(CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_UNKNOWN;
    assert_true(canary_free(p, DRIVER_cuMemFree_v2, &r));
    assert_int_equal(r, 0);
}

static void scan(void)
{
    static const struct canary_occasion occasion = {DRIVER_CALLS, NULL, "in a test", true, true};
    canary_monitor_hold();
    CUresult r = canary_scan_home(home_current(), true, true, &occasion);
    canary_monitor_go_on();
    assert_int_equal(r, 0);
}

static void change(CUdeviceptr p)
{
    uint8_t byte;
    assert_int_equal(cuMemcpyDtoH_v2(&byte, p, 1), 0);
    byte ^= 0x20;
    assert_int_equal(cuMemcpyHtoD_v2(p, &byte, 1), 0);
}

// What a free waits by stays from the first one on.
static void the_first_one(void **state)
{
    unmake(make(MIB));
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

static bool is_mapped(CUdeviceptr p)
{
    struct share_memory m;
    bool is = canary_tract_share(p, 1, &m);
    if (is)
        share_close_fds(&m);
    return is;
}

// What the program has left, as cuMemGetInfo tells it.
static size_t left(void)
{
    return available() + canary_held();
}

// Of what the device gives, buffers of any size lose a thousandth, beside the grain that the first one begins.
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
        // What is ahead of them goes back, and nothing else.
        canary_reclaim();
        assert_in_range(before - available(), taken - GRAIN, taken);
        for (unsigned k = 0; k < count; k++)
            unmake(p[k]);
        free(p);
        canary_reclaim();
        assert_int_equal(available(), before);
        assert_int_equal(canary_store_slabs(), 0);
    }
    assert_int_equal(atomic_load(&findings), 0);
}

// Of buffers between others that are gone, with their memory, both sides are watched still.
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
                unmake(p[k]);
        canary_reclaim();
        // Three of four are gone, but for grains in which others lie.
        assert_in_range(before - available(), 3 * sizes[i], 3 * sizes[i] + 8 * GRAIN);
        scan();
        assert_int_equal(atomic_load(&findings), expected);
        for (unsigned k = 0; k < COUNT; k += 4) {
            change(p[k] - 1);
            scan();
            assert_int_equal(atomic_load(&findings), ++expected);
            change(p[k] + sizes[i]);
            scan();
            assert_int_equal(atomic_load(&findings), ++expected);
            unmake(p[k]);
        }
        canary_reclaim();
        assert_int_equal(available(), before);
    }
    atomic_store(&findings, 0);
}

// Buffers come and go, of many sizes, with their bytes and with canaries that nobody changes, and now and then all goes back
// that can.
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
            unmake(b[k].at);
        }
        b[k].size = MIB + (size_t)rand_r(&seed) % (k < MANY / 2 ? 2 * MIB : 12 * MIB);
        b[k].mark = (unsigned char)rand_r(&seed);
        b[k].at = make(b[k].size);
        assert_int_equal(b[k].at % 512, 0);
        assert_int_equal(cuMemsetD8_v2(b[k].at, b[k].mark, MIB), 0);
        assert_int_equal(cuMemsetD8_v2(b[k].at + b[k].size - 4096, b[k].mark, 4096), 0);
        if (i % 20 == 0)
            scan();
        if (i % 50 == 49)
            canary_reclaim();
    }
    scan();
    assert_int_equal(atomic_load(&findings), 0);
    for (unsigned k = 0; k < MANY; k++)
        if (b[k].at)
            unmake(b[k].at);
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
        canary_held();
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
    scan();
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
    assert_int_equal(available(), before);
    assert_int_equal(atomic_load(&findings), 0);
}

// Every call of the driver fails once: buffers lie elsewhere then, or are left to the driver, and nothing is lost. A context that
// once could not copy between pieces has plain memory from then on.
static void any_call_may_fail(void **state)
{
    bool done = false, plain = false;
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
        plain |= p[2] && !is_mapped(p[2]);
        for (unsigned i = 0; i < 3; i++)
            if (p[i])
                unmake(p[i]);
        canary_reclaim();
        assert_int_equal(canary_store_slabs(), 0);
        assert_true(available() + 4 * MIB >= before);  // what a free waits by stays
        canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
        assert_int_equal(cuCtxDestroy_v2(other), 0);
        canary_context_gone(other);
        assert_int_equal(cuCtxSetCurrent(context), 0);
    }
    assert_true(done && plain);
    assert_int_equal(atomic_load(&findings), 0);
}

static void goes_with_its_context(void **state)
{
    CUcontext other;
    canary_reclaim();
    size_t before = available();
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    CUdeviceptr p = make(40 * MIB);
    assert_true(is_mapped(p));
    canary_context_ends(other, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    canary_context_gone(other);
    assert_int_equal(cuCtxSetCurrent(context), 0);
    assert_false(is_mapped(p));
    assert_int_equal(canary_ask(p, &(uint64_t){0}, &(uint64_t){0}), CANARY_NOT_OURS);
    assert_int_equal(available(), before);
}

// All pieces that a buffer lies in, and where in the first it starts.
static void tells_its_pieces(void **state)
{
    struct share_memory m;
    CUdeviceptr p[3];
    for (unsigned i = 0; i < 3; i++)
        p[i] = make(20 * MIB);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(canary_tract_share(p[i], 20 * MIB, &m));
        assert_true(m.more >= 1);
        uint64_t first = m.bytes;
        for (unsigned k = 0; k < m.more; k++)
            first -= m.parts[k];
        assert_true(m.offset < first && m.offset + m.size <= m.bytes);
        assert_int_equal((p[i] - m.offset) % GRAIN, 0);
        share_close_fds(&m);
    }
    for (unsigned i = 0; i < 3; i++)
        unmake(p[i]);
    canary_reclaim();
}

// Small buffers, and with --canary-memory=plain all of them, are not for it.
static void small_ones_lie_elsewhere(void **state)
{
    CUdeviceptr p = make(300000);
    assert_false(is_mapped(p));
    unmake(p);
    guard.options.canary_memory = OPTION_CANARY_MEMORY_PLAIN;
    p = make(5 * MIB);
    assert_false(is_mapped(p));
    unmake(p);
    guard.options.canary_memory = OPTION_CANARY_MEMORY_MAPPED;
    canary_reclaim();
    assert_int_equal(canary_store_slabs(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_one),
        cmocka_unit_test(many_lose_little),
        cmocka_unit_test(neighbours_go),
        cmocka_unit_test(comes_and_goes),
        cmocka_unit_test(threads_at_once),
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(goes_with_its_context),
        cmocka_unit_test(tells_its_pieces),
        cmocka_unit_test(small_ones_lie_elsewhere),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
