// SPDX-License-Identifier: MIT
// Errors of instructions by which blocks and clusters work together, which --mode=check must find, each with
// a correct twin: see check_cases.cuh. Each kernel ends, and what a wrong instruction would have changed
// keeps its value.
#include "check_cases.cuh"

#include <cuda.h>

enum { WIDTH = 64, HEIGHT = 48, BOX = 32 };

__device__ static unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ static void barrier_init(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1; fence.proxy.async.shared::cta;" ::"r"(barrier),
                 "r"(count)
                 : "memory");
}

__device__ static void barrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ static void barrier_wait(unsigned barrier)
{
    for (unsigned done = 0; !done;)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(barrier)
            : "memory");
}

// --- tensor maps -------------------------------------------------------------------------------------------

static const CUtensorMap &describe(void *at, unsigned width, unsigned height, unsigned columns = BOX,
                                   unsigned rows = BOX,
                                   CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE)
{
    typedef decltype(&cuTensorMapEncodeTiled) encode;
    static CUtensorMap map;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    const char *name = "cuTensorMapEncodeTiled";
    NEED(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
    cuuint64_t size[2] = {width, height}, stride[1] = {WIDTH * sizeof(float)};
    cuuint32_t box[2] = {columns, rows}, step[2] = {1, 1};
    NEED((cudaError_t)((encode)entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, size, stride, box, step,
                                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

struct maps {
    int unused[16];
    CUtensorMap from, to;
};

enum way { LOADS, STORES, ADDS };

// The two halves of `all` are adjacent; a box that starts in the middle of the first reaches the second.
__global__ void boxes(const __grid_constant__ maps m, float *out, way what, int x, int y, int shift)
{
    __shared__ struct {
        alignas(128) float tile[BOX * BOX];
    } s;
    __shared__ alignas(128) float neighbour[64];
    __shared__ uint64_t barrier;
    unsigned b = shared_address(&barrier), to = shared_address(s.tile) + shift;
    for (int i = threadIdx.x; i < BOX * BOX; i += 32)
        s.tile[i] = 3;
    neighbour[threadIdx.x] = neighbour[32 + threadIdx.x] = 7;
    if (threadIdx.x == 0)
        barrier_init(b, 1);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && what == LOADS) {
        barrier_expect(b, sizeof s.tile);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(&m.from), "r"(x), "r"(y), "r"(b)
                     : "memory");
    } else if (threadIdx.x == 0 && what == STORES) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&m.to),
            "r"(x), "r"(y), "r"(to)
            : "memory");
    } else if (threadIdx.x == 0) {
        asm volatile(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::
                "l"(&m.to),
            "r"(x), "r"(y), "r"(to)
            : "memory");
    }
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    if (what == LOADS)
        barrier_wait(b);
    __syncthreads();
    out[threadIdx.x] = neighbour[threadIdx.x] + neighbour[32 + threadIdx.x];
}

