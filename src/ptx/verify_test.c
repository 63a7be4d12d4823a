// SPDX-License-Identifier: MIT
// Each check of the verifier: what it must report, and what it must accept.
#include "ptx/testing.h"

static void verify(const char *text, const char *messages, unsigned wrong)
{
    struct ptx_module *m = testing_parse(str_from(text));
    struct testing_sink *t = testing_sink_new();
    unsigned got = 99;
    int err = ptx_verify(m, &t->sink, &got);
    assert_string_equal(t->text, messages);
    assert_int_equal(got, wrong);
    assert_int_equal(err, t->sink.errors ? -EINVAL : 0);
    assert_int_equal(ptx_verify(m, &t->sink, NULL), err);
    free(t);
    ptx_free(m);
}

// Verifies statements of a function, from line 10 on.
static void body(const char *text, const char *messages)
{
    char *in = testing_join(TESTING_BODY, text, "\n}\n");
    verify(in, messages, 0);
    free(in);
}

static void ok(const char *text)
{
    body(text, "");
}

// Verifies items, from line 4 on.
static void items(const char *text, const char *messages)
{
    char *in = testing_join(TESTING_HEAD, text, "\n");
    verify(in, messages, 0);
    free(in);
}

// --- registers ---------------------------------------------------------------------------------------------

static void good_types(void **state)
{
    ok("add.s32 %r1, %r2, %r3; add.u64 %rd1, %rd2, 5; add.f32 %f1, %f2, 0f00000000;");
    ok("mul.wide.s32 %rd1, %r1, %r2; mad.wide.u32 %rd1, %r1, 4, %rd2; mul.lo.s32 %r1, %r2, %r3;");
    ok("mov.b32 %f1, %r1; mov.b64 %rd1, {%r1, %r2}; mov.b64 {%r1, _}, %rd1;");
    ok("setp.lt.s32 %p1|%p2, %r1, %r2; selp.b32 %r1, %r2, %r3, !%p1;");
    ok(".reg .u8 b; .reg .u16 h; ld.global.u8 %r1, [%rd1]; ld.global.u8 h, [%rd1];");
    ok(".reg .v4 .f32 v; mov.f32 v.x, %f1;");
    ok("ld.global.v2.f32 {%f1, %f2}, [%rd1]; cvt.rn.f32.s32 %f1, %r1;");
}

static void bad_types(void **state)
{
    body("add.s32 %rd1, %r2, %r3;", "10:1: an operand wants .s32, but %rd1 is .b64");
    body("add.f32 %f1, %f2, %p1;", "10:1: an operand wants .f32, but %p1 is .pred");
    body(".reg .s32 i; add.f32 %f1, %f2, i;", "10:14: an operand wants .f32, but i is .s32");
    body("mul.wide.s32 %r1, %r1, %r2;", "10:1: an operand wants .s64, but %r1 is .b32");
    body("setp.lt.s32 %r1, %r1, %r2;", "10:1: an operand wants .pred, but %r1 is .b32");
    body("setp.lt.s32 %p1|%r1, %r1, %r2;", "10:1: an operand wants .pred, but %r1 is .b32");
    body("selp.b32 %r1, %r2, %r3, %r4;", "10:1: an operand wants .pred, but %r4 is .b32");
    body("ld.global.v2.b64 {%rd2, %r1}, [%rd1];", "10:1: an operand wants .b64, but %r1 is .b32");
    body(".reg .u16 h; ld.global.u32 h, [%rd1];", "10:14: an operand wants .u32, but h is .u16");
}

static void bad_constants(void **state)
{
    body("add.s32 %r1, %r2, 1.5;", "10:1: a floating-point constant where .s32 is wanted");
    body("add.u64 %rd1, %rd2, 0f00000000;", "10:1: a floating-point constant where .u64 is wanted");
}

static void bad_results(void **state)
{
    body("add.s32 5, %r2, %r3;", "10:1: a result must go to a register");
    body(".shared .b32 s; mov.b32 s, %r1;", "10:17: a result must go to a register");
    body("mov.b64 {%r1, 5}, %rd1;", "10:1: a result must go to a register");
}

