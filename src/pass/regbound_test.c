// SPDX-License-Identifier: MIT
// Kernels that call malloc must be launchable with the blocks they were written for.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "pass/regbound.h"

static void ignore(struct diag_sink *sink, const struct diag *diag)
{
    (void)sink, (void)diag;
}

// Returns the bound of the kernel `k` with these directives and this body, which may call malloc; "" if there
// is none.
static const char *bound_of(const char *directives, const char *body)
{
    static char text[20000], bound[40];
    snprintf(text, sizeof text,
             ".version 7.0\n.target sm_75\n.address_size 64\n"
             ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
             ".visible .entry k(.param .u64 p)\n%s\n{\n.reg .b64 %%rd<10>;\n.reg .f64 %%v<100>;\n%s"
             "{\n.param .b64 a;\n.param .b64 b;\nst.param.b64 [a], 8;\ncall (b), malloc, (a);\nld.param.b64 "
             "%%rd1, [b];\n}\n"
             "ret;\n}\n",
             directives, body);
    struct diag_sink sink = {.emit = ignore};
    struct pass_request request = {.passes = "kheap"};
    struct pass_result *r;
    assert_int_equal(pass_rewrite("test.ptx", str_from(text), &request, &sink, &r), 0);
    const char *at = strstr(r->text.ptr, "entry k("), *end = strstr(at, "{"), *found = strstr(at, ".maxnreg");
    bound[0] = '\0';
    if (found && found < end)
        snprintf(bound, sizeof bound, "%.*s", (int)strcspn(found, "\n"), found);
    pass_result_free(r);
    return bound;
}

static void few_registers(void **state)
{
    (void)state;
    assert_string_equal(bound_of("", ""), ".maxnreg 64");
}

static void bounded_already(void **state)
{
    (void)state;
    assert_string_equal(bound_of(".maxntid 256, 1, 1", ""), "");
    assert_string_equal(bound_of(".reqntid 256, 1, 1", ""), "");
    assert_string_equal(bound_of(".maxnreg 32", ""), ".maxnreg 32");
}

// 60 values of 64 bits are live at once: the bound is not below that.
static void many_registers(void **state)
{
    (void)state;
    static char body[16000];
    size_t n = 0;
    n += (size_t)sprintf(body + n, "ld.param.u64 %%rd1, [p];\n");
    for (unsigned i = 0; i < 60; i++)
        n += (size_t)sprintf(body + n, "ld.global.f64 %%v%u, [%%rd1+%u];\n", i, 8 * i);
    for (unsigned i = 0; i < 60; i++)
        n += (size_t)sprintf(body + n, "st.global.f64 [%%rd1+%u], %%v%u;\n", 8 * i, 59 - i);
    assert_string_equal(bound_of("", body), ".maxnreg 168");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_registers),
        cmocka_unit_test(bounded_already),
        cmocka_unit_test(many_registers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
