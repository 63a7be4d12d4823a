// SPDX-License-Identifier: MIT
// Edited modules print as expected, verify, and print the same when they are parsed again.
#include "ptx/edit.h"

#include "base/mem.h"
#include "ptx/testing.h"

#define HEAD TESTING_HEAD
#define DECLS "\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n\t.reg .pred %p<3>;\n"

static struct ptx_func *func_of(struct ptx_module *m, const char *name)
{
    struct ptx_sym *sym = ptx_find(m, str_from(name));
    assert_non_null(sym);
    return sym->func;
}

static struct edit *open_edit(struct ptx_module *m, struct testing_sink *t)
{
    struct edit *e;
    assert_int_equal(edit_open(m, &t->sink, &e), 0);
    return e;
}

// Returns the index of the n-th instruction.
static uint32_t insn(const struct ptx_func *f, unsigned n)
{
    return (uint32_t)(testing_insn(f, n) - f->stmts);
}

static void labels_stand(const struct ptx_module *m)
{
    for (uint32_t i = 0; i < m->nitems; i++) {
        const struct ptx_func *f = m->items[i].kind == PTX_ITEM_FUNC ? m->items[i].func : NULL;
        for (uint32_t k = 0; f && k < f->nstmts; k++)
            if (f->stmts[k].kind == PTX_LABEL)
                assert_int_equal(ptx_sym(m, f->stmts[k].sym)->stmt, k);
    }
}

static void registers_in_a_row(const struct ptx_func *f)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < f->nreg_vars; i++) {
        assert_int_equal(f->reg_vars[i]->first_reg, next);
        next += f->reg_vars[i]->range ? f->reg_vars[i]->range : 1;
    }
    assert_int_equal(f->nregs, next);
}

// Checks that symbols and registers refer to moved parameters.
static void parameters_known(const struct ptx_module *m, const struct ptx_func *f)
{
    for (uint32_t i = 0; i < f->nparams; i++) {
        const struct ptx_var *param = &f->params[i];
        assert_ptr_equal(ptx_sym(m, param->sym)->var, param);
        if (param->space == PTX_SPACE_REG)
            assert_ptr_equal(ptx_reg_var(f, param->first_reg), param);
    }
}

// Closes the edit, checks the module, frees it.
static void becomes(struct edit *e, struct ptx_module *m, struct testing_sink *t, const char *expected)
{
    int err = edit_close(e);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    labels_stand(m);
    if (ptx_verify(m, &t->sink, NULL))
        print_error("%s\n", t->text);
    assert_string_equal(t->text, "");
    char *text = testing_print(m);
    assert_string_equal(text, expected);
    testing_prints(text, expected);
    for (uint32_t i = 0; i < m->nitems; i++)
        if (m->items[i].kind == PTX_ITEM_FUNC) {
            registers_in_a_row(m->items[i].func);
            parameters_known(m, m->items[i].func);
        }
    free(text);
    free(t);
    ptx_free(m);
}

