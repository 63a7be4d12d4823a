// SPDX-License-Identifier: MIT
// Bounds against buffers: their ends, and what is certain.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "flow/judge.h"

static struct judge_answer judge(int64_t lowest, int64_t highest, bool exact, bool guarded,
                                 struct judge_buffer b)
{
    struct proof_bound bound = {
        .verdict = PROOF_BOUNDED, .exact = exact, .guarded = guarded, .lowest = lowest, .highest = highest};
    return judge_bound(&bound, &b);
}

static void compares_with_both_ends(void **state)
{
    struct judge_buffer b = {.known = true, .size = 4000};
    assert_int_equal(judge(0, 3999, true, false, b).verdict, JUDGE_INSIDE);
    assert_int_equal(judge(0, 3999, false, true, b).verdict, JUDGE_INSIDE);
    struct judge_answer a = judge(0, 4003, true, false, b);
    assert_int_equal(a.verdict, JUDGE_OUTSIDE);
    assert_int_equal(a.needs, 4004);
    assert_int_equal(a.before, 0);
    a = judge(-4, 3, true, false, b);
    assert_int_equal(a.verdict, JUDGE_OUTSIDE);
    assert_int_equal(a.before, 4);
    assert_int_equal(a.needs, 0);
    assert_int_equal(judge(0, 4000, true, false, b).verdict, JUDGE_OUTSIDE);
}

static void counts_from_the_pointer(void **state)
{
    struct judge_buffer b = {.known = true, .size = 4000, .into = 8};
    assert_int_equal(judge(-8, 3991, true, false, b).verdict, JUDGE_INSIDE);
    assert_int_equal(judge(-9, 0, true, false, b).before, 1);
    assert_int_equal(judge(0, 3999, true, false, b).needs, 4008);
}

static void only_says_what_is_certain(void **state)
{
    struct judge_buffer b = {.known = true, .size = 4}, soft = {.known = true, .soft = true, .size = 4};
    assert_int_equal(judge(0, 4, false, false, b).verdict, JUDGE_MAYBE);
    assert_int_equal(judge(0, 4, true, true, b).verdict, JUDGE_OUTSIDE);
    assert_int_equal(judge(0, 4, true, false, soft).verdict, JUDGE_MAYBE);
    assert_int_equal(judge(0, 4, true, false, (struct judge_buffer){.known = false}).verdict, JUDGE_BOUNDED);
    assert_int_equal(
        judge(INT64_MAX, INT64_MAX, true, false, (struct judge_buffer){true, false, 4, 4}).verdict,
        JUDGE_BOUNDED);
    struct proof_bound unknown = {.verdict = PROOF_UNKNOWN}, dead = {.verdict = PROOF_UNREACHABLE};
    assert_int_equal(judge_bound(&unknown, &b).verdict, JUDGE_UNKNOWN);
    assert_int_equal(judge_bound(&dead, &b).verdict, JUDGE_UNREACHABLE);
}

static void knows_variables(void **state)
{
    struct proof_root tile = {.kind = PROOF_ROOT_SHARED, .size = 64}, dynamic = {.kind = PROOF_ROOT_SHARED},
                      outer = {.kind = PROOF_ROOT_GLOBAL}, param = {.kind = PROOF_ROOT_PARAM, .size = 8};
    assert_int_equal(judge_variable(&tile, 9).size, 64);
    assert_int_equal(judge_variable(&dynamic, 9).size, 9);
    assert_true(judge_variable(&dynamic, 0).known);
    assert_false(judge_variable(&outer, 9).known);
    assert_false(judge_variable(&param, 9).known);
}

static void names_roots(void **state)
{
    static const struct proof_root roots[] = {{.kind = PROOF_ROOT_PARAM, .param = 2},
                                              {.kind = PROOF_ROOT_PARAM, .param = 1, .inside = 8},
                                              {.kind = PROOF_ROOT_SHARED, .name = 1, .name_len = 4}};
    static const char *const names[] = {"p2", "p1.8", "tile"};
    struct proof p = {.roots = roots, .names = " tile "};
    char text[20];
    for (uint32_t i = 0; i < 3; i++) {
        judge_root(&p, i, text, sizeof text);
        assert_string_equal(text, names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_with_both_ends),
        cmocka_unit_test(counts_from_the_pointer),
        cmocka_unit_test(only_says_what_is_certain),
        cmocka_unit_test(knows_variables),
        cmocka_unit_test(names_roots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
