// SPDX-License-Identifier: MIT
#include "heap/shelf.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/guarded.h"

static struct shelf *fresh(void)
{
    struct shelf *s = guarded_map(sizeof *s);
    assert_non_null(s);
    shelf_init(s);
    assert_true(shelf_valid(s));
    return s;
}

static struct shelf_bin *bin_for(struct shelf *s, size_t size)
{
    return &s->bins[shelf_number(size)];
}

static void put(struct shelf *s, size_t size, uint64_t word)
{
    struct shelf_bin *b = bin_for(s, size);
    if (shelf_is_full(b) && !shelf_make_room(s, b))
        shelf_drop_older(b);
    shelf_put(b, word);
}

static void good_sizes_share_bins_by_room(void **state)
{
    for (size_t size = 0; size <= SHELF_LARGEST; size++) {
        assert_true(shelf_number(size) < SHELF_BINS);
        assert_true(shelf_room(size) >= size &&
                    shelf_room(size) < size + (size <= SHELF_FINE ? 16 : SHELF_STEP));
        assert_int_equal(shelf_number(shelf_room(size)), shelf_number(size));
        assert_true(size > SHELF_FINE || shelf_fine_number(size) == shelf_number(size));
        assert_true(!size || shelf_number(size) - shelf_number(size - 1) ==
                                 (shelf_room(size) != shelf_room(size - 1)));
    }
}

// Through its growth, words come back newest first, and no bin takes another's.
static void good_last_in_first_out(void **state)
{
    struct shelf *s = fresh();
    assert_int_equal(shelf_take(bin_for(s, 40)), 0);
    for (uint64_t i = 1; i <= 3000; i++) {
        put(s, 40, i);
        put(s, 33, i << 20);
        put(s, 41, i << 40);
    }
    assert_true(shelf_valid(s));
    for (uint64_t i = 3000; i >= 1; i--)
        assert_int_equal(shelf_take(bin_for(s, 56)), i << 40);
    assert_int_equal(shelf_take(bin_for(s, 64)), 0);
    for (uint64_t i = 3000; i >= 1; i--) {
        assert_int_equal(shelf_take(bin_for(s, 33)), i << 20);
        assert_int_equal(shelf_take(bin_for(s, 33)), i);
    }
    assert_int_equal(shelf_take(bin_for(s, 48)), 0);
    assert_int_equal(shelf_take(bin_for(s, 64)), 0);
    assert_true(shelf_valid(s));
    shelf_forget(s);
    assert_true(shelf_valid(s));
}

// Each equation of shelf.h, broken.
static void bad_shelves_are_not_valid(void **state)
{
    struct shelf *s = fresh();
    struct shelf_bin *b = bin_for(s, 40), was;
    for (int grown = 0; grown < 2; grown++) {
        for (uint64_t i = 1; i <= (grown ? 1000 : 3); i++)
            put(s, 40, i);
        assert_int_equal(b->low != s->small[shelf_number(40)] + 1, grown);
        assert_true(shelf_valid(s));
        was = *b;
        b->low[1] = 0;
        assert_false(shelf_valid(s));
        b->low[1] = 2;
        b->low[-1] = 1;
        assert_false(shelf_valid(s));
        b->low[-1] = 0;
        b->top = b->end + 2;
        assert_false(shelf_valid(s));
        *b = was;
        b->end--;
        assert_false(shelf_valid(s));
        *b = was;
        b->last--;
        assert_false(shelf_valid(s));
        *b = was;
        s->held++;
        assert_false(shelf_valid(s));
        s->held--;
        assert_true(shelf_valid(s));
    }
    shelf_forget(s);
}

// A signal handler fills the bin after its thread saw room for one more: there is, and then it is full.
static void good_filled_by_a_handler(void **state)
{
    struct shelf *s = fresh();
    struct shelf_bin *b = bin_for(s, 40);
    for (int grown = 0; grown < 2; grown++) {
        while (!shelf_is_full(b))
            shelf_put(b, 7);
        shelf_put(b, 8);
        assert_true(shelf_is_full(b));
        assert_true(shelf_valid(s));
        assert_true(grown || shelf_make_room(s, b));
    }
    shelf_forget(s);
}

