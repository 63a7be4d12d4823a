// SPDX-License-Identifier: MIT
// Canaries: what they depend on, and that every changed byte is detected.
#include "core/canary_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int start(void **state)
{
    return canary_bytes_init();
}

static void differ_by_address_and_size(void **state)
{
    struct canary_seed a = canary_bytes_seed(0x7f0000000200, 1000),
                       b = canary_bytes_seed(0x7f0000000400, 1000),
                       c = canary_bytes_seed(0x7f0000000200, 1001),
                       again = canary_bytes_seed(0x7f0000000200, 1000);
    assert_memory_equal(&a, &again, sizeof a);
    assert_true(a.start != b.start && a.start != c.start && a.step != b.step && a.cover != c.cover);
}

static void head_holds_the_size_encrypted(void **state)
{
    uint8_t head[CANARY_HEAD];
    uint64_t hidden;
    struct canary_seed seed = canary_bytes_seed(0x200, 4242);
    canary_bytes_head(&seed, 4242, head);
    memcpy(&hidden, head + 16, 8);
    assert_true(hidden != 4242);
    assert_int_equal(hidden ^ seed.cover, 4242);
    // The byte before the buffer is a canary, and no canary byte is 0.
    for (int i = 0; i < CANARY_HEAD; i++)
        if (i < 16 || i >= 24)
            assert_int_not_equal(head[i], 0);
}

static void sides_differ(void **state)
{
    uint8_t a[64], b[64], c[CANARY_HEAD];
    struct canary_seed seed = canary_bytes_seed(0x6000, 77);
    canary_bytes_tail(&seed, a, sizeof a);
    canary_bytes_before(&seed, b, sizeof b);
    canary_bytes_far(&seed, c);
    assert_memory_not_equal(a, b, sizeof a);
    assert_memory_not_equal(a, c, sizeof c);
    assert_memory_not_equal(b, c, sizeof c);
    assert_null(memchr(b, 0, sizeof b));
}

static void flat_ones_are_four_bytes(void **state)
{
    uint8_t bytes[2 * CANARY_HEAD];
    struct canary_seed seed = canary_bytes_flat_seed(0x4200, 400),
                       other = canary_bytes_flat_seed(0x4400, 400);
    canary_bytes_head(&seed, 400, bytes);
    canary_bytes_tail(&seed, bytes + CANARY_HEAD, CANARY_HEAD);
    for (unsigned i = 0; i < sizeof bytes; i++)
        assert_true(bytes[i] == bytes[i % 4] && bytes[i]);
    assert_true(seed.start != other.start && canary_bytes_tail_same(&seed, bytes, 64) == 64);
}

static void each_byte_counts(void **state)
{
    uint8_t tail[CANARY_TAIL_MOST], made[CANARY_TAIL_MOST], touched[(CANARY_TAIL_MOST + 7) / 8];
    const uint32_t counts[] = {1, 7, 8, 9, 16, 27, 255, CANARY_TAIL_MOST};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        uint32_t n = counts[k], first, last;
        struct canary_seed seed = canary_bytes_seed(0x1000 + k, n);
        canary_bytes_tail(&seed, made, n);
        memcpy(tail, made, n);
        assert_int_equal(canary_bytes_tail_same(&seed, tail, n), n);
        assert_int_equal(canary_bytes_compare(tail, made, n, touched, &first, &last), 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_not_equal(tail[i], 0);
            tail[i] ^= 0x10;
            assert_int_equal(canary_bytes_tail_same(&seed, tail, n), i);
            assert_int_equal(canary_bytes_compare(tail, made, n, touched, &first, &last), 1);
            assert_true(first == i && last == i && touched[i / 8] == 1 << i % 8);
            tail[i] ^= 0x10;
        }
    }
}

// The bytes behind a buffer are the same sequence, wherever in its slot the buffer ends.
static void slots_are_one_sequence(void **state)
{
    uint8_t all[128], some[128];
    struct canary_seed seed = canary_bytes_seed(0x9000, 512);
    canary_bytes_slot(&seed, 0, all, sizeof all);
    for (uint32_t at = 0; at < 40; at++)
        for (uint32_t n = 0; n < 80; n++) {
            memset(some, 0, sizeof some);
            canary_bytes_slot(&seed, at, some, n);
            assert_memory_equal(some, all + at, n);
            assert_int_equal(some[n], 0);
            assert_int_equal(canary_bytes_slot_same(&seed, at, some, n), n);
            for (uint32_t i = 0; i < n; i++) {
                some[i] ^= 0x40;
                assert_int_equal(canary_bytes_slot_same(&seed, at, some, n), i);
                some[i] ^= 0x40;
            }
        }
}

static void lists_what_changed(void **state)
{
    uint8_t made[32], now[32], touched[4];
    uint32_t first = 0, last = 0;
    struct canary_seed seed = canary_bytes_seed(0x1200, 5);
    canary_bytes_tail(&seed, made, 32);
    memcpy(now, made, 32);
    now[3] ^= 2;
    now[29] ^= 2;
    assert_int_equal(canary_bytes_compare(now, made, 32, touched, &first, &last), 2);
    assert_true(first == 3 && last == 29 && touched[0] == 8 && touched[1] == 0 && touched[3] == 32);
    assert_int_equal(canary_bytes_run(touched, 29), 29);
    touched[3] |= 16 | 8;
    assert_int_equal(canary_bytes_run(touched, 29), 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differ_by_address_and_size),
        cmocka_unit_test(head_holds_the_size_encrypted),
        cmocka_unit_test(sides_differ),
        cmocka_unit_test(flat_ones_are_four_bytes),
        cmocka_unit_test(each_byte_counts),
        cmocka_unit_test(slots_are_one_sequence),
        cmocka_unit_test(lists_what_changed),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
