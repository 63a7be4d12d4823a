// SPDX-License-Identifier: MIT
#include "heap/block_list.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WORDS = 20000 };

static unsigned char seen[WORDS + 1], gone[WORDS + 1];
static uint64_t last;
static bool ordered;

static uint32_t seed = 5;

static uint32_t next(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

// Counts words, and removes each with probability 1 / *ctx; none if *ctx is 0.
static bool count(void *ctx, _Atomic uint64_t *words, size_t n)
{
    uint32_t one_of = *(uint32_t *)ctx;
    for (size_t i = 0; i < n; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);
        if (!word)
            continue;
        assert_in_range(word, 1, WORDS);
        assert_false(gone[word]);
        assert_int_equal(seen[word]++, 0);
        if (one_of && next() % one_of == 0) {
            gone[word] = 1;
            atomic_store_explicit(&words[i], 0, memory_order_relaxed);
        }
    }
    return true;
}

static size_t nodes_of(struct block_list *w)
{
    size_t n = 0;
    for (struct block_list_node *node = w->head.next; node; node = node->next)
        n++;
    return n;
}

static struct block_list *fresh(void)
{
    static struct block_list w;
    memset(&w, 0, sizeof w);
    block_list_init(&w);
    memset(gone, 0, sizeof gone);
    return &w;
}

static void empty(struct block_list *w)
{
    uint32_t one_of = 2;
    for (int i = 0; i < 12; i++) {
        memset(seen, 0, sizeof seen);
        block_list_pass(w, count, &one_of);
    }
    assert_true(nodes_of(w) <= 4);
    assert_true(block_list_valid(w));
}

static void fill(struct block_list *w)
{
    memset(gone, 0, sizeof gone);
    uint32_t all = 1;
    memset(seen, 0, sizeof seen);
    block_list_pass(w, count, &all);
    memset(gone, 0, sizeof gone);
    for (uint64_t word = 1; word <= WORDS; word++)
        block_list_add(w, word);
}

static void good_each_word_once_until_removed(void **state)
{
    struct block_list *w = fresh();
    uint32_t one_of = 10;
    assert_true(block_list_pass(w, count, &one_of));
    for (uint64_t word = 1; word <= WORDS; word++) {
        assert_int_equal(block_list_add(w, word), 0);
        if (word % 1500 == 0) {
            memset(seen, 0, sizeof seen);
            assert_true(block_list_pass(w, count, &one_of));
            for (uint64_t i = 1; i <= word; i++)
                assert_true(seen[i] || gone[i]);
            assert_true(block_list_valid(w));
        }
    }
    // When nearly all words are removed, so are nearly all nodes: neighbours were merged, and empty nodes
    // went back to the deliverer.
    empty(w);
    fill(w);
    uint64_t made = w->nodes;
    empty(w);
    fill(w);
    assert_true(w->nodes <= made + 4);
}

static bool newest_first(void *ctx, _Atomic uint64_t *words, size_t n)
{
    ordered &= n == 0 || words[n - 1] < last;
    last = n ? words[0] : last;
    return true;
}

static bool stop_at_once(void *ctx, _Atomic uint64_t *words, size_t n)
{
    ++*(int *)ctx;
    return false;
}

static void good_order_and_stop(void **state)
{
    struct block_list *w = fresh();
    for (uint64_t word = 1; word <= 5000; word++)
        block_list_add(w, word);
    last = UINT64_MAX;
    ordered = true;
    for (int i = 0; i < 3; i++, last = UINT64_MAX)
        block_list_pass(w, newest_first, NULL);
    assert_true(ordered);
    int visits = 0;
    assert_false(block_list_pass(w, stop_at_once, &visits));
    assert_int_equal(visits, 1);
}

static bool note_jumps(void *ctx, _Atomic uint64_t *words, size_t n)
{
    for (size_t i = 1; i < n; i++)
        *(size_t *)ctx += words[i] << BLOCK_LIST_KEY_SHIFT < words[i - 1] << BLOCK_LIST_KEY_SHIFT;
    return true;
}

// Words that came in any order are sorted by their lower bits after a pass, except those of the first node.
static void good_sorted(void **state)
{
    struct block_list *w = fresh();
    uint64_t sum = 0;
    for (int i = 0; i < BLOCK_LIST_ROOM * 20; i++) {
        uint64_t word = (uint64_t)next() << 32 | next() | 1;
        block_list_add(w, word);
        sum += word;
    }
    size_t jumps = 0;
    w->unsorted = true;
    block_list_pass(w, note_jumps, &jumps);
    assert_true(jumps > BLOCK_LIST_ROOM);
    jumps = 0;
    w->unsorted = false;
    block_list_pass(w, note_jumps, &jumps);
    assert_true(jumps > BLOCK_LIST_ROOM);
    jumps = 0;
    block_list_pass(w, note_jumps, &jumps);
    assert_true(jumps < BLOCK_LIST_ROOM);
    for (struct block_list_node *node = w->head.next; node; node = node->next)
        for (size_t i = 0; i < node->count; i++)
            sum -= node->words[i];
    assert_true(sum == 0);
}

static void *deliver(void *arg)
{
    for (uint64_t word = 1; word <= WORDS; word++) {
        block_list_add(arg, word);
        if (word % 700 == 0)
            sched_yield();
    }
    return NULL;
}

// A deliverer and a monitor at once: what the monitor did not remove is there in the end, and what it removed
// never comes back.
static void good_two_threads(void **state)
{
    for (uint32_t one_of = 2; one_of < 30; one_of += 3) {
        struct block_list *w = fresh();
        pthread_t deliverer;
        uint32_t none = 0;
        pthread_create(&deliverer, NULL, deliver, w);
        for (int i = 0; i < 60; i++) {
            memset(seen, 0, sizeof seen);
            block_list_pass(w, count, &one_of);
            sched_yield();
        }
        pthread_join(deliverer, NULL);
        memset(seen, 0, sizeof seen);
        block_list_pass(w, count, &none);
        for (int i = 1; i <= WORDS; i++)
            assert_int_equal(seen[i], !gone[i]);
        assert_true(block_list_valid(w));
    }
}

// Breaks each equation of block_list.h that holds at any time.
static void bad_warehouses_are_not_valid(void **state)
{
    struct block_list *w = fresh();
    for (uint64_t word = 1; word <= 3 * BLOCK_LIST_ROOM; word++)
        block_list_add(w, word);
    struct block_list_node *first = w->head.next;
    assert_true(block_list_valid(w));
    first->count = 0;
    assert_false(block_list_valid(w));
    first->count = BLOCK_LIST_ROOM + 1;
    assert_false(block_list_valid(w));
    first->count = BLOCK_LIST_ROOM;
    w->head.next = first->next;  // lost
    assert_false(block_list_valid(w));
    first->next = NULL;
    w->spare = first;
    assert_true(block_list_valid(w));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_each_word_once_until_removed),
        cmocka_unit_test(good_order_and_stop),
        cmocka_unit_test(good_sorted),
        cmocka_unit_test(good_two_threads),
        cmocka_unit_test(bad_warehouses_are_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
