// SPDX-License-Identifier: MIT
// mma.sp with small integers, whose sums are exact, against a plain product of the full matrix.
#include <errno.h>

#include "exec/exec_testing.h"
#include "exec/scalar_half.h"

enum { M = 16, N = 8, MOST_K = 64, LANES = 32 };

static int a[M][MOST_K], b[MOST_K][N];  // the full A
static int kept[M][MOST_K / 2];         // the stored elements of A
static unsigned meta[M][MOST_K / 2];    // two bits each, in the order of kept
static uint64_t seed = 7;

static unsigned next(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 40) % n;
}

// Chooses two of each four columns, or one of each two.
static void numbers(unsigned k, bool pairs)
{
    memset(a, 0, sizeof a);
    for (unsigned r = 0; r < M; r++)
        for (unsigned q = 0; q < k / (pairs ? 2 : 4); q++) {
            unsigned first = next(3), second = first + 1 + next(3 - first), which = next(2);
            for (unsigned e = 0; e < (pairs ? 1 : 2); e++) {
                unsigned n = pairs ? q : 2 * q + e, at = pairs ? 2 * q + which : 4 * q + (e ? second : first);
                a[r][at] = kept[r][n] = (int)next(9) - 4;
            }
            meta[r][2 * q] = pairs ? 2 * which : first;
            meta[r][2 * q + 1] = pairs ? 2 * which + 1 : second;
        }
    for (unsigned z = 0; z < k; z++)
        for (unsigned c = 0; c < N; c++)
            b[z][c] = (int)next(9) - 4;
}

static uint16_t half(int v)
{
    static const uint16_t of[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400};
    return (uint16_t)(v < 0 ? of[-v] | 0x8000 : of[v]);
}

