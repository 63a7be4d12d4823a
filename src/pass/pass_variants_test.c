// SPDX-License-Identifier: MIT
// The variants of a module as a module of their own: what is left, how variables are reached, what refuses.
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "pass/pass_variants.h"
#include "ptx/testing.h"

#define VARIABLES                                                                               \
    ".visible .const .align 4 .b32 factor[4] = {1, 2, 3, 4};\n.global .align 4 .b32 sums[4];\n" \
    ".visible .global .u64 idle;\n.shared .align 4 .b8 tile[128];\n"
#define FUNCTIONS                                                            \
    ".func (.reg .b32 r) other(.reg .b32 x)\n{\nadd.s32 r, x, 1;\nret;\n}\n" \
    ".func (.reg .b32 r) twice(.reg .b32 x)\n{\nadd.s32 r, x, x;\nret;\n}\n"
// Registers of kernel k, and its body.
#define KERNEL(body)                                                                              \
    ".visible .entry k(.param .b64 p)\n{\n.reg .b64 %rd<6>;\n.reg .b32 %r<6>;\n.reg .pred %p0;\n" \
    "ld.param.b64 %rd0, [p];\nld.global.b32 %r0, [%rd0];\nmul.wide.s32 %rd1, %r0, 4;\n" body "ret;\n}\n"
#define SECOND                                                                             \
    ".visible .entry second(.param .b64 p)\n{\n.reg .b64 %rd0;\nld.param.b64 %rd0, [p];\n" \
    "st.global.b32 [%rd0], 1;\nret;\n}\n"

static struct pass_result *rewritten_by(const char *passes, const char *text)
{
    struct testing_sink *t = testing_sink_new();
    struct pass_request request = {.passes = passes, .verify = true};
    struct pass_result *r;
    int err = pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    free(t);
    return r;
}

static struct pass_result *rewritten(const char *text)
{
    return rewritten_by("check,variants", text);
}

static void has(const struct pass_result *r, const char *what)
{
    if (!strstr(r->text.ptr, what))
        print_error("%s\n", r->text.ptr);
    assert_non_null(strstr(r->text.ptr, what));
}

static void has_not(const struct pass_result *r, const char *what)
{
    assert_null(strstr(r->text.ptr, what));
}

static void good_variables(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD VARIABLES FUNCTIONS KERNEL(
        "mov.u64 %rd2, factor;\nadd.s64 %rd2, %rd2, %rd1;\n"
        "ld.const.b32 %r1, [%rd2+4];\nld.const.b32 %r2, [factor+8];\n"
        "call (%r3), twice, (%r2);\ncvta.const.u64 %rd3, %rd2;\n"
        "st.shared.b32 [tile], %r3;\nst.global.b32 [sums+4], %r1;\n"));
    const struct pass_check *c = r->check;
    assert_true(c->apart);
    assert_int_equal(c->nvariables, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_true(c->variables[i].needed);
    has(r, "entry " KCHECK_PREFIX "k(");
    has(r, KCHECK_PREFIX "twice");
    has(r, ".shared .align 4 .b8 tile[128];");
    has(r, "ld.global.b32 %r1, [%rd2+4];");
    has(r, "cvta.global.u64 %rd3, %rd2;");
    has(r, ".visible .const .align 8 .u64 __moat_check_addresses_");
    has_not(r, "entry k(");
    has_not(r, "other");
    has_not(r, "factor");
    has_not(r, "sums");
    has_not(r, "idle");
    has_not(r, "check_variables");
    // It is still PTX.
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    assert_int_equal(ptx_parse("again", r->text, &t->sink, NULL, &m), 0);
    assert_int_equal(ptx_verify(m, &t->sink, NULL), 0);
    ptx_free(m);
    free(t);
    pass_result_free(r);
}

static void good_description(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD VARIABLES KERNEL("st.global.b32 [sums+4], %r0;\n")),
                       *again;
    struct out out;
    assert_int_equal(out_to_memory(&out), 0);
    pass_describe(r, &out);
    assert_int_equal(pass_description((struct str){out.buf, out.len}, &again), 0);
    assert_true(again->check->apart);
    assert_int_equal(again->check->nvariables, 1);
    assert_true(again->check->variables[0].needed);
    assert_true(str_eq(again->check->table, r->check->table));
    out_close(&out);
    pass_result_free(again);
    pass_result_free(r);
}

static void good_cut(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD VARIABLES KERNEL("st.global.b32 [sums+4], %r0;\n") SECOND);
    struct testing_sink *t = testing_sink_new();
    struct out out;
    const struct pass_variants_way plain = {.registers = 0};
    assert_int_equal(out_to_memory(&out), 0);
    assert_int_equal(pass_variants_cut(r->text, STR(KCHECK_PREFIX "second"), &plain, &t->sink, &out), 0);
    assert_non_null(strstr(out.buf, "entry " KCHECK_PREFIX "second("));
    assert_null(strstr(out.buf, KCHECK_PREFIX "k("));
    out_close(&out);
    assert_int_equal(out_to_memory(&out), 0);
    assert_int_equal(pass_variants_cut(r->text, STR(KCHECK_PREFIX "third"), &plain, &t->sink, &out), -ENOENT);
    out_close(&out);
    free(t);
    pass_result_free(r);
}

