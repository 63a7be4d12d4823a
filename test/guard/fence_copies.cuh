// SPDX-License-Identifier: MIT
// Kernels of fence_tenant.cu: sizes that registers hold, bulk copies, clusters, tensor maps, parameters.
#pragma once

// --- sizes that registers hold -----------------------------------------------------------------------------

// A bulk copy of at + 128 bytes into shared memory.
KERNEL(bulk_size)
{
    __shared__ __align__(128) uint32_t shared[32];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    shared[threadIdx.x] = 0;
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        unsigned bytes = (unsigned)(at > 1 ? at & ~15ull : at) + 128;
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 128;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     " [%0], [%1], %2, [%3];" ::"r"(to),
                     "l"(own), "r"(bytes), "r"(bar)
                     : "memory");
        asm volatile("{\n.reg .pred p;\nwait: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
                     "@!p bra wait;\n}" ::"r"(bar)
                     : "memory");
    }
#endif
    __syncthreads();
    own[threadIdx.x] = to + bar + shared[threadIdx.x];
}

#if __CUDA_ARCH__ >= 900
#define INIT_BARRIER(bar)                                                           \
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");         \
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::: "memory")
#define EXPECT(bar, bytes) \
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory")
#define WAIT(bar)                                                                                 \
    for (unsigned done = 0; !done;)                                                               \
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"           \
                 "selp.u32 %0, 1, 0, p;\n}"                                                       \
                 : "=r"(done)                                                                     \
                 : "r"(bar)                                                                       \
                 : "memory")
// A copy of a constant size: the number stands in the instruction.
#define COPY(bytes, to, from, bar)                                                                          \
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], " #bytes    \
                 ", [%2];" ::"r"(to),                                                                       \
                 "l"(from), "r"(bar)                                                                        \
                 : "memory")
#else
#define INIT_BARRIER(bar)
#define EXPECT(bar, bytes)
#define WAIT(bar)
#define COPY(bytes, to, from, bar)
#endif

// What is copied begins at a multiple of 16, and of nothing more.
KERNEL(bulk_constant)
{
    __shared__ __align__(16) uint32_t shared[264];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(shared) + 16;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 1024);
        COPY(1024, to, at + 16, bar);
    }
    __syncthreads();
    WAIT(bar);
    own[threadIdx.x] = shared[threadIdx.x + 4] + to + bar;
}

KERNEL(bulk_prefetch)
{
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(at), "r"(1024) : "memory");
#endif
    own[threadIdx.x] = 1;
}

// All threads wait for a copy that is larger than the block's shared memory.
KERNEL(bulk_overrun)
{
    __shared__ __align__(128) uint32_t shared[32];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, at ? 32768 : 128);
        if (at)
            COPY(32768, to, own, bar);
        else
            COPY(128, to, own, bar);
    }
    __syncthreads();
    WAIT(bar);
    own[threadIdx.x] = shared[threadIdx.x] + to + bar;
}

// The destination is not a multiple of 16.
KERNEL(bulk_skewed)
{
    __shared__ __align__(128) uint32_t shared[64];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(shared) + (unsigned)at * 8;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 128);
        COPY(128, to, own, bar);
    }
    __syncthreads();
    WAIT(bar);
    own[threadIdx.x] = shared[threadIdx.x] + to + bar;
}

// From shared memory, from far behind the block's own.
KERNEL(bulk_store)
{
    __shared__ __align__(128) uint32_t shared[32];
    unsigned from = (unsigned)__cvta_generic_to_shared(shared) + (unsigned)at * 16;
    shared[threadIdx.x] = threadIdx.x;
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(own + 256),
                     "r"(from)
                     : "memory");
#endif
    __syncthreads();
    own[threadIdx.x] = shared[threadIdx.x] + from;
}

// One copy to both blocks of the cluster, and to blocks that it does not have.
__global__ void __cluster_dims__(2) bulk_blocks(uint32_t *own, uint64_t at)
{
    __shared__ __align__(128) uint32_t shared[32];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 128);
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0 && blockIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                     "[%0], [%1], 128, [%2], %3;" ::"r"(to),
                     "l"(own), "r"(bar), "h"((uint16_t)(at ? 0x33 : 3))
                     : "memory");
    WAIT(bar);
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
    own[256 + blockIdx.x * 32 + threadIdx.x] = shared[threadIdx.x] + to + bar;
}

