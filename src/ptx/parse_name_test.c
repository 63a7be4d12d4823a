// SPDX-License-Identifier: MIT
// What names mean: scopes, ranges of registers, labels.
#include "ptx/testing.h"

static struct ptx_module *module;

// Parses statements of a function that has %r<10>, %rd<4>, %p<4>, %f<8>.
static const struct ptx_func *parse(const char *text)
{
    char *in = testing_join(TESTING_BODY, text, "\n}\n");
    // The module refers to its text.
    static char kept[4096];
    assert_true(strlen(in) < sizeof kept);
    strcpy(kept, in);
    free(in);
    module = testing_parse(str_from(kept));
    return testing_func(module);
}

static void done(void)
{
    ptx_free(module);
    module = NULL;
}

static void fails(const char *text, const char *message)
{
    char *in = testing_join(TESTING_BODY, text, "\n}\n");
    testing_fails(in, message);
    free(in);
}

// Expects that the first operand of the n-th instruction is a register of this type, the number-th of its
// declaration.
static void is_register(const struct ptx_func *f, unsigned n, enum ptx_type type, unsigned number)
{
    const struct ptx_operand *o = ptx_operand(testing_insn(f, n), 0);
    assert_int_equal(o->kind, PTX_REG);
    assert_int_equal(ptx_reg_var(f, o->id)->type, type);
    assert_int_equal(o->id - ptx_reg_var(f, o->id)->first_reg, number);
}

// Expects that the n-th instruction jumps to the number-th label of the function.
static void jumps_to(const struct ptx_func *f, unsigned n, unsigned number)
{
    const struct ptx_operand *o = ptx_operand(testing_insn(f, n), 0);
    assert_int_equal(o->kind, PTX_SYM);
    const struct ptx_sym *sym = ptx_sym(module, o->id);
    assert_int_equal(sym->kind, PTX_SYM_LABEL);
    unsigned labels = 0;
    for (uint32_t i = 0; i < sym->stmt; i++)
        labels += f->stmts[i].kind == PTX_LABEL;
    assert_int_equal(f->stmts[sym->stmt].kind, PTX_LABEL);
    assert_int_equal(labels, number);
}

static void good_registers_are_numbered(void **state)
{
    const struct ptx_func *f = parse(".reg .f64 x; { .reg .f64 y<3>; } .reg .f64 z;");
    assert_int_equal(f->nregs, 10 + 4 + 4 + 8 + 1 + 3 + 1);
    uint32_t next = 0;
    for (uint32_t i = 0; i < f->nreg_vars; i++) {
        assert_int_equal(f->reg_vars[i]->first_reg, next);
        next += f->reg_vars[i]->range ? f->reg_vars[i]->range : 1;
    }
    assert_int_equal(next, f->nregs);
    for (uint32_t reg = 0; reg < f->nregs; reg++) {
        const struct ptx_var *var = ptx_reg_var(f, reg);
        assert_true(reg >= var->first_reg && reg - var->first_reg < (var->range ? var->range : 1));
    }
    done();
}

static void good_ranges(void **state)
{
    const struct ptx_func *f = parse("mov.b32 %r0, 1; mov.b32 %r9, 1; mov.b32 %r007, 1; mov.b64 %rd3, 1;");
    is_register(f, 0, PTX_B32, 0);
    is_register(f, 1, PTX_B32, 9);
    is_register(f, 2, PTX_B32, 7);
    is_register(f, 3, PTX_B64, 3);
    done();
}

// A range in a block hides only those registers of the outer one that it has itself.
static void good_ranges_in_blocks(void **state)
{
    const struct ptx_func *f =
        parse("{ .reg .f64 %r<3>; mov.f64 %r2, 1.0; mov.b32 %r3, 1;\n"
              "{ .reg .u16 %r<1>; mov.u16 %r0, 1; mov.f64 %r1, 1.0; mov.b32 %r9, 1; }\n"
              "mov.f64 %r0, 1.0; } mov.b32 %r2, 1;");
    is_register(f, 0, PTX_F64, 2);
    is_register(f, 1, PTX_B32, 3);
    is_register(f, 2, PTX_U16, 0);
    is_register(f, 3, PTX_F64, 1);
    is_register(f, 4, PTX_B32, 9);
    is_register(f, 5, PTX_F64, 0);
    is_register(f, 6, PTX_B32, 2);
    done();
}

