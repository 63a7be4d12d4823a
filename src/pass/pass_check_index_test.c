// SPDX-License-Identifier: MIT
// Which checks compare an index in place of an address. Whether what they let through is right, random
// programs say (test/pass/check_pass.sh).
#include "base/mem.h"
#include "kcheck/kcheck.h"
#include "pass/pass.h"
#include "pass/pass_check.h"
#include "ptx/testing.h"

#define KERNEL(body)                                                                                       \
    TESTING_HEAD                                                                                           \
    ".visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n, .param .u64 m)\n{\n.reg .b64 %d<9>;\n" \
    ".reg .b32 %r<9>;\n.reg .b16 %h<3>;\n.reg .pred %p<3>;\nld.param.u64 %d1, [a];\n"                      \
    "ld.param.u32 %r1, [n];\n" body "ret;\n}\n"

struct wanted {
    const char *text;
    uint32_t scale;  // 0: the address is compared
    bool is_signed;
    int64_t at;
};

static void compare(const struct wanted *w)
{
    static const struct pass_request request = {.passes = "check", .verify = true};
    struct testing_sink *t = testing_sink_new();
    struct pass_result *r;
    assert_int_equal(pass_rewrite("test.ptx", str_from(w->text), &request, &t->sink, &r), 0);
    const struct pass_check_variant *v = &r->check->kernels[0].full;
    if (v->npairs < 1 || v->pairs[0].scale != w->scale || v->pairs[0].is_signed != w->is_signed ||
        v->pairs[0].at != w->at) {
        print_error("%u pairs, scale %u, signed %d, at %lld:\n%s", v->npairs, v->pairs[0].scale,
                    v->pairs[0].is_signed, (long long)v->pairs[0].at, w->text);
        fail();
    }
    pass_result_free(r);
    free(t);
}

static void good_indices(void **state)
{
    static const struct wanted all[] = {
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nld.global.u32 %r2, [%d3];\n"), 4, true,
         0},
        {KERNEL("mul.wide.u32 %d2, %r1, 8;\nadd.s64 %d3, %d2, %d1;\nld.global.u32 %r2, [%d3+16];\n"), 8,
         false, 16},
        {KERNEL("mad.wide.s32 %d3, %r1, 12, %d1;\nst.global.u32 [%d3+-4], %r1;\n"), 12, true, -4},
        {KERNEL("cvta.to.global.u64 %d4, %d1;\ncvt.s64.s32 %d2, %r1;\nshl.b64 %d2, %d2, 3;\n"
                "sub.s64 %d2, %d2, 8;\nadd.s64 %d3, %d4, %d2;\nld.global.u64 %d5, [%d3];\n"),
         8, true, -8},
        {KERNEL("cvt.u64.u32 %d2, %r1;\nadd.s64 %d2, %d2, 2;\nmul.lo.s64 %d2, %d2, 24;\n"
                "add.s64 %d3, %d1, %d2;\nld.global.u64 %d5, [%d3];\n"),
         24, false, 48},
        // Both accesses are one range.
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nld.global.u32 %r2, [%d3+8];\n"
                "ld.global.u32 %r2, [%d3+-12];\n"),
         4, true, -12},
        // A shift of 32 bits wraps before the widening: its result is the index.
        {KERNEL("shl.b32 %r2, %r1, 2;\ncvt.u64.u32 %d2, %r2;\nadd.s64 %d3, %d1, %d2;\n"
                "ld.global.u8 %r2, [%d3];\n"),
         1, false, 0},
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nsetp.eq.s32 %p1, %r1, 3;\n"
                "@%p1 ld.global.u32 %r2, [%d3];\n"),
         4, true, 0},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        compare(&all[i]);
}