KERNEL(matrix_stride)
{
    using namespace nvcuda;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
    wmma::load_matrix_sync(f, (const float *)own, 16 + (unsigned)at * 4096, wmma::mem_row_major);
    f.x[0] += 1;
    wmma::store_matrix_sync((float *)own, f, 16, wmma::mem_row_major);
}

KERNEL(matrix_shared)
{
    using namespace nvcuda;
    __shared__ float shared[256];
    for (int i = threadIdx.x; i < 256; i += 32)
        shared[i] = i;
    __syncthreads();
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
    wmma::load_matrix_sync(f, shared, 16 + (unsigned)(at % 4096 * 4096), wmma::mem_row_major);
    wmma::store_matrix_sync((float *)own, f, 16, wmma::mem_row_major);
}

// --- another block's shared memory -------------------------------------------------------------------------

__global__ void __cluster_dims__(2) cluster_write(uint32_t *own, uint64_t at)
{
    __shared__ uint32_t shared[32];
    unsigned mine = (unsigned)__cvta_generic_to_shared(shared), other = 0;
    shared[threadIdx.x] = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(mine), "r"(blockIdx.x ^ 1));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(other + 4 * threadIdx.x + (unsigned)at * 16), "r"(7)
                 : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
    own[threadIdx.x] = shared[threadIdx.x] + mine + other;
}

// By a generic address, which may be one of global memory.
__global__ void __cluster_dims__(2) cluster_generic(uint32_t *own, uint64_t at)
{
    __shared__ uint32_t shared[32];
    uint64_t other = (uint64_t)shared;
    shared[threadIdx.x] = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(other) : "l"(other), "r"(blockIdx.x ^ 1));
    store(own[64] ? own : (uint32_t *)(other + 4 * threadIdx.x + at * 4), 7);
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
    own[threadIdx.x] = shared[threadIdx.x];
}

// A block that the cluster does not have.
__global__ void __cluster_dims__(2) cluster_rank(uint32_t *own, uint64_t at)
{
    __shared__ uint32_t shared[32];
    unsigned other = (unsigned)__cvta_generic_to_shared(shared);
    shared[threadIdx.x] = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(other + 4 * threadIdx.x + ((unsigned)at << 25)),
                 "r"(7)
                 : "memory");
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
    own[threadIdx.x] = shared[threadIdx.x];
}

// What lies behind the block's own shared memory, in every block of a cluster.
__global__ void __cluster_dims__(2) cluster_own(uint32_t *own, uint64_t at)
{
    __shared__ volatile uint32_t shared[32];
    shared[threadIdx.x] = 1;
    shared[at + threadIdx.x] = 2;
    own[blockIdx.x * 32 + threadIdx.x] = shared[threadIdx.x];
}

// --- tensor maps -------------------------------------------------------------------------------------------

__device__ static void load_tile(const void *map, uint32_t *own, uint32_t shift)
{
    __shared__ __align__(128) uint32_t tile[1024];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile) + shift;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 1024;" ::"r"(bar) : "memory");
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2}], [%3];" ::"r"(to),
                     "l"(map), "r"(0), "r"(bar)
                     : "memory");
        asm volatile("{\n.reg .pred p;\nwait: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;\n"
                     "@!p bra wait;\n}" ::"r"(bar)
                     : "memory");
    }
#endif
    __syncthreads();
    own[threadIdx.x] = tile[threadIdx.x] + to + bar;
}

__global__ void tensor(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    load_tile(&map, own, 0);
}

// The box does not fit where it is copied to.
__global__ void tensor_box(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    load_tile(&map, own, (unsigned)at * 3584);
}

// All threads wait for the box, whose place is not a multiple of 128.
__global__ void tensor_skewed(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    __shared__ __align__(128) uint32_t tile[1024];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile) + (unsigned)at * 64;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 1024);
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2}], [%3];" ::"r"(to),
                     "l"(&map), "r"(0), "r"(bar)
                     : "memory");
    }
#endif
    __syncthreads();
    WAIT(bar);
    own[threadIdx.x] = tile[threadIdx.x] + to + bar;
}

// From far behind the block's own shared memory.
__global__ void tensor_store(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    __shared__ __align__(128) uint32_t tile[256];
    unsigned from = (unsigned)__cvta_generic_to_shared(tile) + (unsigned)at * (1 << 18);
    for (int i = threadIdx.x; i < 256; i += 32)
        tile[i] = i;
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%0, {%1}], [%2];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&map),
                     "r"(256), "r"(from)
                     : "memory");
