// SPDX-License-Identifier: MIT
// A tenant for the tests of --mode=fence.
//
//   fence_tenant list                     each case: its name, the error that the program must get, whether
//                                         a seed makes a difference, options that moat needs
//   fence_tenant good|bad CASE [SEED]     runs the case's kernel, right or wrong. The wrong kernel aims at a
//                                         neighbour's memory: allocated through the driver's own library,
//                                         past moat (FENCE_DRIVER names that file), if there is one; SEED
//                                         varies the address. Prints the error, and whether the neighbour's
//                                         memory has changed
//   fence_tenant mistakes COUNT SEED      runs so many wrong kernels in one context, each case in turn but
//                                         those that need options; a right kernel computes after each
//   fence_tenant neighbour SECONDS [FILE] computes the same over and over, compares each result, and prints
//                                         how long a round took. FILE gets the number of rounds after each;
//                                         the program ends when FILE is removed
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <mma.h>
#include <new>
#include <vector>

enum { N = 1 << 14, NEIGHBOUR = 1 << 20, STACK = 2048 };

// What a kernel gets: its own buffer, and an address that is right or wrong.
#define KERNEL(name) __global__ void name(uint32_t *own, uint64_t at)

KERNEL(write32)
{
    ((volatile uint32_t *)at)[threadIdx.x] = 0xdeadbeef;
    own[threadIdx.x] = 1;
}

KERNEL(read32)
{
    own[threadIdx.x] = ((volatile uint32_t *)at)[threadIdx.x];
}

KERNEL(write8)
{
    ((volatile uint8_t *)at)[threadIdx.x] = 0x77;
    own[threadIdx.x] = 1;
}

KERNEL(write64)
{
    ((volatile uint64_t *)at)[threadIdx.x] = 0x1122334455667788;
    own[threadIdx.x] = 1;
}

KERNEL(vector)
{
    ((uint4 *)at)[threadIdx.x] = make_uint4(1, 2, 3, 4);
    own[threadIdx.x] = 1;
}

KERNEL(read_vector)
{
    uint4 v = ((uint4 *)at)[threadIdx.x];
    own[threadIdx.x] = v.x + v.y + v.z + v.w;
}

KERNEL(atomic)
{
    atomicAdd((uint32_t *)at + threadIdx.x % 4, 1u);
    own[threadIdx.x] = 1;
}

KERNEL(exchange)
{
    own[threadIdx.x] = atomicCAS((uint32_t *)at + threadIdx.x % 4, 5u, 7u);
}

// The space is not known: the pointer may be into shared memory.
KERNEL(generic)
{
    __shared__ uint32_t shared[64];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    volatile uint32_t *p = own[64] ? shared : (uint32_t *)at;
    p[threadIdx.x] = 3;
    own[threadIdx.x] = p[0] + shared[threadIdx.x];
}

KERNEL(offset)
{
    volatile uint32_t *p = (uint32_t *)at;
    p[0] = 1, p[1] = 2, p[100] = 3, p[4000] = 4;
    own[threadIdx.x] = 1;
}

// By a function that is not inlined.
__device__ __noinline__ void store(volatile uint32_t *p, uint32_t v)
{
    *p = v;
}

KERNEL(function)
{
    store((uint32_t *)at + threadIdx.x, 9);
    own[threadIdx.x] = 1;
}

KERNEL(loop)
{
    volatile uint32_t *p = (uint32_t *)at;
    for (int i = 0; i < 100; i++)
        p[i * 3] = i;
    own[threadIdx.x] = 1;
}

KERNEL(guarded)
{
    if (own[65 + threadIdx.x] == 0)
        *((volatile uint32_t *)at) = 1;
    own[threadIdx.x] = 1;
}

