// SPDX-License-Identifier: MIT
// Kernels with errors that --mode=shadow must find, or, where the types are "missed", cannot find, each with
// a correct twin: shadow_errors bad|good NAME, or list. A wrong access is skipped: what it reads is 0, and
// every case ends normally.
#include <atomic>
#include <thread>
#include <vector>

#include "check_cases.cuh"
#include "moat.h"

template <typename T> __global__ void put(T *a, long i, T v)
{
    a[i] = v;
}

template <typename T> __global__ void get(const T *a, long i, T *to)
{
    *to = a[i];
}

// --- the ends of a buffer, byte by byte --------------------------------------------------------------------

// Sizes around a multiple of a granule; of 257 bytes, the last granule has one.
template <typename T> static void ends(bool bad)
{
    static const size_t sizes[] = {1,   2,   8,   16,  127, 128, 129, 254,
                                   255, 256, 257, 258, 511, 512, 513, 100000};
    for (size_t size : sizes) {
        char *a = take<char>(size);
        T *to = take<T>(1), seen, none, one;
        memset(&one, 1, sizeof one);
        memset(&none, 0, sizeof none);
        long n = long(size / sizeof(T));
        if (n)
            put<<<1, 1>>>((T *)a, n - 1, one);
        if (n)
            get<<<1, 1>>>((T *)a, n - 1, to);
        NEED(cudaMemcpy(&seen, to, sizeof seen, cudaMemcpyDeviceToHost));
        if (n && memcmp(&seen, &one, sizeof one) != 0)
            exit(3);
        if (!bad)
            continue;
        put<<<1, 1>>>((T *)a, n, one);
        get<<<1, 1>>>((T *)a, n, to);
        NEED(cudaMemcpy(&seen, to, sizeof seen, cudaMemcpyDeviceToHost));
        if (memcmp(&seen, &none, sizeof none) != 0)
            exit(4);
        put<<<1, 1>>>((T *)a, -1l, one);
    }
    wait();
}

// --- several accesses with one base ------------------------------------------------------------------------

static __global__ void points(const float *from, float *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i] + from[i + 1] * 2 + from[i + 2] * 3 + from[i + 3] * 5 + from[i + 4] * 7;
}

static void stencil(bool bad)
{
    enum { N = 3000 };
    static float in[N + 4], out[N];
    float *a = take<float>(N + 4), *b = take<float>(N);
    for (int i = 0; i < N + 4; i++)
        in[i] = float(i % 100);
    NEED(cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice));
    points<<<(N + 255) / 256, 256>>>(a + 4 * bad, b, N);
    NEED(cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N - 4 && !bad; i++)
        if (out[i] != in[i] + in[i + 1] * 2 + in[i + 2] * 3 + in[i + 3] * 5 + in[i + 4] * 7)
            exit(3);
}

// The same at every place in a granule, with a buffer that ends where it should, or one element before.
static void merged(bool bad)
{
    enum { PLACES = 80, LEN = 5 };
    float in[PLACES + LEN], seen, *out = take<float>(1);
    for (int i = 0; i < PLACES + LEN; i++)
        in[i] = float(1 + i % 50);
    for (int at = 0; at < PLACES; at++) {
        size_t n = size_t(at + LEN - bad);
        const float *f = in + at;
        float *a = take<float>(n);
        NEED(cudaMemcpy(a, in, n * sizeof(float), cudaMemcpyHostToDevice));
        points<<<1, 1>>>(a + at, out, 1);
        NEED(cudaMemcpy(&seen, out, sizeof seen, cudaMemcpyDeviceToHost));
        if (seen != f[0] + f[1] * 2 + f[2] * 3 + f[3] * 5 + (bad ? 0 : f[4] * 7))
            exit(3);
    }
}

// --- redzones ----------------------------------------------------------------------------------------------

// A redzone is half as large as its buffer.
static void far_behind(bool bad)
{
    enum { N = 10 << 20 };
    char *a = take<char>(N);
    put<<<1, 1>>>(a, bad ? N + N / 4 : N - 1l, 'x');
    wait();
}

