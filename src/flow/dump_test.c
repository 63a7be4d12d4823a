// SPDX-License-Identifier: MIT
// Compares dumps word for word, and checks that they change nothing but comments.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"
#include "base/option.h"
#include "flow/dump.h"

static const char TEXT[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".extern .func helper();\n"
                           ".global .align 4 .b8 table[4] = {1, 2, 3, 4};\n"
                           ".entry sum(\n\t.param .u64 data,\n\t.param .u32 n\n)\n.maxntid 32, 1, 1\n{\n"
                           "\t.reg .pred %p<2>;\n"
                           "\t.reg .b32 %r<4>;\n"
                           "\tld.param.u32 %r0, [n];\n"
                           "\tmov.u32 %r1, 0;\n"
                           "\tsetp.eq.u32 %p0, %r0, 0;\n"
                           "\t@%p0 bra DONE;\n"
                           "LOOP:\n"
                           "\tadd.u32 %r1, %r1, %r0;\n"
                           "\t@%p1 mov.u32 %r1, %r2;\n"
                           "\tsub.u32 %r0, %r0, 1;\n"
                           "\tsetp.ne.u32 %p0, %r0, 0;\n"
                           "\t@%p0 bra LOOP;\n"
                           "DONE:\n"
                           "\tst.shared.u32 [0], %r1;\n"
                           "\tret;\n"
                           "\ttrap;\n"
                           "}\n";

static struct ptx_module *parse(const char *text)
{
    struct diag_printer sink;
    struct ptx_module *m;
    diag_printer_init(&sink, 5);
    assert_int_equal(ptx_parse("test", str_from(text), &sink.sink, NULL, &m), 0);
    return m;
}

static char *dump(const char *analysis, const struct ptx_module *m)
{
    struct out to;
    out_to_memory(&to);
    if (analysis)
        assert_int_equal(flow_dump_module(analysis, m, &to), 0);
    else
        ptx_print(m, &to);
    out_char(&to, '\0');
    assert_int_equal(to.error, 0);
    char *text = strdup(to.buf);
    out_close(&to);
    return text;
}

// Keeps the lines that are comments, or those that are not.
static char *lines(const char *text, bool comments)
{
    char *kept = calloc(1, strlen(text) + 1), *at = kept;
    while (*text) {
        size_t len = strcspn(text, "\n") + 1;
        bool comment = !strncmp(text + strspn(text, "\t"), "//", 2);
        if (comment == comments) {
            memcpy(at, text, len);
            at += len;
        }
        text += len;
    }
    return kept;
}

static void check(const char *analysis, const char *want)
{
    struct ptx_module *m = parse(TEXT);
    char *plain = dump(NULL, m), *dumped = dump(analysis, m);
    char *rest = lines(dumped, false), *comments = lines(dumped, true);
    assert_string_equal(rest, plain);
    assert_string_equal(comments, want);
    ptx_free(parse(dumped));
    free(rest);
    free(comments);
    free(plain);
    free(dumped);
    ptx_free(m);
}

static void dumps(void **state)
{
    (void)state;
    check("cfg", "// block 0: pred none, succ 2 1\n"
                 "// block 1: pred 0 1, succ 1 2\n"
                 "// block 2: pred 0 1, succ none, exits\n"
                 "// block 3: pred none, succ none, exits, never reached\n");
    check("dominators", "// block 0: pred none, succ 2 1, dominator none\n"
                        "// block 1: pred 0 1, succ 1 2, dominator 0\n"
                        "// block 2: pred 0 1, succ none, exits, dominator 0\n"
                        "// block 3: pred none, succ none, exits, never reached, dominator none\n");
    check("postdominators", "// block 0: pred none, succ 2 1, post-dominator 2\n"
                            "// block 1: pred 0 1, succ 1 2, post-dominator 2\n"
                            "// block 2: pred 0 1, succ none, exits, post-dominator the exit\n"
                            "// block 3: pred none, succ none, exits, never reached, "
                            "post-dominator the exit\n");
    check("loops", "// block 0: pred none, succ 2 1\n"
                   "// block 1: pred 0 1, succ 1 2, loop 0 at depth 1, its header, latches 1\n"
                   "// block 2: pred 0 1, succ none, exits\n"
                   "// block 3: pred none, succ none, exits, never reached\n");
    check("reaching", "// block 0: pred none, succ 2 1\n"
                      "\t// writes %r0 #0\n"
                      "\t// writes %r1 #1\n"
                      "\t// reads %r0 #0; writes %p0 #2\n"
                      "\t// reads %p0 #2\n"
                      "// block 1: pred 0 1, succ 1 2\n"
                      "\t// reads %r1 #1 #3 #4, %r0 #0 #5; writes %r1 #3\n"
                      "\t// reads %p1 entry, %r2 entry; writes %r1 #4 in part\n"
                      "\t// reads %r0 #0 #5; writes %r0 #5\n"
                      "\t// reads %r0 #5; writes %p0 #6\n"
                      "\t// reads %p0 #6\n"
                      "// block 2: pred 0 1, succ none, exits\n"
                      "\t// reads %r1 #1 #3 #4\n"
                      "// block 3: pred none, succ none, exits, never reached\n");
    check("liveness", "// block 0: pred none, succ 2 1, live in %p1 %r2, live out %p1 %r0 %r1 %r2\n"
                      "// block 1: pred 0 1, succ 1 2, live in %p1 %r0 %r1 %r2, live out %p1 %r0 %r1 %r2\n"
                      "// block 2: pred 0 1, succ none, exits, live in %r1, live out none\n"
                      "// block 3: pred none, succ none, exits, never reached, "
                      "live in none, live out none\n");
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(flow_analysis_names,
                        "cfg, dominators, postdominators, loops, reaching, roots, liveness");
    assert_true(flow_analysis_known("loops"));
    assert_false(flow_analysis_known("loop"));
    assert_false(flow_analysis_known(""));
}

// Two ways into a cycle, and an unknown instruction.
static void oddities_are_marked(void **state)
{
    (void)state;
    struct ptx_module *m = parse(".version 8.0\n.target sm_90\n.entry k()\n{\n.reg .pred p;\n@p bra B;\n"
                                 "A: frob.x p;\nB: @p bra A;\n}\n");
    char *text = dump("loops", m);
    assert_non_null(strstr(text, "\n// uncertain: there are instructions that are not known\n// block 0:"));
    assert_non_null(strstr(text, "// block 1: pred 0 2, succ 2, irreducible region 0\n"));
    free(text);
    ptx_free(m);
}

static void out_of_memory(void **state)
{
    (void)state;
    struct ptx_module *m = parse(TEXT);
    int err = -ENOMEM;
    for (long n = 0; err; n++) {
        struct out to;
        assert_int_equal(out_to_memory(&to), 0);
        mem_fail_after(n);
        err = flow_dump_module("liveness", m, &to);
        mem_fail_after(-1);
        assert_true(err == 0 || err == -ENOMEM);
        out_close(&to);
    }
    ptx_free(m);
}

// The option's help is in base, which does not know the analyses; it must name all of them.
static void help_names_all(void **state)
{
    (void)state;
    const struct option_row *row = option_table.rows;
    while (strcmp(row->key, "dump-after") != 0)
        row++;
#define ANALYSIS(name, type, text) assert_non_null(strstr(row->help, #name));
#include "flow/analyses.def"
#undef ANALYSIS
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dumps),          cmocka_unit_test(names),
        cmocka_unit_test(help_names_all), cmocka_unit_test(oddities_are_marked),
        cmocka_unit_test(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