KERNEL(asynchronous)
{
    __shared__ __align__(16) uint4 shared[32];
#if __CUDA_ARCH__ >= 800
    unsigned to = (unsigned)__cvta_generic_to_shared(&shared[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;\ncp.async.wait_all;" ::"r"(to),
                 "l"(at + 16 * threadIdx.x)
                 : "memory");
#else
    shared[threadIdx.x] = ((uint4 *)at)[threadIdx.x];
#endif
    __syncthreads();
    own[threadIdx.x] = shared[threadIdx.x].x;
}

// Variables of the module, by an index.
__device__ uint32_t words[64];
__device__ struct {
    uint32_t first, second;
} pairs[64];

// By a generic address of constant memory.
__constant__ uint32_t constants[64] = {1, 2, 3};
KERNEL(constant_write)
{
    volatile uint32_t *p = at ? (volatile uint32_t *)constants : own + 128;
    store(p + threadIdx.x, 9);
    own[threadIdx.x] = constants[threadIdx.x % 4] == threadIdx.x % 4 + 1;
}

KERNEL(constant_read)
{
    volatile uint32_t *p = own[64] ? own + 128 : (volatile uint32_t *)constants;
    own[threadIdx.x] = p[threadIdx.x] + ((volatile uint32_t *)(at ? at : (uint64_t)own))[threadIdx.x];
}

KERNEL(variable_write)
{
    words[at / 4 + threadIdx.x] = 5;
    own[threadIdx.x] = 1;
}

KERNEL(variable_read)
{
    own[threadIdx.x] = words[at / 4 + threadIdx.x];
}

KERNEL(variable_atomic)
{
    atomicAdd(&words[at / 4 + threadIdx.x % 4], 1u);
    own[threadIdx.x] = 1;
}

KERNEL(variable_pair)
{
    pairs[at / 8 + threadIdx.x].first = threadIdx.x;
    pairs[at / 8 + threadIdx.x].second = 7;
    own[threadIdx.x] = 1;
}

KERNEL(variable_guarded)
{
    if (own[threadIdx.x] == 0)
        words[at / 4 + threadIdx.x] = 5;
    own[threadIdx.x] = 1;
}

__device__ __noinline__ void write_variable(uint64_t at)
{
    words[at / 4 + threadIdx.x] = 5;
}

KERNEL(variable_function)
{
    write_variable(at);
    own[threadIdx.x] = 1;
}

// By a pointer that the kernel loads: to the module's variables, or to the heap of kernels, or wrong.
KERNEL(loaded_variable)
{
    volatile uint64_t *word = (uint64_t *)(own + 128) + threadIdx.x;
    *word = (uint64_t)(words + threadIdx.x) + at;
    *(volatile uint32_t *)*word = 5;
    own[threadIdx.x] = 1;
}

KERNEL(loaded_heap)
{
    uint32_t *block = (uint32_t *)malloc(64);
    volatile uint64_t *word = (uint64_t *)(own + 128) + threadIdx.x;
    *word = at ? (uint64_t)(words + threadIdx.x) + at : (uint64_t)block;
    ((volatile uint32_t *)*word)[3] = 5;
    own[threadIdx.x] = ((volatile uint32_t *)*word)[3];
    free(block);
}

// What lies behind the block's own shared memory.
KERNEL(shared_write)
{
    __shared__ volatile uint32_t shared[32];
    shared[threadIdx.x] = 1;
    shared[at + threadIdx.x] = 2;
    own[threadIdx.x] = shared[threadIdx.x];
}

KERNEL(shared_read)
{
    __shared__ volatile uint32_t shared[32];
    shared[threadIdx.x] = 1;
    own[threadIdx.x] = shared[at + threadIdx.x];
}

KERNEL(shared_atomic)
{
    __shared__ uint32_t shared[32];
    shared[threadIdx.x] = 1;
    __syncthreads();
    atomicAdd(&shared[at + threadIdx.x], 1);
    own[threadIdx.x] = shared[threadIdx.x];
}

KERNEL(shared_generic)
{
    __shared__ uint32_t shared[32];
    shared[threadIdx.x] = 1;
    __syncthreads();
    store(shared + at + threadIdx.x, 4);
    own[threadIdx.x] = 1;
}

// The launch has none of these bytes.
extern __shared__ volatile uint32_t dynamic[];
KERNEL(shared_fixed)
{
    if (at)
        dynamic[16384] = 2;
    own[threadIdx.x] = 1;
}

// At an address that is in the variable, for certain, and not aligned.
KERNEL(shared_skewed)
{
    __shared__ volatile uint32_t shared[32];
    shared[threadIdx.x] = 1;
    if (at)
        *(volatile uint32_t *)((volatile char *)shared + 2) = 2;
    own[threadIdx.x] = shared[threadIdx.x];
}

// --- local memory ------------------------------------------------------------------------------------------

KERNEL(local_write)
{
    volatile uint32_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    a[at] = 7;
    own[threadIdx.x] = a[own[0] % 16];
}

KERNEL(local_read)
{
    volatile uint32_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    own[threadIdx.x] = a[at];
}

KERNEL(local_skewed)
{
    volatile uint32_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    if (at)
        *(volatile uint32_t *)((volatile char *)a + 6) = 7;
    own[threadIdx.x] = a[own[0] % 16];
}

KERNEL(local_before)
{
    volatile uint64_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    a[-(int64_t)at] = 7;
    own[threadIdx.x] = (uint32_t)a[own[0] % 16];
}

// The pointer may be one of shared memory.
KERNEL(local_generic)
{
    __shared__ uint32_t shared[64];
    volatile uint32_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    shared[threadIdx.x] = 1;
    volatile uint32_t *p = own[64] ? shared : a;
    p[at] = 3;
    own[threadIdx.x] = p[0];
}

__device__ __noinline__ uint32_t fill(volatile uint32_t *a, uint64_t at)
{
    a[at] = 5;
    return a[0];
}

// The caller's variable.
KERNEL(local_caller)
{
    volatile uint32_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    own[threadIdx.x] = fill(a, at);
}

KERNEL(local_misaligned)
{
    volatile uint64_t a[16];
    for (int i = 0; i < 16; i++)
        a[(i + own[0]) % 16] = i;
    *(volatile uint64_t *)((volatile char *)a + at) = 3;
    own[threadIdx.x] = (uint32_t)a[own[0] % 16];
}

__device__ __noinline__ uint32_t descend(uint32_t n, volatile uint32_t *own)
{
    volatile uint32_t a[4] = {n, n + 1, own[0], n};
    return n ? descend(n - 1, own) + a[n % 4] : a[own[0] % 4];
}

KERNEL(recursion)
{
    own[threadIdx.x] = descend(at ? 1u << 30 : 8, own + 64);
}

__device__ __noinline__ uint32_t odd(uint32_t n, volatile uint32_t *own);
__device__ __noinline__ uint32_t even(uint32_t n, volatile uint32_t *own)
{
    return n == own[0] ? 1 : odd(n - 1, own) + n;
}

__device__ __noinline__ uint32_t odd(uint32_t n, volatile uint32_t *own)
{
    return n == own[0] ? 0 : even(n - 1, own) * n + own[0];
}

KERNEL(mutual_recursion)
{
    own[threadIdx.x] = even(at ? 1u << 30 : 6, own + 64);
}

// --- calls -------------------------------------------------------------------------------------------------

typedef uint32_t (*callable)(uint32_t);
__device__ __noinline__ uint32_t twice(uint32_t x)
{
    return 2 * x;
}

__device__ __noinline__ uint32_t square(uint32_t x)
{
    return x * x;
}

__device__ __noinline__ uint32_t two(uint32_t x, uint32_t y)
{
    return x + 2 * y;
}

KERNEL(null_call)
{
    callable f = own[64] ? square : twice;
    if (at)
        f = (callable)(uint64_t)own[65];
    own[threadIdx.x] = f(own[66]);
}

KERNEL(wild_call)
{
    callable f = own[64] ? square : twice;
    if (at)
        f = (callable)((uint64_t)f + 16 * at);
    own[threadIdx.x] = f(own[66]);
}

// A function with other parameters.
KERNEL(wrong_call)
{
    uint32_t (*other)(uint32_t, uint32_t) = own[64] ? NULL : two;
    callable f = own[64] ? square : at ? (callable)other : twice;
    own[threadIdx.x] = f(own[66]) + (own[65] ? other(1, 2) : 0);
}

// An index of no target.
KERNEL(wild_branch)
{
    uint32_t v = own[64], index = (uint32_t)at + v;
    asm volatile("{\ntargets: .branchtargets first, second;\nbrx.idx %1, targets;\n"
                 "first: add.u32 %0, %0, 1;\nbra last;\nsecond: add.u32 %0, %0, 2;\nlast:\n}"
                 : "+r"(v)
                 : "r"(index));
    own[threadIdx.x] = v;
}

// The number of no barrier.
KERNEL(wild_barrier)
{
    asm volatile("barrier.sync %0, %1;" ::"r"((uint32_t)at + own[64]), "r"(32 + own[65]) : "memory");
    own[threadIdx.x] = 1;
}

// A count that is none of whole warps.
KERNEL(odd_barrier)
{
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + own[64]), "r"(32 + (uint32_t)at) : "memory");
    own[threadIdx.x] = 1;
}

