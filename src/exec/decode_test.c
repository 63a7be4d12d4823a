// SPDX-License-Identifier: MIT
// What is rejected, with which report; how texts are linked.
#include <errno.h>

#include "exec/exec_testing.h"

#define HEAD EXEC_TESTING_HEAD
#define BODY_REGS                                                                                            \
    ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.reg .f32 %f<4>;\n.reg .b128 " \
    "%q<2>;\n"

static void refuse_text(const char *text, int err, const char *report)
{
    char *all;
    assert_true(asprintf(&all, "%s%s", HEAD, text) > 0);
    exec_testing_refuse((const char *const[]){all, NULL}, err, report);
    free(all);
}

// Rejects one statement of a kernel, which is on line 14.
static void refuse_insn(const char *insn, int err, const char *report)
{
    char *all;
    assert_true(
        asprintf(
            &all,
            "%s.extern .shared .b8 dyn[];\n.entry k(.param .b32 x)\n{\n%s.local .b8 l[8];\n%s\nret;\n}\n",
            HEAD, BODY_REGS, insn) > 0);
    exec_testing_refuse((const char *const[]){all, NULL}, err, report);
    free(all);
}

// --- instructions ------------------------------------------------------------------------------------------

static void unsupported_instructions(void **state)
{
    static const char *const insns[][2] = {
        {"frob.b32 %r1, %r2;", "frob.b32"},
        {"multimem.red.add.u32 [%d1], %r1;", "multimem.red.add.u32"},
        {"min.f32x2 %d1, %d2, %d3;", "min.f32x2"},
        {"@%p1 mma.foo %r1;", "mma.foo"},
        {"match.any.b32 %r1, %r2, %r3;", "match.any.b32"},
        {"redux.add.s32 %r1, %r2, %r3;", "redux.add.s32"},
        {"ld.global.v8.b64 {%d0, %d1, %d2, %d3, %d0, %d1, %d2, %d3}, [%d1];", "ld.global.v8.b64"},
        {"st.param.b32 [x], %r1;", "st.param.b32"},
        {"atom.param.add.u32 %r1, [x], 1;", "atom.param.add.u32"},
        {"bar.red.u32 %r1, 0, %p1;", "bar.red.u32"},
        {"mov.b128 %q1, dyn;", "mov.b128"},
        {"lop3.b32 %r1, %r2, %r3, %r0, %r1;", "lop3.b32"},
        {"lop3.and.b32 %r1, %r2, %r3, %r0, 3;", "lop3.and.b32"},
        {"add.s32 %r1|%p1, %r2, %r3;", "add.s32"},
        {"cvt.rn.f16x2.f32 %r1, %f1;", "cvt.rn.f16x2.f32"},
        {"cvt.u32.u64 %r1, %d1, %d2;", "cvt.u32.u64"},
        {"cvta.u16 %h1, %h2;", "cvta.u16"},
        {"alloca.u16 %h1, %h2;", "alloca.u16"},
    };
    for (size_t k = 0; k < sizeof insns / sizeof *insns; k++) {
        char report[200];
        int column = insns[k][0][0] == '@' ? 6 : 1;
        snprintf(report, sizeof report, "a:14:%d: the CPU device does not execute %s", column, insns[k][1]);
        refuse_insn(insns[k][0], -ENOTSUP, report);
    }
}

