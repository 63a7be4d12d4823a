// SPDX-License-Identifier: MIT
// Tensor maps, made by the driver, passed to kernels: tiles of a matrix are read, changed, and written or
// added elsewhere.
#include <cstdint>
#include <cuda.h>

#include "cuda_try.h"

enum { WIDTH = 100, HEIGHT = 70, TILE = 32, PITCH = 112 };  // elements; a tile's row is 128 bytes

__device__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__global__ void move(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to,
                     int adds, int swizzled)
{
    __shared__ alignas(1024) float tile[TILE][TILE];
    __shared__ uint64_t barrier;
    unsigned x = blockIdx.x * TILE, y = blockIdx.y * TILE, b = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async.shared::cta;" ::"r"(b)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(b), "r"((int)sizeof tile)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                     "[%1, {%2, %3}], [%4];" ::"r"(shared_address(tile)),
                     "l"(&from), "r"(x), "r"(y), "r"(b)
                     : "memory");
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(b)
            : "memory");
    for (int r = 0; r < TILE; r++) {
        // Where the element of this column lies, if the pieces of a row are exchanged.
        int column = swizzled ? ((threadIdx.x / 4) ^ (r % 8)) * 4 + threadIdx.x % 4 : threadIdx.x;
        tile[r][column] += 1000 * (threadIdx.x + 1);
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && adds)
        asm volatile(
            "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::
                "l"(&to),
            "r"(x), "r"(y), "r"(shared_address(tile))
            : "memory");
    else if (threadIdx.x == 0)
        asm volatile(
            "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&to),
            "r"(x), "r"(y), "r"(shared_address(tile))
            : "memory");
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}

typedef decltype(&cuTensorMapEncodeTiled) encode;

static CUtensorMap describe(encode call, float *at, CUtensorMapSwizzle swizzle)
{
    CUtensorMap map;
    cuuint64_t size[2] = {WIDTH, HEIGHT}, stride[1] = {PITCH * sizeof(float)};
    cuuint32_t box[2] = {TILE, TILE}, step[2] = {1, 1};
    TRY(call(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, size, stride, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

int main()
{
    float *in, *out;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    TRY(cudaMallocManaged(&in, PITCH * HEIGHT * sizeof *in));
    TRY(cudaMallocManaged(&out, PITCH * HEIGHT * sizeof *out));
    TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    if (!entry)
        return printf("there are no tensor maps\n"), 1;
    for (int way = 0; way < 4; way++) {
        CUtensorMapSwizzle swizzle = way & 1 ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
        for (int i = 0; i < PITCH * HEIGHT; i++) {
            in[i] = i;
            out[i] = -5;
        }
        CUtensorMap from = describe((encode)entry, in, swizzle), to = describe((encode)entry, out, swizzle);
        move<<<dim3((WIDTH + TILE - 1) / TILE, (HEIGHT + TILE - 1) / TILE), TILE>>>(from, to, way / 2,
                                                                                    way & 1);
        TRY(cudaGetLastError());
        TRY(cudaDeviceSynchronize());
        for (int i = 0; i < PITCH * HEIGHT; i++) {
            float sum = (float)(i + 1000 * (i % PITCH % TILE + 1)) + (way / 2 ? -5 : 0);
            if (out[i] != (i % PITCH < WIDTH ? sum : -5))
                return printf("way %d: %g at %d, not %g\n", way, out[i], i, sum), 1;
        }
    }
    printf("all right\n");
    return 0;
}
