// SPDX-License-Identifier: MIT
// check_cold WRONG: scatters numbers, each with a check of its own: some of them out of the buffer.
#include <cstdio>
#include <cstdlib>
enum { STEPS = 20, THREADS = 64 };
__global__ void __launch_bounds__(THREADS) scatter(int *to, const int *at)
{
#pragma unroll
    for (int i = 0; i < STEPS; i++) {
        int where = at[i * THREADS + threadIdx.x];
        __syncwarp();
        to[where] = i + 1;
        __syncwarp();
    }
}
int main(int argc, char **argv)
{
    int *at, *to, host[STEPS * THREADS], wrong = argc > 1 ? atoi(argv[1]) : 0, bad = 0;
    for (int i = 0; i < STEPS * THREADS; i++)
        host[i] = i / THREADS % 7 == 3 && i % THREADS == 5 && wrong ? STEPS * THREADS + i : i;
    cudaMalloc(&at, sizeof host);
    cudaMalloc(&to, sizeof host);
    cudaMemset(to, 0, sizeof host);
    cudaMemcpy(at, host, sizeof host, cudaMemcpyHostToDevice);
    scatter<<<1, THREADS>>>(to, at);
    cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < STEPS * THREADS; i++)
        bad += host[i] != i / THREADS + 1;
    printf("%d left out\n", bad);
    return cudaDeviceSynchronize() != cudaSuccess;
}
