// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "pass/pass_apart.h"

static void good_declarations(void **state)
{
    struct out out;
    assert_int_equal(out_to_memory(&out), 0);
    pass_apart_declare(
        ".func own\n(\n .param .b64 a\n)\n;\n.weak .const .align 8 .b8 v[8];\n"
        ".weak .func (.param .b32 r) f(\n .param .b64 a,\n .param .b64 b\n)\n{\n ret;\n}\n"
        ".weak .func g(.param .b64 a)\n{\n {\n ret;\n }\n}\n.func own(\n .param .b64 a\n)\n{\n}\n",
        &out);
    out_char(&out, 0);
    assert_string_equal(out.buf, ".weak .const .align 8 .b8 v[8];\n"
                                 ".extern .func (.param .b32 r) f(\n .param .b64 a,\n .param .b64 b\n)\n;\n"
                                 ".extern .func g(.param .b64 a)\n;\n");
    out_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_declarations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