static uint32_t whole(int v)
{
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

struct inputs {
    uint32_t a[4], b[4], c[4], meta;
};

enum kind { HALVES, BRAINS, WORDS, BYTES };

static uint32_t word(enum kind kind, const int *v, unsigned apart)
{
    switch (kind) {
    case HALVES: return half(v[0]) | (uint32_t)half(v[apart]) << 16;
    case BRAINS: return whole(v[0]) >> 16 | (whole(v[apart]) & 0xffff0000u);
    case WORDS: return whole(v[0]);
    default: break;
    }
    uint32_t out = 0;
    for (unsigned e = 0; e < 4; e++)
        out |= (uint32_t)(uint8_t)v[e * apart] << 8 * e;
    return out;
}

// Returns n indices of a row's metadata, from number `first` on.
static uint32_t indices(unsigned row, unsigned first, unsigned n)
{
    uint32_t out = 0;
    for (unsigned e = 0; e < n; e++)
        out |= meta[row][first + e] << 2 * e;
    return out;
}

// Fills the registers of a lane, as PTX describes the fragments. Metadata that the selector excludes is wrong
// on purpose.
static void fill(struct inputs *in, unsigned lane, enum kind kind, unsigned k, unsigned selector)
{
    unsigned g = lane / 4, t = lane % 4, per = kind == BYTES ? 4 : kind == WORDS ? 1 : 2;
    bool two = k * (4 / per) == 64;
    memset(in, 0, sizeof *in);
    for (unsigned r = 0; r < (two ? 4u : 2u); r++)
        in->a[r] = word(kind, &kept[g + 8 * (r % 2)][(t + 4 * (r / 2)) * per], 1);
    for (unsigned r = 0; r < (two ? 4u : 2u); r++)
        in->b[r] = word(kind, &b[(t + 4 * r) * per][g], N);
    for (unsigned r = 0; r < 4; r++)
        in->c[r] = kind == BYTES ? 10 : whole(10);
    in->meta = 0xffffffff;
    if (kind == BYTES && (two || t / 2 == selector))
        in->meta = indices(g + 8 * (t % 2), two ? t / 2 * 16 : 0, 16);
    else if (kind != BYTES && (two ? t / 2 == selector : t == selector))
        in->meta = indices(g, two ? t % 2 * 8 : 0, 8) | indices(g + 8, two ? t % 2 * 8 : 0, 8) << 16;
}

#define HEAD                                                                                              \
    ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 i, o; .reg .b32 t, m, a<4>, b<4>, " \
    "c<4>; .reg .f32 f<4>;\nld.param.u64 i, [in]; ld.param.u64 o, [out]; mov.u32 t, %%tid.x;\n"           \
    "mad.wide.u32 i, t, 64, i; mad.wide.u32 o, t, 16, o; ld.global.v4.b32 {a0, a1, a2, a3}, [i];\n"       \
    "ld.global.v4.b32 {b0, b1, b2, b3}, [i+16]; ld.global.v4.b32 {c0, c1, c2, c3}, [i+32];\n"             \
    "ld.global.v4.f32 {f0, f1, f2, f3}, [i+32]; ld.global.b32 m, [i+48];\n"
#define FLOATS "{f0, f1, f2, f3}"
#define INTS "{c0, c1, c2, c3}"
#define TWO(x) "{" #x "0, " #x "1}"
#define FOUR(x) "{" #x "0, " #x "1, " #x "2, " #x "3}"

static struct exec_program *load(const char *name, const char *d, bool two, unsigned selector)
{
    char *text;
    assert_true(
        asprintf(&text,
                 HEAD "mma.sp%s.sync.aligned.%s %s, %s, %s, %s, m, %u;\nst.global.v4.%s [o], %s;\nret;\n}\n",
                 selector ? "::ordered_metadata" : "", name, d, two ? FOUR(a) : TWO(a),
                 two ? FOUR(b) : TWO(b), d, selector, d[1] == 'f' ? "f32" : "b32", d) > 0);
    struct exec_program *p = exec_testing_text(text);
    free(text);
    return p;
}

static void check(const char *name, enum kind kind, unsigned k, unsigned selectors)
{
    unsigned per = kind == BYTES ? 4 : kind == WORDS ? 1 : 2;
    for (unsigned selector = 0; selector < selectors; selector++) {
        struct exec_program *p = load(name, kind == BYTES ? INTS : FLOATS, k * (4 / per) == 64, selector);
        uint64_t in = exec_testing_take(LANES * 64, 256), out = exec_testing_take(LANES * 16, 256);
        numbers(k, kind == WORDS);
        for (unsigned l = 0; l < LANES; l++) {
            struct inputs one;
            fill(&one, l, kind, k, selector);
            memcpy(space_host(in + l * 64), &one, sizeof one);
        }
        struct exec_launch l = exec_testing_launch(p, "k", 1, LANES, (uint64_t[]){in, out});
        assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
        for (unsigned e = 0; e < LANES * 4; e++) {
            unsigned row = e / 4 / 4 + e % 4 / 2 * 8, column = e / 4 % 4 * 2 + e % 2;
            int want = 10;
            for (unsigned z = 0; z < k; z++)
                want += a[row][z] * b[z][column];
            assert_int_equal(exec_testing_word(out + e * 4), kind == BYTES ? (uint32_t)want : whole(want));
        }
        exec_program_free(p);
    }
}

static void test_products(void **state)
{
    check("m16n8k16.row.col.f32.f16.f16.f32", HALVES, 16, 4);
    check("m16n8k32.row.col.f32.f16.f16.f32", HALVES, 32, 2);
    check("m16n8k16.row.col.f32.bf16.bf16.f32", BRAINS, 16, 4);
    check("m16n8k32.row.col.f32.bf16.bf16.f32", BRAINS, 32, 2);
    check("m16n8k8.row.col.f32.tf32.tf32.f32", WORDS, 8, 4);
    check("m16n8k16.row.col.f32.tf32.tf32.f32", WORDS, 16, 2);
    check("m16n8k32.row.col.s32.s8.s8.s32", BYTES, 32, 2);
    check("m16n8k64.row.col.s32.s8.s8.s32", BYTES, 64, 1);
}

// An infinity in B counts only where A has an element: A's first row uses B's first row, its second row does
// not.
static void test_infinity(void **state)
{
    struct exec_program *p = load("m16n8k16.row.col.f32.f16.f16.f32", FLOATS, false, 0);
    uint64_t in = exec_testing_take(LANES * 64, 256), out = exec_testing_take(LANES * 16, 256);
    for (unsigned l = 0; l < LANES; l++) {
        struct inputs one = {.a = {0x3c003c00, 0x3c003c00}, .meta = l ? 0xdddddddd : 0x44444444};
        one.b[0] = l % 4 ? 0x3c003c00 : 0x3c007c00;  // row 0 of B is infinite
        one.b[1] = 0x3c003c00;
        memcpy(space_host(in + l * 64), &one, sizeof one);
    }
    struct exec_launch l = exec_testing_launch(p, "k", 1, LANES, (uint64_t[]){in, out});
    assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
    // Lane 0's metadata selects columns 0 and 1 of each four, the other lanes' 1 and 3.
    assert_int_equal(exec_testing_word(out), 0x7f800000);
    assert_int_equal(exec_testing_word(out + 4 * 16), whole(8));
    exec_program_free(p);
}

// The largest sums that the fast path must compute exactly: all elements of A in odd, or in even, columns.
static void check_large(const char *name, uint32_t metadata, uint32_t a_bits, uint32_t expected)
{
    enum { LARGE = 0x3fffffff };  // as f32, just below 2
    struct exec_program *p = load(name, FLOATS, true, 0);
    uint64_t in = exec_testing_take(LANES * 64, 256), out = exec_testing_take(LANES * 16, 256);
    for (unsigned l = 0; l < LANES; l++) {
        struct inputs one = {.meta = metadata};
        for (unsigned r = 0; r < 4; r++) {
            one.a[r] = a_bits;
            one.b[r] = 0x3fff3fff;
            one.c[r] = a_bits & 0x80000000u ? LARGE | 0x80000000u : LARGE;
        }
        memcpy(space_host(in + l * 64), &one, sizeof one);
    }
    struct exec_launch l = exec_testing_launch(p, "k", 1, LANES, (uint64_t[]){in, out});
    assert_int_equal(exec_testing_run(&l, 1000).kind, EXEC_NO_FAULT);
    for (unsigned e = 0; e < LANES * 4; e++)
        assert_int_equal(exec_testing_word(out + e * 4), expected);
    exec_program_free(p);
}

static void test_large(void **state)
{
    static const uint32_t metadata[] = {0xdddddddd, 0x88888888, 0x44444444};
    for (unsigned k = 0; k < sizeof metadata / sizeof *metadata; k++) {
        // 16 * 1.9990234375^2 + 2 - 2^-23, and 16 * 1.9921875^2 + 2 - 2^-23, truncated.
        check_large("m16n8k32.row.col.f32.f16.f16.f32", metadata[k], 0x3fff3fff, 0x4283e001);
        check_large("m16n8k32.row.col.f32.f16.f16.f32", metadata[k], 0xbfffbfff, 0xc283e001);
        check_large("m16n8k32.row.col.f32.bf16.bf16.f32", metadata[k], 0x3fff3fff, 0x4283007f);
        check_large("m16n8k32.row.col.f32.bf16.bf16.f32", metadata[k], 0xbfffbfff, 0xc283007f);
    }
}

static void refuse(const char *instruction, int error, const char *report)
{
    char *text, *all;
    assert_true(asprintf(&text, "%s" HEAD "%s\nret;\n}\n", EXEC_TESTING_HEAD, instruction) > 0);
    struct exec_program *p;
    assert_int_equal(exec_testing_load((const char *const[]){text, NULL}, &p), error);
    all = strstr(exec_testing.reported, report);
    assert_non_null(all);
    free(text);
}

static void test_refusals(void **state)
{
    refuse("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FLOATS ", " TWO(a) ", " TWO(b) ", " FLOATS
                                                                                                  ", m, 4;",
           -EINVAL, "there is no such selector");
    refuse("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 " INTS ", " FOUR(a) ", " FOUR(b) ", " INTS
                                                                                                ", m, 1;",
           -EINVAL, "there is no such selector");
    refuse("mma.sp.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32 " INTS ", " FOUR(a) ", " FOUR(b) ", " INTS
                                                                                                 ", m, 0;",
           -ENOTSUP, "does not execute mma.sp.sync.aligned.m16n8k128");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_infinity),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, exec_testing_setup, NULL);
}
