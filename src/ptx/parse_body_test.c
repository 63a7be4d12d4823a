// SPDX-License-Identifier: MIT
// Statements, text in, text out: what is accepted and how it prints; what is refused, where and why.
#include "ptx/testing.h"

#define HEAD TESTING_HEAD

static void body(const char *text, const char *expected)
{
    char *in = testing_join(TESTING_BODY, text, "}\n"), *out = testing_join(TESTING_BODY, expected, "}\n");
    testing_prints(in, out);
    free(in);
    free(out);
}

static void same_body(const char *text)
{
    body(text, text);
}

static void body_fails(const char *text, const char *message)
{
    char *in = testing_join(TESTING_BODY, text, "\n}\n");
    testing_fails(in, message);
    free(in);
}

// --- registers ---------------------------------------------------------------------------------------------

static void good_registers(void **state)
{
    body(".reg .b32 a, b<0>, c<2>;\n.shared .b32 s;\n",
         "\t.reg .b32 a;\n\t.reg .b32 c<2>;\n\t.shared .b32 s;\n");
}

static void bad_registers(void **state)
{
    body_fails(".reg .b32 x<>;", "10:13: the number of registers is missing");
    body_fails(".reg .b32 x<99999999>;", "10:13: the number of registers must be at most 16777216");
    body_fails(".reg .b32 x<16777216>;", "10:11: there are more than 16777216 registers");
    body_fails(".reg .b32 x<4;", "10:14: '>' is missing before ';'");
    body_fails(".reg .b32 %r<4>;", "10:11: the range '%r' is declared twice");
    body_fails(".reg .b32 x, x;", "10:14: 'x' is declared twice");
    body_fails(".reg .b32 %r3; mov.b32 %r3, 1;", "10:24: '%r3' is declared twice: alone and in a range");
    body_fails(".reg .b32 x3; .reg .b32 x<5>; mov.b32 x3, 1;",
               "10:39: 'x3' is declared twice: alone and in a range");
    body_fails("mov.b32 %r10, 1;", "10:9: '%r10' is not declared");
    body_fails("mov.b32 %r0000000001, 1;", "10:9: '%r0000000001' is not declared");
    body_fails("mov.b32 x, 1; .reg .b32 x;", "10:9: 'x' is used before it is declared");
}

// --- instructions ------------------------------------------------------------------------------------------

static void good_instructions(void **state)
{
    same_body(
        "\tret;\n\tadd.s32 %r1, %r2, -5;\n\t@%p1 mov.b32 %r9, 0x10;\n\t@!%p1 mov.f32 %f1, 0f3F800000;\n");
    body("  mov  .b32  %r1 ,  7 ;;; @ ! %p1 ret ;", "\tmov.b32 %r1, 7;\n\t@!%p1 ret;\n");
    body("ld/**/.global .u32 %r05, [ %rd1 ] ;", "\tld.global.u32 %r5, [%rd1];\n");
    same_body("\tld.global.v4.f32 {%f1, %f2, _, %f4}, [%rd1+-16];\n");
    same_body("\tshfl.sync.idx.b32 %r1|%p1, %r2, 1, 31, -1;\n");
    same_body("\tselp.b32 %r1, %r2, %r3, !%p1;\n");
    same_body("\ttex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%f5, %f6}];\n");
    same_body("\tmov.u32 %r1, %tid.x;\n\tmov.u32 %r2, %laneid;\n");
    same_body("\t.reg .v4 .f32 %v;\n\tmov.f32 %f1, %v.w;\n\tmov.f32 %v.r, %f1;\n");
    body(".reg .v2 .f32 %v; mov.f32 %f1, %v .x;", "\t.reg .v2 .f32 %v;\n\tmov.f32 %f1, %v.x;\n");
    same_body("\t.pragma \"nounroll\";\n");
    same_body(
        "\tvadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;\n\tvadd4.u32.u32.u32 %r1, %r2.b7604, %r3.b0210, %r4;\n");
}

static void good_addresses(void **state)
{
    same_body("\t.shared .b32 s[4];\n\tld.shared.u32 %r1, [s];\n\tld.shared.u32 %r1, [s+0];\n\tmov.u32 %r1, "
              "s+4;\n");
    body("ld.global.u32 %r1, [%rd1-4];", "\tld.global.u32 %r1, [%rd1+-4];\n");
    body("ld.global.u32 %r1, [%rd1+4*(2+1)];", "\tld.global.u32 %r1, [%rd1+12];\n");
    body("ld.local.u32 %r1, [0x10];", "\tld.local.u32 %r1, [16];\n");
    body("ld.local.u32 %r1, [0xFFFFFFFFFFFFFFFF];", "\tld.local.u32 %r1, [-1];\n");
    body("ld.global.u32 %r1, [%rd1+0x8000000000000000];",
         "\tld.global.u32 %r1, [%rd1+-9223372036854775808];\n");
    same_body("\thmm [%rd1, [%rd2], [%r1, {1}]];\n");
}