static void malformed_operands(void **state)
{
    static const struct {
        const char *insn, *report;
    } rows[] = {
        {"add.s32 %r1, %r2, %d1;", "an operand wants .s32, but %d1 is .b64"},
        {"cvt.u64.u32 %r1, %r2;", "an operand wants .u64, but %r1 is .b32"},
        {"cvt.u32.u64 %q1, %d1;", "a register of 128 bits for a result of 32 of cvt.u32.u64"},
        {"cvt.rn.f16x2.f32 %r1, %f1, %h1;", "a register of 16 bits where cvt.rn.f16x2.f32 needs 32"},
        {"cvt.rn.f16x2.f32 %r1, %f1, %p1;", "a register of 1 bits where cvt.rn.f16x2.f32 needs 32"},
        {"isspacep.global %p1, %h1;", "an address of 16 bits"},
        {"isspacep.global %p1, %p2;", "an address of 1 bits"},
        {"ld.global.u32 %r1, [%h1];", "an address of 16 bits"},
        {"alloca.u64 %d1, %d2, 3;", "an alignment must be a power of two"},
        {"bra x;", "a branch wants a label"},
        {"brx.idx %r1, x;", "the name of a .branchtargets list is wanted"},
        {"add.s32 %r1, %r2;", "'add' has 3 operands, not 2"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char report[200];
        snprintf(report, sizeof report, "a:14:1: %s", rows[k].report);
        refuse_insn(rows[k].insn, -EINVAL, report);
    }
    // The parts of a pair may be in wider registers.
    exec_program_free(exec_testing_text(".entry k() { .reg .b64 %d<4>; mov.b64 {%d1, %d2}, %d3; }"));
    refuse_insn("ld.global.u32 %r1, [l];", -EINVAL, "a:14:1: 'l' is in .local, not in .global");
    refuse_insn("T: .branchtargets x; brx.idx %r1, T;", -EINVAL, "a:14:1: 'x' in this list is not a label");
}

// --- declarations ------------------------------------------------------------------------------------------

static uint64_t variable(struct exec_program *p, const char *name)
{
    const struct exec_variable *v = exec_find_variable(p, str_from(name));
    assert_non_null(v);
    return v->address;
}

static void too_much_memory(void **state)
{
    refuse_text(".entry k()\n{ .local .b8 a[524288]; .local .b8 b[1]; ret; }\n", -EINVAL,
                "a:5:36: more local memory than a thread may have in k");
    refuse_text(".entry k()\n{ .local .b8 a[16777216][16777216]; ret; }\n", -EINVAL,
                "a:5:14: no memory is large enough for a");
    refuse_text(".entry k()\n{ .local .align 1073741824 .b8 a; .local .align 1073741824 .b8 b; ret; }\n",
                -EINVAL, "a:5:64: more local memory than a thread may have in k");
    refuse_text(".func f(.param .b8 a[400000], .param .b8 b[4294967295]) { ret; }\n", -EINVAL,
                "a:4:42: more local memory than a thread may have in f");
    refuse_text(".entry k(.param .b8 a[32760], .param .b64 b) { ret; }\n", -EINVAL,
                "a:4:43: more parameters than a kernel may have in k");
    refuse_text(".entry k(.param .align 4 .b8 a[281474976710656], .param .b64 b) { ret; }\n", -EINVAL,
                "a:4:30: no memory is large enough for a");
    refuse_text(".shared .b8 s[262144];\n.entry k() { .reg .b32 r; mov.b32 r, s; }\n", -EINVAL,
                "a:4:13: more shared memory than a block may have, with s");
    refuse_text(".shared .b8 s[4294967295];\n.shared .b8 t[4294967295];\n.entry k() { .reg .b32 r; mov.b32 "
                "r, t; mov.b32 r, s; }\n",
                -EINVAL, "a:5:13: more shared memory than a block may have, with t");
    refuse_text(".func a() { .local .b8 x[300000]; ret; }\n.entry k() { .local .b8 x[300000]; call a; }\n",
                -EINVAL, "a:5:1: more local memory than a thread may have in k");
    // The host has less memory than that: the text itself is correct.
    refuse_text(".global .b8 g[1000000000];\n", -ENOMEM, "");
}

static void odd_declarations(void **state)
{
    exec_testing_refuse((const char *const[]){".version 8.0\n.target sm_90\n.address_size 32\n", NULL},
                        -ENOTSUP, "a:1:1: addresses of 32 bits are not executed");
    refuse_text(".entry k(.reg .b32 a) { ret; }\n", -ENOTSUP,
                "a:4:20: parameters in registers are not executed, as in k");
    refuse_text(".func f(.reg .pred a) { ret; }\n", -ENOTSUP,
                "a:4:20: a parameter that cannot be passed, in f");
    refuse_text(".reg .b32 all;\n.entry k() { mov.b32 all, 1; }\n", -ENOTSUP,
                "a:5:1: registers outside functions are not executed");
    refuse_text(".entry k() { .reg .v2 .b32 v; mov.b32 v.z, 1; }\n", -EINVAL,
                "a:4:31: a part that the register does not have, in mov.b32");
    refuse_text(".entry k() { .reg .v2 .b32 v; add.u32 v, v, 1; }\n", -EINVAL,
                "a:4:31: a vector register where add.u32 takes one value");
    refuse_text(".entry k() { .reg .b32 v; add.u32 v, v.x, 1; }\n", -EINVAL,
                "a:4:27: a part that the register does not have, in add.u32");
    refuse_text(".entry k() { .reg .v4 .b64 v; ret; }\n", -EINVAL,
                "a:4:28: there is no such vector register");
    refuse_text(".entry k() { .reg .v2 .pred v; @v ret; }\n", -EINVAL,
                "a:4:29: there is no such vector register");
    refuse_text(".entry k() { .reg .v4 .b32 v; .reg .b64 d; ld.global.v2.b32 v, [d]; }\n", -ENOTSUP,
                "a:4:44: the CPU device does not execute ld.global.v2.b32");
    refuse_text(".entry k() { .reg .v2 .b64 v; .reg .b32 r; ld.global.b32 r, [v]; }\n", -EINVAL,
                "a:4:44: a vector register where ld.global.b32 takes one value");
    struct exec_program *p =
        exec_testing_text(".global .b32 _;\n.shared .b32 _;\n.func f(.param .b32 _) { ret; }\n"
                          ".entry k(.param .b64 _) { .local .b32 _; ret; }\n.func g();\n");
    assert_int_equal(exec_kernel_count(p), 1);
    assert_int_equal(exec_kernel(p, 0)->param_size, 8);
    exec_program_free(p);
    p = exec_testing_texts((const char *const[]){HEAD, NULL});
    assert_int_equal(exec_kernel_count(p) + exec_variable_count(p), 0);
    exec_program_free(p);
    p = exec_testing_texts((const char *const[]){NULL});
    exec_program_free(p);
}

// Texture references and samplers are no variables for the host; texture_lane_test.c tests the instructions.
static void textures(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".global .texref t = {normalized_coords = 1};\n.global .samplerref s = {filter_mode = nearest};\n"
        ".global .surfref q;\n.entry k() { .reg .b64 d; mov.b64 d, t; ret; }\n");
    assert_int_equal(exec_kernel_count(p), 1);
    assert_int_equal(exec_variable_count(p), 0);
    exec_program_free(p);
    p = exec_testing_text(".global .texref t;\n.global .surfref q;\n.global .samplerref s;\n");
    assert_int_equal(exec_find_reference(p, STR("t"))->kind, EXEC_TEXREF);
    assert_int_equal(exec_find_reference(p, STR("q"))->kind, EXEC_SURFREF);
    assert_null(exec_find_reference(p, STR("s")));
    exec_program_free(p);
}

