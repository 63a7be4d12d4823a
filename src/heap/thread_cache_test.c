// SPDX-License-Identifier: MIT
#include "heap/thread_cache.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "heap/guarded.h"

static struct thread_cache *fresh(void)
{
    struct thread_cache *s = guarded_map(sizeof *s);
    assert_non_null(s);
    thread_cache_init(s);
    assert_true(thread_cache_valid(s));
    return s;
}

static struct thread_cache_bin *bin_for(struct thread_cache *s, size_t size)
{
    return &s->bins[thread_cache_number(size)];
}

static void put(struct thread_cache *s, size_t size, uint64_t word)
{
    struct thread_cache_bin *b = bin_for(s, size);
    if (thread_cache_is_full(b) && !thread_cache_make_room(s, b))
        thread_cache_drop_older(b);
    thread_cache_put(b, word);
}

static void good_sizes_share_bins_by_room(void **state)
{
    for (size_t size = 0; size <= THREAD_CACHE_LARGEST; size++) {
        assert_true(thread_cache_number(size) < THREAD_CACHE_BINS);
        assert_true(thread_cache_room(size) >= size &&
                    thread_cache_room(size) < size + (size <= THREAD_CACHE_FINE ? 16 : THREAD_CACHE_STEP));
        assert_int_equal(thread_cache_number(thread_cache_room(size)), thread_cache_number(size));
        assert_true(size > THREAD_CACHE_FINE || thread_cache_fine_number(size) == thread_cache_number(size));
        assert_true(!size || thread_cache_number(size) - thread_cache_number(size - 1) ==
                                 (thread_cache_room(size) != thread_cache_room(size - 1)));
    }
}

// While a bin grows, words come back newest first, and no bin takes another's.
static void good_last_in_first_out(void **state)
{
    struct thread_cache *s = fresh();
    assert_int_equal(thread_cache_take(bin_for(s, 40)), 0);
    for (uint64_t i = 1; i <= 3000; i++) {
        put(s, 40, i);
        put(s, 33, i << 20);
        put(s, 41, i << 40);
    }
    assert_true(thread_cache_valid(s));
    for (uint64_t i = 3000; i >= 1; i--)
        assert_int_equal(thread_cache_take(bin_for(s, 56)), i << 40);
    assert_int_equal(thread_cache_take(bin_for(s, 64)), 0);
    for (uint64_t i = 3000; i >= 1; i--) {
        assert_int_equal(thread_cache_take(bin_for(s, 33)), i << 20);
        assert_int_equal(thread_cache_take(bin_for(s, 33)), i);
    }
    assert_int_equal(thread_cache_take(bin_for(s, 48)), 0);
    assert_int_equal(thread_cache_take(bin_for(s, 64)), 0);
    assert_true(thread_cache_valid(s));
    thread_cache_forget(s);
    assert_true(thread_cache_valid(s));
}

// Breaks each equation of thread_cache.h.
static void bad_shelves_are_not_valid(void **state)
{
    struct thread_cache *s = fresh();
    struct thread_cache_bin *b = bin_for(s, 40), was;
    for (int grown = 0; grown < 2; grown++) {
        for (uint64_t i = 1; i <= (grown ? 1000 : 3); i++)
            put(s, 40, i);
        assert_int_equal(b->low != s->small[thread_cache_number(40)] + 1, grown);
        assert_true(thread_cache_valid(s));
        was = *b;
        b->low[1] = 0;
        assert_false(thread_cache_valid(s));
        b->low[1] = 2;
        b->low[-1] = 1;
        assert_false(thread_cache_valid(s));
        b->low[-1] = 0;
        b->top = b->end + 2;
        assert_false(thread_cache_valid(s));
        *b = was;
        b->end--;
        assert_false(thread_cache_valid(s));
        *b = was;
        b->last--;
        assert_false(thread_cache_valid(s));
        *b = was;
        s->held++;
        assert_false(thread_cache_valid(s));
        s->held--;
        assert_true(thread_cache_valid(s));
    }
    thread_cache_forget(s);
}

