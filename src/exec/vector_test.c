// SPDX-License-Identifier: MIT
// Vector registers, and functions whose parameters and results are registers.
#include "exec/exec_testing.h"

enum { THREADS = 40, WORDS = 32 };  // a full warp and a partial one

static uint64_t out;

// Runs a kernel k(out, in). Thread t reads t * 16 + k in word k of its row of `in`, and must store the words
// that `expect` gives in its row of `out`.
typedef void expect_fn(uint32_t t, uint32_t *words);

static uint64_t numbers(void)
{
    uint64_t in = exec_testing_take(THREADS * 64, 256);
    for (uint32_t k = 0; k < THREADS * 16; k++)
        ((uint32_t *)space_host(in))[k] = k;
    return in;
}

static void check(const char *text, unsigned n, expect_fn *expect)
{
    struct exec_program *p = exec_testing_text(text);
    out = exec_testing_take(THREADS * WORDS * 4, 256);
    uint64_t params[2] = {out, numbers()};
    struct exec_launch l = exec_testing_launch(p, "k", 1, THREADS, params);
    assert_int_equal(exec_testing_run(&l, 10000).kind, EXEC_NO_FAULT);
    for (uint32_t t = 0; t < THREADS; t++) {
        uint32_t want[WORDS] = {0};
        expect(t, want);
        for (uint32_t k = 0; k < n; k++) {
            uint32_t got = exec_testing_word(out + (t * WORDS + k) * 4);
            if (got != want[k])
                print_error("thread %u, word %u: %#x, not %#x\n", t, k, got, want[k]);
            assert_int_equal(got, want[k]);
        }
    }
    exec_program_free(p);
}

#define KERNEL                                                                                          \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                           \
    ".reg .b64 o, i, d<4>; .reg .b32 t, r<8>; .reg .b16 h<8>; .reg .f32 f<4>; .reg .pred p<4>;\n"       \
    "ld.param.u64 o, [out]; ld.param.u64 i, [in]; mov.u32 t, %tid.x;\n"                                 \
    "mul.wide.u32 d0, t, 128; add.u64 o, o, d0; mul.wide.u32 d0, t, 64; add.u64 i, i, d0; mov.u32 r0, " \
    "t;\n"

// --- vectors -----------------------------------------------------------------------------------------------

static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static void expect_pairs(uint32_t t, uint32_t *w)
{
    float a = (float)(t * 16), b = a + 1;
    w[0] = bits_of(a * b + a);
    w[1] = bits_of(b * a + b);
    w[2] = bits_of(a + b);
    w[3] = bits_of(b + a);
    w[4] = bits_of(a * a);
    w[5] = bits_of(b * b);
    w[6] = bits_of(1.5f * 2 + a);
    w[7] = bits_of(2 - b);
}

// Two f32 in one register: d1 is {a, b}, d2 {b, a}. And f32 with halves.
static void pairs(void **state)
{
    check(KERNEL
          "ld.global.v2.b32 {r0, r1}, [i]; cvt.rn.f32.u32 f0, r0; cvt.rn.f32.u32 f1, r1; mov.b64 d1, {f0, "
          "f1};\n"
          "mov.b64 d2, {f1, f0}; fma.rn.f32x2 d3, d1, d2, d1; st.global.b64 [o], d3; add.f32x2 d3, d1, d2;\n"
          "st.global.b64 [o+8], d3; mul.rn.f32x2 d1, d1, d1; st.global.b64 [o+16], d1;\n"
          "mov.b16 h0, 0x3e00; mov.b16 h1, 0x4000; fma.rn.f32.f16 f2, h0, h1, f0; st.global.f32 [o+24], f2;\n"
          "sub.f32.bf16 f3, h1, f1; st.global.f32 [o+28], f3;\nret;\n}\n",
          8, expect_pairs);
}

static void expect_wide(uint32_t t, uint32_t *w)
{
    for (uint32_t k = 0; k < 16; k++)
        w[k] = t * 16 + (k < 8 ? 7 - k : k);
}