static void far_before(bool bad)
{
    enum { N = 10 << 20 };
    take<char>(1000);
    char *a = take<char>(N);
    put<<<1, 1>>>(a, bad ? -long(N / 4) : 0l, 'x');
    wait();
}

// What is reported after the frees names the buffer that the access was before, and not the one further on
// the other side.
static void before_and_freed(bool bad)
{
    enum { N = 36864 };
    char *a = take<char>(N), *b = take<char>(N);
    put<<<1, 1>>>(b, bad ? -72l : 0l, 'x');
    cudaFree(b);
    cudaFree(a);
    wait();
}

static void far_behind_small(bool bad)
{
    char *a = take<char>(20000);
    take<char>(20000);
    put<<<1, 1>>>(a, bad ? 25000 : 19999l, 'x');
    wait();
}

// From one buffer into the middle of another: no redzone is in the way.
static void jump(bool bad)
{
    char *a = take<char>(1000), *b = take<char>(1000);
    put<<<1, 1>>>(a, bad ? b - a + 500 : 500l, 'x');
    wait();
}

// --- other memory ------------------------------------------------------------------------------------------

// The pointer comes out of memory, and no parameter leads to it.
static __global__ void follow(int **pp, long i)
{
    printf("%x\n", (*pp)[i]);
}

static void pointer_in_memory(bool bad)
{
    int x = 0xC57292, *at = take<int>(1), **pp = take<int *>(1);
    NEED(cudaMemcpy(at, &x, sizeof x, cudaMemcpyHostToDevice));
    NEED(cudaMemcpy(pp, &at, sizeof at, cudaMemcpyHostToDevice));
    follow<<<1, 1>>>(pp, bad);
    wait();
}

static void freed(bool bad)
{
    int *a = take<int>(1000), *others[20];
    put<<<1, 1>>>(a, 5l, 7);
    if (bad)
        NEED(cudaFree(a));
    for (auto &o : others)
        o = take<int>(1000);
    put<<<1, 1>>>(bad ? a : others[3], 5l, 7);
    wait();
}

static void freed_large(bool bad)
{
    char *a = take<char>(30 << 20);
    NEED(cudaFree(bad ? a : nullptr));
    put<<<1, 1>>>(a, 20l << 20, 'x');
    wait();
}

// Kernels that were queued before the free are right.
static void freed_in_order(bool bad)
{
    cudaStream_t s;
    int *a;
    NEED(cudaStreamCreate(&s));
    NEED(cudaMallocAsync(&a, 4000, s));
    for (int i = 0; i < 100; i++)
        put<<<1, 1, 0, s>>>(a, long(i), i);
    NEED(cudaFreeAsync(a, s));
    if (bad)
        put<<<1, 1, 0, s>>>(a, 5l, 7);
    wait();
}

static void null(bool bad)
{
    int *a = take<int>(4);
    put<<<1, 1>>>(bad ? (int *)nullptr : a, 3l, 7);
    wait();
}

static void before_null(bool bad)
{
    int *a = take<int>(4);
    put<<<1, 1>>>(bad ? (int *)nullptr : a + 3, -3l, 7);
    wait();
}

// Accesses with one base, on both sides of address 0.
static void around_null(bool bad)
{
    float *a = take<float>(5), *b = take<float>(1);
    points<<<1, 1>>>(bad ? (float *)nullptr - 2 : a, b, 1);
    wait();
}

// Memory of every kind is right.
static __global__ void count(int *a, int *b, int *c, int *d, int n)
{
    int i = threadIdx.x;
    if (i < n) {
        a[i] = b[i] + c[i] + d[i];
        atomicAdd(d, 1);
    }
}

static __device__ int table[64];

