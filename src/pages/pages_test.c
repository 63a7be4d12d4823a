// SPDX-License-Identifier: MIT
// Pages mode on the CPU device, which is linked in: failures of any driver call, and several threads. What
// programs see is tested by test/guard/pages.sh.
#include "pages/pages.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "pages/pages_block.h"
#include "pages/pages_testing.h"

enum { SMALL = 1000, LARGE = (3 << 20) - 100 };

static int setup(void **state)
{
    return pages_testing_start(64 << 20);
}

static void write_at(CUdeviceptr p)
{
    assert_int_equal(cuMemcpyHtoD_v2(p, "wrong", 4), 0);
}

static void free_now(CUdeviceptr p)
{
    CUresult r = CUDA_ERROR_UNKNOWN;
    assert_true(pages_free(p, DRIVER_cuMemFree_v2, &r));
    assert_int_equal(r, 0);
}

static int is_wrong(struct index_item *item, void *unused)
{
    return !pages_block_valid((const struct pages_block *)item);
}

static void are_valid(void)
{
    assert_int_equal(pages_block_each(is_wrong, NULL), 0);
}

static void memory_comes_back(void **state)
{
    CUresult r;
    CUdeviceptr p[100];
    size_t before = available();
    for (unsigned i = 0; i < 100; i++)
        assert_true(pages_alloc(&p[i], i & 1 ? LARGE : SMALL, &r));
    assert_true(available() < before);
    assert_int_equal(pages_block_count(), 100);
    are_valid();
    for (unsigned i = 0; i < 100; i++)
        free_now(p[i]);
    pages_reclaim();
    assert_int_equal(pages_block_count(), 0);
    assert_int_equal(available(), before);
    assert_int_equal(pages_memory_extra(), 0);
    assert_int_equal(atomic_load(&findings), 0);
}

// As many small buffers as a GPU's TLB has room for have addresses of their own; the driver packs the others.
static void packs_small_ones_beyond_a_number(void **state)
{
    enum { APART = 64 };
    CUresult r;
    CUdeviceptr p[APART + 1], other;
    uint64_t packed = atomic_load(&guard.counts[GUARD_PAGES_PACKED]);
    for (unsigned i = 0; i < APART; i++)
        assert_true(pages_alloc(&p[i], SMALL, &r));
    assert_false(pages_alloc(&other, SMALL, &r));
    assert_false(pages_alloc_async(&other, SMALL, NULL, NULL, false, &r));
    assert_int_equal(atomic_load(&guard.counts[GUARD_PAGES_PACKED]), packed + 2);
    assert_true(pages_alloc(&p[APART], LARGE, &r));
    free_now(p[APART]);
    guard.options.pages_small = OPTION_PAGES_SMALL_APART;
    assert_true(pages_alloc(&p[APART], SMALL, &r));
    free_now(p[APART]);
    guard.options.pages_small = OPTION_PAGES_SMALL_AUTO;
    free_now(p[0]);
    assert_true(pages_alloc(&p[0], SMALL, &r));
    for (unsigned i = 0; i < APART; i++)
        free_now(p[i]);
    pages_reclaim();
    assert_int_equal(pages_block_count(), 0);
}

// Inconsistent blocks are found invalid.
static void knows_what_is_wrong(void **state)
{
    const uint64_t unit = 2 << 20;
    const struct pages_block good = {
        .range = {.base = 8 * unit, .size = 2 * unit},
        .base = 9 * unit,
        .size = unit - 100,
        .units = 4,
        .memory = {.handle = 1, .bytes = 2 * unit, .offset = unit, .asked = unit - 100},
        .head = 256,
        .tail = 100};
    assert_true(pages_block_valid(&good));
    struct pages_block bad[6] = {good, good, good, good, good, good};
    bad[0].size++;
    bad[1].units = 2;
    bad[2].base--;
    bad[3].range.base += 512;
    bad[4].memory.slab = (struct pages_slab *)bad;
    bad[5].size = 0;
    for (unsigned i = 0; i < 6; i++)
        assert_false(pages_block_valid(&bad[i]));
}