// The most that a bin held.
static uint64_t put_too_many(size_t size)
{
    struct shelf *s = fresh();
    uint64_t most = 0;
    for (uint64_t i = 1; i <= 100000; i++) {
        put(s, size, i);
        uint64_t held = (uint64_t)(bin_for(s, size)->top - bin_for(s, size)->low);
        most = held > most ? held : most;
    }
    assert_true(shelf_valid(s));
    for (uint64_t i = 100000, word; (word = shelf_take(bin_for(s, size))); i--)
        assert_int_equal(word, i);
    shelf_forget(s);
    return most;
}

static void bad_too_much_is_dropped_oldest_first(void **state)
{
    uint64_t fine = put_too_many(SHELF_FINE), coarse = put_too_many(SHELF_LARGEST);
    assert_true(fine >= 100 && fine * SHELF_FINE <= SHELF_THREAD_BYTES);
    assert_true(coarse >= 32 && coarse * SHELF_LARGEST <= 1 << 18);
}

// What threads hold together is bounded, and what one gives back another may have.
static void bad_process_holds_too_much(void **state)
{
    enum { THREADS = SHELF_ALL_BYTES / SHELF_THREAD_BYTES + 8 };
    static struct shelf *shelves[THREADS];
    uint64_t all = 0;
    for (int i = 0; i < THREADS; i++) {
        shelves[i] = fresh();
        for (size_t size = 16; size <= SHELF_LARGEST; size += 16)
            for (uint64_t word = 1; word < 3000; word++)
                put(shelves[i], size, word);
        assert_true(shelf_valid(shelves[i]));
        all += shelves[i]->held;
    }
    assert_true(all > SHELF_ALL_BYTES / 2 && all <= SHELF_ALL_BYTES);
    assert_true(shelves[0]->held > SHELF_THREAD_BYTES / 2);
    assert_true(shelves[THREADS - 1]->held < SHELF_THREAD_BYTES / 100);
    for (int i = 0; i < THREADS; i++)
        shelf_forget(shelves[i]);
    put(shelves[0], 16, 1);
    for (uint64_t word = 1; word < 500; word++)
        put(shelves[0], 16, word);
    assert_true(shelves[0]->held > 0);
}

// One allocates, the other frees: each word gets through once.
static _Atomic uint64_t sum_put, sum_taken;
static atomic_bool done;

static void *consume(void *arg)
{
    struct shelf *s = fresh();
    struct shelf_bin *b = bin_for(s, 100);
    for (uint64_t word; (word = shelf_take(bin_for(s, 100))) || shelf_refill(s, b) || !done;)
        sum_taken += word;
    return NULL;
}

static void good_depot(void **state)
{
    struct shelf *s = fresh();
    pthread_t consumer;
    shelf_start();
    pthread_create(&consumer, NULL, consume, NULL);
    for (uint64_t i = 1; i <= 200000 || !sum_taken; i++) {
        struct shelf_bin *b = bin_for(s, 100);
        if (shelf_is_full(b) && !shelf_make_room(s, b)) {
            for (size_t k = 0; k < shelf_older(b); k++)
                sum_put -= b->low[k];  // given back
            shelf_drop_older(b);
        }
        shelf_put(b, i);
        sum_put += i;
    }
    done = true;
    pthread_join(consumer, NULL);
    uint64_t through = sum_taken;
    struct shelf *other = fresh();
    for (uint64_t word; (word = shelf_take(bin_for(other, 100))) || shelf_refill(other, bin_for(other, 100));)
        through += word;
    for (uint64_t word; (word = shelf_take(bin_for(s, 100)));)
        through += word;
    assert_int_equal(through, sum_put);
    assert_true(shelf_valid(s) && shelf_valid(other));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_sizes_share_bins_by_room),
        cmocka_unit_test(good_last_in_first_out),
        cmocka_unit_test(good_filled_by_a_handler),
        cmocka_unit_test(bad_shelves_are_not_valid),
        cmocka_unit_test(bad_too_much_is_dropped_oldest_first),
        cmocka_unit_test(bad_process_holds_too_much),
        cmocka_unit_test(good_depot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
