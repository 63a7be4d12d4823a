// SPDX-License-Identifier: MIT
// mma.sp with whole numbers, which every sum keeps exact, against a product of the whole matrix: where the
// metadata lies.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_fp16.h>

enum { M = 16, N = 8, MOST_K = 64, LANES = 32 };
enum kind { HALVES, BRAINS, WORDS, BYTES };

struct inputs {
    unsigned a[4], b[4], c[4], meta, pad[3];
};

#define PRODUCT(name, shape, regs, d, selector)                                                      \
    __global__ void name(const inputs *in, unsigned *out)                                            \
    {                                                                                                \
        inputs i = in[threadIdx.x];                                                                  \
        asm volatile("mma.sp::ordered_metadata.sync.aligned." shape " " regs ", %12, " #selector ";" \
                     : "+" d(i.c[0]), "+" d(i.c[1]), "+" d(i.c[2]), "+" d(i.c[3])                    \
                     : "r"(i.a[0]), "r"(i.a[1]), "r"(i.a[2]), "r"(i.a[3]), "r"(i.b[0]), "r"(i.b[1]), \
                       "r"(i.b[2]), "r"(i.b[3]), "r"(i.meta));                                       \
        for (int k = 0; k < 4; k++)                                                                  \
            out[threadIdx.x * 4 + k] = i.c[k];                                                       \
    }
#define SHORT "{%0, %1, %2, %3}, {%4, %5}, {%8, %9}, {%0, %1, %2, %3}"
#define LONG "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}"
PRODUCT(half16_0, "m16n8k16.row.col.f32.f16.f16.f32", SHORT, "r", 0)
PRODUCT(half16_3, "m16n8k16.row.col.f32.f16.f16.f32", SHORT, "r", 3)
PRODUCT(half32_0, "m16n8k32.row.col.f32.f16.f16.f32", LONG, "r", 0)
PRODUCT(half32_1, "m16n8k32.row.col.f32.f16.f16.f32", LONG, "r", 1)
PRODUCT(brain32_0, "m16n8k32.row.col.f32.bf16.bf16.f32", LONG, "r", 0)
PRODUCT(word8_2, "m16n8k8.row.col.f32.tf32.tf32.f32", SHORT, "r", 2)
PRODUCT(word16_1, "m16n8k16.row.col.f32.tf32.tf32.f32", LONG, "r", 1)
PRODUCT(byte32_0, "m16n8k32.row.col.s32.s8.s8.s32", SHORT, "r", 0)
PRODUCT(byte32_1, "m16n8k32.row.col.s32.s8.s8.s32", SHORT, "r", 1)
PRODUCT(byte64_0, "m16n8k64.row.col.s32.s8.s8.s32", LONG, "r", 0)

static int a[M][MOST_K], b[MOST_K][N], kept[M][MOST_K / 2];
static unsigned meta[M][MOST_K / 2];

static void numbers(int k, bool pairs)
{
    memset(a, 0, sizeof a);
    for (int r = 0; r < M; r++)
        for (int q = 0; q < k / (pairs ? 2 : 4); q++) {
            int first = rand() % 3, second = first + 1 + rand() % (3 - first), which = rand() % 2;
            for (int e = 0; e < (pairs ? 1 : 2); e++) {
                int n = pairs ? q : 2 * q + e, at = pairs ? 2 * q + which : 4 * q + (e ? second : first);
                a[r][at] = kept[r][n] = rand() % 9 - 4;
            }
            meta[r][2 * q] = pairs ? 2 * which : first;
            meta[r][2 * q + 1] = pairs ? 2 * which + 1 : second;
        }
    for (int z = 0; z < k; z++)
        for (int c = 0; c < N; c++)
            b[z][c] = rand() % 9 - 4;
}

static unsigned bits(float f)
{
    unsigned u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static unsigned word(kind what, const int *v, int apart)
{
    unsigned out = 0;
    if (what == WORDS)
        return bits((float)v[0]);
    if (what == BYTES) {
        for (int e = 0; e < 4; e++)
            out |= (unsigned)(unsigned char)v[e * apart] << 8 * e;
        return out;
    }
    for (int e = 0; e < 2; e++) {
        unsigned short h = what == HALVES ? __half_as_ushort(__float2half((float)v[e * apart]))
                                          : (unsigned short)(bits((float)v[e * apart]) >> 16);
        out |= (unsigned)h << 16 * e;
    }
    return out;
}

static unsigned indices(int row, int first, int n)
{
    unsigned out = 0;
    for (int e = 0; e < n; e++)
        out |= meta[row][first + e] << 2 * e;
    return out;
}

static inputs make(int lane, kind what, int k, int selector)
{
    int g = lane / 4, t = lane % 4, per = what == BYTES ? 4 : what == WORDS ? 1 : 2;
    bool two = k * (4 / per) == 64;
    inputs in = {};
    for (int r = 0; r < (two ? 4 : 2); r++) {
        in.a[r] = word(what, &kept[g + 8 * (r % 2)][(t + 4 * (r / 2)) * per], 1);
        in.b[r] = word(what, &b[(t + 4 * r) * per][g], N);
    }
    for (int r = 0; r < 4; r++)
        in.c[r] = what == BYTES ? 10 : bits(10);
    in.meta = 0x44444444;  // what is not meant is sound, but not what is there
    if (what == BYTES && (two || t / 2 == selector))
        in.meta = indices(g + 8 * (t % 2), two ? t / 2 * 16 : 0, 16);
    else if (what != BYTES && (two ? t / 2 == selector : t == selector))
        in.meta = indices(g, two ? t % 2 * 8 : 0, 8) | indices(g + 8, two ? t % 2 * 8 : 0, 8) << 16;
    return in;
}

static int failed;

static void check(const char *name, void (*kernel)(const inputs *, unsigned *), kind what, int k,
                  int selector)
{
    inputs *in;
    unsigned *out;
    if (cudaMallocManaged(&in, LANES * sizeof *in) || cudaMallocManaged(&out, LANES * 16))
        exit(1);
    numbers(k, what == WORDS);
    for (int l = 0; l < LANES; l++)
        in[l] = make(l, what, k, selector);
    kernel<<<1, LANES>>>(in, out);
    cudaError_t error = cudaDeviceSynchronize();
    int wrong = error != cudaSuccess;
    for (int e = 0; e < LANES * 4; e++) {
        int row = e / 16 + e % 4 / 2 * 8, column = e / 4 % 4 * 2 + e % 2, want = 10;
        for (int z = 0; z < k; z++)
            want += a[row][z] * b[z][column];
        wrong += out[e] != (what == BYTES ? (unsigned)want : bits((float)want));
    }
    if (wrong)
        printf("%s: %d wrong, %s\n", name, wrong, cudaGetErrorName(error));
    failed |= wrong;
}

int main()
{
#define CHECK(name, what, k, selector) check(#name, name, what, k, selector)
    CHECK(half16_0, HALVES, 16, 0);
    CHECK(half16_3, HALVES, 16, 3);
    CHECK(half32_0, HALVES, 32, 0);
    CHECK(half32_1, HALVES, 32, 1);
    CHECK(brain32_0, BRAINS, 32, 0);
    CHECK(word8_2, WORDS, 8, 2);
    CHECK(word16_1, WORDS, 16, 1);
    CHECK(byte32_0, BYTES, 32, 0);
    CHECK(byte32_1, BYTES, 32, 1);
    CHECK(byte64_0, BYTES, 64, 0);
    if (!failed)
        printf("all right\n");
    return failed != 0;
}