static void good_insertions(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m =
        testing_parse(STR(HEAD ".entry k(.param .u64 a)\n{\n" DECLS "ld.param.u64 %rd1, [a];\nL:\n"
                               "@!%p1 ld.global.b32 %r1, [%rd1+4];\n"
                               "@%p1 bra L;\nret;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    struct edit *e = open_edit(m, t);
    edit_func(e, f);
    uint32_t n = edit_new_reg(e, PTX_U64), q = edit_new_regs(e, PTX_PRED, 2), at = insn(f, 1);
    const struct ptx_stmt *ld = &f->stmts[at];
    const struct ptx_operand *addr = ptx_operand(ld, 1);
    edit_before(e, insn(f, 0), "mov.pred %0, %1;", edit_reg(q), edit_reg(q));
    edit_before(e, at, "@%0 add.u64 %1, %1, %2;", edit_guard(ld), edit_reg(n), edit_imm(4));
    edit_before(e, at, "@!%0 add.u64 %1, %1, 0x10;", edit_guard(ld), edit_reg(n));
    edit_after(e, at, "setp.ne.b64 %0, %1, %2;", edit_reg(q + 1), edit_base(addr), edit_imm(addr->value));
    edit_after(e, at, "@%0 st.global.b32 [%1+8], %2;", edit_reg(q + 1), *addr,
               edit_reg(ptx_operand(ld, 0)->id));
    edit_exits(e, "st.global.u64 [%0], %1;", edit_imm(64), edit_reg(n));
    // Late changes: requested last, placed first; of two at one place, the later is after the other.
    edit_before(e, at, "add.u64 %0, %0, 5;", edit_reg(n));
    edit_entry(e, "mov.u64 %0, 0;", edit_reg(n));
    edit_entry(e, "mov.u64 %0, %0;", edit_reg(n));
    becomes(e, m, t,
            HEAD ".entry k(.param .u64 a)\n{\n\t.reg .u64 %__moat_0_;\n\t.reg .pred %__moat_1_<2>;\n" DECLS
                 "\tmov.u64 %__moat_0_, 0;\n\tmov.u64 %__moat_0_, %__moat_0_;\n"
                 "\tmov.pred %__moat_1_0, %__moat_1_0;\n\tld.param.u64 %rd1, [a];\nL:\n"
                 "\t@!%p1 add.u64 %__moat_0_, %__moat_0_, 4;\n\t@%p1 add.u64 %__moat_0_, %__moat_0_, 16;\n"
                 "\tadd.u64 %__moat_0_, %__moat_0_, 5;\n\t@!%p1 ld.global.b32 %r1, [%rd1+4];\n"
                 "\tsetp.ne.b64 %__moat_1_1, %rd1, 4;\n\t@%__moat_1_1 st.global.b32 [%rd1+12], %r1;\n"
                 "\t@%p1 bra L;\n\tst.global.u64 [64], %__moat_0_;\n\tret;\n}\n");
}

static void good_exits(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m =
        testing_parse(STR(HEAD ".entry k()\n{\n" DECLS "@%p1 exit;\n@!%p2 ret;\nbra M;\nexit;\nM:\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_func(e, func_of(m, "k"));
    edit_exits(e, "mov.b32 %0, 1;", edit_reg(1));
    becomes(e, m, t,
            HEAD ".entry k()\n{\n" DECLS
                 "\t@!%p1 bra $__moat_0_;\n\tmov.b32 %r1, 1;\n$__moat_0_:\n\t@%p1 exit;\n"
                 "\t@%p2 bra $__moat_1_;\n\tmov.b32 %r1, 1;\n$__moat_1_:\n\t@!%p2 ret;\n"
                 "\tbra M;\n\tmov.b32 %r1, 1;\n\texit;\nM:\n\tmov.b32 %r1, 1;\n}\n");
}

static void good_labels_in_texts(void **state)
{
    static const char text[] = "@%0 bra over;\nagain: add.s32 %1, %1, 1;\n@!%0 bra again;\nover:";
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(HEAD ".entry k()\n{\n" DECLS "over: bra over;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    struct edit *e = open_edit(m, t);
    edit_func(e, f);
    for (unsigned i = 0; i < 2; i++)
        edit_before(e, insn(f, 0), text, edit_reg(9), edit_reg(i));
    becomes(
        e, m, t,
        HEAD
        ".entry k()\n{\n" DECLS "over:\n"
        "\t@%p1 bra $__moat_1_;\n$__moat_0_:\n\tadd.s32 %r0, %r0, 1;\n\t@!%p1 bra $__moat_0_;\n$__moat_1_:\n"
        "\t@%p1 bra $__moat_3_;\n$__moat_2_:\n\tadd.s32 %r1, %r1, 1;\n\t@!%p1 bra $__moat_2_;\n$__moat_3_:\n"
        "\tbra over;\n}\n");
}

static void good_replacing(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(
        HEAD ".entry k()\n{\n" DECLS "add.s32 %r1, %r1, %r2;\n@%p1 bra L;\nmov.b32 %r1, 7;\nL: ret;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    struct edit *e = open_edit(m, t);
    edit_func(e, f);
    edit_delete(e, insn(f, 2));
    edit_delete(e, insn(f, 2));
    edit_replace(e, insn(f, 0), "sub.s32 %0, %0, %1;\nmul.lo.s32 %0, %0, %2;", edit_reg(1), edit_reg(2),
                 *ptx_operand(testing_insn(f, 2), 1));
    uint32_t over = edit_new_label(e);
    edit_replace(e, insn(f, 1), "@!%0 bra %1;", edit_reg(9), edit_sym(over));
    edit_place_label(e, insn(f, 3), over);
    becomes(e, m, t,
            HEAD ".entry k()\n{\n" DECLS "\tsub.s32 %r1, %r1, %r2;\n\tmul.lo.s32 %r1, %r1, 7;\n"
                 "\t@!%p1 bra $__moat_0_;\nL:\n$__moat_0_:\n\tret;\n}\n");
}

// Replaces the address of an access and the callee of a call.
static void good_operands(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m =
        testing_parse(STR(HEAD ".func f()\n{\nret;\n}\n.func g()\n{\nret;\n}\n.entry k()\n{\n" DECLS
                               "st.global.v2.b32 [%rd1+8], {%r1, %r2};\ncall f;\nret;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    struct edit *e = open_edit(m, t);
    edit_func(e, f);
    uint32_t at = insn(f, 0), masked = edit_new_reg(e, PTX_B64);
    edit_before(e, at, "and.b64 %0, %1, 255;", edit_reg(masked), edit_base(ptx_operand(&f->stmts[at], 0)));
    edit_set(e, at, 0, edit_addr(masked, ptx_operand(&f->stmts[at], 0)->value));
    edit_set(e, at, 3, edit_reg(3));
    edit_set(e, insn(f, 1), 1, edit_sym(edit_find(e, STR("g"))));
    becomes(e, m, t,
            HEAD
            ".func f()\n{\n\tret;\n}\n.func g()\n{\n\tret;\n}\n.entry k()\n{\n\t.reg .b64 %__moat_0_;\n" DECLS
            "\tand.b64 %__moat_0_, %rd1, 255;\n\tst.global.v2.b32 [%__moat_0_+8], {%r1, %r3};\n\tcall g;\n"
            "\tret;\n}\n");
}

static void good_local(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(HEAD ".entry k()\n{\n.reg .b64 %d;\nret;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_func(e, func_of(m, "k"));
    uint32_t r = edit_new_reg(e, PTX_B64), local = edit_new_local(e, 24);
    edit_before(e, insn(func_of(m, "k"), 0), "cvta.local.u64 %0, %1;\nst.b64 [%0+16], %0;", edit_reg(r),
                edit_sym(local));
    becomes(e, m, t,
            HEAD
            ".entry k()\n{\n\t.reg .b64 %__moat_0_;\n\t.local .align 8 .b8 __moat_1_[24];\n\t.reg .b64 %d;\n"
            "\tcvta.local.u64 %__moat_0_, __moat_1_;\n\tst.b64 [%__moat_0_+16], %__moat_0_;\n\tret;\n}\n");
}

static void good_several_functions(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(
        STR(HEAD ".func f()\n{\nret;\n}\n.entry k()\n{\ncall f;\nret;\n}\n.entry l()\n{\nret;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_func(e, func_of(m, "l"));
    edit_func(e, func_of(m, "k"));
    uint32_t r = edit_new_reg(e, PTX_B32);
    edit_entry(e, "mov.b32 %0, %laneid;", edit_reg(r));
    edit_func(e, func_of(m, "f"));
    edit_entry(e, "bar.warp.sync %0;", edit_imm(-1));
    becomes(e, m, t,
            HEAD
            ".func f()\n{\n\tbar.warp.sync -1;\n\tret;\n}\n"
            ".entry k()\n{\n\t.reg .b32 %__moat_0_;\n\tmov.b32 %__moat_0_, %laneid;\n\tcall f;\n\tret;\n}\n"
            ".entry l()\n{\n\tret;\n}\n");
}

#define ADDED                                                                                              \
    ".visible .global .align 8 .u64 hits[2];\n.const .b32 masks[3] = {0xFF, 2, 3};\n"                      \
    ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"                               \
    ".func (.param .b32 r) twice(.param .b32 a)\n{\n\t.reg .b32 %r<2>;\n\t.reg .pred p;\n\t.reg .f32 f;\n" \
    "\tld.param.b32 %r1, [a];\n\tsetp.eq.s32 p, %r1, 0x0;\n\t@p bra L;\n\tadd.s32 %r1, %r1, %r1;\n"        \
    "\tmov.f32 f, 0f3F800000;\nL:\n\tld.const.b32 %r0, [masks+4];\n\tst.param.b32 [r], %r1;\n\tret;\n}\n"

static void good_added_items(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(
        STR(HEAD ".file 1 \"a.cu\"\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
                 ".entry k()\n{\n" DECLS "L: ret;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    struct edit *e = open_edit(m, t);
    char *text = strdup(ADDED);
    edit_add(e, str_from(text));
    free(text);
    edit_func(e, f);
    uint32_t hits = edit_find(e, STR("hits"));
    edit_entry(e, "mov.u64 %0, %1;\natom.global.add.u64 %0, [%1+8], %2;", edit_reg(4), edit_sym(hits),
               edit_imm(1));
    edit_entry(e, "red.global.add.u64 [%0], 1;", edit_sym_at(hits, 8));
    becomes(
        e, m, t,
        HEAD
        ".file 1 \"a.cu\"\n.visible .global .align 8 .u64 hits[2];\n"
        ".const .b32 masks[3] = {0xFF, 2, 3};\n"
        ".extern .func (.param .b32 r) vprintf(\n\t.param .b64 a,\n\t.param .b64 b\n);\n"
        ".func (.param .b32 r) twice(.param .b32 a)\n{\n\t.reg .b32 %r<2>;\n\t.reg .pred p;\n\t.reg .f32 f;\n"
        "\tld.param.b32 %r1, [a];\n\tsetp.eq.s32 p, %r1, 0;\n\t@p bra L;\n\tadd.s32 %r1, %r1, %r1;\n"
        "\tmov.f32 f, 0f3F800000;\nL:\n\tld.const.b32 %r0, [masks+4];\n\tst.param.b32 [r], %r1;\n\tret;\n}\n"
        ".extern .func (.param .b32 r) vprintf(\n\t.param .b64 a,\n\t.param .b64 b\n);\n"
        ".entry k()\n{\n" DECLS "\tmov.u64 %rd0, hits;\n\tatom.global.add.u64 %rd0, [hits+8], 1;\n"
        "\tred.global.add.u64 [hits+8], 1;\nL:\n\tret;\n}\n");
}

// Added functions belong to the module: they can be edited, and are called like the rest.
static void good_edited_again(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(HEAD ".entry k()\n{\n\tret;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_add(e, STR(".func add1(.reg .b32 a)\n{\n\tadd.s32 a, a, 1;\n\tret;\n}\n"));
    assert_int_equal(edit_close(e), 0);
    e = open_edit(m, t);
    edit_func(e, func_of(m, "add1"));
    uint32_t r = edit_new_reg(e, PTX_B32);
    edit_entry(e, "mov.b32 %0, %1;", edit_reg(r), edit_reg(0));
    edit_func(e, func_of(m, "k"));
    edit_entry(e, "call %0, (%1);", edit_sym(edit_find(e, STR("add1"))), edit_imm(5));
    assert_int_equal(edit_close(e), 0);
    e = open_edit(m, t);
    edit_func(e, func_of(m, "add1"));
    r = edit_new_reg(e, PTX_B16);
    edit_entry(e, "mov.b16 %0, %0;", edit_reg(r));
    becomes(e, m, t,
            HEAD
            ".func add1(.reg .b32 a)\n{\n\t.reg .b16 %__moat_1_;\n\t.reg .b32 %__moat_0_;\n"
            "\tmov.b16 %__moat_1_, %__moat_1_;\n\tmov.b32 %__moat_0_, a;\n\tadd.s32 a, a, 1;\n\tret;\n}\n"
            ".entry k()\n{\n\tcall add1, (5);\n\tret;\n}\n");
}

static void good_parameters(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m =
        testing_parse(STR(HEAD ".entry k(.param .u64 a);\n.entry k(.param .u64 a)\n{\n" DECLS
                               "ld.param.u64 %rd1, [a];\nret;\n}\n"
                               ".func f(.reg .b32 x)\n{\n\tadd.s32 x, x, 1;\n\tret;\n}\n"));
    struct ptx_func *k = func_of(m, "k"), *f = func_of(m, "f");
    struct edit *e = open_edit(m, t);
    edit_func(e, k);
    uint32_t table = edit_add_param(e, k, PTX_B8, 8, 24);
    edit_entry(e, "ld.param.u64 %0, [%1+16];", edit_reg(4), edit_sym(table));
    edit_add_param(e, f, PTX_U32, 0, 1);
    edit_func(e, f);
    edit_entry(e, "mov.b32 %0, %0;", edit_reg(0));
    becomes(e, m, t,
            HEAD ".entry k(\n\t.param .u64 a,\n\t.param .align 8 .b8 __moat_0_[24]\n);\n"
                 ".entry k(\n\t.param .u64 a,\n\t.param .align 8 .b8 __moat_1_[24]\n)\n{\n" DECLS
                 "\tld.param.u64 %rd0, [__moat_1_+16];\n\tld.param.u64 %rd1, [a];\n\tret;\n}\n"
                 ".func f(\n\t.reg .b32 x,\n\t.param .u32 __moat_2_\n)\n{\n\tmov.b32 x, x;\n"
                 "\tadd.s32 x, x, 1;\n\tret;\n}\n");
}

// A call of a copy that has more parameters than the original.
static void good_args(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(
        STR(HEAD ".func f(.param .u64 x)\n{\n\tret;\n}\n.entry k()\n{\n\t.reg .b64 %a;\n\t.param .b64 p;\n"
                 "\tmov.u64 %a, 1;\n\tst.param.b64 [p], %a;\n\tcall f, (p);\n\tret;\n}\n"));
    struct edit *e = open_edit(m, t);
    struct ptx_func *g = edit_clone_func(e, func_of(m, "f"), STR("g")), *k = func_of(m, "k");
    edit_add_param(e, g, PTX_B64, 0, 1);
    edit_func(e, k);
    for (uint32_t i = 0; i < k->nstmts; i++)
        if (k->stmts[i].kind == PTX_INSN && k->stmts[i].form->id == PTX_OP_CALL) {
            struct ptx_operand more = edit_reg(0);
            edit_set(e, i, (unsigned)(ptx_operand(&k->stmts[i], 1) - k->stmts[i].operands), edit_sym(g->sym));
            edit_add_args(e, i, 1, &more);
        }
    becomes(e, m, t,
            HEAD ".func g(\n\t.param .u64 x,\n\t.param .b64 __moat_0_\n);\n"
                 ".func f(.param .u64 x)\n{\n\tret;\n}\n.entry k()\n{\n\t.reg .b64 %a;\n\t.param .b64 p;\n"
                 "\tmov.u64 %a, 1;\n\tst.param.b64 [p], %a;\n\tcall g, (p, %a);\n\tret;\n}\n"
                 ".func g(\n\t.param .u64 x,\n\t.param .b64 __moat_1_\n)\n{\n\tret;\n}\n");
}

// Names of an edit that was printed and parsed again are not reused.
static void good_fresh_names(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(
        STR(HEAD ".entry k()\n{\n\t.reg .b32 %__moat_7_<2>;\n$__moat_41_:\n\tbra $__moat_41_;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_func(e, func_of(m, "k"));
    edit_new_reg(e, PTX_B32);
    becomes(e, m, t,
            HEAD ".entry k()\n{\n\t.reg .b32 %__moat_42_;\n\t.reg .b32 %__moat_7_<2>;\n$__moat_41_:\n"
                 "\tbra $__moat_41_;\n}\n");
}

// --- what must not work ------------------------------------------------------------------------------------

static void text_fails(const char *text, const char *message)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(HEAD ".entry k()\n{\n" DECLS "ret;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_func(e, func_of(m, "k"));
    edit_entry(e, text, edit_reg(0), edit_reg(1));
    edit_entry(e, "mov.b32 %0, 0;", edit_reg(0));  // does nothing
    assert_int_equal(edit_error(e), -EINVAL);
    assert_int_equal(edit_close(e), -EINVAL);
    if (!strstr(t->text, message))
        fail_msg("\"%s\" is not in \"%s\"", message, t->text);
    free(t);
    ptx_free(m);
}

static void bad_texts(void **state)
{
    text_fails("add.s32 %0, %1", "';' is missing");
    text_fails("frobnicate %0;", "not known");
    text_fails("add.frob %0, %1, 1;", "not known");
    text_fails(".reg .b32 x;", "instructions and labels only");
    text_fails("mov.b32 %0, hits;", "not declared");
    text_fails("mov.u64 %0, inserted;", "other symbols are arguments");
    text_fails("ret; } .func f() { ret;", "");
}

static void add_fails(const char *text, int error, const char *message)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(HEAD ".global .b32 x;\n.entry k()\n{\nret;\n}\n"));
    struct edit *e = open_edit(m, t);
    edit_add(e, str_from(text));
    edit_find(e, STR("y"));
    assert_int_equal(edit_close(e), error);
    if (!strstr(t->text, message))
        fail_msg("\"%s\" is not in \"%s\"", message, t->text);
    free(t);
    ptx_free(m);
}

static void bad_added_items(void **state)
{
    add_fails(".global .b32 x;", -EEXIST, "the module has 'x' already");
    add_fails(".func k()\n{\nret;\n}\n", -EEXIST, "the module has 'k' already");
    add_fails(".file 1 \"x\"", -EINVAL, "only functions and variables");
    add_fails(".reg .b32 r;", -EINVAL, "only functions and variables");
    add_fails(".global .b32", -EINVAL, "a name is missing");
    add_fails(".extern .global .b32 x;", -EINVAL, "");  // valid, but there is no y
}

static int edit_all(struct testing_sink *t)
{
    struct ptx_module *m;
    struct edit *e;
    int err =
        ptx_parse("test.ptx", STR(HEAD ".entry k()\n{\n" DECLS "@%p1 ret;\nret;\n}\n"), &t->sink, NULL, &m);
    if (err)
        return err;
    err = edit_open(m, &t->sink, &e);
    if (!err) {
        edit_add(e, STR(ADDED));
        edit_add_param(e, func_of(m, "k"), PTX_B8, 8, 16);
        edit_func(e, func_of(m, "k"));
        uint32_t r = edit_new_reg(e, PTX_U64), hits = edit_find(e, STR("hits"));
        edit_exits(e, "red.global.add.u64 [%0], %1;\nL: bra L;", edit_sym(hits), edit_reg(r));
        edit_entry(e, "mov.u64 %0, 0;", edit_reg(r));
        err = edit_close(e);
    }
    ptx_free(m);
    return err;
}

static void good_without_memory(void **state)
{
    struct testing_sink *t = testing_sink_new();
    int err = -ENOMEM;
    long n = 0;
    for (; err == -ENOMEM; n++) {
        mem_fail_after(n);
        err = edit_all(t);
        mem_fail_after(-1);
    }
    assert_int_equal(err, 0);
    assert_true(n > 20);
    free(t);
}

static void target(const char *before, unsigned arch, const char *after)
{
    char *text = testing_join(".version 9.0\n.target ", before, "\n.address_size 64\n");
    struct ptx_module *m = testing_parse(str_from(text));
    bool changed;
    assert_int_equal(edit_target(m, arch, &changed), 0);
    assert_int_equal(changed, strcmp(before, after) != 0);
    if (!str_eq(m->target, str_from(after)))
        fail_msg("%s for %u became " STR_FMT, before, arch, STR_ARG(m->target));
    ptx_free(m);
    free(text);
}

static void good_targets(void **state)
{
    target("sm_90", 90, "sm_90");
    target("sm_52", 90, "sm_52");
    target("sm_120", 90, "sm_90");
    target("sm_120a, debug", 90, "sm_90, debug");
    target("sm_90a", 90, "sm_90a");
    target("sm_90a", 100, "sm_90");
    target("sm_100a", 103, "sm_100");
    target("sm_100f", 103, "sm_100f");
    target("sm_103f", 100, "sm_100");
    target("sm_100f", 120, "sm_100");
    target("sm_90,texmode_independent", 75, "sm_75,texmode_independent");
    struct ptx_module *m = testing_parse(STR(".version 9.0\n.target compute_7\n"));
    bool changed;
    assert_int_equal(edit_target(m, 90, &changed), -EINVAL);
    ptx_free(m);
}

// --- copies ------------------------------------------------------------------------------------------------

static const char COPIED[] = HEAD
    ".func (.param .b32 r) f(.param .b64 a, .reg .b32 b)\n{\n" DECLS "\t.local .align 4 .b8 stack[16];\n"
    "\tld.param.u64 %rd1, [a];\nL1:\n\t@%p1 bra L1;\n\tst.local.u32 [stack+4], b;\n\tbrx.idx %r1, list;\n"
    "list: .branchtargets L1, L2;\nL2:\n\tst.param.b32 [r], %r1;\n\tret;\n}\n"
    ".entry k()\n{\n" DECLS "\tmov.u32 %r1, 3;\n\tret;\n}\n";

static void good_clone(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(STR(COPIED));
    struct edit *e = open_edit(m, t);
    struct ptx_func *f = func_of(m, "f"), *g = edit_clone_func(e, f, STR("g"));
    assert_non_null(g);
    assert_non_null(edit_clone_func(e, func_of(m, "k"), STR("k2")));
    edit_func(e, g);
    edit_set(e, insn(g, 2), 1, edit_imm(5));
    assert_int_equal(edit_close(e), 0);
    // A declaration of g, since g may be called before it is defined; f, k; g, k2.
    assert_int_equal(m->nitems, 5);
    assert_false(m->items[0].func->has_body);
    assert_ptr_equal(m->items[3].func, g);
    assert_ptr_equal(func_of(m, "g"), g);
    assert_int_equal(g->nstmts, f->nstmts);
    labels_stand(m);
    registers_in_a_row(g);
    parameters_known(m, g);
    parameters_known(m, f);
    // The original's operands and symbols are its own.
    assert_int_equal(testing_insn(f, 2)->operands[1].kind, PTX_REG);
    assert_int_equal(testing_insn(g, 2)->operands[1].kind, PTX_IMM);
    for (uint32_t i = 0; i < f->nstmts; i++)
        if (f->stmts[i].kind == PTX_LABEL)
            assert_true(f->stmts[i].sym != g->stmts[i].sym);
    assert_int_equal(ptx_verify(m, &t->sink, NULL), 0);
    ptx_free(m);
    m = testing_parse(STR(COPIED));
    e = open_edit(m, t);
    assert_null(edit_clone_func(e, func_of(m, "f"), STR("k")));
    assert_int_equal(edit_close(e), -EEXIST);
    ptx_free(m);
    free(t);
}

static uint32_t swap_registers(void *ctx, uint32_t reg, bool writes)
{
    const uint32_t *to = ctx;
    return to[writes];
}

static void good_copied_stmts(void **state)
{
    struct testing_sink *t = testing_sink_new();
    struct ptx_module *m = testing_parse(
        STR(HEAD ".entry k()\n{\n" DECLS "\tadd.u32 %r1, %r2, 3;\n\t@!%p1 mov.u32 %r2, 1;\n\tret;\n}\n"));
    struct ptx_func *f = func_of(m, "k");
    uint32_t registers[2] = {3, 0};
    struct edit *e = open_edit(m, t);
    struct out o;
    edit_func(e, f);
    edit_copy_stmt(e, f->nstmts, insn(f, 1));
    edit_copy_renamed(e, f->nstmts, insn(f, 0), swap_registers, registers);
    edit_copy_guarded(e, f->nstmts, insn(f, 1), f->stmts[insn(f, 1)].guard);
    assert_int_equal(edit_close(e), 0);
    out_to_memory(&o);
    ptx_print_stmt(m, f, testing_insn(f, 3), &o);
    ptx_print_stmt(m, f, testing_insn(f, 4), &o);
    ptx_print_stmt(m, f, testing_insn(f, 0), &o);
    ptx_print_stmt(m, f, testing_insn(f, 5), &o);
    assert_true(str_eq((struct str){o.buf, o.len}, STR("\t@!%p1 mov.u32 %r2, 1;\n\tadd.u32 %r0, %r3, 3;\n"
                                                       "\tadd.u32 %r1, %r2, 3;\n\t@%p1 mov.u32 %r2, 1;\n")));
    out_close(&o);
    ptx_free(m);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_insertions),
        cmocka_unit_test(good_exits),
        cmocka_unit_test(good_labels_in_texts),
        cmocka_unit_test(good_replacing),
        cmocka_unit_test(good_operands),
        cmocka_unit_test(good_several_functions),
        cmocka_unit_test(good_local),
        cmocka_unit_test(good_added_items),
        cmocka_unit_test(good_edited_again),
        cmocka_unit_test(good_parameters),
        cmocka_unit_test(good_args),
        cmocka_unit_test(good_fresh_names),
        cmocka_unit_test(bad_texts),
        cmocka_unit_test(bad_added_items),
        cmocka_unit_test(good_without_memory),
        cmocka_unit_test(good_clone),
        cmocka_unit_test(good_copied_stmts),
        cmocka_unit_test(good_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
