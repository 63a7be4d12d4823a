// SPDX-License-Identifier: MIT
// A sum finished by whichever block comes last: fences, a ticket counter, data read across blocks.
#include "program.h"

enum { THREADS = 128 };

__device__ unsigned tickets;

__device__ unsigned long long add_block(unsigned long long *lanes, unsigned long long mine)
{
    lanes[threadIdx.x] = mine;
    for (int width = THREADS / 2; width > 0; width /= 2) {
        __syncthreads();
        if (threadIdx.x < width)
            lanes[threadIdx.x] += lanes[threadIdx.x + width];
    }
    __syncthreads();
    return lanes[0];
}

// tickets wraps back to zero by itself, ready for the next launch.
__global__ void add_up(unsigned long long *total, volatile unsigned long long *partials,
                       const unsigned *in, int n)
{
    __shared__ unsigned long long lanes[THREADS];
    __shared__ bool last;
    unsigned long long sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        sum += in[i];
    sum = add_block(lanes, sum);
    if (threadIdx.x == 0) {
        partials[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(&tickets, gridDim.x - 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (!last)
        return;
    sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += THREADS)
        sum += partials[i];
    sum = add_block(lanes, sum);
    if (threadIdx.x == 0)
        *total = sum;
}

int main(int argc, char **argv)
{
    long n = 8000, blocks = 12, repeats = 2;
    program_arguments(argc, argv, {{"elements", &n, 1, 1 << 28}, {"blocks", &blocks, 1, 65535},
                                   {"repeats", &repeats, 1, 1000000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1);
    unsigned *device_in = program_upload(in);
    unsigned long long *partials = program_allocate<unsigned long long>(blocks);
    unsigned long long *total = program_allocate<unsigned long long>(1), expected = 0;

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        add_up<<<blocks, THREADS>>>(total, partials, device_in, n);
    program_stop(start);

    unsigned long long sum = program_download(total, 1)[0];
    program_free(device_in, partials, total);
    for (unsigned number : in)
        expected += number;
    return program_result("last_block", program_wrong(0, sum, expected));
}
