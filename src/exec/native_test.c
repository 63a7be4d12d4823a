// SPDX-License-Identifier: MIT
// Functions in C in place of PTX: only for the very text that was offered, lane by lane, and with the calls
// of declined lanes executed as PTX. The functions here compute something else than their PTX, so that a test
// sees which of the two ran.
#include "base/native_rows.h"
#include "exec/exec_testing.h"

#define HELPER                                                                                  \
    ".func (.param .b32 r) native_helper(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; " \
    "add.u32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n"
#define SIGNED_HELPER                                                                           \
    ".func (.param .b32 r) native_helper(.param .b32 a) { .reg .b32 %x; ld.param.u32 %x, [a]; " \
    "add.s32 %x, %x, 1; st.param.b32 [r], %x; ret; }\n"
#define TWICE                                                                                 \
    ".weak .func (.param .b64 r) native_twice(.param .b32 a, .param .b64 b)\n{\n"             \
    "\t.reg .b32 %x<3>; .reg .b64 %y<3>; .param .b32 to; .param .b32 from;\n"                 \
    "\tld.param.u32 %x1, [a]; ld.param.u64 %y1, [b];\n"                                       \
    "\tst.param.b32 [to], %x1; call (from), native_helper, (to); ld.param.b32 %x2, [from];\n" \
    "\tcvt.u64.u32 %y2, %x2; add.u64 %y2, %y2, %y1; st.param.b64 [r], %y2; ret;\n}\n"
static const char offered[] = HELPER TWICE;
#define VARIABLE ".global .align 8 .u64 native_variable = 1000;\n"
// Stores twice(tid, 2^40) to to[tid], if it is not filtered out.
#define KERNEL                                                                                        \
    ".visible .entry k(.param .u64 to) { .reg .b64 %d<5>; .reg .b32 %r<4>; .reg .pred %p;\n"          \
    "ld.param.u64 %d1, [to]; mov.u32 %r1, %tid.x; mul.wide.u32 %d2, %r1, 8; add.u64 %d1, %d1, %d2;\n" \
    "setp.eq.u32 %p, %r1, 5; @%p exit; mov.u64 %d3, 0x10000000000;\n"                                 \
    "{ .param .b32 a; .param .b64 b; .param .b64 r; st.param.b32 [a], %r1; st.param.b64 [b], %d3;\n"  \
    "call (r), native_twice, (a, b); ld.param.b64 %d4, [r]; }\n"                                      \
    "st.global.u64 [%d1], %d4; ret; }\n"

#define BIG ((uint64_t)1 << 40)
static uint32_t accepts = UINT32_MAX;  // lanes that are not declined
static unsigned calls;
static uint32_t last_mask;
static struct native_space native_space;

// Returns b - a + the variable.
static uint32_t instead(struct native_call *c)
{
    uint64_t variable;
    memcpy(&variable, space_host(c->variables[0]), sizeof variable);
    calls++;
    last_mask = c->mask;
    for (unsigned l = 0; l < NATIVE_LANES; l++) {
        if (!(c->mask >> l & 1))
            continue;
        assert_int_equal(c->argument[0][l], c->thread[0][l]);
        c->result[l] = c->argument[1][l] - c->argument[0][l] + variable;
    }
    assert_int_equal(c->threads[0], 64);
    assert_int_equal(c->blocks[0], 1);
    assert_int_equal(c->block[0], 0);
    return c->mask & accepts;
}

static const struct native_row rows[] = {{"native_twice", offered, {"native_variable"}, instead}};

static int offer(void **state)
{
    int err = exec_testing_setup(state);
    // The second one does nothing.
    for (unsigned k = 0; k < 2 && !err; k++)
        err = exec_native_add(rows, 1, &native_space);
    return err;
}

// Runs the kernel of a program with these texts. Returns the lanes of both warps whose result is C's; those
// of the others must be the PTX's.
static uint64_t run(const char *const *texts)
{
    struct exec_program *p = exec_testing_texts(texts);
    uint64_t to = exec_testing_take(64 * 8, 16), native = 0;
    struct exec_launch l = exec_testing_launch(p, "k", 1, 64, &to);
    calls = 0;
    assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
    for (unsigned k = 0; k < 64; k++) {
        uint64_t value;
        memcpy(&value, space_host(to + 8 * k), sizeof value);
        if (k == 5)
            assert_int_equal(value, 0);
        else if (value == BIG - k + 1000)
            native |= (uint64_t)1 << k;
        else
            assert_int_equal(value, BIG + k + 1);
    }
    exec_program_free(p);
    return native;
}

static uint64_t run_text(const char *functions)
{
    char *text;
    assert_true(asprintf(&text, "%s%s%s", EXEC_TESTING_HEAD, functions, KERNEL) > 0);
    uint64_t native = run((const char *const[]){text, NULL});
    free(text);
    return native;
}

