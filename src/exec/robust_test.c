// SPDX-License-Identifier: MIT
// Any program: endless loops end when cancelled, memory is bounded, lanes do not get lost.
#include <errno.h>

#include "base/mem.h"
#include "exec/exec_testing.h"

#define HEAD EXEC_TESTING_HEAD

static struct exec_fault run(struct exec_program *p, const char *kernel, const void *params, unsigned steps)
{
    struct exec_launch l = exec_testing_launch(p, kernel, 1, 40, params);
    return exec_testing_run(&l, steps);
}

// Endless programs end when cancelled.
static void endless_programs_stop(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".func e() { ret; }\n.func d() { call e; call e; call e; call e; ret; }\n"
        ".func c() { call d; call d; call d; call d; ret; }\n.func b() { call c; call c; call c; "
        "call c; ret; }\n"
        ".func a() { call b; call b; call b; call b; ret; }\n.func z() { call a; call a; call a; "
        "call a; ret; }\n"
        ".func y() { call z; call z; call z; call z; ret; }\n.func x() { call y; call y; call y; "
        "call y; ret; }\n"
        ".func w() { call x; call x; call x; call x; ret; }\n.func v() { call w; call w; call w; "
        "call w; ret; }\n"
        ".func u() { call v; call v; call v; call v; ret; }\n.func t() { call u; call u; call u; "
        "call u; ret; }\n"
        ".entry tree() { call t; call t; call t; call t; }\n"
        ".entry loop() { L: bra L; }\n"
        ".entry apart() { .reg .pred p; .reg .b32 r; mov.u32 r, %tid.x; setp.gt.u32 p, r, 3; @p "
        "bra M; L: bra L; M: bra M; }\n"
        ".entry turns() { .reg .b32 r; T: .branchtargets A, B; A: mov.u32 r, 1; brx.idx r, T; B: "
        "mov.u32 r, 0; brx.idx r, T; }\n"
        ".entry waits() { .reg .pred p; .reg .b32 r; mov.u32 r, %tid.x; setp.gt.u32 p, r, 3; L: @p "
        "bra L; bar.sync 0; }\n"
        ".entry sleeps() { L: nanosleep.u32 5; bra L; }\n");
    static const char *const names[] = {"tree", "loop", "apart", "turns", "waits", "sleeps"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        assert_int_equal(run(p, names[k], NULL, 20).kind, EXEC_LAUNCH_FAILED);
    exec_program_free(p);
}

static void recursion_ends(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".func f();\n.func f() { call f; ret; }\n.entry k() { call f; }\n"
        ".func g();\n.func h() { call g; ret; }\n.func g() { call h; ret; }\n.entry l() { call g; }\n");
    assert_true(exec_find_kernel(p, STR("k"))->recursive);
    assert_int_equal(run(p, "k", NULL, 10000).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "l", NULL, 10000).kind, EXEC_ILLEGAL_ADDRESS);
    exec_program_free(p);
}

// Call graphs: a long chain, and one whose paths double at each step.
static void call_graphs_are_walked_once(void **state)
{
    enum { N = 20000 };
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fputs(HEAD ".func f0();\n.func f0() { call f0; ret; }\n", to);
    for (unsigned k = 1; k < N; k++)
        fprintf(to, ".func f%u() { call f%u; call f%u; ret; }\n", k, k - 1, k - 1);
    fprintf(to,
            ".func g0() { ret; }\n.func g1() { call g0; ret; }\n.entry k() { call f%u; }\n.entry l() { call "
            "g1; }\n",
            N - 1);
    fclose(to);
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    assert_true(exec_find_kernel(p, STR("k"))->recursive);
    assert_false(exec_find_kernel(p, STR("l"))->recursive);
    assert_int_equal(exec_find_kernel(p, STR("l"))->local_size, 32);
    exec_program_free(p);
    free(text);
}

