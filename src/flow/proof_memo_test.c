// SPDX-License-Identifier: MIT
// What a memo remembers, and what it may not.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "flow/proof_memo.h"
#include "flow/ranges.h"

#define HEAD                                                                                              \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_a, .param .u64 k_b, " \
    ".param .u32 k_n, .param .f32 k_x)\n{\n.reg .b32 %r<9>; .reg .b64 %d<20>; .reg .pred %p<4>;\n"        \
    "ld.param.u64 %d1, [k_a]; ld.param.u64 %d2, [k_b]; ld.param.u32 %r1, [k_n]; mov.u32 %r2, %tid.x;\n"   \
    "setp.ge.s32 %p1, %r2, %r1; @%p1 bra END; mul.wide.s32 %d3, %r2, 4;\n"
#define TAIL "\nEND: ret;\n}\n"

struct params {
    uint64_t a, b;
    int32_t n;
    float x;
};

struct kernel {
    struct ptx_module *m;
    struct ranges *r;
    void *work, *memory;
    struct proof_memo *memo;
};

static struct kernel make(const char *text)
{
    struct kernel k;
    struct diag_printer sink;
    diag_printer_init(&sink, 5);
    assert_int_equal(ptx_parse("memo", (struct str){text, strlen(text)}, &sink.sink, NULL, &k.m), 0);
    struct flow w = {.m = k.m, .f = ptx_find(k.m, STR("k"))->func};
    assert_int_equal(ranges_build(&w, &k.r), 0);
    flow_drop(&w);
    k.work = malloc(proof_work_size(&k.r->proof));
    k.memory = malloc(proof_memo_size(&k.r->proof));
    k.memo = proof_memo_init(&k.r->proof, k.memory, k.work);
    return k;
}

static void drop(struct kernel *k)
{
    free(k->memory);
    free(k->work);
    ranges_free(k->r);
    ptx_free(k->m);
}

// Returns whether the answer was remembered; it is compared with a fresh one.
static bool ask(struct kernel *k, uint32_t block, struct params p)
{
    struct proof_launch l = {{4, 1, 1}, {block, 1, 1}, 0, sizeof p, &p};
    struct proof_bound fresh[8];
    const struct proof_bound *got;
    bool remembered;
    assert_int_equal(proof_memo_eval(k->memo, &l, k->work, &got, &remembered), 0);
    assert_int_equal(proof_eval(&k->r->proof, &l, k->work, fresh, NULL), 0);
    for (uint32_t i = 0; i < k->r->proof.head->naccesses; i++) {
        assert_int_equal(got[i].verdict, fresh[i].verdict);
        assert_int_equal(got[i].lowest, fresh[i].lowest);
        assert_int_equal(got[i].highest, fresh[i].highest);
        assert_int_equal(got[i].root, fresh[i].root);
    }
    return remembered;
}

static const char PLAIN[] = HEAD "add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r1;" TAIL;

static void equal_launches(void **state)
{
    (void)state;
    struct kernel k = make(PLAIN);
    struct params p = {.a = 0x7000000, .n = 10};
    assert_false(ask(&k, 32, p));
    assert_true(ask(&k, 32, p));
    assert_false(ask(&k, 64, p));
    assert_true(ask(&k, 32, p));
    p.n = 11;
    assert_false(ask(&k, 32, p));
    p.n = 10;
    assert_true(ask(&k, 32, p));
    p.x = 1;  // no address depends on it
    assert_true(ask(&k, 32, p));
    p.a = 0x9999000;
    assert_true(ask(&k, 32, p));
    drop(&k);
}

static void more_than_fit(void **state)
{
    (void)state;
    struct kernel k = make(PLAIN);
    for (int round = 0; round < 3; round++)
        for (int n = 1; n < 40; n++)
            assert_false(ask(&k, 64, (struct params){.a = 0x7000000, .n = n}));
    assert_true(ask(&k, 64, (struct params){.a = 0x7000000, .n = 39}));
    drop(&k);
}

