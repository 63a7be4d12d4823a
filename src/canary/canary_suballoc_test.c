// SPDX-License-Identifier: MIT
// Ranges of regions, compared with a map of every unit.
#include "canary/canary_suballoc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "core/slab_pool.h"

enum { UNITS = 256, REGIONS = 3, GAP = 1 << 20, MANY = 200 };

static uint64_t region(int i)
{
    return 0x10000000u + (uint64_t)i * (UNITS * CANARY_SUBALLOC_UNIT + GAP);
}

static void gives_what_fits(void **state)
{
    struct canary_suballoc s = {0};
    assert_int_equal(canary_suballoc_take(&s, 512), 0);
    assert_int_equal(canary_suballoc_add(&s, region(0), 4096), 0);
    assert_int_equal(canary_suballoc_take(&s, 8192), 0);
    assert_int_equal(canary_suballoc_take(&s, 4096), region(0));
    assert_int_equal(canary_suballoc_take(&s, 512), 0);
    canary_suballoc_give(&s, region(0), 4096);
    assert_int_equal(canary_suballoc_largest(&s), 4096);
    assert_int_equal(canary_suballoc_take(&s, 512), region(0));
    assert_int_equal(s.used, 512);
    assert_int_equal(canary_suballoc_largest(&s), 4096 - 512);
    assert_true(canary_suballoc_valid(&s));
    canary_suballoc_clear(&s);
    assert_true(canary_suballoc_valid(&s));
    assert_int_equal(s.bytes, 0);
}

static void neighbours_become_one(void **state)
{
    struct canary_suballoc s = {0};
    uint64_t at[4], bytes = 0;
    assert_int_equal(canary_suballoc_add(&s, region(0), 4 * 512), 0);
    for (int i = 0; i < 4; i++)
        at[i] = canary_suballoc_take(&s, 512);
    assert_int_equal(canary_suballoc_remove_empty(&s, &bytes), 0);
    static const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 2, 1, 3}, {1, 3, 0, 2}};
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        for (int i = 0; i < 4; i++)
            canary_suballoc_give(&s, at[orders[k][i]], 512);
        assert_int_equal(canary_suballoc_empty(&s, NULL, 0), 4 * 512);
        assert_int_equal(canary_suballoc_take(&s, 4 * 512), region(0));
        canary_suballoc_give(&s, region(0), 4 * 512);
        for (int i = 0; i < 4; i++)
            at[i] = canary_suballoc_take(&s, 512);
    }
    for (int i = 0; i < 4; i++)
        canary_suballoc_give(&s, at[i], 512);
    assert_int_equal(canary_suballoc_remove_empty(&s, &bytes), region(0));
    assert_int_equal(bytes, 4 * 512);
    assert_int_equal(canary_suballoc_take(&s, 512), 0);
}

static uint32_t next(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

static void never_gives_out_twice(void **state)
{
    static uint8_t taken[REGIONS][UNITS];
    struct canary_suballoc s = {0};
    struct {
        uint64_t at;
        unsigned units;
    } held[MANY];
    uint32_t seed = 7, n = 0;
    for (int i = 0; i < REGIONS; i++)
        assert_int_equal(canary_suballoc_add(&s, region(i), UNITS * CANARY_SUBALLOC_UNIT), 0);
    for (int step = 0; step < 20000; step++) {
        bool take = n < MANY && (n == 0 || next(&seed) % 2);
        unsigned k = take ? n : next(&seed) % n, units = 1 + next(&seed) % 20;
        if (take) {
            held[k].units = units;
            held[k].at = canary_suballoc_take(&s, units * CANARY_SUBALLOC_UNIT);
            if (!held[k].at)
                continue;
            n++;
        }
        int r = 0;
        while (held[k].at - region(r) >= UNITS * CANARY_SUBALLOC_UNIT)
            assert_true(++r < REGIONS);
        unsigned first = (unsigned)((held[k].at - region(r)) / CANARY_SUBALLOC_UNIT);
        for (unsigned u = first; u < first + held[k].units; u++) {
            assert_int_equal(taken[r][u], !take);
            taken[r][u] = take;
        }
        if (!take) {
            canary_suballoc_give(&s, held[k].at, held[k].units * CANARY_SUBALLOC_UNIT);
            held[k] = held[--n];
        }
        if (step % 16 == 0)
            assert_true(canary_suballoc_valid(&s));
    }
    while (n) {
        n--;
        canary_suballoc_give(&s, held[n].at, held[n].units * CANARY_SUBALLOC_UNIT);
    }
    assert_int_equal(canary_suballoc_empty(&s, NULL, 0), s.bytes);
    assert_int_equal(s.used, 0);
    canary_suballoc_clear(&s);
}

// Memory added behind a region extends it, and can be cut out of its middle again.
static void grows_and_is_cut(void **state)
{
    struct canary_suballoc s = {0};
    enum { PIECE = 8 * CANARY_SUBALLOC_UNIT };
    uint64_t base = region(0);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(canary_suballoc_before(&s, base + i * PIECE), i * PIECE);
        assert_int_equal(canary_suballoc_extend(&s, base + i * PIECE, PIECE), 0);
    }
    // A range reaches from one piece into the next, however small it is for the region.
    assert_int_equal(canary_suballoc_take(&s, PIECE + 512), base);
    assert_int_equal(canary_suballoc_take(&s, 512), base + PIECE + 512);
    assert_int_equal(canary_suballoc_before(&s, base + 4 * PIECE), 3 * PIECE - 1024);
    // What is cut at the end can be added there again.
    assert_true(canary_suballoc_cut(&s, base + 3 * PIECE, PIECE));
    assert_int_equal(canary_suballoc_before(&s, base + 3 * PIECE), 2 * PIECE - 1024);
    assert_int_equal(canary_suballoc_extend(&s, base + 3 * PIECE, PIECE), 0);
    assert_int_equal(canary_suballoc_before(&s, base + 4 * PIECE), 3 * PIECE - 1024);
    assert_false(canary_suballoc_cut(&s, base, PIECE));
    assert_false(canary_suballoc_cut(&s, base + PIECE, PIECE));
    assert_false(canary_suballoc_cut(&s, base + 4 * PIECE, PIECE));
    assert_true(canary_suballoc_cut(&s, base + 2 * PIECE, PIECE));
    assert_true(canary_suballoc_valid(&s));
    assert_false(canary_suballoc_cut(&s, base + 2 * PIECE, PIECE));
    assert_int_equal(s.bytes, 3 * PIECE);
    assert_int_equal(canary_suballoc_take(&s, PIECE + 512), 0);
    assert_int_equal(canary_suballoc_take(&s, PIECE), base + 3 * PIECE);
    canary_suballoc_give(&s, base + 3 * PIECE, PIECE);
    canary_suballoc_give(&s, base, PIECE + 512);
    assert_true(canary_suballoc_give(&s, base + PIECE + 512, 512));
    assert_false(canary_suballoc_give(&s, base + 4 * PIECE, 512));
    assert_true(canary_suballoc_cut(&s, base, 2 * PIECE));
    assert_true(canary_suballoc_cut(&s, base + 3 * PIECE, PIECE));
    assert_int_equal(s.bytes, 0);
    assert_int_equal(s.used, 0);
    assert_null(s.regions);
}