// Many switches share one long list of targets. Too many are rejected.
static void long_switches(void **state)
{
    for (unsigned n = 1000; n <= 5000; n += 4000) {
        char *text;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        fprintf(to, "%s.entry k() { .reg .b32 r; mov.u32 r, 0;\nT: .branchtargets L0", HEAD);
        for (unsigned k = 1; k < n; k++)
            fprintf(to, ", L%u", k);
        fputs(";\n", to);
        for (unsigned k = 0; k < n; k++)
            fprintf(to, "L%u: mov.u32 r, %u; brx.idx r, T;\n", k, k + 1);
        fputs("}\n", to);
        fclose(to);
        if (n == 1000) {
            struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
            assert_int_equal(run(p, "k", NULL, 100).kind, EXEC_INVALID_PC);
            exec_program_free(p);
        } else {
            exec_testing_refuse((const char *const[]){text, NULL}, -ENOTSUP,
                                "a:4:1: the control flow of k is too complex");
        }
        free(text);
    }
}

// Endless recursion with frames of many registers ends: frame memory is bounded.
static void recursion_with_many_registers(void **state)
{
    enum { N = 20000 };
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fprintf(to, "%s.func f();\n.func f() { .reg .b64 d<%u>; .local .b8 big[8];\n", HEAD, (unsigned)N);
    for (unsigned k = 0; k < N; k++)
        fprintf(to, "mov.b64 d%u, %%clock64;\n", k);
    fputs("call f;\n", to);
    for (unsigned k = 0; k < N; k++)
        fprintf(to, "st.local.b64 [big], d%u;\n", k);
    fputs("ret; }\n.func use() { .local .b8 big[500000]; ret; }\n.entry k() { call f; }\n", to);
    fclose(to);
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    assert_int_equal(run(p, "k", NULL, 10000).kind, EXEC_OUT_OF_MEMORY);
    exec_program_free(p);
    free(text);
}

// However lanes leave a function, its frame is reused: about 2,000 of these would be too many.
static void frames_are_given_back(void **state)
{
    enum { N = 1000 };
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fprintf(to,
            "%s.func (.param .b32 r) f(.param .b32 a) { .reg .pred p, q; .reg .b32 x, y; .reg .b64 d<%u>;\n",
            HEAD, (unsigned)N);
    fputs("ld.param.b32 x, [a]; mov.u32 y, %tid.x; and.b32 y, y, x; setp.ne.u32 p, y, 0; setp.eq.u32 q, y, "
          "1000;\n"
          "@p ret; setp.gt.u32 p, x, 2990; and.b32 y, y, 8; @p bra LAST; @!q bra DONE;\n",
          to);
    for (unsigned k = 0; k < N; k++)
        fprintf(to, "mov.b64 d%u, %%clock64;\n", k);
    for (unsigned k = 0; k < N; k++)
        fprintf(to, "st.local.b64 [0], d%u;\n", k);
    fputs("LAST: setp.lt.u32 p, y, 8; @p exit;\nDONE: st.param.b32 [r], x; ret; }\n"
          ".func (.param .b32 r) g(.param .b32 a) { .reg .pred p; .reg .b32 x; ld.param.b32 x, [a]; and.b32 "
          "x, x, 3;\n"
          "setp.eq.u32 p, x, 0; { .param .b32 s; .param .b32 b; st.param.b32 [b], x; @p call (s), f, (b); } "
          "ret; }\n"
          ".global .u64 both[2] = {f, g};\n"
          ".entry k() { .reg .pred p; .reg .b32 i, t, u; .reg .b64 d; mov.u32 i, 0; mov.u32 t, %tid.x;\n"
          "shape: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
          "L: add.u32 u, i, t; and.b32 u, u, 1; mov.u64 d, both; mad.wide.u32 d, u, 8, d; ld.global.u64 d, "
          "[d];\n"
          "{ .param .b32 r; .param .b32 a; st.param.b32 [a], i; call (r), d, (a), shape; }\n"
          "add.u32 i, i, 1; setp.lt.u32 p, i, 3000; @p bra L; ret; }\n",
          to);
    fclose(to);
    struct exec_program *p = exec_testing_texts((const char *const[]){text, NULL});
    assert_int_equal(run(p, "k", NULL, 100000).kind, EXEC_NO_FAULT);
    exec_program_free(p);
    free(text);
}

