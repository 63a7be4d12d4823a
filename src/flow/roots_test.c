// SPDX-License-Identifier: MIT
// Roots: random functions compared with what walks through them find, and cases that have a rule of their
// own.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "flow/brute_roots.h"
#include "flow/flow.h"

enum { FUNCTIONS = 4000, LABELS = 6, WALKS = 30, BLOCKS = 60 };

#define HEAD                                                                                                 \
    ".version 8.0\n.target sm_90\n.address_size 64\n.global .align 4 .b8 table[64];\n"                       \
    ".extern .global .align 4 .b8 unknown[];\n.shared .align 4 .b8 tile[64];\n.extern .shared .align 4 .b8 " \
    "dynamic[];\n.extern .func (.param .b64 "                                                                \
    "r) get ();\n"
#define KERNEL                                                                                               \
    HEAD                                                                                                     \
        ".entry k(.param .u64 a, .param .u64 b, .param .align 8 .b8 s[32], .param .u64 .ptr .global c)\n{\n" \
        ".reg .b64 %d<10>, %n<4>;\n.reg .b32 %r<4>, %s<4>;\n.reg .pred %p<3>;\n"

static struct ptx_module *parse(const char *text)
{
    struct diag_printer sink;
    struct ptx_module *m = NULL;
    diag_printer_init(&sink, 5);
    if (ptx_parse("test", str_from(text), &sink.sink, NULL, &m)) {
        fprintf(stderr, "%s\n", text);
        fail();
    }
    return m;
}

static struct flow flow_of(struct ptx_module *m)
{
    struct flow w = {.m = m, .f = m->items[m->nitems - 1].func};
    assert_int_equal(flow_roots(&w, NULL), 0);
    assert_true(roots_valid(w.roots));
    return w;
}

// --- random functions --------------------------------------------------------------------------------------

static void put_stmt(FILE *to, struct brute_random *r)
{
    unsigned a = brute_below(r, 6), b = brute_below(r, 6), c = brute_below(r, 6);
    static const char *const params[] = {"a", "b", "s+8", "c"};
    if (brute_below(r, 5) == 0)
        fprintf(to, "@%s%%p%u ", brute_below(r, 2) ? "!" : "", brute_below(r, 3));
    switch (brute_below(r, 19)) {
    case 0: fprintf(to, "ld.param.u64 %%d%u, [%s];\n", a, params[b % 4]); break;
    case 1: fprintf(to, "mov.b64 %%d%u, %%d%u;\n", a, b); break;
    case 2: fprintf(to, "add.s64 %%d%u, %%d%u, 16;\n", a, b); break;
    case 3: fprintf(to, "add.s64 %%d%u, %%d%u, %%n%u;\n", a, b, c % 4); break;
    case 4: fprintf(to, "selp.b64 %%d%u, %%d%u, %%d%u, %%p0;\n", a, b, c); break;
    case 5: fprintf(to, "ld.global.u64 %%d%u, [%%d%u];\n", a, b); break;
    case 6: fprintf(to, "mov.u64 %%d%u, table;\n", a); break;
    case 7: fprintf(to, "mad.wide.u32 %%d%u, %%r0, 4, %%d%u;\n", a, b); break;
    case 8: fprintf(to, "mov.b64 {%%r0, %%r1}, %%d%u;\n", b); break;
    case 9: fprintf(to, "mov.b64 %%d%u, {%%r0, %%r1};\n", a); break;
    case 10: fprintf(to, "mul.wide.u32 %%n%u, %%r2, 4;\n", a % 4); break;
    case 11: fprintf(to, "add.s64 %%d%u, %%d%u, %%d%u;\n", a, b, c); break;
    case 12: fprintf(to, "cvta.to.global.u64 %%d%u, %%d%u;\n", a, b); break;
    case 13: fprintf(to, "mov.u32 %%s%u, %s;\n", a % 4, c & 1 ? "tile" : "dynamic"); break;
    case 14: fprintf(to, "add.s32 %%s%u, %%s%u, %%r%u;\n", a % 4, b % 4, 2 + c % 2); break;
    case 15: fprintf(to, "selp.b32 %%s%u, %%s%u, %%s%u, %%p1;\n", a % 4, b % 4, c % 4); break;
    case 16: fprintf(to, "cvt.u64.u32 %%d%u, %%s%u;\ncvta.shared.u64 %%d%u, %%d%u;\n", a, b % 4, a, a); break;
    case 17:
        fprintf(to,
                "cvta.to.shared.u64 %%n0, %%d%u;\ncvt.u32.u64 %%s%u, %%n0;\nld.shared.u32 %%r2, [%%s%u];\n",
                b, a % 4, a % 4);
        break;
    default: fprintf(to, "st.global.u32 [%%d%u], %%r3;\n", a); break;
    }
}

