// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "core/fork_testing.h"
#include "core/slab_pool.h"

struct thing {
    _Alignas(64) uint64_t owner;
    char rest[130];
};

enum { MANY = 5000, THREADS = 4, ROUNDS = 4000, HELD = 8 };

static void objects_are_apart_and_aligned(void **state)
{
    struct slab_pool pool = SLAB_POOL(struct thing);
    static struct thing *things[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        things[i] = slab_pool_get(&pool);
        assert_non_null(things[i]);
        assert_int_equal((uintptr_t)things[i] % 64, 0);
        memset(things[i], 0xff, sizeof *things[i]);
        things[i]->owner = i;
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(things[i]->owner, i);
    assert_true(slab_pool_mapped(&pool) >= MANY * sizeof(struct thing));
}

static void memory_is_used_again(void **state)
{
    struct slab_pool pool = SLAB_POOL(struct thing);
    struct thing *first = slab_pool_get(&pool);
    size_t mapped = slab_pool_mapped(&pool);
    slab_pool_put(&pool, first);
    slab_pool_put(&pool, NULL);
    for (unsigned i = 0; i < MANY; i++) {
        struct thing *thing = slab_pool_get(&pool);
        assert_ptr_equal(thing, first);
        slab_pool_put(&pool, thing);
    }
    assert_int_equal(slab_pool_mapped(&pool), mapped);
    static void *things[1000];
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(slab_pool_get_many(&pool, things, 1000), 0);
        for (unsigned j = 0; j < 1000; j++)
            slab_pool_put(&pool, things[j]);
    }
    assert_in_range(slab_pool_mapped(&pool), mapped, mapped + 1000 * sizeof(struct thing));
}

static void many_or_none(void **state)
{
    struct slab_pool pool = SLAB_POOL(struct thing);
    void *things[6];
    for (long n = 0; n < 6; n++) {
        slab_pool_fail_after(n);
        assert_int_equal(slab_pool_get_many(&pool, things, 6), -ENOMEM);
        assert_null(slab_pool_get(&pool));
        slab_pool_fail_after(-1);
        size_t mapped = slab_pool_mapped(&pool);
        assert_int_equal(slab_pool_get_many(&pool, things, 6), 0);
        for (unsigned i = 0; i < 6; i++)
            for (unsigned j = 0; j < i; j++)
                assert_ptr_not_equal(things[i], things[j]);
        for (unsigned i = 0; i < 6; i++)
            slab_pool_put(&pool, things[i]);
        assert_true(!n || slab_pool_mapped(&pool) == mapped);
    }
    // Objects that a refused call had taken can be taken again.
    for (unsigned i = 0; i < MANY; i++) {
        slab_pool_fail_after(5);
        assert_int_equal(slab_pool_get_many(&pool, things, 6), -ENOMEM);
    }
    slab_pool_fail_after(-1);
    assert_in_range(slab_pool_mapped(&pool), 1, 256 * 1024);
}

static void what_came_back_last_goes_first(void **state)
{
    struct slab_pool pool = SLAB_POOL(struct thing);
    void *things[6], *again[4];
    assert_int_equal(slab_pool_get_many(&pool, things, 6), 0);
    for (unsigned i = 0; i < 4; i++)
        slab_pool_put(&pool, things[i]);
    assert_ptr_equal(slab_pool_get(&pool), things[3]);
    slab_pool_put(&pool, things[4]);
    slab_pool_put(&pool, things[5]);
    assert_int_equal(slab_pool_get_many(&pool, again, 4), 0);
    assert_ptr_equal(again[0], things[5]);
    assert_ptr_equal(again[1], things[4]);
    assert_ptr_equal(again[2], things[2]);
    assert_ptr_equal(again[3], things[1]);
}

static void no_memory_is_null(void **state)
{
    struct slab_pool pool = SLAB_POOL(struct thing);
    pool.size = (size_t)1 << 50;  // more than the address space
    errno = EXDEV;
    assert_null(slab_pool_get(&pool));
    assert_int_equal(errno, EXDEV);
    assert_int_equal(slab_pool_mapped(&pool), 0);
}

static struct slab_pool shared = SLAB_POOL(struct thing);
static _Atomic bool stop;

static void *take_and_return(void *id)
{
    struct thing *held[HELD] = {0};
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct thing **slot = &held[i % HELD];
        if (*slot && (*slot)->owner != (uintptr_t)id + i - HELD)
            return "an object had two owners";
        slab_pool_put(&shared, *slot);
        *slot = slab_pool_get(&shared);
        (*slot)->owner = (uintptr_t)id + i;
    }
    for (unsigned i = 0; i < HELD; i++)
        slab_pool_put(&shared, held[i]);
    return NULL;
}

static void threads_share_a_pool(void **state)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_return, (void *)(i << 32)), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *complaint;
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
    assert_true(slab_pool_mapped(&shared) <= 256 * 1024);
}

static bool usable_in_child(void)
{
    slab_pool_after_fork(&shared);
    struct thing *a = slab_pool_get(&shared), *b = slab_pool_get(&shared);
    slab_pool_put(&shared, a);
    slab_pool_put(&shared, b);
    return a && b && a != b;
}

static void *keep_taking(void *unused)
{
    while (!atomic_load(&stop)) {
        void *things[32];
        if (!slab_pool_get_many(&shared, things, 32))
            for (unsigned i = 0; i < 32; i++)
                slab_pool_put(&shared, things[i]);
    }
    return NULL;
}

static void a_child_goes_on(void **state)
{
    // With the lock itself taken, as a fork during another thread's call leaves it to the child.
    lock_take(&shared.lock);
    fork_testing_child(usable_in_child);
    lock_give(&shared.lock);
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, keep_taking, NULL), 0);
    for (unsigned i = 0; i < 20; i++) {
        fork_testing_child(usable_in_child);
        sched_yield();
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_apart_and_aligned),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(many_or_none),
        cmocka_unit_test(what_came_back_last_goes_first),
        cmocka_unit_test(no_memory_is_null),
        cmocka_unit_test(threads_share_a_pool),
        cmocka_unit_test(a_child_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