static void survives_want_of_memory(void **state)
{
    struct canary_suballoc s = {0};
    slab_pool_fail_after(0);
    assert_int_not_equal(canary_suballoc_add(&s, region(0), 4096), 0);
    slab_pool_fail_after(-1);
    assert_int_equal(canary_suballoc_add(&s, region(0), 4096), 0);
    uint64_t a = canary_suballoc_take(&s, 512), b = canary_suballoc_take(&s, 512),
             c = canary_suballoc_take(&s, 512);
    assert_true(a && b && c);
    slab_pool_fail_after(0);
    canary_suballoc_give(&s, b, 512);  // there is no memory to record it: it stays taken
    slab_pool_fail_after(-1);
    assert_true(canary_suballoc_valid(&s));
    assert_int_equal(canary_suballoc_take(&s, 512), c + 512);
    canary_suballoc_clear(&s);
    // The middle cannot be cut out, nor anything added.
    assert_int_equal(canary_suballoc_extend(&s, region(0), 4096), 0);
    slab_pool_fail_after(0);
    assert_false(canary_suballoc_cut(&s, region(0) + 512, 512));
    assert_int_not_equal(canary_suballoc_extend(&s, region(1), 4096), 0);
    slab_pool_fail_after(-1);
    assert_int_equal(canary_suballoc_take(&s, 4096), region(0));
    canary_suballoc_clear(&s);
}

// The validity check finds wrong sums, and a range that is given back twice.
static void knows_what_is_wrong(void **state)
{
    struct canary_suballoc s = {0};
    assert_int_equal(canary_suballoc_add(&s, region(0), 4096), 0);
    assert_int_equal(canary_suballoc_take(&s, 1024), region(0));
    s.used += 512;
    assert_false(canary_suballoc_valid(&s));
    s.used -= 512;
    s.bytes -= 512;
    assert_false(canary_suballoc_valid(&s));
    s.bytes += 512;
    assert_true(canary_suballoc_valid(&s));
    if (CHECKED)  // in checked builds the next line aborts
        return canary_suballoc_clear(&s);
    assert_int_equal(canary_suballoc_take(&s, 512), region(0) + 1024);
    canary_suballoc_give(&s, region(0), 512);
    canary_suballoc_give(&s, region(0), 512);
    assert_false(canary_suballoc_valid(&s));
    canary_suballoc_clear(&s);
    assert_int_equal(canary_suballoc_add(&s, region(0), 4096), 0);
    assert_int_equal(canary_suballoc_add(&s, region(0) + 2048, 4096), 0);
    assert_false(canary_suballoc_valid(&s));
    canary_suballoc_clear(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_what_fits),         cmocka_unit_test(neighbours_become_one),
        cmocka_unit_test(never_gives_out_twice),   cmocka_unit_test(grows_and_is_cut),
        cmocka_unit_test(survives_want_of_memory), cmocka_unit_test(knows_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