// A pointer that decides something must be equal too.
static void pointers_that_matter(void **state)
{
    static const struct {
        const char *body;
        bool matters;
    } of[] = {
        {"add.s64 %d4, %d1, %d3; st.global.u32 [%d4], %r1;", false},
        {"L: add.s64 %d1, %d1, 4; st.global.u32 [%d1], %r1; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %r1; "
         "@%p2 "
         "bra L;",
         false},
        {"setp.eq.s32 %p2, %r2, 3; @%p2 add.s64 %d1, %d1, 64; st.global.u32 [%d1], %r1;", false},
        {"mov.u64 %d7, 64; sub.s64 %d8, %d7, %d1; add.s64 %d9, %d2, %d8; st.global.u32 [%d9], %r1;", true},
        {"setp.eq.s64 %p2, %d1, 0; @%p2 bra END; st.global.u32 [%d2], %r1;", true},
        {"and.b64 %d5, %d1, 15; sub.s64 %d6, %d1, %d5; st.global.u32 [%d6], %r1;", true},
        {"sub.s64 %d5, %d2, %d1; add.s64 %d6, %d5, %d1; st.global.u32 [%d6], %r1;", true},
        {"setp.eq.s32 %p2, %r2, 3; selp.b64 %d5, %d1, %d2, %p2; st.global.u32 [%d5], %r1;", true},
        {"L: add.s64 %d1, %d1, 4; st.global.u32 [%d1], %r1; setp.ne.s64 %p2, %d1, %d2; @%p2 bra L;", true},
        {"cvt.u32.u64 %r3, %d1; mul.wide.u32 %d5, %r3, 4; add.s64 %d6, %d2, %d5; st.global.u32 [%d6], %r1;",
         true},
        // What is added to a variable is a number, whatever its width.
        {".shared .b8 t[4096]; cvt.u32.u64 %r3, %d1; mov.u32 %r4, t; add.s32 %r5, %r4, %r3; "
         "st.shared.u32 [%r5], %r1;",
         true},
        {".shared .b8 t[4096]; mov.u64 %d5, t; add.s64 %d6, %d1, %d5; st.shared.u32 [%d6], %r1;", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s%s", HEAD, of[i].body, TAIL);
        struct kernel k = make(text);
        struct params p = {.a = 0x7000000, .b = 0x7000100, .n = 10};
        assert_false(ask(&k, 32, p));
        p.a = 0x7000080;
        if (ask(&k, 32, p) == of[i].matters)
            fail_msg("row %zu: %s", i, of[i].body);
        assert_int_equal(proof_memo_uses(k.memo, 0), of[i].matters);
        drop(&k);
    }
}

// What is added to a pointer is a number and part of the key, also where the pointer is not the parameter
// itself any more.
static void numbers_beside_pointers(void **state)
{
    static const char *const of[] = {
        "and.b64 %d5, %d1, -16; add.s64 %d6, %d5, %d2; st.global.u32 [%d6], %r1;",
        "and.b64 %d5, %d1, -16; sub.s64 %d6, %d5, %d2; st.global.u32 [%d6], %r1;",
        "max.s64 %d5, %d1, 0; add.s64 %d6, %d2, %d5; st.global.u32 [%d6], %r1;",
        "mul.lo.s64 %d5, %d1, 1; add.s64 %d6, %d5, %d2; st.global.u32 [%d6], %r1;",
        ("mov.u64 %d5, 0; setp.eq.s32 %p2, %r1, 10; selp.b64 %d6, %d1, %d5, %p2; add.s64 %d7, %d6, %d2; "
         "st.global.u32 [%d7], %r1;"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char text[2048];
        snprintf(text, sizeof text, "%s%s st.global.u32 [%%d1], %%r1;%s", HEAD, of[i], TAIL);
        struct kernel k = make(text);
        struct params p = {.a = 0x7000000, .b = 64, .n = 10};
        assert_false(ask(&k, 32, p));
        p.b = 4096;
        if (ask(&k, 32, p))
            fail_msg("row %zu: %s", i, of[i]);
        assert_true(proof_memo_uses(k.memo, 1));
        drop(&k);
    }
}

// Launches with other numbers are answered by a closed form, from the second on. An answer that was evaluated
// anew is no longer one of those.
static void other_numbers(void **state)
{
    (void)state;
    struct kernel k = make(PLAIN);
    struct params p = {.a = 0x7000000, .n = 10};
    struct proof_launch l = {{4, 1, 1}, {32, 1, 1}, 0, sizeof p, &p};
    const struct proof_bound *out;
    for (p.n = 10; p.n < 30; p.n++) {
        assert_false(ask(&k, 32, p));
        assert_int_equal(proof_memo_is_closed(k.memo), p.n > 10);
    }
    assert_true(ask(&k, 32, (struct params){.a = 0x7000000, .n = 29}));
    p.n = 29;
    assert_int_equal(proof_memo_eval(k.memo, &l, k.work, &out, NULL), 0);
    assert_true(proof_memo_renew(k.memo, &l, k.work, &out));
    assert_int_equal(out[0].highest, 115);
    assert_false(proof_memo_is_closed(k.memo));
    assert_false(proof_memo_renew(k.memo, &l, k.work, &out));
    drop(&k);
}

// Asks for a launch by a closed form alone, and else as all others are. Returns whether that form held.
static bool ask_alone(struct kernel *k, uint32_t block, struct params p)
{
    struct proof_launch l = {{4, 1, 1}, {block, 1, 1}, 0, sizeof p, &p};
    struct proof_bound fresh[8];
    const struct proof_bound *got;
    bool alone = proof_memo_closed(k->memo, &l, &got);
    assert_int_equal(proof_eval(&k->r->proof, &l, k->work, fresh, NULL), 0);
    if (alone)
        assert_int_equal(got[0].highest, fresh[0].highest);
    else
        ask(k, block, p);
    return alone;
}

// Launches that differ each time are answered by a closed form alone, whether their shapes differ too or
// their numbers only; no longer once some are remembered.
static void numbers_in_a_row(void **state)
{
    (void)state;
    struct kernel k = make(PLAIN);
    struct params p = {.a = 0x7000000, .n = 1};
    unsigned alone = 0;
    for (; p.n <= 3; p.n++)
        assert_false(ask_alone(&k, 32, p));
    for (; p.n <= 100; p.n++)
        alone += ask_alone(&k, 32, p);
    assert_in_range(alone, 80, 96);
    for (uint32_t block = 1; block < 64; block++, p.n = 20 + (int32_t)block * 7 % 50)
        alone += ask_alone(&k, block, p);
    assert_in_range(alone, 130, 160);
    while (ask_alone(&k, 32, (struct params){.a = 0x7000000, .n = 1000}))
        ;
    ask(&k, 32, (struct params){.a = 0x7000000, .n = 1000});
    assert_false(ask_alone(&k, 32, (struct params){.a = 0x7000000, .n = 1001}));
    assert_false(ask_alone(&k, 32, (struct params){.a = 0x7000000, .n = 1000}));
    struct proof_launch none = {{4, 1, 1}, {32, 1, 1}, 0, 0, NULL};
    const struct proof_bound *out;
    assert_false(proof_memo_closed(k.memo, &none, &out));
    drop(&k);
}

// Nothing is evaluated for proof_memo_find; what is known is found.
static void found(void **state)
{
    static const char body[] = "mov.u32 %r4, 0; and.b32 %r3, %r2, %r1; mul.wide.u32 %d5, %r3, 4;\n"
                               "add.s64 %d4, %d1, %d5; st.global.u32 [%d4], %r1;";
    (void)state;
    char text[2048];
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    struct kernel k = make(text);
    struct params p = {.a = 0x7000000, .n = 7};
    struct proof_launch l = {{4, 1, 1}, {32, 1, 1}, 0, sizeof p, &p};
    const struct proof_bound *out;
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), -EAGAIN);
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), -EAGAIN);
    assert_false(ask(&k, 32, p));
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), 0);
    assert_int_equal(out[0].highest, 27);
    p.n = 6;
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), -EAGAIN);
    l.block[0] = 0;
    assert_true(proof_memo_find(k.memo, &l, k.work, &out) < 0);
    drop(&k);
    k = make(PLAIN);
    l.block[0] = 32;
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), -EAGAIN);
    assert_int_equal(proof_memo_find(k.memo, &l, k.work, &out), 0);
    assert_true(proof_memo_is_closed(k.memo));
    drop(&k);
}

static void refused(void **state)
{
    (void)state;
    struct kernel k = make(PLAIN);
    struct params p = {.a = 0x7000000, .n = 10};
    const struct proof_bound *out;
    struct proof_launch l = {{4, 1, 1}, {32, 1, 1}, 0, 8, &p};
    assert_int_equal(proof_memo_eval(k.memo, &l, k.work, &out, NULL), -EINVAL);
    l.params_size = sizeof p;
    l.block[0] = 2000;
    assert_int_equal(proof_memo_eval(k.memo, &l, k.work, &out, NULL), -EINVAL);
    assert_int_equal(proof_memo_eval(k.memo, &l, k.work, &out, NULL), -EINVAL);
    assert_false(ask(&k, 32, p));
    drop(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_launches),
        cmocka_unit_test(more_than_fit),
        cmocka_unit_test(pointers_that_matter),
        cmocka_unit_test(numbers_beside_pointers),
        cmocka_unit_test(other_numbers),
        cmocka_unit_test(numbers_in_a_row),
        cmocka_unit_test(found),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