#define ALL (~((uint64_t)1 << 5))

static void good_text(void **state)
{
    assert_int_equal(run_text(VARIABLE HELPER TWICE), ALL);
    assert_int_equal(calls, 2);
    // As a printer might write it.
    static const char spaced[] =
        ".func (.param .b32 r)\n native_helper(\n.param .b32 a\n)\n{\n.reg .b32 %x;\n\tld.param.u32 %x,[a];\n"
        "\tadd.u32 %x,%x,1;\n\tst.param.b32 [r],%x;\n\tret;\n}\n";
    char *text;
    assert_true(asprintf(&text, "%s%s%s", spaced, VARIABLE, TWICE) > 0);
    assert_int_equal(run_text(text), ALL);
    free(text);
}

// Other texts under the same names, or not all of what was offered.
static void bad_text(void **state)
{
    static const char one_more[] = ".func (.param .b32 r) native_helper(.param .b32 a) { .reg .b32 %x; "
                                   "ld.param.u32 %x, [a]; add.u32 %x, %x, 1; add.u32 %x, %x, 0; "
                                   "st.param.b32 [r], %x; ret; }\n";
    char *text;
    assert_true(asprintf(&text, "%s%s%s", VARIABLE, one_more, TWICE) > 0);
    assert_int_equal(run_text(text), 0);
    free(text);
    // Another word, of the same length.
    assert_int_equal(run_text(VARIABLE SIGNED_HELPER TWICE), 0);
    assert_int_equal(run_text(HELPER TWICE), 0);  // no variable
    assert_int_equal(run_text(HELPER ".shared .align 8 .u64 native_variable;\n" TWICE), 0);
    assert_int_equal(calls, 0);
}

// The function, or what it calls, may be another text's.
static void linked(void **state)
{
    static const char here[] = EXEC_TESTING_HEAD VARIABLE HELPER TWICE KERNEL;
    static const char there[] = EXEC_TESTING_HEAD
        ".visible .func (.param .b64 r) native_twice(.param .b32 a, .param .b64 b) { .reg .b64 "
        "%y; .reg .b32 %x; ld.param.u32 %x, [a]; ld.param.u64 %y, [b]; add.u32 %x, %x, 1; "
        "{ .reg .b64 %z; cvt.u64.u32 %z, %x; add.u64 %y, %y, %z; } st.param.b64 [r], %y; ret; }\n";
    static const char same[] = EXEC_TESTING_HEAD HELPER TWICE;
    assert_int_equal(run((const char *const[]){here, there, NULL}), 0);
    assert_int_equal(run((const char *const[]){here, same, NULL}), ALL);
    // The first one counts, and has no variable.
    assert_int_equal(run((const char *const[]){same, here, NULL}), 0);
}

static void declined(void **state)
{
    accepts = 0x55555555;
    assert_int_equal(run_text(VARIABLE HELPER TWICE), 0x5555555555555555 & ALL);
    // The declined lanes came again together, before they ran as PTX.
    assert_int_equal(calls, 4);
    assert_int_equal(last_mask & 0x55555555, 0);
    accepts = 0;
    assert_int_equal(run_text(VARIABLE HELPER TWICE), 0);
    assert_int_equal(calls, 2);
    accepts = UINT32_MAX;
}

// Counters count instructions, so nothing may replace them.
static void counted(void **state)
{
    struct exec_program *p = exec_testing_text(VARIABLE HELPER TWICE KERNEL);
    uint64_t to = exec_testing_take(64 * 8, 16);
    struct exec_launch l = exec_testing_launch(p, "k", 1, 64, &to);
    struct exec_stats stats = {0};
    struct exec_grid *g = exec_grid_new(&l, &stats);
    struct exec_runner *r = exec_runner_new();
    calls = 0;
    while (exec_grid_step(g, r) != EXEC_DONE)
        continue;
    assert_int_equal(calls, 0);
    exec_grid_free(g);
    exec_runner_free(r);
    exec_program_free(p);
}

static void says_space(void **state)
{
    assert_ptr_equal(native_space.coarse, space.coarse);
    assert_ptr_equal(native_space.fine, space.fine);
    assert_true(native_space.device_base == space.device_base && native_space.alias == space.alias);
    assert_true(native_space.window == space.shared_window && native_space.window_size == 2 * SPACE_WINDOW);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_text), cmocka_unit_test(bad_text), cmocka_unit_test(linked),
        cmocka_unit_test(declined),  cmocka_unit_test(counted),  cmocka_unit_test(says_space),
    };
    return cmocka_run_group_tests(tests, offer, NULL);
}