static void bad_values(void **state)
{
    body("L: mov.b64 %rd1, L;", "10:4: 'L' has no address that could be used as a value");
    body("mov.b32 %r1, !%r2;", "10:1: only a predicate can be negated");
    body("mov.b32 %r1, !k;", "10:1: only a predicate can be negated");
}

static void good_values(void **state)
{
    ok(".shared .b32 s; mov.b32 %r1, s; mov.b64 %rd1, k; and.pred %p1, %p2, !%p3;");
}

static void bad_vectors(void **state)
{
    body("ld.global.v4.f32 {%f1, %f2}, [%rd1];", "10:1: a vector of 4 is wanted, this one has 2");
    body("st.global.v2.f32 [%rd1], {%f1, %f2, %f3};", "10:1: a vector of 2 is wanted, this one has 3");
}

static void bad_guards(void **state)
{
    body("@%r1 ret;", "10:6: the guard is not a predicate");
}

static void good_guards(void **state)
{
    ok("@%p1 ret; @!%p1 ret;");
}

static void bad_counts(void **state)
{
    body("add.s32 %r1, %r2;", "10:1: 'add' has 3 operands, not 2");
    body("ret %r1;", "10:1: 'ret' has 0 operands, not 1");
    body("min.s32 %r1;", "10:1: 'min' has 3 to 4 operands, not 1");
    items(".entry e() { ret 5; }", "4:14: 'ret' has 0 operands, not 1");
    body("mov.b32;", "10:1: 'mov' has 2 operands, not 0");
}

// --- control -----------------------------------------------------------------------------------------------

static void good_branches(void **state)
{
    ok("L: bra L; t: .branchtargets L, M; brx.idx %r1, t; M:");
}

static void bad_branches(void **state)
{
    body("bra %r1;", "10:1: a branch wants a label");
    body("bra k;", "10:1: a branch wants a label");
    body("L: brx.idx %r1, L;", "10:4: the name of a .branchtargets list is wanted");
    body("t: .branchtargets k;", "10:1: 'k' in this list is not a label");
    body("L: t: .calltargets L;", "10:4: 'L' in this list is not a function");
}

#define CALLEES \
    ".func f(); .func (.param .b32 r) g(.param .b32 a);\n.entry e() { .reg .b64 p; .param .b32 x;\n"

static void good_calls(void **state)
{
    items(CALLEES "call f; call (x), g, (x); c: .callprototype _ (.param .b32 _); call p, (x), c;\n"
                  "t: .calltargets f, g; call p, t; }",
          "");
    items(".func f(); .func g() { ret; } .alias f, g;\n.entry e() { call f; t: .calltargets f; }", "");
}

static void bad_calls(void **state)
{
    items(CALLEES "call f, (x); }", "6:1: the callee has 0 parameters, the call passes 1");
    items(CALLEES "call g, (x); }", "6:1: the callee returns 1 values, the call takes 0");
    items(CALLEES "call e; }", "6:1: 'e' is not a function that can be called");
    items(CALLEES "call x; }", "6:1: 'x' is not a function that can be called");
    items(CALLEES "call 5; }", "6:1: a call wants a function");
    items(CALLEES "call p; }", "6:1: an indirect call wants a prototype or a list of targets");
    items(CALLEES "call p, (x), x; }", "6:1: an indirect call wants a prototype or a list of targets");
    items(CALLEES "c: .callprototype _ (); call p, (x), c; }",
          "6:25: the callee has 0 parameters, the call passes 1");
}

static void bad_aliases(void **state)
{
    items(".func f(); .func g(); .alias f, g; .alias g, f;",
          "4:7: the alias 'f' stands for no function\n4:18: the alias 'g' stands for no function");
}

static void bad_declarations(void **state)
{
    items(".func f(.param .b32 a);\n.func f() { ret; }",
          "4:1: 'f' is declared with another number of parameters elsewhere");
    items(".func f(.param .b32 a);\n.func f(.param .b64 a) { ret; }",
          "4:1: 'f' is declared with other parameters elsewhere");
    items(".func f(.param .b32 a) { ret; }\n.func f(.reg .b32 a);",
          "5:1: 'f' is declared with other parameters elsewhere");
}

