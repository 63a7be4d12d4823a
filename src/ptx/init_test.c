// SPDX-License-Identifier: MIT
// Tests of the walk over initialisers.
#include "ptx/testing.h"

static void append(char *to, size_t size, const struct ptx_init *e)
{
    size_t at = strlen(to);
    char *p = to + at;
    size_t room = size - at;
    switch ((enum ptx_init_kind)e->kind) {
    case PTX_INIT_OPEN: snprintf(p, room, " {"); break;
    case PTX_INIT_CLOSE: snprintf(p, room, " }"); break;
    case PTX_INIT_INT: snprintf(p, room, " %lld", (long long)e->value); break;
    case PTX_INIT_F32: snprintf(p, room, " f%llx", (unsigned long long)e->value); break;
    case PTX_INIT_F64: snprintf(p, room, " d%llx", (unsigned long long)e->value); break;
    case PTX_INIT_STRING: snprintf(p, room, " \"" STR_FMT "\"", STR_ARG(e->text)); break;
    case PTX_INIT_OTHER: snprintf(p, room, " <" STR_FMT ">", STR_ARG(e->text)); break;
    case PTX_INIT_SYM:
        snprintf(p, room, " %s" STR_FMT "%+lld&%llx", e->generic ? "generic " : "", STR_ARG(e->text),
                 (long long)e->value, (unsigned long long)e->mask);
        break;
    }
}

// Walks an initialiser; `left` is what remains of the text when the walk ends with `end`: 0 or -EINVAL.
static void walk(const char *text, const char *expected, int end, const char *left)
{
    char got[1000] = "";
    struct str rest = str_from(text);
    struct ptx_init e;
    int code;
    while ((code = ptx_init_next(&rest, &e)) > 0)
        append(got, sizeof got, &e);
    assert_string_equal(got, expected);
    assert_int_equal(code, end);
    assert_true(str_eq(rest, str_from(left)));
}

static void good(const char *text, const char *expected)
{
    walk(text, expected, 0, "");
}

static void good_values(void **state)
{
    good("", "");
    good("5", " 5");
    good(" -5 ", " -5");
    good("(1+2)*3", " 9");
    good("0f3F800000", " f3f800000");
    good("1.0", " d3ff0000000000000");
    good("1 ? 2 : 3", " 2");
    good("WARP_SZ * 2", " 64");
    good("\"a\\\"b\"", " \"a\\\"b\"");
    good("0xFFFFFFFFFFFFFFFF", " -1");
}

static void good_lists(void **state)
{
    good("{}", " { }");
    good("{1}", " { 1 }");
    good("{ 1 , 2,3 }", " { 1 2 3 }");
    good("{{1, 2}, {3}, {}}", " { { 1 2 } { 3 } { } }");
    good("{1, // one\n 2 /* two */, -(3)}", " { 1 2 -3 }");
    good("{ addr_mode_0 = clamp_to_border, filter_mode = nearest }",
         " { <addr_mode_0 = clamp_to_border> <filter_mode = nearest> }");
}

static void good_addresses(void **state)
{
    good("x", " x+0&0");
    good("x+8", " x+8&0");
    good("x - 8", " x-8&0");
    good("x+4*(1+1)", " x+8&0");
    good("generic(x)", " generic x+0&0");
    good("generic ( x ) + 8", " generic x+8&0");
    good("generic", " generic+0&0");
    good("{generic, x}", " { generic+0&0 x+0&0 }");
    good("0xFF(x)", " x+0&ff");
    good("0xFF00 ( x )", " x+0&ff00");
    good("0xFF(generic(x)+8)", " generic x+8&ff");
    good("0xFF(x+4)+4", " x+8&ff");
    good("{0xFF(x), 2, x}", " { x+0&ff 2 x+0&0 }");
    good("x+9223372036854775807+1", " x-9223372036854775808&0");
}

static void bad_commas(void **state)
{
    walk("{1 2}", " {", -EINVAL, "2}");
    walk("{1,,2}", " {", -EINVAL, ",2}");
    walk("{1,}", " {", -EINVAL, "}");
    walk("{,1}", "", -EINVAL, ",1}");
    walk("1,", "", -EINVAL, "");
    walk(",", "", -EINVAL, ",");
    walk("{1}{2}", " { 1", -EINVAL, "{2}");
    walk("{1},", " { 1", -EINVAL, "");
}

static void bad_values(void **state)
{
    walk("{1, +}", " { 1", -EINVAL, "}");
    walk("{1, ;}", " { 1", -EINVAL, ";}");
    walk("(1", "", -EINVAL, "");
    walk("1/0", "", -EINVAL, "");
    walk("1+1.0", "", -EINVAL, "");
    walk("1+x", "", -EINVAL, "x");
    walk("\x01", "", -EINVAL, "\x01");
    walk("12z", "", -EINVAL, "12z");
    walk("\"a", "", -EINVAL, "\"a");
}

static void bad_addresses(void **state)
{
    walk("x+", "", -EINVAL, "");
    walk("x+1.0", "", -EINVAL, "");
    walk("generic(5)", "", -EINVAL, "5)");
    walk("generic(x", "", -EINVAL, "");
    walk("generic(x+4)", "", -EINVAL, "+4)");
    walk("0xFF(5)", "", -EINVAL, "5)");
    walk("0xFF(x", "", -EINVAL, "");
    walk("0xFF()", "", -EINVAL, ")");
    walk("x y", "", -EINVAL, "y");
}

static void good_none(void **state)
{
    struct str rest = {NULL, 0};
    struct ptx_init e;
    assert_int_equal(ptx_init_next(&rest, &e), 0);
    rest = STR(" \n// nothing\n");
    assert_int_equal(ptx_init_next(&rest, &e), 0);
}

// A table of a megabyte: a step does not scan everything that follows.
static void good_large_table(void **state)
{
    char *text = testing_repeat("{0", ", 0x7F", 200000, "}");
    struct str rest = str_from(text);
    struct ptx_init e;
    size_t n = 0;
    while (ptx_init_next(&rest, &e) > 0)
        n++;
    assert_int_equal(n, 200003);
    assert_int_equal(rest.len, 0);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_values), cmocka_unit_test(good_lists),       cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_commas),  cmocka_unit_test(bad_values),       cmocka_unit_test(bad_addresses),
        cmocka_unit_test(good_none),   cmocka_unit_test(good_large_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
