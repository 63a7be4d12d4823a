// SPDX-License-Identifier: MIT
// Plain buffers as managed memory, on the CPU device: where their canaries are, and which scans read which.
#include "canary/canary_managed.h"

#include "canary/canary_testing.h"

enum { PAGE = 4096, SIZE = 10000, PAGES = 3 * PAGE, FAR = 1024, LOCK_STEP = 60000000 };

// The monitor sleeps for a minute, so that all scans are the test's own.
static int setup(void **state)
{
    use_cpu_device();
    REAL(cuMemAllocManaged), REAL(cuMemHostAlloc), REAL(cuMemcpy2DAsync_v2), REAL(cuEventSynchronize);
    REAL(cuThreadExchangeStreamCaptureMode);
    guard.options.mode = 1 << OPTION_MODE_CANARY;
    guard.options.canary_interval = LOCK_STEP;
    guard.options.canary_scan = OPTION_CANARY_SCAN_MANAGED;
    canary_start();
    return !canary_on || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context);
}

static CUdeviceptr make(void)
{
    CUdeviceptr p;
    CUresult r;
    assert_true(canary_alloc(&p, SIZE, &r) && !r);
    assert_int_equal(p % PAGE, 0);
    assert_int_equal(canary_store_slabs(), 1);
    return p;
}

static void check_reports(CUdeviceptr p, unsigned after_a_scan, unsigned after_a_whole_one)
{
    scan(false);
    assert_int_equal(atomic_load(&findings), after_a_scan);
    scan(true);
    assert_int_equal(atomic_load(&findings), after_a_whole_one);
    free_now(p);
    assert_int_equal(atomic_exchange(&findings, 0), after_a_whole_one);
    assert_int_equal(canary_store_slabs(), 0);
}

static void good_ones_are_left_alone(void **state)
{
    CUdeviceptr p = make();
    assert_int_equal(cuMemsetD8_v2(p, 0, SIZE), 0);
    check_reports(p, 0, 0);
}

static void every_scan_reads_the_pages_around(void **state)
{
    CUdeviceptr p = make();
    change(p - 1);
    change(p + PAGES + FAR);
    check_reports(p, 2, 2);
}

// The last page of a buffer belongs to the device: only whole scans read the canary behind the buffer's end
// there.
static void few_scans_read_the_last_page(void **state)
{
    CUdeviceptr p = make();
    change(p + SIZE);
    check_reports(p, 0, 1);
}

static void a_free_reads_all(void **state)
{
    static const unsigned at[] = {SIZE, PAGES + FAR};
    for (unsigned i = 0; i < sizeof at / sizeof *at; i++) {
        CUdeviceptr p = make();
        change(p + at[i]);
        free_now(p);
        assert_int_equal(atomic_exchange(&findings, 0), 1);
    }
}

static void copies_are_the_default(void **state)
{
    assert_non_null(canary_managed_chosen());
    guard.options.canary_scan = OPTION_CANARY_SCAN_COPY;
    assert_null(canary_managed_chosen());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_are_left_alone),     cmocka_unit_test(every_scan_reads_the_pages_around),
        cmocka_unit_test(few_scans_read_the_last_page), cmocka_unit_test(a_free_reads_all),
        cmocka_unit_test(copies_are_the_default),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