static void guards_keep_all_lanes(void **state)
{
    struct exec_program *p =
        exec_testing_text(".entry k(.param .u64 out) { .reg .pred %p<2>; .reg .b32 %r<4>; .reg "
                          ".b64 %d<4>; mov.u32 %r1, %tid.x;\n"
                          "setp.gt.u32 %p1, %r1, 5; @%p1 nanosleep.u32 3; ld.param.u64 %d1, "
                          "[out]; atom.global.add.u32 %r2, [%d1], 1; ret; }\n");
    uint64_t out = exec_testing_take(4, 4);
    assert_int_equal(run(p, "k", &out, 100).kind, EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(out), 40);
    exec_program_free(p);
}

// An access beyond a kernel's parameters reads other memory, or faults.
static void parameters_have_ends(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".entry last(.param .u64 out, .param .u32 n) { .reg .b32 %r<2>; .reg .b64 %d<2>; ld.param.u64 %d1, "
        "[out]; ld.param.u32 %r1, [n]; st.global.u32 [%d1], %r1; }\n"
        ".entry far(.param .u64 out) { .reg .b32 %r<2>; ld.param.u32 %r1, [out+1073741824]; }\n"
        ".entry before(.param .u64 out) { .reg .b32 %r<2>; ld.param.u32 %r1, [out+-1073741824]; }\n"
        ".entry over(.param .u64 out) { .reg .b64 %d<3>; ld.param.v2.u64 {%d1, %d2}, [out+1073741824]; }\n");
    struct {
        uint64_t out;
        uint32_t n;
    } params = {exec_testing_take(4, 4), 77};
    assert_int_equal(run(p, "last", &params, 100).kind, EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(params.out), 77);
    assert_int_equal(run(p, "far", &params, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "before", &params, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "over", &params, 100).kind, EXEC_ILLEGAL_ADDRESS);
    exec_program_free(p);
}

