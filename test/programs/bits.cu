// SPDX-License-Identifier: MIT
// Integer instructions: counts and reversals of bits, byte permutes, funnel shifts, high products.
#include "program.h"

enum { RESULTS = 12 };

__device__ unsigned extract_bits(unsigned value, unsigned start, unsigned length)
{
    unsigned field;
    asm("bfe.u32 %0, %1, %2, %3;" : "=r"(field) : "r"(value), "r"(start), "r"(length));
    return field;
}

__global__ void compute(unsigned *out, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = in[i], b = in[n - 1 - i], *results = &out[(size_t)i * RESULTS];
    unsigned long long wide = (unsigned long long)a << 32 | b;
    results[0] = __popc(a) + __popcll(wide);
    results[1] = __clz(a) + 64 * __clzll(wide >> b % 64);
    results[2] = __ffs(a) + 64 * __ffsll(wide);
    results[3] = __brev(a);
    results[4] = __byte_perm(a, b, 0x6142);
    results[5] = __funnelshift_l(a, b, b);
    results[6] = __umulhi(a, b) ^ (unsigned)__mulhi((int)a, (int)b);
    results[7] = extract_bits(a, b % 20, 7);
    results[8] = __dp4a((int)a, (int)b, 1000);
    results[9] = __sad((int)a, (int)b, a) + __usad(a, b, b);
    results[10] = (unsigned)((int)a >> b % 32) +
                  (unsigned)((int)a / ((int)b | 1)) * (unsigned)((int)a % 1000);
    results[11] = __vabsdiffu4(a, b) ^ __mul24((int)a, 77);
}

static unsigned reverse_bits(unsigned value)
{
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; bit++)
        reversed |= (value >> bit & 1) << (31 - bit);
    return reversed;
}

// Products and differences of the four bytes.
static void by_bytes(unsigned a, unsigned b, int *product, unsigned *differences)
{
    *product = 0;
    *differences = 0;
    for (int shift = 0; shift < 32; shift += 8) {
        *product += (int8_t)(a >> shift) * (int8_t)(b >> shift);
        *differences |= (unsigned)abs((int)(a >> shift & 255) - (int)(b >> shift & 255)) << shift;
    }
}

static void reference(unsigned *results, unsigned a, unsigned b)
{
    uint64_t wide = (uint64_t)a << 32 | b, shifted = wide >> b % 64;
    int64_t signed_a = (int)a, signed_b = (int)b;
    int product;
    unsigned differences;
    by_bytes(a, b, &product, &differences);
    results[0] = __builtin_popcount(a) + __builtin_popcountll(wide);
    results[1] = (a ? __builtin_clz(a) : 32) + 64 * (shifted ? __builtin_clzll(shifted) : 64);
    results[2] = __builtin_ffs((int)a) + 64 * __builtin_ffsll((long long)wide);
    results[3] = reverse_bits(a);
    results[4] = (a >> 16 & 255) | (b & 255) << 8 | (a >> 8 & 255) << 16 | (b >> 16 & 255) << 24;
    results[5] = (unsigned)(((uint64_t)b << 32 | a) << b % 32 >> 32);
    results[6] = (unsigned)((uint64_t)a * b >> 32) ^ (unsigned)(signed_a * signed_b >> 32);
    results[7] = a >> b % 20 & 127;
    results[8] = (unsigned)(product + 1000);
    results[9] = (unsigned)llabs(signed_a - signed_b) + a + (a > b ? a - b : b - a) + b;
    results[10] = (unsigned)((int)a >> b % 32) +
                  (unsigned)(signed_a / (signed_b | 1)) * (unsigned)((int)a % 1000);
    results[11] = differences ^ (unsigned)(((int)(a << 8) >> 8) * 77);
}

int main(int argc, char **argv)
{
    long n = 1500, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 24}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, INT32_MAX - 1, 1);
    for (long i = 0; i < n; i++)
        in[i] = i % 7 ? in[i] * 2654435761u : (unsigned)(i % 5);
    unsigned *device_in = program_upload(in);
    unsigned *device_out = program_allocate<unsigned>(n * RESULTS);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        compute<<<program_blocks(n, 128), 128>>>(device_out, device_in, n);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, n * RESULTS);
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(n, 100000)) {
        unsigned expected[RESULTS];
        reference(expected, in[i], in[n - 1 - i]);
        for (int j = 0; j < RESULTS; j++)
            errors += program_wrong(i * RESULTS + j, out[i * RESULTS + j], expected[j]);
    }
    return program_result("bits", errors);
}
