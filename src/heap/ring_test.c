// SPDX-License-Identifier: MIT
#include "heap/ring.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void good_order_and_growth(void **state)
{
    struct ring_list l;
    uint64_t words[7], next_in = 1, next_out = 1;
    assert_int_equal(ring_init(&l, 4), 0);
    assert_true(ring_empty(&l));
    for (int turn = 0; turn < 1000; turn++) {
        for (int i = 0; i < turn % 13; i++)
            assert_int_equal(ring_push(&l, next_in++), 0);
        assert_true(ring_valid(&l));
        size_t n = ring_pop(&l, words, (size_t)(turn % 8));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(words[i], next_out++);
        assert_true(ring_valid(&l));
    }
    for (size_t n; (n = ring_pop(&l, words, 7));)
        for (size_t i = 0; i < n; i++)
            assert_int_equal(words[i], next_out++);
    assert_int_equal(next_in, next_out);
    assert_true(ring_empty(&l));
    assert_ptr_equal(l.in, l.out);
    ring_free(&l);
}

static void good_full_ring_makes_a_larger_one(void **state)
{
    struct ring_list l;
    uint64_t words[64];
    ring_init(&l, 4);
    struct ring *first = l.in;
    for (uint64_t i = 0; i < 4; i++)
        ring_push(&l, i);
    assert_ptr_equal(l.in, first);
    ring_push(&l, 4);
    assert_ptr_not_equal(l.in, first);
    assert_int_equal(l.in->mask, 7);
    assert_int_equal(ring_pop(&l, words, 64), 5);
    assert_int_equal(words[4], 4);
    ring_free(&l);
}

// Breaks each equation of ring.h.
static void bad_rings_are_not_valid(void **state)
{
    struct ring_list l;
    ring_init(&l, 4);
    for (uint64_t i = 1; i <= 5; i++)
        ring_push(&l, i);
    struct ring *first = l.out, *second = l.in;
    assert_true(ring_valid(&l));
    first->taken = 5;  // more than were put
    assert_false(ring_valid(&l));
    first->taken = 0;
    first->put = 5;  // more than there is room for
    assert_false(ring_valid(&l));
    first->put = 4;
    first->taken_seen = 1;  // before it was taken
    assert_false(ring_valid(&l));
    first->taken_seen = 0;
    second->taken = 1;  // before the first is empty
    assert_false(ring_valid(&l));
    second->taken = 0;
    second->mask = 15;
    assert_false(ring_valid(&l));
    second->mask = 7;
    l.in = first;
    assert_false(ring_valid(&l));
    l.in = second;
    assert_true(ring_valid(&l));
    ring_free(&l);
}

enum { WORDS = 300000 };

static void *produce(void *arg)
{
    struct ring_list *l = arg;
    for (uint64_t i = 1; i <= WORDS; i++) {
        ring_push(l, i);
        if (i % 5000 == 0)
            sched_yield();
    }
    return NULL;
}

static void good_two_threads(void **state)
{
    struct ring_list l;
    uint64_t words[33], expected = 1;
    pthread_t producer;
    ring_init(&l, 2);
    pthread_create(&producer, NULL, produce, &l);
    while (expected <= WORDS) {
        size_t n = ring_pop(&l, words, expected % 32 + 1);
        for (size_t i = 0; i < n; i++)
            assert_int_equal(words[i], expected++);
        if (!n)
            sched_yield();
    }
    pthread_join(producer, NULL);
    assert_true(ring_empty(&l));
    assert_true(ring_valid(&l));
    ring_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_order_and_growth),
        cmocka_unit_test(good_full_ring_makes_a_larger_one),
        cmocka_unit_test(bad_rings_are_not_valid),
        cmocka_unit_test(good_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
