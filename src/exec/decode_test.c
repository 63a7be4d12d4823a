// SPDX-License-Identifier: MIT
// What is refused and how, how texts are linked, and what runs whatever the program is.
#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"
#include "exec/exec_testing.h"

#define HEAD EXEC_TESTING_HEAD
#define BODY_REGS                                                                                            \
    ".reg .pred %p<4>;\n.reg .b16 %h<4>;\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n.reg .f32 %f<4>;\n.reg .b128 " \
    "%q<2>;\n"

static void refuse(const char *const *texts, int err, const char *report)
{
    struct exec_program *p;
    int got = exec_testing_load(texts, &p);
    if (got != err)
        print_error("%s\n%s\n", texts[0], exec_testing.reported);
    assert_int_equal(got, err);
    assert_null(p);
    assert_string_equal(exec_testing.reported, report);
}

static void refuse_text(const char *text, int err, const char *report)
{
    char *all;
    assert_true(asprintf(&all, "%s%s", HEAD, text) > 0);
    refuse((const char *const[]){all, NULL}, err, report);
    free(all);
}

// One statement of a kernel: it stands on line 14.
static void refuse_insn(const char *insn, int err, const char *report)
{
    char *all;
    assert_true(
        asprintf(
            &all,
            "%s.extern .shared .b8 dyn[];\n.entry k(.param .b32 x)\n{\n%s.local .b8 l[8];\n%s\nret;\n}\n",
            HEAD, BODY_REGS, insn) > 0);
    refuse((const char *const[]){all, NULL}, err, report);
    free(all);
}

static struct exec_program *load(const char *const *texts)
{
    struct exec_program *p;
    int err = exec_testing_load(texts, &p);
    if (err)
        print_error("%s\n", exec_testing.reported);
    assert_int_equal(err, 0);
    return p;
}

static struct exec_program *load_text(const char *text)
{
    char *all;
    assert_true(asprintf(&all, "%s%s", HEAD, text) > 0);
    struct exec_program *p = load((const char *const[]){all, NULL});
    free(all);
    return p;
}

static uint32_t word(uint64_t address)
{
    uint32_t value;
    memcpy(&value, space_host(address), sizeof value);
    return value;
}

static uint64_t variable(struct exec_program *p, const char *name)
{
    const struct exec_variable *v = exec_find_variable(p, str_from(name));
    assert_non_null(v);
    return v->address;
}

// --- instructions -------------------------------------------------------------------------------------------

static void unsupported_instructions(void **state)
{
    static const char *const insns[][2] = {
        {"frob.b32 %r1, %r2;", "frob.b32"},
        {"mapa.u64 %d1, %d2, %r1;", "mapa.u64"},
        {"add.f32x2 %d1, %d2, %d3;", "add.f32x2"},
        {"@%p1 mma.foo %r1;", "mma.foo"},
        {"match.any.b32 %r1, %r2, %r3;", "match.any.b32"},
        {"redux.add.s32 %r1, %r2, %r3;", "redux.add.s32"},
        {"ld.global.v8.b32 {%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3}, [%d1];", "ld.global.v8.b32"},
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
    exec_program_free(load_text(".entry k() { .reg .b64 %d<4>; mov.b64 {%d1, %d2}, %d3; }"));
    refuse_insn("ld.global.u32 %r1, [l];", -EINVAL, "a:14:1: 'l' is in .local, not in .global");
    refuse_insn("T: .branchtargets x; brx.idx %r1, T;", -EINVAL, "a:14:1: 'x' in this list is not a label");
}

// --- declarations -------------------------------------------------------------------------------------------

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
    // The host has less than that: nothing is wrong with the text.
    refuse_text(".global .b8 g[1000000000];\n", -ENOMEM, "");
}

