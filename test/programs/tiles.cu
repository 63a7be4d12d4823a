// SPDX-License-Identifier: MIT
// Cooperative groups inside a block: tiles of 4 and 32, their collectives, coalesced groups.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "program.h"

namespace cg = cooperative_groups;

enum { THREADS = 96, SMALL = 4 };

__global__ void collect(int *small_sums, int *warp_maxima, int *rotated, int *odd_count,
                        const int *in, int n)
{
    __shared__ int stage[THREADS];
    cg::thread_block block = cg::this_thread_block();
    int i = blockIdx.x * THREADS + block.thread_rank(), value = i < n ? in[i] : 0;
    auto warp = cg::tiled_partition<32>(block);
    auto small = cg::tiled_partition<SMALL>(warp);

    int sum = cg::reduce(small, value, cg::plus<int>());
    int maximum = cg::reduce(warp, value, cg::greater<int>());
    if (small.thread_rank() == 0)
        small_sums[i / SMALL] = sum;
    if (warp.thread_rank() == 0)
        warp_maxima[i / 32] = maximum;

    stage[block.thread_rank()] = small.shfl(value, (small.thread_rank() + 1) % SMALL);
    block.sync();
    rotated[i] = stage[THREADS - 1 - block.thread_rank()];

    if (value & 1) {
        cg::coalesced_group odd = cg::coalesced_threads();
        if (odd.thread_rank() == 0)
            atomicAdd(odd_count, (int)odd.size());
    }
}

static long check(const std::vector<int> &in, const std::vector<int> &small_sums,
                  const std::vector<int> &warp_maxima, const std::vector<int> &rotated,
                  int odd_count)
{
    std::vector<int> sums(small_sums.size()), maxima(warp_maxima.size()), expected(rotated.size());
    int odd = 0;
    for (size_t i = 0; i < in.size(); i++) {
        sums[i / SMALL] += in[i];
        maxima[i / 32] = std::max(maxima[i / 32], in[i]);
        odd += in[i] & 1;
    }
    for (size_t i = 0; i < expected.size(); i++) {
        size_t mirror = i / THREADS * THREADS + THREADS - 1 - i % THREADS;
        size_t source = mirror / SMALL * SMALL + (mirror + 1) % SMALL;
        expected[i] = source < in.size() ? in[source] : 0;
    }
    return program_compare(small_sums, sums) + program_compare(warp_maxima, maxima) +
           program_compare(rotated, expected) + program_wrong(0, odd_count, odd);
}

int main(int argc, char **argv)
{
    long n = 2000, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 24}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(n, 0, 1000, 1);
    unsigned blocks = program_blocks(n, THREADS), padded = blocks * THREADS;
    int *device_in = program_upload(in), *rotated = program_allocate<int>(padded);
    int *small_sums = program_allocate<int>(padded / SMALL);
    int *warp_maxima = program_allocate<int>(padded / 32), *odd_count = program_allocate<int>(1);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemset(odd_count, 0, sizeof *odd_count));
        collect<<<blocks, THREADS>>>(small_sums, warp_maxima, rotated, odd_count, device_in, n);
    }
    program_stop(start);

    long errors = check(in, program_download(small_sums, padded / SMALL),
                        program_download(warp_maxima, padded / 32),
                        program_download(rotated, padded), program_download(odd_count, 1)[0]);
    program_free(device_in, small_sums, warp_maxima, rotated, odd_count);
    return program_result("tiles", errors);
}
