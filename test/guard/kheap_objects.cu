// SPDX-License-Identifier: MIT
// C++ objects with virtual functions, recursion and cooperative grids that take memory from malloc, wrong and
// right, for test/guard/kheap_pairs.sh:
//   kheap_objects list | bad NAME | good NAME [ROUNDS]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "grid_sync.cuh"

#define NEED(call) need((call), #call, __LINE__)

static void need(cudaError_t r, const char *call, int line)
{
    if (r == cudaSuccess)
        return;
    printf("kheap_objects.cu:%d: %s: %s\n", line, call, cudaGetErrorString(r));
    exit(r == cudaErrorNotSupported ? 77 : 2);
}

// Flipped, not set: a canary may have any value.
__device__ void flip(void *p, long at)
{
    static_cast<unsigned char *>(p)[at] ^= 255;
}

// Objects: made by one kernel, used and deleted by another, through their base.

struct shape {
    __device__ virtual long area() const = 0;
    __device__ virtual ~shape() {}
};

struct square : shape {
    long side;
    __device__ square(long n) : side(n) {}
    __device__ long area() const override { return side * side; }
};

struct polygon : shape {
    int n;
    long *corners;
    __device__ polygon(int count) : n(count), corners(new long[count])
    {
        for (int i = 0; i < n; i++)
            corners[i] = i;
    }
    __device__ long area() const override
    {
        long sum = 0;
        for (int i = 0; i < n; i++)
            sum += corners[i];
        return sum;
    }
    __device__ ~polygon() override { delete[] corners; }
};

__global__ void make_objects(shape **list)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 2)
        list[i] = new square(i);
    else
        list[i] = new polygon(i % 7 + 1);
}

__global__ void use_objects(shape **list, long *sums, long at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    sums[i] = list[i]->area();
    if (i == 4)
        flip(static_cast<polygon *>(list[i])->corners, at);
}

__global__ void delete_objects(shape **list)
{
    delete list[blockIdx.x * blockDim.x + threadIdx.x];
}

static void objects(int bad)
{
    const int count = 128;
    shape **list;
    long *sums;
    NEED(cudaMallocManaged(&list, count * sizeof *list));
    NEED(cudaMallocManaged(&sums, count * sizeof *sums));
    make_objects<<<2, 64>>>(list);
    use_objects<<<2, 64>>>(list, sums, 5 * sizeof(long) - 1 + bad);
    delete_objects<<<2, 64>>>(list);
    NEED(cudaDeviceSynchronize());
    for (int i = 0; i < count; i++) {
        int n = i % 7 + 1;
        long right = i % 2 ? (long)i * i : (long)n * (n - 1) / 2;
        if (sums[i] != right) {
            printf("object %d has area %ld, not %ld\n", i, sums[i], right);
            exit(2);
        }
    }
    NEED(cudaFree(list));
    NEED(cudaFree(sums));
}

// Recursion: a tree is built, added up and freed by functions that call themselves.

struct node {
    node *left, *right;
    int value;
};

__device__ __noinline__ node *grow(int depth, int value)
{
    node *n = static_cast<node *>(malloc(sizeof *n));
    n->value = value;
    n->left = depth ? grow(depth - 1, 2 * value) : nullptr;
    n->right = depth ? grow(depth - 1, 2 * value + 1) : nullptr;
    return n;
}

__device__ __noinline__ long add(const node *n)
{
    return n ? n->value + add(n->left) + add(n->right) : 0;
}

__device__ __noinline__ void fell(node *n)
{
    if (!n)
        return;
    fell(n->left);
    fell(n->right);
    free(n);
}

__global__ void tree(long *sum, int bad)
{
    node *n = grow(5, 1);
    sum[threadIdx.x] = add(n);
    node *left = n->left;
    fell(n);
    if (bad && !threadIdx.x)
        free(left);
}

static void recursion(int bad)
{
    long *sum;
    NEED(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    NEED(cudaMallocManaged(&sum, 64 * sizeof *sum));
    tree<<<1, 64>>>(sum, bad);
    NEED(cudaDeviceSynchronize());
    for (int i = 0; i < 64; i++)
        if (sum[i] != 63 * 64 / 2) {
            printf("tree %d has %ld, not %d\n", i, sum[i], 63 * 64 / 2);
            exit(2);
        }
    NEED(cudaFree(sum));
}

// Cooperative grids: what one block takes another writes and frees, after they have waited for each other.

__global__ void grid(int **list, long *sums, long at)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x, other = (i + blockDim.x) % n;
    list[i] = static_cast<int *>(malloc(10 * sizeof(int)));
    grid_sync();
    for (int k = 0; k < 10; k++)
        list[other][k] = k + other;
    grid_sync();
    long sum = 0;
    for (int k = 0; k < 10; k++)
        sum += list[i][k];
    sums[i] = sum;
    grid_sync();
    if (!i)
        flip(list[other], at);
    grid_sync();
    free(list[other]);
}

static void cooperative(int bad)
{
    int **list;
    long *sums, at = 10 * sizeof(int) - 1 + bad;
    NEED(cudaMallocManaged(&list, 128 * sizeof *list));
    NEED(cudaMallocManaged(&sums, 128 * sizeof *sums));
    void *arguments[] = {&list, &sums, &at};
    NEED(cudaLaunchCooperativeKernel(reinterpret_cast<void *>(grid), dim3(4), dim3(32), arguments, 0,
                                     nullptr));
    NEED(cudaDeviceSynchronize());
    for (int i = 0; i < 128; i++)
        if (sums[i] != 45 + 10L * i) {
            printf("thread %d has %ld, not %ld\n", i, sums[i], 45 + 10L * i);
            exit(2);
        }
    NEED(cudaFree(list));
    NEED(cudaFree(sums));
}

static const struct {
    const char *name;
    void (*run)(int bad);
    const char *type, *trait;
} cases[] = {
    {"objects", objects, "heap-buffer-overflow", ""},
    {"recursion", recursion, "double-free", " free"},
    {"cooperative", cooperative, "heap-buffer-overflow", ""},
};

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (auto &c : cases)
            printf("%s %s%s\n", c.name, c.type, c.trait);
        return 0;
    }
    if (argc != 3 && argc != 4)
        return 2;
    int bad = !strcmp(argv[1], "bad"), rounds = argc == 4 && !bad ? atoi(argv[3]) : 1;
    for (auto &c : cases)
        if (!strcmp(argv[2], c.name)) {
            for (int i = 0; i < rounds; i++)
                c.run(bad);
            NEED(cudaDeviceReset());
            return 0;
        }
    return 2;
}
