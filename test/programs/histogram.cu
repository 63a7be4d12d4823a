// SPDX-License-Identifier: MIT
// Histogram of bytes twice: atomics on global memory alone, and per block in shared memory first.
#include "program.h"

enum { BINS = 256, THREADS = 256 };

__global__ void count_global(unsigned *bins, const unsigned char *data, int n)
{
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        atomicAdd(&bins[data[i]], 1);
}

__global__ void count_shared(unsigned *bins, const unsigned char *data, int n)
{
    __shared__ unsigned mine[BINS];
    for (int i = threadIdx.x; i < BINS; i += THREADS)
        mine[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        atomicAdd(&mine[data[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += THREADS)
        if (mine[i])
            atomicAdd(&bins[i], mine[i]);
}

int main(int argc, char **argv)
{
    long n = 8000, repeats = 1;
    program_arguments(argc, argv,
                      {{"bytes", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned char> data = program_numbers<unsigned char>(n, 0, BINS - 1, 1);
    std::vector<unsigned> expected(BINS);
    for (unsigned char byte : data)
        expected[byte]++;
    unsigned char *device_data = program_upload(data);
    unsigned *by_global = program_allocate<unsigned>(BINS);
    unsigned *by_shared = program_allocate<unsigned>(BINS);

    unsigned blocks = std::min(program_blocks(n, 4 * THREADS), 1024u);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemset(by_global, 0, BINS * sizeof(unsigned)));
        CUDA_TRY(cudaMemset(by_shared, 0, BINS * sizeof(unsigned)));
        count_global<<<blocks, THREADS>>>(by_global, device_data, n);
        count_shared<<<blocks, THREADS>>>(by_shared, device_data, n);
    }
    program_stop(start);

    long errors = program_compare(program_download(by_global, BINS), expected) +
                  program_compare(program_download(by_shared, BINS), expected);
    program_free(device_data, by_global, by_shared);
    return program_result("histogram", errors);
}
