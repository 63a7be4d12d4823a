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

static const CUtensorMap &describe(void *at, unsigned width, unsigned height, unsigned pitch = WIDTH)
{
    typedef decltype(&cuTensorMapEncodeTiled) encode;
    static CUtensorMap map;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    NEED(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    cuuint64_t size[2] = {width, height}, stride[1] = {pitch * sizeof(float)};
    cuuint32_t box[2] = {BOX, BOX}, step[2] = {1, 1};
    NEED((cudaError_t)((encode)entry)(
        &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
        CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
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
    run_boxes(data, HEIGHT + BOX, ADDS, -1, HEIGHT - BOX + 5 * bad, 0);
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

static void tensor_encoded(bool bad)
{
    float *data = take<float>(WIDTH * HEIGHT);
    if (bad)
        NEED(cudaFree(data));
    describe(data, WIDTH, HEIGHT);
    wait();
}

static const struct check_case cases[] = {
    {"tensor_from", tensor_from, "heap-buffer-overflow"},
    {"tensor_to", tensor_to, "heap-buffer-overflow"},
    {"tensor_add", tensor_add, "heap-buffer-overflow"},
    {"tensor_freed", tensor_freed, "heap-use-after-free"},
    {"tensor_shared", tensor_shared, "shared-buffer-overflow"},
    {"tensor_source", tensor_source, "shared-buffer-overflow"},
    {"tensor_encoded", tensor_encoded, "heap-use-after-free"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
