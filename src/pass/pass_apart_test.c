// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>

#include "pass/pass_apart.h"

static void ignore(struct diag_sink *sink, const struct diag *diag)
{
    (void)sink, (void)diag;
}

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

#define ARRAY(name, align, size) ".shared .align " #align " .b8 " #name "[" #size "];\n"

static void aligned(const char *declarations, unsigned first, unsigned second)
{
    char text[500];
    struct diag_sink sink = {.emit = ignore};
    struct ptx_module *m;
    snprintf(text, sizeof text, ".version 7.8\n.target sm_90\n.address_size 64\n.entry k()\n{\n%sret;\n}\n",
             declarations);
    assert_int_equal(ptx_parse("test.ptx", str_from(text), &sink, NULL, &m), 0);
    pass_apart_align(m);
    const struct ptx_func *f = m->items[0].func;
    assert_int_equal(f->stmts[0].var->align, first);
    assert_int_equal(f->stmts[1].var->align, second);
    ptx_free(m);
}

static void good_alignment(void **state)
{
    aligned(ARRAY(a, 4, 64) ARRAY(b, 4, 1024), 16, 16);
    aligned(ARRAY(a, 32, 64) ARRAY(b, 4, 20), 32, 4);
    aligned(ARRAY(a, 4, 64) ARRAY(b, 4, 20), 16, 4);
    // Between others they might take more memory.
    aligned(ARRAY(a, 4, 64) ARRAY(b, 4, 20) ARRAY(c, 4, 20), 4, 4);
    aligned(ARRAY(a, 4, 64) ".global .align 4 .b8 g[64];\n", 16, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_declarations), cmocka_unit_test(good_alignment)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
