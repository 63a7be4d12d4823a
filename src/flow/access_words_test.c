// SPDX-License-Identifier: MIT
// Addresses, conditions and loops in words.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "flow/access_words.h"

// Compares the words of the last access of a kernel with parameters a (p0), n (p1), m (p2) and s (p3).
static void compare(const char *body, const char *address, const char *guards, const char *loops)
{
    static char text[8192], found[3][1024];
    struct diag_printer printer;
    struct ptx_module *m;
    struct ranges *r;
    struct access_words w;
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 tile[64];\n"
             ".visible .entry k(.param .u64 a, .param .u32 n, .param .u32 m, .param .align 8 .b8 s[16])\n{\n"
             ".reg .pred %%p<9>; .reg .b32 %%r<20>; .reg .b64 %%a<20>;\n"
             "ld.param.u64 %%a0, [a];\nld.param.u32 %%r0, [n];\nld.param.u32 %%r1, [m];\n"
             "mov.u32 %%r2, %%tid.x;\nmov.u32 %%r3, %%ctaid.x;\nmov.u32 %%r4, %%ntid.x;\n%s\nret;\n}\n",
             body);
    diag_printer_init(&printer, 5);
    assert_int_equal(ptx_parse("test", str_from(text), &printer.sink, NULL, &m), 0);
    struct flow flow = {.m = m, .f = ptx_find(m, STR("k"))->func};
    assert_int_equal(ranges_build(&flow, &r), 0);
    flow_drop(&flow);
    assert_true(r->proof.head->naccesses > 0);
    assert_true(access_words_start(&w, r, r->proof.head->naccesses - 1));
    for (int i = 0; i < 3; i++) {
        struct out o;
        out_to_memory(&o);
        if (i == 0)
            access_words_address(&w, &o);
        else if (i == 1)
            access_words_guards(&w, &o);
        else
            access_words_loops(&w, &o);
        snprintf(found[i], sizeof found[i], "%.*s", (int)o.len, o.buf);
        out_close(&o);
    }
    ranges_free(r);
    ptx_free(m);
    assert_string_equal(found[0], address);
    assert_string_equal(found[1], guards);
    assert_string_equal(found[2], loops);
}

static void sums(void **state)
{
    compare("ld.global.u32 %r9, [%a0+8];", "p0 + 8", "", "");
    compare("mul.wide.u32 %a1, %r2, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
            "p0 + 4*threadIdx.x", "", "");
    compare("mad.lo.s32 %r5, %r3, %r4, %r2; mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %a1, %a0;"
            "ld.global.u32 %r9, [%a2+-4];",
            "p0 + 4*(blockIdx.x*blockDim.x + threadIdx.x) - 4", "", "");
    compare("sub.s32 %r5, %r0, %r2; shl.b32 %r6, %r5, 3; cvt.s64.s32 %a1, %r6; sub.s64 %a2, %a0, %a1;"
            "ld.global.u32 %r9, [%a2];",
            "p0 - 8*(p1 - threadIdx.x)", "", "");
    compare(
        "ld.param.u32 %r5, [s+4]; mul.wide.u32 %a1, %r5, 4; add.s64 %a2, %a0, %a1; st.global.u32 [%a2], 1;",
        "p0 + 4*p3.4", "", "");
    compare("mov.u32 %r5, tile; shl.b32 %r6, %r2, 2; add.s32 %r7, %r6, %r5; st.shared.u32 [%r7], 1;",
            "tile + 4*threadIdx.x", "", "");
}

static void other_operations(void **state)
{
    compare("mad.lo.s32 %r5, %r3, %r4, %r2; add.s32 %r6, %r5, 1; mad.lo.s32 %r7, %r6, %r0, %r1;"
            "mul.wide.s32 %a1, %r7, 8; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
            "p0 + 8*((blockIdx.x*blockDim.x + threadIdx.x + 1)*p1 + p2)", "", "");
    compare(
        "div.u32 %r5, %r2, %r0; mul.wide.u32 %a1, %r5, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
        "p0 + 4*(threadIdx.x/p1)", "", "");
    compare(
        "min.u32 %r5, %r2, %r0; mul.wide.u32 %a1, %r5, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
        "p0 + 4*min(threadIdx.x, p1)", "", "");
    compare("setp.lt.s32 %p1, %r2, %r0; selp.b32 %r5, %r2, %r1, %p1; mul.wide.u32 %a1, %r5, 4;"
            "add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
            "p0 + 4*(threadIdx.x < p1 ? threadIdx.x : p2)", "", "");
    compare("ld.global.u32 %r5, [%a0]; mul.wide.u32 %a1, %r5, 4; add.s64 %a2, %a0, %a1;"
            "ld.global.u32 %r9, [%a2];",
            "p0 + 4*?", "", "");
}

