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
    struct report_line line = testing_counts();
    text_buffer_init(&b, memory, sizeof memory - 1);
    text_render(&b, &line, &style);
    memory[b.len] = 0;
    assert_string_equal(
        memory,
        "==4711==moat: what kernels read and wrote\n"
        "    launches  threads  loads  stores  bytes read  bytes written\n"
        "           2    1,024  3,020   1,010      12,160          4,080  scale(float*, int)\n"
        "           -       64      0      64           0            256  helper (function, at least)\n"
        "           7        -      -       -           -              -  closed (not counted)\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