static void initialisers(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".global .u32 open[] = {1, 2, 3};\n.global .u16 rows[][2] = {{1}, {2, 3}, {4}};\n.global .v2 .u32 "
        "v[] = {{7, 8}, {9, 10}};\n"
        ".global .b128 wide = 5;\n.global .u32 half[4] = {1, 2};\n.global .u64 at[2] = {open, "
        "generic(half)+4};\n"
        ".global .u8 bytes[3] = {0xFF(open), 0xFF00(open), 0xFF0000(open)};\n.global .f32 f = 1.5;\n");
    const struct exec_variable *v = exec_find_variable(p, STR("open"));
    assert_int_equal(v->size, 12);
    assert_int_equal(exec_testing_word(v->address + 8), 3);
    v = exec_find_variable(p, STR("rows"));
    assert_int_equal(v->size, 12);
    assert_int_equal(exec_testing_word(v->address + 4), 2 | 3 << 16);
    assert_int_equal(exec_testing_word(v->address + 8), 4);
    v = exec_find_variable(p, STR("v"));
    assert_int_equal(v->size, 16);
    assert_int_equal(exec_testing_word(v->address + 12), 10);
    assert_int_equal(exec_testing_word(variable(p, "wide")), 5);
    assert_int_equal(exec_testing_word(variable(p, "half") + 8), 0);
    uint64_t at[2];
    memcpy(at, space_host(variable(p, "at")), sizeof at);
    assert_int_equal(at[0], variable(p, "open"));
    assert_int_equal(at[1], variable(p, "half") + 4);
    assert_memory_equal(space_host(variable(p, "bytes")), at, 3);
    assert_int_equal(exec_testing_word(variable(p, "f")), 0x3fc00000);
    exec_program_free(p);
}

// --- links -------------------------------------------------------------------------------------------------

#define CALL(f) \
    "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 5; call (r), " f ", (a); ld.param.b32 %r1, [r]; }\n"
#define ADDS(linkage, name, n)                                                        \
    linkage ".func (.param .b32 r) " name                                             \
            "(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; add.s32 %r1, " \
            "%r1, " n "; st.param.b32 [r], %r1; ret; }\n"
#define DECLARES(name) ".extern .func (.param .b32 r) " name "(.param .b32 a);\n"

