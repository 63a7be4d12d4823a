// SPDX-License-Identifier: MIT
// Which tables are read, with a driver whose contexts are numbers: the test says what each module has counted
// in each.
#include "count/count_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/mem.h"
#include "count/count.h"
#include "context/context.h"
#include "core/guard.h"
#include "track/guard_report.h"

enum { MODULES = 8, CONTEXTS = 8 };

struct guard guard;

static CUcontext stack[4];
static unsigned depth;
// By module and context, both from 1.
static uint64_t table[MODULES][CONTEXTS];
static CUresult missing[MODULES][CONTEXTS];  // result of the look-up instead of the table's address
static CUresult broken[CONTEXTS];
static unsigned notes;

void guard_report_counts(const struct report_counts *counts)
{
}

void guard_report_note(const char *fmt, ...)
{
    notes++;
}

static CUcontext context(uintptr_t n)
{
    return (CUcontext)n;
}

static uintptr_t current(void)
{
    return depth ? (uintptr_t)stack[depth - 1] : 0;
}

// --- the driver --------------------------------------------------------------------------------------------

static CUresult get_current(CUcontext *c)
{
    *c = context(current());
    return CUDA_SUCCESS;
}

static CUresult push(CUcontext c)
{
    assert_in_range((uintptr_t)c, 1, CONTEXTS - 1);
    stack[depth++] = c;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *c)
{
    *c = stack[--depth];
    return CUDA_SUCCESS;
}

static CUresult exchange(CUstreamCaptureMode *mode)
{
    return CUDA_SUCCESS;
}

static CUresult event_create(CUevent *e, unsigned flags)
{
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream q)
{
    return CUDA_SUCCESS;
}

static CUresult event_query(CUevent e)
{
    return broken[current()];
}

static CUresult event_destroy(CUevent e)
{
    return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *q, unsigned flags)
{
    return CUDA_SUCCESS;
}

static CUresult stream_is_well(CUstream q)
{
    return CUDA_SUCCESS;
}

static CUresult module_global(CUdeviceptr *at, size_t *size, CUmodule m, const char *name)
{
    *at = (uintptr_t)m;
    *size = PASS_COUNT_ROW * 8;
    return missing[(uintptr_t)m][current()];
}

static CUresult library_global(CUdeviceptr *at, size_t *size, CUlibrary l, const char *name)
{
    return module_global(at, size, (CUmodule)l, name);
}

// Every counter of the first row holds the number.
static CUresult copy(void *to, CUdeviceptr from, size_t n, CUstream q)
{
    memset(to, 0, n);
    for (unsigned i = 0; i < PASS_COUNT_LINE; i++)
        ((uint64_t *)to)[i] = table[from][current()];
    return CUDA_SUCCESS;
}

static CUresult no_devices(int *n)
{
    *n = 0;
    return CUDA_SUCCESS;
}

static int start(void **state)
{
    guard.real.cuCtxGetCurrent = get_current;
    guard.real.cuCtxPushCurrent_v2 = push;
    guard.real.cuCtxPopCurrent_v2 = pop;
    guard.real.cuThreadExchangeStreamCaptureMode = exchange;
    guard.real.cuEventCreate = event_create;
    guard.real.cuEventRecord = event_record;
    guard.real.cuEventQuery = event_query;
    guard.real.cuEventDestroy_v2 = event_destroy;
    guard.real.cuStreamCreate = stream_create;
    guard.real.cuStreamDestroy_v2 = stream_is_well;
    guard.real.cuStreamSynchronize = stream_is_well;
    guard.real.cuModuleGetGlobal_v2 = module_global;
    guard.real.cuLibraryGetGlobal = library_global;
    guard.real.cuMemcpyDtoHAsync_v2 = copy;
    guard.real.cuDeviceGetCount = no_devices;
    count_read_start();
    return count_start();
}

static int begin(void **state)
{
    memset(table, 0, sizeof table);
    memset(missing, 0, sizeof missing);
    memset(broken, 0, sizeof broken);
    depth = notes = 0;
    modules_after_fork();
    count_read_after_fork();
    context_after_fork();
    return 0;
}

// --- the program -------------------------------------------------------------------------------------------

static const void *handle(uintptr_t n)
{
    return (const void *)n;
}

static void load(uintptr_t n, bool library, const char *kernel)
{
    char text[200];
    struct pass_request request = {.passes = "count"};
    struct pass_result **parts = mem_zalloc(1, sizeof *parts);
    struct diag_sink sink = {0};
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry %s()\n{\nret;\n}\n", kernel);
    assert_int_equal(pass_rewrite("test", str_from(text), &request, &sink, parts), 0);
    struct modules_row *row = modules_add(handle(n), library, parts, 1);
    assert_non_null(row);
    count_read_add(row);
    modules_release(row);
}

static uint64_t launches(const char *kernel)
{
    return count_row(kernel, true)->sums.launches;
}

static bool is_lost(const char *kernel)
{
    return count_row(kernel, true)->lost;
}

