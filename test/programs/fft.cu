// SPDX-License-Identifier: MIT
// Batches of complex Fourier transforms, radix two and self-sorting: strided stages, sines.
#include "program.h"

// half is the size of the transforms that were done so far; the stage joins pairs of them.
__global__ void stage(float2 *out, const float2 *in, int n, int half)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n / 2)
        return;
    in += (size_t)blockIdx.y * n;
    out += (size_t)blockIdx.y * n;
    int k = i & (half - 1), target = 2 * i - k;
    float sine, cosine;
    sincospif(-(float)k / half, &sine, &cosine);
    float2 a = in[i], b = in[i + n / 2];
    float2 turned = {b.x * cosine - b.y * sine, b.x * sine + b.y * cosine};
    out[target] = make_float2(a.x + turned.x, a.y + turned.y);
    out[target + half] = make_float2(a.x - turned.x, a.y - turned.y);
}

// One entry of the spectrum as a polynomial in a root of unity, by Horner's rule.
static void reference(const float2 *in, size_t n, size_t k, double *real, double *imaginary)
{
    double angle = -2 * acos(-1.0) * (double)k / (double)n, c = cos(angle), s = sin(angle);
    double x = 0, y = 0;
    for (size_t j = n; j-- > 0;) {
        double next = x * c - y * s + in[j].x;
        y = x * s + y * c + in[j].y;
        x = next;
    }
    *real = x;
    *imaginary = y;
}

// Rounding errors of a stage are independent and grow with the square root of the spectrum's mean
// power, below sqrt(2n); 16 roundings for each stage leave them a wide margin.
static long check(const std::vector<float2> &in, const std::vector<float2> &out, size_t n)
{
    long errors = 0;
    double limit = ldexp(16, -24) * log2((double)n) * sqrt(2.0 * n);
    for (size_t i : program_sample(out.size(), (1 << 24) / n)) {
        double real, imaginary;
        reference(&in[i / n * n], n, i % n, &real, &imaginary);
        if (!(fabs(out[i].x - real) <= limit) || !(fabs(out[i].y - imaginary) <= limit))
            errors += program_wrong<double>(i, out[i].x, real) +
                      program_wrong<double>(i, out[i].y, imaginary);
    }
    return errors;
}

int main(int argc, char **argv)
{
    long exponent = 8, batches = 4, repeats = 1;
    program_arguments(argc, argv, {{"exponent", &exponent, 1, 24}, {"batches", &batches, 1, 65535},
                                   {"repeats", &repeats, 1, 100000}});
    size_t n = (size_t)1 << exponent, count = n * batches;
    std::vector<float2> in(count);
    std::vector<float> parts = program_numbers<float>(2 * count, -1000, 1000, 1);
    for (size_t i = 0; i < count; i++)
        in[i] = make_float2(parts[2 * i] / 1000, parts[2 * i + 1] / 1000);
    float2 *device_in = program_upload(in);
    float2 *buffers[2] = {program_allocate<float2>(count), program_allocate<float2>(count)};

    dim3 grid(program_blocks(n / 2, 128), batches);
    double start = program_start();
    for (long i = 0; i < repeats * exponent; i++) {
        long level = i % exponent;
        const float2 *source = level == 0 ? device_in : buffers[(level - 1) % 2];
        stage<<<grid, 128>>>(buffers[level % 2], source, n, 1 << level);
    }
    program_stop(start);

    std::vector<float2> out = program_download(buffers[(exponent - 1) % 2], count);
    program_free(device_in, buffers[0], buffers[1]);
    return program_result("fft", check(in, out, n));
}
