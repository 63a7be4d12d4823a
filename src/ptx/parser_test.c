// SPDX-License-Identifier: MIT
// Modules, text in, text out: what is accepted and how it prints; what is refused, where and why. And
// behaviour out of memory.
#include "base/mem.h"
#include "ptx/testing.h"

#define HEAD TESTING_HEAD

static void same(const char *text)
{
    testing_prints(text, text);
}

static void item_fails(const char *text, const char *message)
{
    char *in = testing_join(HEAD, text, "");
    testing_fails(in, message);
    free(in);
}

// --- modules -----------------------------------------------------------------------------------------------

static void good_modules(void **state)
{
    testing_prints(".version 7.8", ".version 7.8\n");
    testing_prints(".version 123.456", ".version 123.456\n");
    testing_prints("// x\n.version 12.10 .target sm_90a , debug\n.address_size 32;",
                   ".version 12.10\n.target sm_90a , debug\n.address_size 32\n");
    testing_prints("\r\n.version 9.0\r\n.target sm_90\r\n", ".version 9.0\n.target sm_90\n");
    same(HEAD ".file 1 \"a.cu\"\n.file 2 \"b.cu\", 17, 42\n");
    same(HEAD ".pragma \"nounroll\";\n");
    same(HEAD ".section .debug_str { L: .b8 1, 2; { } }\n");
    same(HEAD ".func f();\n.func g();\n.alias f, g;\n");
}

static void good_text_with_nul(void **state)
{
    static const char text[] = ".version 9.0\n\0\0";
    struct ptx_module *m = testing_parse((struct str){text, sizeof text});
    assert_int_equal(m->version_major, 9);
    assert_int_equal(m->nitems, 0);
    ptx_free(m);
    ptx_free(NULL);
}

static void bad_beginnings(void **state)
{
    testing_fails("", "1:1: PTX begins with .version");
    testing_fails("\n// only a comment\n", "3:1: PTX begins with .version");
    testing_fails("int main(void)", "1:1: PTX begins with .version");
    testing_fails("/* .version", "1:1: comment without an end");
    testing_fails(".version", "1:9: a version such as 9.0 is missing");
    testing_fails(".version 9", "1:10: a version such as 9.0 is missing");
    testing_fails(".version 9.", "1:10: a version such as 9.0 is missing");
    testing_fails(".version 9.0e1", "1:10: a version such as 9.0 is missing");
    testing_fails(".version 1234.5", "1:10: a version such as 9.0 is missing");
    testing_fails(".version 9.0 .target ;", "1:22: a target such as sm_90 is missing");
    testing_fails(".version 9.0 .target a,", "1:24: a target such as sm_90 is missing");
    testing_fails(".version 9.0 .address_size 16", "1:28: an address size must be 32 or 64");
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    assert_int_equal(ptx_parse("x", (struct str){NULL, 0}, &t->sink, NULL, &m), -EINVAL);
    assert_string_equal(t->text, "1:1: PTX begins with .version");
    free(t);
}

static void bad_repeated_header(void **state)
{
    item_fails(".version 9.0", "4:1: there is a second .version");
    item_fails(".target sm_90", "4:1: there is a second .target");
    item_fails(".address_size 64", "4:1: there is a second .address_size");
}

static void bad_items(void **state)
{
    item_fails("ret;", "4:1: 'ret' is not expected outside of a function");
    item_fails("}", "4:1: '}' is not expected outside of a function");
    item_fails("\xff", "4:1: unexpected byte");
    item_fails(".visible .foo", "4:10: a function or variable is missing behind the linkage");
    item_fails(".file x", "4:7: a file number is missing");
    item_fails(".file 1", "4:8: a file name is missing");
    item_fails(".file 1 \"a\nb\"", "4:9: string without an end");
    item_fails(".file 5000000000 \"a\"", "4:7: a file number must be at most 4294967295");
    item_fails(".section {", "4:10: a section's name is missing");
    item_fails(".section .a { { }", "4:13: this '{' is never closed");
    item_fails(".section .a { \x01 }", "4:15: unexpected byte");
    item_fails(".alias f, g;", "4:8: 'f' is not a function that is declared here");
    item_fails(".func f(); .alias f, g;", "4:22: 'g' is not a function that is declared here");
    item_fails(".func f(); .alias f f;", "4:21: ',' is missing before 'f'");
    item_fails(".foo 1", "4:7: the text ends where ';' is expected");
    item_fails(".foo \x01", "4:6: unexpected byte");
}

