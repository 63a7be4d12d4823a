// SPDX-License-Identifier: MIT
// Random mistakes in one context, for the tests of --mode=fence.
//
//   fence_mistakes good|bad COUNT SEED
//
// Launches COUNT kernels, each of a random kind and width: by an index into its own buffer, by a pointer that
// it loads, by a function, in a loop, under a condition, in shared and local memory. Wrong ones aim at memory
// of a neighbour, which is allocated through the driver's own library, past moat (FENCE_DRIVER names that
// file; without it there is none in this process), where nothing is, and beside multiples of their width.
// After each the neighbour's memory is compared, and a right kernel computes. Prints how many kernels of each
// kind there were.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <vector>

enum { N = 1 << 14, NEIGHBOUR = 1 << 18, LANES = 32 };

// What a kernel gets: its own buffer, a distance in bytes from there, zeros, and the buffer's address in
// memory.
#define PARAMETERS uint8_t *own, int64_t distance, const uint32_t *zeros, uint8_t *const *pointers

template <class T> __device__ T make(uint32_t v)
{
    T x;
    memset(&x, 0, sizeof x);
    memcpy(&x, &v, sizeof x < 4 ? sizeof x : 4);
    return x;
}

template <class T> __device__ void keep(uint8_t *own, T x)
{
    uint32_t v = 0;
    memcpy(&v, &x, sizeof x < 4 ? sizeof x : 4);
    ((uint32_t *)own)[threadIdx.x] = v + 1;
}

template <class T> __global__ void write(PARAMETERS)
{
    *((T *)(own + distance) + threadIdx.x) = make<T>(0xdeadbeef);
    keep(own, 1);
}

template <class T> __global__ void read(PARAMETERS)
{
    keep(own, *((const T *)(own + distance) + threadIdx.x));
}

template <class T> __global__ void write_loop(PARAMETERS)
{
    T *p = (T *)(own + distance) + threadIdx.x;
    for (uint32_t i = zeros[0]; i < 9; i++, p += 7)
        *p = make<T>(i);
    keep(own, 1);
}

template <class T> __global__ void write_fields(PARAMETERS)
{
    T *p = (T *)(own + distance) + threadIdx.x;
    p[0] = make<T>(1), p[32] = make<T>(2), p[96] = make<T>(3);
    if (!zeros[threadIdx.x])
        p[64] = make<T>(4);
    keep(own, p[zeros[1]]);
}

// The pointer may only be used under the condition, and may be anything.
template <class T> __global__ void write_guarded(PARAMETERS)
{
    T *p = (T *)(own + distance) + threadIdx.x;
    if (zeros[threadIdx.x] == 0 && distance != 1)
        *p = make<T>(5);
    keep(own, 1);
}

template <class T> __global__ void write_loaded(PARAMETERS)
{
    *((T *)(pointers[zeros[2]] + distance) + threadIdx.x) = make<T>(6);
    keep(own, 1);
}

template <class T> __device__ __noinline__ void store(T *p, uint32_t v)
{
    *p = make<T>(v);
}

template <class T> __global__ void write_function(PARAMETERS)
{
    store((T *)(own + distance) + threadIdx.x, 7);
    keep(own, 1);
}

template <class T> __global__ void add(PARAMETERS)
{
    atomicAdd((unsigned *)(own + distance) + threadIdx.x, 8u);
    keep(own, 1);
}

template <class T> __global__ void swap(PARAMETERS)
{
    keep(own, atomicCAS((unsigned long long *)(own + distance) + threadIdx.x, 0ull, 9ull));
}

template <class T> __global__ void shared_write(PARAMETERS)
{
    __shared__ T shared[LANES];
    shared[threadIdx.x] = make<T>(1);
    *((volatile uint8_t *)shared + distance + threadIdx.x * sizeof(T)) = 2;
    *(T *)((uint8_t *)shared + distance + threadIdx.x * sizeof(T)) = make<T>(3);
    __syncthreads();
    keep(own, shared[threadIdx.x ^ zeros[3]]);
}

template <class T> __global__ void shared_read(PARAMETERS)
{
    extern __shared__ uint4 dynamic[];
    T *shared = (T *)dynamic, *p = (T *)((uint8_t *)shared + distance) + threadIdx.x;
    shared[threadIdx.x] = make<T>(1);
    __syncthreads();
    T sum = p[0];
    for (uint32_t i = zeros[4]; i < 3; i++)
        sum = p[i * LANES];
    keep(own, sum);
}

template <class T> __global__ void shared_pair(PARAMETERS)
{
    __shared__ T shared[2 * LANES];
    T *p = (T *)((uint8_t *)shared + distance) + threadIdx.x;
    p[0] = make<T>(1), p[LANES] = make<T>(2);
    __syncthreads();
    keep(own, p[zeros[5]]);
}

template <class T> __global__ void local_write(PARAMETERS)
{
    volatile uint64_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + zeros[6]) % 16] = i;
    a[distance / 8] = 7;
    keep(own, (uint32_t)a[zeros[7] % 16]);
}

enum space { GLOBAL, SHARED, LOCAL };
#define WIDTHS(name, space)                                                                          \
    {                                                                                                \
#name, space,                                                                                \
            {name < uint8_t>, name < uint16_t>, name < uint32_t>, name < uint64_t>, name < uint4> }, \
        {                                                                                            \
            1, 2, 4, 8, 16                                                                           \
        }                                                                                            \
    }
