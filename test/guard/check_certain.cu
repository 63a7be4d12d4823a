// SPDX-License-Identifier: MIT
// Errors that the arguments of a launch decide, each in a program of its own: see check_cases.cuh. The column
// behind the type is the thread that the report names.
#include "check_cases.cuh"

__global__ void row(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] = 1;
}

__global__ void plane(float *x, int pitch)
{
    int at = (blockIdx.y * blockDim.y + threadIdx.y) * pitch + blockIdx.x * blockDim.x + threadIdx.x;
    x[at] = 1;
}

__global__ void backwards(float *x, int last)
{
    x[last - (int)(blockIdx.x * blockDim.x + threadIdx.x)] = 1;
}

__global__ void part(int last)
{
    __shared__ int all[64];
    all[last - threadIdx.x] = 1;
    __syncthreads();
    if (all[threadIdx.x] == 2)
        printf("never\n");
}

// What memory contains decides whether it comes that far.
__global__ void perhaps(float *x, const int *wanted)
{
    if (*wanted)
        x[threadIdx.x + 1] = 1;
}

static void launched(void)
{
    printf("launched\n");
    fflush(stdout);
}

static void behind(bool bad)
{
    float *x = take<float>(1000);
    row<<<8, 128>>>(x, 1000 + 3 * bad);
    launched();
    wait();
}

static void below(bool bad)
{
    float *x = take<float>(4 * 64);
    plane<<<dim3(4, 2), dim3(16, 2 + bad)>>>(x, 64);
    launched();
    wait();
}

static void before(bool bad)
{
    float *x = take<float>(256);
    backwards<<<2, 128>>>(x, 255 - bad);
    launched();
    wait();
}

static void shared(bool bad)
{
    part<<<1, 64>>>(63 + bad);
    launched();
    wait();
}

static void freed(bool bad)
{
    float *x = take<float>(256);
    if (bad)
        NEED(cudaFree(x));
    row<<<2, 128>>>(x, 256);
    launched();
    wait();
}

static void null(bool bad)
{
    float *x = take<float>(256);
    row<<<2, 128>>>(bad ? nullptr : x, 256);
    launched();
    wait();
}

static void reused(bool bad)
{
    float *x = take<float>(1000);
    for (int i = 0; i < 3; i++)
        row<<<8, 128>>>(x, 1000 + bad);
    launched();
    wait();
}

// Memory that the program frees in the order of a stream: a kernel of another one may be ahead of it.
static void ordered(bool bad)
{
    float *x, *other = take<float>(256);
    NEED(cudaMallocAsync(&x, 256 * sizeof *x, 0));
    wait();
    if (bad)
        NEED(cudaFreeAsync(x, 0));
    row<<<2, 128>>>(bad ? x : other, 256);
    wait();
}

static void conditional(bool bad)
{
    int one = bad, *wanted = take<int>(1);
    float *x = take<float>(64);
    NEED(cudaMemcpy(wanted, &one, sizeof one, cudaMemcpyHostToDevice));
    perhaps<<<1, 64>>>(x, wanted);
    wait();
}

static const struct check_case cases[] = {
    {"behind", behind, "heap-buffer-overflow (104,0,0) (7,0,0)"},
    {"below", below, "heap-buffer-overflow (0,1,0) (0,1,0)"},
    {"before", before, "heap-buffer-underflow (127,0,0) (1,0,0)"},
    {"shared", shared, "shared-buffer-overflow (0,0,0) (0,0,0)"},
    {"freed", freed, "heap-use-after-free (0,0,0) (0,0,0)"},
    {"null", null, "null-dereference (0,0,0) (0,0,0)"},
    {"reused", reused, "heap-buffer-overflow (104,0,0) (7,0,0)"},
    // Left to the kernel.
    {"ordered", ordered, "heap-use-after-free"},
    {"conditional", conditional, "heap-buffer-overflow"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
