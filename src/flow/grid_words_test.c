// SPDX-License-Identifier: MIT
#include "flow/grid_words.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "flow/flow.h"

// Returns whether the only access of a kernel is one of the grid's words.
static bool is_grid_word(const char *body)
{
    char text[2000];
    struct diag_printer sink;
    struct ptx_module *m = NULL;
    const struct reach *reach = NULL;
    struct ptx_mem mem[PTX_MAX_MEM];
    bool found = false;
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 a)\n{\n"
             ".reg .b32 %%r<9>;\n.reg .b64 %%d<9>;\n.reg .pred %%p;\n%s\nret;\n}\n",
             body);
    diag_printer_init(&sink, 5);
    assert_int_equal(ptx_parse("test", str_from(text), &sink.sink, NULL, &m), 0);
    struct flow w = {.m = m, .f = m->items[m->nitems - 1].func};
    assert_int_equal(flow_reaching(&w, &reach), 0);
    for (uint32_t i = 0; i < w.f->nstmts; i++)
        if (ptx_stmt_mem(w.f, &w.f->stmts[i], mem) && mem[0].addr->sub == PTX_BASE_REG)
            found = grid_words_address(w.f, reach, i, mem[0].addr);
    flow_drop(&w);
    ptx_free(m);
    return found;
}

#define HALVES "mov.u32 %r1, %envreg1;\nmov.u32 %r2, %envreg2;\n"
#define WIDE HALVES "cvt.u64.u32 %d1, %r1;\ncvt.u64.u32 %d2, %r2;\n"

// The forms in which compilers put the two halves together.
static void good_forms(void **state)
{
    assert_true(is_grid_word(WIDE "bfi.b64 %d3, %d1, %d2, 32, 32;\nadd.s64 %d4, %d3, 4;\n"
                                  "atom.add.release.gpu.u32 %r3, [%d4], 1;"));
    assert_true(
        is_grid_word(WIDE "shl.b64 %d3, %d1, 32;\nor.b64 %d4, %d3, %d2;\nld.acquire.gpu.u32 %r3, [%d4+4];"));
    assert_true(is_grid_word(HALVES "mov.b64 %d3, {%r2, %r1};\ncvta.to.global.u64 %d4, %d3;\n"
                                    "ld.global.u32 %r3, [%d4];"));
}

// Whatever else is part of the address, the program has chosen it.
static void bad_other_addresses(void **state)
{
    assert_false(is_grid_word("ld.param.u64 %d1, [a];\nld.u32 %r3, [%d1];"));
    assert_false(is_grid_word("mov.u64 %d1, 4096;\nld.u32 %r3, [%d1];"));
    assert_false(is_grid_word(HALVES "mov.b64 %d3, {%r2, %r1};\nmov.u32 %r3, %tid.x;\ncvt.u64.u32 %d4, %r3;\n"
                                     "add.s64 %d5, %d3, %d4;\nld.u32 %r4, [%d5];"));
    assert_false(is_grid_word(HALVES "mov.b64 %d3, {%r2, %r1};\nld.u64 %d5, [%d3];\nld.u32 %r4, [%d5];"));
    assert_false(is_grid_word("mov.u32 %r1, %envreg3;\ncvt.u64.u32 %d1, %r1;\nld.u32 %r4, [%d1];"));
    assert_false(is_grid_word(HALVES "setp.eq.u32 %p, %r1, 0;\nmov.b64 %d3, {%r2, %r1};\n"
                                     "@%p ld.param.u64 %d3, [a];\nld.u32 %r4, [%d3];"));
}

// Sums of sums take no more time than a short walk.
static void bad_long_chains(void **state)
{
    char body[1500] = HALVES "mov.b64 %d1, {%r2, %r1};\n";
    size_t at = strlen(body);
    for (int i = 0; i < 40; i++)
        at += (size_t)snprintf(body + at, sizeof body - at, "add.s64 %%d1, %%d1, %%d1;\n");
    snprintf(body + at, sizeof body - at, "ld.u32 %%r4, [%%d1];");
    assert_false(is_grid_word(body));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_forms),
        cmocka_unit_test(bad_other_addresses),
        cmocka_unit_test(bad_long_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