#endif
    __syncthreads();
    own[threadIdx.x] = tile[threadIdx.x] + from;
}

// The map has one dimension.
__global__ void tensor_rank(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    __shared__ __align__(128) uint32_t tile[256];
    unsigned from = (unsigned)__cvta_generic_to_shared(tile);
    tile[threadIdx.x] = threadIdx.x;
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && at)
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %1}], [%2];\n"
                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&map),
                     "r"(0), "r"(from)
                     : "memory");
#endif
    own[threadIdx.x] = tile[threadIdx.x] + from;
}

// Stores the tile, or reduces what is there by it.
#if __CUDA_ARCH__ >= 900
#define SEND(op, to)                                                                                        \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                                            \
    __syncthreads();                                                                                        \
    if (threadIdx.x == 0)                                                                                   \
    asm volatile(op ".tile.bulk_group [%0, {%1}], [%2];\n"                                                  \
                    "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(&map),                 \
                 "r"(to), "r"((unsigned)__cvta_generic_to_shared(tile))                                      \
                 : "memory")
#else
#define SEND(op, to)
#endif
#define REDUCE(op, to) SEND("cp.reduce.async.bulk.tensor.1d.global.shared::cta." op, to)
#define TILE                                       \
    __shared__ __align__(128) uint32_t tile[256];  \
    for (int i = threadIdx.x; i < 256; i += 32)    \
    tile[i] = i

// The elements of a wrong map have 16 bits, which the hardware does not add.
__global__ void tensor_reduce(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    TILE;
    REDUCE("add", 256);
    own[threadIdx.x] = tile[threadIdx.x];
}

// The elements of a wrong map are floats, of which the hardware has no `and`.
__global__ void tensor_and(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    TILE;
    REDUCE("and", 256);
    own[threadIdx.x] = tile[threadIdx.x];
}

// A box that begins in front of the tensor can be loaded alone. One that ends behind it is right.
__global__ void tensor_before(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    TILE;
    SEND("cp.async.bulk.tensor.1d.global.shared::cta", at ? -4 : 900);
    own[threadIdx.x] = tile[threadIdx.x];
}

__global__ void tensor_add_before(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    TILE;
    REDUCE("add", at ? -256 : 900);
    own[threadIdx.x] = tile[threadIdx.x];
}

// One box to both blocks of the cluster, and to blocks that it does not have.
__global__ void __cluster_dims__(2)
    tensor_blocks(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    __shared__ __align__(128) uint32_t tile[256];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 1024);
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0 && blockIdx.x == 0)
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2}], [%3], %4;" ::"r"(to),
                     "l"(&map), "r"(0), "r"(bar), "h"((uint16_t)(at ? 0x8003 : 3))
                     : "memory");
    WAIT(bar);
    asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
#endif
    own[256 + blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x] + to + bar;
}

// The rows of a wrong map's box lie twice as far apart in shared memory as they are long. All threads wait
// for the bytes that they have.
__global__ void tensor_spread(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    __shared__ __align__(1024) uint32_t tile[256];
    __shared__ uint64_t barrier;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&barrier);
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
        INIT_BARRIER(bar);
        EXPECT(bar, 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%2, %2}], [%3];" ::"r"(to),
                     "l"(&map), "r"(0), "r"(bar)
                     : "memory");
    }
#endif
    __syncthreads();
    WAIT(bar);
    own[threadIdx.x] = tile[threadIdx.x] + to + bar;
}

__global__ void tensor_memory(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    if (at)
        memcpy(own + 64, &map, sizeof map);
    load_tile(at ? (const void *)(own + 64) : (const void *)&map, own, 0);
}

// --- parameters --------------------------------------------------------------------------------------------

// By an index into a parameter, which stays in the parameters' space.
__global__ void parameter(uint32_t *own, uint64_t at, const __grid_constant__ CUtensorMap map)
{
    uint64_t p = (uint64_t)&map + 4 * threadIdx.x + at * 0x4000000;
    uint32_t v = 0;
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b64 t;\ncvta.to.param.u64 t, %1;\nld.param.u32 %0, [t];\n}" : "=r"(v) : "l"(p));
#endif
    own[threadIdx.x] = v;
}