// An mbarrier cannot wait for so many bytes.
KERNEL(barrier_bytes)
{
    __shared__ uint64_t barrier;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(bar) : "memory");
#if __CUDA_ARCH__ >= 900
        asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar),
                     "r"((uint32_t)at * 16 + own[64])
                     : "memory");
#endif
    }
    own[threadIdx.x] = bar;
}

class shape
{
public:
    uint32_t side;
    __device__ virtual uint32_t area()
    {
        return side;
    }
};

class box : public shape
{
public:
    __device__ virtual uint32_t area()
    {
        return side * side;
    }
};

// An object that was never constructed.
KERNEL(virtual_call)
{
    __shared__ uint64_t memory[8];
    memory[threadIdx.x % 8] = own[64];
    __syncthreads();
    shape *s = (shape *)memory;
    if (!at && threadIdx.x == 0)
        s = own[64] ? new (memory) shape : new (memory) box;
    __syncthreads();
    own[threadIdx.x] = s->area();
}

// --- handles -----------------------------------------------------------------------------------------------

KERNEL(texture)
{
    uint32_t sum = tex1Dfetch<uint32_t>((cudaTextureObject_t)at, threadIdx.x);
    for (int i = 0; i < 3; i++)
        sum += tex1Dfetch<uint32_t>((cudaTextureObject_t)at, threadIdx.x + i);
    own[threadIdx.x] = sum;
}

