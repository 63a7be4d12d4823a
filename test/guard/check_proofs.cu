// SPDX-License-Identifier: MIT
// Launches of which --mode=check proves everything, a part or nothing, each in a program of its own: see
// check_cases.cuh. The twins differ in what a proof has to look at: the size of a buffer, whether it is
// freed, an argument, the shape of the launch, the alignment of a pointer. Every program launches a correct
// kernel with the same scalars first, so that a proof that is remembered must not be used for other buffers.
#include <cmath>
#include <cuda_pipeline.h>
#include <mma.h>

#include "check_cases.cuh"
#include "grid_sync.cuh"

__global__ void scale(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 2;
}

__global__ void all_threads(float *x)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

__global__ void gather(float *to, const float *from, const int *index, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[index[i]];
}

__global__ void tile(float *x, int n)
{
    extern __shared__ float part[];
    part[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[n - 1 - threadIdx.x];
}

// Of the last tile the number of elements comes from shared memory.
__global__ void last_tile(float *x, float *first, int n)
{
    __shared__ int left;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    first[threadIdx.x] = 1;
    if (!threadIdx.x)
        left = n - blockIdx.x * blockDim.x;
    __syncthreads();
    if ((int)threadIdx.x < left)
        x[i] = 1;
}

// Scatters whole tiles, of which launches with few elements have none.
__global__ void whole_tiles(float *to, const int *index, int start, int n)
{
    int begin = (start + blockIdx.x) * 64, i = begin + threadIdx.x;
    if (n - begin >= 64)
        to[index[i]] = 1;
    else if (i < n)
        to[i] = 1;
}

__global__ void four(float4 *to, float f)
{
    to[threadIdx.x] = make_float4(f, f, f, f);
}

// The rows are pairs of floats that are `stride` floats apart.
__global__ void pairs(float *x, int stride)
{
    *(float2 *)&x[threadIdx.x * stride] = make_float2(1, 2);
}

// Which elements it needs depends on a scalar: for most values there are none.
__global__ void window(float *x, int first)
{
    __shared__ float part[64];
    part[first + threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    x[threadIdx.x] = part[first + (threadIdx.x ^ 1)];
}

__global__ void matrix(__half *x, unsigned stride)
{
    nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, __half, nvcuda::wmma::row_major> a;
    nvcuda::wmma::load_matrix_sync(a, x, stride);
    if (a.x[0] == __float2half(17))
        x[0] = a.x[1];
}

__global__ void copy(float4 *to, const float4 *from)
{
    __shared__ float4 part[32];
    __pipeline_memcpy_async(&part[threadIdx.x], &from[threadIdx.x], sizeof *part);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    to[threadIdx.x] = part[threadIdx.x];
}

// The blocks wait for each other at words in the driver's memory, of which no proof speaks.
__global__ void reverse(int *to, int *from, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        from[i] = i;
    grid_sync();
    if (i < n)
        to[i] = from[n - 1 - i];
}

// Two buffers that change their places after each round.
__global__ void rounds(float *in, float *out, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; r++) {
        if (i < n)
            out[i] = in[n - 1 - i];
        __syncthreads();
        float *written = out;
        out = in;
        in = written;
    }
}

__global__ void either(float *x, float *y, const int *which)
{
    (*which ? x : y)[threadIdx.x] = 1;
}

// A number of bytes behind one of two pointers, which a scalar chooses.
__global__ void moved(char *x, char *y, size_t offset, int which)
{
    x[threadIdx.x] = y[threadIdx.x] = 0;
    (which ? x : y)[offset + threadIdx.x] = 1;
}

// The word that the exponent of a number chooses, as in the sine of a large one: of a number below 2 there is
// none.
template <int LEAST> __global__ void word(int *to, const float *from)
{
    __shared__ int part[7];
    if (threadIdx.x < 7)
        part[threadIdx.x] = threadIdx.x;
    __syncthreads();
    float x = from[threadIdx.x];
    if (fabsf(x) < LEAST)
        return;
    unsigned e = (__float_as_uint(x) >> 23 & 255) - 128;
    to[threadIdx.x] = part[6 - (e >> 5)];
}

// A round of a sort: two elements for each thread, at distances from `distance` to 1.
__global__ void merge(int distance)
{
    extern __shared__ int pair[];
    for (unsigned d = distance; d; d /= 2) {
        unsigned i = 2 * threadIdx.x - (threadIdx.x & (d - 1));
        __syncthreads();
        pair[i] = i;
        pair[i + d] = pair[i] + 1;
    }
}

// The same scalars, and a smaller buffer.
static void smaller(bool bad)
{
    float *first = take<float>(256), *second = take<float>(256 - bad);
    scale<<<2, 128>>>(first, 256);
    scale<<<2, 128>>>(second, 256);
    wait();
}

static void freed(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    scale<<<2, 128>>>(x, 256);
    wait();
    if (bad)
        NEED(cudaFree(x));
    scale<<<2, 128>>>(bad ? x : spare, 256);
    wait();
}

static void argument(bool bad)
{
    float *x = take<float>(256);
    scale<<<3, 128>>>(x, 256);
    scale<<<3, 128>>>(x, 256 + bad);
    wait();
}

static void shape(bool bad)
{
    float *x = take<float>(256);
    all_threads<<<2, 128>>>(x);
    all_threads<<<2 + bad, 128>>>(x);
    wait();
}

// A pointer into the buffer: what is left behind it counts.
static void interior(bool bad)
{
    float *x = take<float>(300);
    scale<<<2, 128>>>(x, 256);
    scale<<<2, 128>>>(x + 44 + bad, 256);
    wait();
}

// The index comes from memory: that access is checked, the others are proved.
static void in_part(bool bad)
{
    float *to = take<float>(256), *from = take<float>(100);
    int *index = take<int>(256), far = 100;
    NEED(cudaMemset(index, 0, 256 * sizeof *index));
    gather<<<2, 128>>>(to, from, index, 256);
    wait();
    if (bad)
        NEED(cudaMemcpy(index + 17, &far, sizeof far, cudaMemcpyHostToDevice));
    gather<<<2, 128>>>(to, from, index, 256);
    wait();
}

static void by_memory(bool bad)
{
    float *x = take<float>(300), *first = take<float>(256);
    last_tile<<<2, 256>>>(x, first, 300);
    last_tile<<<2, 256>>>(x, first, 300 + bad);
    wait();
}

static void whole_tile(bool bad)
{
    float *to = take<float>(128);
    int *index = take<int>(128), far = 128;
    NEED(cudaMemset(index, 0, 128 * sizeof *index));
    whole_tiles<<<2, 64>>>(to, index, 0, 128);
    wait();
    if (bad)
        NEED(cudaMemcpy(index + 17, &far, sizeof far, cudaMemcpyHostToDevice));
    whole_tiles<<<2, 64>>>(to, index, 0, 128);
    wait();
}

static void shared_bytes(bool bad)
{
    float *x = take<float>(128);
    tile<<<1, 128, 512>>>(x, 128);
    tile<<<1, 128, 512 - 4 * bad>>>(x, 128);
    wait();
}

static void misaligned(bool bad)
{
    float *x = take<float>(132);
    four<<<1, 32>>>((float4 *)x, 1);
    four<<<1, 32>>>((float4 *)(x + (bad ? 1 : 4)), 1);
    wait();
}

// Whether an address is aligned depends on a scalar.
static void stride(bool bad)
{
    float *x = take<float>(128);
    pairs<<<1, 32>>>(x, 4);
    pairs<<<1, 32>>>(x, 2 + bad);
    wait();
}

// The same for a root that is not aligned, by the same distance in every row.
static void misplaced(bool bad)
{
    float *x = take<float>(132);
    pairs<<<1, 32>>>(x, 4);
    pairs<<<1, 32>>>(x + 2 - bad, 4);
    wait();
}

static void by_scalar(bool bad)
{
    float *x = take<float>(32);
    window<<<1, 32>>>(x, 0);
    window<<<1, 32>>>(x, 32 + bad);
    wait();
}

static void whole(bool bad)
{
    __half *x = take<__half>(512 - bad * 16 - bad);
    matrix<<<1, 32>>>(x, 16);
    matrix<<<1, 32>>>(x, 32);
    wait();
}

static void copied(bool bad)
{
    float4 *x = take<float4>(32), *y = take<float4>(32 - bad);
    copy<<<1, 32>>>(y, x);
    copy<<<1, 32>>>(x, y);
    wait();
}

static void grid(bool bad)
{
    int *x = take<int>(256), *y = take<int>(256 - bad), n = 256;
    void *arguments[] = {&x, &y, &n}, *again[] = {&y, &x, &n};
    NEED(cudaLaunchCooperativeKernel(reverse, 2, 128, again));
    NEED(cudaLaunchCooperativeKernel(reverse, 2, 128, arguments));
    wait();
}

// More dynamic shared memory than a kernel has without an attribute, which variants must have too.
static void attribute(bool bad)
{
    float *x = take<float>(128 - bad);
    NEED(cudaFuncSetAttribute(tile, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
    tile<<<1, 128, 100 << 10>>>(x, 128);
    wait();
}

static void swapped(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256), *z = take<float>(256 - bad);
    rounds<<<2, 128>>>(x, y, 256, 7);
    rounds<<<2, 128>>>(x, z, 256, 7);
    wait();
}

static void chosen(bool bad)
{
    float *x = take<float>(128), *y = take<float>(128), *z = take<float>(128 - bad);
    int *which = take<int>(1);
    NEED(cudaMemset(which, 0, sizeof *which));
    either<<<1, 128>>>(x, y, which);
    either<<<1, 128>>>(x, z, which);
    wait();
}

static void behind(bool bad)
{
    char *x = take<char>(512), *y = take<char>(512);
    moved<<<1, 128>>>(x, y, 256, 1);
    moved<<<1, 128>>>(x, y, 384 + bad, 1);
    wait();
}

static void exponent(bool bad)
{
    const float numbers[] = {1.5f, -1.5f, 2, -3, 1e5f, -3e38f, INFINITY, -NAN, 0, 1e-40f, -1, 7};
    float *x = take<float>(12);
    int *to = take<int>(12);
    NEED(cudaMemcpy(x, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    word<2><<<1, 12>>>(to, x);
    (bad ? word<1> : word<2>)<<<1, 12>>>(to, x);
    wait();
}

// The greatest distance needs one more element than there is, or is no power of 2.
static void distance(bool bad)
{
    merge<<<1, 64, 512>>>(32);
    merge<<<1, 64, 512 - 4 * bad>>>(64);
    wait();
}

static void odd_distance(bool bad)
{
    merge<<<1, 64, 512>>>(64);
    merge<<<1, 64, 512>>>(bad ? 65 : 16);
    wait();
}

// What the correct twin's launches are: "N M", N proved and M proved in part, is behind the types.
static const struct check_case cases[] = {
    {"smaller", smaller, "heap-buffer-overflow 2 0"},
    {"freed", freed, "heap-use-after-free 2 0"},
    {"argument", argument, "heap-buffer-overflow 2 0"},
    {"shape", shape, "heap-buffer-overflow 2 0"},
    {"interior", interior, "heap-buffer-overflow 2 0"},
    {"in_part", in_part, "heap-buffer-overflow 0 2"},
    {"by_memory", by_memory, "heap-buffer-overflow 0 2"},
    {"whole_tile", whole_tile, "heap-buffer-overflow 0 2"},
    {"shared_bytes", shared_bytes, "shared-buffer-overflow 2 0"},
    {"misaligned", misaligned, "misaligned-address 2 0"},
    {"stride", stride, "misaligned-address 2 0"},
    {"misplaced", misplaced, "misaligned-address 2 0"},
    {"by_scalar", by_scalar, "shared-buffer-overflow 2 0"},
    {"whole", whole, "heap-buffer-overflow 2 0"},
    {"copied", copied, "heap-buffer-overflow 2 0"},
    {"grid", grid, "heap-buffer-overflow 2 0"},
    {"attribute", attribute, "heap-buffer-overflow 1 0"},
    {"swapped", swapped, "heap-buffer-overflow 2 0"},
    {"chosen", chosen, "heap-buffer-overflow 2 0"},
    {"behind", behind, "heap-buffer-overflow 2 0"},
    {"exponent", exponent, "shared-buffer-overflow 2 0"},
    {"distance", distance, "shared-buffer-overflow 2 0"},
    {"odd_distance", odd_distance, "shared-buffer-overflow 2 0"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
