// SPDX-License-Identifier: MIT
// Inclusive prefix sum by doubling, in one cooperative launch with a barrier over the whole grid.
#include <cooperative_groups.h>

#include "program.h"

namespace cg = cooperative_groups;

enum { THREADS = 128 };

// Leaves the result in buffers of even or odd number, whichever the last step wrote.
__global__ void scan(unsigned *even, unsigned *odd, int n)
{
    cg::grid_group grid = cg::this_grid();
    unsigned *in = even, *out = odd;
    for (int distance = 1; distance < n; distance *= 2) {
        for (int i = (int)grid.thread_rank(); i < n; i += (int)grid.size())
            out[i] = in[i] + (i >= distance ? in[i - distance] : 0);
        grid.sync();
        unsigned *written = out;
        out = in;
        in = written;
    }
}

int main(int argc, char **argv)
{
    long n = 1000, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 100000}});
    if (!program_attribute(cudaDevAttrCooperativeLaunch))
        program_skip("grid_sync", "no cooperative launch");
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1), expected(in);
    for (long i = 1; i < n; i++)
        expected[i] += expected[i - 1];
    unsigned *device_in = program_upload(in);
    unsigned *buffers[2] = {program_allocate<unsigned>(n), program_allocate<unsigned>(n)};

    int per_processor, count = (int)n, steps = 0;
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_processor, scan, THREADS, 0));
    unsigned resident = per_processor * program_attribute(cudaDevAttrMultiProcessorCount);
    void *arguments[] = {&buffers[0], &buffers[1], &count};
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemcpy(buffers[0], device_in, n * sizeof *device_in,
                            cudaMemcpyDeviceToDevice));
        CUDA_TRY(cudaLaunchCooperativeKernel((void *)scan,
                                             std::min(program_blocks(n, THREADS), resident),
                                             THREADS, arguments, 0, 0));
    }
    program_stop(start);

    while (1L << steps < n)
        steps++;
    std::vector<unsigned> out = program_download(buffers[steps % 2], n);
    program_free(device_in, buffers[0], buffers[1]);
    return program_result("grid_sync", program_compare(out, expected));
}
