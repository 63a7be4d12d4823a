// SPDX-License-Identifier: MIT
// Random takes and gives against a list of what is taken; the list of ranges against a bitmap.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fence/fence_ranges.h"
#include "fence/fence_space.h"

enum { MEMORY = 1 << 22, TAKEN = 500, BASE = 1 << 26 };

static uint64_t state = 1;
static uint64_t draw(uint64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % n;
}

static void overlaps_nothing(struct fence_extent *const *taken, unsigned n, const struct fence_extent *e)
{
    for (unsigned i = 0; i < n; i++)
        assert_true(taken[i]->base + taken[i]->size <= e->base || e->base + e->size <= taken[i]->base);
}

static void random_buffers(void **unused)
{
    struct fence_space s = {.taken = 0};
    struct fence_extent *taken[TAKEN];
    unsigned n = 0, refused = 0;
    assert_true(fence_space_add(&s, BASE, MEMORY));
    for (unsigned round = 0; round < 20000; round++) {
        if (n < TAKEN && draw(2)) {
            uint64_t size = 1 + draw(1 << (6 + draw(14)));
            struct fence_extent *e = fence_space_take(&s, size);
            if (!e) {
                refused++;
                continue;
            }
            assert_true(e->size >= size && e->size < size + FENCE_SPACE_GRAIN);
            assert_true(e->base >= BASE);
            overlaps_nothing(taken, n, e);
            taken[n++] = e;
        } else if (n) {
            unsigned i = (unsigned)draw(n);
            fence_space_give(&s, taken[i]);
            taken[i] = taken[--n];
        }
        if (round % 100 == 0)
            assert_true(fence_space_valid(&s));
        if (round == 10000)
            assert_true(fence_space_add(&s, BASE + MEMORY, MEMORY));
    }
    assert_true(refused);
    while (n)
        fence_space_give(&s, taken[--n]);
    assert_true(fence_space_valid(&s));
    // All is one piece again.
    assert_null(fence_space_take(&s, 2 * MEMORY + 1));
    assert_non_null(fence_space_take(&s, 2 * MEMORY));
}

// Memory is cut out where it is free and added again, beside buffers that come and go.
static void random_cuts(void **unused)
{
    enum { PIECES = 32, PIECE = 1 << 16 };
    struct fence_space s = {.taken = 0};
    struct fence_extent *taken[TAKEN];
    bool there[PIECES];
    unsigned n = 0, cuts = 0;
    for (unsigned i = 0; i < PIECES; i++) {
        assert_true(fence_space_add(&s, BASE + (uint64_t)i * PIECE, PIECE));
        there[i] = true;
    }
    for (unsigned round = 0; round < 50000; round++) {
        struct fence_extent *e;
        if (n < TAKEN && draw(3) == 0 && (e = fence_space_take(&s, 1 + draw(2 * PIECE)))) {
            overlaps_nothing(taken, n, e);
            for (uint64_t at = e->base; at < e->base + e->size; at += FENCE_SPACE_GRAIN)
                assert_true(there[(at - BASE) / PIECE]);
            taken[n++] = e;
        } else if (n && draw(2)) {
            unsigned i = (unsigned)draw(n);
            e = fence_space_give(&s, taken[i]);
            taken[i] = taken[--n];
            assert_true(e->free);
            // From the last piece that lies in the extent as a whole to the first.
            for (unsigned k = PIECES; k-- > 0 && e && draw(4);) {
                uint64_t base = BASE + (uint64_t)k * PIECE;
                if (base < e->base || base + PIECE > e->base + e->size)
                    continue;
                assert_true(there[k]);
                assert_true(fence_space_cut(&s, e, base, PIECE, &e));
                there[k] = false;
                cuts++;
            }
        } else {
            unsigned k = (unsigned)draw(PIECES);
            if (!there[k])
                assert_true(fence_space_add(&s, BASE + (uint64_t)k * PIECE, PIECE));
            there[k] = true;
        }
        if (round % 50 == 0)
            assert_true(fence_space_valid(&s));
    }
    assert_true(cuts > 100);
}

static void sizes_of_zero(void **unused)
{
    struct fence_space s = {.taken = 0};
    assert_null(fence_space_take(&s, 1));
    assert_true(fence_space_add(&s, BASE, MEMORY));
    assert_null(fence_space_take(&s, 0));
    assert_null(fence_space_take(&s, UINT64_MAX));
}

// --- ranges ------------------------------------------------------------------------------------------------

enum { PLACES = 400, OWNERS = 3 };

static bool listed(const struct kfence_range *list, size_t n, uint64_t at)
{
    for (size_t i = 0; i < n; i++)
        if (at >= list[i].base && at < list[i].end)
            return true;
    return false;
}

static void random_ranges(void **unused)
{
    static const char owners[OWNERS];
    struct fence_ranges r = {NULL, 0, 0};
    struct kfence_range list[PLACES];
    unsigned ends[PLACES] = {0}, of[PLACES], places[PLACES] = {0};  // by base; a place: ranges on it
    for (unsigned round = 0; round < 5000; round++) {
        unsigned base = (unsigned)draw(PLACES - 8), end = base + 1 + (unsigned)draw(7), any = 0;
        for (unsigned i = base; i < end; i++)
            any |= places[i];
        if (draw(20) == 0) {
            unsigned owner = (unsigned)draw(OWNERS);
            fence_ranges_remove_owner(&r, &owners[owner]);
            for (unsigned i = 0; i < PLACES; i++)
                if (ends[i] && of[i] == owner) {
                    memset(places + i, 0, (ends[i] - i) * sizeof *places);
                    ends[i] = 0;
                }
        } else if (ends[base] && draw(2)) {
            assert_true(fence_ranges_add(&r, base, ends[base], NULL));  // counted
            assert_true(fence_ranges_remove(&r, base));
            assert_true(fence_ranges_remove(&r, base));
            memset(places + base, 0, (ends[base] - base) * sizeof *places);
            ends[base] = 0;
        } else if (ends[base] != end) {
            unsigned owner = (unsigned)draw(OWNERS);
            assert_int_equal(fence_ranges_add(&r, base, end, &owners[owner]), !any);
            for (unsigned i = base; i < end && !any; i++)
                places[i] = 1;
            ends[base] = any ? ends[base] : end;
            of[base] = any ? of[base] : owner;
        }
        size_t n = fence_ranges_list(&r, list, PLACES);
        for (size_t i = 1; i < n; i++)
            assert_true(list[i - 1].end < list[i].base);  // those that touch are one
        for (unsigned i = 0; i < PLACES; i++)
            assert_int_equal(listed(list, n, i), places[i]);
    }
    assert_false(fence_ranges_remove(&r, PLACES + 1));
    assert_false(fence_ranges_add(&r, 5, 5, NULL));
    fence_ranges_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_buffers),
        cmocka_unit_test(random_cuts),
        cmocka_unit_test(sizes_of_zero),
        cmocka_unit_test(random_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
