// SPDX-License-Identifier: MIT
// Sum and maximum of an array: warp shuffles, shared memory, then a second launch of one block.
#include "program.h"

enum { THREADS = 256, WARPS = THREADS / 32, BLOCKS = 1024 };

struct partial {
    unsigned long long sum, maximum;
};

__device__ struct partial merge(struct partial a, struct partial b)
{
    return {a.sum + b.sum, max(a.maximum, b.maximum)};
}

__device__ struct partial reduce_warp(struct partial mine)
{
    for (int distance = 16; distance > 0; distance /= 2)
        mine = merge(mine, {__shfl_down_sync(~0u, mine.sum, distance),
                            __shfl_down_sync(~0u, mine.maximum, distance)});
    return mine;
}

// The result is valid in thread 0 only.
__device__ struct partial reduce_block(struct partial mine)
{
    __shared__ struct partial warps[WARPS];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    mine = reduce_warp(mine);
    if (lane == 0)
        warps[warp] = mine;
    __syncthreads();
    if (warp == 0)
        mine = reduce_warp(lane < WARPS ? warps[lane] : partial{0, 0});
    return mine;
}

__global__ void reduce_numbers(struct partial *out, const unsigned *in, int n)
{
    struct partial mine = {0, 0};
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        mine = merge(mine, {in[i], in[i]});
    mine = reduce_block(mine);
    if (threadIdx.x == 0)
        out[blockIdx.x] = mine;
}

__global__ void reduce_partials(struct partial *out, const struct partial *in, int n)
{
    struct partial mine = {0, 0};
    for (int i = threadIdx.x; i < n; i += THREADS)
        mine = merge(mine, in[i]);
    mine = reduce_block(mine);
    if (threadIdx.x == 0)
        *out = mine;
}

int main(int argc, char **argv)
{
    long n = 10000, repeats = 1;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"repeats", &repeats, 1, 1000000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1);
    unsigned *device_in = program_upload(in);
    struct partial *partials = program_allocate<struct partial>(BLOCKS);
    struct partial *total = program_allocate<struct partial>(1);

    int blocks = std::min<int>(program_blocks(n, THREADS), BLOCKS);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        reduce_numbers<<<blocks, THREADS>>>(partials, device_in, n);
        reduce_partials<<<1, THREADS>>>(total, partials, blocks);
    }
    program_stop(start);

    struct partial actual = program_download(total, 1)[0], expected = {0, 0};
    program_free(device_in, partials, total);
    for (unsigned number : in) {
        expected.sum += number;
        expected.maximum = std::max<unsigned long long>(expected.maximum, number);
    }
    return program_result("reduce", program_wrong(0, actual.sum, expected.sum) +
                                        program_wrong(1, actual.maximum, expected.maximum));
}