static void odd_declarations(void **state)
{
    refuse((const char *const[]){".version 8.0\n.target sm_90\n.address_size 32\n", NULL}, -ENOTSUP,
           "a:1:1: addresses of 32 bits are not executed");
    refuse_text(".func (.reg .b32 r) f(.reg .b32 a) { ret; }\n", -ENOTSUP,
                "a:4:33: parameters in registers are not executed, as in f");
    refuse_text(".reg .b32 all;\n.entry k() { mov.b32 all, 1; }\n", -ENOTSUP,
                "a:5:1: registers outside functions are not executed");
    refuse_text(".entry k() { .reg .v2 .b32 v; mov.b32 v.x, 1; }\n", -ENOTSUP,
                "a:4:31: the CPU device does not execute mov.b32");
    struct exec_program *p = load_text(".global .b32 _;\n.shared .b32 _;\n.func f(.param .b32 _) { ret; }\n"
                                       ".entry k(.param .b64 _) { .local .b32 _; ret; }\n.func g();\n");
    assert_int_equal(exec_kernel_count(p), 1);
    assert_int_equal(exec_kernel(p, 0)->param_size, 8);
    exec_program_free(p);
    p = load((const char *const[]){HEAD, NULL});
    assert_int_equal(exec_kernel_count(p) + exec_variable_count(p), 0);
    exec_program_free(p);
    p = load((const char *const[]){NULL});
    exec_program_free(p);
}

static void initialisers(void **state)
{
    struct exec_program *p = load_text(
        ".global .u32 open[] = {1, 2, 3};\n.global .u16 rows[][2] = {{1}, {2, 3}, {4}};\n.global .v2 .u32 "
        "v[] = {{7, 8}, {9, 10}};\n"
        ".global .b128 wide = 5;\n.global .u32 half[4] = {1, 2};\n.global .u64 at[2] = {open, "
        "generic(half)+4};\n"
        ".global .u8 bytes[3] = {0xFF(open), 0xFF00(open), 0xFF0000(open)};\n.global .f32 f = 1.5;\n");
    const struct exec_variable *v = exec_find_variable(p, STR("open"));
    assert_int_equal(v->size, 12);
    assert_int_equal(word(v->address + 8), 3);
    v = exec_find_variable(p, STR("rows"));
    assert_int_equal(v->size, 12);
    assert_int_equal(word(v->address + 4), 2 | 3 << 16);
    assert_int_equal(word(v->address + 8), 4);
    v = exec_find_variable(p, STR("v"));
    assert_int_equal(v->size, 16);
    assert_int_equal(word(v->address + 12), 10);
    assert_int_equal(word(variable(p, "wide")), 5);
    assert_int_equal(word(variable(p, "half") + 8), 0);
    uint64_t at[2];
    memcpy(at, space_host(variable(p, "at")), sizeof at);
    assert_int_equal(at[0], variable(p, "open"));
    assert_int_equal(at[1], variable(p, "half") + 4);
    assert_memory_equal(space_host(variable(p, "bytes")), at, 3);
    assert_int_equal(word(variable(p, "f")), 0x3fc00000);
    exec_program_free(p);
}

// --- links --------------------------------------------------------------------------------------------------

#define CALL(f) \
    "{ .param .b32 a; .param .b32 r; st.param.b32 [a], 5; call (r), " f ", (a); ld.param.b32 %r1, [r]; }\n"
#define ADDS(linkage, name, n)                                                        \
    linkage ".func (.param .b32 r) " name                                             \
            "(.param .b32 a) { .reg .b32 %r<2>; ld.param.b32 %r1, [a]; add.s32 %r1, " \
            "%r1, " n "; st.param.b32 [r], %r1; ret; }\n"
#define DECLARES(name) ".extern .func (.param .b32 r) " name "(.param .b32 a);\n"

