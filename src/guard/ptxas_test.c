// SPDX-License-Identifier: MIT
// The arguments of ptxas: which file is compiled, and where the machine code goes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "guard/ptxas.h"

#define FILES(text) ptxas_files((struct str){text, sizeof(text)}, &input, &output)

static const char *input, *output;

static void good_arguments(void **state)
{
    assert_true(FILES("ptxas\0/tmp/a.ptx\0-o\0/tmp/a.cubin\0-arch=sm_90a\0-v"));
    assert_string_equal(input, "/tmp/a.ptx");
    assert_string_equal(output, "/tmp/a.cubin");
    assert_true(FILES("/opt/ptxas\0--gpu-name=sm_90\0--output-file=/tmp/b\0b.ptx"));
    assert_string_equal(input, "b.ptx");
    assert_string_equal(output, "/tmp/b");
    assert_true(FILES("ptxas\0--output-file\0x.ptx\0y.ptx"));
    assert_string_equal(input, "y.ptx");
    assert_string_equal(output, "x.ptx");
    assert_true(FILES("ptxas\0-o=c\0c.ptx"));
    assert_string_equal(output, "c");
}

static void bad_arguments(void **state)
{
    assert_false(FILES("ptxas\0a.ptx\0b.ptx\0-o\0c"));
    assert_false(FILES("ptxas\0a.ptx"));
    assert_false(FILES("ptxas\0-o\0c"));
    assert_false(FILES("ptxas\0a.ptx\0-o"));
    assert_false(FILES(""));
    assert_false(ptxas_files((struct str){"ptxas\0a.ptx\0-o\0c", 16}, &input, &output));  // not all of it
    assert_false(ptxas_files((struct str){NULL, 0}, &input, &output));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_arguments), cmocka_unit_test(bad_arguments)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
