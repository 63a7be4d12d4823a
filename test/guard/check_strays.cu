// SPDX-License-Identifier: MIT
// Accesses of memory that moat does not know, each case in a program of its own: see check_cases.cuh. The
// pointer is in no buffer when the kernel gets it.
#include "check_cases.cuh"
#include "grid_sync.cuh"

__global__ void store(float *x)
{
    *x = 1;
}

#ifdef MORE
__global__ void together(float *x, int n)
{
    grid_sync();
    if (threadIdx.x < n)
        x[threadIdx.x] = 1;
}

// Other kernels may get what this one has made.
__global__ void take_some(float **out)
{
    *out = (float *)malloc(16);
}
#endif

// Behind what the driver has placed, in the same page.
static void managed(bool bad)
{
    float *x;
    NEED(cudaMallocManaged(&x, 1000));
    store<<<1, 1>>>(bad ? x + 300 : x);
    wait();
}

// Behind what moat has placed, in the same mapping.
static void pool(bool bad)
{
    float *x;
    NEED(cudaMallocAsync(&x, 1000, 0));
    wait();
    store<<<1, 1>>>(bad ? x + 100000 : x);
    wait();
}

#ifdef MORE
// The workspace of a cooperative launch is nobody's either.
static void workspace(bool bad)
{
    float *x = take<float>(32);
    int n = 32 + bad;
    void *arguments[] = {&x, &n};
    NEED(cudaLaunchCooperativeKernel((void *)together, dim3(2), dim3(64), arguments, 0, 0));
    wait();
}
#endif

static const struct check_case cases[] = {
    {"managed", managed, "wild-access"},
    {"pool", pool, "wild-access"},
#ifdef MORE
    {"workspace", workspace, "heap-buffer-overflow"},
#endif
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
