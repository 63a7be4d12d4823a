// SPDX-License-Identifier: MIT
// bugs read|write|freed|shared|copy: makes one of the errors that doc/using.md shows, or none without a word.
#include <cstdio>
#include <cstring>

enum { N = 1000, BLOCK = 256 };

// x has n elements.
__global__ void smooth(const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = (x[i] + x[i + 1]) / 2;
}

__global__ void scale(float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i <= n)
        x[i] = factor * i;
}

__global__ void sums(float *x, int width)
{
    __shared__ float row[32], total[32];
    int i = threadIdx.x;
    total[i] = 0;
    if (i < width)
        row[i] = x[i];
    __syncthreads();
    for (int k = 0; k < width; k++)
        total[i] += row[k];
    x[i] = total[i];
}

int main(int argc, char **argv)
{
    const char *bug = argc > 1 ? argv[1] : "";
    float *x, *y, host[N + 1] = {};
    int blocks = (N + BLOCK - 1) / BLOCK;
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, N * sizeof(float));
    cudaMemcpy(x, host, strcmp(bug, "copy") ? N * sizeof(float) : sizeof host, cudaMemcpyHostToDevice);
    smooth<<<blocks, BLOCK>>>(x, y, strcmp(bug, "read") ? N - 1 : N);
    scale<<<blocks, BLOCK>>>(y, 2, strcmp(bug, "write") ? N - 1 : N);
    sums<<<1, 32>>>(x, strcmp(bug, "shared") ? 32 : 33);
    if (strcmp(bug, "freed") == 0) {
        cudaFree(y);
        scale<<<blocks, BLOCK>>>(y, 2, N - 1);
    }
    cudaDeviceSynchronize();
    puts("done");
    return 0;
}