static uint32_t result_of(const char *const *texts, const char *kernel)
{
    struct exec_program *p = load(texts);
    uint64_t out = exec_testing_take(4, 4);
    struct exec_launch l = exec_testing_launch(p, kernel, 1, 1, &out);
    assert_int_equal(exec_testing_run(&l, 100).kind, EXEC_NO_FAULT);
    exec_program_free(p);
    return word(out);
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
    // Nothing is missing before it is used, and what others do not see does not help.
    refuse((const char *const[]){uses, NULL}, -ENOENT, "a:7:54: nothing defines adds");
    const char *hides = HEAD ADDS("", "adds", "7") ".visible .global .u32 x = 100;\n";
    refuse((const char *const[]){uses, hides, NULL}, -ENOENT, "a:7:54: nothing defines adds");
    exec_program_free(load_text(DECLARES("adds") ".extern .global .u32 x;\n.entry k() { ret; }\n"));
    refuse_text(".extern .global .u32 x;\n.global .u64 p = x;\n", -ENOENT, "a:5:14: nothing defines x");
    refuse_text(".extern .global .u32 x;\n.entry k() { .reg .b32 r; ld.global.b32 r, [x]; }\n", -ENOENT,
                "a:5:27: nothing defines x");
}

static void definitions_meet(void **state)
{
    const char *seven = HEAD ADDS(".visible ", "adds", "7"), *eight = HEAD ADDS(".visible ", "adds", "8");
    refuse((const char *const[]){seven, eight, NULL}, -EEXIST, "b:4:32: another module defines adds");
    const char *var = HEAD ".visible .global .u32 x;\n", *other = HEAD ".visible .global .u64 x;\n";
    refuse((const char *const[]){var, other, NULL}, -EEXIST, "b:4:23: another module defines x");
    // What each keeps to itself does not collide.
    const char *first = HEAD ".global .u32 x = 1;\n" ADDS("", "adds", "1") KERNEL("k", CALL("adds"));
    const char *second = HEAD ".global .u32 x = 2;\n" ADDS("", "adds", "2")
        KERNEL("l", CALL("adds") "ld.global.u32 %r2, [x]; add.u32 %r1, %r1, %r2;");
    assert_int_equal(result_of((const char *const[]){first, second, NULL}, "k"), 6);
    assert_int_equal(result_of((const char *const[]){first, second, NULL}, "l"), 9);
}

// A weak function gives way, in the text that has it too.
static void weak_gives_way(void **state)
{
    const char *weak = HEAD ADDS(".weak ", "adds", "7") KERNEL("k", CALL("adds"));
    const char *strong = HEAD ADDS(".visible ", "adds", "8") KERNEL("l", CALL("adds"));
    assert_int_equal(result_of((const char *const[]){weak, NULL}, "k"), 12);
    assert_int_equal(result_of((const char *const[]){weak, strong, NULL}, "k"), 13);
    assert_int_equal(result_of((const char *const[]){strong, weak, NULL}, "k"), 13);
    // Of weak ones the first counts, and a kernel is one kernel.
    const char *first = HEAD ".weak .global .u32 x = 1;\n.weak .entry w() { ret; }\n";
    const char *second =
        HEAD ".weak .global .u32 x = 2;\n.weak .entry w() { ret; }\n.visible .entry v() { ret; }\n";
    struct exec_program *p = load((const char *const[]){first, second, NULL});
    assert_int_equal(exec_kernel_count(p), 2);
    assert_int_equal(exec_variable_count(p), 1);
    assert_int_equal(word(variable(p, "x")), 1);
    exec_program_free(p);
    const char *definition = HEAD ".visible .global .u32 x = 3;\n";
    p = load((const char *const[]){first, definition, second, NULL});
    assert_int_equal(word(variable(p, "x")), 3);
    exec_program_free(p);
}

static void common_shares(void **state)
{
    const char *small =
        HEAD ".common .global .u32 c;\n" KERNEL("k", "mov.u32 %r1, 5; st.global.u32 [c], %r1;");
    const char *large = HEAD ".common .global .align 8 .b8 c[64];\n" KERNEL("l", "ld.global.u32 %r1, [c];");
    struct exec_program *p = load((const char *const[]){small, large, NULL});
    assert_int_equal(exec_variable_count(p), 1);
    assert_int_equal(exec_variable(p, 0)->size, 64);
    uint64_t out = exec_testing_take(4, 4);
    struct exec_launch k = exec_testing_launch(p, "k", 1, 1, &out),
                       l = exec_testing_launch(p, "l", 1, 1, &out);
    assert_int_equal(exec_testing_run(&k, 100).kind, EXEC_NO_FAULT);
    memset(space_host(out), 0, 4);
    assert_int_equal(exec_testing_run(&l, 100).kind, EXEC_NO_FAULT);
    assert_int_equal(word(out), 5);
    exec_program_free(p);
}

