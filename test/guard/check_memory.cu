// SPDX-License-Identifier: MIT
// Memory of every kind that kernels under --mode=check may get, and blocks that a pool announces inside it,
// each with an error and a correct twin: see check_cases.cuh.
#include "check_cases.cuh"

#include <cuda.h>
#include <sys/wait.h>

#include "moat.h"

__global__ void fill(int *a, long from, long to)
{
    for (long i = from; i < to; i++)
        a[i] = 7;
}

// The pointer comes from memory, so that the kernel looks its block up.
__global__ void fill_loaded(int **a, long from, long to)
{
    for (long i = from; i < to; i++)
        (*a)[i] = 7;
}

static void fill_both(int *a, long n, bool bad)
{
    int **holder = take<int *>(1);
    NEED(cudaMemcpy(holder, &a, sizeof a, cudaMemcpyHostToDevice));
    fill<<<1, 1>>>(a, 0, n);
    fill_loaded<<<1, 1>>>(holder, 0, n + bad);
    wait();
}

static void fill_before(int *a, long n, bool bad)
{
    int **holder = take<int *>(1);
    NEED(cudaMemcpy(holder, &a, sizeof a, cudaMemcpyHostToDevice));
    fill_loaded<<<1, 1>>>(holder, 0, n);
    fill<<<1, 1>>>(a, bad ? -1 : 0, n);
    wait();
}

// --- kinds of memory ---------------------------------------------------------------------------------------

static void managed(bool bad)
{
    int *p;
    NEED(cudaMallocManaged(&p, 1000 * sizeof *p));
    fill_both(p, 1000, bad);
    if (p[999] != 7)
        exit(3);
}

static __managed__ int managed_variable[100];

static void by_variable(bool bad)
{
    fill_both(managed_variable, 100, bad);
}

static void pinned(bool bad)
{
    int *p;
    NEED(cudaMallocHost(&p, 1000 * sizeof *p));
    fill_before(p, 1000, bad);
}

static void registered(bool bad)
{
    int *p = (int *)aligned_alloc(4096, 8192), *q;
    NEED(cudaHostRegister(p, 8192, cudaHostRegisterMapped));
    NEED(cudaHostGetDevicePointer(&q, p, 0));
    fill_both(q, 2048, bad);
}

static void ordered(bool bad)
{
    cudaStream_t s;
    int *p;
    NEED(cudaStreamCreate(&s));
    NEED(cudaMallocAsync(&p, 1000 * sizeof *p, s));
    NEED(cudaStreamSynchronize(s));
    fill_both(p, 1000, bad);
    NEED(cudaFreeAsync(p, s));
    NEED(cudaStreamSynchronize(s));
}

static void ordered_freed(bool bad)
{
    cudaStream_t s;
    int *p;
    NEED(cudaStreamCreate(&s));
    NEED(cudaMallocAsync(&p, 1000 * sizeof *p, s));
    fill<<<1, 1, 0, s>>>(p, 0, 1000);
    NEED(cudaFreeAsync(p, s));
    if (bad)
        fill<<<1, 1, 0, s>>>(p, 0, 1000);
    NEED(cudaStreamSynchronize(s));
}

static void from_pool(bool bad)
{
    cudaMemPoolProps props = {};
    cudaMemPool_t pool;
    int *p;
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    NEED(cudaMemPoolCreate(&pool, &props));
    NEED(cudaMallocFromPoolAsync(&p, 1000 * sizeof *p, pool, 0));
    NEED(cudaStreamSynchronize(0));
    fill_before(p, 1000, bad);
}

static void pitched(bool bad)
{
    char *p;
    size_t pitch;
    NEED(cudaMallocPitch(&p, &pitch, 100, 10));
    fill_both((int *)p, long(pitch / sizeof(int) * 10), bad);
}

#define DRIVER(call) driver((call), #call)
static void driver(CUresult r, const char *call)
{
    if (r != CUDA_SUCCESS) {
        printf("%s: %d\n", call, r);
        exit(2);
    }
}

