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
    struct report_line line = testing_proofs();
    text_buffer_init(&b, memory, sizeof memory - 1);
    text_render(&b, &line, &style);
    memory[b.len] = 0;
    assert_string_equal(memory,
                        "==4711==moat: what launches touch, as their arguments decide it\n"
                        "    launches  accesses  outside  maybe  not bounded  bounded"
                        "  inside  unreachable  median ns  99 % ns\n"
                        "       1,000         9        1      1            3        1"
                        "       2            1        210    1,200  scale(float*, int)\n"
                        "           7         -        -      -            -        -"
                        "       -            -          -        -  closed (no PTX)\n"
                        "    scale(float*, int):\n"
                        "      outside        scale.cu:7  writes 4 bytes of p0: needs"
                        " 4,004 bytes, the buffer has 4,000 (1 launch)\n"
                        "      not bounded    gather.cu:13  reads 4 bytes: the index "
                        "is loaded from memory (3 accesses, 100 launches)\n"
                        "                     help: compare the index with the size before it is used\n"
                        "      and 5 more places\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