static void calls_that_do_not_fit(void **state)
{
    const char *uses = HEAD DECLARES("f") KERNEL("k", CALL("f"));
    const char *other = HEAD ".visible .func f(.param .b32 a) { ret; }\n";
    refuse((const char *const[]){uses, other, NULL}, -EINVAL,
           "a:6:54: a call of f with other arguments than it has");
    refuse_text(".visible .func f(.param .b32 a) { ret; }\n.entry k() { call f; }\n", -EINVAL,
                "a:5:14: the callee has 1 parameters, the call passes 0");
    refuse_text(".entry l() { ret; }\n.entry k() { call l; }\n", -EINVAL,
                "a:5:14: 'l' is not a function that can be called");
    const char *calls_kernel = HEAD ".extern .func l();\n.entry k() { call l; }\n",
               *kernel = HEAD ".visible .entry l() { ret; }\n";
    refuse((const char *const[]){calls_kernel, kernel, NULL}, -EINVAL,
           "a:5:14: a call of l with other arguments than it has");
    const char *calls_var = HEAD ".extern .func v();\n.entry k() { call v; }\n",
               *var = HEAD ".visible .global .u32 v;\n";
    refuse((const char *const[]){calls_var, var, NULL}, -ENOENT, "a:5:14: nothing defines v");
}

// --- runs ---------------------------------------------------------------------------------------------------

static struct exec_fault run(struct exec_program *p, const char *kernel, const void *params, unsigned steps)
{
    struct exec_launch l = exec_testing_launch(p, kernel, 1, 40, params);
    return exec_testing_run(&l, steps);
}

// Whatever has no end ends when it is told to.
static void endless_programs_stop(void **state)
{
    struct exec_program *p =
        load_text(".func e() { ret; }\n.func d() { call e; call e; call e; call e; ret; }\n"
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
    struct exec_program *p = load_text(
        ".func f();\n.func f() { call f; ret; }\n.entry k() { call f; }\n"
        ".func g();\n.func h() { call g; ret; }\n.func g() { call h; ret; }\n.entry l() { call g; }\n");
    assert_true(exec_find_kernel(p, STR("k"))->recursive);
    assert_int_equal(run(p, "k", NULL, 10000).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "l", NULL, 10000).kind, EXEC_ILLEGAL_ADDRESS);
    exec_program_free(p);
}

// What calls what: a long chain, and one where the ways double at each step.
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
    struct exec_program *p = load((const char *const[]){text, NULL});
    assert_true(exec_find_kernel(p, STR("k"))->recursive);
    assert_false(exec_find_kernel(p, STR("l"))->recursive);
    assert_int_equal(exec_find_kernel(p, STR("l"))->local_size, 32);
    exec_program_free(p);
    free(text);
}

// Many switches by one long list: they share it. Too many are refused.
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
            struct exec_program *p = load((const char *const[]){text, NULL});
            assert_int_equal(run(p, "k", NULL, 100).kind, EXEC_INVALID_PC);
            exec_program_free(p);
        } else {
            refuse((const char *const[]){text, NULL}, -ENOTSUP,
                   "a:4:1: the control flow of k is more than we can follow");
        }
        free(text);
    }
}

// Frames of many registers, called without end: memory has an end, too.
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
    struct exec_program *p = load((const char *const[]){text, NULL});
    assert_int_equal(run(p, "k", NULL, 10000).kind, EXEC_OUT_OF_MEMORY);
    exec_program_free(p);
    free(text);
}

// However lanes leave a function, its frame can be used again: some 2,000 of these would be too many.
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
    struct exec_program *p = load((const char *const[]){text, NULL});
    assert_int_equal(run(p, "k", NULL, 100000).kind, EXEC_NO_FAULT);
    exec_program_free(p);
    free(text);
}

