// SPDX-License-Identifier: MIT
#include "ptx/lexer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <locale.h>
#include <stdio.h>

static struct lexer lexed(struct str text)
{
    struct lexer l;
    lexer_init(&l, text);
    return l;
}

// Compares all tokens with a text "kind:text kind:text".
static void expect(const char *text, const char *tokens)
{
    static const char *const kinds[] = {"end", "id", "word", "int", "f32", "f64", "string", "punct", "bad"};
    char got[1000] = "";
    struct lexer l = lexed(str_from(text));
    for (;; lexer_advance(&l)) {
        size_t at = strlen(got);
        snprintf(got + at, sizeof got - at, "%s%s:" STR_FMT, at ? " " : "", kinds[l.tok.kind],
                 STR_ARG(l.tok.text));
        assert_true(l.tok.kind == TOK_PUNCT ? l.tok.punct == l.tok.text.ptr[0] : l.tok.punct == 0);
        if (l.tok.kind == TOK_END || l.tok.kind == TOK_BAD)
            break;
    }
    assert_string_equal(got, tokens);
}

static void expect_bad(const char *text, const char *why, const char *token)
{
    struct lexer l = lexed(str_from(text));
    while (l.tok.kind != TOK_BAD && l.tok.kind != TOK_END)
        lexer_advance(&l);
    assert_int_equal(l.tok.kind, TOK_BAD);
    assert_string_equal(l.bad, why);
    assert_true(str_eq(l.tok.text, str_from(token)));
}

static void has_value(const char *text, enum token_kind kind, uint64_t value)
{
    struct lexer l = lexed(str_from(text));
    assert_int_equal(l.tok.kind, kind);
    assert_int_equal(l.tok.value, value);
    lexer_advance(&l);
    assert_int_equal(l.tok.kind, TOK_END);
}

static void good_names_and_words(void **state)
{
    expect("ld.global.v4 %r1, [a$b_9+4];",
           "id:ld word:.global word:.v4 id:%r1 punct:, punct:[ id:a$b_9 punct:+ int:4 punct:] punct:; end:");
    expect(".shared::cta.b8", "word:.shared::cta word:.b8 end:");
    expect("%r1.x", "id:%r1 word:.x end:");
    expect(".2d .5 .5e3 .1D", "word:.2d f64:.5 f64:.5e3 word:.1D end:");
    expect("a::b", "id:a punct:: punct:: id:b end:");
    expect("%%a$", "id:% id:%a$ end:");
}

static void bad_dots(void **state)
{
    expect(". .; ..a", "punct:. punct:. punct:; punct:. word:.a end:");
    expect(".a:: .a::;", "word:.a punct:: punct:: word:.a punct:: punct:: punct:; end:");
}

static void good_numbers(void **state)
{
    has_value("0", TOK_INT, 0);
    has_value("12U", TOK_INT, 12);
    has_value("0xfF", TOK_INT, 255);
    has_value("0X10U", TOK_INT, 16);
    has_value("017", TOK_INT, 15);
    has_value("0b101", TOK_INT, 5);
    has_value("18446744073709551615", TOK_INT, UINT64_MAX);
    has_value("0f3F800000", TOK_F32, 0x3F800000);
    has_value("0F3f800000", TOK_F32, 0x3F800000);
    has_value("0d3FF0000000000000", TOK_F64, 0x3FF0000000000000);
    has_value("1.0", TOK_F64, 0x3FF0000000000000);
    has_value("1.", TOK_F64, 0x3FF0000000000000);
    has_value("1e0", TOK_F64, 0x3FF0000000000000);
    has_value("0.5e+1", TOK_F64, 0x4014000000000000);
}

static void bad_numbers(void **state)
{
    expect_bad("18446744073709551616", "number does not fit 64 bits", "18446744073709551616");
    expect_bad("0x", "number without digits", "0x");
    expect_bad("12u", "malformed number", "12u");
    expect_bad("018", "malformed number", "018");
    expect_bad("1e", "malformed number", "1e");
    expect_bad("1.5x", "malformed number", "1.5x");
    expect_bad("0f3F80000", "0f wants 8 hexadecimal digits", "0f3F80000");
    expect_bad("0f3F8000000", "0f wants 8 hexadecimal digits", "0f3F8000000");
    expect_bad("0f3F800000g", "malformed number", "0f3F800000g");
    expect_bad("0d3FF", "0d wants 16 hexadecimal digits", "0d3FF");
    char longest[200];
    memset(longest, '1', sizeof longest);
    longest[1] = '.';
    longest[sizeof longest - 1] = 0;
    expect_bad(longest, "number is too long", longest);
}

// A host program may have set a locale whose decimal point is a comma.
static void good_numbers_in_any_locale(void **state)
{
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        skip();
    has_value("1.5", TOK_F64, 0x3FF8000000000000);
    setlocale(LC_ALL, "C");
}

