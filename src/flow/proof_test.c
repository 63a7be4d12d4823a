// SPDX-License-Identifier: MIT
// Bounds of the kernels of proof_rows.h.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "flow/proof_rows.h"
#include "flow/ranges.h"

static struct ptx_module *parse(const char *text)
{
    struct diag_printer sink;
    struct ptx_module *m;
    diag_printer_init(&sink, 20);
    assert_int_equal(ptx_parse("test", str_from(text), &sink.sink, NULL, &m), 0);
    return m;
}

static struct ranges *build(const struct ptx_module *m)
{
    struct flow w = {.m = m, .f = ptx_find(m, STR("k"))->func};
    struct ranges *r;
    assert_int_equal(ranges_build(&w, &r), 0);
    flow_drop(&w);
    return r;
}

struct params {
    uint64_t a;
    int32_t n, m;
    int64_t s;
};

// Finds the answer for the access of the last statement.
static struct proof_bound evaluate(const struct ranges *r, const struct row *row)
{
    const struct proof *p = &r->proof;
    struct params params = {0x7F0000001000, row->n, row->m, row->s};
    struct proof_launch l = {{row->grid, 1, 1}, {row->block, 1, 1}, 0, sizeof params, &params};
    struct proof_bound out[16], last = {0};
    uint32_t stmt = 0;
    void *work = malloc(proof_work_size(p));
    assert_in_range(p->head->naccesses, 1, 16);
    assert_int_equal(proof_eval(p, &l, work, out, NULL), 0);
    free(work);
    for (uint32_t i = 0; i < p->head->naccesses; i++) {
        if (p->accesses[i].stmt >= stmt) {
            stmt = p->accesses[i].stmt;
            last = out[i];
        }
    }
    return last;
}

static void all_rows(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *text;
        assert_true(asprintf(&text, "%s%s%s", HEAD, rows[i].body, TAIL) > 0);
        struct ptx_module *m = parse(text);
        struct ranges *r = build(m);
        struct proof_bound b = evaluate(r, &rows[i]);
        bool same =
            b.verdict == rows[i].verdict && (b.verdict != PROOF_UNKNOWN || b.reason == rows[i].reason) &&
            (b.verdict != PROOF_BOUNDED || (b.lowest == rows[i].lowest && b.highest == rows[i].highest));
        if (!same) {
            failed++;
            print_error("%s: verdict %d, %lld .. %lld, %s; expected %d, %lld .. %lld, %s\n", rows[i].name,
                        b.verdict, (long long)b.lowest, (long long)b.highest, proof_why(b.reason),
                        rows[i].verdict, (long long)rows[i].lowest, (long long)rows[i].highest,
                        proof_why((enum proof_reason)rows[i].reason));
        }
        ranges_free(r);
        ptx_free(m);
        free(text);
    }
    assert_int_equal(failed, 0);
}

static const char GUARDED[] = HEAD "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n" STORE("%i") TAIL;

static void exactness(void **state)
{
    (void)state;
    struct ptx_module *m = parse(GUARDED);
    struct ranges *r = build(m);
    assert_true(evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 1000}).exact);
    assert_true(evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 1000}).guarded);
    assert_true(evaluate(r, &(struct row){.grid = 8, .block = 256, .n = 1000}).exact);
    assert_true(evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 5000}).exact);
    assert_false(evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 5000}).guarded);
    ranges_free(r);
    ptx_free(m);
    // Every second element only: 999 is not among them.
    m = parse(HEAD "shl.b32 %r3, %i, 1; setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%i") TAIL);
    r = build(m);
    assert_false(evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 999}).exact &&
                 evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 999}).highest != 1999);
    ranges_free(r);
    ptx_free(m);
}

// What xor makes of multiples of 16 elements is a multiple of them, as vectors need it.
static void alignment_of_bits(void **state)
{
    (void)state;
    static const char *const bodies[] = {HEAD TURNED("1088") TAIL, HEAD TURNED("1092") TAIL};
    static const uint8_t powers[] = {5, 4};
    for (unsigned i = 0; i < 2; i++) {
        struct ptx_module *m = parse(bodies[i]);
        struct ranges *r = build(m);
        struct proof_bound b = evaluate(r, &(struct row){.grid = 1, .block = 64});
        assert_int_equal(b.power, powers[i]);
        assert_int_equal(b.residue, 0);
        ranges_free(r);
        ptx_free(m);
    }
}

// grid.sync() waits at words of the driver's: they are none of the kernel's accesses.
static void words_of_the_grid(void **state)
{
    (void)state;
    struct ptx_module *m =
        parse(HEAD STORE("%i") "{ .reg .b32 %e<3>; .reg .b64 %w;\n"
                               "mov.u32 %e0, %envreg1; mov.u32 %e1, %envreg2;\n"
                               "mov.b64 %w, {%e1, %e0}; ld.acquire.gpu.u32 %e2, [%w+4]; }\n" TAIL);
    struct ranges *r = build(m);
    assert_int_equal(r->proof.head->naccesses, 1);
    ranges_free(r);
    ptx_free(m);
}

