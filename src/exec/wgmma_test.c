// SPDX-License-Identifier: MIT
// wgmma with small integers, whose sums are exact: layouts of shared memory, written out as images, against a
// plain product.
#include "exec/exec_testing.h"
#include "exec/mma.h"
#include "exec/scalar_half.h"

enum { M = 64, N = 16, THREADS = 128, AREA = 8192, IMAGE = 2 * AREA, MOST_K = 32 };

// Copies the image to shared memory, computes the product that the descriptors address, and stores the
// registers.
#define KERNEL(regs, product, store)                                                                         \
    ".visible .entry k(.param .u64 image, .param .u64 out, .param .u64 da, .param .u64 db, .param .u32 "     \
    "add)\n{\n"                                                                                              \
    ".reg .b64 g, o, s, t, a, b; .reg .b32 i, v, r<12>; .reg .f32 f<12>; .reg .pred p, q;\n"                 \
    ".shared .align 1024 .b8 tile[16384];\nld.param.u64 g, [image]; ld.param.u64 o, [out]; ld.param.u64 a, " \
    "[da];\n"                                                                                                \
    "ld.param.u64 b, [db]; mov.u32 i, %tid.x; shl.b32 i, i, 2; mov.u64 s, tile;\n"                           \
    "L: cvt.u64.u32 t, i; add.u64 t, g, t; ld.global.b32 v, [t]; cvt.u64.u32 t, i; add.u64 t, s, t;\n"       \
    "st.shared.b32 [t], v; add.u32 i, i, 512; setp.lt.u32 p, i, 16384; @p bra L;\nbar.sync 0;\n"             \
    "shr.u64 s, s, 4; or.b64 a, a, s; add.u64 s, s, 512; or.b64 b, b, s; ld.param.u32 v, [add];\n"           \
    "setp.ne.u32 q, v, 0; mov.u32 i, %tid.x; mad.wide.u32 o, i, 64, o;\n" regs                               \
    "wgmma.fence.sync.aligned;\n" product                                                                    \
    "\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;\n" store "ret;\n}\n"
#define TENS                                                                                               \
    "mov.f32 f0, 0f41200000; mov.f32 f1, f0; mov.f32 f2, f0; mov.f32 f3, f0; mov.f32 f4, f0; mov.f32 f5, " \
    "f0;\n"                                                                                                \
    "mov.f32 f6, f0; mov.f32 f7, f0;\n"
#define FLOATS "{f0, f1, f2, f3, f4, f5, f6, f7}"
#define STORE_FLOATS "st.global.v4.f32 [o], {f0, f1, f2, f3}; st.global.v4.f32 [o+16], {f4, f5, f6, f7};\n"
#define WORDS "{r0, r1, r2, r3, r4, r5, r6, r7}"
#define STORE_WORDS "st.global.v4.b32 [o], {r0, r1, r2, r3}; st.global.v4.b32 [o+16], {r4, r5, r6, r7};\n"

static uint64_t image, out;
static int a[M][MOST_K], b[N][MOST_K];

static void numbers(void)
{
    for (int k = 0; k < MOST_K; k++) {
        for (int r = 0; r < M; r++)
            a[r][k] = (r * 5 + k * 3) % 11 - 5;
        for (int r = 0; r < N; r++)
            b[r][k] = (r * 7 + k * 2) % 9 - 4;
    }
}

// Returns a small integer as f16.
static uint16_t half(int v)
{
    static const uint16_t of[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600};
    return (uint16_t)(v < 0 ? of[-v] | 0x8000 : of[v]);
}

// Returns 16 bytes of a matrix along k (or along rows): piece p of line l.
typedef const void *piece_fn(bool of_b, bool by_row, unsigned line, unsigned piece);

static const void *half_piece(bool of_b, bool by_row, unsigned line, unsigned piece)
{
    static uint16_t bytes[8];
    for (unsigned k = 0; k < 8; k++) {
        unsigned row = by_row ? piece * 8 + k : line, depth = by_row ? line : piece * 8 + k;
        bytes[k] = half(of_b ? b[row][depth] : a[row][depth]);
    }
    return bytes;
}

