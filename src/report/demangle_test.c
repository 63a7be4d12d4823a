// SPDX-License-Identifier: MIT
#include "report/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/mem.h"

static void good_names(void **state)
{
    struct demangler *d = demangle_new();
    struct demangle with = demangle_with(d);
    const char *scale = demangle_name(&with, "_Z5scalePfi");
    if (strcmp(scale, "_Z5scalePfi") == 0) {
        demangle_free(d);
        skip();
    }
    assert_string_equal(scale, "scale(float*, int)");
    assert_ptr_equal(demangle_name(&with, "_Z5scalePfi"), scale);
    assert_string_equal(demangle_name(&with, "_ZN2ns4copyIfEEvPT_"), "void ns::copy<float>(float*)");
    // The namespace is nvcc's, and names a file that the report names anyway.
    assert_string_equal(demangle_name(&with, "_ZN20_INTERNAL_5a_4_b_cu_9atomicAddEPii"),
                        "atomicAdd(int*, int)");
    assert_string_equal(demangle_name(&with, "_ZN11x_INTERNAL_1fEv"), "x_INTERNAL_::f()");
    // What Numba adds to names is no part of the function's; other tags are.
    assert_string_equal(demangle_name(&with, "_ZN8__main__4histB2v1B26cw51cXTLSUwv1sDUaKthqaNgoKEx"),
                        "__main__::hist(long long)");
    assert_string_equal(demangle_name(&with, "_Z1fB5cxx11B2vxi"), "f[abi:cxx11][abi:vx](int)");
    demangle_free(d);
}

static void bad_names_stay(void **state)
{
    static char name[8000] = "_Z";
    memset(name + 2, '1', sizeof name - 3);
    struct demangler *d = demangle_new();
    struct demangle with = demangle_with(d);
    assert_string_equal(demangle_name(&with, "_Zqq"), "_Zqq");
    assert_string_equal(demangle_name(&with, "_Zqq"), "_Zqq");
    assert_string_equal(demangle_name(&with, "main"), "main");
    assert_string_equal(demangle_name(&with, ""), "");
    assert_string_equal(demangle_name(&with, name), name);
    assert_null(demangle_name(&with, NULL));
    with = demangle_with(NULL);
    assert_string_equal(demangle_name(&with, "_Z1fv"), "_Z1fv");
    assert_string_equal(demangle_name(NULL, "_Z1fv"), "_Z1fv");
    demangle_free(d);
}

static const char *shout(void *context, const char *name)
{
    return strcmp(name, "_Z1f") == 0 ? "EFF" : name;
}

static void good_sentences(void **state)
{
    struct demangle with = {shout, NULL};
    char buffer[64];
    static const char plain[] = "nothing to do";
    assert_ptr_equal(demangle_text(&with, plain, buffer, sizeof buffer), plain);
    assert_string_equal(demangle_text(&with, "_Z1f, _Z1f. x_Z1f _Z2g", buffer, sizeof buffer),
                        "EFF, EFF. x_Z1f _Z2g");
    assert_string_equal(demangle_text(&with, "_Z1f", buffer, sizeof buffer), "EFF");
    assert_string_equal(demangle_text(&with, "a _Z1f", buffer, 5), "a EF");
    assert_string_equal(demangle_text(NULL, "_Z1f", buffer, sizeof buffer), "_Z1f");
    assert_null(demangle_text(&with, NULL, buffer, sizeof buffer));
}

static void good_long_words_stay(void **state)
{
    static char text[5000], buffer[6000];
    struct demangle with = {shout, NULL};
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "_Z", 2);
    assert_string_equal(demangle_text(&with, text, buffer, sizeof buffer), text);
}

static void bad_memory_runs_out(void **state)
{
    for (long n = 0; n < 6; n++) {
        mem_fail_after(n);
        struct demangler *d = demangle_new();
        struct demangle with = demangle_with(d);
        const char *name = demangle_name(&with, "_Z1fv");
        mem_fail_after(-1);
        assert_true(strcmp(name, "_Z1fv") == 0 || strcmp(name, "f()") == 0);
        demangle_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_names),          cmocka_unit_test(bad_names_stay),
        cmocka_unit_test(good_sentences),      cmocka_unit_test(good_long_words_stay),
        cmocka_unit_test(bad_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
