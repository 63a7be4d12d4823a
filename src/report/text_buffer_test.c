// SPDX-License-Identifier: MIT
#include "report/text_buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <limits.h>
#include <string.h>

static void expect(const struct text_buffer *b, const char *text)
{
    assert_int_equal(b->len, strlen(text));
    assert_memory_equal(b->text, text, b->len);
}

static void good_numbers(void **state)
{
    char memory[400];
    struct text_buffer b;
    text_buffer_init(&b, memory, sizeof memory);
    text_buffer_u64(&b, 0);
    text_buffer_char(&b, ' ');
    text_buffer_u64(&b, UINT64_MAX);
    text_buffer_char(&b, ' ');
    text_buffer_hex(&b, 0);
    text_buffer_char(&b, ' ');
    text_buffer_hex(&b, UINT64_MAX);
    expect(&b, "0 18446744073709551615 0x0 0xffffffffffffffff");
    assert_false(b.cut);
}

static void good_formats(void **state)
{
    char memory[400];
    struct text_buffer b;
    text_buffer_init(&b, memory, sizeof memory);
    text_buffer_fmt(&b, "%s|%d|%u|%lu|%llu|%x|%lx|%c|%%|%ld", "text", INT_MIN, UINT_MAX, ULONG_MAX, 7ull,
                    0xabu, 0xcdeful, 'z', LONG_MIN);
    expect(&b, "text|-2147483648|4294967295|18446744073709551615|7|ab|cdef|z|%|-9223372036854775808");
}

static void bad_room_is_not_exceeded(void **state)
{
    char memory[8] = "........";
    struct text_buffer b;
    text_buffer_init(&b, memory, 5);
    text_buffer_cstr(&b, "abc");
    assert_false(b.cut);
    text_buffer_cstr(&b, "defg");
    assert_true(b.cut);
    expect(&b, "abcde");
    text_buffer_char(&b, 'x');
    expect(&b, "abcde");
    assert_memory_equal(memory, "abcde...", 8);
}

static void bad_nothing_follows_a_cut(void **state)
{
    char memory[8];
    struct text_buffer b;
    text_buffer_init(&b, memory, 4);
    text_buffer_cstr(&b, "abcdef");
    b.cap = 8;
    text_buffer_fmt(&b, "%d", 1);
    expect(&b, "abcd");
    text_buffer_init(&b, NULL, 0);
    text_buffer_char(&b, 'x');
    assert_true(b.cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_numbers),
        cmocka_unit_test(good_formats),
        cmocka_unit_test(bad_room_is_not_exceeded),
        cmocka_unit_test(bad_nothing_follows_a_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
