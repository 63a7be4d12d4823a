// SPDX-License-Identifier: MIT
// The checks alone: the driver is a function that knows one foreign buffer, and reports are only recorded.
#include "hook/bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "hook/bounds_array.h"
#include "core/guard.h"
#include "track/guard_report.h"

enum { BASE = 0x10000000, FOREIGN = 0x90000000 };

static struct guard_finding last;
static char notes[2][500];  // copies: the finding's own are the caller's
static unsigned reports;

void guard_report_finding(const struct guard_finding *finding)
{
    last = *finding;
    snprintf(notes[0], sizeof notes[0], "%s", last.note ? last.note : "");
    snprintf(notes[1], sizeof notes[1], "%s", last.more[0] ? last.more[0] : "");
    reports++;
}

void guard_report_note(const char *fmt, ...)
{
}

void guard_report_counts(const struct report_counts *counts)
{
}

static CUresult address_range(CUdeviceptr *base, size_t *size, CUdeviceptr p)
{
    *base = FOREIGN;
    *size = 4096;
    return p >= FOREIGN && p - FOREIGN < 4096 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static int begin(void **state)
{
    guard.watching = true;
    guard.real.cuMemGetAddressRange_v2 = address_range;
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 1000);
    reports = 0;
    return 0;
}

static int end(void **state)
{
    track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2);
    return 0;
}

static CUresult touch(uint64_t start, uint64_t bytes, bool device)
{
    return bounds_check(DRIVER_cuMemcpyHtoD_v2, &(struct bounds_range){start, bytes, REPORT_WRITE, device});
}

static void expect_report(enum report_type type, uint64_t address, uint64_t base)
{
    assert_int_equal(reports, 1);
    assert_int_equal(last.type, type);
    assert_int_equal(last.address, address);
    assert_int_equal(last.nbuffers, base != 0);
    if (base)
        assert_int_equal(last.buffers[0].base, base);
    reports = 0;
}

static void good_inside(void **state)
{
    assert_int_equal(touch(BASE, 1000, true), 0);
    assert_int_equal(touch(BASE + 999, 1, true), 0);
    assert_int_equal(touch(BASE + 1000, 0, true), 0);
    assert_int_equal(touch(0, 0, true), 0);
    assert_int_equal(reports, 0);
}

