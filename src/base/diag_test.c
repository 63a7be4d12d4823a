// SPDX-License-Identifier: MIT
#include "base/diag.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

static void expect_place(const char *text, size_t offset, uint32_t line, uint32_t column,
                         const char *line_text)
{
    struct diag_place p = diag_locate(str_from(text), offset);
    assert_int_equal(p.line, line);
    assert_int_equal(p.column, column);
    assert_true(str_eq(p.line_text, str_from(line_text)));
}

static void good_places(void **state)
{
    expect_place("", 0, 1, 1, "");
    expect_place("ab\ncd\n", 0, 1, 1, "ab");
    expect_place("ab\ncd\n", 2, 1, 3, "ab");
    expect_place("ab\ncd\n", 3, 2, 1, "cd");
    expect_place("ab\ncd\n", 6, 3, 1, "");
    expect_place("ab\r\ncd", 5, 2, 2, "cd");
    expect_place("ab\r\ncd", 1, 1, 2, "ab");
    expect_place("ab\r\ncd", 3, 1, 4, "ab");
}

static void bad_offset_is_the_end(void **state)
{
    expect_place("ab", 100, 1, 3, "ab");
}

static void expect_print(const struct diag *d, const char *text)
{
    char *printed = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&printed, &len);
    diag_print(to, d);
    fclose(to);
    assert_string_equal(printed, text);
    free(printed);
}

static void good_caret_below_the_text(void **state)
{
    struct diag d = {DIAG_ERROR, {"a.ptx", STR("one\n\ttwo three\n")}, 9, 5, "no such thing"};
    expect_print(&d, "a.ptx:2:6: error: no such thing\n   two three\n       ^~~~~\n");
    d = (struct diag){DIAG_NOTE, {"a.ptx", STR("x")}, 1, 0, "ends here"};
    expect_print(&d, "a.ptx:1:2: note: ends here\n  x\n   ^\n");
}

static void good_binary_has_offsets(void **state)
{
    struct diag d = {DIAG_WARNING, {"a.out", {NULL, 0}}, 0x40, 4, "odd"};
    expect_print(&d, "a.out: offset 0x40: warning: odd\n");
    d.offset = d.len = 0;
    expect_print(&d, "a.out: warning: odd\n");
}

static void bad_bytes_do_not_reach_the_terminal(void **state)
{
    struct diag d = {DIAG_ERROR, {"\x1b[31m", STR("\x1b]0;\xff")}, 0, 1, "\x07"};
    expect_print(&d, "?[31m:1:1: error: ?\n  ?]0;?\n  ^\n");
}

static void bad_line_is_very_long(void **state)
{
    enum { LONG = 100000 };
    char *text = malloc(LONG);
    memset(text, 'x', LONG);
    struct diag d = {DIAG_ERROR, {"a.ptx", {text, LONG}}, LONG / 2, LONG, "long"};
    char *printed = NULL;
    size_t len = 0;
    FILE *to = open_memstream(&printed, &len);
    diag_print(to, &d);
    fclose(to);
    assert_true(len < 500);
    assert_non_null(strstr(printed, "a.ptx:1:50001: error: long\n"));
    assert_non_null(strstr(printed, "^~"));
    free(printed);
    free(text);
}

struct counting_sink {
    struct diag_sink sink;
    struct diag last;
};

static void keep(struct diag_sink *sink, const struct diag *d)
{
    ((struct counting_sink *)sink)->last = *d;
}

static void good_sink_counts(void **state)
{
    struct counting_sink s = {.sink = {.emit = keep}};
    struct diag_source source = {"x", {NULL, 0}};
    diag_report(&s.sink, DIAG_ERROR, &source, 1, 2, "%d of %s", 3, "these");
    diag_report(&s.sink, DIAG_WARNING, &source, 1, 2, "w");
    diag_report(&s.sink, DIAG_NOTE, &source, 4, 5, "n");
    assert_int_equal(s.sink.errors, 1);
    assert_int_equal(s.sink.warnings, 1);
    assert_int_equal(s.last.offset, 4);
    assert_int_equal(s.last.len, 5);
    assert_string_equal(s.last.message, "n");
}

static void bad_message_is_cut(void **state)
{
    struct counting_sink s = {.sink = {.emit = keep}};
    struct diag_source source = {"x", {NULL, 0}};
    diag_report(&s.sink, DIAG_ERROR, &source, 0, 0, "%1000d", 1);
    assert_int_equal(strlen(s.last.message), sizeof s.last.message - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_places),
        cmocka_unit_test(bad_offset_is_the_end),
        cmocka_unit_test(good_caret_below_the_text),
        cmocka_unit_test(good_binary_has_offsets),
        cmocka_unit_test(bad_bytes_do_not_reach_the_terminal),
        cmocka_unit_test(bad_line_is_very_long),
        cmocka_unit_test(good_sink_counts),
        cmocka_unit_test(bad_message_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
