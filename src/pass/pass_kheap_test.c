// SPDX-License-Identifier: MIT
// How calls of malloc and free are rewritten in a text. test/guard/kheap_pairs.sh runs the calls.
#include "pass/pass_kheap.h"

#include "kheap/kheap.h"
#include "pass/pass.h"
#include "ptx/testing.h"

#define HEAD TESTING_HEAD
#define MALLOC ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
#define FREE ".extern .func free (.param .b64 p);\n"
#define ALIGNED                                                                           \
    ".extern .func (.param .b64 r) __cuda_syscall_aligned_malloc (.param .b64 n, .param " \
    ".b64 to);\n"
#define BODY(statements)                                                                                   \
    "{\n.reg .b64 %rd<4>;\n.reg .pred %p;\n{\n.param .b64 a;\n.param .b64 b;\n.param .b64 c;\n" statements \
    "\n}\nret;\n}\n"
#define TAKE "call.uni (b), malloc, (a);\n"
#define GIVE "call.uni free, (a);\n"

static struct pass_result *rewritten(const char *text, const char *passes)
{
    struct testing_sink *t = testing_sink_new();
    struct pass_request request = {.passes = passes, .verify = true};
    struct pass_result *r;
    int err = pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r);
    if (err)
        print_error("%s\n", t->text);
    assert_int_equal(err, 0);
    assert_string_equal(t->text, "");
    free(t);
    return r;
}

static void fails(const char *text, int error)
{
    struct testing_sink *t = testing_sink_new();
    struct pass_request request = {.passes = "kheap"};
    struct pass_result *r;
    assert_int_equal(pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r), error);
    assert_null(r);
    free(t);
}

static unsigned count(const struct pass_result *r, const char *what)
{
    unsigned n = 0;
    for (const char *p = r->text.ptr; (p = strstr(p, what)); p++)
        n++;
    return n;
}

static bool has_symbol(const struct pass_result *r)
{
    for (uint32_t i = 0; i < r->nsymbols; i++)
        if (str_eq(r->symbols[i].name, STR(KHEAP_VARIABLE)))
            return r->symbols[i].bytes == 8;
    return false;
}

static void names(void **state)
{
    assert_true(pass_kheap_is(STR("malloc")) && pass_kheap_is(STR("free")));
    assert_true(pass_kheap_is(STR("__cuda_syscall_aligned_malloc")));
    assert_false(pass_kheap_is(STR("mallo")) || pass_kheap_is(STR("malloc_")) || pass_kheap_is(STR("")));
    assert_true(pass_kheap_sum() == pass_kheap_sum() && pass_kheap_sum());
}

// Only our functions call the driver's.
static void each_call_is_redirected(void **state)
{
    struct pass_result *r = rewritten(HEAD MALLOC FREE ".func f(.param .b64 x)\n" BODY(
                                          TAKE GIVE "@%p call.uni free, (a);\n") ".entry k()\n" BODY(TAKE),
                                      "kheap");
    assert_int_equal(count(r, "call.uni (b), __moat_kheap_take, (a);"), 2);
    assert_int_equal(count(r, "call.uni __moat_kheap_give, (a);"), 2);
    assert_int_equal(count(r, "@%p call.uni __moat_kheap_give, (a);"), 1);
    assert_int_equal(count(r, ", malloc, ("), 1);
    assert_int_equal(count(r, " free, ("), 1);
    assert_int_equal(count(r, "__moat_kheap_take_aligned"), 0);
    assert_true(has_symbol(r));
    pass_result_free(r);
}

static void only_what_is_called_is_added(void **state)
{
    struct pass_result *r = rewritten(HEAD FREE ".entry k()\n" BODY(GIVE), "kheap");
    assert_int_equal(count(r, "__moat_kheap_take"), 0);
    assert_int_equal(count(r, " malloc"), 0);
    assert_true(has_symbol(r));
    pass_result_free(r);
    r = rewritten(HEAD ALIGNED ".entry k()\n" BODY("call.uni (b), __cuda_syscall_aligned_malloc, (a, c);\n"),
                  "kheap");
    assert_int_equal(count(r, "call.uni (b), __moat_kheap_take_aligned, (a, c);"), 1);
    assert_int_equal(count(r, "call (b), __cuda_syscall_aligned_malloc, (a, c);"), 1);
    pass_result_free(r);
}

// Functions of the program's own may have such names, and other modules need no rewriting.
static void others_are_left_alone(void **state)
{
    static const char *const texts[] = {
        HEAD ".entry k()\n{\nret;\n}\n",
        HEAD ".func free(.param .b64 p)\n{\nret;\n}\n.entry k()\n" BODY(GIVE),
    };
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct pass_result *r = rewritten(texts[i], "kheap");
        assert_int_equal(count(r, "kheap"), 0);
        assert_int_equal(r->nsymbols, 0);
        pass_result_free(r);
    }
}

// Two declarations of a function must have the same types.
static void declarations_agree(void **state)
{
    struct pass_result *r = rewritten(
        HEAD ".extern .func (.param .u64 r) malloc (.param .u64 n);\n.entry k()\n" BODY(TAKE), "kheap");
    assert_int_equal(count(r, "malloc (.param .u64 n)") + count(r, "malloc(.param .u64 n)") +
                         count(r, "malloc (\n\t.param .u64 n\n)"),
                     2);
    pass_result_free(r);
    fails(HEAD ".extern .func (.param .b32 r) malloc (.param .b32 n);\n.entry k()\n" BODY(TAKE), -ENOTSUP);
    fails(HEAD ".extern .func malloc (.param .b64 n);\n.entry k()\n{\nret;\n}\n", -ENOTSUP);
}

static void versions(void **state)
{
    struct pass_result *r =
        rewritten(".version 6.0\n.target sm_70\n.address_size 64\n" FREE ".entry k()\n" BODY(GIVE), "kheap");
    assert_int_equal(count(r, ".version 6.3"), 1);
    assert_int_equal(count(r, ".target sm_70"), 1);
    pass_result_free(r);
    fails(".version 6.0\n.target sm_60\n.address_size 64\n" FREE ".entry k()\n" BODY(GIVE), -ENOTSUP);
}

// The table of counters stays the first symbol; the heap's functions are not counted.
static void together_with_count(void **state)
{
    struct pass_result *r = rewritten(HEAD FREE ".entry k()\n" BODY(GIVE), "kheap,count");
    assert_int_equal(r->nfuncs, 1);
    assert_int_equal(r->nsymbols, 2);
    assert_true(str_starts(r->symbols[0].name, STR("__moat_count_")));
    assert_true(has_symbol(r));
    pass_result_free(r);
}

static void not_twice(void **state)
{
    struct pass_result *r = rewritten(HEAD FREE ".entry k()\n" BODY(GIVE), "kheap");
    fails(r->text.ptr, -EEXIST);
    pass_result_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(each_call_is_redirected),
        cmocka_unit_test(only_what_is_called_is_added),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(declarations_agree),
        cmocka_unit_test(versions),
        cmocka_unit_test(together_with_count),
        cmocka_unit_test(not_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
