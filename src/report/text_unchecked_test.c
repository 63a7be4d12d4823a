// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "report/report_testing.h"
#include "report/text.h"

static void good_table(void **state)
{
    static char memory[4096];
    struct text_buffer b;
    struct text_style style = {.demangle = {testing_demangle, NULL}};
    struct report_line line = testing_unchecked();
    text_buffer_init(&b, memory, sizeof memory - 1);
    text_render(&b, &line, &style);
    memory[b.len] = 0;
    assert_string_equal(memory, "==4711==moat: kernels that ran unchecked\n"
                                "    launches\n"
                                "       1,000  scale(float*, int)\n"
                                "           7  closed\n"
                                "    and 13 more kernels, which --format=json names\n");
}

// The rest of a long table is for programs.
static void good_rest_is_not_shown(void **state)
{
    static char memory[4096];
    struct text_buffer b;
    struct report_line line = testing_unchecked();
    line.unchecked.before = 64;
    text_buffer_init(&b, memory, sizeof memory);
    text_render(&b, &line, NULL);
    assert_int_equal(b.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_table),
                                       cmocka_unit_test(good_rest_is_not_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