KERNEL(surface_read)
{
    own[threadIdx.x] = surf1Dread<uint32_t>((cudaSurfaceObject_t)at, threadIdx.x * 4);
}

KERNEL(surface_write)
{
    surf1Dwrite(threadIdx.x, (cudaSurfaceObject_t)at, threadIdx.x * 4);
    own[threadIdx.x] = 1;
}

#include "fence_copies.cuh"

// --- ends --------------------------------------------------------------------------------------------------

// The first thread's loop never ends; the others wait for it at a barrier.
KERNEL(endless)
{
    volatile uint32_t *wait = own + 64;
    while (threadIdx.x == 0 && at && *wait == 0)
        ;
    __syncthreads();
    own[threadIdx.x] = 1;
}

__device__ __noinline__ uint32_t collatz(uint32_t n, volatile uint32_t *own)
{
    uint32_t steps = own[0];
    for (; n != 1; steps++)
        n = n == own[1] ? own[1] : n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

KERNEL(endless_function)
{
    own[threadIdx.x] = collatz(at ? 0 : 27, own + 64);
}

KERNEL(trap)
{
    if (at)
        asm volatile("trap;");
    own[threadIdx.x] = 1;
}

KERNEL(breakpoint)
{
    if (at)
        asm volatile("brkpt;");
    own[threadIdx.x] = 1;
}

// Aims at: the neighbour's memory, where nothing is mapped, the first page, one byte beside a right address.
// Nothing: `at` only says whether to do wrong.
// An index far behind shared memory.
// The neighbour's memory, as a distance from a variable.
// A texture or surface of the program, or none. A tensor map of the program's, for which the kernel gets 1 if
// it is to do wrong; with BAD_MAP one that no call has encoded, with SHORT_MAP one of elements of 16 bits.
enum aim {
    NEIGHBOURS,
    FAR,
    ZERO,
    BESIDE,
    SWITCH,
    INDEX,
    DISTANCE,
    TEXTURE,
    SURFACE,
    MAP,
    BAD_MAP,
    SHORT_MAP,
    FLOAT_MAP,
    SPREAD_MAP
};
enum { REFUSED = 800, ILLEGAL = 700, TIMEOUT = 702 };
enum { INVALID = 715, MISALIGNED = 716, INVALID_PC = 718, FAILED = 719 };
static const struct {
    const char *name;
    void (*kernel)(uint32_t *own, uint64_t at);
    enum aim aim;
    int error;
    int blocks;  // 0: 1
    void (*with_map)(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map);
    const char *options;  // that moat needs to contain it
} cases[] = {
    {"write", write32, NEIGHBOURS, ILLEGAL},
    {"read", read32, NEIGHBOURS, ILLEGAL},
    {"write_byte", write8, NEIGHBOURS, ILLEGAL},
    {"write_64", write64, NEIGHBOURS, ILLEGAL},
    {"write_vector", vector, NEIGHBOURS, ILLEGAL},
    {"read_vector", read_vector, NEIGHBOURS, ILLEGAL},
    {"atomic", atomic, NEIGHBOURS, ILLEGAL},
    {"exchange", exchange, NEIGHBOURS, ILLEGAL},
    {"generic", generic, NEIGHBOURS, ILLEGAL},
    {"offset", offset, NEIGHBOURS, ILLEGAL},
    {"function", function, NEIGHBOURS, ILLEGAL},
    {"loop", loop, NEIGHBOURS, ILLEGAL},
    {"guarded", guarded, NEIGHBOURS, ILLEGAL},
    {"async", asynchronous, NEIGHBOURS, ILLEGAL},
    {"far_write", write32, FAR, ILLEGAL},
    {"far_read", read32, FAR, ILLEGAL},
    {"far_atomic", atomic, FAR, ILLEGAL},
    {"far_vector", vector, FAR, ILLEGAL},
    {"null_write", write32, ZERO, ILLEGAL},
    {"null_read", read32, ZERO, ILLEGAL},
    {"null_atomic", atomic, ZERO, ILLEGAL},
    {"null_generic", generic, ZERO, ILLEGAL},
    {"misaligned_write", write32, BESIDE, MISALIGNED},
    {"misaligned_read", read32, BESIDE, MISALIGNED},
    {"misaligned_64", write64, BESIDE, MISALIGNED},
    {"misaligned_vector", vector, BESIDE, MISALIGNED},
    {"misaligned_atomic", atomic, BESIDE, MISALIGNED},
    {"misaligned_generic", generic, BESIDE, MISALIGNED},
    {"constant_write", constant_write, SWITCH, ILLEGAL},
    {"constant_read", constant_read, NEIGHBOURS, ILLEGAL},
    {"variable_write", variable_write, DISTANCE, ILLEGAL},
    {"variable_read", variable_read, DISTANCE, ILLEGAL},
    {"variable_atomic", variable_atomic, DISTANCE, ILLEGAL},
    {"variable_pair", variable_pair, DISTANCE, ILLEGAL},
    {"variable_guarded", variable_guarded, DISTANCE, ILLEGAL},
    {"variable_function", variable_function, DISTANCE, ILLEGAL},
    {"loaded_variable", loaded_variable, DISTANCE, ILLEGAL},
    {"loaded_heap", loaded_heap, DISTANCE, ILLEGAL},
    {"shared_write", shared_write, INDEX, ILLEGAL},
    {"shared_read", shared_read, INDEX, ILLEGAL},
    {"shared_atomic", shared_atomic, INDEX, ILLEGAL},
    {"shared_generic", shared_generic, INDEX, ILLEGAL},
    {"shared_fixed", shared_fixed, SWITCH, ILLEGAL},
    {"shared_skewed", shared_skewed, SWITCH, MISALIGNED},
    {"local_skewed", local_skewed, SWITCH, MISALIGNED},
    {"local_write", local_write, INDEX, ILLEGAL},
    {"local_read", local_read, INDEX, ILLEGAL},
    {"local_before", local_before, INDEX, ILLEGAL},
    {"local_generic", local_generic, INDEX, ILLEGAL},
    {"local_caller", local_caller, INDEX, ILLEGAL},
    {"local_misaligned", local_misaligned, SWITCH, MISALIGNED},
    {"recursion", recursion, SWITCH, ILLEGAL},
    {"mutual_recursion", mutual_recursion, SWITCH, ILLEGAL},
    {"null_call", null_call, SWITCH, INVALID_PC},
    {"wild_call", wild_call, INDEX, INVALID_PC},
    {"wrong_call", wrong_call, SWITCH, INVALID_PC},
    {"wild_branch", wild_branch, INDEX, INVALID_PC},
    {"wild_barrier", wild_barrier, INDEX, INVALID},
    {"odd_barrier", odd_barrier, SWITCH, INVALID},
    {"barrier_bytes", barrier_bytes, INDEX, INVALID},
    {"virtual_call", virtual_call, SWITCH, ILLEGAL},
    {"texture", texture, TEXTURE, ILLEGAL},
    {"surface_read", surface_read, SURFACE, ILLEGAL},
    {"surface_write", surface_write, SURFACE, ILLEGAL},
    {"bulk_size", bulk_size, INDEX, ILLEGAL},
    {"bulk_odd_size", bulk_size, SWITCH, INVALID},
    {"bulk_constant", bulk_constant, NEIGHBOURS, ILLEGAL},
    {"bulk_prefetch", bulk_prefetch, NEIGHBOURS, ILLEGAL},
    {"bulk_overrun", bulk_overrun, SWITCH, ILLEGAL},
    {"bulk_skewed", bulk_skewed, SWITCH, MISALIGNED},
    {"bulk_store", bulk_store, INDEX, ILLEGAL},
    {"bulk_blocks", bulk_blocks, SWITCH, INVALID, 2},
    {"matrix_stride", matrix_stride, INDEX, ILLEGAL},
    {"matrix_shared", matrix_shared, INDEX, ILLEGAL},
    {"cluster_write", cluster_write, INDEX, ILLEGAL, 2},
    {"cluster_generic", cluster_generic, INDEX, ILLEGAL, 2},
    {"cluster_rank", cluster_rank, SWITCH, ILLEGAL, 2},
    {"cluster_own", cluster_own, INDEX, ILLEGAL, 2},
    {"tensor", NULL, BAD_MAP, ILLEGAL, 1, tensor},
    {"tensor_box", NULL, MAP, ILLEGAL, 1, tensor_box},
    {"tensor_skewed", NULL, MAP, MISALIGNED, 1, tensor_skewed},
    {"tensor_store", NULL, MAP, ILLEGAL, 1, tensor_store},
    {"tensor_rank", NULL, MAP, ILLEGAL, 1, tensor_rank},
    {"tensor_reduce", NULL, SHORT_MAP, ILLEGAL, 1, tensor_reduce},
    {"tensor_and", NULL, FLOAT_MAP, ILLEGAL, 1, tensor_and},
    {"tensor_before", NULL, MAP, INVALID, 1, tensor_before},
    {"tensor_add_before", NULL, MAP, INVALID, 1, tensor_add_before},
    {"tensor_blocks", NULL, MAP, INVALID, 2, tensor_blocks},
    {"tensor_spread", NULL, SPREAD_MAP, ILLEGAL, 1, tensor_spread},
    {"tensor_memory", NULL, MAP, REFUSED, 1, tensor_memory},
    {"parameter", NULL, MAP, ILLEGAL, 1, parameter},
    {"endless", endless, SWITCH, TIMEOUT, 1, NULL, "--fence-watchdog=1"},
    {"endless_function", endless_function, SWITCH, TIMEOUT, 1, NULL, "--fence-watchdog=1"},
    {"trap", trap, SWITCH, FAILED},
    {"breakpoint", breakpoint, SWITCH, FAILED},
};
enum { CASES = sizeof cases / sizeof *cases };

static uint64_t mix(uint64_t v)
{
    v = (v ^ v >> 33) * 0xff51afd7ed558ccdu;
    return v ^ v >> 29;
}

// --- the neighbour in this process -------------------------------------------------------------------------

static struct {
    void *library;
    uint64_t base;
    std::vector<uint8_t> before;
} neighbour;

template <class F> static F call(const char *name)
{
    return (F)dlsym(neighbour.library, name);
}

static void make_neighbour()
{
    const char *path = getenv("FENCE_DRIVER");
    neighbour.library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
    if (!neighbour.library)
        return;
    if (call<int (*)(uint64_t *, size_t)>("cuMemAlloc_v2")(&neighbour.base, NEIGHBOUR)) {
        printf("no memory for the neighbour\n");
        exit(2);
    }
    for (size_t i = 0; i < NEIGHBOUR; i++)
        neighbour.before.push_back((uint8_t)mix(i));
    call<int (*)(uint64_t, const void *, size_t)>("cuMemcpyHtoD_v2")(neighbour.base, neighbour.before.data(),
                                                                     NEIGHBOUR);
}

static bool neighbour_intact()
{
    std::vector<uint8_t> now(NEIGHBOUR);
    return !neighbour.library ||
           (!call<int (*)(void *, uint64_t, size_t)>("cuMemcpyDtoH_v2")(now.data(), neighbour.base,
                                                                        NEIGHBOUR) &&
            now == neighbour.before);
}

// --- handles of the program --------------------------------------------------------------------------------

static uint64_t make_texture(uint32_t *own)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = own;
    resource.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
    resource.res.linear.sizeInBytes = N * 4;
    cudaTextureDesc description = {};
    description.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    cudaCreateTextureObject(&texture, &resource, &description, nullptr);
    return texture;
}