// 32 bytes at once; the second load overwrites its address register.
static void wide_vectors(void **state)
{
    check(KERNEL ".reg .b32 q<8>;\nld.global.v8.b32 {q0, q1, q2, q3, q4, q5, q6, q7}, [i];\n"
                 "st.global.v8.b32 [o], {q7, q6, q5, q4, q3, q2, q1, q0};\n"
                 "ld.v4.b64 {i, d1, d2, d3}, [i+32]; st.global.v4.u64 [o+32], {i, d1, d2, d3};\nret;\n}\n",
          16, expect_wide);
}

static struct exec_fault fault_of(const char *text, unsigned threads, uint64_t *in)
{
    struct exec_program *p = exec_testing_text(text);
    out = exec_testing_take(THREADS * WORDS * 4, 256);
    *in = numbers();
    uint64_t params[2] = {out, *in};
    struct exec_launch l = exec_testing_launch(p, "k", 1, threads, params);
    struct exec_fault f = exec_testing_run(&l, 10000);
    exec_program_free(p);
    return f;
}

static void refuse_wide(const char *text, unsigned threads, int64_t offset, bool write)
{
    uint64_t in;
    struct exec_fault f = fault_of(text, threads, &in);
    assert_int_equal(f.kind, EXEC_MISALIGNED_ADDRESS);
    assert_int_equal(f.address, (write ? out : in) + (uint64_t)offset);
    assert_int_equal(f.size, 32);
    assert_int_equal(f.write, write);
}

// 32-byte accesses must be 32-byte aligned, not just their halves: in all lanes, in some, and for a variable.
static void wide_alignment(void **state)
{
    uint64_t in;
    refuse_wide(KERNEL "ld.global.v4.b64 {d0, d1, d2, d3}, [i+16]; ret;\n}\n", 32, 16, false);
    refuse_wide(KERNEL "ld.v4.b64 {d0, d1, d2, d3}, [i+80]; ret;\n}\n", 3, 80, false);
    refuse_wide(KERNEL "st.global.v8.b32 [o+48], {r0, r1, r2, r3, r4, r5, r6, r7}; ret;\n}\n", 32, 48, true);
    // Only the last lane is misaligned.
    refuse_wide(KERNEL "setp.eq.u32 p1, t, 31; selp.u64 d1, 16, 0, p1; add.u64 i, i, d1;\n"
                       "ld.global.v4.b64 {d0, d1, d2, d3}, [i]; ret;\n}\n",
                32, 31 * 64 + 16, false);
    struct exec_fault f = fault_of(".global .align 32 .b8 v[64];\n" KERNEL
                                   "ld.global.v4.b64 {d0, d1, d2, d3}, [v+16]; ret;\n}\n",
                                   1, &in);
    assert_int_equal(f.kind, EXEC_MISALIGNED_ADDRESS);
    // A forbidden access reports its full size, too.
    f = fault_of(KERNEL "mov.u64 d1, 64; ld.global.v4.b64 {d0, d1, d2, d3}, [d1]; ret;\n}\n", 1, &in);
    assert_int_equal(f.kind, EXEC_ILLEGAL_ADDRESS);
    assert_int_equal(f.size, 32);
}

static void expect_parts(uint32_t t, uint32_t *w)
{
    for (uint32_t k = 0; k < 4; k++)
        w[k] = t * 16 + k;
    w[4] = w[3] + w[0];
    w[5] = w[1];
    w[6] = 7;
    w[7] = w[2] * w[1];
    w[8] = w[7];
    w[9] = 7;
}

static void parts(void **state)
{
    check(KERNEL ".reg .v4 .u32 v, w; .reg .v2 .u32 u;\n"
                 "ld.global.v4.u32 v, [i]; st.global.v4.u32 [o], v;\n"
                 "add.u32 w.x, v.w, v.r; mov.u32 w.g, v.y; mov.u32 w.z, 7; mul.lo.u32 w.a, v.b, v.g;\n"
                 "st.global.v4.u32 [o+16], {w.r, w.y, w.b, w.w};\n"
                 "mov.u32 u.x, w.w; mov.u32 u.y, w.z; st.global.v2.u32 [o+32], u; ret;\n}\n",
          10, expect_parts);
}

