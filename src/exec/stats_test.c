// SPDX-License-Identifier: MIT
// What --stats counts of accesses, one kernel after the other; test/cpu/stats.sh tests instructions and
// branches.
#include "exec/access.h"
#include "exec/exec_testing.h"

static struct exec_stats counted;

// Runs a block of `threads` threads.
static void run(const char *text, uint32_t threads)
{
    struct exec_program *p = exec_testing_text(text);
    uint64_t out = exec_testing_take(8192, 256);
    struct exec_launch l = exec_testing_launch(p, "k", 1, threads, &out);
    counted = (struct exec_stats){0};
    struct exec_grid *g = exec_grid_new(&l, &counted);
    struct exec_runner *r = exec_runner_new();
    assert_true(g && r);
    for (unsigned steps = 0; exec_grid_step(g, r) != EXEC_DONE; steps++)
        assert_true(steps < 100000);
    assert_int_equal(exec_grid_fault(g)->kind, EXEC_NO_FAULT);
    exec_grid_free(g);
    exec_runner_free(r);
    exec_program_free(p);
}

// The counts apart from the parameter's load; spaces that are not named have 0.
struct expected {
    uint64_t loads[ACCESS_CONST + 1], stores[ACCESS_CONST + 1], sectors;
};

static void expect(struct expected e)
{
    e.loads[ACCESS_PARAM]++;
    for (unsigned k = 0; k <= ACCESS_CONST; k++) {
        if (counted.loads[k] != e.loads[k] || counted.stores[k] != e.stores[k])
            print_error("in space %u\n", k);
        assert_int_equal(counted.loads[k], e.loads[k]);
        assert_int_equal(counted.stores[k], e.stores[k]);
    }
    assert_int_equal(counted.transactions, e.sectors);
}

#define BEGIN                                                                                      \
    ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n"                                              \
    ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<40>;\n.reg .b64 d<16>;\n.reg .f32 f<8>;\n" \
    ".reg .pred p, q;\n.shared .align 128 .b8 sv[4096];\n.shared .align 8 .b64 bar;\n"             \
    "ld.param.u64 d0, [out];\nmov.u32 r0, %tid.x;\nmov.u32 r1, sv;\nmov.u32 r2, bar;\n"
#define END "\nret;\n}\n"
#define KERNEL(body) BEGIN body END
#define FRAGMENT "{r10, r11, r12, r13, r14, r15, r16, r17}"

static void good_plain(void **state)
{
    run(KERNEL("mad.wide.u32 d1, r0, 4, d0;\nld.global.u32 r3, [d1];\nst.global.u32 [d1], r3;\n"
               "ld.u32 r3, [d1];\nst.shared.u32 [sv], r3;\nred.global.add.u32 [d0], 1;"),
        32);
    expect((struct expected){.loads = {[ACCESS_GLOBAL] = 1, [ACCESS_GENERIC] = 1},
                             .stores = {[ACCESS_GLOBAL] = 2, [ACCESS_SHARED] = 1},
                             .sectors = 3 * 4 + 1});
}

// Accesses count by the space that is spelled, wherever the bytes lie.
static void good_spaces(void **state)
{
    run(KERNEL("ld.const.u32 r3, [table+4];\nmov.b64 d1, out;\nld.param.u64 d2, [d1];\n"), 32);
    expect((struct expected){.loads = {[ACCESS_CONST] = 1, [ACCESS_PARAM] = 1}});
}

// An access that the device splits counts once.
static void good_parts(void **state)
{
    run(KERNEL("mad.wide.u32 d1, r0, 32, d0;\nld.global.v8.b32 {r3, r4, r5, r6, r7, r8, r9, r10}, [d1];\n"
               "st.global.v4.b64 [d1], {d2, d2, d2, d2};"),
        32);
    expect((struct expected){
        .loads = {[ACCESS_GLOBAL] = 1}, .stores = {[ACCESS_GLOBAL] = 1}, .sectors = 4 * 32});
    run(KERNEL("red.global.add.v4.f32 [d0], {f1, f2, f3, f4};"), 1);
    expect((struct expected){.stores = {[ACCESS_GLOBAL] = 1}, .sectors = 4});
}

