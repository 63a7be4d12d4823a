// SPDX-License-Identifier: MIT
// Accesses by way of one of several pointers: which pointers, and how far from each of them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "flow/closed.h"
#include "flow/judge.h"
#include "flow/proof_memo.h"
#include "flow/ranges.h"

#define HEAD                                                                                              \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_a, .param .u64 k_b, " \
    ".param .u64 k_c, .param .u32 k_n, .param .u64 k_s)\n{\n"                                             \
    ".reg .b32 %r<9>; .reg .b64 %d<20>; .reg .pred %p<4>;\n"                                              \
    "ld.param.u64 %d11, [k_a]; ld.param.u64 %d12, [k_b]; ld.param.u64 %d13, [k_c]; ld.param.u32 %r1, "    \
    "[k_n];\n"                                                                                            \
    "ld.param.u64 %d14, [k_s]; cvta.to.global.u64 %d1, %d11; cvta.to.global.u64 %d2, %d12; "              \
    "cvta.to.global.u64 %d3, %d13;\n"                                                                     \
    "mov.u32 %r2, %tid.x; mul.wide.u32 %d4, %r2, 4; ld.global.u32 %r3, [%d3]; setp.eq.s32 %p1, %r3, 0;\n" \
    "mov.u32 %r4, 0;\n"
// a loop of n rounds
#define LOOP(body) "L: " body " add.s32 %r4, %r4, 1; setp.lt.s32 %p2, %r4, %r1; @%p2 bra L;\n"
#define STORE(pointer) "add.s64 %d6, " pointer ", %d4; st.global.u32 [%d6], %r1; "
#define TAIL "\nEND: ret;\n}\n"

enum { A = 1, B = 2, C = 4 };

// What the last access may start from, and how far it goes in 32 threads; no roots: it is not bounded.
static const struct row {
    const char *name, *body;
    uint32_t roots;
    int64_t lowest, highest;
    int32_t n;
} rows[] = {
    {"swapped", LOOP("mov.u64 %d5, %d2; mov.u64 %d2, %d1; mov.u64 %d1, %d5; " STORE("%d1")), A | B, 0, 127,
     10},
    {"read before they are swapped",
     LOOP(STORE("%d1") "mov.u64 %d5, %d2; mov.u64 %d2, %d1; mov.u64 %d1, %d5; "), A | B, 0, 127, 10},
    {"three in turn",
     LOOP(STORE("%d3") "mov.u64 %d5, %d3; mov.u64 %d3, %d2; mov.u64 %d2, %d1; mov.u64 %d1, %d5; "), A | B | C,
     0, 127, 10},
    {"swapped if",
     LOOP(STORE("%d1") "selp.b64 %d5, %d1, %d2, %p1; selp.b64 %d2, %d2, %d1, %p1; mov.u64 %d1, %d5; "), A | B,
     0, 127, 10},
    {"swapped under a guard",
     LOOP(STORE("%d1") "@%p1 mov.u64 %d5, %d2; @!%p1 bra M; mov.u64 %d2, %d1; mov.u64 %d1, %d5; M: "), 0, 0,
     0, 10},
    {"moved under a guard", LOOP(STORE("%d1") "@%p1 mov.u64 %d1, %d2; "), A | B, 0, 127, 10},
    {"selected", "selp.b64 %d5, %d1, %d2, %p1; " STORE("%d5"), A | B, 0, 127, 10},
    {"selected, then converted", "selp.b64 %d5, %d11, %d12, %p1; cvta.to.global.u64 %d5, %d5; " STORE("%d5"),
     A | B, 0, 127, 10},
    {"selected twice",
     "selp.b64 %d5, %d1, %d2, %p1; setp.eq.s32 %p2, %r3, 7; selp.b64 %d5, %d5, %d3, %p2; " STORE("%d5"),
     A | B | C, 0, 127, 10},
    {"selected by the launch", "setp.eq.s32 %p2, %r1, 10; selp.b64 %d5, %d1, %d2, %p2; " STORE("%d5"), A, 0,
     127, 10},
    {"selected by the launch, the other one",
     "setp.eq.s32 %p2, %r1, 10; selp.b64 %d5, %d1, %d2, %p2; " STORE("%d5"), B, 0, 127, 11},
    {"joined", "@%p1 bra M; mov.u64 %d1, %d2; M: " STORE("%d1"), A | B, 0, 127, 10},
    {"with a number of the launch", "selp.b64 %d5, %d1, %d2, %p1; add.s64 %d5, %d5, %d14; " STORE("%d5"),
     A | B, 64, 191, 10},
    {"with a loop's steps", "selp.b64 %d5, %d1, %d2, %p1;\n" LOOP(STORE("%d5") "add.s64 %d5, %d5, 128; "),
     A | B, 0, 1279, 10},
    // What is carried on is no copy of a parameter.
    {"swapped and moved on", LOOP(STORE("%d1") "mov.u64 %d5, %d2; add.s64 %d2, %d1, 4; mov.u64 %d1, %d5; "),
     0, 0, 0, 10},
    {"swapped with a loaded one",
     "ld.global.u64 %d2, [%d3];\n" LOOP(
         STORE("%d1") "mov.u64 %d5, %d2; mov.u64 %d2, %d1; mov.u64 %d1, %d5; "),
     0, 0, 0, 10},
    {"selected with a number", "mov.u64 %d7, 4096; selp.b64 %d5, %d1, %d7, %p1; " STORE("%d5"), 0, 0, 0, 10},
    {"half of it",
     LOOP(STORE("%d1") "mov.u64 %d5, %d2; mov.u64 %d2, %d1; cvt.u32.u64 %r5, %d5; cvt.u64.u32 %d1, %r5; "), 0,
     0, 0, 10},
};

