// SPDX-License-Identifier: MIT
// Pages in which no buffer is left, against a model: each is taken once, the oldest first, and none that has
// a buffer.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "shadow/shadow_empty.h"

enum { PAGES = 100, STEPS = 20000, BUFFERS = 60, KEPT = 5 };

static struct shadow_empty *new_empty(void)
{
    struct shadow_empty *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->live = calloc(PAGES, sizeof *e->live);
    e->queued = calloc(PAGES, 1);
    e->pages = calloc(SHADOW_EMPTY_MOST, sizeof *e->pages);
    assert_true(e->live && e->queued && e->pages);
    return e;
}

static void free_empty(struct shadow_empty *e)
{
    free(e->live);
    free(e->queued);
    free(e->pages);
    free(e);
}

static void good_order(void **state)
{
    struct shadow_empty *e = new_empty();
    uint64_t page;
    shadow_empty_made(e, 3, 5);
    shadow_empty_made(e, 5, 6);
    assert_false(shadow_empty_take(e, 0, &page));
    shadow_empty_freed(e, 3, 5);
    assert_false(shadow_empty_take(e, 2, &page));
    assert_true(shadow_empty_take(e, 1, &page) && page == 3);
    shadow_empty_made(e, 4, 4);
    assert_false(shadow_empty_take(e, 0, &page));
    shadow_empty_freed(e, 4, 4);
    shadow_empty_freed(e, 5, 6);
    assert_true(shadow_empty_take(e, 0, &page) && page == 4);
    shadow_empty_put(e, 4);
    assert_true(shadow_empty_take(e, 0, &page) && page == 5);
    assert_true(shadow_empty_take(e, 0, &page) && page == 6);
    assert_true(shadow_empty_take(e, 0, &page) && page == 4);
    assert_false(shadow_empty_take(e, 0, &page));
    free_empty(e);
}

// The free of a buffer that was not seen changes nothing.
static void good_unseen(void **state)
{
    struct shadow_empty *e = new_empty();
    uint64_t page;
    shadow_empty_freed(e, 0, 9);
    assert_false(shadow_empty_take(e, 0, &page));
    free_empty(e);
}

static void good_random(void **state)
{
    struct shadow_empty *e = new_empty();
    struct {
        unsigned first, last;
        bool live;
    } buffers[BUFFERS] = {{0}};
    unsigned model[PAGES] = {0}, taken = 0;
    srand(4);
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)rand() % BUFFERS;
        uint64_t page;
        if (!buffers[i].live) {
            buffers[i].first = (unsigned)rand() % PAGES;
            buffers[i].last = buffers[i].first + (unsigned)rand() % (PAGES - buffers[i].first) / 10;
            shadow_empty_made(e, buffers[i].first, buffers[i].last);
        } else {
            shadow_empty_freed(e, buffers[i].first, buffers[i].last);
        }
        buffers[i].live = !buffers[i].live;
        for (unsigned p = buffers[i].first; p <= buffers[i].last; p++)
            model[p] += buffers[i].live ? 1 : -1u;
        if (rand() % 4 == 0 && shadow_empty_take(e, KEPT, &page)) {
            assert_int_equal(model[page], 0);
            assert_int_equal(e->queued[page], 0);
            taken++;
        }
        for (unsigned p = 0; p < PAGES; p++)
            assert_int_equal(e->live[p], model[p]);
        assert_true(e->count <= PAGES);
    }
    assert_true(taken > STEPS / 100);
    free_empty(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_order), cmocka_unit_test(good_unseen),
                                       cmocka_unit_test(good_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
