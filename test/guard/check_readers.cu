// SPDX-License-Identifier: MIT
// Common mistakes whose reports must say what their reader can use: check_readers bad|good NAME, or list.
// With each stand the types of its reports and a line or note that they must have.
#include "check_cases.cuh"

#include <cuda_fp16.h>

// --- pointers that are none --------------------------------------------------------------------------------

__device__ int table[16];
__device__ int later[300000];

static __global__ void set(int *p)
{
    p[threadIdx.x] = 1;
}

// The host has a variable of the same name, whose address means nothing to the device.
static int *on_device(const void *symbol)
{
    void *p;
    NEED(cudaGetSymbolAddress(&p, symbol));
    return (int *)p;
}

static void shadow_to_kernel(bool bad)
{
    set<<<1, 16>>>(bad ? table : on_device(table));
    wait();
}

static void large_shadow_to_kernel(bool bad)
{
    set<<<1, 16>>>(bad ? later + 100000 : on_device(later));
    wait();
}

static void shadow_to_copy(bool bad)
{
    int from[16] = {};
    cudaError_t r = cudaMemcpy(bad ? table : on_device(table), from, sizeof from, cudaMemcpyHostToDevice);
    if (!bad)
        NEED(r);
}

typedef int (*function)(int);

__device__ __host__ int twice(int x)
{
    return 2 * x;
}
__device__ function twice_there = twice;

static __global__ void call(function f, int *out)
{
    *out = f(3);
}

static void function_of_the_host(bool bad)
{
    function f = twice;
    if (!bad)
        NEED(cudaMemcpyFromSymbol(&f, twice_there, sizeof f));
    call<<<1, 1>>>(f, take<int>(1));
    wait();
}

struct node {
    node *next;
    int value;
};

static __global__ void walk(node *n, int *out)
{
    int sum = 0;
    while (n)
        sum += n->value, n = n->next;
    *out = sum;
}

// What was never written is no pointer, and mostly not aligned.
static void garbage(bool bad)
{
    node n = {bad ? (node *)0xcdcdcdcdcdcdcdcdull : nullptr, 1}, *there = take<node>(1);
    NEED(cudaMemcpy(there, &n, sizeof n, cudaMemcpyHostToDevice));
    walk<<<1, 1>>>(there, take<int>(1));
    wait();
}

// --- what follows from an error ----------------------------------------------------------------------------

static __global__ void by_table(int **rows)
{
    rows[blockIdx.x][threadIdx.x] = 1;
}

// The pointer that was not loaded is null.
static void row_past_the_table(bool bad)
{
    int *rows[4], **there = take<int *>(4);
    for (int *&row : rows)
        row = take<int>(32);
    NEED(cudaMemcpy(there, rows, sizeof rows, cudaMemcpyHostToDevice));
    by_table<<<4 + bad, 32>>>(there);
    wait();
}

static __device__ __noinline__ int deep(int n, volatile int *out)
{
    volatile int room[64];
    room[n % 64] = n;
    return n ? deep(n - 1, out) + room[n % 64] : *out;
}

static __global__ void recurse(int n, int *out)
{
    *out = deep(n, out);
}

static void deep_recursion(bool bad)
{
    recurse<<<1, 1>>>(bad ? 1000000 : 2, take<int>(1));
    wait();
}

// --- sizes -------------------------------------------------------------------------------------------------

static void negative_size(bool bad)
{
    int *a = take<int>(100), to[100], n = bad ? -5 : 5;
    cudaError_t r = cudaMemcpy(to, a, n * sizeof *a, cudaMemcpyDeviceToHost);
    if (!bad)
        NEED(r);
}

static void symbol_too_long(bool bad)
{
    int from[18] = {};
    cudaError_t r = cudaMemcpyToSymbol(table, from, bad ? sizeof from : sizeof table);
    if (r != (bad ? cudaErrorInvalidValue : cudaSuccess))
        exit(3);
}

// What lies behind the variable may be another one.
static void symbol_behind(bool bad)
{
    int to[4];
    cudaError_t r = cudaMemcpyFromSymbol(to, table, sizeof to, bad ? sizeof table : sizeof table - sizeof to);
    if (r != (bad ? cudaErrorInvalidValue : cudaSuccess))
        exit(3);
}

// --- one line, one report ----------------------------------------------------------------------------------

static __global__ void twice_all(__half2 *a, int n)
{
    if (threadIdx.x < n)
        a[threadIdx.x] = __hadd2(a[threadIdx.x], a[threadIdx.x]);
}

// The line reads by one function of the toolkit's headers and writes by another.
static void halves(bool bad)
{
    twice_all<<<1, 64>>>((__half2 *)take<__half>(101), bad ? 51 : 50);
    wait();
}

static __global__ void two_atomics(unsigned *a, int i)
{
    atomicAdd(a + i, 1u), atomicMax(a + i, 7u);
}

static void atomics_of_a_line(bool bad)
{
    two_atomics<<<1, 1>>>(take<unsigned>(9), 8 + bad);
    wait();
}

// --- kernels that wait -------------------------------------------------------------------------------------

static __global__ void find(volatile int *p)
{
    int i = 0;
    while (p[i] != 42)
        i++;
}

static void endless(bool bad)
{
    int *a = take<int>(100), answer = 42;
    NEED(cudaMemset(a, 0, 400));
    if (!bad)
        NEED(cudaMemcpy(a + 50, &answer, sizeof answer, cudaMemcpyHostToDevice));
    find<<<1, 1>>>(a);
    wait();
}

// --- what the driver refuses -------------------------------------------------------------------------------

static void impossible(bool bad)
{
    void *p;
    if (cudaMalloc(&p, (size_t)1 << 50) != cudaErrorMemoryAllocation)
        exit(3);
    cudaGetLastError();
    take<int>(1);
}

static const struct check_case cases[] = {
    {"shadow_to_kernel", shadow_to_kernel,
     "wild-access;the pointer 0x.* is host memory: the variable table (if it is a __device__ one, "},
    {"large_shadow_to_kernel", large_shadow_to_kernel, "wild-access;is host memory: the variable later ("},
    {"shadow_to_copy", shadow_to_copy, "wild-access;is host memory: the variable table ("},
    {"function_of_the_host", function_of_the_host,
     "kernel-fault;the address is host memory: the function twice(int)$"},
    {"garbage", garbage, "wild-access;no memory can be there: what the kernel took for a pointer"},
    {"row_past_the_table", row_past_the_table,
     "heap-buffer-overflow null-dereference;a wrong load of this launch, .* gave 0: the null pointer may"},
    {"deep_recursion", deep_recursion, "local-buffer-overflow;the stack of the thread is full: "},
    {"negative_size", negative_size, "heap-buffer-overflow;the size is -20 as a signed number$"},
    {"symbol_too_long", symbol_too_long, "global-buffer-overflow;WRITE of size 72 by cuMemcpyHtoD_v2$"},
    {"symbol_behind", symbol_behind, "global-buffer-overflow;READ of size 80 by cuMemcpyDtoH_v2$"},
    {"halves", halves, "heap-buffer-overflow;the same line also writes to this address$"},
    {"atomics_of_a_line", atomics_of_a_line, "heap-buffer-overflow;the launch decides it: "},
};

int main(int argc, char **argv)
{
    // These have tests of their own.
    static const struct check_case others[] = {{"endless", endless, ""}, {"impossible", impossible, ""}};
    return argc == 3 && !check_main(argc, argv, others) ? 0 : check_main(argc, argv, cases);
}