static const void *byte_piece(bool of_b, bool by_row, unsigned line, unsigned piece)
{
    static int8_t bytes[16];
    for (unsigned k = 0; k < 16; k++)
        bytes[k] = (int8_t)(of_b ? b[line][piece * 16 + k] : a[line][piece * 16 + k]);
    return bytes;
}

static void put(uint64_t at, const void *bytes)
{
    memcpy(space_host(at), bytes, 16);
}

// Writes two pieces of each row, along k. span: 16, 32, 64 or 128 bytes; rows of a span lie one after the
// other, eight of them form a block, and a piece is at the xor of its number and the row's, both within the
// pattern.
static uint64_t by_k(uint64_t to, bool of_b, unsigned rows, unsigned span, piece_fn *piece)
{
    enum { BEHIND = 2048 };
    for (unsigned r = 0; r < rows; r++)
        for (unsigned p = 0; p < 2; p++) {
            uint64_t block = to + r / 8 * 8 * span;
            unsigned place = span == 16 ? 0 : p ^ (r % 8 * span / 128 % (span / 16));
            put(span == 16 ? to + p * BEHIND + r * 16 : block + r % 8 * span + place * 16,
                piece(of_b, false, r, p));
        }
    uint64_t swizzle = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return swizzle << 62 | (uint64_t)(8 * span / 16) << 32 | (uint64_t)(BEHIND / 16) << 16;
}

// Writes 16 lines of k, along rows: spans of 128 bytes, 64 rows; eight lines form a block.
static uint64_t by_rows(uint64_t to, bool of_b, unsigned rows)
{
    for (unsigned k = 0; k < 16; k++)
        for (unsigned p = 0; p < rows / 8; p++)
            put(to + k * 128 + (p ^ k % 8) * 16, half_piece(of_b, true, k, p));
    return UINT64_C(1) << 62 | (uint64_t)(1024 / 16) << 32;
}

static int product(unsigned r, unsigned c, unsigned depth)
{
    int sum = 0;
    for (unsigned k = 0; k < depth; k++)
        sum += a[r][k] * b[c][k];
    return sum;
}

static struct exec_fault run(struct exec_program *p, uint64_t da, uint64_t db, uint32_t add)
{
    uint64_t params[5] = {image, out, da, db, add};
    struct exec_launch l = exec_testing_launch(p, "k", 1, THREADS, params);
    return exec_testing_run(&l, 10000);
}

static void begin(const char *text, struct exec_program **p)
{
    numbers();
    *p = exec_testing_text(text);
    image = exec_testing_take(IMAGE, 1024);
    out = exec_testing_take(THREADS * 64, 256);
}

static void go(struct exec_program *p, uint64_t da, uint64_t db, uint32_t add)
{
    assert_int_equal(run(p, da, db, add).kind, EXEC_NO_FAULT);
}

// Checks the element that register r of each thread holds.
static void expect(unsigned depth, int factor, int more, bool floats)
{
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned r = 0; r < 8; r++) {
            unsigned row = t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8, column = r / 4 * 8 + t % 4 * 2 + r % 2;
            uint32_t word = exec_testing_word(out + t * 64 + r * 4);
            float f;
            memcpy(&f, &word, sizeof f);
            int want = factor * product(row, column, depth) + more;
            assert_int_equal(floats ? (int)f : (int)word, want);
        }
}

#define F16 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " FLOATS ", a, b, q, "

static void good_layouts(void **state)
{
    struct exec_program *p;
    begin(KERNEL(TENS, F16 "1, 1, 0, 0;", STORE_FLOATS), &p);
    for (unsigned span = 16; span <= 128; span *= 2)
        for (uint32_t add = 0; add < 2; add++) {
            uint64_t da = by_k(image, false, M, span, half_piece),
                     db = by_k(image + AREA, true, N, span, half_piece);
            go(p, da, db, add);
            expect(16, 1, add ? 10 : 0, true);
        }
    exec_program_free(p);
}