static const struct {
    const char *name;
    enum space space;
    void (*kernel[5])(PARAMETERS);
    unsigned width[5];
} kinds[] = {
    WIDTHS(write, GLOBAL),
    WIDTHS(read, GLOBAL),
    WIDTHS(write_loop, GLOBAL),
    WIDTHS(write_fields, GLOBAL),
    WIDTHS(write_guarded, GLOBAL),
    WIDTHS(write_loaded, GLOBAL),
    WIDTHS(write_function, GLOBAL),
    WIDTHS(shared_write, SHARED),
    WIDTHS(shared_read, SHARED),
    WIDTHS(shared_pair, SHARED),
    {"add", GLOBAL, {add<uint32_t>}, {4}},
    {"swap", GLOBAL, {swap<uint64_t>}, {8}},
    {"local_write", LOCAL, {local_write<uint64_t>}, {8}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static uint64_t state;
static uint64_t random_word()
{
    state += 0x9e3779b97f4a7c15u;
    uint64_t v = (state ^ state >> 30) * 0xbf58476d1ce4e5b9u;
    return (v ^ v >> 27) * 0x94d049bb133111ebu ^ v >> 31;
}

static struct {
    void *library;
    uint64_t base;
    std::vector<uint8_t> before, now;
} neighbour;

template <class F> static F call(const char *name)
{
    return (F)dlsym(neighbour.library, name);
}

static void make_neighbour()
{
    const char *path = getenv("FENCE_DRIVER");
    if (!path || !*path)
        return;
    neighbour.library = dlopen(path, RTLD_NOW);
    if (!neighbour.library ||
        call<int (*)(uint64_t *, size_t)>("cuMemAlloc_v2")(&neighbour.base, NEIGHBOUR)) {
        printf("no neighbour\n");
        exit(2);
    }
    for (size_t i = 0; i < NEIGHBOUR; i++)
        neighbour.before.push_back((uint8_t)random_word());
    neighbour.now.resize(NEIGHBOUR);
    call<int (*)(uint64_t, const void *, size_t)>("cuMemcpyHtoD_v2")(neighbour.base, neighbour.before.data(),
                                                                     NEIGHBOUR);
}

static bool is_intact()
{
    if (!neighbour.library)
        return true;
    auto copy = call<int (*)(void *, uint64_t, size_t)>("cuMemcpyDtoH_v2");
    return !copy(neighbour.now.data(), neighbour.base, NEIGHBOUR) && neighbour.now == neighbour.before;
}

static int64_t wrong_distance(enum space space, uint64_t own, unsigned width)
{
    uint64_t r = random_word();
    bool odd = width > 1 && r % 5 == 0;
    if (odd)
        return 256 + 1 + (int64_t)(random_word() % (width - 1));
    if (space != GLOBAL)
        return (int64_t)(((1u << 16) + random_word() % (1u << 26)) / 16 * 16) *
               (space == SHARED && r & 64 ? -1 : 1);
    switch (r % 4) {
    case 1: return (int64_t)((random_word() & 0x7ffffffffff0) - own);
    case 2: return (int64_t)(random_word() % 4096 / 16 * 16 - own);
    default:
        if (!neighbour.library)
            return (1ll << 36) + (int64_t)(random_word() % (1ull << 34) / 16 * 16);
        return (int64_t)(neighbour.base + random_word() % (NEIGHBOUR / 2) / 16 * 16 - own);
    }
}

int main(int argc, char **argv)
{
    bool bad = argc == 4 && !strcmp(argv[1], "bad");
    if (argc != 4 || (!bad && strcmp(argv[1], "good"))) {
        fprintf(stderr, "usage: fence_mistakes good|bad COUNT SEED\n");
        return 2;
    }
    uint8_t *own, **pointers;
    uint32_t *zeros, host[LANES], counts[KINDS] = {0};
    state = strtoull(argv[3], NULL, 0);
    cudaMalloc(&own, N);
    cudaMalloc(&pointers, 256);
    cudaMalloc(&zeros, 4096);
    cudaMemset(zeros, 0, 4096);
    cudaMemcpy(pointers, &own, sizeof own, cudaMemcpyHostToDevice);
    make_neighbour();
    for (int i = 0, count = atoi(argv[2]); i < count; i++) {
        unsigned k = random_word() % KINDS, w = random_word() % 5;
        w = kinds[k].kernel[w] ? w : 0;
        int64_t wrong = wrong_distance(kinds[k].space, (uint64_t)own, kinds[k].width[w]);
        int64_t distance = bad ? wrong : kinds[k].space == GLOBAL ? 1024 : 0;
        kinds[k].kernel[w]<<<1 + i % 3, LANES, 4 * LANES * 16>>>(own, distance, zeros, pointers);
        int error = cudaDeviceSynchronize();
        if (error || !is_intact()) {
            printf("launch %d, %s of width %u, distance %lld: %s\n", i, kinds[k].name, kinds[k].width[w],
                   (long long)distance,
                   error ? cudaGetErrorName((cudaError_t)error) : "the neighbour HAS CHANGED");
            return error ? 4 : 3;
        }
        // The zeros and the table are the program's own, and a mask may lead there.
        cudaMemset(zeros, 0, 4096);
        cudaMemcpy(pointers, &own, sizeof own, cudaMemcpyHostToDevice);
        read<uint32_t><<<1, LANES>>>(own, 4096, zeros, pointers);
        error = cudaMemcpy(host, own, sizeof host, cudaMemcpyDeviceToHost);
        for (unsigned t = 0; t < LANES && !bad; t++)
            error |= host[t] != 1;
        if (error) {
            printf("after launch %d a right kernel fails: %d\n", i, error);
            return 5;
        }
        counts[k]++;
    }
    for (unsigned k = 0; k < KINDS; k++)
        printf("%s %u\n", kinds[k].name, counts[k]);
    return 0;
}
