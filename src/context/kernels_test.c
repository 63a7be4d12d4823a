// SPDX-License-Identifier: MIT
#include "context/kernels.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/fork_testing.h"
#include "core/guard.h"
#include "core/slab_pool.h"

struct guard guard;
static char handles[64], owners[8];
#define HANDLE(n) ((const void *)&handles[n])
#define OWNER(n) ((const void *)&owners[n])

// --- the driver --------------------------------------------------------------------------------------------

static const struct kernels_parameter two[] = {{0, 8}, {8, 4}}, three[] = {{0, 8}, {8, 4}, {16, 8}};
static const struct kernels_parameter *reported = two;
static unsigned nreported = 2, asked_function, asked_kernel;
static CUresult refuses;
static char contexts[2];
#define CONTEXT(n) ((CUcontext)(void *)&contexts[n])
static CUcontext current;

static CUresult get_current(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

static CUresult tell(size_t index, size_t *offset, size_t *size)
{
    if (refuses || index >= nreported)
        return refuses ? refuses : CUDA_ERROR_INVALID_VALUE;
    *offset = reported ? reported[index].offset : 4 * index;
    *size = reported ? reported[index].size : 4;
    return CUDA_SUCCESS;
}

static CUresult function_info(CUfunction f, size_t index, size_t *offset, size_t *size)
{
    asked_function++;
    return (const char *)f >= handles + 32 ? CUDA_ERROR_INVALID_HANDLE : tell(index, offset, size);
}

static CUresult kernel_info(CUkernel k, size_t index, size_t *offset, size_t *size)
{
    asked_kernel++;
    return tell(index, offset, size);
}

static int setup(void **state)
{
    guard.real = (struct driver){.cuFuncGetParamInfo = function_info,
                                 .cuKernelGetParamInfo = kernel_info,
                                 .cuCtxGetCurrent = get_current};
    current = CONTEXT(0);
    reported = two;
    nreported = 2;
    asked_function = asked_kernel = 0;
    refuses = CUDA_SUCCESS;
    return 0;
}

static const void *owner_of(const struct kernel *k)
{
    return atomic_load(&k->owner);
}

// --- entries -----------------------------------------------------------------------------------------------

static void finds(void **state)
{
    assert_null(kernels_find(HANDLE(0)));
    assert_null(kernels_name(HANDLE(0)));
    assert_null(kernels_get(NULL));
    kernels_found(HANDLE(0), KERNELS_FUNCTION, OWNER(0), "zero");
    kernels_found(HANDLE(1), KERNELS_KERNEL, OWNER(0), "one");
    struct kernel *k = kernels_find(HANDLE(0));
    assert_ptr_equal(k->handle, HANDLE(0));
    assert_ptr_equal(owner_of(k), OWNER(0));
    assert_int_equal(atomic_load(&k->kind), KERNELS_FUNCTION);
    assert_string_equal(kernels_name(HANDLE(0)), "zero");
    assert_string_equal(kernels_name(HANDLE(1)), "one");
    assert_ptr_equal(kernels_get(HANDLE(0)), k);
    kernels_found(HANDLE(0), KERNELS_UNKNOWN, NULL, "other");
    assert_string_equal(kernels_name(HANDLE(0)), "other");
    assert_ptr_equal(owner_of(k), OWNER(0));
    kernels_found(HANDLE(0), KERNELS_UNKNOWN, NULL, NULL);
    assert_string_equal(kernels_name(HANDLE(0)), "other");
}

// Data of modes is cleared when the handle becomes another kernel's, and stays when the kernel is found
// again.
static void keeps_data(void **state)
{
    int a, b;
    kernels_found(HANDLE(2), KERNELS_FUNCTION, OWNER(1), "a");
    struct kernel *k = kernels_find(HANDLE(2));
    atomic_store(&k->data[1], &a);
    kernels_found(HANDLE(2), KERNELS_FUNCTION, OWNER(1), "a");
    assert_ptr_equal(atomic_load(&k->data[1]), &a);
    kernels_found(HANDLE(2), KERNELS_FUNCTION, OWNER(1), "b");
    assert_ptr_equal(kernels_find(HANDLE(2)), k);
    assert_null(atomic_load(&k->data[1]));
    atomic_store(&k->data[1], &b);
    kernels_found(HANDLE(2), KERNELS_FUNCTION, OWNER(2), "b");
    assert_null(atomic_load(&k->data[1]));
    for (int i = 0; i < KERNELS_DATA; i++)
        assert_int_equal(kernels_take_number(), i);
    assert_int_equal(kernels_take_number(), -1);
}

// From when an owner or a context is about to end, a kernel that is found under a handle of theirs may be a
// new one, though its name and owner are the same: nothing of the former one is left in it, and it stays when
// the end of the former one is recorded.
static void renews_what_ends(void **state)
{
    int a;
    for (int i = 18; i < 22; i++) {
        current = CONTEXT(i == 20);
        kernels_found(HANDLE(i), i == 21 ? KERNELS_KERNEL : KERNELS_FUNCTION, OWNER(i == 19 ? 6 : 7), "k");
        atomic_store(&kernels_find(HANDLE(i))->data[0], &a);
    }
    kernels_context_ends(CONTEXT(0), true);
    kernels_context_ends(NULL, true);
    current = CONTEXT(1);
    for (int i = 18; i < 22; i++)
        kernels_found(HANDLE(i), i == 21 ? KERNELS_KERNEL : KERNELS_FUNCTION, OWNER(i == 19 ? 6 : 7), "k");
    for (int i = 18; i < 22; i++)
        assert_ptr_equal(atomic_load(&kernels_find(HANDLE(i))->data[0]), i < 20 ? NULL : (void *)&a);

    // Found again, they are the other context's, and do not end with the first.
    atomic_store(&kernels_find(HANDLE(18))->data[0], &a);
    atomic_store(&kernels_find(HANDLE(19))->data[0], &a);
    kernels_context_ends(CONTEXT(0), true);
    kernels_owner_ends(OWNER(6), true);
    kernels_owner_ends(NULL, true);
    uint64_t before = kernels_found_so_far();
    kernels_found(HANDLE(18), KERNELS_FUNCTION, OWNER(7), "k");
    kernels_found(HANDLE(19), KERNELS_FUNCTION, OWNER(6), "k");
    assert_ptr_equal(atomic_load(&kernels_find(HANDLE(18))->data[0]), &a);
    assert_null(atomic_load(&kernels_find(HANDLE(19))->data[0]));
    atomic_store(&kernels_find(HANDLE(19))->data[0], &a);
    kernels_owner_gone(OWNER(6), before);
    assert_ptr_equal(atomic_load(&kernels_find(HANDLE(19))->data[0]), &a);

    // What did not end after all stays as it is.
    kernels_owner_ends(OWNER(6), true);
    kernels_owner_ends(OWNER(6), false);
    kernels_context_ends(CONTEXT(1), true);
    kernels_context_ends(CONTEXT(1), false);
    kernels_found(HANDLE(18), KERNELS_FUNCTION, OWNER(7), "k");
    kernels_found(HANDLE(19), KERNELS_FUNCTION, OWNER(6), "k");
    assert_ptr_equal(atomic_load(&kernels_find(HANDLE(18))->data[0]), &a);
    assert_ptr_equal(atomic_load(&kernels_find(HANDLE(19))->data[0]), &a);
}

static void forgets_with_owner(void **state)
{
    int a;
    for (int i = 3; i < 7; i++) {
        kernels_found(HANDLE(i), KERNELS_FUNCTION, OWNER(i == 4 ? 4 : 3), "k");
        atomic_store(&kernels_find(HANDLE(i))->data[0], &a);
    }
    kernels_found(HANDLE(6), KERNELS_FUNCTION, OWNER(5), "k");
    atomic_store(&kernels_find(HANDLE(6))->data[0], &a);
    kernels_old(kernels_find(HANDLE(3)))->size = 8;
    // Kernels of a later owner that got the same handle are not forgotten.
    uint64_t before = kernels_found_so_far();
    kernels_found(HANDLE(17), KERNELS_FUNCTION, OWNER(3), "later");
    kernels_owner_gone(OWNER(3), before);
    assert_ptr_equal(owner_of(kernels_find(HANDLE(17))), OWNER(3));
    kernels_owner_gone(OWNER(3), before);
    kernels_owner_gone(NULL, kernels_found_so_far());
    for (int i = 3; i < 7; i++) {
        struct kernel *k = kernels_find(HANDLE(i));
        bool gone = i == 3 || i == 5;
        assert_ptr_equal(atomic_load(&k->data[0]), gone ? NULL : (void *)&a);
        assert_true(!owner_of(k) == gone);
        assert_string_equal(kernels_name(HANDLE(i)), "k");
    }
    assert_int_equal(kernels_old(kernels_find(HANDLE(3)))->size, 0);
    assert_int_equal(kernels_old(kernels_find(HANDLE(3)))->block[2], 1);
}

static void stands_for(void **state)
{
    kernels_found(HANDLE(10), KERNELS_FUNCTION, OWNER(6), "own");
    struct kernel *own = kernels_find(HANDLE(10)), *instead = kernels_get(HANDLE(11));
    kernels_stands_for(instead, own);
    assert_ptr_equal(kernels_own(instead), own);
    assert_ptr_equal(kernels_own(own), own);
    assert_null(kernels_own(NULL));
    assert_string_equal(kernels_name(HANDLE(11)), "own");
    kernels_stands_for(own, own);
    assert_ptr_equal(kernels_own(own), own);
}

// --- layouts -----------------------------------------------------------------------------------------------

static void assert_layout(const struct kernels_layout *l, const struct kernels_parameter *p, uint32_t count,
                          uint32_t size)
{
    assert_non_null(l);
    assert_int_equal(l->count, count);
    assert_int_equal(l->size, size);
    assert_memory_equal(l->parameter, p, count * sizeof *p);
}

static void asks_once(void **state)
{
    kernels_found(HANDLE(12), KERNELS_FUNCTION, OWNER(6), "k");
    kernels_found(HANDLE(13), KERNELS_KERNEL, OWNER(6), "k");
    struct kernel *f = kernels_find(HANDLE(12)), *k = kernels_find(HANDLE(13));
    assert_layout(kernels_layout(f), two, 2, 12);
    assert_int_equal(asked_function, 3);
    assert_ptr_equal(kernels_layout(f), kernels_layout(k));
    assert_int_equal(asked_kernel, 3);
    kernels_layout(f), kernels_layout(k);
    assert_int_equal(asked_function + asked_kernel, 6);
    // The handle may be another kernel's by now.
    reported = three, nreported = 3;
    kernels_found(HANDLE(12), KERNELS_FUNCTION, OWNER(6), "k");
    assert_layout(kernels_layout(f), three, 3, 24);
    assert_layout(kernels_layout(k), two, 2, 12);
    nreported = 0;
    assert_layout(kernels_layout(kernels_get(HANDLE(14))), NULL, 0, 0);
}

static void hides(void **state)
{
    reported = three, nreported = 3;
    struct kernel *k = kernels_get(HANDLE(15));
    assert_layout(kernels_layout(k), three, 3, 24);
    kernels_hide(k, 1);
    assert_layout(kernels_layout(k), three, 2, 12);
    kernels_hide(k, 4);
    assert_null(kernels_layout(k));
    kernels_hide(k, 0);
    assert_layout(kernels_layout(k), three, 3, 24);
}

// A handle of unknown kind is queried as either.
static void asks_both_ways(void **state)
{
    assert_layout(kernels_layout(kernels_get(HANDLE(40))), two, 2, 12);
    assert_int_equal(asked_function, 3);
    assert_int_equal(asked_kernel, 3);
    assert_null(kernels_layout(NULL));
}

static void asks_in_vain(void **state)
{
    refuses = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    struct kernel *k = kernels_get(HANDLE(16));
    assert_null(kernels_layout(k));
    unsigned asked = asked_function;
    assert_null(kernels_layout(k));
    assert_int_equal(asked_function, asked);
    assert_true(kernels_set_layout(k, two, 2));
    assert_layout(kernels_layout(k), two, 2, 12);
    assert_false(kernels_set_layout(k, two, KERNELS_PARAMETERS + 1));
    refuses = CUDA_SUCCESS;
    guard.real.cuFuncGetParamInfo = NULL;
    guard.real.cuKernelGetParamInfo = NULL;
    assert_null(kernels_layout(kernels_get(HANDLE(17))));
    guard.real.cuFuncGetParamInfo = function_info;
    reported = NULL, nreported = KERNELS_PARAMETERS;
    assert_int_equal(kernels_layout(kernels_get(HANDLE(18)))->count, KERNELS_PARAMETERS);
    nreported++;
    assert_null(kernels_layout(kernels_get(HANDLE(19))));
}

static bool goes_on(void)
{
    kernels_after_fork();
    kernels_found(HANDLE(21), KERNELS_FUNCTION, OWNER(0), "after");
    return strcmp(kernels_name(HANDLE(20)), "before") == 0 && strcmp(kernels_name(HANDLE(21)), "after") == 0;
}

static void forks(void **state)
{
    kernels_found(HANDLE(20), KERNELS_FUNCTION, OWNER(0), "before");
    fork_testing_child(goes_on);
}

static void runs_out(void **state)
{
    kernels_get(HANDLE(22));
    slab_pool_fail_after(0);
    assert_null(kernels_get(HANDLE(23)));
    kernels_found(HANDLE(24), KERNELS_FUNCTION, OWNER(0), "no room");
    assert_null(kernels_name(HANDLE(24)));
    assert_null(kernels_old(kernels_find(HANDLE(22))));
    slab_pool_fail_after(-1);
    assert_non_null(kernels_old(kernels_find(HANDLE(22))));
    assert_null(kernels_old(NULL));
}

// Runs last: a full table finds what it has, and reports others as unknown.
static void runs_full(void **state)
{
    const uintptr_t first = 0x700000000000, most = KERNELS_SLOTS / 4 * 3;
    unsigned refused = 0;
    for (uintptr_t i = 0; i < most; i++)
        refused += !kernels_get((const void *)(first + 16 * i));
    assert_in_range(refused, 1, 100);
    for (uintptr_t i = 0; i < most - refused; i++)
        assert_ptr_equal(kernels_find((const void *)(first + 16 * i))->handle, first + 16 * i);
    assert_null(kernels_find((const void *)(first + 16 * most)));
    assert_string_equal(kernels_name(HANDLE(1)), "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(finds, setup),
        cmocka_unit_test_setup(keeps_data, setup),
        cmocka_unit_test_setup(renews_what_ends, setup),
        cmocka_unit_test_setup(forgets_with_owner, setup),
        cmocka_unit_test_setup(stands_for, setup),
        cmocka_unit_test_setup(asks_once, setup),
        cmocka_unit_test_setup(hides, setup),
        cmocka_unit_test_setup(asks_both_ways, setup),
        cmocka_unit_test_setup(asks_in_vain, setup),
        cmocka_unit_test_setup(forks, setup),
        cmocka_unit_test_setup(runs_out, setup),
        cmocka_unit_test_setup(runs_full, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