static uint32_t result_of(const char *const *texts, const char *kernel)
{
    struct exec_program *p = exec_testing_texts(texts);
    uint64_t out = exec_testing_take(4, 4);
    struct exec_launch l = exec_testing_launch(p, kernel, 1, 1, &out);
    assert_int_equal(exec_testing_run(&l, 100).kind, EXEC_NO_FAULT);
    exec_program_free(p);
    return exec_testing_word(out);
}

#define KERNEL(name, body)                                                                  \
    ".visible .entry " name                                                                 \
    "(.param .u64 out) { .reg .b32 %r<4>; .reg .b64 %d<4>; ld.param.u64 %d1, [out];\n" body \
    "st.global.u32 [%d1], %r1; ret; }\n"

static void extern_names(void **state)
{
    const char *uses = HEAD DECLARES("adds") ".extern .global .u32 x;\n" KERNEL(
        "k", CALL("adds") "ld.global.u32 %r2, [x]; add.u32 %r1, %r1, %r2;\n");
    const char *defines = HEAD ADDS(".visible ", "adds", "7") ".visible .global .u32 x = 100;\n";
    assert_int_equal(result_of((const char *const[]){uses, defines, NULL}, "k"), 112);
    assert_int_equal(result_of((const char *const[]){defines, uses, NULL}, "k"), 112);
    // An undefined name is an error only where it is used, and private definitions of other texts do not
    // count.
    exec_testing_refuse((const char *const[]){uses, NULL}, -ENOENT, "a:7:54: nothing defines adds");
    const char *hides = HEAD ADDS("", "adds", "7") ".visible .global .u32 x = 100;\n";
    exec_testing_refuse((const char *const[]){uses, hides, NULL}, -ENOENT, "a:7:54: nothing defines adds");
    exec_program_free(exec_testing_text(DECLARES("adds") ".extern .global .u32 x;\n.entry k() { ret; }\n"));
    refuse_text(".extern .global .u32 x;\n.global .u64 p = x;\n", -ENOENT, "a:5:14: nothing defines x");
    refuse_text(".extern .global .u32 x;\n.entry k() { .reg .b32 r; ld.global.b32 r, [x]; }\n", -ENOENT,
                "a:5:27: nothing defines x");
}

static void definitions_meet(void **state)
{
    const char *seven = HEAD ADDS(".visible ", "adds", "7"), *eight = HEAD ADDS(".visible ", "adds", "8");
    exec_testing_refuse((const char *const[]){seven, eight, NULL}, -EEXIST,
                        "b:4:32: another module defines adds");
    const char *var = HEAD ".visible .global .u32 x;\n", *other = HEAD ".visible .global .u64 x;\n";
    exec_testing_refuse((const char *const[]){var, other, NULL}, -EEXIST, "b:4:23: another module defines x");
    // Private definitions of two texts do not collide.
    const char *first = HEAD ".global .u32 x = 1;\n" ADDS("", "adds", "1") KERNEL("k", CALL("adds"));
    const char *second = HEAD ".global .u32 x = 2;\n" ADDS("", "adds", "2")
        KERNEL("l", CALL("adds") "ld.global.u32 %r2, [x]; add.u32 %r1, %r1, %r2;");
    assert_int_equal(result_of((const char *const[]){first, second, NULL}, "k"), 6);
    assert_int_equal(result_of((const char *const[]){first, second, NULL}, "l"), 9);
}

// A weak function yields to a strong one, in its own text too.
static void weak_gives_way(void **state)
{
    const char *weak = HEAD ADDS(".weak ", "adds", "7") KERNEL("k", CALL("adds"));
    const char *strong = HEAD ADDS(".visible ", "adds", "8") KERNEL("l", CALL("adds"));
    assert_int_equal(result_of((const char *const[]){weak, NULL}, "k"), 12);
    assert_int_equal(result_of((const char *const[]){weak, strong, NULL}, "k"), 13);
    assert_int_equal(result_of((const char *const[]){strong, weak, NULL}, "k"), 13);
    // Of weak definitions the first counts, for variables and kernels.
    const char *first = HEAD ".weak .global .u32 x = 1;\n.weak .entry w() { ret; }\n";
    const char *second =
        HEAD ".weak .global .u32 x = 2;\n.weak .entry w() { ret; }\n.visible .entry v() { ret; }\n";
    struct exec_program *p = exec_testing_texts((const char *const[]){first, second, NULL});
    assert_int_equal(exec_kernel_count(p), 2);
    assert_int_equal(exec_variable_count(p), 1);
    assert_int_equal(exec_testing_word(variable(p, "x")), 1);
    exec_program_free(p);
    const char *definition = HEAD ".visible .global .u32 x = 3;\n";
    p = exec_testing_texts((const char *const[]){first, definition, second, NULL});
    assert_int_equal(exec_testing_word(variable(p, "x")), 3);
    exec_program_free(p);
}