static void good_constants(void **state)
{
    same_body("\tmov.u32 %r1, (4+4)*2;\n\tmov.u32 %r1, (4);\n\tmov.u32 %r1, !0;\n\tmov.u32 %r1, ! 0;\n");
    same_body("\tmov.u32 %r1, 1 + // one\n 2;\n");
    same_body("\tmov.f32 %f1, 0F3f800000;\n\tmov.u32 %r1, WARP_SZ;\n\tmov.u32 %r1, 2*WARP_SZ;\n");
}

static void bad_instructions(void **state)
{
    body_fails("mov.b32 %r1, ;", "10:14: an operand is missing here");
    body_fails("mov.b32 %r1 %r2;", "10:13: ';' is missing behind the operands");
    body_fails("mov.b32 %r1, 5\nret;", "11:1: ';' is missing behind the operands");
    body_fails("mov.b32 %r1, {%r1;", "10:18: '}' is missing before ';'");
    body_fails("mov.b32 %r1, {};", "10:15: this vector is empty");
    body_fails("mov.b32 %r1, (%r2);", "10:15: a number is expected here, not a name");
    body_fails("mov.b32 %r1, {{{{{{{{{1}}}}}}}}};", "10:22: operands are nested more than 8 deep");
    body_fails("mov.b32 %r1, !!%p1;", "10:16: a number is expected here, not a name");
    body_fails("mov.b32 %r1, %r2.q;", "10:17: '.q' is no part of a register");
    body_fails("mov.b32 %r1, %r2.b78;", "10:17: '.b78' is no part of a register");
    body_fails("mov.b32 %r1, %r2.b76543;", "10:17: '.b76543' is no part of a register");
    body_fails(".shared .b32 s; mov.b32 %r1, s.x;", "10:30: 's' is not a register");
    body_fails("ld.global.u32 %r1, [];", "10:21: an operand is missing here");
    body_fails("ld.global.u32 %r1, [%rd1;", "10:25: ']' is missing before ';'");
    body_fails("ld.global.u32 %r1, [%rd1+];", "10:26: an operand is missing here");
    body_fails("ld.global.u32 %r1, [%rd1+1.5];", "10:26: an address must be an integer");
    body_fails("ld.global.u32 %r1, [%tid];", "10:21: a special register cannot be an address");
    body_fails("ld.global.u32 %r1, %rd1[4];",
               "10:24: an index is not supported here: write [name+offset], the offset in bytes");
    body_fails("mov.b32 %r1, x;", "10:14: 'x' is not declared");
    body_fails("mov.b32 %r1, 1/0;", "10:15: division by zero");
    body_fails("mov.b32 %r1, 12z;", "10:14: malformed number");
    body_fails("mov.b32 %r1, \"x\";", "10:14: an operand is missing here");
    body_fails("mov.b32 %r1|%r2|%r3;", "10:16: ';' is missing behind the operands");
}

static void bad_statements(void **state)
{
    body_fails("5;", "10:1: an instruction, label or directive is expected, not '5'");
    body_fails("\x80", "10:1: unexpected byte");
    body_fails("@5 ret;", "10:2: a predicate register is missing behind '@'");
    body_fails("@x ret;", "10:2: 'x' is not a register that is declared here");
    body_fails("@%p1;", "10:5: an instruction is missing behind the guard");
    body_fails(".pragma", "11:1: ';' is missing before '}'");
    body_fails("{", "4:1: this function has no end: '}' is missing");
    body_fails("}", "11:1: '}' is not expected outside of a function");
}

static void bad_sizes(void **state)
{
    char *text = testing_repeat("add", ".a", 127, " %r1;");
    body_fails(text, "10:1: an instruction with its modifiers is longer than 256 characters");
    free(text);
    text = testing_repeat("add", " .a", 127, " %r1;");
    body_fails(text, "10:386: an instruction with its modifiers is longer than 256 characters");
    free(text);
    text = testing_repeat("mov.b64 %rd1, {1", ",1", 70000, "};");
    body_fails(text, "10:131079: an instruction has more than 65533 operands");
    free(text);
    text = testing_repeat("mov.b32 %r1, 1", "+1", 40000, ";");
    body_fails(text, "10:14: a constant is longer than 65535 characters");
    free(text);
    text = testing_repeat("", "{", 100000, "");
    body_fails(text, "10:64: blocks are nested more than 64 deep");
    free(text);
    text = testing_repeat("mov.b32 %r1, ", "(", 100000, "");
    body_fails(text, "10:78: this constant expression is nested too deep");
    free(text);
    text = testing_repeat("mov.b32 %r1, ", "!", 100000, "");
    body_fails(text, "10:78: this constant expression is nested too deep");
    free(text);
    text = testing_repeat("bra ", "L", 3000, ";");
    char *message = testing_repeat("10:5: '", "L", 80, "...' is not declared");
    body_fails(text, message);
    free(text);
    free(message);
}