static void run_boxes(float *data, unsigned height, way what, int x, int y, int shift)
{
    static maps m;
    float *out = take<float>(32), got[32];
    m.from = m.to = describe(data, WIDTH, height);
    boxes<<<1, 32>>>(m, out, what, x, y, shift);
    wait();
    NEED(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (float f : got)
        if (f != 14)
            printf("%g instead of 14\n", f), exit(3);
}

// The tensor has more rows than its buffer. Boxes that stay inside of the buffer are right, and so are boxes
// that leave the tensor itself.
static void tensor_from(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    run_boxes(data, HEIGHT + 1, LOADS, 16, HEIGHT - BOX + bad, 0);
    run_boxes(data, HEIGHT + 1, LOADS, 48, HEIGHT - BOX, 0);
    run_boxes(data, HEIGHT + 1, LOADS, -8, -8, 0);
    run_boxes(data, HEIGHT, LOADS, 48, HEIGHT - 5, 0);
    run_boxes(data, HEIGHT, LOADS, -8, -8, 0);
}

static void tensor_to(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    run_boxes(data, 2 * HEIGHT, STORES, 0, bad ? HEIGHT - 4 : 0, 0);
}

static void tensor_add(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    run_boxes(data, HEIGHT + BOX, ADDS, 4, HEIGHT - BOX + 5 * bad, 0);
}

// The first elements are outside of the tensor. Such a box can only be loaded.
static void tensor_before(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    run_boxes(data, HEIGHT + BOX, LOADS, -4, HEIGHT - BOX + 5 * bad, 0);
}

static void tensor_freed(bool bad)
{
    static maps m;
    float *data = take<float>(WIDTH * HEIGHT), *out = take<float>(32);
    m.from = m.to = describe(data, WIDTH, HEIGHT);
    if (bad)
        NEED(cudaFree(data));
    boxes<<<1, 32>>>(m, out, LOADS, 0, 0, 0);
    wait();
}

static void tensor_shared(bool bad)
{
    run_boxes(take<float>(WIDTH * HEIGHT), HEIGHT, LOADS, 0, 0, 128 * bad);
}

static void tensor_source(bool bad)
{
    run_boxes(take<float>(WIDTH * HEIGHT), HEIGHT, STORES, 0, 0, -128 * bad);
}

// Rows of half a swizzle's span lie a span apart: 32 of them fill the tile.
static void tensor_spread(bool bad)
{
    static maps m;
    float *data = take<float>(WIDTH * HEIGHT), *out = take<float>(32);
    m.from = m.to = describe(data, WIDTH, HEIGHT, BOX / 2, BOX + bad, CU_TENSOR_MAP_SWIZZLE_128B);
    boxes<<<1, 32>>>(m, out, STORES, 0, 0, 0);
    wait();
}

static void tensor_encoded(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    if (bad)
        NEED(cudaFree(data));
    describe(data, WIDTH, HEIGHT);
    wait();
}

// The first thread makes a map of floats from zeros; the first warp copies it to global memory.
__device__ static void make_map(void *to, const float *data, unsigned width, unsigned height)
{
    __shared__ alignas(128) unsigned made[32];
    unsigned at = shared_address(made);
    if (threadIdx.x < 32)
        made[threadIdx.x] = 0;
    __syncwarp();
    if (threadIdx.x == 0) {
#define SET(field, type, value) \
    asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." type " [%0], " value ";" ::"r"(at), \
                 "l"(data), "r"(width), "r"(height), "l"((uint64_t)width * sizeof(float)), "r"(BOX), "r"(1) \
                 : "memory")
        SET("global_address", "b64", "%1");
        SET("rank", "b32", "1");
        SET("box_dim", "b32", "0, %5");
        SET("box_dim", "b32", "1, %5");
        SET("global_dim", "b32", "0, %2");
        SET("global_dim", "b32", "1, %3");
        SET("global_stride", "b64", "0, %4");
        SET("element_stride", "b32", "0, %6");
        SET("element_stride", "b32", "1, %6");
        SET("elemtype", "b32", "7");
        SET("interleave_layout", "b32", "0");
        SET("swizzle_mode", "b32", "0");
        SET("fill_mode", "b32", "0");
    }
    __syncwarp();
    if (threadIdx.x < 32)
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                     "[%0], [%1], 128;" ::"l"(to),
                     "r"(at)
                     : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to) : "memory");
    __syncthreads();
}