static void expect_moves(uint32_t t, uint32_t *w)
{
    w[0] = t * 16 + 1;
    w[1] = t * 16;
    w[2] = t * 16 + 3;
    w[3] = 5;
    w[4] = t & 1 ? w[0] : w[1];
    w[5] = t & 1 ? w[1] : w[0];
    w[6] = w[1];
    w[7] = w[0];
    w[8] = w[6];
    w[9] = w[7];
    w[10] = w[7];
    w[11] = w[6];
    w[12] = t;
    w[13] = 0;
    w[14] = 0;
    w[15] = w[1];
    w[16] = w[0];
    w[18] = w[0];
    w[19] = w[1];
}

static void moves(void **state)
{
    check(KERNEL
          ".reg .v4 .u32 v, w, x; .reg .v2 .u32 u, s, z; .reg .v2 .b32 y;\n"
          "ld.global.v4.u32 v, [i]; mov.v4.u32 w, v; mov.u32 r5, 5; mov.v4.u32 w, {w.y, w.x, w.w, r5};\n"
          "st.global.v4.u32 [o], w;\n"
          // Odd threads swap.
          "and.b32 r1, t, 1; setp.ne.u32 p0, r1, 0; mov.v2.u32 u, {v.x, v.y};\n"
          "@p0 mov.v2.u32 u, {u.y, u.x}; st.global.v2.u32 [o+16], u;\n"
          // Packed and unpacked, whole and in braces.
          "mov.v2.u32 s, {v.x, v.y}; mov.b64 d1, s; st.global.u64 [o+24], d1;\n"
          "mov.b64 y, d1; st.global.v2.b32 [o+32], y; mov.b64 {s.y, s.x}, d1; st.global.v2.u32 [o+40], s;\n"
          "mov.v4.u32 x, %tid; st.global.v2.u32 [o+48], {x.x, x.y}; st.global.u32 [o+56], x.z;\n"
          "mov.v2.u32 {r2, r3}, {v.x, v.y}; mov.b64 d2, {r2, r3}; st.global.b32 [o+60], d2; mov.b64 "
          "{r2, r3}, d2; st.global.u32 [o+64], r3;\n"
          // The pair is dead when the word is ready.
          "mov.v2.u32 z, {v.y, v.x}; mov.b64 d3, z; st.global.u64 [o+72], d3; ret;\n}\n",
          20, expect_moves);
}

static void expect_small(uint32_t t, uint32_t *w)
{
    uint32_t n = t * 16 + 1, byte = n & 0xff, up = (n >> 8) + 1;
    w[0] = byte | byte << 8 | (up & 0xff) << 16 | 0xf0u << 24;
    w[1] = byte | (uint32_t)(up & 0xff) << 8;
    w[2] = n | (n + 1) << 16;
    w[3] = n;
    w[4] = n + 1;
    w[5] = n + 2;
    w[6] = 0xffff0000 | 0xfff0;
    w[7] = 0xfffffff0;
}

static void small_parts(void **state)
{
    check(KERNEL
          ".reg .v4 .b8 y; .reg .v2 .b16 hh; .reg .v4 .u16 hq; .reg .v2 .b64 q; .reg .v2 .s16 z;\n"
          "ld.global.u32 r1, [i+4]; st.global.u32 [o], r1; shr.u32 r2, r1, 8; add.u32 r2, r2, 1; "
          "st.global.u8 [o+2], r2; mov.u32 r3, 0xf0; st.global.u8 [o+3], r3; st.global.u8 [o+1], r1;\n"
          // Bytes take as much room in a vector as elsewhere.
          "ld.global.v4.b8 y, [o]; mov.u32 r4, 0; st.global.u32 [o], r4; st.global.v4.b8 [o], y;\n"
          "st.global.u8 [o+4], y.y; st.global.u8 [o+5], y.z;\n"
          "cvt.u16.u32 hh.x, r1; add.u16 hh.y, hh.x, 1; mov.b32 r5, hh; st.global.u32 [o+8], r5;\n"
          "mov.u16 h1, 0; mov.v4.u16 hq, {hh.x, hh.y, h1, h1}; add.u16 hq.z, hq.y, 1; cvt.u64.u16 q.x, hq.x; "
          "cvt.u64.u16 q.y, hq.y; mul.wide.u16 r6, hq.z, 1;\n"
          "st.global.u32 [o+12], q.x; st.global.u32 [o+16], q.y; st.global.u32 [o+20], r6;\n"
          "mov.b32 z, 0xfffffff0; cvt.s32.s16 r6, z.x; st.global.v2.s16 [o+24], z; st.global.u32 [o+28], "
          "r6; ret;\n}\n",
          8, expect_small);
}