static char *random_function(struct brute_random *r)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    fputs(KERNEL, to);
    for (unsigned l = 0; l < LABELS; l++) {
        fprintf(to, "L%u:\n", l);
        for (unsigned i = brute_below(r, 5); i > 0; i--)
            put_stmt(to, r);
        if (brute_below(r, 3))
            fprintf(to, "@%%p%u bra L%u;\n", brute_below(r, 3), brute_below(r, LABELS));
    }
    fputs("ret;\n}\n", to);
    fclose(to);
    return text;
}

static void good_random(void **state)
{
    struct brute_random r = {20260101};
    unsigned long kinds[ROOTS_KINDS] = {0};
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        char *text = random_function(&r);
        struct ptx_module *m = parse(text);
        struct flow w = flow_of(m);
        uint32_t wrong = brute_wrong_root(w.roots, i, WALKS, BLOCKS);
        if (wrong != REACH_NONE)
            fail_msg("value %u: %s\n%s", wrong, roots_kind_names[w.roots->of[wrong].kind], text);
        for (uint32_t v = 0; v < w.reaching->value.len; v++)
            kinds[w.roots->of[v].kind]++;
        flow_drop(&w);
        ptx_free(m);
        free(text);
    }
    for (unsigned k = 0; k < ROOTS_KINDS; k++)
        assert_true(k == ROOTS_OTHER || kinds[k] > FUNCTIONS / 10);
}

// --- rules -------------------------------------------------------------------------------------------------