// Makes a map twice at one address, of the heights. Then the last warp copies a box from row y on: to shared
// memory, or there.
__global__ void made_boxes(float *data, char *maps, unsigned first, unsigned second, way what, int y)
{
    __shared__ alignas(128) float tile[BOX * BOX];
    __shared__ uint64_t barrier;
    unsigned b = shared_address(&barrier), to = shared_address(tile);
    void *map = maps + 128 * blockIdx.x;
    if (threadIdx.x == 0)
        barrier_init(b, 1);
    tile[threadIdx.x] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    make_map(map, data, WIDTH, first);
    make_map(map, data, WIDTH, second);
    if (threadIdx.x == blockDim.x - 32 && what == LOADS) {
        barrier_expect(b, sizeof tile);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %3}], [%4];" ::"r"(to),
                     "l"(map), "r"(16), "r"(y), "r"(b)
                     : "memory");
    } else if (threadIdx.x == blockDim.x - 32) {
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
            "r"(16), "r"(y), "r"(to)
            : "memory");
    }
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
    if (what == LOADS)
        barrier_wait(b);
}

static void run_made(unsigned first, unsigned second, way what, int y)
{
    float *data = take<float>(WIDTH * HEIGHT);
    char *maps = take<char>(2 * 128);
    made_boxes<<<2, 64>>>(data, maps, first, second, what, y);
    wait();
}

// Maps that say more than the buffer has, and boxes inside of the buffer, or of the tensor, are right.
static void made_from(bool bad)
{
    run_made(HEIGHT, HEIGHT + BOX, LOADS, HEIGHT - BOX + bad);
    run_made(HEIGHT + BOX, HEIGHT, LOADS, HEIGHT - BOX + 1);
    run_made(HEIGHT, 2 * HEIGHT, LOADS, -5);
}

static void made_to(bool bad)
{
    run_made(1, HEIGHT + 1, STORES, HEIGHT - BOX + bad);
    run_made(HEIGHT + 1, HEIGHT, STORES, HEIGHT - 1);
}

// --- barriers ----------------------------------------------------------------------------------------------

// One thread signals a barrier of several; all wait for it.
__global__ void barriers(float *out, int which, int inits)
{
    __shared__ uint64_t barrier[4];
    __shared__ uint64_t next[4];
    unsigned b = shared_address(&barrier[which]);
    if (threadIdx.x == 0)
        for (int i = 0; i < 4; i++)
            next[i] = 7;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int i = 0; i < inits; i++)
            barrier_init(shared_address(&barrier[i]), 1);
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(b) : "memory");
    barrier_wait(b);
    out[threadIdx.x] = next[threadIdx.x % 4] == 7 ? 14 : 0;
}

static void expect_14(const float *device)
{
    float got[32];
    wait();
    NEED(cudaMemcpy(got, device, sizeof got, cudaMemcpyDeviceToHost));
    for (float f : got)
        if (f != 14)
            printf("%g instead of 14\n", f), exit(3);
}

static void barrier_used(bool bad)
{
    float *out = take<float>(32);
    barriers<<<1, 32>>>(out, bad ? 4 : 2, 4);
    expect_14(out);
}

static void barrier_made(bool bad)
{
    float *out = take<float>(32);
    barriers<<<1, 32>>>(out, 1, 4 + bad);
    expect_14(out);
}

// --- clusters ----------------------------------------------------------------------------------------------

// Each of two blocks writes into the other's array, whose neighbours keep what they have.
template <typename T> __device__ T *of_block(T *p, unsigned rank)
{
    T *there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(p), "r"(rank));
    return there;
}

__device__ static unsigned of_block(unsigned p, unsigned rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(p), "r"(rank));
    return there;
}

