// SPDX-License-Identifier: MIT
// Shared memory: the variables of a kernel and its callees do not overlap, and kernels need no room for one
// another's.
#include "exec/exec_testing.h"

static uint32_t shared_size(struct exec_program *p, const char *name)
{
    const struct exec_kernel *k = exec_find_kernel(p, str_from(name));
    assert_non_null(k);
    return k->shared_size;
}

static void by_kernel(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".shared .align 16 .b8 a[40960];\n.shared .align 16 .b8 b[40960];\n.shared .align 16 "
        ".b8 both[1024];\n.shared .b8 nobody[1000];\n"
        ".func f() { .reg .b32 r; st.shared.b32 [a], r; ret; }\n"
        ".func g() { .reg .b32 r; st.shared.b32 [b], r; ret; }\n"
        ".func deep() { call g; ret; }\n"
        ".func lost() { .reg .b32 r; st.shared.b32 [nobody], r; ret; }\n"
        ".entry k() { .reg .b32 r; call f; mov.b32 r, both; ret; }\n"
        ".entry l() { .reg .b32 r; mov.b32 r, both; call deep; ret; }\n"
        ".entry m() { .shared .b8 own[64]; .reg .b32 r; mov.b32 r, own; ret; }\n"
        ".entry all() { call f; call g; ret; }\n"
        ".entry none() { ret; }\n");
    assert_int_equal(shared_size(p, "k"), 1024 + 40960);
    assert_int_equal(shared_size(p, "m"), 64);
    assert_int_equal(shared_size(p, "none"), 0);
    // `b` has one offset, which is after `a` because some kernels have both.
    assert_in_range(shared_size(p, "all"), 2 * 40960, 2 * 40960 + 1024);
    assert_in_range(shared_size(p, "l"), 40960 + 1024, 2 * 40960 + 1024);
    exec_program_free(p);
    p = exec_testing_text(
        ".shared .b8 a[40960];\n.shared .b8 b[40960];\n"
        ".func f() { .reg .b32 r; st.shared.b32 [a], r; ret; }\n"
        ".func g() { .reg .b32 r; st.shared.b32 [b], r; ret; }\n"
        ".func deep() { call g; ret; }\n.entry k() { call f; ret; }\n.entry l() { call deep; ret; }\n");
    assert_int_equal(shared_size(p, "k"), 40960);
    assert_int_equal(shared_size(p, "l"), 40960);
    exec_program_free(p);
}

// A call through a pointer may reach any function; and recursion ends.
static void by_pointer(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".shared .b8 a[4096];\n.shared .b8 b[8192];\n.func f();\n"
        ".func f() { .reg .b32 r; st.shared.b32 [a], r; call f; ret; }\n"
        ".func g() { .reg .b32 r; st.shared.b32 [b], r; ret; }\n"
        ".entry k() { .reg .b64 d; P: .callprototype _ (); mov.b64 d, 0; call d, P; ret; }\n"
        ".entry l() { call f; ret; }\n");
    assert_int_equal(shared_size(p, "k"), 4096 + 8192);
    assert_int_equal(shared_size(p, "l"), 4096);
    exec_program_free(p);
}

// Dynamic shared memory follows, with the largest alignment among its users.
static void dynamic_alignment(void **state)
{
    struct exec_program *p = exec_testing_text(".extern .shared .align 256 .b8 dyn[];\n.shared .b8 a[20];\n"
                                               ".func f() { .reg .b32 r; mov.b32 r, dyn; ret; }\n"
                                               ".entry k() { .reg .b32 r; mov.b32 r, a; call f; ret; "
                                               "}\n.entry l() { .reg .b32 r; mov.b32 r, a; ret; }\n");
    assert_int_equal(shared_size(p, "k"), 256);
    assert_int_equal(shared_size(p, "l"), 32);
    exec_program_free(p);
}

#define FILL(name, var)                                                                           \
    ".func " name "(.param .b32 v) { .reg .b32 r<4>; ld.param.b32 r0, [v]; mov.u32 r1, %tid.x;\n" \
    "mov.u32 r2, " var "; mad.lo.u32 r2, r1, 4, r2; add.u32 r0, r0, r1; st.shared.u32 [r2], r0; ret; }\n"
#define CALL(name, n) "{ .param .b32 v; st.param.b32 [v], " n "; call " name ", (v); }\n"
#define GET(var, at)                                                                                     \
    "mov.u32 r2, " var "; mad.lo.u32 r2, r1, 4, r2; ld.shared.u32 r3, [r2]; st.global.u32 [d0+" at "], " \
    "r3;\n"

// The variables of one kernel do not overlap.
static void values(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".shared .b32 a[32];\n.shared .b32 b[32];\n.shared .b32 c[32];\n" FILL("fa", "a") FILL("fb", "b")
            FILL("fc", "c") ".entry x() {" CALL("fa", "1") CALL(
                "fc",
                "1") " ret; }\n"
                     ".entry y() {" CALL("fb", "1") CALL(
                         "fc",
                         "1") " ret; }\n"
                              ".entry k(.param .u64 out) { .reg .b64 d<2>; .reg .b32 r<4>; ld.param.u64 d0, "
                              "[out]; mov.u32 r1, %tid.x; mad.wide.u32 d0, r1, 16, d0;\n"
                              ".shared .b32 own[32]; mov.u32 r2, own; mad.lo.u32 r2, r1, 4, r2; "
                              "st.shared.u32 "
                              "[r2], 7;\n" CALL("fa", "100") CALL("fb", "200") CALL("fc", "300") GET("a", "0")
                                  GET("b", "4") GET("c", "8") GET("own", "12") " ret; }\n");
    uint64_t out = exec_testing_take(32 * 16, 256);
    struct exec_launch l = exec_testing_launch(p, "k", 1, 32, &out);
    assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
    for (uint32_t t = 0; t < 32; t++) {
        for (uint32_t k = 0; k < 3; k++)
            assert_int_equal(exec_testing_word(out + t * 16 + k * 4), (k + 1) * 100 + t);
        assert_int_equal(exec_testing_word(out + t * 16 + 12), 7);
    }
    exec_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_kernel),
        cmocka_unit_test(by_pointer),
        cmocka_unit_test(dynamic_alignment),
        cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