static uint64_t make_surface()
{
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uint32_t>();
    cudaMallocArray(&array, &format, 64, 0, cudaArraySurfaceLoadStore);
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface = 0;
    cudaCreateSurfaceObject(&surface, &resource);
    return surface;
}

// aim: MAP for a right one. rows: the tensor has two dimensions.
static CUtensorMap make_map(uint32_t *own, enum aim aim, bool rows)
{
    CUtensorMap map = {};
    void *entry = NULL;
    cudaDriverEntryPointQueryResult found;
    cuuint64_t size[2] = {1024, 1}, stride = 4096;
    cuuint32_t box[2] = {256, 1}, step[2] = {1, 1};
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    auto encode = (decltype(&cuTensorMapEncodeTiled))entry;
    auto type = aim == SHORT_MAP   ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                : aim == FLOAT_MAP ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                                   : CU_TENSOR_MAP_DATA_TYPE_UINT32;
    auto swizzle = aim == SPREAD_MAP ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
    if (rows) {
        size[0] = box[0] = 16, stride = 64;
        size[1] = 64, box[1] = 16;
    }
    if (!encode || encode(&map, type, rows ? 2 : 1, own, size, &stride, box, step,
                          CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE))
        printf("no tensor map\n");
    if (aim == BAD_MAP)
        ((uint64_t *)&map)[1] ^= 0x10101010;
    return map;
}

