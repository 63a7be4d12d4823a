// SPDX-License-Identifier: MIT
// Allocations and frees ordered by a stream: buffers that live for one round, reused by the next.
#include "program.h"

__global__ void fill(unsigned *out, unsigned seed, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = (i + seed) * 2654435761u;
}

__global__ void add(unsigned *sum, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += in[n - 1 - i];
}

// Sizes change from round to round.
static long round_size(long n, long round)
{
    return std::max(1L, n - round % 5 * (n / 8));
}

int main(int argc, char **argv)
{
    long n = 2000, rounds = 4;
    program_arguments(argc, argv, {{"elements", &n, 1, 1 << 28}, {"rounds", &rounds, 1, 100000}});
    if (!program_attribute(cudaDevAttrMemoryPoolsSupported))
        program_skip("async_alloc", "no memory pools");
    cudaStream_t stream;
    unsigned *sum;
    CUDA_TRY(cudaStreamCreate(&stream));
    CUDA_TRY(cudaMallocAsync(&sum, n * sizeof *sum, stream));
    CUDA_TRY(cudaMemsetAsync(sum, 0, n * sizeof *sum, stream));

    double start = program_start();
    for (long round = 0; round < rounds; round++) {
        long size = round_size(n, round);
        unsigned *scratch, blocks = program_blocks(size, 256);
        CUDA_TRY(cudaMallocAsync(&scratch, size * sizeof *scratch, stream));
        fill<<<blocks, 256, 0, stream>>>(scratch, round, size);
        add<<<blocks, 256, 0, stream>>>(sum, scratch, size);
        CUDA_TRY(cudaFreeAsync(scratch, stream));
    }
    program_stop(start);

    std::vector<unsigned> out(n);
    CUDA_TRY(cudaMemcpyAsync(out.data(), sum, n * sizeof *sum, cudaMemcpyDeviceToHost, stream));
    CUDA_TRY(cudaFreeAsync(sum, stream));
    CUDA_TRY(cudaStreamSynchronize(stream));
    CUDA_TRY(cudaStreamDestroy(stream));
    long errors = 0;
    for (size_t i : program_sample(n, 1 + 10000000 / rounds)) {
        unsigned expected = 0;
        for (long round = 0; round < rounds; round++)
            if ((long)i < round_size(n, round))
                expected += (unsigned)(round_size(n, round) - 1 - i + round) * 2654435761u;
        errors += program_wrong(i, out[i], expected);
    }
    return program_result("async_alloc", errors);
}