static void canaries_tell(void **state)
{
    CUresult r;
    CUdeviceptr p;
    atomic_store(&findings, 0);
    assert_true(pages_alloc(&p, LARGE, &r));
    write_at(p + LARGE);
    free_now(p);
    assert_int_equal(atomic_load(&findings), 1);
    assert_true(pages_alloc(&p, LARGE, &r));
    write_at(p - 4);
    write_at(p + LARGE + 96);
    pages_context_ends(context, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(atomic_load(&findings), 3);
    free_now(p);
    assert_int_equal(atomic_load(&findings), 3);
    atomic_store(&findings, 0);
}

// Every driver call fails once: the buffer exists or is left to the driver, and nothing leaks.
static void any_call_may_fail(void **state)
{
    size_t before = available();
    bool done = false;
    for (int n = 0; !done && n < 100; n++) {
        CUdeviceptr p[4] = {0};
        CUresult r;
        size_t pitch;
        atomic_store(&calls_left, n);
        bool have[] = {
            pages_alloc(&p[0], LARGE, &r),
            pages_alloc(&p[1], SMALL, &r),
            pages_alloc_pitch(&p[2], &pitch, 3000, 1000, 4, &r),
            pages_alloc_async(&p[3], LARGE, NULL, NULL, false, &r),
        };
        for (unsigned i = 0; i < 4; i++) {
            if (!have[i])
                continue;
            assert_true(i & 1 ? pages_free_async(p[i], NULL, false, false, DRIVER_cuMemFreeAsync, &r)
                              : pages_free(p[i], DRIVER_cuMemFree_v2, &r));
            // After a refused free the buffer is as it was.
            if (r)
                assert_true(pages_free(p[i], DRIVER_cuMemFree_v2, &r) && !r);
        }
        done = atomic_load(&calls_left) > 0;
        atomic_store(&calls_left, -1);
        assert_int_equal(cuCtxSynchronize(), 0);
        pages_reclaim();
        assert_int_equal(pages_block_count(), 0);
        assert_int_equal(pages_memory_extra(), 0);
    }
    assert_true(done);
    assert_int_equal(available(), before);
    assert_int_equal(atomic_load(&findings), 0);
}

static void budget_holds(void **state)
{
    CUresult r;
    CUdeviceptr p[200] = {0};
    unsigned n = 0;
    // Each wastes slightly less than one MiB.
    while (n < 200 && pages_alloc(&p[n], (1 << 20) + 1, &r))
        n++;
    assert_true(n == 64 && pages_memory_extra() <= 64 << 20);
    for (unsigned i = 0; i < n; i++)
        free_now(p[i]);
}

static void wait_for_flag(void *flag)
{
    while (!atomic_load((_Atomic(bool) *)flag))
        sched_yield();
}

// While the stream does not advance, buffers freed in it wait; their memory serves later allocations of the
// stream, at other addresses.
static void order_is_kept(void **state)
{
    CUresult r;
    CUdeviceptr p, q, other;
    CUstream stream;
    _Atomic(bool) flag = false;
    size_t before = available();
    assert_int_equal(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
    assert_true(pages_alloc_async(&p, LARGE, NULL, stream, false, &r));
    assert_int_equal(cuLaunchHostFunc(stream, wait_for_flag, &flag), 0);
    uint64_t extra = pages_memory_extra();
    size_t left = available();
    assert_true(pages_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    assert_false(pages_free_async(p, stream, false, false, DRIVER_cuMemFreeAsync, &r));
    assert_int_equal(atomic_load(&pages_order_waiting), 1);
    assert_true(pages_alloc_async(&other, LARGE, NULL, NULL, false, &r));
    assert_true(available() < left);
    assert_true(pages_free_async(other, NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    while (atomic_load(&pages_order_waiting) > 1)
        pages_order_unmap(UINT32_MAX, false);
    assert_true(pages_alloc_async(&q, LARGE, NULL, stream, false, &r));
    assert_true(q != p && pages_memory_extra() == extra && available() == left);
    assert_int_equal(pages_ask(p, &(struct mode_answer){0}), MODE_NOT_OURS);
    assert_true(pages_free_async(q, stream, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    assert_int_equal(atomic_load(&pages_order_waiting), 2);
    atomic_store(&flag, true);
    pages_order_unmap(UINT32_MAX, true);
    assert_int_equal(atomic_load(&pages_order_waiting), 0);
    assert_int_equal(pages_block_count(), 0);
    assert_int_equal(cuStreamDestroy_v2(stream), 0);
    assert_int_equal(available(), before);
    // It was given back once.
    assert_true(pages_alloc(&p, LARGE, &r));
    assert_int_equal(pages_memory_extra(), extra);
    free_now(p);
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUdeviceptr p[8] = {0};
    CUresult r;
    cuCtxSetCurrent(context);
    for (unsigned i = 0; i < 300; i++) {
        CUdeviceptr *at = &p[rand_r(&seed) % 8];
        bool in_order = rand_r(&seed) & 1;
        if (*at && !(in_order ? pages_free_async(*at, NULL, false, false, DRIVER_cuMemFreeAsync, &r)
                              : pages_free(*at, DRIVER_cuMemFree_v2, &r)))
            return "lost";
        *at = 0;
        size_t size = rand_r(&seed) & 1 ? SMALL : LARGE;
        if (in_order ? !pages_alloc_async(at, size, NULL, NULL, false, &r) : !pages_alloc(at, size, &r))
            *at = 0;
    }
    for (unsigned i = 0; i < 8; i++)
        if (p[i] && (!pages_free(p[i], DRIVER_cuMemFree_v2, &r) || r))
            return "lost";
    return NULL;
}

static void threads_at_once(void **state)
{
    pthread_t t[4];
    void *wrong;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, work, (void *)i), 0);
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(t[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(cuCtxSynchronize(), 0);
    pages_reclaim();
    assert_int_equal(pages_block_count(), 0);
    assert_int_equal(pages_memory_extra(), 0);
    assert_int_equal(atomic_load(&findings), 0);
}

static void goes_with_its_context(void **state)
{
    CUcontext other;
    CUdeviceptr p[3];
    CUresult r;
    size_t before = available();
    assert_int_equal(cuCtxCreate_v2(&other, 0, 0), 0);
    assert_true(pages_alloc(&p[0], LARGE, &r) && pages_alloc(&p[1], SMALL, &r) &&
                pages_alloc_async(&p[2], LARGE, NULL, NULL, false, &r));
    assert_true(pages_free_async(p[2], NULL, false, false, DRIVER_cuMemFreeAsync, &r) && !r);
    assert_int_equal(cuCtxDestroy_v2(other), 0);
    pages_context_gone(other);
    assert_int_equal(pages_block_count(), 0);
    assert_int_equal(atomic_load(&pages_order_waiting), 0);
    assert_int_equal(cuCtxSetCurrent(context), 0);
    pages_reclaim();
    assert_int_equal(available(), before);
}

static void stops(void **state)
{
    CUdeviceptr p;
    CUresult r;
    pages_stop("for this test");
    assert_false(pages_alloc(&p, LARGE, &r));
    assert_int_equal(atomic_load(&findings), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_back),     cmocka_unit_test(packs_small_ones_beyond_a_number),
        cmocka_unit_test(knows_what_is_wrong),   cmocka_unit_test(canaries_tell),
        cmocka_unit_test(any_call_may_fail),     cmocka_unit_test(budget_holds),
        cmocka_unit_test(order_is_kept),         cmocka_unit_test(threads_at_once),
        cmocka_unit_test(goes_with_its_context), cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
