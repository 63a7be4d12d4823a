// SPDX-License-Identifier: MIT
// Host memory that kernels use in place: allocated as mapped, and ordinary memory registered later.
#include "program.h"

__global__ void add(unsigned *sum, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += in[i];
}

int main(int argc, char **argv)
{
    long n = 3000, repeats = 2;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 26}, {"repeats", &repeats, 1, 100000}});
    if (!program_attribute(cudaDevAttrCanMapHostMemory))
        program_skip("zero_copy", "no mapped host memory");
    size_t bytes = n * sizeof(unsigned);
    std::vector<unsigned> sum(n), in = program_numbers<unsigned>(n, 0, 1 << 20, 1);
    unsigned *mapped, *device_mapped, *device_sum;
    CUDA_TRY(cudaHostAlloc(&mapped, bytes, cudaHostAllocMapped));
    memcpy(mapped, in.data(), bytes);
    CUDA_TRY(cudaHostRegister(sum.data(), bytes, cudaHostRegisterMapped));
    CUDA_TRY(cudaHostGetDevicePointer(&device_mapped, mapped, 0));
    CUDA_TRY(cudaHostGetDevicePointer(&device_sum, sum.data(), 0));

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        add<<<program_blocks(n, 256), 256>>>(device_sum, device_mapped, n);
    program_stop(start);

    CUDA_TRY(cudaHostUnregister(sum.data()));
    CUDA_TRY(cudaFreeHost(mapped));
    long errors = 0;
    for (long i = 0; i < n; i++)
        errors += program_wrong(i, sum[i], in[i] * (unsigned)repeats);
    return program_result("zero_copy", errors);
}
