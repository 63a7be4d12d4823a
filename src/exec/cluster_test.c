// SPDX-License-Identifier: MIT
// Clusters, mbarriers and bulk copies: cases that golden vectors do not cover.
#include "exec/exec_testing.h"

static struct exec_fault run(const char *text, uint32_t blocks, uint32_t cluster, uint32_t threads,
                             uint64_t *out)
{
    struct exec_program *p = exec_testing_text(text);
    *out = exec_testing_take(4096, 256);
    struct exec_launch l = exec_testing_launch(p, "k", blocks, threads, out);
    l.cluster[0] = l.cluster[1] = l.cluster[2] = cluster ? 1 : 0;
    l.cluster[0] = cluster;
    struct exec_fault fault = exec_testing_run(&l, 100000);
    exec_program_free(p);
    return fault;
}

#define KERNEL(body)                                                                                   \
    ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<16>;\n.reg .b64 d<16>;\n.reg .pred p, q;\n"    \
    ".shared .align 16 .b8 sv[4096], tv[4096];\n.shared .align 8 .b64 bar;\nld.param.u64 d0, [out];\n" \
    "mov.u32 r0, %tid.x;\nmov.u32 r1, %ctaid.x;\n" body "\nret;\n}\n"
#define TOGETHER "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"

static void expect(uint64_t at, const uint32_t *values, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        assert_int_equal(exec_testing_word(at + 4 * k), values[k]);
}

// --- clusters ----------------------------------------------------------------------------------------------

static void test_numbers(void **state)
{
    uint64_t out;
    const char *text =
        KERNEL("mov.u32 r2, %clusterid.x; mov.u32 r3, %cluster_ctarank; mad.lo.u32 r2, r2, 16, r3;\n"
               "mov.u32 r3, %nclusterid.x; mad.lo.u32 r2, r3, 256, r2; mad.wide.u32 d1, r1, 4, d0;\n"
               "mov.u32 r3, %cluster_nctarank; mad.lo.u32 r2, r3, 4096, r2; st.global.u32 [d1], r2;");
    assert_int_equal(run(text, 6, 3, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){0x3200, 0x3201, 0x3202, 0x3210, 0x3211, 0x3212}, 6);
    assert_int_equal(run(text, 2, 0, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){0x1200, 0x1210}, 2);
}

// Each block reads its neighbour's memory; there are more clusters than may be in progress at once.
static void test_neighbours(void **state)
{
    uint64_t out;
    const char *text = KERNEL(
        "mul.lo.u32 r2, r1, 100; add.u32 r2, r2, r0; shl.b32 r3, r0, 2; mov.u32 r4, sv; add.u32 r3, r3, r4;\n"
        "st.shared.u32 [r3], r2;\n" TOGETHER
        "xor.b32 r5, r1, 1; and.b32 r5, r5, 1; mapa.shared::cluster.u32 r6, r3, r5;\n"
        "ld.shared::cluster.u32 r7, [r6];\n" TOGETHER
        "mad.lo.u32 r8, r1, 40, r0; mad.wide.u32 d1, r8, 4, d0; st.global.u32 [d1], r7;");
    assert_int_equal(run(text, 20, 2, 40, &out).kind, EXEC_NO_FAULT);
    for (uint32_t b = 0; b < 20; b++)
        for (uint32_t t = 0; t < 40; t++)
            assert_int_equal(exec_testing_word(out + 4 * (b * 40 + t)), (b ^ 1) * 100 + t);
}

// A variable in shared memory has another address in each block, as on a GPU: that of the block's rank.
static void test_own_addresses(void **state)
{
    uint64_t out;
    const char *text =
        KERNEL("mov.u32 r2, sv; mad.wide.u32 d1, r1, 32, d0; st.global.u32 [d1], r2; mov.u64 d2, tv;\n"
               "cvta.shared.u64 d2, d2; cvta.to.shared.u64 d2, d2; st.global.u32 [d1+4], d2;\n"
               "st.shared.u32 [sv+4], r1; ld.shared.u32 r3, [r2+4]; st.global.u32 [d1+8], r3;\n"
               "mapa.shared::cluster.u32 r4, r2, r1; st.global.u32 [d1+12], r4;\n"
               "atom.shared.add.u32 r5, [r2+4], 7; ld.shared.u32 r5, [sv+4]; st.global.u32 [d1+16], r5;");
    assert_int_equal(run(text, 2, 2, 1, &out).kind, EXEC_NO_FAULT);
    uint32_t sv = exec_testing_word(out), tv = exec_testing_word(out + 4);
    expect(out, (const uint32_t[]){sv, tv, 0, sv, 7}, 5);
    expect(out + 32, (const uint32_t[]){sv + (1 << 24), tv + (1 << 24), 1, sv + (1 << 24), 8}, 5);
    assert_true(sv >= 1024 && sv < 1 << 24);
}