// The last access of each text, and the kind of its root; for PARAM also the offset.
static const struct {
    const char *text;
    enum roots_kind kind;
    uint32_t id;
} cases[] = {
    {"ld.param.u64 %d0, [b];\nld.global.u32 %r0, [%d0];\n", ROOTS_PARAM, 8},
    {"ld.param.u64 %d0, [s+24];\nld.u32 %r0, [%d0+4];\n", ROOTS_PARAM, 40},
    {"ld.param.v2.u64 {%d0, %d1}, [s];\nld.u32 %r0, [%d1+4];\n", ROOTS_PARAM, 24},
    {"ld.global.u32 %r0, [table+4];\n", ROOTS_VARIABLE, 0},
    {"mov.u64 %d0, table;\nadd.s64 %d0, %d0, 4;\nld.global.u32 %r0, [%d0];\n", ROOTS_VARIABLE, 0},
    {"mov.u64 %d0, unknown;\nld.global.u32 %r0, [%d0];\n", ROOTS_OWN, 0},
    {"mov.u64 %d0, tile;\ncvta.shared.u64 %d1, %d0;\nld.u32 %r0, [%d1];\n", ROOTS_GENERIC, 0},
    // Memory that is not global: by 32 bits, converted there and back, moved by numbers of every kind.
    {"ld.shared.u32 %r0, [tile+4];\n", ROOTS_VARIABLE, 0},
    {"mov.u32 %s0, tile;\nshl.b32 %r1, %r2, 2;\nadd.s32 %s1, %s0, %r1;\nld.shared.u32 %r0, [%s1];\n",
     ROOTS_VARIABLE, 0},
    {"mov.u32 %s0, dynamic;\nmad.lo.s32 %s1, %r2, 4, %s0;\nxor.b32 %s1, %s1, %r3;\n"
     "ld.shared.u32 %r0, [%s1];\n",
     ROOTS_VARIABLE, 0},
    {"mov.u64 %d0, tile;\ncvta.shared.u64 %d1, %d0;\nadd.s64 %d1, %d1, 4;\ncvta.to.shared.u64 %d2, %d1;\n"
     "cvt.u32.u64 %s0, %d2;\nld.shared.u32 %r0, [%s0];\n",
     ROOTS_VARIABLE, 0},
    {"mov.u32 %s0, tile;\nmov.u32 %s1, dynamic;\nselp.b32 %s2, %s0, %s1, %p0;\nld.shared.u32 %r0, [%s2];\n",
     ROOTS_WEB, 0},
    {"mov.u32 %s0, tile;\nmov.u32 %s1, dynamic;\nsub.s32 %s2, %s0, %s1;\nadd.s32 %s3, %s2, %s1;\n"
     "ld.shared.u32 %r0, [%s3];\n",
     ROOTS_OWN, 0},
    // Any pointer may have been converted to shared memory, and 32 bits of a global one are a number.
    {"ld.param.u64 %d0, [a];\ncvta.to.shared.u64 %d1, %d0;\nld.shared.u32 %r0, [%d1];\n", ROOTS_OTHER, 0},
    {"ld.param.u64 %d0, [a];\ncvt.u32.u64 %s1, %d0;\nld.shared.u32 %r0, [%s1];\n", ROOTS_OWN, 0},
    {"mov.u32 %s0, tile;\nL:\nadd.s32 %s0, %s0, 4;\n@%p0 bra L;\nld.shared.u32 %r0, [%s0];\n", ROOTS_VARIABLE,
     0},
    {"ld.param.u64 %d0, [a];\nld.global.u64 %d1, [%d0];\nld.u32 %r0, [%d1];\n", ROOTS_VALUE, 0},
    // The side of a sum that is a number, in either order.
    {"ld.param.u64 %d0, [a];\nmul.wide.s32 %d1, %r1, 4;\nadd.s64 %d2, %d1, %d0;\nld.u32 %r0, [%d2];\n",
     ROOTS_PARAM, 0},
    {"ld.param.u64 %d0, [a];\nshl.b64 %d1, %d5, 2;\nsub.s64 %d2, %d0, %d1;\nld.u32 %r0, [%d2];\n",
     ROOTS_PARAM, 0},
    // What is used as an address, or converted to one, is the pointer; a loaded index is none.
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\ncvta.to.global.u64 %d2, %d0;\nadd.s64 %d3, %d2, %d1;\n"
     "ld.global.u8 %r0, [%d3];\n",
     ROOTS_PARAM, 0},
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [c];\nadd.s64 %d3, %d0, %d1;\nld.global.u8 %r0, [%d3];\n",
     ROOTS_PARAM, 48},
    // Both may be pointers.
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nadd.s64 %d3, %d0, %d1;\nld.u8 %r0, [%d3];\n", ROOTS_WEB,
     0},
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nld.param.u64 %d4, [s];\nsub.s64 %d2, %d1, %d4;\n"
     "cvta.to.global.u64 %d0, %d0;\nadd.s64 %d3, %d0, %d2;\nld.u8 %r0, [%d3];\n",
     ROOTS_OWN, 0},
    // A distance between pointers stays one in other units, and in 32 bits.
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nsub.s64 %d2, %d1, %d0;\nshr.s64 %d3, %d2, 2;\n"
     "cvt.u32.u64 %r1, %d3;\nmad.wide.s32 %d4, %r1, 4, %d0;\nld.u8 %r0, [%d4];\n",
     ROOTS_OWN, 0},
    {"ld.param.u64 %d0, [a];\nsub.s64 %d2, %d0, 8;\nmul.wide.u32 %d3, %r1, 4;\nadd.s64 %d4, %d3, %d2;\n"
     "ld.u8 %r0, [%d4];\n",
     ROOTS_PARAM, 0},
    // A mask rounds a pointer down, or makes a number of it.
    {"ld.param.u64 %d0, [a];\nand.b64 %d1, %d0, -16;\nld.u32 %r0, [%d1];\n", ROOTS_PARAM, 0},
    {"ld.param.u64 %d0, [a];\nand.b64 %d1, %d0, 15;\nld.u32 %r0, [%d1];\n", ROOTS_OWN, 0},
    // Merges.
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\nselp.b64 %d2, %d0, %d1, %p0;\nld.u32 %r0, [%d2];\n",
     ROOTS_WEB, 0},
    {"ld.param.u64 %d0, [a];\nadd.s64 %d1, %d0, 4;\nselp.b64 %d2, %d0, %d1, %p0;\nld.u32 %r0, [%d2];\n",
     ROOTS_PARAM, 0},
    {"ld.param.u64 %d0, [a];\nld.param.u64 %d1, [b];\n@%p0 mov.u64 %d0, %d1;\nld.u32 %r0, [%d0];\n",
     ROOTS_WEB, 0},
    // A loop that moves a pointer has the pointer's root; one that follows a list has not.
    {"ld.param.u64 %d0, [b];\nL:\nadd.s64 %d0, %d0, 4;\n@%p0 bra L;\nld.u32 %r0, [%d0];\n", ROOTS_PARAM, 8},
    {"ld.param.u64 %d0, [b];\nL:\nld.u32 %r0, [%d0];\nld.u64 %d0, [%d0];\n@%p0 bra L;\nmov.u64 %d1, %d0;\n"
     "ld.u32 %r0, [%d1];\n",
     ROOTS_VALUE, 0},
    // Halves of one pointer make it again; halves of two do not.
    {"ld.param.u64 %d0, [b];\nmov.b64 {%r1, %r2}, %d0;\nmov.b64 %d1, {%r1, %r2};\nld.u32 %r0, [%d1];\n",
     ROOTS_PARAM, 8},
    {"ld.param.u64 %d0, [b];\nmov.b64 {%r1, %r2}, %d0;\nmov.b64 %d1, {%r2, %r1};\nld.u32 %r0, [%d1];\n",
     ROOTS_VALUE, 0},
};