static void good_declarations(void **state)
{
    items(".func f(.param .b32 a);\n.func f(.param .b32 b) { ret; } .func f(.param .u32 c);", "");
}

// --- accesses ----------------------------------------------------------------------------------------------

static void accesses(const char *text, const char *messages, unsigned wrong)
{
    char *in = testing_join(
        TESTING_BODY
        ".shared .align 16 .b32 s[4]; .local .b8 l[6]; .param .b64 q; .extern .shared .b8 d[];\n",
        text, "\n}\n");
    verify(in, messages, wrong);
    free(in);
}

static void good_accesses(void **state)
{
    accesses("ld.shared.b32 %r1, [s+12]; st.shared.v4.f32 [s], {%f1, %f2, %f3, %f4}; ld.shared.v2.b32 {%r1, "
             "%r2}, [s+8];",
             "", 0);
    accesses(
        "ld.local.u8 %r1, [l+5]; st.local.b16 [l+4], 5; ld.param.b64 %rd1, [q]; ld.param.b32 %r1, [q+4];", "",
        0);
    accesses("ld.shared.b32 %r1, [d+1000]; ld.b32 %r1, [s+1000]; ld.shared.b32 %r1, [%r2+1000];", "", 0);
    accesses("ld.shared.b32 %r1, [s+12]; atom.shared.add.u32 %r1, [s+4], 1; ld.shared::cta.b32 %r1, [s];", "",
             0);
}

static void bad_accesses(void **state)
{
    accesses("ld.shared.b32 %r1, [s+16];",
             "11:1: shared-buffer-overflow: READ of size 4 at byte 16 of 's', which has 16 bytes\ntest.ptx: "
             "in 'k'",
             1);
    accesses("st.shared.v4.f32 [s+4], {%f1, %f2, %f3, %f4};",
             "11:1: shared-buffer-overflow: WRITE of size 16 at byte 4 of 's', which has 16 bytes\ntest.ptx: "
             "in 'k'",
             1);
    accesses(
        "st.shared.b32 [s+-4], 5;\nst.local.b8 [l+6], 5;",
        "11:1: shared-buffer-overflow: WRITE of size 4 at byte -4 of 's', which has 16 bytes\n"
        "test.ptx: in 'k'\n"
        "12:1: local-buffer-overflow: WRITE of size 1 at byte 6 of 'l', which has 6 bytes\ntest.ptx: in 'k'",
        2);
    accesses(
        "ld.param.b64 %rd1, [q+1];",
        "11:1: param-buffer-overflow: READ of size 8 at byte 1 of 'q', which has 8 bytes\ntest.ptx: in 'k'",
        1);
    accesses("ld.shared.b32 %r1, [s+0x7fffffffffffffff];",
             "11:1: shared-buffer-overflow: READ of size 4 at byte 9223372036854775807 of 's', which has 16 "
             "bytes\ntest.ptx: in 'k'",
             1);
    verify(
        TESTING_HEAD ".global .b32 g; .entry e() { .reg .b32 r; atom.global.add.u32 r, [g+4], 1; }",
        "4:43: global-buffer-overflow: WRITE of size 4 at byte 4 of 'g', which has 4 bytes\ntest.ptx: in 'e'",
        1);
    // A linker may replace the variable by a larger one.
    verify(TESTING_HEAD ".weak .global .b32 g; .common .global .b32 h;\n"
                        ".entry e() { .reg .b32 r; ld.global.b32 r, [g+4]; ld.global.b32 r, [h+4]; }",
           "", 0);
}

