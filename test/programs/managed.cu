// SPDX-License-Identifier: MIT
// Managed memory that host and kernels use by turns: an allocation and two module variables.
#include "program.h"

enum { HOST_STRIDE = 1024 };

__managed__ unsigned step_size = 1;
__managed__ unsigned long long total;

__global__ void advance(unsigned *numbers, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    numbers[i] += step_size;
    if (i % HOST_STRIDE == 0)
        atomicAdd(&total, numbers[i]);
}

int main(int argc, char **argv)
{
    long n = 5000, rounds = 3;
    program_arguments(argc, argv, {{"elements", &n, 1, 1 << 28}, {"rounds", &rounds, 1, 10000}});
    if (!program_attribute(cudaDevAttrManagedMemory))
        program_skip("managed", "no managed memory");
    unsigned *numbers;
    CUDA_TRY(cudaMallocManaged(&numbers, n * sizeof *numbers));
    for (long i = 0; i < n; i++)
        numbers[i] = i;

    double start = program_start();
    unsigned added = 0, touched = 0;
    unsigned long long expected_total = 0;
    for (long round = 0; round < rounds; round++) {
        advance<<<program_blocks(n, 256), 256>>>(numbers, n);
        CUDA_TRY(cudaDeviceSynchronize());
        added += step_size;
        for (long i = 0; i < n; i += HOST_STRIDE) {
            expected_total += (unsigned)i + added + touched;
            numbers[i] += 5; // brings each page to the host
        }
        touched += 5;
        step_size++;
    }
    program_stop(start);

    long errors = program_wrong(0, total, expected_total);
    for (size_t i : program_sample(n, 1 << 20))
        errors += program_wrong(i, numbers[i],
                                (unsigned)i + added + (i % HOST_STRIDE ? 0 : touched));
    CUDA_TRY(cudaFree(numbers));
    return program_result("managed", errors);
}
