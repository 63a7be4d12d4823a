// SPDX-License-Identifier: MIT
// Matrix products: golden vectors define the results; these tests check that the fast path equals the slow
// one, and cases without vectors.
#include <errno.h>

#include "exec/mma.h"

#include "exec/exec_testing.h"
#include "exec/matrix.h"

static uint64_t seed = 1;

static uint32_t next(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33);
}

// --- sums --------------------------------------------------------------------------------------------------

static void quick_and_slow(enum ptx_type type, enum ptx_type of, unsigned k, const struct mma_lanes *lanes)
{
    static struct mma_finite f;
    static uint32_t a[MMA_ROWS * MMA_DEPTH], b[MMA_ROWS * MMA_DEPTH], c[MMA_ROWS * MMA_ROWS];
    uint32_t finite = type == PTX_F16 ? 0xbbff : type == PTX_BF16 ? 0xbf7f : 0xbf7fffff;
    f = (struct mma_finite){.m = 16, .n = 8, .k = k, .count = k, .fraction = 2 * mma_fraction(type)};
    for (unsigned i = 0; i < f.m * k; i++) {
        struct mma_number x = mma_unpack(type, a[i] = next() & finite),
                          y = mma_unpack(type, b[i] = next() & finite);
        f.a[i] = x.significand;
        f.a_exponent[i] = x.exponent;
        f.b[i] = y.significand;
        f.b_exponent[i] = y.exponent;
    }
    for (unsigned i = 0; i < f.m * f.n; i++) {
        struct mma_number x = mma_unpack(of, c[i] = next() & (of == PTX_F16 ? 0xbbff : 0xbf7fffff));
        f.c[i] = x.significand * (1 << (23 - mma_fraction(of)));
        f.c_exponent[i] = x.exponent;
    }
    lanes->finite(&f);
    for (unsigned i = 0; i < f.m; i++)
        for (unsigned j = 0; j < f.n; j++) {
            struct mma_number x[MMA_DEPTH], y[MMA_DEPTH];
            for (unsigned z = 0; z < k; z++) {
                x[z] = mma_unpack(type, a[i * k + z]);
                y[z] = mma_unpack(type, b[z * f.n + j]);
            }
            uint32_t slow = mma_sum(of, x, y, k, f.fraction, of, c[i * f.n + j]);
            assert_int_equal(mma_result(of, f.sum[i * f.n + j]), slow);
        }
}

static void test_quick(void **state)
{
    for (unsigned round = 0; round < 200; round++) {
        quick_and_slow(PTX_F16, PTX_F32, 16, &mma_lanes_plain);
        quick_and_slow(PTX_F16, PTX_F16, 8, &mma_lanes_plain);
        quick_and_slow(PTX_F16, PTX_F32, 32, &mma_lanes_plain);
        quick_and_slow(PTX_BF16, PTX_F32, 16, &mma_lanes_plain);
        quick_and_slow(PTX_TF32, PTX_F32, 8, &mma_lanes_plain);
    }
}

static void test_sum(void **state)
{
    struct mma_number one = mma_unpack(PTX_F16, 0x3c00), tiny = mma_unpack(PTX_F16, 0x0001);
    struct mma_number infinite = mma_unpack(PTX_F16, 0x7c00), zero = mma_unpack(PTX_F16, 0x8000);
    assert_int_equal(mma_sum(PTX_F32, &one, &one, 1, 20, PTX_F32, 0x3f800000), 0x40000000);
    // 2^-24 next to 1 is within the 25 bits of fraction; 2^-26 is not.
    struct mma_number a[2] = {one, tiny}, b[2] = {one, one}, quarter[2] = {one, mma_unpack(PTX_F16, 0x3400)};
    assert_int_equal(mma_sum(PTX_F32, a, b, 2, 20, PTX_F32, 0xbf800000), 0x33800000);
    assert_int_equal(mma_sum(PTX_F32, a, quarter, 2, 20, PTX_F32, 0xbf800000), 0);
    assert_int_equal(mma_sum(PTX_F32, &infinite, &zero, 1, 20, PTX_F32, 0), 0x7fffffff);
    assert_int_equal(mma_sum(PTX_F16, &infinite, &one, 1, 20, PTX_F16, 0xfc00), 0x7fff);
    assert_int_equal(mma_sum(PTX_F16, &infinite, &one, 1, 20, PTX_F16, 0xbc00), 0x7c00);
    assert_int_equal(mma_sum(PTX_F32, &zero, &one, 1, 20, PTX_F32, 0x80000000), 0);
    assert_int_equal(mma_result(PTX_F32, 0x1.fffffffp127), 0x7f7fffff);
    assert_int_equal(mma_result(PTX_F32, -0x1p128), 0xff800000);
    assert_int_equal(mma_result(PTX_F32, -0x1.8p-149), 0x80000001);
    assert_int_equal(mma_result(PTX_F16, 65520), 0x7c00);
}

// --- maps --------------------------------------------------------------------------------------------------

// Checks that every element is in the map, and once unless wmma repeats f16.
static void check_map(struct matrix_kind kind, unsigned nregs)
{
    struct matrix_map map;
    unsigned seen[MATRIX_MOST] = {0}, again = 0;
    assert_true(matrix_map_make(&kind, &map));
    assert_int_equal(map.nregs, nregs);
    for (unsigned r = 0; r < map.nregs; r++)
        for (unsigned l = 0; l < EXEC_LANES; l++)
            for (unsigned p = 0; p < map.parts; p++)
                seen[map.at[r][l][p]]++;
    again = seen[0];
    unsigned products = kind.shape.k == 4 && kind.type != PTX_F64 ? 4 : 1;
    for (unsigned e = 0; e < products * map.rows * map.columns; e++)
        assert_int_equal(seen[e], again);
    assert_int_equal(again * products * map.rows * map.columns, nregs * EXEC_LANES * map.parts);
}