// Two pieces of physical memory in one range of addresses: only the ends of the range are ends.
static void mapped(bool bad)
{
    CUmemAllocationProp prop = {};
    CUmemAccessDesc access = {};
    size_t unit;
    CUdeviceptr at;
    NEED(cudaFree(0));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    DRIVER(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    DRIVER(cuMemAddressReserve(&at, 2 * unit, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        CUmemGenericAllocationHandle handle;
        DRIVER(cuMemCreate(&handle, unit, &prop, 0));
        DRIVER(cuMemMap(at + i * unit, unit, 0, handle, 0));
    }
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    DRIVER(cuMemSetAccess(at, 2 * unit, &access, 1));
    fill<<<1, 1>>>((int *)at, long(unit / 4 - 10), long(unit / 4 + 10));
    int **holder = take<int *>(1);
    NEED(cudaMemcpy(holder, &at, sizeof at, cudaMemcpyHostToDevice));
    fill_loaded<<<1, 1>>>(holder, long(unit / 2 - 10), long(unit / 2) + bad);
    wait();
}

// A process opens the memory of another one.
static void imported(bool bad)
{
    int to_child[2];
    if (pipe(to_child))
        exit(2);
    pid_t child = fork();
    if (!child) {
        cudaIpcMemHandle_t handle;
        int *p;
        if (read(to_child[0], &handle, sizeof handle) != sizeof handle)
            _exit(2);
        NEED(cudaIpcOpenMemHandle((void **)&p, handle, cudaIpcMemLazyEnablePeerAccess));
        fill_both(p, 1 << 20, bad);
        exit(0);
    }
    cudaIpcMemHandle_t handle;
    int *p = take<int>(1 << 20), status;
    NEED(cudaIpcGetMemHandle(&handle, p));
    if (write(to_child[1], &handle, sizeof handle) != sizeof handle)
        exit(2);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || (WEXITSTATUS(status) & 31) == 2)
        exit(2);
}

// --- announced blocks --------------------------------------------------------------------------------------

enum { PIECE = 250 };
static int *pool;

static int *piece(int i, const char *name)
{
    if (!pool)
        pool = take<int>(1 << 18);
    moat_block_made(pool + i * PIECE, PIECE * sizeof(int), name);
    return pool + i * PIECE;
}

static void announced_end(bool bad)
{
    fill_both(piece(3, "activations"), PIECE, bad);
}

static void announced_start(bool bad)
{
    fill_before(piece(3, "activations"), PIECE, bad);
}

// The block behind it is live and begins where it ends.
static void into_the_next(bool bad)
{
    int *p = piece(5, "left");
    piece(6, "right");
    fill_both(p, PIECE, bad);
}

static void into_the_one_before(bool bad)
{
    piece(5, "left");
    int *p = piece(6, "right");
    fill<<<1, 1>>>(p + 10, bad ? -11 : -10, PIECE - 10);
    wait();
}

// A pointer that ends one block and starts the next is good for both, and for nothing else.
static void between(bool bad)
{
    int **holder = take<int *>(1);
    piece(5, "left");
    int *p = piece(6, "right");
    NEED(cudaMemcpy(holder, &p, sizeof p, cudaMemcpyHostToDevice));
    fill<<<1, 1>>>(p, -PIECE, PIECE);
    fill_loaded<<<1, 1>>>(holder, -PIECE, PIECE + bad);
    wait();
}

static void withdrawn(bool bad)
{
    int *p = piece(5, "left");
    if (!bad)
        moat_block_gone(p);
    fill_both(p, PIECE, true);  // inside the pool
}

static const struct check_case cases[] = {
    {"managed", managed, "heap-buffer-overflow"},
    {"by_variable", by_variable, "global-buffer-overflow|heap-buffer-overflow"},
    {"pinned", pinned, "heap-buffer-underflow"},
    {"registered", registered, "heap-buffer-overflow"},
    {"ordered", ordered, "heap-buffer-overflow"},
    {"ordered_freed", ordered_freed, "heap-use-after-free"},
    {"from_pool", from_pool, "heap-buffer-underflow"},
    {"pitched", pitched, "heap-buffer-overflow"},
    {"mapped", mapped, "heap-buffer-overflow"},
    {"imported", imported, "heap-buffer-overflow"},
    {"announced_end", announced_end, "heap-buffer-overflow"},
    {"announced_start", announced_start, "heap-buffer-underflow"},
    {"into_the_next", into_the_next, "heap-buffer-overflow"},
    {"into_the_one_before", into_the_one_before, "heap-buffer-underflow"},
    {"between", between, "heap-buffer-overflow"},
    {"withdrawn", withdrawn, "heap-buffer-overflow"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
