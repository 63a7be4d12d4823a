// SPDX-License-Identifier: MIT
// Matrix product straight from global memory, one thread per result: loops and cached loads.
#include "matrix_check.h"

__global__ void multiply(float *product, const float *a, const float *b, int n)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n || column >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    product[row * n + column] = sum;
}

int main(int argc, char **argv)
{
    long n = 50, repeats = 1;
    program_arguments(argc, argv, {{"side", &n, 1, 16384}, {"repeats", &repeats, 1, 100000}});
    std::vector<float> a = program_numbers<float>(n * n, -4, 4, 1);
    std::vector<float> b = program_numbers<float>(n * n, -4, 4, 2);
    float *device_a = program_upload(a), *device_b = program_upload(b);
    float *device_product = program_allocate<float>(n * n);

    dim3 block(32, 8), grid(program_blocks(n, 32), program_blocks(n, 8));
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        multiply<<<grid, block>>>(device_product, device_a, device_b, n);
    program_stop(start);

    std::vector<float> product = program_download(device_product, n * n);
    program_free(device_a, device_b, device_product);
    return program_result("matmul_naive", matrix_check(product, a, b, n, n, n));
}