// As nvcc compiles i / 10, i / 7 and i % 3 for int, and i / 10 for unsigned.
static void divisions(void **state)
{
    compare(
        "mul.hi.s32 %r5, %r2, 1717986919; shr.u32 %r6, %r5, 31; shr.s32 %r7, %r5, 2;"
        "add.s32 %r8, %r7, %r6; mul.wide.s32 %a1, %r8, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
        "p0 + 4*(threadIdx.x/10)", "", "");
    compare("mul.hi.s32 %r5, %r2, -1840700269; add.s32 %r6, %r5, %r2; shr.u32 %r7, %r6, 31;"
            "shr.s32 %r8, %r6, 2; add.s32 %r10, %r8, %r7;"
            "mul.wide.s32 %a1, %r10, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
            "p0 + 4*(threadIdx.x/7)", "", "");
    compare("mul.hi.s32 %r5, %r2, 1431655766; shr.u32 %r6, %r5, 31; add.s32 %r7, %r5, %r6;"
            "mul.lo.s32 %r8, %r7, 3; sub.s32 %r10, %r2, %r8;"
            "mul.wide.s32 %a1, %r10, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
            "p0 + 4*threadIdx.x - 12*(threadIdx.x/3)", "", "");
    compare(
        "add.s32 %r5, %r0, %r2; mul.wide.u32 %a1, %r5, -858993459; shr.u64 %a2, %a1, 35;"
        "cvt.u32.u64 %r6, %a2; mul.wide.u32 %a3, %r6, 4; add.s64 %a4, %a0, %a3; ld.global.u32 %r9, [%a4];",
        "p0 + 4*((p1 + threadIdx.x)/10)", "", "");
    // One less than the factor for 10.
    compare(
        "mul.hi.s32 %r5, %r2, 1717986918; shr.u32 %r6, %r5, 31; shr.s32 %r7, %r5, 2;"
        "add.s32 %r8, %r7, %r6; mul.wide.s32 %a1, %r8, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];",
        "p0 + 4*(((1717986918*threadIdx.x >> 32) >> 2) + ((1717986918*threadIdx.x >> 32) >> 31))", "", "");
}

static void conditions(void **state)
{
    compare("setp.ge.s32 %p1, %r2, %r0; @%p1 bra E; ld.global.u32 %r9, [%a0]; E:", "p0", "threadIdx.x < p1",
            "");
    compare("setp.lt.s32 %p1, %r2, %r0; @%p1 ld.global.u32 %r9, [%a0];", "p0", "threadIdx.x < p1", "");
    compare("setp.lt.s32 %p1, %r2, %r0; @!%p1 ld.global.u32 %r9, [%a0];", "p0", "threadIdx.x >= p1", "");
    compare("setp.ge.s32 %p1, %r2, %r0; setp.eq.s32 %p2, %r3, %r1; or.pred %p3, %p1, %p2; @%p3 bra E;"
            "ld.global.u32 %r9, [%a0]; E:",
            "p0", "threadIdx.x < p1 && blockIdx.x != p2", "");
    // Behind both sides of a condition it plays no part.
    compare("setp.ge.s32 %p1, %r2, %r0; @%p1 bra E; setp.ge.s32 %p2, %r3, %r1; @%p2 bra F; mov.u32 %r5, 1;"
            "F: ld.global.u32 %r9, [%a0]; E:",
            "p0", "threadIdx.x < p1", "");
}

static void loops(void **state)
{
    compare("mov.u32 %r5, %r2; L: setp.ge.s32 %p1, %r5, %r0; @%p1 bra E; mul.wide.s32 %a1, %r5, 4;"
            "add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2]; add.s32 %r5, %r5, %r4; bra L; E:",
            "p0 + 4*(threadIdx.x + blockDim.x*k1)", "threadIdx.x + blockDim.x*k1 < p1",
            "k1 = 0, 1, ... while threadIdx.x + blockDim.x*k1 < p1");
    compare("mov.u32 %r5, %r4; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];"
            "shr.u32 %r5, %r5, 1; setp.ne.s32 %p1, %r5, 0; @%p1 bra L;",
            "p0 + 4*(blockDim.x down to 0)", "", "");
    compare("mov.u32 %r5, 1; L: mul.wide.s32 %a1, %r5, 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2];"
            "shl.b32 %r5, %r5, 1; setp.lt.s32 %p1, %r5, %r0; @%p1 bra L;",
            "p0 + 4*(1, times 2 up to p1)", "", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums),      cmocka_unit_test(other_operations),
        cmocka_unit_test(divisions), cmocka_unit_test(conditions),
        cmocka_unit_test(loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
