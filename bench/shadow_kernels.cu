// SPDX-License-Identifier: MIT
// Eight small kernels of different habits, and six that read from one level of the memory (the first cache,
// the second, or behind both) as fast as they can (_bw) or each address from the one before (_lat), for
// bench/shadow-gpu.sh: prints a line "NAME MICROSECONDS" for each, the least time of several launches.
// shadow_kernels [REPEATS [SHIFT]]: sizes are divided by 2^SHIFT.
#include <cstdio>
#include <cstdlib>
#include <cstdint>

#define NEED(call) need((call), #call)
static void need(cudaError_t r, const char *call)
{
    if (r != cudaSuccess) {
        fprintf(stderr, "%s: %s\n", call, cudaGetErrorString(r));
        exit(1);
    }
}

__global__ void fill(float *a, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        a[i] = float(i % 1000) * 0.001f;
}

__global__ void links(uint32_t *a, size_t n)
{
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        a[i] = uint32_t((i * 2654435761u + 12345) % n);
}

__global__ void triad(const float *a, const float *b, float *c, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + 3 * b[i];
}

__global__ void stencil(const float *in, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1)
        return;
    float s = 0;
#pragma unroll
    for (int dy = -1; dy <= 1; dy++)
#pragma unroll
        for (int dx = -1; dx <= 1; dx++)
            s += in[(size_t)(y + dy) * w + x + dx];
    out[(size_t)y * w + x] = s / 9;
}

__global__ void matmul_naive(const float *a, const float *b, float *c, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float s = 0;
    for (int k = 0; k < n; k++)
        s += a[y * n + k] * b[k * n + x];
    c[y * n + x] = s;
}

__global__ void matmul_tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float s[16][16], t[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    float sum = 0;
    for (int k = 0; k < n; k += 16) {
        s[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < 16; i++)
            sum += s[threadIdx.y][i] * t[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

__global__ void gather(const uint32_t *index, const float *from, float *to, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[index[i]];
}

__global__ void chase(const uint32_t *next, uint32_t *to, int steps, uint32_t n)
{
    uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * 977 % n;
    for (int i = 0; i < steps; i++)
        at = next[at];
    to[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

__global__ void histogram(const uint32_t *from, uint32_t *bins, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[from[i] & 1023], 1);
}

__global__ void vectors(const float4 *a, float4 *c, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = a[i];
        c[i] = make_float4(v.x * 2, v.y * 2, v.z * 2, v.w * 2);
    }
}

// Each block reads its own `words` of memory over and over, or, if `shared`, all read the same ones.
__global__ void read_often(const uint32_t *from, uint32_t *to, uint32_t words, int rounds, bool shared)
{
    const uint32_t *at = from + (shared ? 0 : (size_t)blockIdx.x * words);
    uint32_t sum = 0;
    for (int r = 0; r < rounds; r++)
        for (uint32_t i = threadIdx.x; i < words; i += blockDim.x)
            sum += at[shared ? (i + blockIdx.x * 1024) % words : i];
    to[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Every 32nd word leads 32 words on, so that each step needs another line.
__global__ void ring(uint32_t *a, uint32_t words)
{
    for (uint32_t i = threadIdx.x * 32; i < words; i += blockDim.x * 32)
        a[i] = (i + 32) % words;
}

__global__ void follow(const uint32_t *next, uint32_t *to, int steps, uint32_t at)
{
    for (int i = 0; i < steps; i++)
        at = next[at];
    *to = at;
}

static int repeats = 10;
static cudaEvent_t from, to;

template <typename F> static void measure(const char *name, F launch)
{
    float least = 1e30f, ms;
    for (int i = 0; i <= repeats; i++) {
        NEED(cudaEventRecord(from));
        launch();
        NEED(cudaEventRecord(to));
        NEED(cudaEventSynchronize(to));
        NEED(cudaEventElapsedTime(&ms, from, to));
        if (i && ms < least)
            least = ms;
    }
    printf("%s %.1f\n", name, least * 1000);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        repeats = atoi(argv[1]);
    int shift = argc > 2 ? atoi(argv[2]) : 0, side = 8192 >> shift / 2, m = 1024 >> shift / 2;
    size_t n = (size_t)64 << 20 >> shift;
    float *a, *b, *c;
    uint32_t *index, *bins;
    NEED(cudaMalloc(&a, n * 4));
    NEED(cudaMalloc(&b, n * 4));
    NEED(cudaMalloc(&c, n * 4));
    NEED(cudaMalloc(&index, n * 4));
    NEED(cudaMalloc(&bins, 1024 * 1024 * 4));
    NEED(cudaEventCreate(&from));
    NEED(cudaEventCreate(&to));
    fill<<<1024, 256>>>(a, n);
    fill<<<1024, 256>>>(b, n);
    links<<<1024, 256>>>(index, n);
    unsigned blocks = unsigned(n / 256);
    dim3 tile(16, 16), image(side / 16, side / 16), matrix(m / 16, m / 16);
    measure("triad", [&] { triad<<<blocks, 256>>>(a, b, c, n); });
    measure("stencil", [&] { stencil<<<image, tile>>>(a, c, side, side); });
    measure("matmul_naive", [&] { matmul_naive<<<matrix, tile>>>(a, b, c, m); });
    measure("matmul_tiled", [&] { matmul_tiled<<<matrix, tile>>>(a, b, c, m); });
    measure("gather", [&] { gather<<<blocks, 256>>>(index, a, c, n); });
    measure("chase", [&] { chase<<<64, 256>>>(index, bins, 200, uint32_t(n)); });
    measure("histogram", [&] { histogram<<<blocks, 256>>>(index, bins, n); });
    measure("vectors", [&] { vectors<<<blocks / 4, 256>>>((float4 *)a, (float4 *)c, n / 4); });
    static const struct {
        const char *bandwidth, *latency;
        uint32_t words, ring_words;  // read by each block, or by all; in the ring
        bool shared;
    } levels[] = {{"l1_bw", "l1_lat", 4096, 4096, false},
                  {"l2_bw", "l2_lat", 2 << 20, 2 << 20, true},
                  {"mem_bw", "mem_lat", 128 << 10, 60 << 20, false}};
    for (const auto &l : levels) {
        uint32_t words = l.words >> (l.words > 4096 ? shift : 0),
                 many = l.ring_words >> (shift ? shift + 2 : 0);
        uint32_t count = shift ? 4 : 512;
        measure(l.bandwidth, [&] {
            read_often<<<count, 256>>>((uint32_t *)a, bins, words,
                                       l.shared          ? 1
                                       : l.words == 4096 ? 64
                                                         : 1,
                                       l.shared);
        });
        many = many < 4096 ? 4096 : many;
        ring<<<1, 256>>>((uint32_t *)c, many);
        // Each launch goes on where the last one ended: behind both caches no line is read twice.
        uint32_t steps = shift ? 100 : 4096, launches = 0;
        measure(l.latency,
                [&] { follow<<<1, 1>>>((uint32_t *)c, bins, int(steps), launches++ * steps * 32 % many); });
    }
    NEED(cudaDeviceSynchronize());
    return 0;
}