static void bad_indices(void **state)
{
    static const struct wanted all[] = {
        // Two indices.
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\ncvt.s64.s32 %d4, %r1;\n"
                "add.s64 %d3, %d3, %d4;\nld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        // An index of 64 bits, a product with another register, a large and a negative scale.
        {KERNEL("ld.param.u64 %d2, [m];\nshl.b64 %d2, %d2, 2;\nadd.s64 %d3, %d1, %d2;\n"
                "ld.global.u32 %r2, [%d3+4];\n"),
         0, false, 4},
        {KERNEL("mul.wide.s32 %d2, %r1, %r1;\nadd.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"), 0, false,
         0},
        {KERNEL("mul.wide.s32 %d2, %r1, 1048577;\nadd.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"), 0,
         false, 0},
        {KERNEL("mul.wide.s32 %d2, %r1, -4;\nadd.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"), 0, false,
         0},
        {KERNEL("cvt.s64.s32 %d2, %r1;\nmul.lo.s64 %d2, %d2, -4;\nadd.s64 %d3, %d1, %d2;\n"
                "ld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        {KERNEL("cvt.s64.s32 %d2, %r1;\nsub.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"), 0, false, 0},
        // Constants so large that sums might wrap.
        {KERNEL("mul.wide.s32 %d2, %r1, 1;\nadd.s64 %d2, %d2, 1099511627777;\nadd.s64 %d3, %d1, %d2;\n"
                "ld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        // Narrower registers, conversions that change the sign, and upper halves.
        {KERNEL("cvt.u16.u32 %h1, %r1;\nmul.wide.u16 %r2, %h1, 4;\ncvt.u64.u16 %d2, %h1;\n"
                "add.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        {KERNEL("cvt.u64.s32 %d2, %r1;\nadd.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"), 0, false, 0},
        // A widening that is made on a condition, and one in another block.
        {KERNEL("setp.eq.s32 %p1, %r1, 3;\nmov.u64 %d2, 0;\n@%p1 mul.wide.s32 %d2, %r1, 4;\n"
                "add.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nsetp.eq.s32 %p1, %r1, 3;\n@%p1 bra L;\nmov.u32 %r1, 0;\nL:\n"
                "add.s64 %d3, %d1, %d2;\nld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        // The same where the index changes behind the check, in a loop.
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nL:\nld.global.u8 %r2, [%d3];\n"
                "add.s32 %r1, %r1, 1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;\n"),
         0, false, 0},
        // The index is not there any more: a barrier ends what is checked together.
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nmov.u32 %r1, 0;\nbar.sync 0;\n"
                "ld.global.u8 %r2, [%d3];\n"),
         0, false, 0},
        // A pointer that steps.
        {KERNEL("mul.wide.s32 %d2, %r1, 4;\nadd.s64 %d3, %d1, %d2;\nL:\nld.global.u8 %r2, [%d3];\n"
                "add.s64 %d3, %d3, 1;\nsetp.ne.u32 %p1, %r2, 0;\n@%p1 bra L;\n"),
         0, false, 0},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        compare(&all[i]);
}

// An address without a root is compared with the buffer of a parameter that it is a sum with.
static void good_sums(void **state)
{
    static const struct wanted all[] = {
        {KERNEL("ld.param.u64 %d2, [b];\nsub.s64 %d3, %d2, %d1;\nshr.s64 %d3, %d3, 3;\nshl.b64 %d3, %d3, 2;\n"
                "add.s64 %d4, %d1, %d3;\nld.global.u8 %r2, [%d4+4];\n"),
         0, false, 4},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        compare(&all[i]);
}

// A launch has room for KCHECK_MOST_PAIRS; indices take some of it only.
static void good_many(void **state)
{
    enum { PARAMS = 140 };
    static char text[PARAMS * 200];
    static const struct pass_request request = {.passes = "check", .verify = true};
    struct testing_sink *t = testing_sink_new();
    struct pass_result *r;
    int n = snprintf(text, sizeof text, "%s.visible .entry k(.param .u32 n", TESTING_HEAD);
    for (unsigned i = 0; i < PARAMS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, ", .param .u64 a%u", i);
    n += snprintf(text + n, sizeof text - (size_t)n,
                  ")\n{\n.reg .b32 %%r;\n.reg .b64 %%d;\nld.param.u32 %%r, [n];\n");
    for (unsigned i = 0; i < PARAMS; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "ld.param.u64 %%d, [a%u];\nmad.wide.u32 %%d, %%r, 4, %%d;\nst.global.u32 [%%d], %%r;\n",
                      i);
    snprintf(text + n, sizeof text - (size_t)n, "ret;\n}\n");
    assert_int_equal(pass_rewrite("test.ptx", str_from(text), &request, &t->sink, &r), 0);
    const struct pass_check_variant *v = &r->check->kernels[0].full;
    uint32_t indices = 0;
    for (uint32_t i = 0; i < v->npairs; i++)
        indices += v->pairs[i].scale == 4;
    assert_int_equal(v->npairs, KCHECK_MOST_PAIRS);
    assert_true(indices > 0 && indices < KCHECK_MOST_PAIRS);
    pass_result_free(r);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_indices),
        cmocka_unit_test(bad_indices),
        cmocka_unit_test(good_sums),
        cmocka_unit_test(good_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
