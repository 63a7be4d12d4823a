// SPDX-License-Identifier: MIT
#include "driver/driver.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const unsigned per_thread_flags = DRIVER_PTSZ | DRIVER_PTDS;

static void good_table_is_in_order(void **state)
{
    (void)state;
    for (int i = 1; i < DRIVER_CALLS; i++) {
        const struct driver_call *a = &driver_calls[i - 1], *b = &driver_calls[i];
        int order = strcmp(a->base, b->base);
        bool a_last = a->flags & per_thread_flags, b_last = b->flags & per_thread_flags;

        assert_true(order <= 0);
        if (order == 0 && !(a->flags & DRIVER_BARE))
            assert_true(a->since < b->since || (a->since == b->since && !a_last && b_last));
    }
}

static void good_flags_follow_the_symbol(void **state)
{
    (void)state;
    for (int i = 0; i < DRIVER_CALLS; i++) {
        const struct driver_call *call = &driver_calls[i];

        assert_int_equal(!!(call->flags & DRIVER_PTSZ), !!strstr(call->symbol, "_ptsz"));
        assert_int_equal(!!(call->flags & DRIVER_PTDS), !!strstr(call->symbol, "_ptds"));
        assert_int_equal(!!(call->flags & DRIVER_BARE), call->since == 0);
        assert_int_equal(strncmp(call->symbol, call->base, strlen(call->base)), 0);
    }
}

static void expect_version(const char *base, int version, bool per_thread, const char *symbol)
{
    const struct driver_call *call = driver_call_for_version(base, version, per_thread);

    if (!symbol) {
        assert_null(call);
        return;
    }
    assert_non_null(call);
    assert_string_equal(call->symbol, symbol);
}

static void good_versions(void **state)
{
    (void)state;
    expect_version("cuMemAlloc", 2000, false, "cuMemAlloc");
    expect_version("cuMemAlloc", 3019, false, "cuMemAlloc");
    expect_version("cuMemAlloc", 3020, false, "cuMemAlloc_v2");
    expect_version("cuMemAlloc", 13000, true, "cuMemAlloc_v2");
    expect_version("cuCtxCreate", 11030, false, "cuCtxCreate_v2");
    expect_version("cuCtxCreate", 11040, false, "cuCtxCreate_v3");
    expect_version("cuCtxCreate", 13000, false, "cuCtxCreate_v4");
    expect_version("cuGetProcAddress", 11030, false, "cuGetProcAddress");
    expect_version("cuGetProcAddress", 12000, false, "cuGetProcAddress_v2");
    expect_version("cuGLMapBufferObject", 13000, false, "cuGLMapBufferObject_v2");
}

static void good_versions_per_thread(void **state)
{
    (void)state;
    expect_version("cuMemcpyHtoD", 7000, true, "cuMemcpyHtoD_v2_ptds");
    expect_version("cuMemcpyHtoD", 7000, false, "cuMemcpyHtoD_v2");
    expect_version("cuLaunchKernel", 4000, false, "cuLaunchKernel");
    expect_version("cuLaunchKernel", 13000, true, "cuLaunchKernel_ptsz");
    expect_version("cuLaunchKernel", 13000, false, "cuLaunchKernel");
    expect_version("cuStreamGetCaptureInfo", 12020, true, "cuStreamGetCaptureInfo_v2_ptsz");
    expect_version("cuStreamGetCaptureInfo", 12030, true, "cuStreamGetCaptureInfo_v3_ptsz");
    expect_version("cuInit", 13000, true, "cuInit");
}

static void bad_versions(void **state)
{
    (void)state;
    expect_version("cuMemAlloc", 1999, false, NULL);
    expect_version("cuMemAlloc", 0, false, NULL);
    expect_version("cuMemAlloc", -1, true, NULL);
    expect_version("cuMemAllocAsync", 11010, true, NULL);
    expect_version("cuMemcpyHtoD", 6050, true, NULL);
    expect_version("cuLaunchKernel", 6999, true, NULL);
    expect_version("cuMemAlloc_v2", 13000, false, NULL);
    expect_version("cuLaunchKernel_ptsz", 13000, true, NULL);
    expect_version("cuMemGetAttribute", 13000, false, NULL);
    expect_version("cuMemGetAttribute_v2", 13000, false, NULL);
    expect_version("", 13000, false, NULL);
    expect_version("cuNothing", 13000, false, NULL);
}