__device__ static unsigned rank_in_cluster()
{
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ static void sync_cluster()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

enum reach { GENERIC, SHORT, ATOMIC, ASYNC, REMOTE_BARRIER };

__global__ void __cluster_dims__(2, 1, 1) neighbours(float *out, reach how, int at)
{
    __shared__ int before[32], tile[64], after[32];
    __shared__ uint64_t barrier;
    int i = threadIdx.x;
    unsigned other = rank_in_cluster() ^ 1, b = shared_address(&barrier);
    before[i] = after[i] = 7;
    tile[i] = tile[32 + i] = 0;
    if (i == 0)
        barrier_init(b, 1);
    __syncthreads();
    if (i == 0 && how == ASYNC)
        barrier_expect(b, 4);
    sync_cluster();
    if (how == GENERIC)
        of_block(tile, other)[at + i] = 5;
    else if (how == SHORT)
        asm volatile(
            "st.shared::cluster.u32 [%0], %1;" ::"r"(of_block(shared_address(tile), other) + 4 * (at + i)),
            "r"(5)
            : "memory");
    else if (how == ATOMIC)
        atomicAdd(&of_block(tile, other)[at + i], 5);
    else if (how == ASYNC && i == 0)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(
                         of_block(shared_address(tile), other) + 4 * (at + 31)),
                     "r"(5), "r"(of_block(b, other))
                     : "memory");
    else if (how == REMOTE_BARRIER && i == 0)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(of_block(b, other) +
                                                                                          8 * (at - 32))
                     : "memory");
    if (how == ASYNC)
        barrier_wait(b);
    sync_cluster();
    if (how != REMOTE_BARRIER && how != ASYNC && tile[33] != 5 && tile[34] != 5)
        return;
    out[blockIdx.x * 32 + i] = before[i] + after[i];
}

static void run_neighbours(reach how, int at)
{
    float *out = take<float>(64);
    neighbours<<<2, 32>>>(out, how, at);
    expect_14(out);
    expect_14(out + 32);
}

static void cluster_generic(bool bad)
{
    run_neighbours(GENERIC, 32 + bad);
}

static void cluster_short(bool bad)
{
    run_neighbours(SHORT, 32 + bad);
}

static void cluster_atomic(bool bad)
{
    run_neighbours(ATOMIC, 32 + bad);
}

static void cluster_async(bool bad)
{
    run_neighbours(ASYNC, 32 + bad);
}

static void cluster_barrier(bool bad)
{
    run_neighbours(REMOTE_BARRIER, 32 + bad);
}

__global__ void __cluster_dims__(2, 1, 1) dynamic(float *out, int at)
{
    extern __shared__ int words[];
    unsigned other = rank_in_cluster() ^ 1;
    sync_cluster();
    of_block(words, other)[at + threadIdx.x] = 14;
    sync_cluster();
    out[threadIdx.x] = words[at + threadIdx.x - (at != 32)];
}

static void cluster_dynamic(bool bad)
{
    float *out = take<float>(32);
    dynamic<<<2, 32, 64 * sizeof(int)>>>(out, 32 + bad);
    if (!bad)
        expect_14(out);
    wait();
}

// One block copies to both.
__global__ void __cluster_dims__(2, 1, 1) to_all(const char *from, float *out, int bytes)
{
    __shared__ alignas(128) char tile[1024];
    __shared__ alignas(128) char next[32];
    __shared__ uint64_t barrier;
    unsigned b = shared_address(&barrier), t = shared_address(tile);
    next[threadIdx.x] = 7;
    if (threadIdx.x == 0) {
        barrier_init(b, 1);
        barrier_expect(b, bytes);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    sync_cluster();
    if (threadIdx.x == 0 && rank_in_cluster() == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], %2, [%3], %4;" ::"r"(t),
                     "l"(from), "r"(bytes), "r"(b), "h"((short)3)
                     : "memory");
    barrier_wait(b);
    sync_cluster();
    out[blockIdx.x * 32 + threadIdx.x] = 2 * next[threadIdx.x];
}

static void multicast_from(bool bad)
{
    float *out = take<float>(64);
    to_all<<<2, 32>>>(take<char>(512), out, 512 + 16 * bad);
    expect_14(out);
    expect_14(out + 32);
}

static void multicast_to(bool bad)
{
    float *out = take<float>(64);
    to_all<<<2, 32>>>(take<char>(4096), out, 1024 + 16 * bad);
    expect_14(out);
    expect_14(out + 32);
}

// --- products of matrices ----------------------------------------------------------------------------------