static void bad_past_the_end(void **state)
{
    assert_int_equal(touch(BASE, 1001, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 1000, BASE);
    assert_int_equal(touch(BASE + 999, 2, false), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 1000, BASE);
    assert_int_equal(touch(BASE, UINT64_MAX, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 1000, BASE);
    assert_int_equal(touch(BASE + 1000, 1, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 1000, BASE);
}

static void bad_before_the_start(void **state)
{
    assert_int_equal(touch(BASE - 8, 16, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_UNDERFLOW, BASE - 8, BASE);
}

// Host memory that CUDA does not know may be anything.
static void good_host_memory(void **state)
{
    static char pageable[4096];
    assert_int_equal(touch((uintptr_t)pageable, sizeof pageable, false), 0);
    assert_int_equal(reports, 0);
    track_made(TRACK_REGISTERED, DRIVER_cuMemHostRegister_v2, (uintptr_t)pageable + 512, 512);
    assert_int_equal(touch((uintptr_t)pageable, sizeof pageable, false), 0);
    assert_int_equal(touch((uintptr_t)pageable + 512, 2048, false), 0);
    assert_int_equal(reports, 0);
    assert_true(track_freeing((uintptr_t)pageable + 512, TRACK_BY_REGISTER, DRIVER_cuMemHostUnregister));
    // The page is still mapped.
    assert_int_equal(touch((uintptr_t)pageable + 512, 100, false), 0);
    assert_int_equal(reports, 0);
}

static void bad_pinned(void **state)
{
    track_made(TRACK_PINNED, DRIVER_cuMemHostAlloc, BASE + 0x100000, 100);
    assert_int_equal(touch(BASE + 0x100000, 101, false), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 0x100000 + 100, BASE + 0x100000);
    assert_true(track_freeing(BASE + 0x100000, TRACK_BY_HOST, DRIVER_cuMemFreeHost));
}

static void good_mapped_pieces_that_touch(void **state)
{
    uint64_t at = BASE + 0x10000000;
    for (int i = 0; i < 3; i++)
        track_made(TRACK_MAPPED, DRIVER_cuMemMap, at + (uint64_t)i * 4096, 4096);
    assert_int_equal(touch(at + 100, 3 * 4096 - 100, true), 0);
    assert_int_equal(reports, 0);
    assert_int_equal(touch(at + 100, 3 * 4096 - 99, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, at + 3 * 4096, at);
    assert_true(track_freeing(at + 4096, TRACK_BY_MAP, DRIVER_cuMemUnmap));
    assert_int_equal(touch(at, 2 * 4096, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, at + 4096, at);
    assert_true(track_freeing(at, TRACK_BY_MAP, DRIVER_cuMemUnmap));
    assert_true(track_freeing(at + 2 * 4096, TRACK_BY_MAP, DRIVER_cuMemUnmap));
}

static void bad_freed(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 0x200000, 64);
    assert_true(track_freeing(BASE + 0x200000, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_int_equal(touch(BASE + 0x200000 + 63, 1, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_USE_AFTER_FREE, BASE + 0x200000 + 63, BASE + 0x200000);
    assert_true(last.buffers[0].freed);
}

// A handle is a number: host memory at the same address is unrelated to it, and another array may get the
// handle.
static void good_handles_of_arrays(void **state)
{
    static char memory[64];
    uint64_t handle = (uintptr_t)memory;
    track_made(TRACK_ARRAY, DRIVER_cuArrayCreate_v2, handle, 4096);
    assert_true(track_freeing(handle, TRACK_BY_ARRAY, DRIVER_cuArrayDestroy));
    assert_int_equal(touch(handle, sizeof memory, false), 0);
    assert_int_equal(
        bounds_array(DRIVER_cuMemcpyAtoH_v2, (CUarray)memory, &(struct bounds_box){.width = 4}, REPORT_READ),
        CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(reports, 1);
    assert_int_equal(last.type, REPORT_USE_AFTER_FREE);
    track_array_foreign(handle);
    assert_int_equal(
        bounds_array(DRIVER_cuMemcpyAtoH_v2, (CUarray)memory, &(struct bounds_box){.width = 4}, REPORT_READ),
        0);
    assert_int_equal(reports, 1);
}

// When memory of a graph is valid is unknown.
static void good_graph_memory(void **state)
{
    track_made_in_graph(DRIVER_cuGraphAddMemAllocNode, BASE + 4096, 64);
    assert_int_equal(touch(BASE + 4096, 65, true), 0);
    assert_false(track_freeing(BASE + 4096, TRACK_BY_DEVICE, DRIVER_cuMemFreeAsync));
    assert_int_equal(reports, 0);
    track_made(TRACK_POOL, DRIVER_cuMemAllocAsync, BASE + 4096, 64);
    assert_true(track_freeing(BASE + 4096, TRACK_BY_DEVICE, DRIVER_cuMemFreeAsync));
}

// Addresses of managed memory return to the system, which hands them out as ordinary memory.
static void good_host_memory_again(void **state)
{
    static char memory[64];
    track_made(TRACK_MANAGED, DRIVER_cuMemAllocManaged, (uintptr_t)memory, sizeof memory);
    assert_true(track_freeing((uintptr_t)memory, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_int_equal(touch((uintptr_t)memory, sizeof memory, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_USE_AFTER_FREE, (uintptr_t)memory, (uintptr_t)memory);
    assert_int_equal(touch((uintptr_t)memory, sizeof memory, false), 0);
    assert_int_equal(touch((uintptr_t)memory, sizeof memory, false), 0);
    assert_int_equal(reports, 0);
    // The same for plain memory, whose addresses the driver returns too if it was large; the rest of it is
    // still known.
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, (uintptr_t)memory, sizeof memory);
    assert_true(track_freeing((uintptr_t)memory, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_int_equal(touch((uintptr_t)memory, sizeof memory, false), 0);
    assert_int_equal(reports, 0);
    assert_int_equal(touch((uintptr_t)memory, sizeof memory, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_USE_AFTER_FREE, (uintptr_t)memory, (uintptr_t)memory);
    track_made(TRACK_MANAGED, DRIVER_cuMemAllocManaged, BASE + 0x500000, 64);
    assert_true(track_freeing(BASE + 0x500000, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_int_equal(touch(BASE + 0x500000, 64, false), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_USE_AFTER_FREE, BASE + 0x500000, BASE + 0x500000);
}

// One side of a copy is unknown, the other wrong: the next call is not affected.
static void good_call_after_a_wrong_one(void **state)
{
    assert_int_equal(touch(0x123456789000, 20, true), 0);
    assert_int_equal(touch(BASE, 1001, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 1000, BASE);
    assert_int_equal(bounds_done(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports, 0);
}

static void bad_variable(void **state)
{
    int module = 0;
    track_made_for(TRACK_VARIABLE, DRIVER_cuModuleGetGlobal_v2, BASE + 0x300000, 40, &module, "table");
    assert_int_equal(touch(BASE + 0x300000, 44, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_GLOBAL_OVERFLOW, BASE + 0x300000 + 40, BASE + 0x300000);
    track_owner_gone(&module, DRIVER_cuModuleUnload);
}

static void bad_announced(void **state)
{
    track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_ANNOUNCEMENT, BASE + 256, 100, NULL, "piece");
    assert_int_equal(touch(BASE + 256, 100, true), 0);
    assert_int_equal(touch(BASE + 256, 101, true), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_HEAP_OVERFLOW, BASE + 356, BASE + 256);
    track_withdraw(BASE + 256);
    assert_int_equal(touch(BASE + 256, 101, true), 0);
}

// The driver decides whether unknown memory is an error.
static void good_unknown(void **state)
{
    assert_int_equal(touch(FOREIGN + 10, 20, true), 0);
    assert_int_equal(bounds_done(CUDA_SUCCESS), 0);
    assert_int_equal(touch(0x123456789000, 20, true), 0);
    assert_int_equal(bounds_done(CUDA_SUCCESS), 0);
    assert_int_equal(reports, 0);
    assert_int_equal(touch(0x123456789000, 20, true), 0);
    assert_int_equal(bounds_done(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_WILD_ACCESS, 0x123456789000, 0);
    assert_int_equal(touch(0, 20, true), 0);
    assert_int_equal(bounds_done(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_NULL_DEREFERENCE, 0, 0);
    // Only that call was suspect.
    assert_int_equal(bounds_done(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports, 0);
}

// A copy in the wrong direction, and cudaFree of what the program has on its stack.
static void bad_host_pointer(void **state)
{
    int here = 0;
    assert_int_equal(touch((uintptr_t)&here, sizeof here, true), 0);
    assert_int_equal(bounds_done(CUDA_ERROR_INVALID_VALUE), CUDA_ERROR_INVALID_VALUE);
    expect_report(REPORT_WILD_ACCESS, (uintptr_t)&here, 0);
    assert_non_null(strstr(notes[0], " is host memory: the stack of the program"));
    assert_int_equal(touch((uintptr_t)&here, sizeof here, false), 0);
    assert_int_equal(bounds_done(CUDA_SUCCESS), 0);
    assert_int_equal(reports, 0);
    bounds_bad_free(DRIVER_cuMemFree_v2, (uintptr_t)&here, TRACK_BY_DEVICE);
    expect_report(REPORT_BAD_FREE, (uintptr_t)&here, 0);
    assert_non_null(strstr(notes[1], " is host memory: the stack of the program"));
}

static CUresult rows(uint64_t width, uint64_t pitch, uint64_t count, uint64_t plane, uint64_t planes)
{
    struct bounds_range first = {BASE, width, REPORT_READ, true};
    return bounds_check_rows(DRIVER_cuMemcpy2D_v2, &first, pitch, count, plane, planes);
}

static void good_rows(void **state)
{
    assert_int_equal(rows(100, 100, 10, 0, 1), 0);
    assert_int_equal(rows(40, 240, 5, 0, 1), 0);
    assert_int_equal(rows(100, 100, 5, 500, 2), 0);
    assert_int_equal(rows(0, 100, 500, 0, 1), 0);
    assert_int_equal(rows(100, 100, 0, 0, 1), 0);
    assert_int_equal(reports, 0);
    assert_int_equal(rows(41, 240, 5, 0, 1), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(rows(100, 100, 5, 501, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(reports, 2);
    // Sizes that overflow are left to the driver.
    assert_int_equal(rows(100, UINT64_MAX / 2, 4, 0, 1), 0);
    assert_int_equal(reports, 2);
}

static void bad_frees(void **state)
{
    bounds_bad_free(DRIVER_cuMemFree_v2, BASE + 8, TRACK_BY_DEVICE);
    expect_report(REPORT_BAD_FREE, BASE + 8, BASE);
    bounds_bad_free(DRIVER_cuMemFreeHost, BASE, TRACK_BY_HOST);
    expect_report(REPORT_MISMATCH, BASE, BASE);
    bounds_bad_free(DRIVER_cuMemFree_v2, 0x123456789000, TRACK_BY_DEVICE);
    expect_report(REPORT_BAD_FREE, 0x123456789000, 0);
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 0x400000, 64);
    assert_true(track_freeing(BASE + 0x400000, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    bounds_bad_free(DRIVER_cuMemFree_v2, BASE + 0x400000, TRACK_BY_DEVICE);
    expect_report(REPORT_DOUBLE_FREE, BASE + 0x400000, BASE + 0x400000);
}

static CUresult state_of_context;

static CUresult memory_info(size_t *available, size_t *all)
{
    *available = *all = 0;
    return state_of_context;
}

// An error of the context comes first, unless none is current and the call's stream has one.
static void refused_as_the_driver_would(void **state)
{
    const CUresult invalid = CUDA_ERROR_INVALID_VALUE;
    CUstream own = (CUstream)&reports;
    assert_int_equal(bounds_refused(invalid, NULL), invalid);
    guard.real.cuMemGetInfo_v2 = memory_info;
    assert_int_equal(bounds_refused(invalid, NULL), invalid);
    const CUresult of_context[] = {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_CONTEXT_IS_DESTROYED};
    for (int i = 0; i < 2; i++) {
        state_of_context = of_context[i];
        assert_int_equal(bounds_refused(invalid, NULL), of_context[i]);
        assert_int_equal(bounds_refused(invalid, CU_STREAM_LEGACY), of_context[i]);
        assert_int_equal(bounds_refused(invalid, CU_STREAM_PER_THREAD), of_context[i]);
        assert_int_equal(bounds_refused(invalid, own), i ? of_context[i] : invalid);
    }
    assert_int_equal(reports, 0);
    state_of_context = CUDA_ERROR_ASSERT;
    assert_int_equal(bounds_refused(invalid, own), CUDA_ERROR_ASSERT);
    guard.real.cuMemGetInfo_v2 = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
        TEST(good_inside),
        TEST(bad_past_the_end),
        TEST(bad_before_the_start),
        TEST(good_host_memory),
        TEST(bad_pinned),
        TEST(good_mapped_pieces_that_touch),
        TEST(bad_freed),
        TEST(bad_variable),
        TEST(bad_announced),
        TEST(good_unknown),
        TEST(bad_host_pointer),
        TEST(good_rows),
        TEST(bad_frees),
        TEST(good_handles_of_arrays),
        TEST(good_graph_memory),
        TEST(good_host_memory_again),
        TEST(good_call_after_a_wrong_one),
        TEST(refused_as_the_driver_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
