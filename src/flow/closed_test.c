// SPDX-License-Identifier: MIT
// Closed forms that are made from one launch and used for another: the rows of proof_rows.h, each from
// launches with other numbers, and kernels in which a condition on the launch is all that keeps a bound from
// being wrong.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/diag.h"
#include "flow/closed.h"
#include "flow/proof_rows.h"
#include "flow/ranges.h"

struct params {
    uint64_t a;
    int32_t n, m;
    int64_t s;
};

struct kernel {
    char *text;
    struct ptx_module *m;
    struct ranges *r;
    void *work, *closed;
    uint32_t last;  // the access of the last statement
};

static struct kernel make(const char *body)
{
    struct kernel k = {0};
    struct diag_printer sink;
    diag_printer_init(&sink, 5);
    assert_true(asprintf(&k.text, "%s%s%s", HEAD, body, TAIL) > 0);
    assert_int_equal(ptx_parse("closed", (struct str){k.text, strlen(k.text)}, &sink.sink, NULL, &k.m), 0);
    struct flow w = {.m = k.m, .f = ptx_find(k.m, STR("k"))->func};
    assert_int_equal(ranges_build(&w, &k.r), 0);
    flow_drop(&w);
    const struct proof *p = &k.r->proof;
    k.work = malloc(proof_work_size(p));
    k.closed = malloc(closed_size(p));
    assert_in_range(p->head->naccesses, 1, 16);
    for (uint32_t i = 0; i < p->head->naccesses; i++)
        if (p->accesses[i].stmt >= p->accesses[k.last].stmt)
            k.last = i;
    return k;
}

static void drop(struct kernel *k)
{
    free(k->work);
    free(k->closed);
    ranges_free(k->r);
    ptx_free(k->m);
    free(k->text);
}

// Makes the closed form of a launch. Returns whether there is one.
static bool learn(struct kernel *k, const struct row *row)
{
    struct params params = {0x7F0000001000, row->n, row->m, row->s};
    struct proof_launch l = {{row->grid, 1, 1}, {row->block, 1, 1}, 0, sizeof params, &params};
    struct proof_bound out[16];
    assert_int_equal(proof_eval(&k->r->proof, &l, k->work, out, NULL), 0);
    return closed_build(&k->r->proof, &l, out, k->work, k->closed);
}

// Asks it for another launch, with another pointer too. Returns whether it holds.
static bool ask(struct kernel *k, const struct row *row, struct proof_bound *bound)
{
    struct params params = {0x7F0011000000, row->n, row->m, row->s};
    struct proof_launch l = {{row->grid, 1, 1}, {row->block, 1, 1}, 0, sizeof params, &params};
    struct proof_bound out[16];
    bool holds = closed_eval(k->closed, &k->r->proof, &l, k->work, out);
    *bound = out[k->last];
    return holds;
}

// The launches that a row's closed forms are made from: its own one, with other numbers.
static struct row other_launch(const struct row *row, unsigned which)
{
    struct row o = *row;
    static const int32_t numbers[] = {1000, 100, 10, 7, 64};
    switch (which) {
    case 0: o.n = (int32_t)((uint32_t)row->n + 1); break;
    case 1: o.n = row->n / 2 + 1; break;
    case 2: o.grid = row->grid / 2 + 1; break;
    case 3: o.m = (int32_t)((uint32_t)row->m + 1); break;
    case 4: o.s = row->s / 2 + 1; break;
    case 5: o.block = row->block / 2 + 1; break;
    default:
        o.grid = 4;
        o.block = 256;
        o.n = numbers[(which - 6) % 5];
        o.m = numbers[(which - 5) % 5];
        o.s = numbers[(which - 4) % 5];
    }
    return o;
}
enum { OTHER_LAUNCHES = 11 };

static bool is_right(const struct row *row, const struct proof_bound *b)
{
    if (b->verdict == PROOF_UNKNOWN)
        return true;
    if (row->verdict != PROOF_BOUNDED || b->verdict != PROOF_BOUNDED)
        return row->verdict == PROOF_UNREACHABLE;
    return b->lowest <= row->lowest && b->highest >= row->highest;
}