// A warp accesses the whole matrix, not just its first element.
static void bad_matrices(void **state)
{
#define MATRICES TESTING_HEAD ".entry e()\n{\n.shared .align 32 .b8 t[512];\n.reg .b32 r<9>;\n.reg .pred p;\n"
#define LOAD "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {r0, r1, r2, r3, r4, r5, r6, r7}, "
    verify(MATRICES LOAD "[t];\n" LOAD "[t], 16;\n" LOAD "[t+32], r8;\n}", "", 0);
    verify(MATRICES LOAD "[t+16], 16;\n}",
           "9:1: shared-buffer-overflow: READ of size 512 at byte 16 of 't', which has 512 bytes\n"
           "test.ptx: in 'e'",
           1);
    verify(MATRICES LOAD "[t], 24;\n}",
           "9:1: shared-buffer-overflow: READ of size 752 at byte 0 of 't', which has 512 bytes\n"
           "test.ptx: in 'e'",
           1);
    verify(MATRICES "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [t+496];\n}", "", 0);
    verify(MATRICES "stmatrix.sync.aligned.m8n8.x1.shared.b16 [t+504], {r0};\n}",
           "9:1: shared-buffer-overflow: WRITE of size 16 at byte 504 of 't', which has 512 bytes\n"
           "test.ptx: in 'e'",
           1);
    // An access that may be smaller, or not happen, is not wrong whenever it runs.
    verify(TESTING_HEAD
           ".global .align 16 .b8 g[8];\n.entry e()\n{\n.shared .align 16 .b8 t[16];\n.reg .b32 r;\n"
           ".reg .pred p;\ncp.async.cg.shared.global [t], [g], 16, p;\n"
           "cp.async.cg.shared.global [t], [g], 16, r;\n}",
           "", 0);
}

// A message names the source line of a statement that has a .loc.
static void good_origins(void **state)
{
    accesses(".loc 1 7 9\nld.shared.b32 %r1, [s+16];",
             "12:1: shared-buffer-overflow: READ of size 4 at byte 16 of 's', which has 16 bytes\ntest.ptx: "
             "in 'k'",
             1);
    verify(
        TESTING_HEAD
        ".file 1 \"a.cu\"\n.global .b32 g;\n.entry e() { .reg .b32 r; .loc 1 7 9\nld.global.b32 r, [g+4];\n}",
        "7:1: global-buffer-overflow: READ of size 4 at byte 4 of 'g', which has 4 bytes\n"
        "a.cu:7:9: in 'e'",
        1);
}

static void bad_alignments(void **state)
{
    accesses("ld.shared.b32 %r1, [s+2];",
             "11:1: misaligned-address: READ of size 4 at byte 2 of 's'\ntest.ptx: in 'k'", 1);
    accesses("st.shared.v2.b32 [s+4], {%r1, %r2};",
             "11:1: misaligned-address: WRITE of size 8 at byte 4 of 's'\ntest.ptx: in 'k'", 1);
}

static void bad_spaces(void **state)
{
    accesses("ld.global.b32 %r1, [s];", "11:1: 's' is in .shared, not in .global", 0);
    accesses("ld.shared.b32 %r1, [k];", "11:1: 'k' is not a variable", 0);
    accesses("st.const.b32 [%rd1], %r1;", "11:1: constant memory cannot be written", 0);
    accesses("ld.global.b32 %r1, [%f1];",
             "11:1: an address must be in an integer register, not in one of type .f32", 0);
}

// --- variables ---------------------------------------------------------------------------------------------

static void good_initialisers(void **state)
{
    items(".global .b32 a = 5; .global .f32 b = 1.5; .global .u64 c = a, d = generic(c)+8;", "");
    items(".global .b32 a[4] = {1, 2}; .const .f32 b[2][2] = {{1.0}, {0f3F800000, 2.0}}; .global .b8 c[] = "
          "{1, 2, 3};",
          "");
    items(".global .v2 .f32 a = {1.0, 2.0}; .global .v2 .f32 b[2] = {{1.0, 2.0}}; .global .s16 c[3] = {};",
          "");
    items(".global .b64 a = 0f3F800000; .global .u8 b[2] = {0xFF(a), 0xFF00(a)};", "");
    items(".global .samplerref s = { filter_mode = nearest };", "");
    items(".global .b32 deep[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1] = "
          "{{{{{{{{{{{{{{{{7}}}}}}}}}}}}}}}};",
          "");
}

