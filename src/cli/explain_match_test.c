// SPDX-License-Identifier: MIT
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "cli/explain_match.h"

static void names_lose_their_parameters(void **state)
{
    static const char *const rows[][2] = {
        {"scale(float*, float, int)", "scale"},
        {"void scale<float>(float*, int)", "scale<float>"},
        {"a::b::scale<a::c<int>, (unsigned int)3>(void (*)(int))", "a::b::scale<a::c<int>, (unsigned int)3>"},
        {"(anonymous namespace)::k(int)", "(anonymous namespace)::k"},
        {"plain", "plain"},
        {"", ""},
    };
    char name[200];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        explain_match_short(rows[i][0], name, sizeof name);
        assert_string_equal(name, rows[i][1]);
    }
}

static void names_fit(void **state)
{
    const char *mangled = "_Z5scaleIfEvPfi", *demangled = "void scale<float>(float*, int)";
    assert_int_equal(explain_match_name(STR("_Z5scaleIfEvPfi"), mangled, demangled), 3);
    assert_int_equal(explain_match_name(str_from(demangled), mangled, demangled), 3);
    assert_int_equal(explain_match_name(STR("scale<float>"), mangled, demangled), 2);
    assert_int_equal(explain_match_name(STR("scale"), mangled, demangled), 1);
    assert_int_equal(explain_match_name(STR("_Z5sc"), mangled, demangled), 1);
    assert_int_equal(explain_match_name(STR("cale"), mangled, demangled), 0);
}

static struct diag last;
static void keep(struct diag_sink *sink, const struct diag *d)
{
    last = *d;
}

static void finds_the_best(void **state)
{
    static const char code[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                               ".func copy_it() { ret; }\n"
                               ".visible .entry copy() { ret; }\n"
                               ".visible .entry copy2() { ret; }\n"
                               ".visible .entry copy2d() { ret; }\n";
    struct diag_sink sink = {.emit = keep};
    static struct launch_text t;
    struct demangle none = {0};
    struct ptx_module *m;
    const struct ptx_func *f;
    char list[100] = "";
    assert_int_equal(ptx_parse("test", STR(code), &sink, NULL, &m), 0);
    assert_int_equal(launch_text_read(STR("copy<<<1,1>>>()"), &sink, &t), 0);
    assert_int_equal(explain_match(m, &t, &none, &sink, &f), 0);
    assert_true(str_eq(ptx_func_name(m, f), STR("copy")));
    assert_int_equal(launch_text_read(STR("copy2<<<1,1>>>()"), &sink, &t), 0);
    assert_int_equal(explain_match(m, &t, &none, &sink, &f), 0);
    assert_true(str_eq(ptx_func_name(m, f), STR("copy2")));
    assert_int_equal(launch_text_read(STR(" co<<<1,1>>>()"), &sink, &t), 0);
    assert_int_equal(explain_match(m, &t, &none, &sink, &f), -EINVAL);
    assert_string_equal(last.message, "3 kernels are called so: copy, copy2, copy2d");
    assert_int_equal(last.offset, 1);
    assert_int_equal(launch_text_read(STR("copy_it<<<1,1>>>()"), &sink, &t), 0);
    assert_int_equal(explain_match(m, &t, &none, &sink, &f), -ENOENT);
    explain_match_list(m, &none, list, sizeof list);
    assert_string_equal(list, "copy, copy2, copy2d");
    ptx_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_their_parameters),
        cmocka_unit_test(names_fit),
        cmocka_unit_test(finds_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