// Whichever of the three comes first.
static void bad_one_module(void **state)
{
    for (unsigned bad = 1; bad <= 3; bad++) {
        char name[8];
        begin(state);
        push(context(1));
        for (unsigned m = 1; m <= 3; m++) {
            snprintf(name, sizeof name, "bad%u%u", bad, m);
            load(m, false, name);
            table[m][1] = 10 + m;
        }
        missing[bad][1] = CUDA_ERROR_NOT_FOUND;
        count_read_context_ending(context(1));
        for (unsigned m = 1; m <= 3; m++) {
            snprintf(name, sizeof name, "bad%u%u", bad, m);
            assert_int_equal(is_lost(name), m == bad);
            assert_int_equal(launches(name), m == bad ? 0 : 10 + m);
        }
        assert_int_equal(depth, 1);
    }
}

static void good_library_everywhere(void **state)
{
    context_begun(context(1));
    context_begun(context(2));
    load(1, true, "everywhere");
    table[1][1] = 2;
    table[1][2] = 5;
    table[1][3] = 100;  // not the program's
    count_read_ending(handle(1));
    assert_int_equal(launches("everywhere"), 7);
    count_read_ending(handle(1));
    assert_int_equal(launches("everywhere"), 7);
    assert_false(is_lost("everywhere"));
    assert_int_equal(depth, 0);
}

// A library outlives contexts, and the address of a context may be reused by another.
static void good_context_by_context(void **state)
{
    load(1, true, "by_context");
    for (unsigned i = 1; i <= 3; i++) {
        context_begun(context(1));
        table[1][1] = i;
        count_read_context_ending(context(1));
        count_read_context_ended(context(1));
        context_forget(context(1));
        assert_false(context_lives(context(1)));
    }
    assert_int_equal(launches("by_context"), 1 + 2 + 3);
    // Nothing can be read in a context that is destroyed.
    table[1][1] = 50;
    broken[1] = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    count_read_context_ending(context(1));
    assert_int_equal(launches("by_context"), 6);
    assert_false(is_lost("by_context"));
    assert_int_equal(notes, 0);
}

// The library need not be there; if it is, or if the context cannot tell, something is lost.
static void good_library_elsewhere(void **state)
{
    load(1, true, "elsewhere");
    context_begun(context(1));
    context_begun(context(2));
    table[1][1] = 2;
    missing[1][2] = CUDA_ERROR_OUT_OF_MEMORY;
    count_read_ending(handle(1));
    assert_int_equal(launches("elsewhere"), 2);
    assert_false(is_lost("elsewhere"));
    assert_int_equal(notes, 0);
    missing[1][1] = CUDA_ERROR_OUT_OF_MEMORY;
    count_read_ending(handle(1));
    assert_true(is_lost("elsewhere"));
    assert_int_equal(notes, 1);
}

static void bad_context(void **state)
{
    load(1, true, "broken");
    context_begun(context(1));
    context_begun(context(2));
    table[1][1] = 2;
    broken[2] = CUDA_ERROR_ILLEGAL_ADDRESS;
    count_read_ending(handle(1));
    assert_int_equal(launches("broken"), 2);
    assert_true(is_lost("broken"));
    assert_int_equal(notes, 1);
}

static void bad_more_contexts_than_room(void **state)
{
    CUcontext list[CONTEXT_ROWS];
    bool all;
    load(1, true, "crowd");
    load(2, false, "no_library");
    for (uintptr_t i = 0; i < CONTEXT_ROWS; i++)
        context_begun(context(CONTEXTS + i));
    context_begun(context(CONTEXTS));
    assert_int_equal(context_list(list, &all), CONTEXT_ROWS);
    assert_true(all);
    context_begun(context(1));
    for (uintptr_t i = 0; i < CONTEXT_ROWS; i++)
        context_forget(context(CONTEXTS + i));
    assert_int_equal(context_list(list, &all), 0);
    assert_false(all);
    count_read_ending(handle(1));
    count_read_ending(handle(2));
    assert_true(is_lost("crowd"));
    assert_false(is_lost("no_library"));
}

static void good_owners(void **state)
{
    push(context(1));
    load(1, false, "owned");
    load(2, true, "owned");
    modules_alias(handle(2), (CUmodule)handle(3));
    for (uintptr_t m = 1; m <= 4; m++)
        count_read_found(handle(100 + m), handle(m), "owned");
    count_read_found(handle(105), handle(1), "another");
    for (uintptr_t m = 1; m <= 3; m++)
        assert_ptr_equal(count_row_of(handle(100 + m)), count_row("owned", true));
    assert_ptr_equal(count_row_of(handle(104)), count_row("owned", false));
    assert_ptr_equal(count_row_of(handle(105)), count_row("another", false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(bad_one_module, begin),
        cmocka_unit_test_setup(good_library_everywhere, begin),
        cmocka_unit_test_setup(good_context_by_context, begin),
        cmocka_unit_test_setup(good_library_elsewhere, begin),
        cmocka_unit_test_setup(bad_context, begin),
        cmocka_unit_test_setup(bad_more_contexts_than_room, begin),
        cmocka_unit_test_setup(good_owners, begin),
    };
    return cmocka_run_group_tests(tests, start, begin);
}