// A distance of n * i + m bytes, and one with a remainder of i.
static void alignment(void **state)
{
    (void)state;
    struct ptx_module *m =
        parse(HEAD "mul.wide.u32 %d3, %r2, %n; cvt.u64.u32 %d4, %m; add.s64 %d5, %d3, %d4;\n"
                   "add.s64 %d6, %a, %d5; st.global.u8 [%d6+8], %h1;\n" TAIL);
    struct ranges *r = build(m);
    static const struct {
        int n, m;
        unsigned power, residue;
    } cases[] = {{16, 4, 4, 12}, {12, 0, 2, 0}, {12, 5, 2, 1}, {5, 0, 0, 0}, {64, 61, 5, 5}, {0, 3, 5, 11}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct proof_bound b =
            evaluate(r, &(struct row){.grid = 1, .block = 32, .n = cases[i].n, .m = cases[i].m});
        assert_int_equal(b.verdict, PROOF_BOUNDED);
        assert_int_equal(b.power, cases[i].power);
        assert_int_equal(b.residue, cases[i].residue);
    }
    ranges_free(r);
    ptx_free(m);
    m = parse(HEAD "rem.u32 %r3, %r2, 3; mad.lo.s32 %r4, %r3, 3, %r2; mul.wide.u32 %d3, %r4, 4;\n"
                   "add.s64 %d6, %a, %d3; st.global.u8 [%d6], %h1;\n" TAIL);
    r = build(m);
    struct proof_bound b = evaluate(r, &(struct row){.grid = 1, .block = 32});
    assert_int_equal(b.verdict, PROOF_BOUNDED);
    assert_int_equal(b.power, 2);
    ranges_free(r);
    ptx_free(m);
}

// Which of its ways a switch takes is a condition of its own.
static void exact_behind_switch(void **state)
{
    (void)state;
    struct ptx_module *m =
        parse(HEAD "LIST: .branchtargets CASE, END;\nbrx.idx %n, LIST;\nCASE:\n" STORE("%i") TAIL);
    struct ranges *r = build(m);
    struct proof_bound b = evaluate(r, &(struct row){.grid = 4, .block = 256, .n = 1});
    assert_int_equal(b.verdict, PROOF_BOUNDED);
    assert_int_equal(b.highest, 4095);
    assert_false(b.exact);
    assert_true(b.guarded);
    ranges_free(r);
    ptx_free(m);
}

static void refused_launches(void **state)
{
    (void)state;
    struct ptx_module *m = parse(GUARDED);
    struct ranges *r = build(m);
    struct params params = {0};
    struct proof_bound out[4];
    void *work = malloc(proof_work_size(&r->proof));
    struct proof_launch good = {{1, 1, 1}, {32, 1, 1}, 0, sizeof params, &params}, l = good;
    assert_int_equal(proof_eval(&r->proof, &l, work, out, NULL), 0);
    l.grid[1] = 0;
    assert_int_equal(proof_eval(&r->proof, &l, work, out, NULL), -EINVAL);
    l = good;
    l.block[0] = 1025;
    assert_int_equal(proof_eval(&r->proof, &l, work, out, NULL), -EINVAL);
    l = good;
    l.params_size = 8;
    assert_int_equal(proof_eval(&r->proof, &l, work, out, NULL), -EINVAL);
    free(work);
    ranges_free(r);
    ptx_free(m);
}

static void touched(void **state)
{
    (void)state;
    struct ptx_module *m = parse(GUARDED);
    struct ranges *r = build(m);
    struct params params = {.n = 10};
    struct proof_bound out[4];
    struct proof_touched roots[4];
    void *work = malloc(proof_work_size(&r->proof));
    struct proof_launch l = {{1, 1, 1}, {32, 1, 1}, 0, sizeof params, &params};
    assert_int_equal(proof_eval(&r->proof, &l, work, out, roots), 0);
    assert_int_equal(roots[out[0].root].lowest, 0);
    assert_int_equal(roots[out[0].root].highest, 39);
    assert_true(roots[out[0].root].writes);
    assert_false(roots[out[0].root].reads);
    assert_int_equal(r->proof.roots[out[0].root].param, 0);
    free(work);
    ranges_free(r);
    ptx_free(m);
}

// A program is the same after it was read again, and damaged ones are refused or evaluated without harm.
static void damaged(void **state)
{
    (void)state;
    struct ptx_module *m = parse(GUARDED);
    struct ranges *r = build(m);
    size_t size = r->proof.head->size;
    struct proof p;
    char *bytes = malloc(size);
    assert_int_equal(proof_read(r->proof.head, size, &p), 0);
    assert_int_equal(proof_read(r->proof.head, size - 8, &p), -EINVAL);
    for (size_t at = 0; at < size; at++) {
        memcpy(bytes, r->proof.head, size);
        bytes[at] ^= (char)0x81;
        struct params params = {.n = 10};
        struct proof_bound out[64];
        struct proof_launch l = {{4, 1, 1}, {32, 1, 1}, 0, sizeof params, &params};
        if (proof_read(bytes, size, &p) || p.head->naccesses > 64)
            continue;
        void *work = malloc(proof_work_size(&p));
        proof_eval(&p, &l, work, out, NULL);
        free(work);
    }
    free(bytes);
    ranges_free(r);
    ptx_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_rows),          cmocka_unit_test(exactness),
        cmocka_unit_test(alignment_of_bits), cmocka_unit_test(words_of_the_grid),
        cmocka_unit_test(alignment),         cmocka_unit_test(exact_behind_switch),
        cmocka_unit_test(refused_launches),  cmocka_unit_test(touched),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
