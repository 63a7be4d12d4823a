// SPDX-License-Identifier: MIT
// A fault in a function inlined into a function inlined into the kernel, and one in a function that is
// called. The script knows the numbers of the lines. clang compiles the first kernel too, without CUDA.
__device__ void put(float *p, long i)
{
    p[i] = 1;
}
__device__ void both(float *p, long i)
{
    put(p, i + 1);
}
__global__ void smooth(float *x)
{
    both(x, 1L << 28);
}
#ifdef __NVCC__
#include <cstdio>

__device__ __noinline__ float get(const float *p, long i)
{
    return p[i];
}
__global__ void called(float *x, long i)
{
    x[0] = get(x, i);
}
int main(int argc, char **)
{
    float *x;
    cudaMalloc(&x, 1024);
    if (argc > 1)
        called<<<1, 1>>>(x, 1L << 28);
    else
        smooth<<<1, 1>>>(x);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    return 0;
}
#endif