static void good_rules(void **state)
{
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        snprintf(text, sizeof text, "%s%sret;\n}\n", KERNEL, cases[i].text);
        struct ptx_module *m = parse(text);
        struct flow w = flow_of(m);
        struct ptx_mem mem[PTX_MAX_MEM];
        struct roots_of of = {0};
        for (uint32_t s = 0; s < w.f->nstmts; s++)
            if (ptx_stmt_mem(w.f, &w.f->stmts[s], mem) && mem[0].space != PTX_SPACE_PARAM)
                of = roots_address(w.roots, s, mem[0].addr);
        if (of.kind != cases[i].kind || (of.kind == ROOTS_PARAM && of.id != cases[i].id))
            fail_msg("%s %u: %s", roots_kind_names[of.kind], of.id, cases[i].text);
        flow_drop(&w);
        ptx_free(m);
    }
}

// In the second round, `%d1` is derived from what the load gave in the first.
static void good_earlier_round(void **state)
{
    struct ptx_module *m = parse(KERNEL "ld.param.u64 %d0, [a];\nL:\n@%p1 bra M;\nld.u32 %r0, [%d1];\nM:\n"
                                        "ld.u64 %d2, [%d0];\nadd.s64 %d1, %d2, 4;\n@%p0 bra L;\nret;\n}\n");
    struct flow w = flow_of(m);
    struct ptx_mem mem[PTX_MAX_MEM];
    for (uint32_t s = 0; s < w.f->nstmts; s++)
        if (w.f->stmts[s].kind == PTX_INSN && ptx_stmt_mem(w.f, &w.f->stmts[s], mem) && mem[0].bytes == 4)
            assert_int_equal(roots_address(w.roots, s, mem[0].addr).kind, ROOTS_WEB);
    flow_drop(&w);
    ptx_free(m);
}

static void good_without_memory(void **state)
{
    struct brute_random r = {7};
    char *text = random_function(&r);
    struct ptx_module *m = parse(text);
    int err = -ENOMEM;
    for (long n = 0; err == -ENOMEM; n++) {
        struct flow w = {.m = m, .f = m->items[m->nitems - 1].func};
        mem_fail_after(n);
        err = flow_roots(&w, NULL);
        mem_fail_after(-1);
        flow_drop(&w);
    }
    assert_int_equal(err, 0);
    ptx_free(m);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_rules),
        cmocka_unit_test(good_earlier_round),
        cmocka_unit_test(good_random),
        cmocka_unit_test(good_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