// --- one case ----------------------------------------------------------------------------------------------

static uint64_t symbol_address()
{
    void *address = NULL;
    cudaGetSymbolAddress(&address, words);
    return (uint64_t)address;
}

static uint64_t aim_at(enum aim aim, uint64_t own, uint64_t seed)
{
    switch (aim) {
    case NEIGHBOURS:
        return neighbour.base ? neighbour.base + mix(seed) % (NEIGHBOUR / 2) / 16 * 16
                              : own + (1ull << 36) + mix(seed) % (1ull << 34) / 16 * 16;
    case DISTANCE: return aim_at(NEIGHBOURS, own, seed) - symbol_address();
    case FAR: return mix(seed) & 0x7ffffffffff0;
    case ZERO: return mix(seed) % 4096 / 16 * 16;
    case BESIDE: return own + 1024 + (seed & 1) + 1;
    case TEXTURE:
    case SURFACE: return mix(seed) >> (seed & 1 ? 2 : 40) | 0x1000000;
    case INDEX: return (1 << 18) + mix(seed) % (1 << 20);
    default: return 1;
    }
}

static void launch(int n, bool bad, uint64_t seed, uint32_t *own)
{
    enum aim aim = cases[n].aim;
    bool is_switch = aim == SWITCH || aim == INDEX || aim == DISTANCE || cases[n].with_map;
    uint64_t at = bad ? aim_at(aim, (uint64_t)own, seed) : is_switch ? 0 : (uint64_t)own + 1024;
    // One object is there in any case: others exist that are not the one.
    uint64_t object = aim == TEXTURE ? make_texture(own) : aim == SURFACE ? make_surface() : 0;
    if (object && !bad)
        at = object;
    if (cases[n].with_map)
        cases[n].with_map<<<cases[n].blocks, 32>>>(own, at,
                                                   make_map(own, bad ? aim : MAP, aim == SPREAD_MAP));
    else
        cases[n].kernel<<<cases[n].blocks ? cases[n].blocks : 1, 32>>>(own, at);
}

