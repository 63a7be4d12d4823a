// SPDX-License-Identifier: MIT
// Canaries: what they depend on, and that every changed byte is detected.
#include "core/canary_bytes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/canary_shape.h"

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
    assert_int_equal(canary_shape_reveal(hidden, seed.cover), 4242);
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
    assert_true(seed.start != other.start && seed.start == canary_shape(seed.start));
    assert_true(canary_bytes_tail_same(&seed, bytes, 64) == 64);
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

// --- what programs do to a word that is not theirs ---------------------------------------------------------

// Floats of a format, as values: its bits of exponent and of mantissa.
struct format {
    const char *name;
    int bytes, exponent, mantissa;
};
static const struct format formats[] = {
    {"f16", 2, 5, 10}, {"bf16", 2, 8, 7}, {"f32", 4, 8, 23}, {"f64", 8, 11, 52}};

static long double value_of(const struct format *f, uint64_t bits)
{
    int exponent = (int)(bits >> f->mantissa & ((1u << f->exponent) - 1)),
        bias = (1 << (f->exponent - 1)) - 1;
    long double fraction = ldexpl((long double)(bits & ((1ull << f->mantissa) - 1)), -f->mantissa);
    bool negative = bits >> (8 * f->bytes - 1) & 1;
    if (exponent == (1 << f->exponent) - 1)
        return fraction != 0 ? (long double)NAN : negative ? -(long double)INFINITY : (long double)INFINITY;
    long double v = exponent ? ldexpl(1 + fraction, exponent - bias) : ldexpl(fraction, 1 - bias);
    return negative ? -v : v;
}

// Rounded to the format's precision, to nearest even.
static long double rounded(const struct format *f, long double v)
{
    int e, bias = (1 << (f->exponent - 1)) - 1;
    if (v == 0 || !isfinite(v))
        return v;
    frexpl(v, &e);
    int least = 1 - bias, unit = (e - 1 < least ? least : e - 1) - f->mantissa;
    return ldexpl(rintl(ldexpl(v, -unit)), unit);
}

static void changes_as_float(const struct format *f, uint64_t bits)
{
    long double v = value_of(f, bits);
    assert_true(isfinite(v) && v < 0);
    const long double results[] = {v + 1, v - 1, v * 2, v / 2, v > 0 ? v : 0, -v, v * v};
    for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
        if (rounded(f, results[i]) == v)
            fail_msg("%s %llx is the same after operation %u", f->name, (unsigned long long)bits, i);
}

static void changes_as_integer(uint64_t bits, int bytes)
{
    uint64_t mask = bytes == 8 ? UINT64_MAX : (1ull << 8 * bytes) - 1, sign = 1ull << (8 * bytes - 1);
    const uint64_t results[] = {bits + 1, bits - 1, bits * 2, bits / 2, bits & sign ? 0 : bits,
                                bits | 1, 0,        ~bits,    bits << 4};
    for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
        if ((results[i] & mask) == bits)
            fail_msg("%llx of %d bytes is the same after operation %u", (unsigned long long)bits, bytes, i);
}

// Each word of 1, 2, 4 and 8 bytes, at any address: a buffer's end need not be aligned.
static void arithmetic_changes(const uint8_t *bytes, uint32_t count)
{
    for (uint32_t at = 0; at < count; at++)
        for (uint32_t n = 1; n <= 8 && at + n <= count; n *= 2) {
            uint64_t bits = 0;
            memcpy(&bits, bytes + at, n);
            changes_as_integer(bits, (int)n);
            for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++)
                if (formats[i].bytes == (int)n)
                    changes_as_float(&formats[i], bits);
        }
}

static void every_word_changes_under_arithmetic(void **state)
{
    uint8_t bytes[128];
    for (uint64_t k = 0; k < 200; k++) {
        struct canary_seed seed = canary_bytes_seed(0x7f0000000000 + 512 * k, 100 + k),
                           flat = canary_bytes_flat_seed(0x7f0000000000 + 512 * k, 100 + k);
        canary_bytes_head(&seed, 100 + k, bytes);
        arithmetic_changes(bytes, CANARY_HEAD);
        canary_bytes_head(&flat, 100 + k, bytes);
        arithmetic_changes(bytes, CANARY_HEAD);
        canary_bytes_tail(&seed, bytes, sizeof bytes);
        arithmetic_changes(bytes, sizeof bytes);
        canary_bytes_before(&seed, bytes, sizeof bytes);
        arithmetic_changes(bytes, sizeof bytes);
    }
    // The ends of what canaries can be.
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t ends[] = {canary_shape(0), canary_shape(UINT64_MAX), canary_shape(0x00ff00ff00ff00ff),
                                 canary_shape(0xff00ff00ff00ff00)};
        memcpy(bytes, &ends[i], 8);
        memcpy(bytes + 8, &ends[i], 8);
        arithmetic_changes(bytes, 16);
    }
}

static void hides_numbers(void **state)
{
    for (int i = 0; i < 40; i++)
        for (uint64_t cover = 1; cover; cover <<= 7) {
            uint64_t number = (1ull << i) * 3 / 2, word = canary_shape_hide(number, ~cover);
            assert_int_equal(canary_shape_reveal(word, ~cover), number);
            assert_int_equal(word, canary_shape(word));
            assert_true(canary_shape_reveal(word ^ 1, ~cover) == UINT64_MAX);
            assert_true(canary_shape_reveal(word ^ 2, ~cover) != number);
        }
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
        cmocka_unit_test(every_word_changes_under_arithmetic),
        cmocka_unit_test(hides_numbers),
    };
    return cmocka_run_group_tests(tests, start, NULL);
}
