// SPDX-License-Identifier: MIT
#include "heap/word_bag.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint32_t next(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    return *seed ^= *seed << 5;
}

// Compares the bag with an array of counts, while it grows and shrinks.
static void good_bag_of_few(void **state)
{
    enum { FEW = 300, TURNS = 20000 };
    struct word_bag b = {0};
    unsigned copies[FEW + 1] = {0}, all = 0;
    uint32_t seed = 3;
    assert_true(word_bag_valid(&b));
    for (int i = 0; i < TURNS; i++) {
        uint32_t r = next(&seed), word = 1 + r / 16 % FEW;
        assert_int_equal(word_bag_has(&b, word), copies[word] > 0);
        if (r % 16 < (i / 4000 % 2 ? 5 : 11)) {
            assert_int_equal(word_bag_add(&b, word), 0);
            copies[word]++, all++;
        } else {
            bool had = copies[word];
            assert_int_equal(word_bag_take(&b, word), had);
            copies[word] -= had, all -= had;
        }
        assert_int_equal(b.count, all);
        if (i % 64 == 0)
            assert_true(word_bag_valid(&b));
    }
    assert_true(b.room > 1024);
    word_bag_free(&b);
    assert_true(word_bag_valid(&b));
}

// Breaks each equation of word_bag.h.
static void bad_bags_are_not_valid(void **state)
{
    struct word_bag b = {0};
    size_t at = 0;
    for (uint64_t word = 1; word <= 400; word++)
        word_bag_add(&b, word);
    while (!b.slots[at])
        at++;
    uint64_t word = b.slots[at];
    assert_true(word_bag_valid(&b));
    b.slots[at] = 0;  // lost
    assert_false(word_bag_valid(&b));
    for (size_t to = at + 1; b.slots[at] == 0 && to < b.room; to++)
        if (!b.slots[to] && !b.slots[to - 1]) {
            b.slots[to] = word;  // where no lookup finds it
            assert_false(word_bag_valid(&b));
            assert_false(word_bag_has(&b, word));
            b.slots[to] = 0;
            b.slots[at] = word;
        }
    assert_true(word_bag_valid(&b));
    b.count = b.room / 2 + 1;
    assert_false(word_bag_valid(&b));
    b.count = 400;
    b.room--;
    assert_false(word_bag_valid(&b));
    b.room++;
    word_bag_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_bag_of_few),
        cmocka_unit_test(bad_bags_are_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