static void all_rows(void **state)
{
    unsigned held = 0, equal = 0, failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kernel k = make(rows[i].body);
        for (unsigned o = 0; o < OTHER_LAUNCHES; o++) {
            struct row other = other_launch(&rows[i], o);
            struct proof_bound b;
            if (!learn(&k, &other) || !ask(&k, &rows[i], &b))
                continue;
            held++;
            equal +=
                b.verdict == rows[i].verdict && b.lowest == rows[i].lowest && b.highest == rows[i].highest;
            if (is_right(&rows[i], &b))
                continue;
            failed++;
            print_error("%s, from launch %u: verdict %d, %lld .. %lld; expected %d, %lld .. %lld\n",
                        rows[i].name, o, b.verdict, (long long)b.lowest, (long long)b.highest,
                        rows[i].verdict, (long long)rows[i].lowest, (long long)rows[i].highest);
        }
        drop(&k);
    }
    print_message("%u closed forms held for another launch, %u with the same bound\n", held, equal);
    assert_int_equal(failed, 0);
    assert_true(held > 500 && equal > 400);
}

// A kernel, the launch that its closed form is made from, and another one. BOUNDED: the form holds, and says
// this. WAITS: it must not hold.
enum expectation { HOLDS, WAITS };
static const struct pair {
    const char *name, *body;
    uint32_t grid[2], block[2];
    int32_t n[2], m[2];
    enum expectation then;
    int64_t lowest, highest;
    int64_t s[2];
} pairs[] = {
#define GUARD "setp.ge.s32 %p1, %i, %n; @%p1 bra END;\n"
    {"more threads", STORE("%i"), {4, 90}, {256, 128}, {0}, {0}, HOLDS, 0, 4 * 90 * 128 - 1, {0}},
    {"so many that the index wraps", STORE("%i"), {4, 1 << 24}, {256, 256}, {0}, {0}, WAITS, 0, 0, {0}},
    {"another limit", GUARD STORE("%i"), {4, 5}, {256, 256}, {1000, 1100}, {0}, HOLDS, 0, 4399, {0}},
    {"a limit above the threads",
     GUARD STORE("%i"),
     {4, 4},
     {256, 256},
     {1000, 5000},
     {0},
     HOLDS,
     0,
     4095,
     {0}},
    {"a limit that nobody is below", GUARD STORE("%i"), {4, 4}, {256, 256}, {1000, 0}, {0}, WAITS, 0, 0, {0}},
    {"a guard, and so many that the index wraps",
     GUARD STORE("%i"),
     {4, 1 << 24},
     {256, 256},
     {1000, 1000},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"another pitch",
     "mul.lo.s32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 4},
     {256, 256},
     {1000, 1001},
     {0},
     HOLDS,
     0,
     4 * 1023 * 1001 + 3,
     {0}},
    {"a negative pitch",
     "mul.lo.s32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 4},
     {256, 256},
     {1000, -1},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a pitch that wraps",
     "mul.lo.s32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 4},
     {256, 256},
     {1000, 3000000},
     {0},
     WAITS,
     0,
     0,
     {0}},
#define DIVIDED "div.s32 %r3, %i, %n;\n"
    {"another divisor", DIVIDED STORE("%r3"), {4, 4}, {256, 256}, {10, 3}, {0}, HOLDS, 0, 4 * 341 + 3, {0}},
    {"a divisor of 0", DIVIDED STORE("%r3"), {4, 4}, {256, 256}, {10, 0}, {0}, WAITS, 0, 0, {0}},
    {"a negative divisor", DIVIDED STORE("%r3"), {4, 4}, {256, 256}, {10, -3}, {0}, WAITS, 0, 0, {0}},
#define MODULO "rem.s32 %r3, %i, %n;\n"
    {"another modulus", MODULO STORE("%r3"), {4, 4}, {256, 256}, {10, 300}, {0}, HOLDS, 0, 1199, {0}},
    {"a modulus of 0", MODULO STORE("%r3"), {4, 4}, {256, 256}, {10, 0}, {0}, WAITS, 0, 0, {0}},
#define COUNTED(step)                                                \
    "mov.u32 %r3, 0;\nLOOP: " STORE("%r3") "add.s32 %r3, %r3, " step \
                                           "; setp.lt.s32 %p1, %r3, %n; @%p1 bra LOOP;\n"
    {"more rounds", COUNTED("3"), {1, 1}, {32, 32}, {10, 100}, {0}, HOLDS, 0, 399, {0}},
    {"a single round", COUNTED("3"), {1, 1}, {32, 32}, {10, 3}, {0}, WAITS, 0, 0, {0}},
    {"rounds whose last increment wraps",
     COUNTED("3"),
     {1, 1},
     {32, 32},
     {10, 2147483647},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"steps of a parameter", COUNTED("%m"), {1, 1}, {32, 32}, {10, 100}, {3, 10}, HOLDS, 0, 363, {0}},
    {"steps of 0", COUNTED("%m"), {1, 1}, {32, 32}, {10, 100}, {3, 0}, WAITS, 0, 0, {0}},
    {"steps back", COUNTED("%m"), {1, 1}, {32, 32}, {10, 100}, {3, -3}, WAITS, 0, 0, {0}},
#define CHOICE "setp.gt.s32 %p1, %n, 5; @%p1 bra END;\n"
    {"a branch that goes the same way",
     CHOICE STORE("%i"),
     {4, 4},
     {256, 256},
     {3, 5},
     {0},
     HOLDS,
     0,
     4095,
     {0}},
    {"a branch that goes the other way",
     CHOICE STORE("%i"),
     {4, 4},
     {256, 256},
     {3, 6},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a mask with the same number of bits",
     "and.b32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 8},
     {256, 256},
     {15, 15},
     {0},
     HOLDS,
     0,
     63,
     {0}},
    {"a mask with more bits",
     "and.b32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 4},
     {256, 256},
     {15, 31},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a shift by more",
     "shl.b32 %r3, %i, %n;\n" STORE("%r3"),
     {4, 4},
     {256, 256},
     {2, 3},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"disjoint bits",
     "shl.b32 %r3, %i, 4; or.b32 %r4, %r3, %n;\n" STORE("%r4"),
     {4, 4},
     {256, 256},
     {3, 15},
     {0},
     HOLDS,
     60,
     4 * (16 * 1023 + 15) + 3,
     {0}},
    {"bits that meet",
     "shl.b32 %r3, %i, 4; or.b32 %r4, %r3, %n;\n" STORE("%r4"),
     {4, 4},
     {256, 256},
     {3, 16},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a minimum of parameters",
     "min.s32 %r3, %n, %m;\n" STORE("%r3"),
     {1, 1},
     {32, 32},
     {3, 9},
     {5, 7},
     HOLDS,
     28,
     31,
     {0}},
    {"a maximum of parameters",
     "max.s32 %r3, %n, %m;\n" STORE("%r3"),
     {1, 1},
     {32, 32},
     {3, 9},
     {5, 7},
     HOLDS,
     36,
     39,
     {0}},
#define HALVED PAIR("setp.eq.s32 %p1, %r3, 0;", "shr.u32 %r3, %r3, 1;")
    {"pairs, up to the same distance",
     "min.u32 %r9, %n, 256; shr.u32 %r3, %r9, 1;\n" HALVED,
     {1, 1},
     {128, 128},
     {512, 4097},
     {0},
     HOLDS,
     4,
     1023,
     {0}},
    {"pairs, up to a smaller distance",
     "mov.u32 %r3, %n;\n" HALVED,
     {1, 1},
     {128, 128},
     {128, 96},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"pairs, up to a greater distance",
     "mov.u32 %r3, %n;\n" HALVED,
     {1, 1},
     {128, 128},
     {128, 129},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"pairs, up to a distance that is no power of 2",
     "mov.u32 %r3, %n;\n" HALVED,
     {1, 1},
     {128, 128},
     {96, 96},
     {0},
     HOLDS,
     4,
     1403,
     {0}},
    {"pairs at a third of the distance",
     "mov.u32 %r3, %n;\n" PAIR("setp.eq.s32 %p1, %r3, 0;", "div.u32 %r3, %r3, 3;"),
     {1, 1},
     {128, 128},
     {128, 128},
     {0},
     HOLDS,
     4,
     1531,
     {0}},
// A value of 16 bits that is set to 0 where it would be above MOST. Where it is negative, 100 is accessed,
// else an index below n. The first access is one that no thread makes, which only the strictest form knows.
#define TURNS(most)                                                                                     \
    "setp.ge.s32 %p4, %i, 9999; @%p4 st.global.u32 [%a], %r1; setp.ge.s32 %p5, %i, %n; @%p5 bra END;\n" \
    "mov.u16 %h2, 32000; mov.u32 %r12, 0;\nLOOP: cvt.s32.s16 %r10, %h2; setp.lt.s32 %p2, %r10, 0;\n"    \
    "selp.b32 %r11, 100, %i, %p2; ld.global.u32 %r9, [%a]; setp.eq.s32 %p6, %r9, 7;\n"                  \
    "mul.wide.s32 %d8, %r11, 4; add.s64 %d9, %a, %d8; @%p6 st.global.u32 [%d9], %r1;\n"                 \
    "add.s16 %h3, %h2, 16; setp.le.s16 %p1, %h3, " most "; selp.b16 %h2, %h3, 0, %p1;\n"                \
    "add.s32 %r12, %r12, 1; setp.lt.s32 %p3, %r12, 99; @%p3 bra LOOP;\n"
    {"stages", TURNS("32700"), {1, 1}, {256, 256}, {200, 50}, {0}, HOLDS, 0, 199, {0}},
    {"stages that wrap around before they are compared",
     TURNS("32760"),
     {1, 1},
     {256, 256},
     {200, 50},
     {0},
     HOLDS,
     0,
     403,
     {0}},
#define LOADED "ld.global.u32 %r3, [%a]; setp.ge.u32 %p1, %r3, %n; @%p1 bra END;\n"
#define PITCHED \
    LOADED "cvt.u64.u32 %d3, %r3; mul.lo.s64 %d5, %d3, %s; add.s64 %d6, %a, %d5; st.global.u8 [%d6], %h1;\n"
    {"a loaded index under a guard, times a pitch",
     PITCHED,
     {1, 1},
     {32, 32},
     {100, 50},
     {0},
     HOLDS,
     0,
     196,
     {8, 4}},
    {"a loaded index under a guard, times a negative pitch",
     PITCHED,
     {1, 1},
     {32, 32},
     {100, 50},
     {0},
     WAITS,
     0,
     0,
     {8, -4}},
    {"a loaded index under a limit above 2^31",
     LOADED STORE("%r3"),
     {1, 1},
     {32, 32},
     {100, -1},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a loaded index below a quarter",
     "ld.global.u32 %r3, [%a]; shl.b32 %r4, %n, 0; and.b32 %r5, %r3, 1023; "
     "mul.lo.s32 %r6, %r5, 3; setp.gt.s32 %p1, %r6, %n; @%p1 bra END;\n" STORE("%r5"),
     {1, 1},
     {32, 32},
     {100, 50},
     {0},
     HOLDS,
     0,
     67,
     {0}},
#define STRIDES                                                                                   \
    "cvt.u64.u32 %d3, %r0; mul.lo.s64 %d5, %d3, %s; cvt.u64.u32 %d6, %r2; cvt.s64.s32 %d7, %m;\n" \
    "mad.lo.s64 %d8, %d6, %d7, %d5; add.s64 %d9, %a, %d8; st.global.u8 [%d9], %h1;\n"
    {"two other strides", STRIDES, {4, 4}, {256, 256}, {0}, {1000, 3}, HOLDS, 0, 3 * 16 + 255 * 3, {8, 16}},
    {"two strides, one of them back", STRIDES, {4, 4}, {256, 256}, {0}, {1000, 1000}, WAITS, 0, 0, {8, -8}},
    {"two strides, the other back", STRIDES, {4, 4}, {256, 256}, {0}, {1000, 1000}, WAITS, 0, 0, {-8, 8}},
#define POINTER                                                                                    \
    "mov.u32 %r3, 0; mov.u64 %d10, %a;\nLOOP: st.global.u32 [%d10], %r1; add.s64 %d10, %d10, 12; " \
    "add.s32 %r3, %r3, 3; setp.lt.s32 %p1, %r3, %n; @%p1 bra LOOP;\n"
    {"a pointer in a loop", POINTER, {1, 1}, {32, 32}, {10, 100}, {0}, HOLDS, 0, 399, {0}},
    {"a pointer in a loop whose last increment wraps",
     POINTER,
     {1, 1},
     {32, 32},
     {10, 2147483647},
     {0},
     WAITS,
     0,
     0,
     {0}},
#define FROM_THREAD                                                                                     \
    "mov.u32 %r3, %r2;\nLOOP: " STORE("%r3") "add.s32 %r3, %r3, 3; setp.lt.s32 %p1, %r3, %n; @%p1 bra " \
                                             "LOOP;\n"
    {"rounds that start anywhere", FROM_THREAD, {1, 1}, {32, 32}, {100, 50}, {0}, HOLDS, 0, 199, {0}},
    {"rounds that start behind their limit", FROM_THREAD, {1, 1}, {32, 32}, {100, 10}, {0}, WAITS, 0, 0, {0}},
#define DOUBLED \
    "mov.u32 %r3, 1;\nLOOP: " STORE("%r3") "shl.b32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %n; @%p1 bra LOOP;\n"
    {"a doubled value", DOUBLED, {1, 1}, {32, 32}, {100, 50}, {0}, HOLDS, 4, 199, {0}},
    {"a doubled value that wraps", DOUBLED, {1, 1}, {32, 32}, {100, 2147483647}, {0}, WAITS, 0, 0, {0}},
#define DOUBLED_64                                                                                 \
    "mov.u64 %d3, %s;\nLOOP: add.s64 %d6, %a, %d3; st.global.u8 [%d6], %h1; shl.b64 %d3, %d3, 1; " \
    "setp.lt.s64 %p1, %d3, 100; @%p1 bra LOOP;\n"
    {"a doubled parameter", DOUBLED_64, {1, 1}, {32, 32}, {0}, {0}, HOLDS, 3, 99, {1, 3}},
    {"a doubled parameter that is negative", DOUBLED_64, {1, 1}, {32, 32}, {0}, {0}, WAITS, 0, 0, {1, -1}},
#define MULTIPLE                                                                                      \
    "ld.global.u32 %r3, [%a]; cvt.u64.u32 %d3, %r3; mul.lo.s64 %d4, %d3, %s; cvt.u64.u32 %d7, %r2;\n" \
    "add.s64 %d5, %d4, %d7; cvt.s64.s32 %d8, %n; setp.ge.s64 %p1, %d5, %d8; @%p1 bra END;\n"          \
    "add.s64 %d6, %a, %d5; st.global.u8 [%d6], %h1;\n"
    {"a multiple of 64 bits under a guard", MULTIPLE, {1, 1}, {32, 32}, {15, 30}, {0}, HOLDS, 0, 29, {8, 16}},
    {"a multiple that wraps in 64 bits",
     MULTIPLE,
     {1, 1},
     {32, 32},
     {15, 30},
     {0},
     WAITS,
     0,
     0,
     {8, 1LL << 40}},
#define BETWEEN                                                                                           \
    "ld.global.u32 %r3, [%a]; setp.ge.s32 %p1, %r3, %n; @%p1 bra END; setp.lt.s32 %p2, %r3, 0; @%p2 bra " \
    "END;\ncvt.s64.s32 %d3, %r3; mul.lo.s64 %d5, %d3, %s; mad.wide.u32 %d8, %r2, %m, %d5;\n"              \
    "add.s64 %d9, %a, %d8; st.global.u8 [%d9], %h1;\n"
    {"a loaded index between limits",
     BETWEEN,
     {1, 1},
     {256, 256},
     {100, 50},
     {1000, 3},
     HOLDS,
     0,
     49 * 16 + 255 * 3,
     {8, 16}},
    {"a loaded index between limits, times a negative pitch",
     BETWEEN,
     {1, 1},
     {256, 256},
     {100, 50},
     {1000, 1000},
     WAITS,
     0,
     0,
     {8, -8}},
    {"a third of a limit",
     "ld.global.u32 %r3, [%a]; and.b32 %r4, %r3, 1023; mad.lo.s32 %r5, %r4, 3, %r2; setp.ge.s32 %p1, %r5, "
     "%n; "
     "@%p1 bra END;\n" STORE("%r4"),
     {1, 1},
     {32, 32},
     {100, 50},
     {0},
     HOLDS,
     0,
     4 * 16 + 3,
     {0}},
#define LOW_BITS                                                                                    \
    "cvt.u64.u32 %d3, %r0; mul.lo.s64 %d4, %d3, %s; cvt.u64.u32 %d7, %r2; add.s64 %d8, %d4, %d7;\n" \
    "sub.s64 %d5, %d8, 5; cvt.u32.u64 %r3, %d5;\n"                                                  \
    "setp.ge.u32 %p1, %r3, %n; @%p1 bra END; add.s64 %d6, %a, %d5; st.global.u8 [%d6], %h1;\n"
    {"a guard on the low bits", LOW_BITS, {4, 4}, {32, 32}, {15, 30}, {0}, HOLDS, 0, 29, {8, 16}},
    {"a guard on the low bits of more",
     LOW_BITS,
     {4, 4},
     {32, 32},
     {15, 30},
     {0},
     WAITS,
     0,
     0,
     {8, 4294967301}},
    {"a product of 64 bits that wraps",
     "cvt.s64.s32 %d3, %n; mul.lo.s64 %d4, %d3, %d3; mul.lo.s64 %d5, %d4, %d3; mul.lo.s64 %d6, %d5, %d3; "
     "cvt.u64.u32 %d7, %i;\nsetp.ge.s64 %p1, %d7, %d6; @%p1 bra END;\n" STORE("%i"),
     {4, 4},
     {256, 256},
     {5, 100000},
     {0},
     WAITS,
     0,
     0,
     {0}},
    {"a sum that wraps",
     "add.s32 %r3, %n, %m;\n" STORE("%r3"),
     {1, 1},
     {32, 32},
     {3, 2147483647},
     {5, 7},
     WAITS,
     0,
     0,
     {0}},
};

