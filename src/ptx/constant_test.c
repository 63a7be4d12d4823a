// SPDX-License-Identifier: MIT
#include "ptx/constant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>

#include "ptx/ptx.h"

// Parses an expression; `rest` is the token after it.
static struct constant parse(const char *text, const char *rest)
{
    struct lexer l;
    struct constant c;
    lexer_init(&l, str_from(text));
    const char *why = constant_parse(&l, &c);
    if (why)
        print_error("%s: %s\n", text, why);
    assert_null(why);
    assert_true(str_eq(l.tok.text, str_from(rest)));
    return c;
}

static void is_int(const char *text, int64_t value)
{
    struct constant c = parse(text, "");
    if ((int64_t)c.value != value)
        print_error("%s is %lld\n", text, (long long)c.value);
    assert_int_equal(c.kind, PTX_IMM_INT);
    assert_int_equal((int64_t)c.value, value);
    assert_true(str_eq(c.text, str_from(text)));
}

static void is_double(const char *text, double value)
{
    struct constant c = parse(text, "");
    double d;
    memcpy(&d, &c.value, sizeof d);
    assert_int_equal(c.kind, PTX_IMM_F64);
    assert_true(d == value);
}

// Expects an error; `at` is the offset of what is wrong.
static void is_bad(const char *text, size_t at, const char *why)
{
    struct lexer l;
    struct constant c;
    lexer_init(&l, str_from(text));
    const char *got = constant_parse(&l, &c);
    assert_non_null(got);
    assert_string_equal(got, why);
    assert_int_equal(c.text.ptr - text, at);
}

static void good_literals(void **state)
{
    is_int("0", 0);
    is_int("0xFFFFFFFFFFFFFFFF", -1);
    is_double("1.5", 1.5);
    struct constant c = parse("0f3F800000", "");
    assert_int_equal(c.kind, PTX_IMM_F32);
    assert_int_equal(c.value, 0x3F800000);
    is_int("WARP_SZ", 32);
}

static void bad_literals(void **state)
{
    is_bad("", 0, "the text ends where an operand is expected");
    is_bad(";", 0, "an operand is missing here");
    is_bad("x", 0, "a number is expected here, not a name");
    is_bad("1+%r1", 2, "a number is expected here, not a name");
    is_bad("1+\x01", 2, "unexpected byte");
    is_bad("1+0x", 2, "number without digits");
}

static void good_precedences(void **state)
{
    is_int("1+2*3", 7);
    is_int("(1+2)*3", 9);
    is_int("10-4-3", 3);
    is_int("100/10/5", 2);
    is_int("1<<2+1", 8);
    is_int("1|2^3&6", 1 | (2 ^ (3 & 6)));
    is_int("1+1==2", 1);
    is_int("1<2==1", 1);
    is_int("0||1&&0", 0);
    is_int("1||1&&0", 1);
    is_int("1&&2==2", 1);
    is_int("7%4", 3);
    is_int("7 % 4", 3);
    is_int("7 %4", 3);
    is_int("2*WARP_SZ+1", 65);
    is_int("- - 5", 5);
    is_int("-2*3", -6);
    is_int("~0", -1);
    is_int("!5", 0);
    is_int("!0", 1);
    is_int("+5", 5);
    is_int("1 ? 2 : 3", 2);
    is_int("0 ? 2 : 0 ? 4 : 5", 5);
    is_int("1<2?3+4:5", 7);
    is_int("(1?0:1)?2:3", 3);
    is_int("4>=4&&4<=4&&4!=5&&5>4", 1);
}

static void good_signs(void **state)
{
    is_int("-5/2", -2);
    is_int("-5%3", 2);
    is_int("(.u64)-5/2", (int64_t)((uint64_t)-5 / 2));
    is_int("(.s64)-5/2", -2);
    is_int("-8>>1", -4);
    is_int("(.u64)-8>>1", (int64_t)((uint64_t)-8 >> 1));
    is_int("-8>>1U>>1", -2);
    is_int("-1<1", 1);
    is_int("-1<1U", 0);
    is_int("0-1<1U", 0);
    is_int("(0U<1)-2<0", 1);
    is_int("0x8000000000000000>1", 1);
    is_int("(.s64)-9223372036854775808/-1", INT64_MIN);
    is_int("(.s64)-9223372036854775808%-1", INT64_MIN);
    is_int("1<<63", INT64_MIN);
    is_int("1<<65", 2);
    is_int("-4>>65", -2);
    is_int("(.u64)-1>>127", 1);
    is_int("(1?1:1U)-2<0", 1);
    is_int("(0?1:1U)-2<0", 0);
}