static void expect_others(uint32_t t, uint32_t *w)
{
    w[0] = t * 16 + 100;
    w[1] = t * 16 + 1 + 200;
    w[2] = t * 16;
    w[3] = t * 16 + 1;
    w[4] = (t & 31) * 2;
}

// Elements of vectors are operands like any other.
static void others(void **state)
{
    check(KERNEL
          ".reg .v2 .u32 v, a; .reg .v2 .f32 ff;\n"
          "ld.global.v2.u32 v, [i]; mov.v2.u32 a, {100, 200}; st.global.v2.u32 [o], v;\n"
          "atom.global.add.u32 v.x, [o], a.x; atom.global.add.u32 v.y, [o+4], a.y;\n"
          "st.global.v2.u32 [o+8], v;\n"
          "mov.u32 a.x, t; and.b32 a.x, a.x, 31; activemask.b32 a.y; shfl.sync.idx.b32 v.x, a.x, a.x, "
          "31, a.y;\n"
          "cvt.rn.f32.u32 ff.x, v.x; setp.ge.f32 p2, ff.x, 0f00000000; selp.f32 ff.y, ff.x, 0f00000000, "
          "p2; add.f32 ff.x, ff.x, ff.y;\n"
          "cvt.rzi.u32.f32 v.y, ff.x; st.global.u32 [o+16], v.y; ret;\n}\n",
          5, expect_others);
}

static void expect_atoms(uint32_t t, uint32_t *w)
{
    w[0] = 0x3f800000;  // 1 + 0
    w[1] = 0x40c00000;  // 2 + 4
    w[2] = 0x3f800000;
    w[3] = 0x40000000;
    w[4] = 0x40000000;  // again
    w[5] = 0x41400000;
}

// atom.v2 reads all its operands before it writes a result.
static void vector_atoms(void **state)
{
    check(KERNEL ".reg .v2 .f32 v, w;\n"
                 "mov.v2.f32 v, {0f00000000, 0f40800000}; mov.v2.f32 w, {0f3f800000, 0f40000000}; "
                 "st.global.v2.f32 [o], w;\n"
                 "atom.global.add.v2.f32 {v.y, v.x}, [o], v; st.global.v2.f32 [o+8], {v.y, v.x};\n"
                 "ld.global.v2.f32 v, [o]; st.global.v2.f32 [o+16], v; red.global.add.v2.f32 [o+16], {w.x, "
                 "v.y}; ret;\n}\n",
          6, expect_atoms);
}

// --- parameters in registers -------------------------------------------------------------------------------

static void expect_calls(uint32_t t, uint32_t *w)
{
    w[0] = t + 3;
    w[1] = 10 + 2;
    w[2] = t & 1 ? t + 5 : 77;
    w[3] = t + 6;
    w[4] = t + 7;
    w[5] = t * 16 + 3;
    w[6] = t * 16;
    w[7] = (t & 0xffff) + 1;
    w[8] = t * 2;
    w[9] = t * 3;
}

#define FUNCTIONS                                                                                           \
    ".func (.reg .u32 r) f(.reg .u32 a, .reg .f64 b)\n{ .reg .u32 x; cvt.rzi.u32.f64 x, b; add.u32 a, a, "  \
    "x; mov.u32 r, a; ret; }\n"                                                                             \
    ".func (.param .u32 r) g(.param .u32 a)\n{ .reg .u32 x; ld.param.u32 x, [a]; add.u32 x, x, 6; "         \
    "st.param.u32 [r], x; ret; }\n"                                                                         \
    ".func (.reg .v2 .u32 r) ends(.reg .v4 .u32 a)\n{ mov.v2.u32 r, {a.w, a.x}; ret; }\n"                   \
    ".func (.reg .b16 r) h(.reg .b16 a)\n{ add.u16 r, a, 1; ret; }\n"                                       \
    ".func (.reg .u32 r, .reg .u64 s) two(.reg .u32 a)\n{ .reg .u64 l; cvt.u64.u32 l, a; add.u32 r, a, a; " \
    "mul.lo.u64 s, l, 3; ret; }\n"

