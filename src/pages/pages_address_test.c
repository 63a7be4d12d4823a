// SPDX-License-Identifier: MIT
#include "pages/pages_address.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned pieces_left;
static uint64_t most, next_base, asked[64];
static unsigned nasked;

// A driver that reserves a limited number of pieces of limited size.
static int reserve(uint64_t size, uint64_t *base)
{
    if (nasked < 64)
        asked[nasked++] = size;
    if (!pieces_left || size > most)
        return -1;
    pieces_left--;
    *base = next_base;
    next_base += 2 * size;
    return 0;
}

static struct pages_address fresh(unsigned pieces, uint64_t largest)
{
    pieces_left = pieces;
    most = largest;
    next_base = (uint64_t)1 << 40;
    nasked = 0;
    return (struct pages_address)PAGES_ADDRESS_INIT(reserve);
}

static uint64_t take(struct pages_address *a, uint32_t units, bool expect_again)
{
    uint64_t base = 0;
    bool again;
    assert_int_equal(pages_address_take(a, units, &base, &again), 0);
    assert_int_equal(again, expect_again);
    assert_int_equal(base % PAGES_ADDRESS_UNIT, 0);
    return base;
}

static void never_twice(void **state)
{
    struct pages_address a = fresh(3, (uint64_t)1 << 33);
    uint64_t last = 0;
    // Each piece has 2^12 units, of which the first stays free.
    for (unsigned i = 0; i < 3 * 4095 / 3; i++) {
        uint64_t base = take(&a, 3, false);
        assert_true(base >= last + (last ? 3 * PAGES_ADDRESS_UNIT : 0));
        last = base;
        pages_address_give(&a, base, 3);
    }
    assert_int_equal(a.pieces, 3);
    assert_int_equal(a.reused, 0);
    assert_true(pages_address_valid(&a));
}

static void asks_for_less(void **state)
{
    struct pages_address a = fresh(1, (uint64_t)1 << 40);
    take(&a, 1, false);
    assert_int_equal(nasked, 3);
    assert_true(asked[0] == (uint64_t)1 << 42 && asked[2] == (uint64_t)1 << 40);
    struct pages_address none = fresh(0, 0);
    uint64_t base;
    bool again;
    assert_int_equal(pages_address_take(&none, 1, &base, &again), -ENOMEM);
}

static void nothing_before_the_first(void **state)
{
    struct pages_address a = fresh(1, (uint64_t)1 << 40);
    assert_int_equal(take(&a, 5, false), ((uint64_t)1 << 40) + PAGES_ADDRESS_UNIT);
}

static void oldest_first(void **state)
{
    struct pages_address a = fresh(1, (uint64_t)1 << 32);
    uint64_t p[2047];
    for (unsigned i = 0; i < 1023; i++)
        p[i] = take(&a, 2, false);
    // No two of these are neighbours.
    for (unsigned i = 100; i > 0; i -= 2)
        pages_address_give(&a, p[i], 2);
    uint64_t rest = take(&a, 1, false);
    assert_int_equal(rest, p[1022] + 2 * PAGES_ADDRESS_UNIT);
    for (unsigned i = 100; i > 0; i -= 2)
        assert_int_equal(take(&a, 2, true), p[i]);
    assert_int_equal(a.reused, 50);
    uint64_t base;
    bool again;
    assert_int_equal(pages_address_take(&a, 2, &base, &again), -ENOMEM);
}

static void cuts_and_joins(void **state)
{
    struct pages_address a = fresh(1, (uint64_t)1 << 32);
    uint64_t p[1023];
    for (unsigned i = 0; i < 1023; i++)
        p[i] = take(&a, 2, false);
    take(&a, 1, false);
    // Neighbours that were given back at different times.
    pages_address_give(&a, p[10], 2);
    pages_address_give(&a, p[20], 2);
    pages_address_give(&a, p[12], 2);
    pages_address_give(&a, p[30], 2);
    pages_address_give(&a, p[11], 2);
    assert_true(pages_address_valid(&a));
    assert_int_equal(take(&a, 5, true), p[10]);
    assert_true(pages_address_valid(&a));
    assert_int_equal(take(&a, 1, true), p[20]);
    assert_int_equal(take(&a, 1, true), p[20] + PAGES_ADDRESS_UNIT);
    assert_int_equal(take(&a, 1, true), p[12] + PAGES_ADDRESS_UNIT);
    assert_int_equal(take(&a, 2, true), p[30]);
    uint64_t base;
    bool again;
    assert_int_equal(pages_address_take(&a, 1, &base, &again), -ENOMEM);
}

static void what_comes_back_twice_is_noticed(void **state)
{
    struct pages_address a = fresh(1, (uint64_t)1 << 32);
    uint64_t p[4];
    for (unsigned i = 0; i < 4; i++)
        p[i] = take(&a, 2, false);
    pages_address_give(&a, p[0], 2);
    pages_address_give(&a, p[2], 2);
    assert_true(pages_address_valid(&a));
    pages_address_give(&a, p[0], 1);
    assert_false(pages_address_valid(&a));
    a.last--;
    assert_true(pages_address_valid(&a));
    pages_address_give(&a, p[3] + 2 * PAGES_ADDRESS_UNIT, 1);  // never handed out
    assert_false(pages_address_valid(&a));
    a.last--;
    a.end = a.next - 1;
    assert_false(pages_address_valid(&a));
}

// Compared with a map of units: what is handed out is free at that moment, and nothing is lost.
static void random_use(void **state)
{
    enum { UNITS = 4096, LIVE = 300 };
    static bool used[2 * UNITS];
    struct {
        uint64_t base;
        uint32_t units;
    } live[LIVE] = {{0, 0}};
    struct pages_address a = fresh(2, (uint64_t)UNITS / 2 * PAGES_ADDRESS_UNIT);
    unsigned seed = 7, refused = 0;
    memset(used, 0, sizeof used);
    for (unsigned i = 0; i < unit_cases(20000); i++) {
        unsigned at = (unsigned)rand_r(&seed) % LIVE;
        uint64_t first = (live[at].base - ((uint64_t)1 << 40)) / PAGES_ADDRESS_UNIT;
        for (uint32_t u = 0; u < live[at].units; u++)
            used[first + u] = false;
        if (live[at].units)
            pages_address_give(&a, live[at].base, live[at].units);
        live[at].units = 1 + (unsigned)rand_r(&seed) % 12;
        bool again;
        if (pages_address_take(&a, live[at].units, &live[at].base, &again)) {
            live[at].units = 0;
            refused++;
            continue;
        }
        first = (live[at].base - ((uint64_t)1 << 40)) / PAGES_ADDRESS_UNIT;
        for (uint32_t u = 0; u < live[at].units; u++) {
            assert_false(used[first + u]);
            used[first + u] = true;
        }
    }
    assert_true(refused < 100);
    assert_true(a.reused > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_twice),    cmocka_unit_test(asks_for_less),
        cmocka_unit_test(oldest_first),   cmocka_unit_test(nothing_before_the_first),
        cmocka_unit_test(cuts_and_joins), cmocka_unit_test(what_comes_back_twice_is_noticed),
        cmocka_unit_test(random_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