static void common_shares(void **state)
{
    const char *small =
        HEAD ".common .global .u32 c;\n" KERNEL("k", "mov.u32 %r1, 5; st.global.u32 [c], %r1;");
    const char *large = HEAD ".common .global .align 8 .b8 c[64];\n" KERNEL("l", "ld.global.u32 %r1, [c];");
    struct exec_program *p = exec_testing_texts((const char *const[]){small, large, NULL});
    assert_int_equal(exec_variable_count(p), 1);
    assert_int_equal(exec_variable(p, 0)->size, 64);
    uint64_t out = exec_testing_take(4, 4);
    struct exec_launch k = exec_testing_launch(p, "k", 1, 1, &out),
                       l = exec_testing_launch(p, "l", 1, 1, &out);
    assert_int_equal(exec_testing_run(&k, 100).kind, EXEC_NO_FAULT);
    memset(space_host(out), 0, 4);
    assert_int_equal(exec_testing_run(&l, 100).kind, EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(out), 5);
    exec_program_free(p);
}

static void calls_that_do_not_fit(void **state)
{
    const char *uses = HEAD DECLARES("f") KERNEL("k", CALL("f"));
    const char *other = HEAD ".visible .func f(.param .b32 a) { ret; }\n";
    exec_testing_refuse((const char *const[]){uses, other, NULL}, -EINVAL,
                        "a:6:54: a call of f with other arguments than it has");
    refuse_text(".visible .func f(.param .b32 a) { ret; }\n.entry k() { call f; }\n", -EINVAL,
                "a:5:14: the callee has 1 parameters, the call passes 0");
    refuse_text(".entry l() { ret; }\n.entry k() { call l; }\n", -EINVAL,
                "a:5:14: 'l' is not a function that can be called");
    const char *calls_kernel = HEAD ".extern .func l();\n.entry k() { call l; }\n",
               *kernel = HEAD ".visible .entry l() { ret; }\n";
    exec_testing_refuse((const char *const[]){calls_kernel, kernel, NULL}, -EINVAL,
                        "a:5:14: a call of l with other arguments than it has");
    const char *calls_var = HEAD ".extern .func v();\n.entry k() { call v; }\n",
               *var = HEAD ".visible .global .u32 v;\n";
    exec_testing_refuse((const char *const[]){calls_var, var, NULL}, -ENOENT, "a:5:14: nothing defines v");
    refuse_text(".func f(.param .b8 a[16]) { ret; }\n.entry k() { .reg .b32 r; call f, (r); }\n", -EINVAL,
                "a:5:27: an argument that does not fit a register");
    refuse_text(".func f(.reg .b64 a) { ret; }\n.entry k() { .reg .b32 r; call f, (r); }\n", -EINVAL,
                "a:5:27: a register of 32 bits for call");
}

static void dynamic_parallelism(void **state)
{
    static const char *const names[] = {"__cudaCDP2LaunchDevice", "cudaDeviceSynchronize", "cudaLaunchDevice",
                                        "cudaGetParameterBufferV2"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char text[200], report[200];
        snprintf(text, sizeof text, ".extern .func %s();\n.entry k() {\ncall %s; }\n", names[k], names[k]);
        snprintf(report, sizeof report,
                 "a:6:1: the CPU device does not have this part of dynamic parallelism (kernels that launch "
                 "kernels): %s",
                 names[k]);
        refuse_text(text, -ENOTSUP, report);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unsupported_instructions),
        cmocka_unit_test(malformed_operands),
        cmocka_unit_test(too_much_memory),
        cmocka_unit_test(odd_declarations),
        cmocka_unit_test(textures),
        cmocka_unit_test(initialisers),
        cmocka_unit_test(extern_names),
        cmocka_unit_test(definitions_meet),
        cmocka_unit_test(weak_gives_way),
        cmocka_unit_test(common_shares),
        cmocka_unit_test(calls_that_do_not_fit),
        cmocka_unit_test(dynamic_parallelism),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