static int run(int n, bool bad, uint64_t seed)
{
    uint32_t *own, host[64] = {0};
    cudaDeviceSetLimit(cudaLimitStackSize, STACK);
    cudaMalloc(&own, N * 4);
    cudaMemset(own, 0, N * 4);
    make_neighbour();
    launch(n, bad, seed, own);
    int launched = cudaGetLastError(), error = cudaDeviceSynchronize();
    // The stack may be larger; the program does not learn it.
    size_t limit = 0;
    bool same_limit = bad || (!cudaDeviceGetLimit(&limit, cudaLimitStackSize) && limit == STACK);
    bool intact = neighbour_intact();
    int copied = cudaMemcpy(host, own, sizeof host, cudaMemcpyDeviceToHost);
    printf("%s %s: error %d, %s\n", bad ? "bad" : "good", cases[n].name, launched ? launched : error,
           intact ? "neighbour intact" : "the neighbour's memory HAS CHANGED");
    int wanted = bad ? cases[n].error : 0;
    // Without a fence the error is the device's, which may call it something else.
    return !intact ? 3 : error != wanted || copied != wanted || !same_limit ? 4 : 0;
}

// --- a process of its own ----------------------------------------------------------------------------------

__global__ void work(float *a, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i];
    for (int k = 0; k < rounds; k++)
        x = x * 1.0000001f + 1e-7f;
    a[i] = x;
}

