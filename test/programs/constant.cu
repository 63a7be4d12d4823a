// SPDX-License-Identifier: MIT
// One-dimensional convolution whose weights are in constant memory, set by the host and statically.
#include "program.h"

enum { RADIUS = 8, TAPS = 2 * RADIUS + 1 };

__constant__ float weights[TAPS];
__constant__ const float scales[4] = {1, -1, 2, -2};

__global__ void convolve(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0;
    for (int tap = 0; tap < TAPS; tap++) {
        int source = i + tap - RADIUS;
        if (source >= 0 && source < n)
            sum += weights[tap] * in[source];
    }
    out[i] = sum * scales[i % 4];
}

static float reference(const float *in, const float *taps, long i, long n)
{
    static const float factors[4] = {1, -1, 2, -2};
    float sum = 0;
    for (long tap = 0; tap < TAPS; tap++)
        if (i + tap >= RADIUS && i + tap - RADIUS < n)
            sum += taps[tap] * in[i + tap - RADIUS];
    return sum * factors[i % 4];
}

int main(int argc, char **argv)
{
    long n = 4000, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 100000}});
    std::vector<float> in = program_numbers<float>(n, -100, 100, 1);
    std::vector<float> taps = program_numbers<float>(TAPS, -20, 20, 2);
    float *device_in = program_upload(in), *device_out = program_allocate<float>(n);
    // In two parts, the second at an offset.
    CUDA_TRY(cudaMemcpyToSymbol(weights, taps.data(), RADIUS * sizeof(float)));
    CUDA_TRY(cudaMemcpyToSymbol(weights, &taps[RADIUS], (TAPS - RADIUS) * sizeof(float),
                                RADIUS * sizeof(float)));

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        convolve<<<program_blocks(n, 256), 256>>>(device_out, device_in, n);
    program_stop(start);

    std::vector<float> out = program_download(device_out, n);
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(n, 200000))
        errors += program_wrong(i, out[i], reference(in.data(), taps.data(), i, n));
    return program_result("constant", errors);
}
