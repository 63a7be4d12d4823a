// SPDX-License-Identifier: MIT
// When launches are evaluated that nothing else answers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "prove/worth.h"

// Makes launches that are evaluated if they may be. Returns how many were.
static unsigned launch(struct worth *w, unsigned n, uint32_t ninsns, uint64_t threads, uint32_t accesses)
{
    unsigned evaluated = 0;
    for (unsigned i = 0; i < n; i++) {
        if (!worth_evaluating(w)) {
            worth_refused(w);
            continue;
        }
        evaluated++;
        worth_spent(w, ninsns);
        if (accesses)
            worth_won(w, threads, accesses);
    }
    return evaluated;
}

static void proves_nothing(void **state)
{
    (void)state;
    struct worth w = worth_first();
    assert_in_range(launch(&w, 1000, 4096, 1 << 20, 0), 16, 18);
    assert_in_range(launch(&w, 100 * WORTH_AGAIN, 4096, 1 << 20, 0), 98, 100);
    struct worth small = worth_first();
    assert_in_range(launch(&small, 100000, 16, 1 << 20, 0), 4096, 4096 + 200);
}

static void pays(void **state)
{
    (void)state;
    struct worth w = worth_first();
    assert_int_equal(launch(&w, 100000, 200, 1 << 16, 4), 100000);
    // What a launch wins is limited, so that it is soon noticed that others win nothing.
    worth_won(&w, 1ULL << 62, UINT32_MAX);
    worth_won(&w, UINT64_MAX, UINT32_MAX);
    assert_in_range(launch(&w, 1000, 4096, 1, 0), 64, 66);
}

// A kernel whose launches begin to be proved later is evaluated again.
static void pays_later(void **state)
{
    (void)state;
    struct worth w = worth_first();
    launch(&w, 10000, 4096, 1 << 20, 0);
    assert_false(worth_evaluating(&w));
    launch(&w, WORTH_AGAIN, 4096, 1 << 24, 8);
    assert_true(launch(&w, 100, 4096, 1 << 24, 8) >= 99);
    // Answers that cost nothing count too.
    struct worth other = worth_first();
    launch(&other, 10000, 4096, 1, 0);
    worth_won(&other, 1 << 20, 8);
    assert_true(worth_evaluating(&other));
}

// What is won aside counts as what is won, once it is settled, and no more than the most.
static void aside(void **state)
{
    (void)state;
    struct worth w = {.credit = 0}, like = {.credit = 0};
    for (int i = 0; i < 3; i++) {
        worth_won_aside(&w, 4096, 2);
        worth_won(&like, 4096, 2);
    }
    assert_false(worth_evaluating(&w));
    worth_settle(&w);
    assert_true(worth_evaluating(&w));
    assert_int_equal(w.credit, like.credit);
    worth_settle(&w);
    assert_int_equal(w.credit, like.credit);
    worth_won_aside(&w, UINT64_MAX, 7);
    worth_won_aside(&w, UINT64_MAX, 7);
    worth_settle(&w);
    assert_int_equal(w.credit, WORTH_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(proves_nothing), cmocka_unit_test(pays),
                                       cmocka_unit_test(pays_later), cmocka_unit_test(aside)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