static void good_matrices(void **state)
{
    // 16 rows of 32 bytes, then 16 rows of 64, 256 bytes apart.
    run(KERNEL("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " FRAGMENT ", [d0];\n"
               "mov.u32 r3, 64;\n"
               "wmma.load.c.sync.aligned.row.m16n16k16.f32 " FRAGMENT ", [d0], r3;\n"
               "wmma.store.d.sync.aligned.col.m16n16k16.shared.f32 [sv], " FRAGMENT ";\n"),
        32);
    expect((struct expected){.loads = {[ACCESS_GLOBAL] = 1, [ACCESS_GENERIC] = 1},
                             .stores = {[ACCESS_SHARED] = 1},
                             .sectors = 16 + 16 * 2});
    run(KERNEL("shl.b32 r3, r0, 4;\nadd.u32 r3, r3, r1;\n"
               "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r10, r11, r12, r13}, [r3];\n"
               "stmatrix.sync.aligned.m8n8.x2.shared.b16 [r3], {r10, r11};"),
        32);
    expect((struct expected){.loads = {[ACCESS_SHARED] = 1}, .stores = {[ACCESS_SHARED] = 1}});
}

// Lanes that arrive first try the instruction, but it is executed and counted once.
static void good_meeting(void **state)
{
    run(KERNEL("setp.lt.u32 p, r0, 7;\n@p bra early;\n"
               "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " FRAGMENT ", [d0];\nret;\nearly:\n"
               "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " FRAGMENT ", [d0];"),
        32);
    // The instruction occurs twice: each part waits for the other, and then executes its own.
    expect((struct expected){.loads = {[ACCESS_GLOBAL] = 2}, .sectors = 2 * 16});
    run(KERNEL("setp.lt.u32 p, r0, 7;\n@p bra join;\nadd.u32 r3, r3, 1;\njoin:\n"
               "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 " FRAGMENT ", [d0];"),
        32);
    expect((struct expected){.loads = {[ACCESS_GLOBAL] = 1}, .sectors = 16});
}

static void good_copies(void **state)
{
    run(KERNEL("mad.wide.u32 d1, r0, 16, d0;\nshl.b32 r3, r0, 4;\nadd.u32 r3, r3, r1;\n"
               "cp.async.cg.shared.global [r3], [d1], 16;\ncp.async.wait_all;"),
        32);
    expect((struct expected){.loads = {[ACCESS_GLOBAL] = 1}, .stores = {[ACCESS_SHARED] = 1}, .sectors = 16});
    run(KERNEL("cp.async.bulk.global.shared::cta.bulk_group [d0], [r1], 256;\n"
               "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"),
        1);
    expect((struct expected){.loads = {[ACCESS_SHARED] = 1}, .stores = {[ACCESS_GLOBAL] = 1}, .sectors = 8});
}

// A barrier is in memory: changing it is a store, testing it a load, and a copy that signals it stores once
// more.
static void good_barriers(void **state)
{
    run(KERNEL("mbarrier.init.shared.b64 [r2], 1;\n"
               "mbarrier.arrive.expect_tx.shared.b64 d1, [r2], 64;\n"
               "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 64, [r2];\n"
               "mbarrier.test_wait.shared.b64 p, [r2], d1;\n@!p trap;\nmbarrier.inval.shared.b64 [r2];"),
        1);
    expect((struct expected){
        .loads = {[ACCESS_SHARED] = 1, [ACCESS_GLOBAL] = 1}, .stores = {[ACCESS_SHARED] = 5}, .sectors = 2});
}

// Instructions that are not accesses use the same flag bits otherwise.
static void good_others(void **state)
{
    char text[8192] = "", *at = text;
    at += sprintf(at, "mov.u32 r3, 0;\nagain:\nadd.u32 r3, r3, 1;\nsetp.ge.u32 p, r3, 3;\n@p bra done;\n");
    for (unsigned k = 0; k < 100; k++)
        at += sprintf(at, "setp.lt.or.u32 q, r3, %u, p;\nadd.cc.u32 r4, r4, r3;\n", k);
    sprintf(at, "bra again;\ndone:\n");
    char *all;
    assert_true(asprintf(&all, "%s%s%s", BEGIN, text, END) > 0);
    run(all, 32);
    free(all);
    expect((struct expected){0});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_plain),    cmocka_unit_test(good_spaces),  cmocka_unit_test(good_parts),
        cmocka_unit_test(good_matrices), cmocka_unit_test(good_meeting), cmocka_unit_test(good_copies),
        cmocka_unit_test(good_barriers), cmocka_unit_test(good_others),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