// What spells .shared reaches the block's own memory alone.
static void test_others_by_shared(void **state)
{
    uint64_t out;
    struct exec_fault f =
        run(KERNEL("mov.u32 r2, sv; and.b32 r2, r2, 0xFFFFFF; st.shared.u32 [r2], r1;"), 2, 2, 32, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(f.block[0], 1);
    f = run(KERNEL("mov.u32 r2, sv; or.b32 r2, r2, 0x5000000; st.shared.u32 [r2], r1;"), 2, 2, 32, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
}

// The barrier does not wait for threads that have ended; the others pass it twice.
static void test_early_end(void **state)
{
    uint64_t out;
    assert_int_equal(
        run(KERNEL("setp.lt.u32 p, r0, 7; @p exit;\n" TOGETHER TOGETHER "atom.global.add.u32 r2, [d0], 1;"),
            2, 2, 40, &out)
            .kind,
        EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(out), 2 * 33);
}

static void test_waits_for_ever(void **state)
{
    uint64_t out;
    // One block waits at a barrier of its own where no other thread arrives.
    struct exec_fault f =
        run(KERNEL("setp.ne.u32 p, r1, 0; @p bra JOIN; bar.sync 3, 64;\nJOIN:\n" TOGETHER), 2, 2, 32, &out);
    assert_int_equal(f.kind, EXEC_LAUNCH_FAILED);
}

static void test_block_has_ended(void **state)
{
    uint64_t out;
    struct exec_fault f =
        run(KERNEL("setp.eq.u32 p, r1, 1; @p exit; mov.u32 r2, sv; mapa.shared::cluster.u32 r3, r2, 1;\n"
                   "mov.u32 r5, 0;\nLOOP: add.u32 r5, r5, 1; setp.lt.u32 p, r5, 5000; @p bra LOOP;\n"
                   "ld.shared::cluster.u32 r4, [r3];"),
            2, 2, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_string_equal(f.space, "shared");
    f = run(KERNEL("mov.u32 r2, sv; mapa.shared::cluster.u32 r3, r2, 2; st.shared::cluster.u32 [r3], r2;"), 2,
            2, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    f = run(
        KERNEL("mov.u32 r2, 0; mapa.shared::cluster.u32 r3, r2, 0; st.shared::cluster.u32 [r3+300000], r2;"),
        2, 2, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
}

// --- mbarrier ----------------------------------------------------------------------------------------------

// Two warps alternate, phase after phase.
static void test_phases(void **state)
{
    uint64_t out;
    const char *text = KERNEL(
        "setp.eq.u32 p, r0, 0; @p mbarrier.init.shared.b64 [bar], 64; bar.sync 0; mov.u32 r2, 0;\n"
        "LOOP: atom.shared.add.u32 r3, [sv], 1; and.b32 r4, r2, 1; mbarrier.arrive.shared.b64 _, [bar];\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 q, [bar], r4; @!q bra WAIT;\n"
        "ld.shared.u32 r5, [sv]; add.u32 r2, r2, 1; mul.lo.u32 r6, r2, 64; setp.lt.u32 q, r5, r6;\n"
        "@q trap; setp.lt.u32 q, r2, 9; @q bra LOOP; @p st.global.u32 [d0], r5;");
    assert_int_equal(run(text, 1, 0, 64, &out).kind, EXEC_NO_FAULT);
    assert_int_equal(exec_testing_word(out), 9 * 64);
}

static void test_bad_barriers(void **state)
{
    uint64_t out;
    assert_int_equal(run(KERNEL("mov.u32 r2, 0; mbarrier.init.shared.b64 [bar], r2;"), 1, 0, 1, &out).kind,
                     EXEC_ILLEGAL_INSTRUCTION);
    struct exec_fault f = run(KERNEL("mov.u32 r2, sv; mbarrier.init.shared.b64 [r2+4], 1;"), 1, 0, 1, &out);
    assert_int_equal(f.kind, EXEC_MISALIGNED_ADDRESS);
    assert_int_not_equal(f.line, 0);
    assert_int_equal(
        run(KERNEL("mov.u32 r2, 0x800000; mbarrier.arrive.shared.b64 _, [r2];"), 1, 0, 1, &out).kind,
        EXEC_ILLEGAL_ADDRESS);
}

// --- copies ------------------------------------------------------------------------------------------------

#define BULK                                                                                             \
    "mbarrier.init.shared.b64 [bar], 1; mov.u32 r2, sv; mov.u32 r3, tv; mov.u32 r4, 7; mov.u32 r5, 3;\n" \
    "st.shared.v4.u32 [r2], {r4, r4, r5, r5}; st.shared.v4.u32 [r3], {r5, r5, r5, r5};\n"
#define WAIT "WAIT: mbarrier.test_wait.parity.shared.b64 p, [bar], 0; @!p bra WAIT;\n"
#define SHOW "ld.shared.v4.u32 {r4, r5, r6, r7}, [r3]; st.global.v4.u32 [d0], {r4, r5, r6, r7};"

static void test_copies(void **state)
{
    uint64_t out;
    const char *into = KERNEL(
        BULK
        "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r3], [r2], 16, [bar];\n" WAIT
            SHOW);
    assert_int_equal(run(into, 1, 0, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){7, 7, 3, 3}, 4);
    const char *sum = KERNEL(BULK "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;\n"
                                  "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
                                  "bytes.add.u32 [r3], [r2], 16, "
                                  "[bar];\n" WAIT SHOW);
    assert_int_equal(run(sum, 1, 0, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){10, 10, 6, 6}, 4);
    const char *back = KERNEL(BULK "cp.async.bulk.global.shared::cta.bulk_group [d0], [r2], 16;\n"
                                   "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;");
    assert_int_equal(run(back, 1, 0, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){7, 7, 3, 3}, 4);
}

static void test_signals(void **state)
{
    uint64_t out;
    const char *text =
        KERNEL(BULK "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 12;\n"
                    "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [r3], {r4, r4}, [bar];\n"
                    "mbarrier.test_wait.parity.shared.b64 p, [bar], 0; @p trap;\n"
                    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r3+8], "
                    "r4, [bar];\n" WAIT SHOW);
    assert_int_equal(run(text, 1, 0, 1, &out).kind, EXEC_NO_FAULT);
    expect(out, (const uint32_t[]){7, 7, 10, 3}, 4);
}

static void test_bad_copies(void **state)
{
    uint64_t out;
    assert_int_equal(
        run(KERNEL(BULK "cp.async.bulk.global.shared::cta.bulk_group [d0], [r2], 20;"), 1, 0, 1, &out).kind,
        EXEC_ILLEGAL_INSTRUCTION);
    assert_int_equal(
        run(KERNEL(BULK "cp.async.bulk.global.shared::cta.bulk_group [d0+8], [r2], 16;"), 1, 0, 1, &out).kind,
        EXEC_MISALIGNED_ADDRESS);
    struct exec_fault f = run(
        KERNEL(BULK "cp.async.bulk.global.shared::cta.bulk_group [d0+0x4000000], [r2], 16;"), 1, 0, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_true(f.write);
    f = run(KERNEL(BULK "cp.async.bulk.global.shared::cta.bulk_group [d0], [r2], 16384;"), 1, 0, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_false(f.write);
    assert_int_not_equal(f.line, 0);
    f = run(KERNEL(BULK "cp.async.ca.shared.global [r2], [d0+0x4000000], 16;"), 1, 0, 1, &out);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_not_equal(f.line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),         cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_own_addresses),   cmocka_unit_test(test_others_by_shared),
        cmocka_unit_test(test_early_end),       cmocka_unit_test(test_waits_for_ever),
        cmocka_unit_test(test_block_has_ended), cmocka_unit_test(test_phases),
        cmocka_unit_test(test_bad_barriers),    cmocka_unit_test(test_copies),
        cmocka_unit_test(test_signals),         cmocka_unit_test(test_bad_copies),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