static void good_sizes(void **state)
{
    char *text = testing_repeat("\tadd", ".a", 126, " %r1;\n");
    same_body(text);
    free(text);
    text = testing_repeat("", "\t{\n", 63, "");
    char *more = testing_repeat(text, "\t}\n", 63, "");
    same_body(more);
    free(text);
    free(more);
    text = testing_repeat("\tmov.b64 %rd1, {1", ", 1", 65530, "};\n");
    same_body(text);
    free(text);
    text = testing_repeat("\tcall f, (1", ", 1", 65000, ");\n}\n");
    more = testing_join(HEAD ".func f();\n.entry k()\n{\n", text, "");
    testing_prints(more, more);
    free(text);
    free(more);
}

// --- calls -------------------------------------------------------------------------------------------------

#define CALLEES \
    HEAD ".func f();\n.func (.param .b32 r) g(.param .b32 a);\n.entry k()\n{\n\t.reg .b64 %rd<2>;\n"

static void calls(const char *text, const char *expected)
{
    char *in = testing_join(CALLEES, text, "}\n"), *out = testing_join(CALLEES, expected, "}\n");
    testing_prints(in, out);
    free(in);
    free(out);
}

static void call_fails(const char *text, const char *message)
{
    char *in = testing_join(CALLEES, text, "\n}\n");
    testing_fails(in, message);
    free(in);
}

static void good_calls(void **state)
{
    calls("\tcall f;\n", "\tcall f;\n");
    calls("call.uni (), f, ();\n", "\tcall.uni f;\n");
    calls("\t.param .b32 x;\n\tcall (x), g, (x);\n", "\t.param .b32 x;\n\tcall (x), g, (x);\n");
    calls("\tcall g, (5, -1);\n", "\tcall g, (5, -1);\n");
    calls("p: .callprototype (.param .b32 _) _ (.param .b64 _, .param .b8 _[4]) .noreturn;\ncall (5), %rd1, "
          "(4), p;",
          "p: .callprototype (.param .b32 _) _ (\n\t.param .b64 _,\n\t.param .b8 _[4]\n) .noreturn;\n"
          "\tcall (5), %rd1, (4), p;\n");
    calls("p : .callprototype _ ;\ncall %rd1, p;", "p: .callprototype  _ ();\n\tcall %rd1, p;\n");
    calls("p: .calltargets f, g;\n\tcall %rd1, (1), p;\n", "p: .calltargets f, g;\n\tcall %rd1, (1), p;\n");
}

// A call always has returned values, callee and arguments.
static void good_calls_are_completed(void **state)
{
    struct ptx_module *m = testing_parse(STR(CALLEES "call f; call f, (1); call (%rd1), g;}"));
    const struct ptx_func *f = testing_func(m);
    for (unsigned i = 0; i < 3; i++) {
        const struct ptx_stmt *s = testing_insn(f, i);
        assert_int_equal(ptx_operand(s, 0)->kind, PTX_LIST);
        assert_int_equal(ptx_operand(s, 0)->value, i == 2);
        assert_int_equal(ptx_operand(s, 1)->kind, PTX_SYM);
        assert_int_equal(ptx_operand(s, 2)->kind, PTX_LIST);
        assert_int_equal(ptx_operand(s, 2)->value, i == 1);
        assert_null(ptx_operand(s, 3));
    }
    ptx_free(m);
}

static void bad_calls(void **state)
{
    call_fails("call;", "9:5: a function is missing in this call");
    call_fails("call ();", "9:6: a function is missing in this call");
    call_fails("call (), ();", "9:6: a function is missing in this call");
    call_fails("call (), {f};", "9:6: a function is missing in this call");
    call_fails("call h;", "9:6: 'h' is not declared");
    call_fails("call f, ((f));", "9:11: a number is expected here, not a name");
    call_fails("call f, (1", "10:1: ')' is missing before '}'");
    call_fails("p: .callprototype 5;", "9:19: '_' is missing in this prototype");
    call_fails("p: .callprototype _ () }", "9:24: ';' is missing before '}'");
    call_fails(".calltargets f;", "9:1: a name and ':' are missing in front of this directive");
    call_fails("p:; .branchtargets f;", "9:5: a name and ':' are missing in front of this directive");
    call_fails("p: .calltargets f, 5;", "9:20: the name of a target is missing");
    call_fails("p: .calltargets %rd1;", "9:17: a register cannot be a target");
    call_fails("p: .calltargets f g;", "9:19: ';' is missing before 'g'");
    call_fails("p: .branchtargets f, x;", "9:22: 'x' is not declared");
}