static void good_singles_and_ranges(void **state)
{
    const struct ptx_func *f =
        parse("{ .reg .f64 %r3; mov.f64 %r3, 1.0; mov.b32 %r4, 1;\n"
              "{ .reg .u16 %r<4>; mov.u16 %r3, 1; } mov.f64 %r3, 1.0; } mov.b32 %r3, 1;");
    is_register(f, 0, PTX_F64, 0);
    is_register(f, 1, PTX_B32, 4);
    is_register(f, 2, PTX_U16, 3);
    is_register(f, 3, PTX_F64, 0);
    is_register(f, 4, PTX_B32, 3);
    done();
}

static void bad_ranges(void **state)
{
    fails("{ .reg .f64 %r<3>; } mov.f64 %r10, 1.0;", "10:30: '%r10' is not declared");
    fails("{ .reg .f64 x; } mov.f64 x, 1.0;", "10:26: 'x' is not declared");
    fails(".reg .b32 %r1<3>; mov.b32 %r12, 1;", "10:27: '%r12' is not declared");
}

static void good_special_registers(void **state)
{
    const struct ptx_func *f =
        parse("mov.u32 %r1, %tid.x; { .reg .f64 %tid; mov.f64 %tid, 1.0; } mov.u32 %r1, %tid.y;");
    assert_int_equal(ptx_operand(testing_insn(f, 0), 1)->kind, PTX_SREG);
    is_register(f, 1, PTX_F64, 0);
    assert_int_equal(ptx_operand(testing_insn(f, 2), 1)->kind, PTX_SREG);
    assert_int_equal(ptx_operand(testing_insn(f, 2), 1)->sub, PTX_SEL_Y);
    done();
}

static void good_labels(void **state)
{
    const struct ptx_func *f = parse("bra B; A: bra A; B : bra B; C\n: bra A;");
    jumps_to(f, 0, 1);
    jumps_to(f, 1, 0);
    jumps_to(f, 2, 1);
    jumps_to(f, 3, 0);
    done();
}

// The innermost label counts, even if it is defined further down.
static void good_labels_in_blocks(void **state)
{
    const struct ptx_func *f =
        parse("A: { bra A; { bra A; bra B; bra C; B: } A: bra A; { bra A; bra C; } } bra A;\n"
              "{ { bra C; } } C: { { bra C; C: } bra C; }");
    jumps_to(f, 0, 2);
    jumps_to(f, 1, 2);
    jumps_to(f, 2, 1);
    jumps_to(f, 3, 3);
    jumps_to(f, 4, 2);
    jumps_to(f, 5, 2);
    jumps_to(f, 6, 3);
    jumps_to(f, 7, 0);
    jumps_to(f, 8, 3);
    jumps_to(f, 9, 4);
    jumps_to(f, 10, 3);
    done();
}

static void bad_labels(void **state)
{
    fails("bra A; { A: }", "10:5: 'A' is not declared");
    fails("{ A: } bra A;", "10:12: 'A' is not declared");
    fails("A: A:", "10:4: 'A' is declared twice");
    fails("A: .reg .b32 A;", "10:14: 'A' is declared twice");
    fails("{ bra A; } .reg .b32 A;", "10:7: 'A' is used before it is declared");
    fails("{ { { bra A; } } }", "10:11: 'A' is not declared");
    fails("A: t: .branchtargets A, B;", "10:25: 'B' is not declared");
}

static void good_targets_in_blocks(void **state)
{
    const struct ptx_func *f = parse("{ t: .branchtargets A, B; brx.idx %r1, t; B: } A:");
    const struct ptx_sym *t = ptx_sym(module, ptx_operand(testing_insn(f, 0), 1)->id);
    assert_int_equal(t->kind, PTX_SYM_TARGETS);
    assert_int_equal(t->targets->ntargets, 2);
    assert_int_equal(ptx_sym(module, t->targets->targets[0])->kind, PTX_SYM_LABEL);
    assert_true(ptx_sym(module, t->targets->targets[0])->stmt >
                ptx_sym(module, t->targets->targets[1])->stmt);
    done();
}

