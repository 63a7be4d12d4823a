// SPDX-License-Identifier: MIT
// Counts the solutions of the n queens problem by recursion: a deep call stack for each thread.
#include "program.h"

enum { SMALLEST = 4, LARGEST = 17, PREFIX = 4 };
static const unsigned long long solutions[LARGEST - SMALLEST + 1] = {
    2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184, 14772512, 95815104};

// Bits are columns: taken, and attacked along the two diagonals, as seen from the next row.
__host__ __device__ __noinline__ unsigned place(unsigned columns, unsigned falling, unsigned rising,
                                                unsigned full)
{
    if (columns == full)
        return 1;
    unsigned count = 0;
    for (unsigned open = full & ~(columns | falling | rising), bit; open; open ^= bit) {
        bit = open & (0u - open);
        count += place(columns | bit, (falling | bit) << 1, (rising | bit) >> 1, full);
    }
    return count;
}

// The digits of prefix, in base n, are the columns of the queens in the first rows.
__host__ __device__ unsigned place_after(int prefix, int n)
{
    unsigned columns = 0, falling = 0, rising = 0;
    for (int row = 0; row < PREFIX; row++, prefix /= n) {
        unsigned bit = 1u << prefix % n;
        if ((columns | falling | rising) & bit)
            return 0;
        columns |= bit;
        falling = (falling | bit) << 1;
        rising = (rising | bit) >> 1;
    }
    return place(columns, falling, rising, (1u << n) - 1);
}

__global__ void count_all(unsigned *counts, int n, int prefixes)
{
    int prefix = blockIdx.x * blockDim.x + threadIdx.x;
    if (prefix < prefixes)
        counts[prefix] = place_after(prefix, n);
}

int main(int argc, char **argv)
{
    long n = 7, repeats = 1;
    program_arguments(argc, argv, {{"queens", &n, SMALLEST, LARGEST},
                                   {"repeats", &repeats, 1, 10000}});
    long prefixes = n * n * n * n;
    CUDA_TRY(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    unsigned *device_counts = program_allocate<unsigned>(prefixes);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        count_all<<<program_blocks(prefixes, 128), 128>>>(device_counts, n, prefixes);
    program_stop(start);

    std::vector<unsigned> counts = program_download(device_counts, prefixes);
    program_free(device_counts);
    unsigned long long total = 0;
    for (unsigned count : counts)
        total += count;
    long errors = program_wrong(0, total, solutions[n - SMALLEST]);
    for (size_t i : program_sample(prefixes, 512))
        errors += program_wrong(i, counts[i], place_after(i, n));
    return program_result("recursion", errors);
}
