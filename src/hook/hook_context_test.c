// SPDX-License-Identifier: MIT
// Which memory ends with which context, over a fake driver: it has one device, whose primary context lives as
// long as it is held, contexts with reference counts, and green ones.
#include "hook/hook_context.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "context/green.h"
#include "core/guard.h"
#include "track/guard_report.h"
#include "context/context.h"
#include "hook/hook.h"
#include "track/track.h"

enum { SIZE = 1000 };

#define PRIMARY ((CUcontext)0x1000)
#define OTHER ((CUcontext)0x2000)
#define GREEN ((CUgreenCtx)0x3000)
#define AS_CONTEXT ((CUcontext)0x4000)

struct guard guard;
static unsigned leaks;
static CUcontext current;
static int held;        // references to the primary context
static int references;  // references to OTHER
static CUcontext attach_to = OTHER;
static CUresult next_result;
static uint64_t next_address = 0x10000000;

void guard_report_finding(const struct guard_finding *f)
{
    leaks += f->type == REPORT_LEAK;
}

void guard_report_note(const char *fmt, ...)
{
}

void guard_report_counts(const struct report_counts *counts)
{
}

static CUresult get_current(CUcontext *c)
{
    *c = current;
    return CUDA_SUCCESS;
}

static CUresult get_device(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

static CUresult take(void)
{
    CUresult r = next_result;
    next_result = CUDA_SUCCESS;
    return r;
}

static CUresult retain(CUcontext *c, CUdevice device)
{
    held++;
    *c = PRIMARY;
    return CUDA_SUCCESS;
}

static CUresult release(CUdevice device)
{
    CUresult r = take();
    held -= !r;
    return r;
}

static CUresult state_of(CUdevice device, unsigned *flags, int *active)
{
    *active = held > 0;
    return CUDA_SUCCESS;
}

static CUresult attach(CUcontext *c, unsigned flags)
{
    references++;
    *c = attach_to;
    return CUDA_SUCCESS;
}

static CUresult detach(CUcontext c)
{
    CUresult r = take();
    references -= !r;
    return r;
}

static CUresult destroy(CUcontext c)
{
    references = 0;
    return take();
}

static CUresult green_create(CUgreenCtx *green, CUdevResourceDesc desc, CUdevice device, unsigned flags)
{
    held++;
    *green = GREEN;
    return CUDA_SUCCESS;
}

static CUresult green_destroy(CUgreenCtx green)
{
    return release(0);
}

static CUresult from_green(CUcontext *c, CUgreenCtx green)
{
    *c = AS_CONTEXT;
    return CUDA_SUCCESS;
}

static int begin(void **state)
{
    guard.watching = true;
    guard.options.leak_check = true;
    guard.real.cuCtxGetCurrent = get_current;
    guard.real.cuCtxGetDevice = get_device;
    guard.real.cuDevicePrimaryCtxRetain = retain;
    guard.real.cuDevicePrimaryCtxRelease_v2 = release;
    guard.real.cuDevicePrimaryCtxGetState = state_of;
    guard.real.cuCtxAttach = attach;
    guard.real.cuCtxDetach = detach;
    guard.real.cuCtxDestroy_v2 = destroy;
    guard.real.cuGreenCtxCreate = green_create;
    guard.real.cuGreenCtxDestroy = green_destroy;
    guard.real.cuCtxFromGreenCtx = from_green;
    leaks = 0;
    held = references = 0;
    current = NULL;
    return 0;
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    *context = OTHER;
    return CUDA_SUCCESS;
}

// Must be the first test.
static void tells_one_context_from_several(void **state)
{
    CUcontext c;
    guard.real.cuCtxCreate_v2 = create;
    assert_int_equal(hook_cuDevicePrimaryCtxRetain(&c, 0), 0);
    assert_int_equal(hook_cuDevicePrimaryCtxRetain(&c, 0), 0);
    assert_true(context_only_one());
    assert_int_equal(hook_cuCtxCreate_v2(&c, 0, 0), 0);
    assert_false(context_only_one());
    assert_int_equal(hook_cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_int_equal(hook_cuDevicePrimaryCtxRelease_v2(0), 0);
}

static uint64_t make_in(CUcontext context)
{
    uint64_t at = next_address;
    next_address += 1 << 20;
    current = context;
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, at, SIZE);
    return at;
}

static bool lives(uint64_t at)
{
    unsigned section = epoch_enter();
    bool is = track_live(at);
    epoch_leave(section);
    return is;
}

static enum driver_id freed_by(uint64_t at)
{
    unsigned section = epoch_enter();
    struct track_block *b = track_freed(at);
    enum driver_id call = b ? atomic_load(&b->freed_by) : DRIVER_CALLS;
    epoch_leave(section);
    return call;
}

static void the_last_to_detach_ends_it(void **state)
{
    CUcontext c;
    references = 1;
    uint64_t p = make_in(OTHER);
    assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_true(lives(p));
    assert_int_equal(leaks, 0);
    next_result = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(hook_cuCtxDetach(OTHER), CUDA_ERROR_INVALID_CONTEXT);
    assert_true(lives(p));
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_int_equal(references, 0);
    assert_int_equal(freed_by(p), DRIVER_cuCtxDetach);
    assert_int_equal(leaks, 1);
}

static void a_refused_detach_counts_for_nothing(void **state)
{
    CUcontext c;
    references = 1;
    uint64_t p = make_in(OTHER);
    assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    next_result = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(hook_cuCtxDetach(OTHER), CUDA_ERROR_INVALID_CONTEXT);
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_true(lives(p));
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_false(lives(p));
}

static void destroyed_whoever_holds_it(void **state)
{
    CUcontext c;
    references = 1;
    assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    uint64_t p = make_in(OTHER);
    assert_int_equal(hook_cuCtxDestroy_v2(OTHER), 0);
    assert_int_equal(freed_by(p), DRIVER_cuCtxDestroy_v2);
    // The next context at that address is a new one, held once.
    references = 1;
    p = make_in(OTHER);
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_int_equal(freed_by(p), DRIVER_cuCtxDetach);
}

static void memory_of_a_green_context_stays(void **state)
{
    CUgreenCtx green;
    CUcontext c;
    assert_int_equal(hook_cuDevicePrimaryCtxRetain(&c, 0), 0);
    assert_int_equal(hook_cuGreenCtxCreate(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM), 0);
    assert_int_equal(hook_cuCtxFromGreenCtx(&c, green), 0);
    assert_ptr_equal(c, AS_CONTEXT);
    uint64_t p = make_in(c);
    assert_null(context_current());
    assert_int_equal(hook_cuGreenCtxDestroy(green), 0);
    assert_true(lives(p));
    assert_int_equal(leaks, 0);
    assert_ptr_equal(green_owner(AS_CONTEXT), AS_CONTEXT);  // the handle may be another context's now
    assert_int_equal(hook_cuDevicePrimaryCtxRelease_v2(0), 0);
    assert_int_equal(freed_by(p), DRIVER_cuDevicePrimaryCtxRelease_v2);
    assert_int_equal(leaks, 1);
}

// Nobody else holds the primary context, whose handle the program may never have seen.
static void a_green_context_may_be_the_last(void **state)
{
    CUgreenCtx green;
    CUcontext c;
    assert_int_equal(hook_cuGreenCtxCreate(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM), 0);
    assert_int_equal(held, 1);
    assert_int_equal(hook_cuCtxFromGreenCtx(&c, green), 0);
    uint64_t p = make_in(c), q = make_in(OTHER);
    next_result = CUDA_ERROR_INVALID_CONTEXT;
    assert_int_equal(hook_cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
    assert_true(lives(p));
    assert_ptr_equal(green_owner(AS_CONTEXT), PRIMARY);
    assert_int_equal(hook_cuGreenCtxDestroy(green), 0);
    assert_int_equal(freed_by(p), DRIVER_cuGreenCtxDestroy);
    assert_true(lives(q));
    assert_int_equal(leaks, 1);
    track_freeing(q, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2);
}

static void more_green_contexts_than_rows(void **state)
{
    for (uintptr_t i = 1; i <= 300; i++) {
        green_made((CUgreenCtx)(i << 8), 0, PRIMARY);
        green_current_as((CUgreenCtx)(i << 8), (CUcontext)(i << 8 | 8));
    }
    assert_ptr_equal(green_owner((CUcontext)(1 << 8 | 8)), PRIMARY);
    assert_ptr_equal(green_owner((CUcontext)(300 << 8 | 8)), (CUcontext)(300 << 8 | 8));
    assert_int_equal(green_device((CUgreenCtx)(300 << 8)), -1);
    for (uintptr_t i = 1; i <= 300; i++)
        assert_ptr_equal(green_gone((CUgreenCtx)(i << 8)), i <= 256 ? (CUcontext)(i << 8 | 8) : NULL);
    assert_ptr_equal(green_owner((CUcontext)(1 << 8 | 8)), (CUcontext)(1 << 8 | 8));
    assert_null(green_gone(NULL));
}

// Runs last: from then on attachments are unknown.
static void more_attached_than_rows(void **state)
{
    CUcontext c;
    uint64_t p = make_in(OTHER);
    for (uintptr_t i = 1; i <= CONTEXT_ROWS; i++) {
        attach_to = (CUcontext)(i << 8);
        assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    }
    attach_to = OTHER;
    assert_int_equal(hook_cuCtxAttach(&c, 0), 0);
    assert_int_equal(hook_cuCtxDetach(OTHER), 0);
    assert_true(lives(p));
    assert_int_equal(hook_cuCtxDestroy_v2(OTHER), 0);
    assert_false(lives(p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(tells_one_context_from_several, begin),
        cmocka_unit_test_setup(a_green_context_may_be_the_last, begin),
        cmocka_unit_test_setup(the_last_to_detach_ends_it, begin),
        cmocka_unit_test_setup(a_refused_detach_counts_for_nothing, begin),
        cmocka_unit_test_setup(destroyed_whoever_holds_it, begin),
        cmocka_unit_test_setup(memory_of_a_green_context_stays, begin),
        cmocka_unit_test_setup(more_green_contexts_than_rows, begin),
        cmocka_unit_test_setup(more_attached_than_rows, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
