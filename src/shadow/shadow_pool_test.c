// SPDX-License-Identifier: MIT
// Pools against a model that has a state for each byte: the bytes of the shadow, in all encodings, after
// random announcements, pieces that are taken back, and launches that end.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "kcheck/kcheck_shadow.h"
#include "shadow/shadow_pool.h"

enum { BASE = 1 << 20, SIZE = 8192, OPERATIONS = 400 };

static struct {
    bool live[SIZE];
    uint64_t pending[SIZE];  // the launches that must end first, and 1; 0: none
} model;
static uint64_t launches, ended;

static uint8_t wanted(unsigned shift, uint32_t at)
{
    uint32_t size = 1u << shift, n = 0, count = 0;
    for (uint32_t i = at; i < at + size; i++) {
        if (model.pending[i])
            return 0;
        if (model.live[i] && i == at + n)
            n++;
        count += model.live[i];
    }
    return count == n ? kcheck_shadow_byte(shift, n) : KCHECK_SHADOW_POISON;
}

static void compare(void)
{
    static const unsigned shifts[] = {3, 7, 8};
    for (unsigned s = 0; s < sizeof shifts / sizeof *shifts; s++) {
        unsigned shift = shifts[s];
        for (uint64_t at = 0, to; at < SIZE; at = to) {
            uint8_t byte;
            to = shadow_pool_run(shift, BASE + at, BASE + SIZE, &byte) - BASE;
            assert_true(to > at && to <= SIZE && to % (1u << shift) == 0);
            for (uint64_t i = at; i < to; i += 1u << shift)
                assert_int_equal(byte, wanted(shift, (uint32_t)i));
        }
    }
}

static void announce(uint32_t at, uint32_t size)
{
    struct track_copy piece = {.base = BASE + at, .size = size};
    assert_int_equal(shadow_pool_add(&piece, launches), 0);
    memset(model.live + at, 1, size);
}

static void take_back(uint32_t at, uint32_t size)
{
    assert_int_equal(shadow_pool_remove(BASE + at, BASE + at + size, launches, 0), 0);
    for (uint32_t i = at; i < at + size; i++) {
        model.live[i] = false;
        model.pending[i] = launches + 1;
    }
}

static void end_launches(void)
{
    struct shadow_pool_range range;
    ended = launches;
    shadow_pool_ended(ended);
    while (shadow_pool_due(&range))
        assert_true(range.base >= BASE && range.end <= BASE + SIZE);
    for (uint32_t i = 0; i < SIZE; i++)
        if (model.pending[i] && model.pending[i] - 1 <= ended)
            model.pending[i] = 0;
}

// Pieces that do not overlap, as allocators give them out: at most one in each 512 bytes.
static void bytes_are_right(void **state)
{
    uint32_t places[SIZE / 512] = {0}, starts[SIZE / 512];
    for (unsigned seed = 0; seed < unit_cases(40); seed++) {
        srand(seed);
        shadow_pool_reset();
        memset(&model, 0, sizeof model);
        memset(places, 0, sizeof places);
        launches = ended = 0;
        assert_int_equal(shadow_pool_make(BASE, BASE + SIZE, launches), 0);
        end_launches();
        for (unsigned n = 0; n < OPERATIONS; n++) {
            uint32_t i = (uint32_t)rand() % (SIZE / 512);
            launches += rand() % 3 == 0;
            if (rand() % 8 == 0) {
                end_launches();
            } else if (places[i]) {
                take_back(starts[i], places[i]);
                places[i] = 0;
            } else {
                uint32_t from = rand() % 3 ? (uint32_t)rand() % 256 : 0;
                places[i] = rand() % 4 ? 1 + (uint32_t)rand() % (512 - from) : 512 - from;
                starts[i] = 512 * i + from;
                announce(starts[i], places[i]);
            }
            compare();
        }
    }
    shadow_pool_reset();
}

// A piece that becomes a smaller one, at the same place.
static void shrinking_waits(void **state)
{
    struct track_copy piece = {.base = BASE, .size = 1024}, smaller = {.base = BASE, .size = 256};
    struct shadow_pool_range range;
    assert_int_equal(shadow_pool_make(BASE, BASE + SIZE, 0), 0);
    assert_true(shadow_pool_due(&range));
    assert_int_equal(range.end, BASE + SIZE);
    shadow_pool_add(&piece, 5);
    shadow_pool_add(&smaller, 5);
    assert_false(shadow_pool_due(&range));
    assert_int_equal(shadow_pool_byte(8, BASE + 768), 0);
    shadow_pool_ended(5);
    assert_true(shadow_pool_due(&range));
    assert_int_equal(shadow_pool_byte(8, BASE), 0);
    assert_int_equal(shadow_pool_byte(8, BASE + 768), KCHECK_SHADOW_POISON);
    shadow_pool_reset();
}

static void nearest_is_named(void **state)
{
    struct track_copy left = {.base = BASE + 512, .size = 100}, right = {.base = BASE + 1024, .size = 100},
                      found;
    assert_int_equal(shadow_pool_make(BASE, BASE + SIZE, 0), 0);
    assert_false(shadow_pool_near(BASE + 100, &found));
    shadow_pool_add(&left, 0);
    shadow_pool_add(&right, 0);
    assert_true(shadow_pool_near(BASE + 620, &found) && found.base == BASE + 512);
    assert_true(shadow_pool_near(BASE + 1000, &found) && found.base == BASE + 1024);
    assert_true(shadow_pool_near(BASE + 1050, &found) && found.base == BASE + 1024 && !found.freed);
    shadow_pool_remove(BASE + 512, BASE + 513, 0, 77);
    assert_true(shadow_pool_near(BASE + 520, &found) && found.freed && found.freed_stack == 77);
    assert_false(shadow_pool_near(BASE + SIZE, &found));
    shadow_pool_drop(BASE, BASE + 1);
    assert_false(shadow_pool_near(BASE + 520, &found));
    shadow_pool_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_right),
        cmocka_unit_test(shrinking_waits),
        cmocka_unit_test(nearest_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
