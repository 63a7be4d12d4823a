// SPDX-License-Identifier: MIT
// The counts of launches, from several threads.
#include "launch/launch_ring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 4, LAUNCHES = 20000 };

static int a, b;
static const struct graph_names graph = {.others = true};

static int setup(void **state)
{
    memset(&launch_ring, 0, sizeof launch_ring);
    return 0;
}

static void *launch_many(void *function)
{
    for (unsigned i = 0; i < LAUNCHES; i++) {
        if (i % 4)
            launch_ring_note(function);
        else
            launch_ring_note_graph(&graph);
        launch_ring_made();
    }
    return NULL;
}

// While others launch, every result of launch_ring_all_made was true at that moment; at the end all launches
// are counted.
static void threads_at_once(void **state)
{
    pthread_t threads[THREADS];
    uint64_t before = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, i % 2 ? &a : &b), 0);
    for (unsigned i = 0; i < LAUNCHES; i++) {
        uint64_t all = launch_ring_all_made();
        assert_true(!all || all >= before);
        before = all ? all : before;
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(launch_ring_valid());
    assert_int_equal(launch_ring_all_made(), THREADS * LAUNCHES);
    assert_int_equal(launch_ring.graphs, THREADS * LAUNCHES / 4);
}

static void one_and_several(void **state)
{
    assert_true(launch_ring_valid());
    for (unsigned i = 0; i < 2 * LAUNCH_RING_KEPT; i++) {
        launch_ring_note(&a);
        assert_false(launch_ring_valid());  // it is under way
        launch_ring_made();
        assert_true(launch_ring_valid());
    }
    assert_true(launch_ring_has_all_since(0));
    launch_ring_note(&b);
    launch_ring_made();
    assert_true(launch_ring_valid());
    assert_false(launch_ring_has_all_since(0));
}

static void knows_what_is_wrong(void **state)
{
    launch_ring_note(&a);
    launch_ring_made();
    assert_true(launch_ring_valid());
    launch_ring.graphs = 2;
    assert_false(launch_ring_valid());
    launch_ring.graphs = 1;
    launch_ring.made = 2;
    assert_false(launch_ring_valid());
    launch_ring.made = 1;
    launch_ring.function[0] = &b;  // without a note that there are two
    assert_false(launch_ring_valid());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_at_once, setup),
        cmocka_unit_test_setup(one_and_several, setup),
        cmocka_unit_test_setup(knows_what_is_wrong, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
