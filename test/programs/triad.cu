// SPDX-License-Identifier: MIT
// Streaming triad, a = b + s * c, in a grid-stride loop: nothing but coalesced memory traffic.
#include "program.h"

__global__ void triad(float *a, const float *b, const float *c, float scale, int n)
{
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride)
        a[i] = b[i] + scale * c[i];
}

int main(int argc, char **argv)
{
    long n = 5000, repeats = 2;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 1000000}});
    std::vector<float> b = program_numbers<float>(n, -1000, 1000, 1);
    std::vector<float> c = program_numbers<float>(n, -1000, 1000, 2);
    std::vector<float> expected(n);
    for (long i = 0; i < n; i++)
        expected[i] = b[i] + 3 * c[i];
    float *device_a = program_allocate<float>(n);
    float *device_b = program_upload(b), *device_c = program_upload(c);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        triad<<<std::min(program_blocks(n, 256), 2048u), 256>>>(device_a, device_b, device_c, 3, n);
    program_stop(start);

    std::vector<float> a = program_download(device_a, n);
    program_free(device_a, device_b, device_c);
    return program_result("triad", program_compare(a, expected));
}
