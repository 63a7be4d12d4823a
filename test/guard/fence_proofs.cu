// SPDX-License-Identifier: MIT
// Launches that a proof shows to stay in the partition, or not. fence_proofs CASE prints the error.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

#include "grid_sync.cuh"

enum { N = 1000 };

__global__ void fill(int *p, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i] = i;
}

// The proof knows no value from memory.
__global__ void follow(int **pp, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        (*pp)[i] = i;
}

__global__ void shared(int *p, int n)
{
    __shared__ int s[256];
    s[threadIdx.x * n & 1023] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x];
}

__global__ void stop(int *p, int n)
{
    if (threadIdx.x == n)
        asm volatile("trap;");
    p[threadIdx.x] = n;
}

// A proof may bound all accesses but one, and they share a pointer with it.
__global__ void gather(int *p, int n)
{
    int *own = p + threadIdx.x;
    if (threadIdx.x < n) {
        own[256] = own[(long)own[0] * 64];
        own[512] = 1;
    }
}

// The words by which the blocks wait for each other are not the program's.
__global__ void together(int *p, int n)
{
    int *own = p + blockIdx.x * blockDim.x + threadIdx.x;
    own[300] = n;
    grid_sync();
    own[(long)p[299] * 64] = own[300];
}

__device__ int table[64];

__global__ void variable(int *p, int n)
{
    for (int i = 0; i < n; i++)
        table[i] = p[i];
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int *p, **pp, *managed;
    cudaMalloc(&p, N * sizeof *p);
    cudaMalloc(&pp, sizeof p);
    cudaMallocManaged(&managed, N * sizeof *p);
    cudaMemset(p, 0, N * sizeof *p);
    cudaMemcpy(pp, &p, sizeof p, cudaMemcpyHostToDevice);
    if (!strcmp(what, "right") || !strcmp(what, "twice"))
        fill<<<4, 256>>>(p, N);
    if (!strcmp(what, "far") || !strcmp(what, "twice"))
        fill<<<1, 256>>>(p + (1ll << 40), N);
    if (!strcmp(what, "misaligned"))
        fill<<<4, 256>>>((int *)((char *)p + 2), 16);
    if (!strcmp(what, "managed") || !strcmp(what, "managed_freed"))
        fill<<<4, 256>>>(managed, N);
    if (!strcmp(what, "managed_past"))
        fill<<<4, 256>>>(managed, N + 1);
    if (!strcmp(what, "managed_freed")) {
        fill<<<4, 256>>>(managed, N);
        fill<<<4, 256>>>(managed, N);
        cudaFree(managed);
        fill<<<4, 256>>>(managed, N);
    }
    if (!strcmp(what, "pinned")) {
        cudaMallocHost(&managed, N * sizeof *p);
        fill<<<4, 256>>>(managed, N);
    }
    if (!strcmp(what, "follow"))
        follow<<<4, 256>>>(pp, N);
    if (!strcmp(what, "shared_right"))
        shared<<<1, 256>>>(p, 1);
    if (!strcmp(what, "shared_wrong"))
        shared<<<1, 256>>>(p, 4);
    if (!strcmp(what, "stop"))
        stop<<<1, 256>>>(p, 1000);
    if (!strncmp(what, "gather", 6)) {
        int index = strcmp(what, "gather_wrong") ? 1 : 1 << 29;
        cudaMemcpy(p + 5, &index, sizeof index, cudaMemcpyHostToDevice);
        gather<<<1, 256>>>(strcmp(what, "gather_far") ? p : p + (1ll << 40), 200);
    }
    if (!strncmp(what, "together", 8)) {
        int index = strcmp(what, "together_wrong") ? 1 : 1 << 29, n = 7;
        void *arguments[] = {&p, &n};
        cudaMemcpy(p + 299, &index, sizeof index, cudaMemcpyHostToDevice);
        if (strcmp(what, "together_alone"))
            cudaLaunchCooperativeKernel((void *)together, 2, 32, arguments, 0, 0);
        else
            together<<<2, 32>>>(p, n);
    }
    if (!strcmp(what, "variable_right"))
        variable<<<1, 1>>>(p, 64);
    if (!strcmp(what, "variable_wrong"))
        variable<<<1, 1>>>(p, 65);
    int error = cudaDeviceSynchronize(), first = -1;
    cudaGetLastError();
    if (!error && !strcmp(what, "right"))
        cudaMemcpy(&first, p + 999, sizeof first, cudaMemcpyDeviceToHost);
    printf("error %d, value %d\n", error, first);
    return 0;
}
