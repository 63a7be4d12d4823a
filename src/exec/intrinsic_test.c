// SPDX-License-Identifier: MIT
// What kernels print; their malloc and free.
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

// A huge width costs no more than the text that is kept.
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

// Active lanes get blocks of their own, and inactive lanes keep their values; an invalid free names the first
// lane that does it.
static struct exec_fault run_heap(const char *free_what, uint64_t *out)
{
    char text[2048];
    snprintf(text, sizeof text,
             EXEC_TESTING_HEAD
             ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
             ".entry k(.param .b64 out) { .reg .b64 %%d<6>; .reg .b32 %%r<4>; .reg .pred %%p<3>;\n"
             "mov.u32 %%r1, %%tid.x; ld.param.u64 %%d1, [out]; mul.wide.u32 %%d2, %%r1, 8; add.u64 %%d1, "
             "%%d1, %%d2;\n"
             "and.b32 %%r2, %%r1, 1; setp.eq.u32 %%p1, %%r2, 0; mov.u64 %%d3, 7; cvt.u64.u32 %%d4, %%r1;\n"
             "@!%%p1 bra skip;\n"
             "{ .param .b64 n; .param .b64 r; st.param.b64 [n], %%d4; call (r), malloc, (n); ld.param.b64 "
             "%%d3, [r]; }\n"
             "skip: st.global.u64 [%%d1], %%d3;\n"
             "setp.gt.u32 %%p2, %%r1, 9;\n%s\n"
             "{ .param .b64 p; st.param.b64 [p], %%d3; call free, (p); }\nret; }\n",
             free_what);
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    uint64_t at = exec_testing_take(32 * 8, 16);
    struct exec_launch l = exec_testing_launch(p, "k", 1, 32, &at);
    struct exec_fault fault = exec_testing_run(&l, 100);
    memcpy(out, space_host(at), 32 * 8);
    exec_program_free(p);
    return fault;
}

static void heap(void **state)
{
    uint64_t got[32];
    struct exec_fault f = run_heap("@!%p1 mov.u64 %d3, 0;", got);
    assert_int_equal(f.kind, EXEC_NO_FAULT);
    for (unsigned l = 0; l < 32; l++) {
        assert_true(l % 2 ? got[l] == 7 : space_is_device(got[l]));
        assert_true(l < 4 || l % 2 || got[l] >= got[l - 2] + (l - 2));
    }
    f = run_heap("@!%p1 mov.u64 %d3, 0; @%p2 mov.u64 %d3, 4096; @%p2 add.u64 %d3, %d3, %d4;", got);
    assert_int_equal(f.kind, EXEC_LAUNCH_FAILED);
    assert_int_equal(f.thread[0], 10);
    assert_int_equal(f.address, 4096 + 10);
    assert_string_equal(f.space, "heap");
}

// Lane l asks for 10 * l bytes, aligned to 2^l.
static void aligned_heap(void **state)
{
    static const char text[] = EXEC_TESTING_HEAD
        ".extern .func (.param .b64 r) __cuda_syscall_aligned_malloc(.param .b64 n, .param .b64 to);\n"
        ".entry k(.param .b64 out) { .reg .b64 %d<6>; .reg .b32 %r<4>;\n"
        "mov.u32 %r1, %tid.x; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2;\n"
        "mul.wide.u32 %d4, %r1, 10; mov.u64 %d5, 1; shl.b64 %d5, %d5, %r1;\n"
        "{ .param .b64 n; .param .b64 to; .param .b64 r; st.param.b64 [n], %d4; st.param.b64 [to], %d5;\n"
        "call (r), __cuda_syscall_aligned_malloc, (n, to); ld.param.b64 %d3, [r]; }\n"
        "st.global.u64 [%d1], %d3; ret; }\n";
    uint64_t got[32];
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    uint64_t at = exec_testing_take(32 * 8, 16);
    struct exec_launch launch = exec_testing_launch(p, "k", 1, 32, &at);
    assert_int_equal(exec_testing_run(&launch, 100).kind, EXEC_NO_FAULT);
    memcpy(got, space_host(at), sizeof got);
    exec_program_free(p);
    for (unsigned l = 0; l < 32; l++) {
        if (l == 0 || l > 12)
            assert_int_equal(got[l], 0);
        else
            assert_true(space_is_device(got[l]) && got[l] % (1u << l) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(wide_formats),
        cmocka_unit_test(heap),
        cmocka_unit_test(aligned_heap),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