static void kinds(bool bad)
{
    int *managed, *pinned, *mapped, *variable, *plain = take<int>(64);
    static int memory[1024];
    NEED(cudaMallocManaged(&managed, 64 * sizeof(int)));
    NEED(cudaMallocHost(&pinned, 64 * sizeof(int)));
    NEED(cudaHostRegister(memory, sizeof memory, cudaHostRegisterMapped));
    NEED(cudaHostGetDevicePointer(&mapped, memory, 0));
    NEED(cudaGetSymbolAddress((void **)&variable, table));
    memset(managed, 0, 64 * sizeof(int));
    memset(pinned, 0, 64 * sizeof(int));
    count<<<1, 64>>>(plain, managed, pinned, mapped, 64);
    count<<<1, 64>>>(managed, plain, variable, mapped, 64);
    count<<<1, 64>>>(variable, plain, pinned, managed, 64);
    count<<<1, 64>>>(mapped + 3, plain, pinned, managed, 64);
    count<<<1, 66>>>(plain, managed, pinned, mapped, bad ? 66 : 64);
    wait();
    NEED(cudaHostUnregister(memory));
}

// Managed and pinned memory, when kernels have run already.
static void late(bool bad)
{
    int *a = take<int>(64), *managed, *pinned;
    put<<<1, 1>>>(a, 3l, 7);
    wait();
    NEED(cudaMallocManaged(&managed, 1000 * sizeof(int)));
    NEED(cudaMallocHost(&pinned, 3001 * sizeof(int)));
    put<<<1, 1>>>(managed, bad ? 1100l : 999l, 7);
    put<<<1, 1>>>(pinned, bad ? 3001l : 3000l, 7);
    put<<<1, 1>>>(a, 3l, 7);
    wait();
    if (!bad && (managed[999] != 7 || pinned[3000] != 7))
        exit(3);
    // What the driver is asked for is not what the program sees.
    cudaPointerAttributes about;
    NEED(cudaPointerGetAttributes(&about, managed + 1));
    if (about.type != cudaMemoryTypeManaged)
        exit(4);
    NEED(cudaFree(managed));
    NEED(cudaFreeHost(pinned));
    // The room behind them may be anyone's again.
    NEED(cudaMallocManaged(&managed, 3000 * sizeof(int)));
    NEED(cudaMallocHost(&pinned, 9001 * sizeof(int)));
    for (long i : {0l, 1100l, 2999l}) {
        put<<<1, 1>>>(managed, i, 7);
        put<<<1, 1>>>(pinned, 3 * i, 7);
    }
    wait();
}

// Up to a page before managed and pinned memory there is nothing. A kernel of its own: errors of one
// instruction in one place are one report.
static void before_managed(bool bad)
{
    short *managed, *pinned;
    NEED(cudaMallocManaged(&managed, 4000));
    NEED(cudaMallocHost(&pinned, 4000));
    managed[0] = 0;
    put<short><<<1, 1>>>(managed, bad ? -1l : 0l, 7);
    put<short><<<1, 1>>>(managed, bad ? -2000l : 1999l, 7);
    put<short><<<1, 1>>>(pinned, bad ? -2l : 2l, 7);
    NEED(cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachGlobal));
    NEED(cudaStreamAttachMemAsync(0, managed, 4000, cudaMemAttachGlobal));
    wait();
    if (uintptr_t(pinned) % 512 || managed[0] != (bad ? 0 : 7))
        exit(3);
    NEED(cudaFree(managed));
    NEED(cudaFreeHost(pinned));
}

// Contexts end, and the next one starts at once: RESETS of them, since each takes a GPU up to a second.
static void resets(bool bad)
{
    const char *number = getenv("RESETS");
    int n = number ? atoi(number) : 6;
    for (int i = 0; i < n; i++) {
        int *managed, *a = take<int>(100);
        NEED(cudaMallocManaged(&managed, 1000 * sizeof(int)));
        put<<<1, 1>>>(managed, bad && i == n - 1 ? 1000l : 999l, 7);
        put<<<1, 1>>>(a, 99l, 7);
        wait();
        NEED(cudaDeviceReset());
    }
}

static __global__ void put_by(int **to, long i)
{
    (*to)[i] = 7;
}