static void good_doubles(void **state)
{
    is_double("1.0/4.0", 0.25);
    is_double("1.0+2.0*3.0-0.5", 6.5);
    is_double("-1.5", -1.5);
    is_double("+1.5", 1.5);
    is_double("-0d3FF0000000000000", -1.0);
    is_double("(1.0)+(2.0)", 3.0);
    is_int("1.5<2.5", 1);
    is_int("1.5>2.5", 0);
    is_int("1.5<=1.5", 1);
    is_int("1.5>=2.5", 0);
    is_int("1.0==1.0", 1);
    is_int("1.0!=1.0", 0);
    is_int("(1.0<2.0)+5", 6);
}

static void bad_mixtures(void **state)
{
    is_bad("1+1.0", 1, "integer and floating-point constants are mixed");
    is_bad("1.0%2.0", 3, "this operator is not for floating-point constants");
    is_bad("1.0&&2.0", 3, "this operator is not for floating-point constants");
    is_bad("1.0<<2.0", 3, "this operator is not for floating-point constants");
    is_bad("!1.0", 0, "this operator is not for floating-point constants");
    is_bad("2*~1.0", 2, "this operator is not for floating-point constants");
    is_bad("0f00000000+0f00000000", 10, "a 0f constant cannot be part of an expression");
    is_bad("-0f00000000", 0, "a 0f constant cannot be part of an expression");
    is_bad("(.u64)1.0", 1, "only integers can be converted");
    is_bad("1?2.0:3.0", 1, "?: is for integers");
    is_bad("1.0?2:3", 3, "?: is for integers");
}

static void bad_divisions(void **state)
{
    is_bad("1/0", 1, "division by zero");
    is_bad("1 % (1-1)", 2, "division by zero");
}

static void bad_parentheses(void **state)
{
    is_bad("(1", 2, "')' is missing");
    is_bad("(1;", 2, "')' is missing");
    is_bad("((1)", 4, "')' is missing");
    is_bad("()", 1, "an operand is missing here");
    is_bad("((x))", 2, "a number is expected here, not a name");
    is_bad("(.f32)1", 1, "only (.s64) and (.u64) convert constants");
    is_bad("(.u64 1", 6, "')' is missing");
    is_bad("1?2", 3, "':' is missing");
    is_bad("1?2;3", 3, "':' is missing");
}

// The tokens after an expression are not part of it.
static void good_end(void **state)
{
    assert_true(str_eq(parse("1+2 , 3", ",").text, STR("1+2")));
    assert_true(str_eq(parse("1 /* x */ ;", ";").text, STR("1")));
    assert_true(str_eq(parse("(1+ // one\n 2) ]", "]").text, STR("(1+ // one\n 2)")));
    parse("5 )", ")");
    parse("5 = 6", "=");
    parse("5 x", "x");
}

static void nested(char *text, unsigned depth, const char *open, const char *middle, const char *close)
{
    text[0] = 0;
    for (unsigned i = 0; i < depth; i++)
        strcat(text, open);
    strcat(text, middle);
    for (unsigned i = 0; i < depth; i++)
        strcat(text, close);
}

static void good_nesting(void **state)
{
    char text[1000];
    nested(text, 60, "(", "7", ")");
    is_int(text, 7);
    nested(text, 60, "-", "7", "");
    is_int(text, 7);
    nested(text, 30, "1?", "7", ":8");
    is_int(text, 7);
    nested(text, 60, "0?1:", "7", "");
    is_int(text, 7);
    nested(text, 200, "1+", "7", "");
    is_int(text, 207);
}

static void bad_nesting(void **state)
{
    char text[1000];
    const char *why = "this constant expression is nested too deep";
    nested(text, 100, "(", "7", ")");
    is_bad(text, 64, why);
    nested(text, 100, "-", "7", "");
    is_bad(text, 64, why);
    nested(text, 100, "0?1:", "7", "");
    is_bad(text, 4 * 63 + 2, why);
    nested(text, 70, "(.u64)", "7", "");
    is_bad(text, 6 * 64, why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_literals),    cmocka_unit_test(bad_literals),
        cmocka_unit_test(good_precedences), cmocka_unit_test(good_signs),
        cmocka_unit_test(good_doubles),     cmocka_unit_test(bad_mixtures),
        cmocka_unit_test(bad_divisions),    cmocka_unit_test(bad_parentheses),
        cmocka_unit_test(good_end),         cmocka_unit_test(good_nesting),
        cmocka_unit_test(bad_nesting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