// Writes the number of rounds to the file. Returns false if there is none any more.
static bool tell(const char *path, long rounds)
{
    FILE *f = path ? fopen(path, "r+") : NULL;
    if (f) {
        fprintf(f, "%ld\n", rounds);
        fclose(f);
    }
    return !path || f;
}

static int compute(double seconds, const char *path)
{
    float *a;
    std::vector<float> first(N), now(N);
    long rounds = 0;
    auto start = std::chrono::steady_clock::now();
    auto passed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    cudaError_t e = cudaMalloc(&a, N * 4);
    while (!e && passed() < seconds && tell(path, rounds)) {
        cudaMemset(a, 0, N * 4);
        for (int i = 0; i < 32; i++)
            work<<<N / 256, 256>>>(a, N, 500);
        e = cudaMemcpy(now.data(), a, N * 4, cudaMemcpyDeviceToHost);
        // What comes before the end of the first round is the start of the process.
        if (!rounds++) {
            first = now;
            if (!path && !e) {
                printf("neighbour: computes\n");
                fflush(stdout);
            }
            start = std::chrono::steady_clock::now();
        }
        if (!e && memcmp(now.data(), first.data(), N * 4)) {
            printf("neighbour: the result of round %ld HAS CHANGED\n", rounds);
            return 3;
        }
    }
    printf("neighbour: %s after %ld rounds, %.4f ms each\n", e ? cudaGetErrorName(e) : "ok", rounds,
           rounds > 1 ? passed() * 1000 / (rounds - 1) : 0);
    return e ? 5 : 0;
}

// The program must get no error: --on-error=skip.
static int mistakes(long count, uint64_t seed)
{
    uint32_t *own;
    float *a;
    std::vector<float> first(N), now(N);
    cudaDeviceSetLimit(cudaLimitStackSize, STACK);
    cudaMalloc(&own, N * 4);
    cudaMalloc(&a, N * 4);
    make_neighbour();
    int n = (int)(seed % CASES), wrong = n;
    for (long i = -1; i < count; i++) {
        cudaMemset(own, 0, N * 4);
        while (cases[n].options)
            n = (n + 1) % CASES;
        wrong = n;
        if (i >= 0) {
            launch(n, true, mix(seed) + (uint64_t)i, own);
            n = (n + 1) % CASES;
        }
        int error = cudaGetLastError();
        error = error ? error : cudaDeviceSynchronize();
        cudaMemset(a, 0, N * 4);
        work<<<N / 256, 256>>>(a, N, 100);
        int copied = cudaMemcpy(now.data(), a, N * 4, cudaMemcpyDeviceToHost);
        if (i < 0)
            first = now;
        bool same = !memcmp(now.data(), first.data(), N * 4), intact = neighbour_intact();
        if (error || copied || !same || !intact) {
            printf("mistake %ld, %s: error %d, then %d%s%s\n", i, cases[wrong].name, error, copied,
                   same ? "" : ", a right kernel's result HAS CHANGED",
                   intact ? "" : ", the neighbour's memory HAS CHANGED");
            return !intact ? 3 : 4;
        }
    }
    printf("%ld mistakes\n", count);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "list")) {
        for (int i = 0; i < CASES; i++)
            printf("%s %d %s %s\n", cases[i].name, cases[i].error,
                   cases[i].aim == SWITCH || cases[i].with_map ? "once" : "seeds",
                   cases[i].options ? cases[i].options : "");
        return 0;
    }
    if (argc == 4 && !strcmp(argv[1], "mistakes"))
        return mistakes(atol(argv[2]), strtoull(argv[3], NULL, 0));
    if (argc >= 3 && !strcmp(argv[1], "neighbour"))
        return compute(atof(argv[2]), argc > 3 ? argv[3] : NULL);
    for (int i = 0; argc >= 3 && i < CASES; i++)
        if (!strcmp(argv[2], cases[i].name))
            return run(i, !strcmp(argv[1], "bad"), argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
    fprintf(stderr, "usage: fence_tenant list | good|bad CASE [SEED] | mistakes COUNT SEED | "
                    "neighbour SECONDS [FILE]\n");
    return 2;
}