// The limit of registers is the smaller one of the two, and the only one.
static void good_limit(void **state)
{
    static const struct {
        const char *directives;
        unsigned registers;
        const char *expected;
    } rows[] = {
        {"", 0, NULL},
        {"", 40, ".maxnreg 40"},
        {".maxnreg 64", 40, ".maxnreg 40"},
        {".maxnreg 32", 40, ".maxnreg 32"},
        {".maxnreg 32", 0, ".maxnreg 32"},
        {".maxntid 128, 1, 1\n.minnctapersm 2", 40, ".maxnreg 40"},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct testing_sink *t = testing_sink_new();
        struct out out;
        char text[2000];
        snprintf(text, sizeof text, "%s.visible .entry k(.param .b64 p)\n%s\n{\n%s}\n", TESTING_HEAD,
                 rows[i].directives,
                 ".reg .b64 %rd0;\nld.param.b64 %rd0, [p];\nst.global.b32 [%rd0], 1;\nret;\n");
        struct pass_result *r = rewritten(text);
        assert_int_equal(out_to_memory(&out), 0);
        const struct pass_variants_way way = {.registers = rows[i].registers};
        assert_int_equal(pass_variants_cut(r->text, STR(KCHECK_PREFIX "k"), &way, &t->sink, &out), 0);
        const char *at = strstr(out.buf, ".maxnreg");
        assert_int_equal(at != NULL, rows[i].expected != NULL);
        if (at) {
            assert_memory_equal(at, rows[i].expected, strlen(rows[i].expected));
            assert_null(strstr(at + 1, ".maxnreg"));
        }
        assert_int_equal(!strstr(rows[i].directives, ".minnctapersm"), !strstr(out.buf, ".minnctapersm"));
        out_close(&out);
        free(t);
        pass_result_free(r);
    }
}

// What cannot leave its module is rewritten as by check alone.
static void bad_modules(void **state)
{
    static const char *const texts[] = {
        TESTING_HEAD FUNCTIONS ".global .u64 what = twice;\n" KERNEL("st.global.b64 [what], %rd0;\n"),
        TESTING_HEAD FUNCTIONS KERNEL("mov.u64 %rd2, twice;\nst.global.b64 [%rd0], %rd2;\n"),
        TESTING_HEAD ".extern .global .b8 theirs[8];\n" KERNEL("ld.global.b32 %r1, [theirs];\n"),
        TESTING_HEAD ".visible .global .attribute(.managed) .b64 shared_with_host;\n" KERNEL(
            "ld.global.b64 %rd2, [shared_with_host];\n"),
        TESTING_HEAD ".visible .const .b32 factor;\n" KERNEL(
            "mov.u64 %rd2, factor;\nisspacep.const %p0, %rd2;\n@%p0 st.global.b32 [%rd0], 1;\n"),
    };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct pass_result *r = rewritten(texts[i]);
        if (r->check->apart)
            print_error("%s\n", texts[i]);
        assert_false(r->check->apart);
        has(r, "entry k(");
        has(r, "entry " KCHECK_PREFIX "k(");
        pass_result_free(r);
    }
}

// The variants of the other passes that check; those of passes that do not stay with their module.
static void good_shadow(void **state)
{
    static const char *const passes[] = {"shadow,variants", "variants,shadow_128",
                                         "shadow_unloaded_8,variants"};
    const char *text = TESTING_HEAD VARIABLES FUNCTIONS KERNEL("st.global.b32 [%rd0+4], %r0;\n");
    for (unsigned i = 0; i < sizeof passes / sizeof *passes; i++) {
        struct pass_result *r = rewritten_by(passes[i], text);
        assert_true(r->check->apart);
        has(r, "entry " KCHECK_PREFIX "k(");
        has(r, KCHECK_VARIABLE "+");
        has_not(r, "entry k(");
        pass_result_free(r);
    }
    struct pass_result *r = rewritten_by("count,shadow,variants", text);
    assert_false(r->check->apart);
    pass_result_free(r);
    assert_true(pass_variants_of("shadow_128") && pass_variants_of("check"));
    assert_false(pass_variants_of("count") || pass_variants_of("fence"));
}

// A name that begins with % cannot have a prefix, so such a kernel has no variant.
static void bad_name(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD ".visible .entry %k(.param .b64 p)\n{\n.reg .b64 %d0;\n"
                                                   "ld.param.b64 %d0, [p];\nst.global.b32 [%d0], 1;\n"
                                                   "ret;\n}\n");
    assert_int_equal(r->funcs[0].why, PASS_UNCOPIED);
    has_not(r, KCHECK_PREFIX "%");
    pass_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_variables), cmocka_unit_test(good_description),
                                       cmocka_unit_test(good_cut),       cmocka_unit_test(good_limit),
                                       cmocka_unit_test(good_shadow),    cmocka_unit_test(bad_modules),
                                       cmocka_unit_test(bad_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
