// SPDX-License-Identifier: MIT
// Places of statements: the last .loc before them, and the chain of functions that were inlined.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "flow/place.h"

static const char code[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
                           ".visible .entry k()\n{\n"
                           ".reg .b32 %r<3>;\n"
                           "mov.u32 %r0, 1;\n"
                           ".loc 1 12 5\n"
                           "mov.u32 %r1, 1;\n"
                           ".loc 1 4 3, function_name $name, inlined_at 1 12 5\n"
                           "mov.u32 %r2, 1;\n"
                           ".loc 1 2 1, function_name $name+5, inlined_at 1 4 3\n"
                           "mov.u32 %r2, 2;\n"
                           ".loc 1 0 1\n"
                           "mov.u32 %r2, 3;\n"
                           "ret;\n}\n"
                           ".file 1 \"/src/a.cu\"\n"
                           ".section .debug_str\n{\n$name:\n.b8 102,105,118,101,0\n.b8 115,105,120,0\n}\n";

// Returns the statement that writes the number to the register.
static uint32_t find(const struct ptx_func *f, uint32_t reg, int64_t value)
{
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_INSN && f->stmts[i].nslots == 2 && f->stmts[i].operands[0].id == reg &&
            f->stmts[i].operands[1].value == value)
            return i;
    fail();
    return 0;
}

static void follows_inlined_functions(void **state)
{
    struct diag_printer printer;
    struct ptx_module *m;
    struct place_frame frames[PLACE_FRAMES];
    char name[PLACE_NAME];
    diag_printer_init(&printer, 5);
    assert_int_equal(ptx_parse("test", STR(code), &printer.sink, NULL, &m), 0);
    const struct ptx_func *f = ptx_find(m, STR("k"))->func;

    assert_int_equal(place_frames(m, f, find(f, 0, 1), frames), 1);
    assert_int_equal(frames[0].line, 0);
    place_function(&frames[0], name);
    assert_string_equal(name, "k");
    assert_int_equal(place_ptx_line(m, f, find(f, 0, 1)), 7);

    assert_int_equal(place_frames(m, f, find(f, 1, 1), frames), 1);
    assert_int_equal(frames[0].line, 12);
    assert_true(str_eq(frames[0].file, STR("/src/a.cu")));

    assert_int_equal(place_frames(m, f, find(f, 2, 1), frames), 2);
    assert_int_equal(frames[0].line, 4);
    assert_true(frames[0].inlined);
    place_function(&frames[0], name);
    assert_string_equal(name, "five");
    assert_int_equal(frames[1].line, 12);
    assert_false(frames[1].inlined);

    assert_int_equal(place_frames(m, f, find(f, 2, 2), frames), 3);
    place_function(&frames[0], name);
    assert_string_equal(name, "six");
    assert_int_equal(frames[0].line, 2);
    assert_int_equal(frames[1].line, 4);
    assert_int_equal(frames[2].line, 12);

    // Line 0 is none: the statement keeps the place before it.
    assert_int_equal(place_frames(m, f, find(f, 2, 3), frames), 3);
    assert_int_equal(frames[0].line, 2);
    assert_int_equal(frames[2].line, 12);
    ptx_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(follows_inlined_functions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