// A signal handler fills the bin after its thread saw room for one more: there is room for one, and then the
// bin is full.
static void good_filled_by_a_handler(void **state)
{
    struct thread_cache *s = fresh();
    struct thread_cache_bin *b = bin_for(s, 40);
    for (int grown = 0; grown < 2; grown++) {
        while (!thread_cache_is_full(b))
            thread_cache_put(b, 7);
        thread_cache_put(b, 8);
        assert_true(thread_cache_is_full(b));
        assert_true(thread_cache_valid(s));
        assert_true(grown || thread_cache_make_room(s, b));
    }
    thread_cache_forget(s);
}

// Returns the most words that a bin held.
static uint64_t put_too_many(size_t size)
{
    struct thread_cache *s = fresh();
    uint64_t most = 0;
    for (uint64_t i = 1; i <= 100000; i++) {
        put(s, size, i);
        uint64_t held = (uint64_t)(bin_for(s, size)->top - bin_for(s, size)->low);
        most = held > most ? held : most;
    }
    assert_true(thread_cache_valid(s));
    for (uint64_t i = 100000, word; (word = thread_cache_take(bin_for(s, size))); i--)
        assert_int_equal(word, i);
    thread_cache_forget(s);
    return most;
}

static void bad_too_much_is_dropped_oldest_first(void **state)
{
    uint64_t fine = put_too_many(THREAD_CACHE_FINE), coarse = put_too_many(THREAD_CACHE_LARGEST);
    assert_true(fine >= 100 && fine * THREAD_CACHE_FINE <= THREAD_CACHE_THREAD_BYTES);
    assert_true(coarse >= 32 && coarse * THREAD_CACHE_LARGEST <= 1 << 18);
}

// The caches of all threads together are bounded, and what one gives back another may take.
static void bad_process_holds_too_much(void **state)
{
    enum { THREADS = THREAD_CACHE_ALL_BYTES / THREAD_CACHE_THREAD_BYTES + 8 };
    static struct thread_cache *caches[THREADS];
    uint64_t all = 0;
    for (int i = 0; i < THREADS; i++) {
        caches[i] = fresh();
        for (size_t size = 16; size <= THREAD_CACHE_LARGEST; size += 16)
            for (uint64_t word = 1; word < 3000; word++)
                put(caches[i], size, word);
        assert_true(thread_cache_valid(caches[i]));
        all += caches[i]->held;
    }
    assert_true(all > THREAD_CACHE_ALL_BYTES / 2 && all <= THREAD_CACHE_ALL_BYTES);
    assert_true(caches[0]->held > THREAD_CACHE_THREAD_BYTES / 2);
    assert_true(caches[THREADS - 1]->held < THREAD_CACHE_THREAD_BYTES / 100);
    for (int i = 0; i < THREADS; i++)
        thread_cache_forget(caches[i]);
    put(caches[0], 16, 1);
    for (uint64_t word = 1; word < 500; word++)
        put(caches[0], 16, word);
    assert_true(caches[0]->held > 0);
}

// One thread allocates, the other frees: each word gets through once.
static _Atomic uint64_t sum_put, sum_taken;
static atomic_bool done;

static void *consume(void *arg)
{
    struct thread_cache *s = fresh();
    struct thread_cache_bin *b = bin_for(s, 100);
    for (uint64_t word; (word = thread_cache_take(bin_for(s, 100))) || thread_cache_refill(s, b) || !done;)
        sum_taken += word;
    return NULL;
}

static void good_depot(void **state)
{
    struct thread_cache *s = fresh();
    pthread_t consumer;
    thread_cache_start();
    pthread_create(&consumer, NULL, consume, NULL);
    for (uint64_t i = 1; i <= 200000 || !sum_taken; i++) {
        struct thread_cache_bin *b = bin_for(s, 100);
        if (thread_cache_is_full(b) && !thread_cache_make_room(s, b)) {
            for (size_t k = 0; k < thread_cache_older(b); k++)
                sum_put -= b->low[k];  // given back
            thread_cache_drop_older(b);
        }
        thread_cache_put(b, i);
        sum_put += i;
    }
    done = true;
    pthread_join(consumer, NULL);
    uint64_t through = sum_taken;
    struct thread_cache *other = fresh();
    for (uint64_t word;
         (word = thread_cache_take(bin_for(other, 100))) || thread_cache_refill(other, bin_for(other, 100));)
        through += word;
    for (uint64_t word; (word = thread_cache_take(bin_for(s, 100)));)
        through += word;
    assert_int_equal(through, sum_put);
    assert_true(thread_cache_valid(s) && thread_cache_valid(other));
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
