// SPDX-License-Identifier: MIT
// What kernels print.
#include "exec/exec_testing.h"

static void check_format(const char *format, const char *expected)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fputs(EXEC_TESTING_HEAD
          ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .b8 fmt[] = {",
          to);
    for (const char *c = format; *c; c++)
        fprintf(to, "%d, ", *c);
    fputs(
        "0};\n.global .b8 word[] = {97, 98, 99, 0};\n"
        ".entry k() { .reg .b64 %d<5>; .reg .b32 %r<2>; .local .align 8 .b8 args[32];\n"
        "st.local.u32 [args], 5; st.local.s32 [args+4], -3; mov.u64 %d1, word; st.local.u64 [args+8], %d1;\n"
        "st.local.f64 [args+16], 0d3FF8000000000000; st.local.s64 [args+24], -7;\n"
        "mov.u64 %d2, args; cvta.local.u64 %d2, %d2; mov.u64 %d3, fmt;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d3; st.param.b64 [b], %d2; call "
        "(r), vprintf, (a, b); }\n"
        "ret; }\n",
        to);
    fclose(to);
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    struct exec_launch l = exec_testing_launch(p, "k", 1, 1, NULL);
    assert_int_equal(exec_testing_run(&l, 100).kind, EXEC_NO_FAULT);
    assert_string_equal(exec_testing.printed, expected);
    exec_program_free(p);
    free(text);
}

static void formats(void **state)
{
    check_format("", "");
    check_format("%d %d %s %f %lld", "5 -3 abc 1.500000 -7");
    check_format("%u %u %.2s", "5 4294967293 ab");
    check_format("%hhu %hx", "5 fffd");
    check_format("%*d|", "   -3|");
    check_format("%-*d|", "-3   |");
    check_format("%5d%-4d|%6.1s|%+.2e", "    5-3  |     a|+1.50e+00");
    check_format("%c%%%c", "\005%\375");
    check_format("%", "%");
    check_format("100%", "100%");
    check_format("%5", "%5");
    check_format("%n %d", "%n 5");
    check_format("%**d", "%**d");
    check_format("%*.*.*s", "%*.*.*s");
    check_format("%1$s %d", "%1$s 5");
    check_format("%-+ #0-+ #0d", "+5");
}

// A width costs no more than the text that is kept of it.
static void wide_formats(void **state)
{
    char *expected = calloc(1, 5000);
    memset(expected, ' ', 4095);
    check_format("%2000000000d", expected);
    check_format("%99999999999999999999d", expected);
    memset(expected, '0', 4095);
    check_format("%.2000000000d", expected);
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(wide_formats),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
