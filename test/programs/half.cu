// SPDX-License-Identifier: MIT
// Arithmetic, comparisons and conversions in the two 16-bit floating-point types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "program.h"

// x * x + 3 * x + 2 and a maximum: whole numbers below each type's precision, so exact.
__global__ void evaluate_half(__half2 *out, const __half2 *in, int pairs)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs)
        return;
    __half2 x = in[i], three = __float2half2_rn(3), two = __float2half2_rn(2);
    __half2 value = __hadd2(__hfma2(three, x, two), __hmul2(x, x));
    out[i] = __hmax2(value, __hneg2(x));
}

__global__ void evaluate_bfloat(__nv_bfloat16 *out, const __nv_bfloat16 *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __nv_bfloat16 x = in[i], two = __float2bfloat16(2);
#if __CUDA_ARCH__ >= 800
    __nv_bfloat16 value = __hfma(x, x, two);
#else
    __nv_bfloat16 value = x * x + two;
#endif
    value = value + __float2bfloat16(3) * x;
    out[i] = __hgt(value, __hneg(x)) ? value : __hneg(x);
}

__global__ void convert(unsigned short *halves, unsigned short *bfloats, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    halves[i] = __half_as_ushort(__float2half_rn(in[i]));
    bfloats[i] = __bfloat16_as_ushort(__float2bfloat16_rn(in[i]));
}

static float polynomial(float x)
{
    return fmaxf(x * x + 3 * x + 2, -x);
}

static long check(const std::vector<float> &in, const std::vector<unsigned short> &halves,
                  const std::vector<unsigned short> &bfloats)
{
    long errors = 0;
    for (size_t i : program_sample(in.size(), 200000)) {
        errors += program_wrong(i, halves[i], __half_as_ushort(__float2half_rn(in[i])));
        errors += program_wrong(i, bfloats[i], __bfloat16_as_ushort(__float2bfloat16_rn(in[i])));
    }
    return errors;
}

template <typename T>
static long check_polynomial(const std::vector<T> &out, const std::vector<float> &in)
{
    long errors = 0;
    for (size_t i : program_sample(in.size(), 200000))
        errors += program_wrong(i, (float)out[i], polynomial(in[i]));
    return errors;
}

int main(int argc, char **argv)
{
    long pairs = 500, repeats = 1;
    program_arguments(argc, argv,
                      {{"pairs", &pairs, 1, 1 << 26}, {"repeats", &repeats, 1, 100000}});
    long n = 2 * pairs;
    std::vector<float> in = program_numbers<float>(n, -12, 12, 1), fractions(n);
    std::vector<__half> half_in(in.begin(), in.end());
    std::vector<__nv_bfloat16> bfloat_in(in.begin(), in.end());
    for (long i = 0; i < n; i++)
        fractions[i] = ldexpf(in[i] + 0.001f * (i % 1999), (int)(i % 40) - 28);
    float *device_fractions = program_upload(fractions);
    __half *a = program_upload(half_in), *half_out = program_allocate<__half>(n);
    __nv_bfloat16 *b = program_upload(bfloat_in), *bfloat_out = program_allocate<__nv_bfloat16>(n);
    unsigned short *halves = program_allocate<unsigned short>(n);
    unsigned short *bfloats = program_allocate<unsigned short>(n);

    unsigned blocks = program_blocks(n, 128);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        evaluate_half<<<program_blocks(pairs, 128), 128>>>((__half2 *)half_out, (__half2 *)a,
                                                           pairs);
        evaluate_bfloat<<<blocks, 128>>>(bfloat_out, b, n);
        convert<<<blocks, 128>>>(halves, bfloats, device_fractions, n);
    }
    program_stop(start);

    long errors =
        check_polynomial(program_download(half_out, n), in) +
        check_polynomial(program_download(bfloat_out, n), in) +
        check(fractions, program_download(halves, n), program_download(bfloats, n));
    program_free(device_fractions, a, half_out, b, bfloat_out, halves, bfloats);
    return program_result("half", errors);
}