// --- debug information -------------------------------------------------------------------------------------

static void good_locations(void **state)
{
    same_body("\t.loc 1 7 3\nL:\n\t.loc 1 7 0\n\tret;\n");
    body(".loc 1 7 3 , function_name $L , inlined_at 1 2 3\nL:ret;",
         "\t.loc 1 7 3, function_name $L , inlined_at 1 2 3\nL:\n\tret;\n");
    body(".loc 1 7 3, function_name $L+5, inlined_at 1 2 3 ret;",
         "\t.loc 1 7 3, function_name $L+5, inlined_at 1 2 3\n\tret;\n");
    struct ptx_module *m = testing_parse(STR(TESTING_BODY ".loc 4000000000 7 3, inlined_at 1 2 3 // x\n}"));
    const struct ptx_func *f = testing_func(m);
    const struct ptx_loc *loc = f->stmts[f->nstmts - 1].loc;
    assert_int_equal(loc->file, 4000000000);
    assert_int_equal(loc->line, 7);
    assert_int_equal(loc->column, 3);
    assert_true(str_eq(loc->inlined, STR(", inlined_at 1 2 3")));
    ptx_free(m);
}

static void bad_locations(void **state)
{
    body_fails(".loc 1 7", "11:1: a column number is missing");
    body_fails(".loc 1 -7 3", "10:8: a line number is missing");
    body_fails(".loc 4294967296 7 3", "10:6: a file number must be at most 4294967295");
    body_fails(".loc 1 7 3, foo", "10:13: function_name or inlined_at is missing");
    body_fails(".loc 1 7 3, function_name 5", "10:27: a label is missing behind function_name");
    body_fails(".loc 1 7 3, function_name a+b", "10:29: the offset of a function's name is missing");
    body_fails(".loc 1 7 3, inlined_at 1 2", "11:1: a column number is missing");
}

// --- what ops.def does not know ----------------------------------------------------------------------------

static void good_unknown_instructions(void **state)
{
    same_body("\tfoo;\n\tfoo.bar %r1, [%rd1+4], {%r2, 5}, label;\nlabel:\n");
    same_body("\t@!%p1 foo  %r1 := {%r2, {}} // x\n 5;\n");
    body("foo %r1 ( 5 ) /* x */ ;", "\tfoo %r1 ( 5 );\n");
    same_body("\tfoo nowhere;\n");
    // An unknown instruction may name anything, even what is declared later.
    same_body("\tfoo x, y;\n\t.reg .b32 x;\n\t.shared .b32 y;\n\tmov.b32 x, y;\n");
    same_body("\t.foo bar, 5;\n");
    struct ptx_module *m =
        testing_parse(STR(TESTING_BODY "foo %r1; baz %r1 %r2; .foo; add.foo %r1, %r2, %r3;}"));
    assert_int_equal(testing_func(m)->nunknown, 4);
    ptx_free(m);
}

static void bad_unknown_instructions(void **state)
{
    body_fails("foo %r1 %r2", "11:1: ';' is missing behind an instruction that is not known");
    body_fails("foo {%r1 ; }", "10:10: ';' is missing behind an instruction that is not known");
    body_fails("foo %r1 \x01;", "10:9: unexpected byte");
    body_fails("foo x; bra x;", "10:12: 'x' is not declared");
    body_fails("foo x; { bra x; }", "10:14: 'x' is not declared");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_registers),
        cmocka_unit_test(bad_registers),
        cmocka_unit_test(good_instructions),
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(good_constants),
        cmocka_unit_test(bad_instructions),
        cmocka_unit_test(bad_statements),
        cmocka_unit_test(bad_sizes),
        cmocka_unit_test(good_sizes),
        cmocka_unit_test(good_calls),
        cmocka_unit_test(good_calls_are_completed),
        cmocka_unit_test(bad_calls),
        cmocka_unit_test(good_locations),
        cmocka_unit_test(bad_locations),
        cmocka_unit_test(good_unknown_instructions),
        cmocka_unit_test(bad_unknown_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
