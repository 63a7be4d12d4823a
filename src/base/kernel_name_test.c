// SPDX-License-Identifier: MIT
#include "base/kernel_name.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void good_plain(void **state)
{
    static const char *const rows[][2] = {
        {"_Z3addPfi", "add"},
        {"_ZL3addPfi", "add"},
        {"_ZN3net5layer4ReLUEPf", "net::layer::ReLU"},
        {"_ZN3net4ReLUIfEEvPT_", "net::ReLU"},
        {"_ZN3net3BoxIfE3runEPf", "net::Box::run"},
        {"_ZN3net3BoxIN2IE1aEE3runEPf", "net::Box::run"},
        {"_ZN3net3BoxILi5EE3runEPf", "net::Box::run"},
        {"_ZN3net3BoxIJfSt6vectorIiEEE3runEPf", "net::Box::run"},
        {"_Z4ReLUIfLi3EEvPT_", "ReLU"},
        {"_ZN12_GLOBAL__N_13addEPf", "(anonymous namespace)::add"},
        {"_ZN47_GLOBAL__N__0123abcd_5_bfs_cu_0123abcd_0123abcd3addEPf", "(anonymous namespace)::add"},
    };
    char plain[100];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(kernel_name_plain(rows[i][0], plain, sizeof plain));
        assert_string_equal(plain, rows[i][1]);
    }
    assert_true(kernel_name_plain("_Z3addPfi", plain, 3));
    assert_string_equal(plain, "ad");
}

static void bad_plain(void **state)
{
    static const char *const rows[] = {
        "add", "_Z", "_Z9add", "_ZN3netI", "_ZN3netIE", "_Z99999999999999999999a", ""};
    char plain[100];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_false(kernel_name_plain(rows[i], plain, sizeof plain));
        assert_string_equal(plain, rows[i]);
    }
}

static void good_matches(void **state)
{
    struct kernel_name_pattern *p;
    char why[100];
    assert_int_equal(kernel_name_compile("^net::(ReLU|Box)", &p, why, sizeof why), 0);
    assert_true(kernel_name_matches(p, "_ZN3net4ReLUIfEEvPT_"));
    assert_false(kernel_name_matches(p, "_ZN3not4ReLUIfEEvPT_"));
    assert_false(kernel_name_matches(p, "plain"));
    kernel_name_free(p);
    assert_int_equal(kernel_name_compile("ReLUIf", &p, why, sizeof why), 0);  // the mangled name
    assert_true(kernel_name_matches(p, "_ZN3net4ReLUIfEEvPT_"));
    assert_false(kernel_name_matches(p, "_ZN3net4ReLUIdEEvPT_"));
    kernel_name_free(p);
    kernel_name_free(NULL);
}

static void bad_pattern(void **state)
{
    struct kernel_name_pattern *p;
    char why[100] = "";
    assert_int_equal(kernel_name_compile("net::(", &p, why, sizeof why), -EINVAL);
    assert_null(p);
    assert_true(strlen(why) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plain),
        cmocka_unit_test(bad_plain),
        cmocka_unit_test(good_matches),
        cmocka_unit_test(bad_pattern),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