static void good_comments_are_space(void **state)
{
    expect("a/**/b//c\nd /* ; \n */e// at the end", "id:a id:b id:d id:e end:");
    expect("a / b /* * / */ c", "id:a punct:/ id:b id:c end:");
    expect("a/", "id:a punct:/ end:");
    expect("/***/x/*/*/", "id:x end:");
}

static void bad_comment_without_end(void **state)
{
    expect_bad("a /* b", "comment without an end", "/* b");
    expect_bad("/*/", "comment without an end", "/*/");
}

static void good_strings(void **state)
{
    expect("\"a;}\" \"\\\"\" \"\"", "string:\"a;}\" string:\"\\\"\" string:\"\" end:");
}

static void bad_strings(void **state)
{
    expect_bad("\"a", "string without an end", "\"a");
    expect_bad("\"a\nb\"", "string without an end", "\"a");
    expect_bad("\"\\", "string without an end", "\"\\");
    expect_bad("\"\\\"", "string without an end", "\"\\\"");
}

static void good_endings(void **state)
{
    expect("", "end:");
    expect(" \t\r\n\f\v", "end:");
    struct lexer l = lexed((struct str){"a\0\0\0", 4});
    lexer_advance(&l);
    assert_int_equal(l.tok.kind, TOK_END);
    lexer_advance(&l);
    assert_int_equal(l.tok.kind, TOK_END);
    l = lexed((struct str){NULL, 0});
    assert_int_equal(l.tok.kind, TOK_END);
}

static void bad_bytes(void **state)
{
    expect_bad("\x80", "unexpected byte", "\x80");
    expect_bad("\x01", "unexpected byte", "\x01");
    expect_bad("a \xff", "unexpected byte", "\xff");
    struct lexer l = lexed((struct str){"\0a", 2});
    assert_int_equal(l.tok.kind, TOK_BAD);
    assert_string_equal(l.bad, "NUL inside the text");
}

// Lexes every text of one byte; nothing is read beyond it.
static void good_each_single_byte(void **state)
{
    for (int c = 0; c < 256; c++) {
        char *text = test_malloc(1);
        *text = (char)c;
        struct lexer l = lexed((struct str){text, 1});
        lexer_peek(&l);
        while (l.tok.kind != TOK_END)
            lexer_advance(&l);
        test_free(text);
    }
}

static void good_form_is_one_piece(void **state)
{
    struct lexer l = lexed(STR("ld.global.shared::cta.v4 .f32 %r1"));
    assert_true(str_eq(lexer_take_form(&l), STR("ld.global.shared::cta.v4")));
    assert_int_equal(l.tok.kind, TOK_WORD);
    l = lexed(STR("ret;"));
    assert_true(str_eq(lexer_take_form(&l), STR("ret")));
    assert_int_equal(l.tok.punct, ';');
}

static void good_verbatim_keeps_comments_inside(void **state)
{
    struct lexer l = lexed(STR("a /* ; */ b // ;\n c ; d"));
    assert_true(str_eq(lexer_take_verbatim(&l, ";{"), STR("a /* ; */ b // ;\n c")));
    assert_int_equal(l.tok.punct, ';');
    l = lexed(STR("; a"));
    assert_int_equal(lexer_take_verbatim(&l, ";").len, 0);
}

static void bad_verbatim_stops(void **state)
{
    struct lexer l = lexed(STR("a b \x01 ;"));
    assert_true(str_eq(lexer_take_verbatim(&l, ";"), STR("a b")));
    assert_int_equal(l.tok.kind, TOK_BAD);
    l = lexed(STR("a b"));
    assert_true(str_eq(lexer_take_verbatim(&l, ";"), STR("a b")));
    assert_int_equal(l.tok.kind, TOK_END);
}

static void good_peek_sees_over_space_and_comments(void **state)
{
    struct lexer l = lexed(STR("a /* x */ // y\n : b"));
    assert_int_equal(lexer_peek(&l), ':');
    assert_true(str_eq(l.tok.text, STR("a")));
    l = lexed(STR("a /b"));
    assert_int_equal(lexer_peek(&l), '/');
    l = lexed(STR("a /* b"));
    assert_int_equal(lexer_peek(&l), '/');
    l = lexed(STR("a // b"));
    assert_int_equal(lexer_peek(&l), 0);
    l = lexed(STR("a"));
    assert_int_equal(lexer_peek(&l), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names_and_words),
        cmocka_unit_test(bad_dots),
        cmocka_unit_test(good_numbers),
        cmocka_unit_test(bad_numbers),
        cmocka_unit_test(good_numbers_in_any_locale),
        cmocka_unit_test(good_comments_are_space),
        cmocka_unit_test(bad_comment_without_end),
        cmocka_unit_test(good_strings),
        cmocka_unit_test(bad_strings),
        cmocka_unit_test(good_endings),
        cmocka_unit_test(bad_bytes),
        cmocka_unit_test(good_each_single_byte),
        cmocka_unit_test(good_form_is_one_piece),
        cmocka_unit_test(good_verbatim_keeps_comments_inside),
        cmocka_unit_test(bad_verbatim_stops),
        cmocka_unit_test(good_peek_sees_over_space_and_comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
