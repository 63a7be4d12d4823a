// SPDX-License-Identifier: MIT
// Multiples: what is known of the address of the last access of a text.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "flow/flow.h"
#include "flow/multiples.h"

#define KERNEL                                                                                            \
    ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 tile[64];\n"                     \
    ".entry k(.param .u64 a, .param .u32 n)\n{\n.reg .b64 %d<10>;\n.reg .b32 %r<6>;\n.reg .pred %p<3>;\n" \
    "ld.param.u64 %d0, [a];\nld.param.u32 %r0, [n];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n"

static const struct {
    const char *text;
    int own, beyond;
} cases[] = {
    {"ld.u8 %r5, [%d0];\n", 0, 5},
    {"add.s64 %d1, %d0, 8;\nld.u8 %r5, [%d1];\n", 0, 3},
    {"mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %d0, %d1;\nld.u8 %r5, [%d2];\n", 0, 2},
    {"mul.wide.u32 %d1, %r1, 4;\nadd.s64 %d2, %d1, %d0;\nld.u8 %r5, [%d2];\n", 0, 2},
    {"cvt.u64.u32 %d1, %r1;\nshl.b64 %d1, %d1, 3;\nsub.s64 %d2, %d0, %d1;\nld.u8 %r5, [%d2];\n", 0, 3},
    {"mad.wide.s32 %d2, %r1, 12, %d0;\nld.u8 %r5, [%d2];\n", 0, 2},
    {"cvt.u64.u32 %d1, %r1;\nadd.s64 %d2, %d0, %d1;\nld.u8 %r5, [%d2];\n", 0, 0},
    {"cvt.u64.u32 %d1, %r1;\nadd.s64 %d2, %d0, %d1;\nand.b64 %d2, %d2, -16;\nld.u8 %r5, [%d2];\n", 4, 4},
    {"mul.lo.u32 %r2, %r1, 24;\nshr.u32 %r2, %r2, 1;\ncvt.u64.u32 %d1, %r2;\nadd.s64 %d2, %d0, %d1;\n"
     "ld.u8 %r5, [%d2];\n",
     0, 2},
    {"mul.hi.u32 %r2, %r1, 24;\ncvt.u64.u32 %d1, %r2;\nadd.s64 %d2, %d0, %d1;\nld.u8 %r5, [%d2];\n", 0, 0},
    // Loops and merges keep what all of their inputs are.
    {"L:\nadd.s64 %d0, %d0, 16;\n@%p0 bra L;\nld.u8 %r5, [%d0];\n", 0, 4},
    {"L:\nadd.s64 %d0, %d0, 16;\n@%p0 bra L;\n@%p0 add.s64 %d0, %d0, 4;\nld.u8 %r5, [%d0];\n", 0, 2},
    {"add.s64 %d1, %d0, 2;\nselp.b64 %d2, %d0, %d1, %p0;\nld.u8 %r5, [%d2];\n", 0, 1},
    // A loaded pointer is one by itself, and a variable is aligned.
    {"ld.u64 %d1, [%d0];\nadd.s64 %d1, %d1, 8;\nld.u8 %r5, [%d1];\n", 0, 3},
    {"mov.u32 %r2, tile;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r2, %r2, %r3;\nld.shared.u8 %r5, [%r2];\n", 2, 2},
    {"mov.u64 %d1, tile;\ncvta.shared.u64 %d2, %d1;\nadd.s64 %d2, %d2, 16;\nld.u8 %r5, [%d2];\n", 3, 4},
};

static void good_rules(void **state)
{
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        struct diag_printer sink;
        struct ptx_module *m = NULL;
        struct arena arena;
        struct multiples multiples;
        uint32_t v = REACH_NONE;
        diag_printer_init(&sink, 5);
        snprintf(text, sizeof text, "%s%sret;\n}\n", KERNEL, cases[i].text);
        assert_int_equal(ptx_parse("test", str_from(text), &sink.sink, NULL, &m), 0);
        struct flow w = {.m = m, .f = m->items[m->nitems - 1].func};
        arena_init(&arena, 0);
        assert_int_equal(flow_roots(&w, NULL), 0);
        assert_int_equal(multiples_build(w.roots, &arena, &multiples), 0);
        for (uint32_t s = 0; s < w.f->nstmts; s++) {
            struct ptx_mem mem[PTX_MAX_MEM];
            if (ptx_stmt_mem(w.f, &w.f->stmts[s], mem) && mem[0].addr->sub == PTX_BASE_REG)
                v = reach_read(w.reaching, s, regs_index(w.regs, mem[0].addr->id));
        }
        if (multiples.own[v] != cases[i].own || multiples.beyond[v] != cases[i].beyond)
            fail_msg("%d %d: %s", multiples.own[v], multiples.beyond[v], cases[i].text);
        arena_free(&arena);
        flow_drop(&w);
        ptx_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good_rules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