// An unknown directive is kept, and swallows nothing that follows.
static void good_unknown_directives(void **state)
{
    same(HEAD ".foo 1, {a {b} c}\n.bar \"x\";\n.func f();\n");
    testing_prints(HEAD ".foo 1\n.visible .entry k() { ret; }",
                   HEAD ".foo 1\n.visible .entry k()\n{\n\tret;\n}\n");
    static const char *const items[] = {".entry k();",      ".func k();",          ".extern .func k();",
                                        ".weak .func k();", ".visible .func k();", ".common .global .b32 x;",
                                        ".file 1 \"a\"",    ".section .a { }"};
    for (unsigned i = 0; i < sizeof items / sizeof *items; i++) {
        char *text = testing_join(HEAD ".foo 1\n", items[i], "\n");
        same(text);
        struct ptx_module *m = testing_parse(str_from(text));
        assert_int_equal(m->nitems, 2);
        ptx_free(m);
        free(text);
    }
}

// --- functions ---------------------------------------------------------------------------------------------

static void good_functions(void **state)
{
    testing_prints(HEAD ".entry k{}", HEAD ".entry k()\n{\n}\n");
    same(HEAD ".extern .func (.param .b32 r) f(\n\t.param .b64 a,\n\t.param .align 8 .b8 b[16]\n);\n");
    same(HEAD
         ".visible .entry k(\n\t.param .u64 .ptr .global .align 16 a,\n\t.param .f32 b\n)\n.maxntid 256, 1, "
         "1\n.minnctapersm 2\n{\n\tret;\n}\n");
    same(HEAD ".weak .func .attribute(.unified(1, 2)) f(.param .b8 x[])\n.noreturn;\n");
    same(HEAD ".entry k()\n.pragma \"nounroll\";\n{\n}\n");
    same(HEAD ".func (.reg .b32 r) f(.reg .b32 x)\n{\n\tadd.s32 r, x, 1;\n}\n");
    same(HEAD ".func f();\n.func f();\n.func f()\n{\n\tcall f;\n}\n.func f();\n");
}

static void bad_functions(void **state)
{
    item_fails(".entry", "4:7: a function's name is missing");
    item_fails(".func (.param .b32 a) (", "4:23: a function's name is missing");
    item_fails(".func (.param .b32 a", "4:7: this '(' is never closed");
    item_fails(".func (.param .b32 a) 5", "4:23: a function's name is missing");
    item_fails(".func f(.param .b32 a .param .b32 b);", "4:23: ')' is missing before '.param'");
    item_fails(".func f(x);", "4:9: a state space such as .param is missing");
    item_fails(".func f(.param .b32 x, .param .b32 x);", "4:36: 'x' is declared twice");
    item_fails(".func f(.param .b32 x = 5);", "4:26: this ')' closes nothing");
    item_fails(".func f(.param .b32 x = 5, .param .b32 y);", "4:21: this cannot be a parameter");
    item_fails(".func f(.reg .b32 x<0>);", "4:23: this cannot be a parameter");
    item_fails(".func f() foo", "4:11: '{' or ';' is missing behind the function's head");
    item_fails(".func f() {} .func f() {}", "4:24: 'f' has a second body");
    item_fails(".func f(); .global .b32 f;", "4:25: 'f' is declared twice");
    item_fails(".func f() { ret;", "4:1: this function has no end: '}' is missing");
    item_fails(".func .attribute( f() { ret; }", "4:17: this '(' is never closed");
    item_fails(".func (.param .b32 x = {)) foo ();", "4:26: a function's name is missing");
    item_fails(".func (.param .b32 x = (})) foo ();", "4:26: this ')' closes nothing");
}