// The rule, without use of the order of rows.
static const struct driver_call *newest_by_search(const char *base, int version, bool per_thread)
{
    const struct driver_call *best = NULL;
    bool variants = false;

    for (int i = 0; i < DRIVER_CALLS; i++)
        variants |= !strcmp(driver_calls[i].base, base) && driver_calls[i].flags & per_thread_flags;
    for (int i = 0; i < DRIVER_CALLS; i++) {
        const struct driver_call *call = &driver_calls[i];
        bool variant = call->flags & per_thread_flags;

        if (strcmp(call->base, base) != 0 || call->since > version || call->flags & DRIVER_BARE ||
            variant != (per_thread && variants))
            continue;
        if (!best || call->since > best->since)
            best = call;
    }
    return best;
}

static void good_versions_of_every_base(void **state)
{
    static const int versions[] = {1000, 2000, 2030,  3000,  3020,  4000,  6050,  7000,
                                   8000, 9020, 10010, 11000, 11030, 12000, 12050, 13000};

    (void)state;
    for (int i = 0; i < DRIVER_CALLS; i++)
        for (size_t j = 0; j < sizeof versions / sizeof *versions; j++)
            for (int per_thread = 0; per_thread < 2; per_thread++) {
                const char *base = driver_calls[i].base;

                assert_ptr_equal(driver_call_for_version(base, versions[j], per_thread),
                                 newest_by_search(base, versions[j], per_thread));
            }
}

struct result_row {
    const char *name;
    int value;
    const char *text;
};

static const struct result_row result_rows[] = {
#define RESULT(name, value, text) {#name, value, text},
#include "driver/results.def"
};
static const size_t result_count = sizeof result_rows / sizeof *result_rows;

static void good_results(void **state)
{
    (void)state;
    for (size_t i = 0; i < result_count; i++) {
        const struct result_row *row = &result_rows[i];

        assert_string_equal(driver_result_name((CUresult)row->value), row->name);
        assert_string_equal(driver_result_text((CUresult)row->value), row->text);
        assert_null(strchr(row->text, '\n'));
    }
    assert_string_equal(driver_result_name(CUDA_SUCCESS), "CUDA_SUCCESS");
    assert_string_equal(driver_result_name((CUresult)700), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

static void good_results_are_sorted_and_distinct(void **state)
{
    (void)state;
    for (size_t i = 0; i < result_count; i++)
        for (size_t j = i + 1; j < result_count; j++) {
            assert_true(result_rows[i].value < result_rows[j].value);
            assert_string_not_equal(result_rows[i].name, result_rows[j].name);
        }
}

static void bad_results(void **state)
{
    static const int values[] = {-1, 9, 203, 706, 998, 1000, INT32_MAX, INT32_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        assert_null(driver_result_name((CUresult)values[i]));
        assert_null(driver_result_text((CUresult)values[i]));
    }
}

// These need no CUDA driver: the C library stands for a library that is none.
static void bad_open(void **state)
{
    struct driver driver;
    char why[128] = "";

    (void)state;
    memset(&driver, 0xff, sizeof driver);
    assert_int_equal(driver_open(&driver, "/nonexistent/libcuda.so.1", why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, "/nonexistent/libcuda.so.1"));
    assert_null(driver.handle);
    assert_null(driver.cuInit);

    assert_int_equal(driver_open(&driver, "libc.so.6", why, sizeof why), -ENOSYS);
    assert_non_null(strstr(why, "libc.so.6"));
    assert_null(driver.handle);

    why[0] = 'x';
    assert_int_equal(driver_open(&driver, "/nonexistent/libcuda.so.1", why, 1), -ENOENT);
    assert_int_equal(why[0], '\0');
    assert_int_equal(driver_open(&driver, "/nonexistent/libcuda.so.1", NULL, 0), -ENOENT);
    driver_close(&driver);
    driver_close(&driver);
}

static CUresult stand_in(unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static void good_call_by_name_and_number_is_one(void **state)
{
    struct driver driver = {.handle = NULL};

    (void)state;
    driver.cuInit = stand_in;
    assert_ptr_equal((driver_function)stand_in, driver.call[DRIVER_cuInit]);
    assert_int_equal(driver.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(driver_calls[DRIVER_cuInit].symbol, "cuInit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_table_is_in_order),
        cmocka_unit_test(good_flags_follow_the_symbol),
        cmocka_unit_test(good_versions),
        cmocka_unit_test(good_versions_per_thread),
        cmocka_unit_test(bad_versions),
        cmocka_unit_test(good_versions_of_every_base),
        cmocka_unit_test(good_results),
        cmocka_unit_test(good_results_are_sorted_and_distinct),
        cmocka_unit_test(bad_results),
        cmocka_unit_test(bad_open),
        cmocka_unit_test(good_call_by_name_and_number_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
