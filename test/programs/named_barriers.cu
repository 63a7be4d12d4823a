// SPDX-License-Identifier: MIT
// A producer and a consumer warp with two shared buffers between them and numbered block barriers.
#include "program.h"

enum { LANES = 32, BOTH = 2 * LANES, FILLED = 1, EMPTIED = 3 };

__device__ void barrier_arrive(int barrier)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(BOTH) : "memory");
}

__device__ void barrier_wait(int barrier)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(BOTH) : "memory");
}

__device__ void produce(unsigned (*buffers)[LANES], const unsigned *in, int turns)
{
    int lane = threadIdx.x;
    for (int turn = 0; turn < turns; turn++) {
        if (turn >= 2)
            barrier_wait(EMPTIED + turn % 2);
        buffers[turn % 2][lane] = in[turn * LANES + lane] * 3;
        barrier_arrive(FILLED + turn % 2);
    }
}

__device__ void consume(unsigned *out, unsigned (*buffers)[LANES], int turns)
{
    int lane = threadIdx.x - LANES;
    unsigned sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        barrier_wait(FILLED + turn % 2);
        sum += buffers[turn % 2][LANES - 1 - lane];
        out[turn * LANES + lane] = sum;
        if (turn + 2 < turns)
            barrier_arrive(EMPTIED + turn % 2);
    }
}

__global__ void stream(unsigned *out, const unsigned *in, int turns)
{
    __shared__ unsigned buffers[2][LANES];
    size_t first = (size_t)blockIdx.x * turns * LANES;
    if (threadIdx.x < LANES)
        produce(buffers, in + first, turns);
    else
        consume(out + first, buffers, turns);
}

int main(int argc, char **argv)
{
    long blocks = 4, turns = 10, repeats = 1;
    program_arguments(argc, argv, {{"blocks", &blocks, 1, 1 << 16}, {"turns", &turns, 1, 1 << 16},
                                   {"repeats", &repeats, 1, 100000}});
    size_t count = (size_t)blocks * turns * LANES;
    std::vector<unsigned> in = program_numbers<unsigned>(count, 0, 1 << 30, 1), expected(count);
    for (size_t i = 0; i < count; i++) {
        size_t mirror = i / LANES * LANES + LANES - 1 - i % LANES;
        bool first_turn = i / LANES % turns == 0;
        expected[i] = in[mirror] * 3 + (first_turn ? 0 : expected[i - LANES]);
    }
    unsigned *device_in = program_upload(in), *device_out = program_allocate<unsigned>(count);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        stream<<<blocks, BOTH>>>(device_out, device_in, turns);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, count);
    program_free(device_in, device_out);
    return program_result("named_barriers", program_compare(out, expected));
}
