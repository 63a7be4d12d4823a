// SPDX-License-Identifier: MIT
// Statements that passes make have no spelling of their own; parts of a module can be printed alone.
#include "ptx/testing.h"

static const char text[] =
    TESTING_BODY "L: @%p1 add.s32 %r1, %r2, 0x10;\nld.global.b32 %r3, [%rd1];\nmov.f32 %f1, 0f3F800000;\n}\n";

static void prints(const struct ptx_module *m, const struct ptx_func *f, const struct ptx_stmt *s,
                   const char *expected)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    if (s)
        ptx_print_stmt(m, f, s, &o);
    else
        ptx_print_func(m, f, &o);
    out_char(&o, 0);
    assert_string_equal(o.buf, expected);
    out_close(&o);
}

static void good_parts(void **state)
{
    struct ptx_module *m = testing_parse(STR(text));
    const struct ptx_func *f = testing_func(m);
    prints(m, f, testing_insn(f, 0), "\t@%p1 add.s32 %r1, %r2, 0x10;\n");
    prints(m, f, NULL,
           ".entry k()\n{\n\t.reg .b32 %r<10>;\n\t.reg .b64 %rd<4>;\n\t.reg .pred %p<4>;\n\t.reg .f32 "
           "%f<8>;\nL:\n"
           "\t@%p1 add.s32 %r1, %r2, 0x10;\n\tld.global.b32 %r3, [%rd1];\n\tmov.f32 %f1, 0f3F800000;\n}\n");
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    ptx_print_reg(m, f, 0, &o);
    ptx_print_reg(m, f, 13, &o);
    ptx_print_reg(m, f, f->nregs - 1, &o);
    assert_true(str_eq((struct str){o.buf, o.len}, STR("%r0%rd3%f7")));
    out_close(&o);
    ptx_free(m);
}

// A copy of the n-th instruction that can be changed.
struct changed {
    struct ptx_stmt stmt;
    struct ptx_operand operands[8];
};

static struct changed *change(const struct ptx_func *f, unsigned n)
{
    static struct changed c;
    c.stmt = *testing_insn(f, n);
    assert_in_range(c.stmt.nslots, 1, 8);
    memcpy(c.operands, c.stmt.operands, c.stmt.nslots * sizeof *c.operands);
    c.stmt.operands = c.operands;
    c.stmt.pos = PTX_NONE;
    return &c;
}

static void good_constants_without_spelling(void **state)
{
    struct ptx_module *m = testing_parse(STR(text));
    const struct ptx_func *f = testing_func(m);
    struct changed *c = change(f, 0);
    c->stmt.guard_negated = true;
    c->operands[2] = (struct ptx_operand){.kind = PTX_IMM, .value = -5};
    prints(m, f, &c->stmt, "\t@!%p1 add.s32 %r1, %r2, -5;\n");
    c->operands[2].value = INT64_MIN;
    prints(m, f, &c->stmt, "\t@!%p1 add.s32 %r1, %r2, -9223372036854775808;\n");
    c = change(f, 2);
    c->operands[1] =
        (struct ptx_operand){.kind = PTX_IMM, .sub = PTX_IMM_F32, .value = (int64_t)0xFFFFFFFF00800001};
    prints(m, f, &c->stmt, "\tmov.f32 %f1, 0f00800001;\n");
    c->operands[1] = (struct ptx_operand){.kind = PTX_IMM, .sub = PTX_IMM_F64, .value = 0xF};
    prints(m, f, &c->stmt, "\tmov.f32 %f1, 0d000000000000000F;\n");
    ptx_free(m);
}

static void good_offsets_without_spelling(void **state)
{
    struct ptx_module *m = testing_parse(STR(text));
    const struct ptx_func *f = testing_func(m);
    struct changed *c = change(f, 1);
    prints(m, f, &c->stmt, "\tld.global.b32 %r3, [%rd1];\n");
    c->operands[1].value = -8;
    prints(m, f, &c->stmt, "\tld.global.b32 %r3, [%rd1+-8];\n");
    c->operands[1].value = 0;
    c->operands[1].spelled = true;
    prints(m, f, &c->stmt, "\tld.global.b32 %r3, [%rd1+0];\n");
    ptx_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_parts),
        cmocka_unit_test(good_constants_without_spelling),
        cmocka_unit_test(good_offsets_without_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
