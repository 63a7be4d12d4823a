// SPDX-License-Identifier: MIT
#include "track/track.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/fork_testing.h"
#include "core/guard.h"
#include "core/slab_pool.h"

enum { BASE = 0x10000, STEP = 0x1000 };

static bool is_live(uint64_t address)
{
    unsigned section = epoch_enter();
    bool found = track_live(address);
    epoch_leave(section);
    return found;
}

static bool is_freed(uint64_t address)
{
    unsigned section = epoch_enter();
    bool found = track_freed(address);
    epoch_leave(section);
    return found;
}

static uint64_t count_of(enum guard_count which)
{
    return atomic_load(&guard.counts[which]);
}

static void good_life_of_a_block(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 100);
    assert_true(is_live(BASE));
    assert_true(is_live(BASE + 99));
    assert_false(is_live(BASE + 100));
    assert_false(is_live(BASE - 1));
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_false(is_live(BASE));
    assert_true(is_freed(BASE + 50));
}

static void bad_ways_to_free(void **state)
{
    track_made(TRACK_PINNED, DRIVER_cuMemHostAlloc, BASE, 100);
    assert_false(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_false(track_freeing(BASE + 1, TRACK_BY_HOST, DRIVER_cuMemFreeHost));
    assert_true(is_live(BASE));
    assert_true(track_freeing(BASE, TRACK_BY_HOST, DRIVER_cuMemFreeHost));
    assert_false(track_freeing(BASE, TRACK_BY_HOST, DRIVER_cuMemFreeHost));
}

static void good_free_that_the_driver_refused(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 100);
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    track_not_freed(BASE);
    assert_true(is_live(BASE + 99));
    assert_false(is_freed(BASE));
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

static void good_address_given_out_again(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 100);
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 100, 100);
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_true(track_freeing(BASE + 100, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    // It overlaps the ends of both.
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 50, 100);
    assert_true(is_live(BASE + 50));
    assert_false(is_freed(BASE));
    assert_false(is_freed(BASE + 199));
    assert_true(track_freeing(BASE + 50, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

// A block whose free moat did not see is replaced by the one that is there now.
static void good_block_lost(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 1000);
    track_made(TRACK_MANAGED, DRIVER_cuMemAllocManaged, BASE + 500, 1000);
    assert_false(is_live(BASE));
    assert_true(is_live(BASE + 1499));
    assert_true(track_freeing(BASE + 500, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

static void good_announced_inside(void **state)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 1000);
    track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_ANNOUNCEMENT, BASE + 100, 100, NULL, "piece");
    unsigned section = epoch_enter();
    assert_string_equal(track_announced(BASE + 150)->facts.name, "piece");
    assert_null(track_announced(BASE + 200));
    assert_true(track_live(BASE + 150)->range.base == BASE);
    epoch_leave(section);
    track_withdraw(BASE + 100);
    section = epoch_enter();
    assert_null(track_announced(BASE + 150));
    epoch_leave(section);
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

// Whatever changes what a lookup finds has a number; other calls have none.
static void good_changes_have_numbers(void **state)
{
    uint64_t before;
#define CHANGES(call)                           \
    do {                                        \
        before = track_changes();               \
        call;                                   \
        assert_true(track_changes() != before); \
    } while (0)
    CHANGES(track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 1000));
    CHANGES(track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_NVTX, BASE + 100, 100, NULL, "piece"));
    CHANGES(track_changed(BASE + 100, 50, "smaller"));
    CHANGES(track_withdraw(BASE + 100));
    track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_NVTX, BASE + 100, 100, NULL, "piece");
    CHANGES(track_withdraw_range(BASE, BASE + 1000));
    unsigned section = epoch_enter();
    struct track_block *b = track_live(BASE);
    CHANGES(track_set_pooled(b));
    assert_true(atomic_load(&b->pooled));
    before = track_changes();
    track_announced(BASE);
    track_freed(BASE);
    track_withdraw(BASE + 100);
    assert_false(track_freeing(BASE + 1, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_int_equal(track_changes(), before);
    epoch_leave(section);
    CHANGES(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    CHANGES(track_not_freed(BASE));
    CHANGES(track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 10));  // a free that moat has not seen
    CHANGES(track_made_for(TRACK_VARIABLE, DRIVER_cuModuleGetGlobal_v2, BASE + 64, 8, state, "v"));
    CHANGES(track_owner_gone(state, DRIVER_cuModuleUnload));
    CHANGES(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

static void good_arrays_are_handles(void **state)
{
    track_made(TRACK_ARRAY, DRIVER_cuArrayCreate_v2, BASE + 8, 4096);
    assert_false(is_live(BASE + 8));
    unsigned section = epoch_enter();
    assert_int_equal(track_handle(BASE + 8)->facts.bytes, 4096);
    assert_null(track_handle(BASE + 9));
    epoch_leave(section);
    assert_true(track_freeing(BASE + 8, TRACK_BY_ARRAY, DRIVER_cuArrayDestroy));
    section = epoch_enter();
    assert_null(track_handle(BASE + 8));
    assert_non_null(track_freed_handle(BASE + 8));
    epoch_leave(section);
    track_array_not_freed(BASE + 8);
    section = epoch_enter();
    assert_non_null(track_handle(BASE + 8));
    assert_null(track_freed_handle(BASE + 8));
    epoch_leave(section);
    assert_true(track_freeing(BASE + 8, TRACK_BY_ARRAY, DRIVER_cuArrayDestroy));
    track_array_foreign(BASE + 8);
    section = epoch_enter();
    assert_null(track_freed_handle(BASE + 8));
    epoch_leave(section);
}

static void good_owner_gone(void **state)
{
    int module = 0, other = 0;
    track_made_for(TRACK_VARIABLE, DRIVER_cuModuleGetGlobal_v2, BASE, 10, &module, "a");
    track_made_for(TRACK_VARIABLE, DRIVER_cuModuleGetGlobal_v2, BASE + STEP, 10, &other, "b");
    track_owner_gone(&module, DRIVER_cuModuleUnload);
    assert_true(is_freed(BASE));
    assert_true(is_live(BASE + STEP));
    track_owner_gone(&other, DRIVER_cuModuleUnload);
    assert_int_equal(track_count(), 0);
}

static void good_freed_are_bounded(void **state)
{
    for (uint64_t i = 0; i < TRACK_FREED + 10; i++) {
        uint64_t base = 0x100000000 + i * STEP;
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, base, 16);
        assert_true(track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    }
    assert_false(is_freed(0x100000000 + 9 * STEP));
    assert_true(is_freed(0x100000000 + 10 * STEP));
}

static void make_and_free_at(uint64_t base)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, base, 16);
    assert_true(track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

// Old freed blocks must not be forgotten early because others came and went at the same addresses.
static void good_freed_at_the_same_addresses(void **state)
{
    for (unsigned i = 0; i < TRACK_FREED + 1; i++)
        make_and_free_at(BASE + i % 2 * STEP);
    make_and_free_at(BASE + 2 * STEP);
    for (unsigned i = 0; i < 4; i++) {
        make_and_free_at(BASE + i % 2 * STEP);
        assert_true(is_freed(BASE + i % 2 * STEP));
        assert_true(is_freed(BASE + (i + 1) % 2 * STEP));
        assert_true(is_freed(BASE + 2 * STEP));
    }
}

static uint64_t before(uint64_t address, uint64_t near)
{
    unsigned section = epoch_enter();
    struct track_block *b = track_before(address, near);
    uint64_t base = b ? b->range.base : 0;
    epoch_leave(section);
    return base;
}

static uint64_t after(uint64_t address, uint64_t end)
{
    unsigned section = epoch_enter();
    struct track_block *b = track_after(address, end);
    uint64_t base = b ? b->range.base : 0;
    epoch_leave(section);
    return base;
}

static void good_neighbours(void **state)
{
    for (unsigned i = 0; i < 10; i++)
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + i * STEP, 16);
    for (unsigned i = 1; i < 9; i++)
        assert_true(track_freeing(BASE + i * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    // Freed blocks are skipped.
    assert_int_equal(before(BASE + 5 * STEP, 5 * STEP), BASE);
    assert_int_equal(after(BASE + 5 * STEP, UINT64_MAX), BASE + 9 * STEP);
    // Not further than `near`.
    assert_int_equal(before(BASE + 5 * STEP, 5 * STEP - 16), 0);
    assert_int_equal(before(BASE + 5 * STEP, 5 * STEP - 15), BASE);
    assert_int_equal(after(BASE + 5 * STEP, BASE + 9 * STEP), 0);
    assert_int_equal(after(BASE + 5 * STEP, BASE + 9 * STEP + 1), BASE + 9 * STEP);
    assert_int_equal(before(BASE, 1), BASE);
    assert_int_equal(before(BASE - 1, UINT64_MAX), 0);
    assert_int_equal(after(BASE, UINT64_MAX), BASE + 9 * STEP);
    assert_int_equal(after(BASE + 9 * STEP, UINT64_MAX), 0);
    assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_true(track_freeing(BASE + 9 * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

static void good_last_freed(void **state)
{
    struct track_copy copies[4];
    for (unsigned i = 0; i < 6; i++)
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + i * STEP, 16);
    for (unsigned i = 0; i < 6; i++)
        assert_true(track_freeing(BASE + i * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    // Neither blocks that are live again, nor those that another has replaced.
    track_not_freed(BASE + 5 * STEP);
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 3 * STEP - 8, 16);
    assert_int_equal(track_last_freed(copies, 2), 2);
    assert_int_equal(copies[0].base, BASE + 4 * STEP);
    assert_int_equal(copies[1].base, BASE + 2 * STEP);
    assert_true(copies[0].freed && copies[0].freed_by == DRIVER_cuMemFree_v2);
    // The first of them behind an address, if it was freed late enough.
    uint64_t frees = track_frees();
    assert_true(track_freed_after(BASE, BASE + 6 * STEP, 0, copies));
    assert_int_equal(copies[0].base, BASE + STEP);
    assert_true(track_freed_after(BASE, BASE + 6 * STEP, frees - 2, copies));
    assert_int_equal(copies[0].base, BASE + 4 * STEP);
    assert_false(track_freed_after(BASE, BASE + 4 * STEP, frees - 2, copies));
    assert_false(track_freed_after(BASE, BASE + 6 * STEP, frees, copies));
    assert_int_equal(track_last_made(copies, 4), 2);
    assert_int_equal(copies[0].base, BASE + 3 * STEP - 8);
    assert_int_equal(copies[1].base, BASE + 5 * STEP);
    assert_int_equal(track_count(), 2);
    assert_true(track_freeing(BASE + 5 * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    assert_true(track_freeing(BASE + 3 * STEP - 8, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
}

static int device_of_context;

static CUresult some_device(CUdevice *device)
{
    *device = device_of_context;
    return CUDA_SUCCESS;
}

static int made_on(uint64_t base)
{
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, base, 16);
    unsigned section = epoch_enter();
    int device = track_live(base)->facts.device;
    epoch_leave(section);
    assert_true(track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    return device;
}

static CUresult some_context(CUcontext *context)
{
    static int it;
    *context = (CUcontext)&it;
    return CUDA_SUCCESS;
}

// Pools belong to the device, and mappings to the process: neither ends with the context that was current.
static void good_context_gone(void **state)
{
    CUcontext context;
    some_context(&context);
    guard.real.cuCtxGetCurrent = some_context;
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 16);
    track_made(TRACK_POOL, DRIVER_cuMemAllocAsync, BASE + STEP, 16);
    track_made(TRACK_MAPPED, DRIVER_cuMemMap, BASE + 2 * STEP, 16);
    track_owner_gone(context, DRIVER_cuCtxDestroy_v2);
    assert_true(is_freed(BASE));
    assert_true(is_live(BASE + STEP));
    assert_true(is_live(BASE + 2 * STEP));
    assert_true(track_freeing(BASE + STEP, TRACK_BY_DEVICE, DRIVER_cuMemFreeAsync));
    assert_true(track_freeing(BASE + 2 * STEP, TRACK_BY_MAP, DRIVER_cuMemUnmap));
    guard.real.cuCtxGetCurrent = NULL;
}

static CUcontext current;

static CUresult current_one(CUcontext *context)
{
    *context = current;
    return CUDA_SUCCESS;
}

// The driver is asked for a context's device once, and again when a context has ended: its handle may be
// reused.
static void good_device_of_a_context(void **state)
{
    int one, other;
    guard.real.cuCtxGetCurrent = current_one;
    guard.real.cuCtxGetDevice = some_device;
    current = (CUcontext)&one;
    device_of_context = 3;
    assert_int_equal(made_on(BASE), 3);
    device_of_context = 4;
    assert_int_equal(made_on(BASE), 3);
    current = (CUcontext)&other;
    assert_int_equal(made_on(BASE), 4);
    device_of_context = 5;
    track_owner_gone(&other, DRIVER_cuCtxDestroy_v2);
    assert_int_equal(made_on(BASE), 5);
    current = NULL;
    device_of_context = 6;
    assert_int_equal(made_on(BASE), 6);
    guard.real.cuCtxGetCurrent = NULL;
    guard.real.cuCtxGetDevice = NULL;
}

// The reserve lasts for a while; then blocks are counted and not recorded.
static void bad_memory_stays_out(void **state)
{
    enum { MANY = 300 };
    uint64_t before_it = count_of(GUARD_UNTRACKED);
    unsigned known = 0;
    slab_pool_fail_after(0);
    for (unsigned i = 0; i < MANY; i++)
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + i * STEP, 16);
    slab_pool_fail_after(-1);
    for (unsigned i = 0; i < MANY; i++) {
        bool live = is_live(BASE + i * STEP);
        known += live;
        assert_int_equal(track_freeing(BASE + i * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2), live);
    }
    assert_in_range(known, 0, MANY - 1);
    assert_int_equal(count_of(GUARD_UNTRACKED) - before_it, MANY - known);
}

static void bad_memory_runs_out(void **state)
{
    uint64_t before = count_of(GUARD_UNTRACKED);
    for (long n = 0; n < 4; n++) {
        slab_pool_fail_after(n);
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 100);
        slab_pool_fail_after(-1);
        assert_int_equal(count_of(GUARD_UNTRACKED) - before, is_live(BASE) ? 0 : 1);
        before = count_of(GUARD_UNTRACKED);
        bool known = is_live(BASE);
        assert_int_equal(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2), known);
    }
}

static _Atomic bool stop;

// Every kind of change, at one address and at new ones.
static void *change_always(void *unused)
{
    for (uint64_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        make_and_free_at(0x300000000);
        make_and_free_at(0x300000000 + (1 + i % 1000) * STEP);
    }
    return NULL;
}

// The parent's other thread was in the middle of a change.
static bool works_in_child(void)
{
    bool good = true;
    track_after_fork();
    for (unsigned i = 0; i < 2000 && good; i++) {
        uint64_t base = 0x300000000 + i % 100 * STEP;
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, base, 32);
        good = is_live(base + 31) && track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2) &&
               is_freed(base + 31);
    }
    struct track_copy copies[8];
    good = good && track_last_freed(copies, 8) == 8 && copies[7].size == 32;
    return good && track_count() <= 1;
}

static void good_forks(void **state)
{
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, change_always, NULL), 0);
    for (unsigned i = 0; i < 30; i++) {
        fork_testing_child(works_in_child);
        sched_yield();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static uint32_t client_at(uint64_t address)
{
    unsigned section = epoch_enter();
    const struct track_block *b = track_announced(address);
    b = b ? b : track_live(address);
    uint32_t client = b ? track_copy(b, false).facts.client : UINT32_MAX;
    epoch_leave(section);
    return client;
}

static void *client_of_a_thread(void *unused)
{
    assert_int_equal(track_client(), 0);
    track_client_set(8);
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + 2 * STEP, 100);
    return NULL;
}

// Whichever client changes or frees it afterwards.
static void good_blocks_are_their_clients(void **state)
{
    pthread_t thread;
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 1000);
    track_client_set(7);
    track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE + STEP, 100);
    track_made_for(TRACK_ANNOUNCED, TRACK_MADE_BY_ANNOUNCEMENT, BASE + 100, 100, NULL, "piece");
    assert_int_equal(pthread_create(&thread, NULL, client_of_a_thread, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(track_client(), 7);
    track_client_set(0);
    track_changed(BASE + 100, 50, "smaller");
    assert_int_equal(client_at(BASE), 0);
    assert_int_equal(client_at(BASE + 120), 7);
    assert_int_equal(client_at(BASE + STEP), 7);
    assert_int_equal(client_at(BASE + 2 * STEP), 8);
    for (unsigned i = 0; i < 3; i++)
        assert_true(track_freeing(BASE + i * STEP, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
    struct track_copy last[3];
    assert_int_equal(track_last_freed(last, 3), 3);
    assert_int_equal(last[0].facts.client, 8);
    assert_int_equal(last[1].facts.client, 7);
    assert_int_equal(last[2].facts.client, 0);
    track_withdraw(BASE + 100);
}

static void *make_and_free(void *number)
{
    uint64_t base = 0x200000000 + (uint64_t)(uintptr_t)number * 0x1000000;
    for (int i = 0; i < 2000; i++) {
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, base, 256);
        if (!is_live(base + 255) || !track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2) ||
            is_live(base))
            return "lost";
        if (i % 3 == 0) {
            track_not_freed(base);
            if (!is_live(base) || !track_freeing(base, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2))
                return "not undone";
        }
    }
    return NULL;
}

// A block that comes and goes at one address is always known as live or freed.
static void *look_always(void *unused)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned section = epoch_enter();
        struct track_block *b = NULL;
        // It may change twice between two lookups, but not for ever.
        for (unsigned i = 0; i < 1000 && !b; i++)
            b = i % 2 ? track_freed(BASE + 5) : track_live(BASE + 5);
        struct track_copy copy = b ? track_copy(b, false) : (struct track_copy){0};
        epoch_leave(section);
        if (!b || copy.base != BASE || copy.facts.bytes != copy.size || copy.facts.bytes < 16)
            return "not found";
    }
    return NULL;
}

static void good_readers(void **state)
{
    pthread_t reader;
    void *wrong;
    make_and_free_at(BASE);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&reader, NULL, look_always, NULL), 0);
    for (unsigned i = 0; i < 20000; i++) {
        track_made(TRACK_PLAIN, DRIVER_cuMemAlloc_v2, BASE, 16 + i % 64);
        assert_true(track_freeing(BASE, TRACK_BY_DEVICE, DRIVER_cuMemFree_v2));
        if (i % 16 == 0)
            make_and_free_at(BASE + STEP + i * 16);
    }
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(reader, &wrong), 0);
    assert_null(wrong);
}

static void good_threads(void **state)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_life_of_a_block),
        cmocka_unit_test(bad_ways_to_free),
        cmocka_unit_test(good_free_that_the_driver_refused),
        cmocka_unit_test(good_address_given_out_again),
        cmocka_unit_test(good_block_lost),
        cmocka_unit_test(good_announced_inside),
        cmocka_unit_test(good_changes_have_numbers),
        cmocka_unit_test(good_arrays_are_handles),
        cmocka_unit_test(good_owner_gone),
        cmocka_unit_test(good_freed_are_bounded),
        cmocka_unit_test(good_freed_at_the_same_addresses),
        cmocka_unit_test(good_context_gone),
        cmocka_unit_test(good_neighbours),
        cmocka_unit_test(good_last_freed),
        cmocka_unit_test(good_device_of_a_context),
        cmocka_unit_test(good_blocks_are_their_clients),
        cmocka_unit_test(bad_memory_runs_out),
        cmocka_unit_test(bad_memory_stays_out),
        cmocka_unit_test(good_forks),
        cmocka_unit_test(good_readers),
        cmocka_unit_test(good_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