// --- variables ---------------------------------------------------------------------------------------------

static void good_variables(void **state)
{
    same(HEAD ".global .b32 x;\n.visible .const .align 16 .v4 .f32 y[2][3];\n.extern .shared .b8 z[];\n");
    testing_prints(HEAD ".global .b32 x , y[4], z = 5;",
                   HEAD ".global .b32 x;\n.global .b32 y[4];\n.global .b32 z = 5;\n");
    testing_prints(HEAD ".extern .shared .b8 x[0];", HEAD ".extern .shared .b8 x[];\n");
    same(HEAD ".global .attribute(.managed, .unified(1, 2)) .align 8 .b64 x;\n");
    same(HEAD ".global .u64 x = {1, (2, // ;\n 3)};\n");
    same(HEAD ".extern .global .b32 x;\n.global .b32 x;\n.extern .global .b32 x;\n");
    same(HEAD ".global .samplerref s = { filter_mode = nearest };\n");
    testing_prints(
        HEAD ".reg .b32 %m<2>, a; .entry k() { .reg .b32 b; mov.b32 %m1, b; mov.b32 b, a; }",
        HEAD ".reg .b32 %m<2>;\n.reg .b32 a;\n.entry k()\n{\n\t.reg .b32 b;\n\tmov.b32 %m1, b;\n\tmov.b32 "
             "b, a;\n}\n");
}

static void bad_variables(void **state)
{
    item_fails(".global x;", "4:9: a type is missing");
    item_fails(".global .b32;", "4:13: a name is missing in this declaration");
    item_fails(".global .b32 .f32 x;", "4:14: '.f32' is not expected in a declaration");
    item_fails(".global .v8 .f32 x;", "4:9: '.v8' is not expected in a declaration");
    item_fails(".global .b32 x", "4:15: the text ends where ';' is expected");
    item_fails(".global .b32 x y;", "4:16: ';' is missing before 'y'");
    item_fails(".global .b32 x, x;", "4:17: 'x' is declared twice");
    item_fails(".shared::cta .b32 x;", "4:1: '.shared::cta' is no state space that variables can be in");
    item_fails(".global .align 3 .b32 x;", "4:16: an alignment must be a power of two");
    item_fails(".global .align 0 .b32 x;", "4:16: an alignment must be a power of two");
    item_fails(".global .align x .b32 x;", "4:16: an alignment is missing");
    item_fails(".global .align 4294967296 .b32 x;", "4:16: an alignment must be at most 1073741824");
    item_fails(".global .b32 x[2][];", "4:18: only the first dimension of an array can be left out");
    item_fails(".global .b32 x[-1];", "4:16: the size of an array is missing");
    item_fails(".global .b32 x[2;", "4:17: ']' is missing before ';'");
    item_fails(".global .b32 x[99999999999999999];",
               "4:16: the size of an array must be at most 281474976710656");
    item_fails(".global .b32 x[281474976710656][281474976710656];", "4:15: the array is too large");
    item_fails(".global .b32 x[1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1][1];",
               "4:63: an array has more than 16 dimensions");
    item_fails(".global .b32 x<4>;", "4:15: only registers can be declared in ranges");
    item_fails(".reg .b32 x[4];", "4:11: registers cannot be arrays");
}

static void bad_initialisers(void **state)
{
    item_fails(".global .b32 x = ;", "4:18: an initialiser is missing");
    item_fails(".global .b32 x = {1", "4:14: this initialiser has no end");
    item_fails(".global .b32 x = {1;", "4:20: the initialiser is not closed before ';'");
    item_fails(".global .b32 x = 1};", "4:19: this '}' closes nothing");
    item_fails(".global .b32 x = \x01;", "4:18: unexpected byte");
}