static void guards_keep_all_lanes(void **state)
{
    struct exec_program *p = load_text(".entry k(.param .u64 out) { .reg .pred %p<2>; .reg .b32 %r<4>; .reg "
                                       ".b64 %d<4>; mov.u32 %r1, %tid.x;\n"
                                       "setp.gt.u32 %p1, %r1, 5; @%p1 nanosleep.u32 3; ld.param.u64 %d1, "
                                       "[out]; atom.global.add.u32 %r2, [%d1], 1; ret; }\n");
    uint64_t out = exec_testing_take(4, 4);
    assert_int_equal(run(p, "k", &out, 100).kind, EXEC_NO_FAULT);
    assert_int_equal(word(out), 40);
    exec_program_free(p);
}

// Beyond a kernel's parameters there is other memory, or none.
static void parameters_have_ends(void **state)
{
    struct exec_program *p = load_text(
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
    assert_int_equal(word(params.out), 77);
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

// Lanes of one access may be in the host's memory on both sides of the device's.
static void scattered_over_all_memory(void **state)
{
    struct exec_program *p = load_text(
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
        assert_int_equal(word(params[k] + 4), k + 1);
    unmap(params[0]);
    unmap(params[2]);
    exec_program_free(p);
}

// A pointer to global memory is none to local memory, wherever each lane's leads.
static void local_memory_is_local(void **state)
{
    struct exec_program *p =
        load_text(".entry k(.param .u64 out)\n{ .reg .b32 %r<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [out]; "
                  "mov.u32 %r1, %tid.x;\n"
                  "mad.wide.u32 %d2, %r1, 4, %d1; ld.local.u32 %r2, [%d2]; st.global.u32 [%d1], 1; ret; }\n"
                  ".entry l(.param .u64 out)\n{ .reg .b32 %r<3>; .reg .b64 %d<3>; ld.param.u64 %d1, [out]; "
                  "mov.u32 %r1, %tid.x;\n"
                  "mad.wide.u32 %d2, %r1, 4, %d1; st.local.u8 [%d2], %r1; ret; }\n");
    uint64_t out = exec_testing_take(256, 8);
    assert_int_equal(run(p, "k", &out, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(run(p, "l", &out, 100).kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(word(out), 0);
    exec_program_free(p);
}

static void calls_that_come_back(void **state)
{
    struct exec_program *p = load_text(".func f() .noreturn { ret; }\n.entry k() { call f; trap; }\n");
    assert_int_equal(run(p, "k", NULL, 100).kind, EXEC_ILLEGAL_INSTRUCTION);
    exec_program_free(p);
}

// --- printf -------------------------------------------------------------------------------------------------

static void check_format(const char *format, const char *expected)
{
    char *text;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    fputs(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n.global .b8 fmt[] = {",
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
    struct exec_program *p = load((const char *const[]){text, NULL});
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

// --- memory -------------------------------------------------------------------------------------------------

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

// Every allocation may fail: nothing leaks, nothing breaks.
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
        cmocka_unit_test(unsupported_instructions),
        cmocka_unit_test(malformed_operands),
        cmocka_unit_test(too_much_memory),
        cmocka_unit_test(odd_declarations),
        cmocka_unit_test(initialisers),
        cmocka_unit_test(extern_names),
        cmocka_unit_test(definitions_meet),
        cmocka_unit_test(weak_gives_way),
        cmocka_unit_test(common_shares),
        cmocka_unit_test(calls_that_do_not_fit),
        cmocka_unit_test(endless_programs_stop),
        cmocka_unit_test(recursion_ends),
        cmocka_unit_test(call_graphs_are_walked_once),
        cmocka_unit_test(long_switches),
        cmocka_unit_test(recursion_with_many_registers),
        cmocka_unit_test(frames_are_given_back),
        cmocka_unit_test(guards_keep_all_lanes),
        cmocka_unit_test(parameters_have_ends),
        cmocka_unit_test(scattered_over_all_memory),
        cmocka_unit_test(local_memory_is_local),
        cmocka_unit_test(calls_that_come_back),
        cmocka_unit_test(formats),
        cmocka_unit_test(wide_formats),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
