// SPDX-License-Identifier: MIT
// Exclusive prefix sum of any length: up and down sweeps in shared memory, levels of launches.
#include "program.h"

enum { THREADS = 128, CHUNK = 2 * THREADS };

// Scans each chunk of data in place and leaves its total in totals.
__global__ void scan_chunks(unsigned *data, unsigned *totals, int n)
{
    __shared__ unsigned sums[CHUNK];
    int t = threadIdx.x, first = blockIdx.x * CHUNK;
    for (int i = t; i < CHUNK; i += THREADS)
        sums[i] = first + i < n ? data[first + i] : 0;
    for (int width = 1; width < CHUNK; width *= 2) {
        __syncthreads();
        int right = (t + 1) * 2 * width - 1;
        if (right < CHUNK)
            sums[right] += sums[right - width];
    }
    if (t == 0) {
        // The thread that adds up the last pair is this one: no barrier is needed.
        totals[blockIdx.x] = sums[CHUNK - 1];
        sums[CHUNK - 1] = 0;
    }
    for (int width = THREADS; width > 0; width /= 2) {
        __syncthreads();
        int right = (t + 1) * 2 * width - 1;
        if (right < CHUNK) {
            unsigned left_sum = sums[right - width];
            sums[right - width] = sums[right];
            sums[right] += left_sum;
        }
    }
    __syncthreads();
    for (int i = t; i < CHUNK; i += THREADS)
        if (first + i < n)
            data[first + i] = sums[i];
}

__global__ void add_offsets(unsigned *data, const unsigned *offsets, int n)
{
    int i = blockIdx.x * CHUNK + threadIdx.x;
    for (int end = min(n, ((int)blockIdx.x + 1) * CHUNK); i < end; i += THREADS)
        data[i] += offsets[blockIdx.x];
}

// levels[0] is the data, levels[k + 1] has one total for each chunk of levels[k].
static void scan(const std::vector<unsigned *> &levels, const std::vector<long> &sizes)
{
    int depth = (int)levels.size() - 1;
    for (int k = 0; k < depth; k++)
        scan_chunks<<<sizes[k + 1], THREADS>>>(levels[k], levels[k + 1], sizes[k]);
    for (int k = depth - 2; k >= 0; k--)
        add_offsets<<<sizes[k + 1], THREADS>>>(levels[k], levels[k + 1], sizes[k]);
}

int main(int argc, char **argv)
{
    long n = 6000, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1), expected(n);
    for (long i = 1; i < n; i++)
        expected[i] = expected[i - 1] + in[i - 1];
    unsigned *device_in = program_upload(in);
    std::vector<unsigned *> levels(1, program_allocate<unsigned>(n));
    std::vector<long> sizes(1, n);
    do {
        sizes.push_back(program_blocks(sizes.back(), CHUNK));
        levels.push_back(program_allocate<unsigned>(sizes.back()));
    } while (sizes.back() > 1);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemcpy(levels[0], device_in, n * sizeof(unsigned), cudaMemcpyDeviceToDevice));
        scan(levels, sizes);
    }
    program_stop(start);

    std::vector<unsigned> out = program_download(levels[0], n);
    program_free(device_in);
    for (unsigned *level : levels)
        program_free(level);
    return program_result("scan", program_compare(out, expected));
}