// --- memory ------------------------------------------------------------------------------------------------

static const char everything[] = HEAD
    ".file 1 \"a.cu\"\n.global .b32 x[4] = {1, 2};\n.func (.reg .b32 r) f(.reg .b32 a, .param .b64 b);\n"
    ".func g(); .func h(); .alias g, h;\n.foo 1;\n.entry k(.param .u64 p) .maxntid 1 .minnctapersm 2\n{\n"
    ".reg .b32 %r<10>, y; .reg .pred q;\n.loc 1 2 3\nt: .branchtargets L, M;\n"
    "c: .callprototype (.param .b32 _) _ (.param .b32 _);\n@q bra L;\n{ .reg .f32 %r<4>; bra L; bra M; add "
    ".s32 y, y, y;\n}\n"
    "foo.bar y z; foo y, {%r1, [x+4]};\n.pragma \"a\"; L: call (%r1), f, (5, %r2); M: ret;\n}\n";

static int parse_within(size_t memory, struct testing_sink *t)
{
    struct ptx_limits limits = {.memory = memory};
    struct ptx_module *m;
    int err = ptx_parse("test.ptx", STR(everything), &t->sink, &limits, &m);
    assert_true(err ? !m : !!m);
    assert_int_equal(t->sink.errors, err != 0);
    ptx_free(m);
    return err;
}

static void bad_each_allocation(void **state)
{
    int err = -ENOMEM;
    long n = 0;
    for (; err && n < 1000; n++) {
        struct testing_sink *t = testing_sink_new();
        mem_fail_after(n);
        err = parse_within(0, t);
        mem_fail_after(-1);
        assert_true(!err || (err == -ENOMEM && strstr(t->text, "there is not enough memory")));
        free(t);
    }
    assert_true(n > 20 && n < 1000);
}

static void bad_each_limit(void **state)
{
    size_t memory = 1;
    for (int err = -ENOMEM; err; memory += 997) {
        struct testing_sink *t = testing_sink_new();
        err = parse_within(memory, t);
        assert_true(!err || (err == -ENOMEM && strstr(t->text, "there is not enough memory")));
        free(t);
    }
    assert_true(memory > 10000 && memory < 200000);
}

// Memory is bounded by the size of the text, even for hostile ones.
static void bad_hostile_growth(void **state)
{
    char *text = testing_repeat(TESTING_BODY, "{}", 4000000, "}");
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    assert_int_equal(ptx_parse("test.ptx", str_from(text), &t->sink, NULL, &m), -ENOMEM);
    assert_string_equal(t->text + strlen("10:2097153"),
                        ": there is not enough memory: a module of this size may take 244 MiB");
    free(text);
    free(t);
}

static void count_only(struct diag_sink *sink, const struct diag *d)
{
    assert_string_equal(d->message, "the text is 2 GiB or longer");
}

// A huge text is refused without reading it: offsets would not fit.
static void bad_huge_text(void **state)
{
    struct diag_sink sink = {.emit = count_only};
    struct ptx_module *m;
    assert_int_equal(ptx_parse("test.ptx", (struct str){"", (size_t)INT32_MAX + 1}, &sink, NULL, &m),
                     -EINVAL);
    assert_null(m);
    assert_int_equal(sink.errors, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_modules),     cmocka_unit_test(good_text_with_nul),
        cmocka_unit_test(bad_beginnings),   cmocka_unit_test(bad_repeated_header),
        cmocka_unit_test(bad_items),        cmocka_unit_test(good_unknown_directives),
        cmocka_unit_test(good_functions),   cmocka_unit_test(bad_functions),
        cmocka_unit_test(good_variables),   cmocka_unit_test(bad_variables),
        cmocka_unit_test(bad_initialisers), cmocka_unit_test(bad_each_allocation),
        cmocka_unit_test(bad_each_limit),   cmocka_unit_test(bad_hostile_growth),
        cmocka_unit_test(bad_huge_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