// A graph is launched again after the shadow was mapped at other addresses, and nothing else was.
static void graph_later(bool bad)
{
    int *managed, *large = take<int>(2000), **to = take<int *>(1);
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    NEED(cudaMemcpy(to, &large, sizeof large, cudaMemcpyHostToDevice));
    NEED(cudaStreamCreate(&stream));
    NEED(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    put_by<<<1, 1, 0, stream>>>(to, bad ? 1000l : 999l);
    NEED(cudaStreamEndCapture(stream, &graph));
    NEED(cudaGraphInstantiate(&exec, graph, 0));
    NEED(cudaGraphLaunch(exec, stream));
    wait();
    NEED(cudaMallocManaged(&managed, 4000));
    NEED(cudaMemcpy(to, &managed, sizeof managed, cudaMemcpyHostToDevice));
    NEED(cudaGraphLaunch(exec, stream));
    wait();
}

template <int N> static __global__ void put_n(int *a, long i)
{
    a[i] = N;
}

// Threads launch kernels, each of which is launched by another one first.
static void at_once(bool bad)
{
    static void (*const kernels[])(int *, long) = {put_n<1>, put_n<2>, put_n<3>, put_n<4>,
                                                   put_n<5>, put_n<6>, put_n<7>, put_n<8>};
    enum { KERNELS = 8, THREADS = 4, ROUNDS = 3 };
    std::vector<std::thread> threads;
    std::atomic<int> ready{0};
    int *wrong = take<int>(100);
    for (int t = 0; t < THREADS; t++)
        threads.emplace_back([&, t] {
            int seen, *a = take<int>(100);
            for (ready++; ready < THREADS;)
                ;
            for (int i = 0; i < ROUNDS * KERNELS; i++)
                kernels[(i + 2 * t) % KERNELS]<<<1, 1>>>(a, 99l);
            kernels[0]<<<1, 1>>>(t ? a : wrong, bad && !t ? 100l : 99l);
            NEED(cudaMemcpy(&seen, a + 99, sizeof seen, cudaMemcpyDeviceToHost));
            if (t && seen != 1)
                exit(3);
        });
    for (auto &t : threads)
        t.join();
    wait();
}

// So many large buffers that the shadow of those that are freed is used for others; not that of the page in
// which one is left.
static void many_freed(bool bad)
{
    const size_t n = 600 << 20;
    int seen, *stays = take<int>(1000);
    char *gone = nullptr, *p;
    put<<<1, 1>>>(stays, 998l, 3);
    for (int i = 0; i < 40; i++) {
        NEED(i & 1 ? cudaMallocAsync(&p, n, 0) : cudaMalloc(&p, n));
        put<<<1, 1>>>(p, long(n - 1), 'x');
        NEED(i & 1 ? cudaFreeAsync(p, 0) : cudaFree(p));
        gone = gone ? gone : p;
        if (i % 8 == 3)
            wait();
    }
    put<<<1, 1>>>(stays, 999l, 7);
    put<<<1, 1>>>(bad ? gone : (char *)stays, 5l, 'x');
    NEED(cudaMemcpy(&seen, stays + 999, sizeof seen, cudaMemcpyDeviceToHost));
    if (seen != 7)
        exit(3);
    put<<<1, 1>>>(stays, bad ? 1000l : 0l, 7);
    wait();
}

// --- pools -------------------------------------------------------------------------------------------------

enum { POOL = 1 << 20 };

// Between two pieces there are 24 bytes that nobody has.
static void pool_gap(bool bad)
{
    char *pool = take<char>(POOL);
    moat_block_made(pool + 4096, 1000, "left");
    moat_block_made(pool + 4096 + 1024, 1000, "right");
    put<<<1, 1>>>(pool + 4096, 999l, 'x');
    put<<<1, 1>>>(pool + 4096, bad ? 1010l : 1024l, 'x');
    wait();
}

static void pool_rest(bool bad)
{
    char *pool = take<char>(POOL);
    moat_block_made(pool, 5000, "piece");
    put<<<1, 1>>>(pool, bad ? POOL - 1l : 4999l, 'x');
    wait();
}

static void pool_freed(bool bad)
{
    char *pool = take<char>(POOL);
    moat_block_made(pool + 512, 4000, "activations");
    moat_block_made(pool + 8192, 4000, "other");
    put<<<1, 1>>>(pool + 512, 100l, 'x');
    wait();
    moat_block_gone(pool + (bad ? 512 : 8192));
    put<<<1, 1>>>(pool + 512, 100l, 'x');
    wait();
}

static __global__ void put_later(const volatile int *go, int *a, int n)
{
    while (!*go)
        ;
    for (int i = 0; i < n; i++)
        a[i] = 7;
}

// A kernel that was launched before its piece was taken back, and given out again as a smaller one, is right.
// A kernel that was launched before the buffer became a pool is right, too.
static void pool_under_way(bool bad)
{
    int *pool = take<int>(POOL), *go, seen[1000];
    cudaStream_t s;
    NEED(cudaStreamCreate(&s));
    NEED(cudaMallocHost(&go, 2 * sizeof(int)));
    go[0] = go[1] = 0;
    put_later<<<1, 1, 0, s>>>(go, pool + 100000, 1000);
    moat_block_made(pool + 1024, 1000 * sizeof(int), "piece");
    put_later<<<1, 1, 0, s>>>(go + 1, pool + 1024, 1000);
    moat_block_gone(pool + 1024);
    moat_block_made(pool + 1024, 30 * sizeof(int), "another");
    go[0] = go[1] = 1;
    wait();
    moat_block_gone(pool + 1024);  // else the copy would be wrong
    NEED(cudaMemcpy(seen, pool + 1024, sizeof seen, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 1000; i++)
        if (seen[i] != 7)
            exit(3);
    moat_block_made(pool + 1024, 30 * sizeof(int), "again");
    put_later<<<1, 1, 0, s>>>(go, pool + 1024, bad ? 31 : 30);
    wait();
}

static __global__ void read_all(const char *from, char *to, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[i];
}

// Pieces of all sizes and places: exactly the bytes of live ones can be read.
static void pool_pieces_in(char *pool, bool bad)
{
    enum { N = 30000 };
    static char wanted[N], seen[N];
    char *to = take<char>(N);
    unsigned random = 12345;
    memset(wanted, 0, sizeof wanted);
    NEED(cudaMemset(pool, 'x', N));
    wait();  // else kernels of other cases might use the pool
    for (int at = 0, gone = 0; at < N - 700; gone++) {
        random = random * 1103515245 + 12345;
        int size = 1 + (random >> 16) % 600, gap = (random >> 8) % 3 ? 0 : (random >> 20) % 400;
        moat_block_made(pool + at, size, "piece");
        if (gone % 4 == 3)
            moat_block_gone(pool + at);
        else
            memset(wanted + at, 'x', size);
        at += size + gap;
    }
    if (bad) {
        read_all<<<(N + 255) / 256, 256>>>(pool, to, N);
    } else {
        for (int i = 0; i < N; i++)
            if (wanted[i] && (i % 7 == 0 || !wanted[i + 1] || !wanted[i - 1]))
                get<<<1, 1>>>(pool, long(i), to);
        memset(wanted, 0, sizeof wanted);
        wanted[0] = 'x';
    }
    NEED(cudaMemcpy(seen, to, N, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N && (bad || !i); i++)
        if (seen[i] != wanted[i])
            exit(3);
}

static void pool_pieces(bool bad)
{
    pool_pieces_in(take<char>(100000), bad);
}

static void pool_in_managed(bool bad)
{
    char *pool;
    NEED(cudaMallocManaged(&pool, 100000));
    pool_pieces_in(pool, bad);
}

// --- freed memory that the driver would use again ----------------------------------------------------------

static void freed_managed(bool bad)
{
    int *a, *others[4], *pinned;
    NEED(cudaMallocManaged(&a, 4000));
    NEED(cudaMallocHost(&pinned, 4000));
    put<<<1, 1>>>(a, 5l, 7);
    put<<<1, 1>>>(pinned, 5l, 7);
    if (bad) {
        cudaPointerAttributes about;
        NEED(cudaFree(a));
        NEED(cudaFreeHost(pinned));
        if (cudaPointerGetAttributes(&about, a) == cudaSuccess && about.type != cudaMemoryTypeUnregistered)
            exit(4);
    }
    for (auto &o : others)
        NEED(cudaMallocManaged(&o, 4000));
    put<<<1, 1>>>(a, 5l, 7);
    put<<<1, 1>>>(pinned, 6l, 7);
    for (auto &o : others)
        put<<<1, 1>>>(o, 5l, 7);
    wait();
}

// Whoever needs memory gets what was freed.
static void needs_memory(bool bad)
{
    char *p;
    for (int i = 0; i < 12; i++) {
        NEED(cudaMallocManaged(&p, 40 << 20));
        put<<<1, 1>>>(p, bad && i == 11 ? 40l << 20 : 1000l, 'x');
        NEED(cudaFree(p));
        NEED(cudaMallocHost(&p, 10 << 20));
        put<<<1, 1>>>(p, 1000l, 'x');
        NEED(cudaFreeHost(p));
        NEED(cudaMalloc(&p, 40 << 20));
        NEED(cudaFree(p));
    }
    wait();
}

static const struct check_case cases[] = {
    {"bytes", ends<char>, "(heap-buffer-overflow heap-buffer-underflow ?)+"},
    {"shorts", ends<short>, "(heap-buffer-overflow heap-buffer-underflow ?)+"},
    {"ints", ends<int>, "(heap-buffer-overflow heap-buffer-underflow ?)+"},
    {"longs", ends<long>, "(heap-buffer-overflow heap-buffer-underflow ?)+"},
    {"vectors", ends<int4>, "(heap-buffer-overflow heap-buffer-underflow ?)+"},
    {"stencil", stencil, "heap-buffer-overflow"},
    {"merged", merged, "heap-buffer-overflow"},
    {"far_behind", far_behind, "heap-buffer-overflow"},
    {"far_before", far_before, "heap-buffer-underflow"},
    {"before_and_freed", before_and_freed, "heap-buffer-underflow"},
    {"far_behind_small", far_behind_small, "heap-buffer-overflow"},
    {"jump", jump, "missed"},
    {"pointer_in_memory", pointer_in_memory, "heap-buffer-overflow"},
    {"freed", freed, "heap-use-after-free"},
    {"freed_large", freed_large, "heap-use-after-free"},
    {"freed_in_order", freed_in_order, "heap-use-after-free"},
    {"null", null, "null-dereference"},
    {"before_null", before_null, "wild-access|null-dereference"},
    {"around_null", around_null, "wild-access null-dereference"},
    {"kinds", kinds, "heap-buffer-overflow"},
    {"late", late, "heap-buffer-overflow"},
    {"pool_gap", pool_gap, "heap-buffer-overflow"},
    {"pool_rest", pool_rest, "heap-buffer-overflow"},
    {"pool_freed", pool_freed, "heap-use-after-free"},
    {"pool_under_way", pool_under_way, "heap-use-after-free|heap-buffer-overflow"},
    {"pool_pieces", pool_pieces, "(heap-buffer-overflow|heap-buffer-underflow|heap-use-after-free| )+"},
    {"pool_in_managed", pool_in_managed,
     "(heap-buffer-overflow|heap-buffer-underflow|heap-use-after-free| )+"},
    {"freed_managed", freed_managed, "heap-use-after-free"},
    {"needs_memory", needs_memory, "heap-buffer-overflow"},
    {"before_managed", before_managed, "heap-buffer-underflow"},
    {"resets", resets, "heap-buffer-overflow"},
    {"at_once", at_once, "heap-buffer-overflow"},
    {"graph_later", graph_later, "heap-buffer-overflow"},
    {"many_freed", many_freed, "heap-use-after-free heap-buffer-overflow"},
};

int main(int argc, char **argv)
{
    int status = check_main(argc, argv, cases);
    if (argc == 3 && !status)
        puts("ended");  // with results as they should be
    return status;
}