struct params {
    uint64_t a, b, c;
    int32_t n;
    uint64_t s;
};

struct kernel {
    struct ptx_module *m;
    struct ranges *r;
    void *work, *closed, *memory;
    uint32_t last;  // the access that stands last
};

static struct kernel make(const char *body)
{
    struct kernel k = {0};
    char text[4096];
    struct diag_printer sink;
    diag_printer_init(&sink, 5);
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    assert_int_equal(ptx_parse("choice", (struct str){text, strlen(text)}, &sink.sink, NULL, &k.m), 0);
    struct flow w = {.m = k.m, .f = ptx_find(k.m, STR("k"))->func};
    assert_int_equal(ranges_build(&w, &k.r), 0);
    flow_drop(&w);
    const struct proof *p = &k.r->proof;
    k.work = malloc(proof_work_size(p));
    k.closed = malloc(closed_size(p));
    k.memory = malloc(proof_memo_size(p));
    assert_in_range(p->head->naccesses, 1, 8);
    for (uint32_t i = 0; i < p->head->naccesses; i++)
        if (p->accesses[i].stmt >= p->accesses[k.last].stmt)
            k.last = i;
    return k;
}

static void drop(struct kernel *k)
{
    free(k->work);
    free(k->closed);
    free(k->memory);
    ranges_free(k->r);
    ptx_free(k->m);
}

static void check(const struct row *row, const struct proof *p, const struct proof_bound *b, const char *who)
{
    uint32_t roots = 0;
    for (uint32_t i = 0; b->verdict == PROOF_BOUNDED && i < p->head->nroots; i++)
        if (p->roots[i].kind == PROOF_ROOT_PARAM && proof_root_may_be(p, b->root, i))
            roots |= 1u << p->roots[i].param;
    bool right = row->roots ? roots == row->roots && b->lowest == row->lowest && b->highest == row->highest
                            : b->verdict == PROOF_UNKNOWN;
    if (!right || (b->exact && p->roots[b->root].kind == PROOF_ROOT_CHOICE))
        fail_msg("%s, %s: verdict %u, roots %x, %lld .. %lld", row->name, who, b->verdict, roots,
                 (long long)b->lowest, (long long)b->highest);
}

static void all_rows(void **state)
{
    unsigned held = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel k = make(rows[i].body);
        const struct proof *p = &k.r->proof;
        struct params first = {0x7F0000000000, 0x7F0010000000, 0x7E0000000000, rows[i].n + 20, 640},
                      second = {0x7F0020000000, 0x7D0000000000, 0x7F0000000000, rows[i].n, 64};
        struct proof_launch l = {{1, 1, 1}, {32, 1, 1}, 0, sizeof first, &first};
        struct proof_bound out[8];
        const struct proof_bound *remembered;
        assert_int_equal(proof_eval(p, &l, k.work, out, NULL), 0);
        bool closed = closed_build(p, &l, out, k.work, k.closed);
        struct proof_memo *memo = proof_memo_init(p, k.memory, k.work);
        assert_int_equal(proof_memo_eval(memo, &l, k.work, &remembered, NULL), 0);
        l.params = &second;
        assert_int_equal(proof_eval(p, &l, k.work, out, NULL), 0);
        check(&rows[i], p, &out[k.last], "proof_eval");
        if (closed && closed_eval(k.closed, p, &l, k.work, out)) {
            check(&rows[i], p, &out[k.last], "a closed form");
            held += rows[i].roots != 0;
        }
        assert_int_equal(proof_memo_eval(memo, &l, k.work, &remembered, NULL), 0);
        check(&rows[i], p, &remembered[k.last], "proof_memo_eval");
        // Other pointers change nothing, another number does where it is added.
        second.a += 4096;
        assert_int_equal(proof_memo_eval(memo, &l, k.work, &remembered, NULL), 0);
        check(&rows[i], p, &remembered[k.last], "proof_memo_eval, with another pointer");
        second.s += 4096;
        assert_int_equal(proof_eval(p, &l, k.work, out, NULL), 0);
        assert_int_equal(proof_memo_eval(memo, &l, k.work, &remembered, NULL), 0);
        assert_int_equal(remembered[k.last].lowest, out[k.last].lowest);
        drop(&k);
    }
    assert_in_range(held, 8, sizeof rows / sizeof *rows);
}

// The name of a choice, and that no buffer is its own.
static void words(void **state)
{
    (void)state;
    struct kernel k = make(rows[2].body);
    const struct proof *p = &k.r->proof;
    char name[64], small[8];
    uint32_t root = k.r->accesses[k.last].root;
    assert_int_equal(p->roots[root].kind, PROOF_ROOT_CHOICE);
    judge_root(p, root, name, sizeof name);
    assert_string_equal(name, "p0 or p1 or p2");
    judge_root(p, root, small, sizeof small);
    assert_true(strlen(small) < sizeof small);
    assert_false(judge_variable(&p->roots[root], 100).known);
    drop(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_rows), cmocka_unit_test(words)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