static void all_pairs(void **state)
{
    unsigned failed = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const struct pair *x = &pairs[i];
        struct kernel k = make(x->body);
        struct row from = {
            .grid = x->grid[0], .block = x->block[0], .n = x->n[0], .m = x->m[0], .s = x->s[0]};
        struct row to = {.grid = x->grid[1], .block = x->block[1], .n = x->n[1], .m = x->m[1], .s = x->s[1]};
        struct proof_bound b = {0};
        bool made = learn(&k, &from), holds = made && ask(&k, &to, &b);
        bool same = b.verdict == PROOF_BOUNDED && b.lowest == x->lowest && b.highest == x->highest;
        if (!made || (x->then == HOLDS ? !holds || !same : holds)) {
            failed++;
            print_error("%s: %smade, %s, verdict %d, %lld .. %lld\n", x->name, made ? "" : "not ",
                        holds ? "holds" : "does not hold", b.verdict, (long long)b.lowest,
                        (long long)b.highest);
        }
        drop(&k);
    }
    assert_int_equal(failed, 0);
}

// An answer is only as exact as the threads of its own launch allow.
static void exactness(void **state)
{
    (void)state;
    struct kernel k = make(GUARD STORE("%i"));
    struct row row = {.grid = 4, .block = 256, .n = 1000};
    struct proof_bound b;
    assert_true(learn(&k, &row));
    row.n = 77;
    assert_true(ask(&k, &row, &b));
    assert_true(b.exact);
    assert_int_equal(b.highest, 307);
    drop(&k);
    // Two indices of which one jumps over what the other does not reach.
    k = make("mad.lo.s32 %r3, %r0, 64, %r2; setp.ge.s32 %p1, %r3, %n; @%p1 bra END;\n" STORE("%r3"));
    row = (struct row){.grid = 4, .block = 64, .n = 200};
    assert_true(learn(&k, &row));
    row.n = 230;
    assert_true(ask(&k, &row, &b) && b.exact);
    row.block = 32;  // 32 to 63 of each 64 are touched by nobody
    assert_false(ask(&k, &row, &b) && b.exact);
    drop(&k);
}

static void alignment(void **state)
{
    (void)state;
    struct kernel k = make("mul.wide.u32 %d3, %r2, %n; cvt.u64.u32 %d4, %m; add.s64 %d5, %d3, %d4;\n"
                           "add.s64 %d6, %a, %d5; st.global.u8 [%d6+8], %h1;\n");
    static const struct {
        int n, m;
        unsigned power, residue;
    } cases[] = {{16, 4, 4, 12}, {12, 0, 2, 0}, {12, 5, 2, 1}, {5, 0, 0, 0}, {64, 61, 5, 5}, {0, 3, 5, 11}};
    struct proof_bound b;
    assert_true(learn(&k, &(struct row){.grid = 1, .block = 32, .n = 24, .m = 1}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!ask(&k, &(struct row){.grid = 1, .block = 32, .n = cases[i].n, .m = cases[i].m}, &b))
            fail_msg("case %zu", i);
        assert_int_equal(b.power, cases[i].power);
        assert_int_equal(b.residue, cases[i].residue);
    }
    drop(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_rows),
        cmocka_unit_test(all_pairs),
        cmocka_unit_test(exactness),
        cmocka_unit_test(alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
