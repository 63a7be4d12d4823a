// SPDX-License-Identifier: MIT
// tools_compared CASE bad|good, tools_compared all good: makes one error, or what is right in its place, for
// tools_compared.sh. It prints `done` when it has come to its end; errors of CUDA are ignored.
#include <cstdio>
#include <cstring>

enum { N = 1000, LARGE = 1 << 18, PIECE = 32 };

__constant__ int table[16] = {1, 2, 3};
__device__ int left[16], right[16];

__global__ void get(const int *p, long long i, int *out)
{
    *out = p[i];
}

__global__ void put(int *p, long long i)
{
    p[i] = 1;
}

__global__ void get_table(int i, int *out)
{
    *out = table[i];
}

__global__ void put_left(int i)
{
    left[i] = 1;
    right[0] = 2;
}

// Behind both arrays there is dynamic shared memory.
__global__ void neighbours(int *x, int width)
{
    extern __shared__ int piece[];
    __shared__ int row[PIECE], total[PIECE];
    int i = threadIdx.x;
    total[i] = 0;
    piece[i] = row[i] = x[i];
    __syncthreads();
    for (int k = 0; k < width; k++)
        total[i] += row[k];
    x[i] = total[i];
}

__global__ void at_end(int *x, int i)
{
    extern __shared__ int piece[];
    piece[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0)
        x[0] = piece[i];
}

__global__ void in_frame(int *x, int n)
{
    int a[16];
    for (int i = 0; i < 16; i++)
        a[i] = x[i];
    for (int i = 0; i < n; i++)
        a[i] += a[(i * 7) & 15];
    x[0] = a[x[1] & 15];
}

__global__ void in_kernel(int *out, int i, bool late)
{
    int *volatile taken = (int *)malloc(100 * sizeof(int));
    int *p = taken;
    p[3] = 1;
    if (late)
        free(p);
    p[i] = 2;
    *out = p[i];
    if (!late)
        free(p);
}

static int *take(size_t n = N)
{
    int *p = nullptr;
    cudaMalloc(&p, n * sizeof *p);
    cudaMemset(p, 0, n * sizeof *p);
    return p;
}

// --- the cases ---------------------------------------------------------------------------------------------

static void read_past(bool bad)
{
    get<<<1, 1>>>(take(), bad ? N : N - 1, take());
}

static void write_past(bool bad)
{
    put<<<1, 1>>>(take(), bad ? N : N - 1);
}

static void write_before(bool bad)
{
    put<<<1, 1>>>(take(), bad ? -1 : 0);
}

static void far_read(bool bad)
{
    int *a = take(LARGE), *b = take(LARGE);
    get<<<1, 1>>>(bad ? a : b, (bad ? b - a : 0) + 500, take());
}

static void far_write(bool bad)
{
    int *a = take(LARGE), *b = take(LARGE);
    put<<<1, 1>>>(bad ? a : b, (bad ? b - a : 0) + 500);
}

static void freed(bool bad)
{
    int *a = take();
    if (bad)
        cudaFree(a);
    get<<<1, 1>>>(a, 5, take());
}

static void freed_taken(bool bad)
{
    int *a = take();
    cudaFree(a);
    int *b = take();
    put<<<1, 1>>>(bad ? a : b, 5);
}

static void freed_in_order(bool bad)
{
    int *a = nullptr;
    cudaMallocAsync(&a, N * sizeof *a, 0);
    if (bad)
        cudaFreeAsync(a, 0);
    put<<<1, 1>>>(a, 5);
    if (!bad)
        cudaFreeAsync(a, 0);
}

static void shared_neighbour(bool bad)
{
    neighbours<<<1, PIECE, PIECE * sizeof(int)>>>(take(), PIECE + bad);
}

static void shared_end(bool bad)
{
    at_end<<<1, PIECE, PIECE * sizeof(int)>>>(take(), bad ? 4 * PIECE : PIECE - 1);
}

static void local_end(bool bad)
{
    in_frame<<<1, 1>>>(take(), 16 + bad);
}

static void constant_end(bool bad)
{
    get_table<<<1, 1>>>(bad ? 16 : 15, take());
}

static void variable_end(bool bad)
{
    put_left<<<1, 1>>>(bad ? 16 : 15);
}

static void kernel_heap(bool bad)
{
    in_kernel<<<1, 1>>>(take(), bad ? 100 : 99, false);
}

static void kernel_heap_freed(bool bad)
{
    in_kernel<<<1, 1>>>(take(), 5, bad);
}

static void copy(bool bad)
{
    static int from[N + 1];
    cudaMemcpy(take(), from, (N + bad) * sizeof(int), cudaMemcpyHostToDevice);
}

static void set(bool bad)
{
    cudaMemset(take(), 1, (N + bad) * sizeof(int));
}

static void freed_twice(bool bad)
{
    int *a = take();
    cudaFree(a);
    if (bad)
        cudaFree(a);
}

static void null(bool bad)
{
    put<<<1, 1>>>(bad ? nullptr : take(), 0);
}

static void nobody(bool bad)
{
    put<<<1, 1>>>(bad ? (int *)0x123456780000 : take(), 0);
}

static void misaligned(bool bad)
{
    get<<<1, 1>>>((const int *)((const char *)take() + 2 * bad), 5, take());
}

static const struct {
    const char *name;
    void (*make)(bool bad);
} cases[] = {
    {"read_past", read_past},
    {"write_past", write_past},
    {"write_before", write_before},
    {"far_read", far_read},
    {"far_write", far_write},
    {"freed", freed},
    {"freed_taken", freed_taken},
    {"freed_in_order", freed_in_order},
    {"shared_neighbour", shared_neighbour},
    {"shared_end", shared_end},
    {"local_end", local_end},
    {"constant_end", constant_end},
    {"variable_end", variable_end},
    {"kernel_heap", kernel_heap},
    {"kernel_heap_freed", kernel_heap_freed},
    {"copy", copy},
    {"set", set},
    {"freed_twice", freed_twice},
    {"null", null},
    {"nobody", nobody},
    {"misaligned", misaligned},
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    bool bad = argc > 2 && strcmp(argv[2], "bad") == 0, all = strcmp(name, "all") == 0 && !bad, found = false;
    for (const auto &one : cases) {
        if (!all && strcmp(name, one.name) != 0)
            continue;
        one.make(bad);
        cudaError_t error = cudaDeviceSynchronize();
        if (!bad && error) {
            printf("%s: %s\n", one.name, cudaGetErrorString(error));
            return 3;
        }
        found = true;
    }
    puts(found ? "done" : "tools_compared: there is no such case");
    return found ? 0 : 2;
}