static void calls(void **state)
{
    check(FUNCTIONS KERNEL
          ".reg .f64 e; .reg .v4 .u32 v; .reg .v2 .u32 u;\n"
          "mov.f64 e, 0d4008000000000000; call (r1), f, (t, e); st.global.u32 [o], r1;\n"
          "call (r1), f, (10, 2.0); st.global.u32 [o+4], r1; call (_), f, (r1, e);\n"
          "mov.u32 r1, 77; and.b32 r2, t, 1; setp.ne.u32 p0, r2, 0; @p0 call (r1), f, (t, 5.0); "
          "st.global.u32 [o+8], r1;\n"
          // Registers for .param, and .param for registers.
          "call (r1), g, (t); st.global.u32 [o+12], r1;\n"
          "{ .param .u32 pa, pr; st.param.u32 [pa], t; call (pr), f, (pa, 7.0); ld.param.u32 r1, [pr]; "
          "st.global.u32 [o+16], r1; }\n"
          "ld.global.v4.u32 v, [i]; call (u), ends, (v); st.global.u32 [o+20], u.x; st.global.u32 [o+24], "
          "u.y;\n"
          "cvt.u16.u32 h0, t; call (h1), h, (h0); cvt.u32.u16 r1, h1; st.global.u32 [o+28], r1;\n"
          "call (r1, d1), two, (t); st.global.u32 [o+32], r1; st.global.u32 [o+36], d1; ret;\n}\n",
          10, expect_calls);
}

static uint32_t fib(uint32_t n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void expect_recursion(uint32_t t, uint32_t *w)
{
    w[0] = fib(t & 7);
    w[1] = t & 1 ? t + 1 : t * 3;
    w[2] = w[1];
    w[3] = t % 3;
}

// Recursion with several returns; calls through pointers, to several functions at once; a function that
// starts with a loop.
static void recursion_and_pointers(void **state)
{
    check(".func (.reg .u32 r) fib(.reg .u32 n)\n{ .reg .pred p; .reg .u32 x, y; setp.lt.u32 p, n, 2; @p "
          "mov.u32 r, n; @p ret; sub.u32 x, n, 1; call (y), fib, (x); sub.u32 x, n, 2; call (r), fib, (x); "
          "add.u32 r, r, y; }\n"
          ".func (.reg .u32 r) inc(.reg .u32 n)\n{ add.u32 r, n, 1; ret; }\n"
          ".func (.param .u32 r) tri(.param .u32 n)\n{ .reg .u32 x; ld.param.u32 x, [n]; mul.lo.u32 x, x, 3; "
          "st.param.u32 [r], x; ret; }\n"
          ".func (.reg .u32 r) rest(.reg .u32 n)\n{ .reg .pred p;\nL: mov.u32 r, n; sub.u32 n, n, 3; "
          "setp.gt.u32 p, "
          "r, 2; @p bra L; ret; }\n" KERNEL "and.b32 r1, t, 7; call (r1), fib, (r1); st.global.u32 [o], r1;\n"
          "P: .callprototype (.reg .u32 _) _ (.reg .u32 _);\nT: .calltargets inc, tri;\n"
          "mov.u64 d1, inc; mov.u64 d2, tri; and.b32 r2, t, 1; setp.ne.u32 p0, r2, 0; selp.b64 d1, d1, d2, "
          "p0;\n"
          "call (r1), d1, (t), P; st.global.u32 [o+4], r1; call (r1), d1, (t), T; st.global.u32 [o+8], r1;\n"
          "call (r1), rest, (t); st.global.u32 [o+12], r1; ret;\n}\n",
          4, expect_recursion);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_vectors), cmocka_unit_test(wide_alignment),
        cmocka_unit_test(pairs),        cmocka_unit_test(parts),
        cmocka_unit_test(moves),        cmocka_unit_test(small_parts),
        cmocka_unit_test(others),       cmocka_unit_test(vector_atoms),
        cmocka_unit_test(calls),        cmocka_unit_test(recursion_and_pointers),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