static void bad_initialisers(void **state)
{
    items(".shared .b32 a = 5;", "4:14: only .global and .const variables can be initialised");
    items(".global .b32 a[2] = {1, 2, 3};", "4:28: there are more values than the variable has room for");
    items(".global .b32 a[2][2] = {1, 2};", "4:25: a value stands where braces are expected");
    items(".global .b32 a[2] = 5;", "4:21: a value stands where braces are expected");
    items(".global .b32 a = {5};", "4:18: braces stand where a value is expected");
    items(".global .b32 a[2] = {{1}};", "4:22: braces stand where a value is expected");
    items(".global .v2 .f32 a = {1.0, 2.0, 3.0};",
          "4:33: there are more values than the variable has room for");
    items(".global .b32 a[2] = {1 2};", "4:24: the initialiser is malformed here");
    items(".global .b32 a[2] = {(1}, 2);", "4:24: the initialiser is malformed here");
    items(".global .u32 a = 1.5;", "4:18: this value does not fit the variable's type");
    items(".global .f32 a = 1;", "4:18: this value does not fit the variable's type");
    items(".global .s64 a = a;", "4:18: this value does not fit the variable's type");
    items(".global .b8 a[4] = \"abc\";", "4:20: a value stands where braces are expected");
    items(".global .pred a = 1;", "4:19: this value does not fit the variable's type");
    items(".global .b8 a = \"abc\";", "4:17: this value does not fit the variable's type");
    items(".global .u64 a = nobody;", "4:18: this name is not declared");
}

static void bad_sizes(void **state)
{
    items(".global .b32 a[];", "4:14: the size of this array is missing");
    items(".global .b32 a[][2];", "4:14: the size of this array is missing");
    body(".shared .b32 a[];", "10:14: the size of this array is missing");
}

static void good_sizes(void **state)
{
    items(".extern .shared .b32 a[]; .global .b32 b[] = {1}; .func f(.param .b8 x[]);", "");
}

// --- the module --------------------------------------------------------------------------------------------

static void bad_modules(void **state)
{
    verify(".version 9.0\n.address_size 64\n", "1:1: there is no .target", 0);
}

static void bad_unknown(void **state)
{
    body("foo.bar %r1; foo.bar %r2; foo %rd1;", "10:1: 'foo.bar' is not known: kept as it is, not checked\n"
                                                "10:27: 'foo' is not known: kept as it is, not checked");
    body("add.foo.s32 %rd1, 1.5;", "10:1: 'add.foo.s32' is not known: kept as it is, not checked");
    body("add .foo .s32 %rd1, 1.5;", "10:1: 'add.foo.s32' is not known: kept as it is, not checked");
    items(".foo 5;", "4:1: this directive is not known: kept as it is, not checked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_types),        cmocka_unit_test(bad_types),
        cmocka_unit_test(bad_constants),     cmocka_unit_test(bad_results),
        cmocka_unit_test(bad_values),        cmocka_unit_test(good_values),
        cmocka_unit_test(bad_vectors),       cmocka_unit_test(bad_guards),
        cmocka_unit_test(good_guards),       cmocka_unit_test(bad_counts),
        cmocka_unit_test(good_branches),     cmocka_unit_test(bad_branches),
        cmocka_unit_test(good_calls),        cmocka_unit_test(bad_calls),
        cmocka_unit_test(bad_aliases),       cmocka_unit_test(bad_declarations),
        cmocka_unit_test(good_declarations), cmocka_unit_test(good_accesses),
        cmocka_unit_test(bad_accesses),      cmocka_unit_test(bad_matrices),
        cmocka_unit_test(good_origins),      cmocka_unit_test(bad_alignments),
        cmocka_unit_test(bad_spaces),        cmocka_unit_test(good_initialisers),
        cmocka_unit_test(bad_initialisers),  cmocka_unit_test(bad_sizes),
        cmocka_unit_test(good_sizes),        cmocka_unit_test(bad_modules),
        cmocka_unit_test(bad_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
