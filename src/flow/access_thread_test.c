// SPDX-License-Identifier: MIT
// The address of an access, and its guards, in one thread.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "flow/access_thread.h"
#include "flow/access_words.h"

enum { A = 0x10000, N = 100, M = -3 };  // the kernel's arguments

static struct {
    struct ptx_module *m;
    struct ranges *r;
    struct access_words words;
    struct access_thread thread;
    struct proof_launch launch;
    _Alignas(8) char params[16];
} t;

// Opens the last access of a kernel with parameters a, n and m, in thread 5 of block 2 with 32 threads.
static void open(const char *body)
{
    static char text[8192];
    struct diag_printer printer;
    const int64_t a = A;
    const int32_t n = N, m = M;
    snprintf(text, sizeof text,
             ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 tile[64];\n"
             ".visible .entry k(.param .u64 a, .param .u32 n, .param .u32 m)\n{\n"
             ".reg .pred %%p<9>; .reg .b32 %%r<20>; .reg .b64 %%a<20>;\n"
             "ld.param.u64 %%a0, [a];\nld.param.u32 %%r0, [n];\nld.param.u32 %%r1, [m];\n"
             "mov.u32 %%r2, %%tid.x;\nmov.u32 %%r3, %%ctaid.x;\nmov.u32 %%r4, %%ntid.x;\n%s\nret;\n}\n",
             body);
    diag_printer_init(&printer, 5);
    assert_int_equal(ptx_parse("test", str_from(text), &printer.sink, NULL, &t.m), 0);
    struct flow flow = {.m = t.m, .f = ptx_find(t.m, STR("k"))->func};
    assert_int_equal(ranges_build(&flow, &t.r), 0);
    flow_drop(&flow);
    memcpy(t.params, &a, 8);
    memcpy(t.params + 8, &n, 4);
    memcpy(t.params + 12, &m, 4);
    t.launch = (struct proof_launch){
        .grid = {8, 1, 1}, .block = {32, 1, 1}, .params_size = sizeof t.params, .params = t.params};
    t.thread = (struct access_thread){
        .p = &t.r->proof, .l = &t.launch, .block = {2, 0, 0}, .thread = {5, 0, 0}, .base = 0x500};
    assert_true(
        access_words_open(&t.words, &t.r->proof, t.r->proof.head->naccesses - 1, PROOF_NONE, NULL, 0));
}

static void close(void)
{
    ranges_free(t.r);
    ptx_free(t.m);
}

static bool explains(const char *body, uint64_t address)
{
    open(body);
    bool right = access_thread_explains(&t.thread, t.words.access, address);
    // Any other address is not explained, but those that another round of a loop has.
    if (t.thread.loop == PROOF_NONE)
        assert_int_equal(right && access_thread_explains(&t.thread, t.words.access, address + 4), false);
    close();
    return right;
}

#define LOAD(index) "mul.wide.s32 %a1, " index ", 4; add.s64 %a2, %a0, %a1; ld.global.u32 %r9, [%a2+8];"

static void good_addresses(void **state)
{
    assert_true(explains("ld.global.u32 %r9, [%a0+8];", A + 8));
    assert_true(explains("mad.lo.s32 %r5, %r3, %r4, %r2;" LOAD("%r5"), A + 4 * 69 + 8));
    assert_true(explains("sub.s32 %r5, %r1, %r2;" LOAD("%r5"), A - 4 * 8 + 8));
    assert_true(explains("div.s32 %r5, %r0, %r1;" LOAD("%r5"), A - 4 * 33 + 8));
    assert_true(explains("shr.u32 %r5, %r1, 28;" LOAD("%r5"), A + 4 * 15 + 8));
    assert_true(explains("min.s32 %r5, %r2, %r1;" LOAD("%r5"), A - 4 * 3 + 8));
    assert_true(explains("min.u32 %r5, %r2, %r1;" LOAD("%r5"), A + 4 * 5 + 8));
    assert_true(explains("setp.lt.s32 %p1, %r0, %r2; selp.b32 %r5, 7, 9, %p1;" LOAD("%r5"), A + 4 * 9 + 8));
    assert_true(explains("mul.lo.s32 %r5, %r0, 85899346;" LOAD("%r5"), A + 4 * 8 + 8));
    assert_true(
        explains("mov.u32 %r5, tile; shl.b32 %r6, %r2, 2; add.s32 %r7, %r6, %r5; st.shared.u32 [%r7], 1;",
                 0x500 + 20));
}

static void bad_addresses(void **state)
{
    assert_false(explains("mad.lo.s32 %r5, %r3, %r4, %r2;" LOAD("%r5"), A + 4 * 68 + 8));
    assert_false(explains("ld.global.u32 %r5, [%a0];" LOAD("%r5"), A + 8));
}

#define LOOP                                                            \
    "mov.u32 %r5, %r2; L: setp.ge.s32 %p1, %r5, %r0; @%p1 bra E;" LOAD( \
        "%r5") "add.s32 %r5, %r5, %r4; bra L; E:"

static void counters(void **state)
{
    open(LOOP);
    assert_true(access_thread_explains(&t.thread, t.words.access, A + 4 * (5 + 3 * 32) + 8));
    assert_int_equal(t.thread.counter, 3);
    assert_true(access_thread_explains(&t.thread, t.words.access, A + 4 * 5 + 8));
    assert_int_equal(t.thread.counter, 0);
    assert_false(access_thread_explains(&t.thread, t.words.access, A + 4 * (5 + 3 * 32) + 12));
    assert_false(access_thread_explains(&t.thread, t.words.access, A + 4 * (5 - 32) + 8));
    close();
}

static void conditions(void **state)
{
    struct access_words_condition list[ACCESS_WORDS_CONDITIONS];
    bool holds;
    open("setp.ge.s32 %p1, %r2, %r0; @%p1 bra E; setp.lt.s32 %p2, %r1, %r2; @%p2 ld.global.u32 %r9, [%a0]; "
         "E:");
    assert_int_equal(access_words_conditions(&t.words, list), 2);
    assert_true(access_thread_holds(&t.thread, list[0].predicate, &holds));
    assert_int_equal(holds, list[0].negated ? false : true);
    assert_true(access_thread_holds(&t.thread, list[1].predicate, &holds));
    assert_int_equal(holds, list[1].negated ? false : true);
    t.thread.thread[0] = 200;
    assert_true(access_thread_holds(&t.thread, list[0].predicate, &holds));
    assert_int_equal(holds, list[0].negated ? true : false);
    close();
    // What memory decides is not known.
    open("ld.global.u32 %r5, [%a0]; setp.eq.s32 %p1, %r5, 0; @%p1 ld.global.u32 %r9, [%a0];");
    assert_int_equal(access_words_conditions(&t.words, list), 1);
    assert_false(access_thread_holds(&t.thread, list[0].predicate, &holds));
    close();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(counters),
        cmocka_unit_test(conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