static void good_by_rows(void **state)
{
    struct exec_program *p;
    begin(KERNEL(TENS, F16 "-1, 1, 1, 1;", STORE_FLOATS), &p);
    go(p, by_rows(image, false, M), by_rows(image + AREA, true, N), 1);
    expect(16, -1, 10, true);
    exec_program_free(p);
}

static void good_bytes(void **state)
{
    struct exec_program *p;
    begin(KERNEL("", "wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 " WORDS ", a, b, 0;", STORE_WORDS),
          &p);
    go(p, by_k(image, false, M, 64, byte_piece), by_k(image + AREA, true, N, 32, byte_piece), 0);
    expect(32, 1, 0, false);
    exec_program_free(p);
}

// Return a small integer as e4m3 and as e5m2.
static uint8_t e4m3(int v)
{
    static const uint8_t of[] = {0, 0x38, 0x40, 0x44, 0x48, 0x4a, 0x4c};
    return (uint8_t)(v < 0 ? of[-v] | 0x80 : of[v]);
}

static uint8_t e5m2(int v)
{
    static const uint8_t of[] = {0, 0x3c, 0x40, 0x42, 0x44};
    return (uint8_t)(v < 0 ? of[-v] | 0x80 : of[v]);
}

static const void *float_piece(bool of_b, bool by_row, unsigned line, unsigned piece)
{
    static uint8_t bytes[16];
    for (unsigned k = 0; k < 16; k++)
        bytes[k] = of_b ? e5m2(b[line][piece * 16 + k]) : e4m3(a[line][piece * 16 + k]);
    return bytes;
}

static void good_byte_floats(void **state)
{
    struct exec_program *p;
    begin(KERNEL(TENS, "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2 " FLOATS ", a, b, q, -1, 1;",
                 STORE_FLOATS),
          &p);
    for (uint32_t add = 0; add < 2; add++) {
        go(p, by_k(image, false, M, 128, float_piece), by_k(image + AREA, true, N, 32, float_piece), add);
        expect(32, -1, add ? 10 : 0, true);
    }
    exec_program_free(p);
}

// f16 results: two columns per register.
static void good_byte_halves(void **state)
{
    struct exec_program *p;
    begin(KERNEL("", "wgmma.mma_async.sync.aligned.m64n16k32.f16.e4m3.e5m2 {r0, r1, r2, r3}, a, b, 0, 1, 1;",
                 "st.global.v4.b32 [o], {r0, r1, r2, r3};\n"),
          &p);
    go(p, by_k(image, false, M, 128, float_piece), by_k(image + AREA, true, N, 32, float_piece), 0);
    for (unsigned t = 0; t < THREADS; t++)
        for (unsigned e = 0; e < 8; e++) {
            unsigned row = t / 32 * 16 + t % 32 / 4 + e / 2 % 2 * 8, column = e / 4 * 8 + t % 4 * 2 + e % 2;
            uint16_t word = (uint16_t)(exec_testing_word(out + t * 64 + e / 2 * 4) >> e % 2 * 16);
            assert_int_equal((int)half_to_f32(word), product(row, column, 32));
        }
    exec_program_free(p);
}