// Rows of 128 bytes, eight of them 1024 bytes, exchanged within 128 bytes, or without that.
__device__ static uint64_t matrix_at(unsigned at, bool swizzled)
{
    uint64_t start = (at & 0x3ffff) >> 4;
    return swizzled ? (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 | start
                    : (uint64_t)(256 >> 4) << 32 | (uint64_t)(128 >> 4) << 16 | start;
}

// A product of a matrix of 64 rows and one of 8 columns, of which one lies at a distance.
__global__ void product(float *out, int a_at, int b_at, bool swizzled, bool turned)
{
#if __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ __align__(1024) char matrices[];
    float r[4] = {7, 7, 7, 7};
    for (int i = threadIdx.x; i < 16384; i += 128)
        matrices[i] = 0;
    __syncthreads();
    uint64_t a = matrix_at(shared_address(matrices) + a_at, swizzled),
             b = matrix_at(shared_address(matrices) + b_at, swizzled);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    if (turned)
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                     "%4, %5, 1, 1, 1, 1, 0;"
                     : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])
                     : "l"(a), "l"(b)
                     : "memory");
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, "
                     "%4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3])
                     : "l"(a), "l"(b)
                     : "memory");
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[threadIdx.x] = r[0] + r[3];
#endif
}

static void run_product(int a_at, int b_at, bool swizzled, bool turned = false)
{
    float *out = take<float>(128);
    product<<<1, 128, 16384>>>(out, a_at, b_at, swizzled, turned);
    expect_14(out);
    expect_14(out + 96);
}

// 64 rows of 128 bytes end with the shared memory.
static void product_a(bool bad)
{
    run_product(8192 + 1024 * bad, 0, true);
    run_product(8192 + 96, 0, true);
}

static void product_b(bool bad)
{
    run_product(0, 15360 + 1024 * bad, true);
}

// Eight pairs of pieces of 8 rows, 256 bytes each.
static void product_plain(bool bad)
{
    run_product(14336 + 16 * bad, 0, false);
}

// 16 lines of 128 bytes have 64 rows.
static void product_turned(bool bad)
{
    run_product(14336 + 1024 * bad, 0, true, true);
}

static const struct check_case cases[] = {
    {"tensor_from", tensor_from, "heap-buffer-overflow"},
    {"tensor_to", tensor_to, "heap-buffer-overflow"},
    {"tensor_add", tensor_add, "heap-buffer-overflow"},
    {"tensor_before", tensor_before, "heap-buffer-overflow"},
    {"tensor_freed", tensor_freed, "heap-use-after-free"},
    {"tensor_shared", tensor_shared, "shared-buffer-overflow"},
    {"tensor_source", tensor_source, "shared-buffer-overflow"},
    {"tensor_spread", tensor_spread, "shared-buffer-overflow"},
    {"tensor_encoded", tensor_encoded, "heap-use-after-free"},
    {"made_from", made_from, "heap-buffer-overflow"},
    {"made_to", made_to, "heap-buffer-overflow"},
    {"barrier_used", barrier_used, "shared-buffer-overflow"},
    {"barrier_made", barrier_made, "shared-buffer-overflow"},
    {"cluster_generic", cluster_generic, "shared-buffer-overflow"},
    {"cluster_short", cluster_short, "shared-buffer-overflow"},
    {"cluster_atomic", cluster_atomic, "shared-buffer-overflow"},
    {"cluster_async", cluster_async, "shared-buffer-overflow"},
    {"cluster_barrier", cluster_barrier, "shared-buffer-overflow"},
    {"cluster_dynamic", cluster_dynamic, "shared-buffer-overflow"},
    {"multicast_from", multicast_from, "heap-buffer-overflow"},
    {"multicast_to", multicast_to, "shared-buffer-overflow"},
    {"product_a", product_a, "shared-buffer-overflow"},
    {"product_b", product_b, "shared-buffer-overflow"},
    {"product_plain", product_plain, "shared-buffer-overflow"},
    {"product_turned", product_turned, "shared-buffer-overflow"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
