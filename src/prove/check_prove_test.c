// SPDX-License-Identifier: MIT
// Proofs at launches: of kernels with one of several pointers, and of such as are not worth an evaluation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "core/guard.h"
#include "flow/judge.h"
#include "flow/ranges.h"
#include "launch/launch_call.h"
#include "prove/check_prove.h"
#include "prove/worth.h"

#define KERNEL(name, body)                                                                              \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry " name                              \
    "(.param .u64 k_a, .param .u64 k_b, .param .u32 k_n)\n{\n"                                          \
    ".reg .b32 %r<9>; .reg .b64 %d<20>; .reg .pred %p<4>;\n"                                            \
    "ld.param.u64 %d1, [k_a]; ld.param.u64 %d2, [k_b]; ld.param.u32 %r1, [k_n]; mov.u32 %r2, %tid.x;\n" \
    "cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;\n" body "\nEND: ret;\n}\n"

struct params {
    uint64_t a, b;
    uint32_t n;
};

// The buffers of a launch: the first 4096 bytes from a multiple of 2^20 on, of b's by `short_by` less.
static uint64_t b_pointer, short_by;

static struct judge_buffer buffer_of(uint64_t pointer, bool *lasts)
{
    return (struct judge_buffer){
        .known = true, .size = 4096 - (pointer == b_pointer ? short_by : 0), .into = pointer % (1 << 20)};
}

struct proved {
    struct ranges *r;
    struct ptx_module *m;
    const struct check_prove *prove;
};

static struct proved make(const char *text)
{
    struct proved k;
    struct diag_printer sink;
    diag_printer_init(&sink, 5);
    assert_int_equal(ptx_parse("prove", (struct str){text, strlen(text)}, &sink.sink, NULL, &k.m), 0);
    struct flow w = {.m = k.m, .f = ptx_find(k.m, STR("k"))->func};
    assert_int_equal(ranges_build(&w, &k.r), 0);
    flow_drop(&w);
    struct pass_check_asked asked[8] = {{.site = 0}};
    uint32_t n = k.r->proof.head->naccesses;
    assert_in_range(n, 1, 8);
    for (uint32_t i = 0; i < n; i++)
        asked[i] = (struct pass_check_asked){.site = i, .root = PASS_CHECK_ANY_ROOT, .align = 1};
    struct pass_check_kernel row = {.proved = PASS_CHECK_BARE,
                                    .proof = {(const char *)k.r->proof.head, k.r->proof.head->size},
                                    .naccesses = n,
                                    .asked = asked};
    k.prove = check_prove_found(&row);
    assert_non_null(k.prove);
    check_prove_buffer = buffer_of;
    return k;
}

static void drop(struct proved *k)
{
    ranges_free(k->r);
    ptx_free(k->m);
}

static bool holds(const struct proved *k, uint32_t block, uint32_t n)
{
    struct params p = {0x700000000000, 0x700000100000, n};
    struct launch_call l = {.grid = {1, 1, 1}, .block = {block, 1, 1}};
    b_pointer = p.b;
    return check_prove_holds(k->prove, &l, &p, sizeof p, NULL, NULL) == CHECK_PROVED_ALL;
}

// Each of the buffers must contain what is touched by way of either.
static void several_pointers(void **state)
{
    (void)state;
    struct proved k = make(KERNEL(
        "k",
        "mul.wide.u32 %d3, %r2, 4; L: add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r1; mov.u64 %d5, %d1;\n"
        "mov.u64 %d1, %d2; mov.u64 %d2, %d5; add.s32 %r1, %r1, -1; setp.gt.s32 %p1, %r1, 0; @%p1 bra L;"));
    for (short_by = 0; short_by <= 8; short_by++)
        for (uint32_t n = 1; n < 4; n++)
            assert_int_equal(holds(&k, 1024, n), short_by == 0);
    short_by = 8;
    assert_true(holds(&k, 1022, 3));
    assert_false(holds(&k, 1023, 3));
    short_by = 0;
    drop(&k);
}

static uint64_t untried(void)
{
    return atomic_load(&guard.counts[GUARD_CHECK_UNTRIED]);
}

// Its mask changes, so that each launch has to be evaluated; none is proved. Those that are remembered are
// answered all the same, and one that would be proved is found after a while.
static void not_worth_it(void **state)
{
    (void)state;
    struct proved k = make(KERNEL("k", "and.b32 %r3, %r2, %r1; mul.wide.u32 %d3, %r3, 4096;\n"
                                       "add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r1;"));
    uint32_t ninsns = k.r->proof.head->ninsns, enough = WORTH_FIRST / ninsns + 16;
    uint64_t before = untried();
    for (uint32_t i = 0; i < enough; i++)
        assert_false(holds(&k, 1024, 2 * i + 1));
    assert_in_range(untried() - before, 1, 17);
    before = untried();
    for (uint32_t i = 0; i < 10 * WORTH_AGAIN; i++)
        assert_false(holds(&k, 1024, 2 * (enough + i) + 1));
    assert_in_range(untried() - before, 10 * WORTH_AGAIN - 11, 10 * WORTH_AGAIN);
    unsigned proved = 0;
    for (uint32_t i = 0; i <= WORTH_AGAIN; i++)
        proved += holds(&k, 1024, 1024 * (i + 1));
    assert_in_range(proved, 1, WORTH_AGAIN);
    drop(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(several_pointers), cmocka_unit_test(not_worth_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