static void test_maps(void **state)
{
    struct matrix_shape s16 = {16, 8, 16}, s32 = {16, 8, 32}, bits = {16, 8, 256}, eights = {8, 8, 4};
    check_map((struct matrix_kind){.shape = s16, .which = MATRIX_A, .type = PTX_F16}, 4);
    check_map((struct matrix_kind){.shape = s16, .which = MATRIX_B, .type = PTX_BF16}, 2);
    check_map((struct matrix_kind){.shape = s16, .which = MATRIX_C, .type = PTX_F32}, 4);
    check_map((struct matrix_kind){.shape = s16, .which = MATRIX_A, .type = PTX_F64}, 8);
    check_map((struct matrix_kind){.shape = s32, .which = MATRIX_A, .type = PTX_S8}, 4);
    check_map((struct matrix_kind){.shape = bits, .which = MATRIX_B, .type = PTX_B1}, 2);
    check_map((struct matrix_kind){.shape = eights, .which = MATRIX_A, .type = PTX_F16}, 2);
    check_map((struct matrix_kind){.shape = eights, .which = MATRIX_C, .type = PTX_F32}, 8);
    check_map((struct matrix_kind){.shape = eights, .which = MATRIX_A, .type = PTX_F64}, 1);
    struct matrix_shape square = {16, 16, 16}, wide = {8, 32, 16}, tall = {32, 8, 16};
    check_map((struct matrix_kind){.shape = square, .which = MATRIX_A, .type = PTX_F16, .warp_level = true},
              8);
    check_map((struct matrix_kind){.shape = wide, .which = MATRIX_A, .type = PTX_BF16, .warp_level = true},
              2);
    check_map((struct matrix_kind){.shape = wide, .which = MATRIX_B, .type = PTX_F16, .warp_level = true}, 8);
    check_map((struct matrix_kind){.shape = tall, .which = MATRIX_B, .type = PTX_F16, .warp_level = true}, 8);
    check_map((struct matrix_kind){.shape = tall, .which = MATRIX_C, .type = PTX_F16, .warp_level = true}, 4);
    struct matrix_map map;
    struct matrix_shape none = {16, 8, 3}, huge = {16, 8, 512};
    assert_false(
        matrix_map_make(&(struct matrix_kind){.shape = none, .which = MATRIX_A, .type = PTX_F16}, &map));
    assert_false(
        matrix_map_make(&(struct matrix_kind){.shape = huge, .which = MATRIX_A, .type = PTX_B1}, &map));
    assert_false(matrix_map_make(
        &(struct matrix_kind){.shape = huge, .which = MATRIX_A, .type = PTX_F16, .warp_level = true}, &map));
}

// --- refusals ----------------------------------------------------------------------------------------------

static void refuse(const char *instruction, const char *name)
{
    char *text, *report;
    assert_true(asprintf(&text,
                         EXEC_TESTING_HEAD ".visible .entry k()\n{\n.reg .b32 r<16>;\n.reg .f32 f<8>;\n"
                                           ".reg .f64 w<8>;\n.reg .b64 d<4>;\n.reg .pred p;\n%s\nret;\n}\n",
                         instruction) > 0);
    assert_true(asprintf(&report, "a:11:1: the CPU device does not execute %s", name) > 0);
    exec_testing_refuse((const char *const[]){text, NULL}, -ENOTSUP, report);
    free(text);
    free(report);
}

static void test_refusals(void **state)
{
    refuse(
        "mma.sync.aligned.m16n8k16.row.row.f16.f16.f16.f16 {r0, r1}, {r4, r5, r6, r7}, {r8, r9}, {r0, r1};",
        "mma.sync.aligned.m16n8k16.row.row.f16.f16.f16.f16");
    refuse("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {r0, r1}, {r4, r5}, {r8, r9}, {r0, r1};",
           "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16");
    refuse("wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {f0, f1, f2, f3}, d0, d1, r1, 0, p, 1, 1, "
           "0, 0;",
           "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16");
}

// A partial warp, and a warp whose lanes arrive in two parts.
static void test_some_lanes(void **state)
{
    struct exec_program *p = exec_testing_text(
        ".visible .entry k(.param .u64 out)\n{\n.reg .b32 r<8>;\n.reg .b64 d<4>;\n.reg .pred p;\n"
        "mov.u32 r0, %tid.x; mov.u32 r1, r0; setp.lt.u32 p, r0, 9; @p bra LOW; shl.b32 r1, r1, 16;\nLOW:\n"
        "movmatrix.sync.aligned.m8n8.trans.b16 r2, r1;\n"
        "ld.param.u64 d0, [out]; mad.wide.u32 d0, r0, 4, d0; st.global.u32 [d0], r2;\nret;\n}\n");
    uint64_t out = exec_testing_take(256, 16);
    struct exec_launch l = exec_testing_launch(p, "k", 1, 20, &out);
    assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
    // Element (0, 0) is lane 0's; (4, 1) is the upper half of lane 16.
    assert_int_equal(exec_testing_word(out) & 0xffff, 0);
    assert_int_equal(exec_testing_word(out + 4 * 6) & 0xffff, 16);
    exec_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),    cmocka_unit_test(test_sum),        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_some_lanes),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
