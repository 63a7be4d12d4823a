// SPDX-License-Identifier: MIT
// Kernels for clang's NVPTX back end, compiled without any NVIDIA software: see cuda_words.h.
typedef unsigned long long u64;
typedef float float4_t __attribute__((ext_vector_type(4)));

__device__ static int thread_index()
{
    return blockIdx.x * blockDim.x + threadIdx.x;
}

__constant__ float weights[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
__device__ int counters[64];
__device__ const char message[] = "clang";

__global__ void scale(float *x, float factor, int n)
{
    int i = thread_index();
    if (i < n)
        x[i] *= factor;
}

__global__ void blur(const float *in, float *out, int width, int height)
{
    int x = thread_index() % width, y = thread_index() / width;
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)
                sum += weights[(dy + 1) * 3 + dx + 1] * in[(y + dy) * width + x + dx];
    out[y * width + x] = sum / 16;
}

__global__ void reduce(const int *in, int *out, int n)
{
    __shared__ int partial[256];
    int t = threadIdx.x, sum = 0;
    for (int i = t; i < n; i += 256)
        sum += in[i];
    partial[t] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];
        __syncthreads();
    }
    if (t == 0)
        __nvvm_atom_add_gen_i(out, partial[0]);
}

struct shape {
    double edges[3];
    short kind;
    char name[6];
};

__global__ void volumes(struct shape s, double *out)
{
    switch (s.kind) {
    case 0: out[0] = s.edges[0]; break;
    case 1: out[1] = s.edges[0] * s.edges[1]; break;
    case 2: out[2] = s.edges[0] * s.edges[1] * s.edges[2]; break;
    case 3: out[3] = __builtin_sqrt(s.edges[0]); break;
    case 4: out[4] = s.edges[0] / s.edges[1]; break;
    case 5: out[5] = s.name[s.kind] + message[1]; break;
    default: __builtin_trap();
    }
}

__device__ __attribute__((noinline)) int fibonacci(int n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __attribute__((noinline)) int twice(int x) { return 2 * x; }
__device__ __attribute__((noinline)) int square(int x) { return x * x; }
__device__ int (*const operations[])(int) = {twice, square, fibonacci};

__global__ void apply(int *x, int which)
{
    int i = thread_index();
    x[i] = operations[which % 3](x[i]);
}

__global__ void convert(const double *d, float *f, int *i, u64 *u, signed char *c)
{
    int t = thread_index();
    f[t] = (float)d[t];
    i[t] = (int)d[t];
    u[t] = (u64)f[t];
    c[t] = (signed char)i[t];
    counters[t % 64] = __builtin_popcount((unsigned)i[t]) + __builtin_clz((unsigned)i[t] | 1);
}

__global__ void vectors(float4_t *v, float4_t by)
{
    int t = thread_index();
    v[t] = v[t] * by + by.wzyx;
}

__global__ void stack(int *out, int n)
{
    int local[32];
    for (int i = 0; i < 32; i++)
        local[i] = i * n;
    out[thread_index()] = local[n & 31] + local[(n * 7) & 31];
}