// Functions do not see each other's names; equal names in two functions are two symbols.
static void good_functions_are_apart(void **state)
{
    module = testing_parse(
        STR(TESTING_HEAD
            ".global .b32 x;\n.func f(.param .b32 p) { .reg .b32 a; L: bra L; }\n"
            ".func g(.param .b64 p) { .reg .f64 a; .local .b64 x; L: bra L; st.local.b64 [x], a; }"));
    const struct ptx_func *g = testing_func(module);
    jumps_to(g, 0, 0);
    const struct ptx_sym *x = ptx_sym(module, ptx_operand(testing_insn(g, 1), 0)->id);
    assert_int_equal(x->var->space, PTX_SPACE_LOCAL);
    assert_int_equal(ptx_find(module, STR("x"))->var->space, PTX_SPACE_GLOBAL);
    assert_int_equal(ptx_find(module, STR("f"))->kind, PTX_SYM_FUNC);
    assert_null(ptx_find(module, STR("a")));
    assert_null(ptx_find(module, STR("L")));
    assert_null(ptx_find(module, STR("p")));
    done();
}

static void bad_functions_are_apart(void **state)
{
    testing_fails(TESTING_HEAD ".func f() { L: } .func g() { bra L; }", "4:34: 'L' is not declared");
    testing_fails(TESTING_HEAD ".func f(.param .b32 p); .func g() { .reg .b32 r; ld.param.b32 r, [p]; }",
                  "4:67: 'p' is not declared");
    testing_fails(TESTING_HEAD ".func f() { call g; } .func g() {}", "4:18: 'g' is not declared");
}

// A definition takes precedence over declarations, wherever it is.
static void good_definitions(void **state)
{
    module = testing_parse(STR(TESTING_HEAD
                               ".extern .global .b32 x[]; .global .b32 x[4]; .extern .global .b32 x[];\n"
                               ".func f(); .func f() { ret; } .func f();"));
    assert_int_equal(ptx_find(module, STR("x"))->var->linkage, PTX_LINK_NONE);
    assert_int_equal(ptx_var_size(ptx_find(module, STR("x"))->var), 16);
    assert_true(ptx_find(module, STR("f"))->func->has_body);
    done();
}

// When parameters move, what points to them is updated.
static void good_parameters(void **state)
{
    module = testing_parse(STR(
        TESTING_HEAD ".func (.reg .b32 r, .reg .f64 s) f(.param .b32 p, .reg .b16 x<2>, .reg .b64 y)\n"
                     "{ mov.b32 r, 1; mov.f64 s, 1.0; mov.b16 x1, 1; mov.b64 y, 1; ld.param.b32 r, [p]; }"));
    const struct ptx_func *f = testing_func(module);
    is_register(f, 0, PTX_B32, 0);
    is_register(f, 1, PTX_F64, 0);
    is_register(f, 2, PTX_B16, 1);
    is_register(f, 3, PTX_B64, 0);
    assert_ptr_equal(ptx_reg_var(f, 0), &f->rets[0]);
    assert_ptr_equal(ptx_reg_var(f, 3), &f->params[1]);
    assert_ptr_equal(ptx_sym(module, ptx_operand(testing_insn(f, 4), 1)->id)->var, &f->params[0]);
    done();
}

// The registers of a prototype are types, not registers of the function.
static void good_prototypes_have_no_registers(void **state)
{
    const struct ptx_func *f =
        parse("p: .callprototype (.reg .b32 r) _ (.reg .b32 x<5>); .reg .f64 r; mov.f64 r, 1.0;");
    assert_int_equal(f->nregs, 10 + 4 + 4 + 8 + 1);
    is_register(f, 0, PTX_F64, 0);
    done();
}

static void good_many_names(void **state)
{
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    out_cstr(&o, TESTING_BODY);
    for (int i = 0; i < 20000; i++)
        out_fmt(&o, "L%d: { bra L%d; bra M%d; }\nM%d:", i, i / 2, i, i);
    out_cstr(&o, "\n}\n");
    module = testing_parse((struct str){o.buf, o.len});
    const struct ptx_func *f = testing_func(module);
    for (unsigned i = 0; i < 200; i++)
        jumps_to(f, 2 * i, i / 2 * 2);
    done();
    out_close(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_registers_are_numbered),
        cmocka_unit_test(good_ranges),
        cmocka_unit_test(good_ranges_in_blocks),
        cmocka_unit_test(good_singles_and_ranges),
        cmocka_unit_test(bad_ranges),
        cmocka_unit_test(good_special_registers),
        cmocka_unit_test(good_labels),
        cmocka_unit_test(good_labels_in_blocks),
        cmocka_unit_test(bad_labels),
        cmocka_unit_test(good_targets_in_blocks),
        cmocka_unit_test(good_functions_are_apart),
        cmocka_unit_test(bad_functions_are_apart),
        cmocka_unit_test(good_definitions),
        cmocka_unit_test(good_parameters),
        cmocka_unit_test(good_prototypes_have_no_registers),
        cmocka_unit_test(good_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