// Sums keep 13 bits of fraction relative to the largest: 1/2^13 counts next to 1, 1/2^15 does not; nor does
// an f32 result keep more.
static void byte_sums(void **state)
{
    enum { ONE = 0x38, MINUS_ONE = 0xb8 };                                  // e4m3
    static const uint8_t small[] = {0x04, 0x08}, smaller[] = {0x01, 0x08};  // 2^-7 * 2^-6, 2^-9 * 2^-6
    uint8_t x[3] = {ONE, small[0], MINUS_ONE}, y[3] = {ONE, small[1], ONE};
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E4M3, PTX_E4M3, x, y, 3, 0), 0x39000000);
    x[1] = smaller[0];
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E4M3, PTX_E4M3, x, y, 3, 0), 0);
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E4M3, PTX_E4M3, x + 1, y + 1, 1, 0), 0x38000000);
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E4M3, PTX_E4M3, x, y, 0, 0x3f8007ff), 0x3f800400);
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E4M3, PTX_E5M2, (uint8_t[]){0x7f}, y, 1, 0), 0x7fffffff);
    assert_int_equal(mma_byte_sum(PTX_F32, PTX_E5M2, PTX_E4M3, (uint8_t[]){0xfc}, y, 1, 0), 0xff800000);
    assert_int_equal(mma_byte_sum(PTX_F16, PTX_E4M3, PTX_E4M3, x, y, 1, 0x3c00), 0x4000);
}

// Bits: counts those set in both.
static void good_bits(void **state)
{
    struct exec_program *p;
    begin(KERNEL("mov.b32 r0, 5; mov.b32 r1, 5; mov.b32 r2, 5; mov.b32 r3, 5; mov.b32 r4, 5; mov.b32 r5, 5;\n"
                 "mov.b32 r6, 5; mov.b32 r7, 5;\n",
                 "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc " WORDS ", a, b, q;",
                 STORE_WORDS),
          &p);
    for (uint32_t add = 0; add < 2; add++) {
        go(p, by_k(image, false, M, 64, byte_piece), by_k(image + AREA, true, N, 32, byte_piece), add);
        for (unsigned t = 0; t < THREADS; t++)
            for (unsigned r = 0; r < 8; r++) {
                unsigned row = t / 32 * 16 + t % 32 / 4 + r / 2 % 2 * 8;
                unsigned column = r / 4 * 8 + t % 4 * 2 + r % 2;
                int want = add ? 5 : 0;
                for (unsigned k = 0; k < 32; k++)
                    want += __builtin_popcount((uint8_t)a[row][k] & (uint8_t)b[column][k]);
                assert_int_equal(exec_testing_word(out + t * 64 + r * 4), want);
            }
    }
    exec_program_free(p);
}

// A from registers: all elements are 1, so that each row of D has the sums of B's columns.
static void good_registers(void **state)
{
    struct exec_program *p;
    begin(KERNEL("mov.b32 r0, 0x3c003c00; mov.b32 r1, r0; mov.b32 r2, r0; mov.b32 r3, r0;\n",
                 "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " FLOATS
                 ", {r0, r1, r2, r3}, b, 0, 1, 1, 0;",
                 STORE_FLOATS),
          &p);
    go(p, 0, by_k(image + AREA, true, N, 128, half_piece), 0);
    for (unsigned r = 0; r < M; r++)
        for (unsigned k = 0; k < MOST_K; k++)
            a[r][k] = 1;
    expect(16, 1, 0, true);
    exec_program_free(p);
}

static void bad_descriptors(void **state)
{
    struct exec_program *p;
    begin(KERNEL(TENS, F16 "1, 1, 0, 0;", STORE_FLOATS), &p);
    uint64_t good = by_k(image, false, M, 128, half_piece);
    assert_int_equal(run(p, good | UINT64_C(1) << 49, good, 0).kind, EXEC_ILLEGAL_INSTRUCTION);
    // A stride beyond shared memory.
    struct exec_fault f = run(p, good, good | UINT64_C(0x3fff) << 32, 0);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_string_equal(f.space, "shared");
    assert_true(str_starts(f.instruction, STR("wgmma.mma_async")));
    exec_program_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_layouts),     cmocka_unit_test(good_by_rows),
        cmocka_unit_test(good_bytes),       cmocka_unit_test(good_registers),
        cmocka_unit_test(bad_descriptors),  cmocka_unit_test(good_byte_floats),
        cmocka_unit_test(good_byte_halves), cmocka_unit_test(byte_sums),
        cmocka_unit_test(good_bits),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