static uint64_t map_near(uint64_t hint)
{
    void *p = mmap((void *)(uintptr_t)hint, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    space_set((uintptr_t)p, 4096, SPACE_READ | SPACE_WRITE);
    return (uintptr_t)p;
}

static void unmap(uint64_t at)
{
    space_set(at, 4096, 0);
    munmap((void *)(uintptr_t)at, 4096);
}

// Lanes of one access may be in host memory on both sides of the device's range.
static void scattered_over_all_memory(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{ .reg .pred %p<3>; .reg .b32 %r<3>; .reg "
        ".b64 %d<5>;\n"
        "ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c]; mov.u32 %r1, %tid.x;\n"
        "setp.eq.u32 %p1, %r1, 1; setp.gt.u32 %p2, %r1, 1; mov.u64 %d4, %d1; @%p1 mov.u64 %d4, %d2; @%p2 "
        "mov.u64 %d4, %d3;\n"
        "ld.global.u32 %r2, [%d4]; add.u32 %r2, %r2, 1; st.global.u32 [%d4+4], %r2; ret; }\n");
    uint64_t params[3] = {map_near(space.device_base - SPACE_WINDOW), exec_testing_take(8, 8),
                          map_near(((uint64_t)1 << SPACE_BITS) - 128 * SPACE_WINDOW)};
    if (params[0] > params[1] || params[1] > params[2])
        skip();
    for (unsigned k = 0; k < 3; k++)
        memcpy(space_host(params[k]), &k, 4);
    assert_int_equal(run(p, "k", params, 100).kind, EXEC_NO_FAULT);
    for (unsigned k = 0; k < 3; k++)
        assert_int_equal(exec_testing_word(params[k] + 4), k + 1);
    unmap(params[0]);
    unmap(params[2]);
    exec_program_free(p);
}

// A pointer to global memory is invalid in local memory, wherever each lane's points.
static void local_memory_is_local(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".entry k(.param .u64 out)\n{ .reg .b32 %r<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [out]; "
        "mov.u32 %r1, %tid.x;\n"
        "mad.wide.u32 %d2, %r1, 4, %d1; ld.local.u32 %r2, [%d2]; st.global.u32 [%d1], 1; ret; }\n"
        ".entry l(.param .u64 out)\n{ .reg .b32 %r<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [out]; "
        "mov.u32 %r1, %tid.x;\n"
        "mad.wide.u32 %d2, %r1, 4, %d1; st.local.u8 [%d2], %r1; ret; }\n");
    uint64_t out = exec_testing_take(256, 8);
    assert_int_equal(run(p, "k", &out, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "l", &out, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(exec_testing_word(out), 0);
    exec_program_free(p);
}

static void calls_that_come_back(void **state)
{
    struct exec_program *p =
        exec_testing_text(".func f() .noreturn { ret; }\n.entry k() { call f; trap; }\n");
    assert_int_equal(run(p, "k", NULL, 100).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(p);
}

// --- memory ------------------------------------------------------------------------------------------------

static const char rich[] = HEAD
    ".file 1 \"a.cu\"\n.global .u32 x[] = {1, 2, 3};\n.weak .global .u32 w;\n.common .global .u32 "
    "c;\n.shared .b32 s;\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"
    ".func f();\n.func f() { call f; ret; }\n.func g(.param .b32 a) { .local .b8 l[8]; ret; }\n"
    ".visible .entry k(.param .u64 out) { .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<4>;\n.loc 1 3 0\n"
    "mov.u32 %r1, %tid.x; setp.gt.u32 %p1, %r1, 3; T: .branchtargets A, B; @%p1 bra A; and.b32 %r2, %r1, 1; "
    "brx.idx %r2, T;\n"
    "A: add.u32 %r2, %r2, 12345; st.shared.u32 [s], %r2;\nB: { .param .b32 a; st.param.b32 [a], 1; call g, "
    "(a); }\n"
    "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 8; call (r), malloc, (a); ld.param.b64 %d1, [r]; }\n"
    "L: sub.u32 %r1, %r1, 1; setp.gt.s32 %p2, %r1, 0; @%p2 bra L; ret; }\n.visible .entry l() { call f; }\n";

// Any allocation may fail: nothing leaks, nothing breaks.
static void out_of_memory(void **state)
{
    const char *second =
        HEAD ".visible .global .u32 w = 4;\n.common .global .u64 c;\n.extern .global .u32 x;\n";
    bool complete = false;
    for (long n = 0; !complete; n++) {
        struct exec_program *p;
        mem_fail_after(n);
        int err = exec_testing_load((const char *const[]){rich, second, NULL}, &p);
        assert_true(err == 0 || err == -ENOMEM);
        if (!err) {
            uint64_t out = 0;
            complete = run(p, "k", &out, 1000).kind == EXEC_NO_FAULT;
            run(p, "l", &out, 1000);
        }
        mem_fail_after(-1);
        exec_program_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_programs_stop),         cmocka_unit_test(recursion_ends),
        cmocka_unit_test(call_graphs_are_walked_once),   cmocka_unit_test(long_switches),
        cmocka_unit_test(recursion_with_many_registers), cmocka_unit_test(frames_are_given_back),
        cmocka_unit_test(guards_keep_all_lanes),         cmocka_unit_test(parameters_have_ends),
        cmocka_unit_test(scattered_over_all_memory),     cmocka_unit_test(local_memory_is_local),
        cmocka_unit_test(calls_that_come_back),          cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
