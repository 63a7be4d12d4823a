// SPDX-License-Identifier: MIT
// Which blocks of a variant are said to be cold, and where nothing is said.
#include "base/mem.h"
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_cold.h"
#include "pass/pass_variants.h"
#include "ptx/testing.h"

enum { FEWEST = 16 };  // cold blocks that marks are made for

#define KERNEL                                                                                              \
    ".target sm_90\n.address_size 64\n"                                                                     \
    ".func (.reg .b32 v) " PASS_COLD_CALL "(.reg .b64 a, .reg .b64 b, .reg .b64 c, .reg .b64 d)\n{\nret;\n" \
    "}\n.func helper()\n{\nret;\n}\n"                                                                       \
    ".visible .entry " KCHECK_PREFIX "k(.param .b64 p)\n.maxnreg 200\n{\n.reg .b64 %d<6>;\n"                \
    ".reg .b32 %r<6>;\n.reg .pred %p<3>;\n"

// Returns a kernel with n slow copies of one block each, all but one of them in a loop. more: a statement in
// its first block.
static char *kernel(const char *version, unsigned n, const char *more)
{
    struct out out;
    assert_int_equal(out_to_memory(&out), 0);
    out_fmt(&out, ".version %s\n%s%sld.param.b64 %%d0, [p];\ncall helper;\nagain:\n", version, KERNEL, more);
    for (unsigned i = 0; i < n; i++)
        out_fmt(&out,
                "%ssetp.eq.u64 %%p0, %%d0, %u;\n@%%p0 bra slow%u;\nst.global.b32 [%%d0], %u;\nback%u:\n",
                i + 1 < n ? "" : "setp.lt.u64 %p1, %d0, 4096;\n@%p1 bra again;\n", i, i, i, i);
    out_fmt(&out, "ret;\n");
    for (unsigned i = 0; i < n; i++)
        out_fmt(&out,
                "slow%u:\ncall (%%r0), " PASS_COLD_CALL ", (%%d0, %%d0, %%d0, %%d0);\nmov.b32 %%r1, %u;\n"
                "bra back%u;\n",
                i, i, i);
    out_fmt(&out, "}\n%c", 0);
    return out.buf;
}

static char *cut(char *text, bool cold, unsigned beside)
{
    struct testing_sink *t = testing_sink_new();
    const struct pass_variants_way way = {160, beside, cold};
    struct out out;
    assert_int_equal(out_to_memory(&out), 0);
    int err = pass_variants_cut(str_from(text), STR(KCHECK_PREFIX "k"), &way, &t->sink, &out);
    if (err)
        print_error("%s\n%s\n", text, t->text);
    assert_int_equal(err, 0);
    mem_free(text);
    free(t);
    return out.buf;
}

static unsigned count(const char *text, const char *what)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

static void has(const char *text, const char *what)
{
    if (!strstr(text, what))
        print_error("%s\nlacks %s\n", text, what);
    assert_non_null(strstr(text, what));
}

#define OFTEN(n) "\t.pragma \"frequency " #n "\";\n\t"

static void good_marks(void **state)
{
    char *text = cut(kernel("8.0", FEWEST, ""), true, 40);
    has(text, ".version 9.0\n");
    has(text, ".maxnreg 40\n");
    has(text, OFTEN(100) "ld.param.b64 %d0, [p];");
    has(text, "again:\n" OFTEN(200) "setp.eq.u64");
    has(text, "bra slow0;\n" OFTEN(200) "st.global");
    has(text, "back0:\n" OFTEN(200) "setp.eq.u64");
    has(text, "bra again;\n" OFTEN(100) "setp.eq.u64");
    has(text, "bra slow15;\n" OFTEN(100) "st.global");
    has(text, "back15:\n" OFTEN(100) "ret;");
    has(text, "slow0:\n" OFTEN(1) "call (%r0)");
    has(text, "slow15:\n" OFTEN(1) "call (%r0)");
    assert_int_equal(count(text, "frequency 1\""), FEWEST);
    // It is still PTX.
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m;
    assert_int_equal(ptx_parse("again", str_from(text), &t->sink, NULL, &m), 0);
    assert_int_equal(ptx_verify(m, &t->sink, NULL), 0);
    ptx_free(m);
    free(t);
    mem_free(text);
}

// A block that only slow copies lead to is cold too; a newer version stays.
static void good_behind(void **state)
{
    char *whole = kernel("9.1", FEWEST, "");
    struct out out;
    assert_int_equal(out_to_memory(&out), 0);
    out_fmt(&out, "%.*sslow_end:\nmov.b32 %%r2, 5;\nbra back0;\n}\n%c", (int)strlen(whole) - 2, whole, 0);
    mem_free(whole);
    memcpy(strstr(out.buf, "mov.b32 %r1, 3;\n"), "bra slow_end;   ", 16);
    char *text = cut(out.buf, true, 0);
    has(text, ".version 9.1\n");
    has(text, ".maxnreg 160\n");
    has(text, "slow_end:\n" OFTEN(1) "mov.b32 %r2, 5;");
    mem_free(text);
}

// Nothing is said, and the version and the limit stay: for another compiler, of an old text, of few blocks,
// of one that says it itself, and of one whose control flow is uncertain.
static void bad_texts(void **state)
{
    static const struct {
        const char *version, *more;
        unsigned asks, n;
        bool cold;
    } rows[] = {
        {"8.0", "", FEWEST, 0, false},
        {"7.8", "", FEWEST, 0, true},
        {"8.0", "", FEWEST - 1, 0, true},
        {"9.0", ".pragma \"frequency 7\";\n", FEWEST, 1, true},
        {"8.0", "surprise.b32 %r4, %r5;\n", FEWEST, 0, true},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text = cut(kernel(rows[i].version, rows[i].asks, rows[i].more), rows[i].cold, 40), version[20];
        snprintf(version, sizeof version, ".version %s\n", rows[i].version);
        has(text, version);
        has(text, ".maxnreg 160\n");
        assert_int_equal(count(text, "frequency"), rows[i].n);
        mem_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_marks),
        cmocka_unit_test(good_behind),
        cmocka_unit_test(bad_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
