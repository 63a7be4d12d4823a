// SPDX-License-Identifier: MIT
// The table of a module's variables in a text, and in the description of the module.
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "ptx/testing.h"

#define VARIABLES                                                                                            \
    ".global .align 8 .b8 _ZTV[40];\n.visible .const .b32 table[3] = {1, 2, 3};\n"                           \
    ".global .align 512 .b8 pointed[8];\n.visible .global .u64 to = generic(pointed);\n.global .b32 idle;\n" \
    ".extern .global .b8 theirs[8];\n.global .texref picture;\n"                                             \
    ".visible .global .attribute(.managed) .b64 shared_with_host;\n"
#define KERNEL                                                                                            \
    ".entry k(.param .b64 p)\n{\n.reg .b64 %rd<3>;\n.reg .b32 %r<3>;\nld.param.b64 %rd0, [p];\n"          \
    "mov.b64 %rd1, _ZTV;\nst.global.b64 [%rd0], %rd1;\nld.const.b32 %r0, [table+4];\n"                    \
    "ld.global.b64 %rd2, [to];\nld.global.b64 %rd2, [theirs];\nld.global.b64 %rd2, [shared_with_host];\n" \
    "ret;\n}\n"

static struct pass_result *rewritten(const char *text)
{
    struct testing_sink *t = testing_sink_new();
    struct pass_request request = {.passes = "check", .verify = true};
    struct pass_result *r;
    int err = pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    free(t);
    return r;
}

static void lists(const struct pass_check *c)
{
    static const char *const names[] = {"_ZTV", "table", "pointed", "to"};
    static const uint64_t sizes[] = {40, 12, 8, 8};
    assert_int_equal(c->nvariables, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(str_eq(c->variables[i].name, str_from(names[i])));
        assert_int_equal(c->variables[i].size, sizes[i]);
    }
    assert_true(c->table.len);
}

static void good_table(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD VARIABLES KERNEL), *again;
    lists(r->check);
    assert_non_null(
        strstr(r->text.ptr, "[4] = {generic(_ZTV), generic(table), generic(pointed), generic(to)};"));
    assert_non_null(strstr(r->text.ptr, ".global .align 256 .b8 _ZTV[40];"));
    assert_non_null(strstr(r->text.ptr, ".global .align 256 .u64 to"));
    assert_non_null(strstr(r->text.ptr, ".global .align 512 .b8 pointed"));
    assert_non_null(strstr(r->text.ptr, ".const .b32 table"));
    assert_non_null(strstr(r->text.ptr, ".extern .global .b8 theirs"));
    assert_non_null(strstr(r->text.ptr, ".global .b32 idle"));
    struct out o;
    assert_int_equal(out_to_memory(&o), 0);
    pass_describe(r, &o);
    assert_int_equal(pass_description((struct str){o.buf, o.len}, &again), 0);
    lists(again->check);
    assert_true(str_eq(again->check->table, r->check->table));
    // Any shorter text is refused.
    for (size_t n = o.len - 1; n > 0; n--) {
        struct pass_result *none;
        bool complete = o.buf[n - 1] == '\n';
        int err = pass_description((struct str){o.buf, n}, &none);
        assert_true(err || complete);
        pass_result_free(none);
    }
    out_close(&o);
    pass_result_free(again);
    pass_result_free(r);
}

static void good_no_variables(void **state)
{
    struct pass_result *r = rewritten(TESTING_HEAD ".global .b32 idle;\n.entry k()\n{\nret;\n}\n");
    assert_int_equal(r->check->nvariables, 0);
    assert_null(strstr(r->text.ptr, "check_variables"));
    pass_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_table),
        cmocka_unit_test(good_no_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
