// SPDX-License-Identifier: MIT
// check_kernel_heap ROUNDS: one kernel takes memory from malloc, then kernels that are launched after it has
// ended use it, ROUNDS times, and one frees it.
#include <cstdio>
#include <cstdlib>

enum { THREADS = 64, WORDS = 16 };
static __device__ int *blocks[THREADS];

__global__ void take(void)
{
    blocks[threadIdx.x] = (int *)malloc(WORDS * sizeof(int));
    for (int i = 0; i < WORDS; i++)
        blocks[threadIdx.x][i] = 0;
}

__global__ void add(void)
{
    for (int i = 0; i < WORDS; i++)
        blocks[threadIdx.x][i] += i;
}

__global__ void give(int *sum, int rounds)
{
    int all = 0;
    for (int i = 0; i < WORDS; i++)
        all += blocks[threadIdx.x][i];
    atomicAdd(sum, all == rounds * WORDS * (WORDS - 1) / 2);
    free(blocks[threadIdx.x]);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1, *sum, result = 0;
    cudaMalloc(&sum, sizeof *sum);
    cudaMemset(sum, 0, sizeof *sum);
    take<<<1, THREADS>>>();
    cudaDeviceSynchronize();
    for (int i = 0; i < rounds; i++)
        add<<<1, THREADS>>>();
    give<<<1, THREADS>>>(sum, rounds);
    cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost);
    printf("%d of %d right\n", result, THREADS);
    return result != THREADS;
}
