// SPDX-License-Identifier: MIT
// Products by wgmma of tiles that tensor maps bring to shared memory, from sm_90a: whole numbers, so that
// sums are exact.
#include <cstdint>
#include <cuda.h>
#include <cuda_fp16.h>

#include "cuda_try.h"

enum { M = 64, N = 64, K = 64 };  // a row of K halves is 128 bytes

__device__ unsigned shared_address(const void *p)
{
    return (unsigned)__cvta_generic_to_shared(p);
}

__device__ void load(void *to, const CUtensorMap *map, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
                 "[%1, {0, 0}], [%2];" ::"r"(shared_address(to)),
                 "l"(map), "r"(barrier)
                 : "memory");
}

// Rows of 128 bytes, eight of them 1024 bytes, exchanged within 128 bytes.
__device__ uint64_t describe(unsigned at)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 | (at & 0x3ffff) >> 4;
}

// D = A * B, A by rows of K; B by columns of K, or by_rows of N.
__global__ void multiply(float *d, const __grid_constant__ CUtensorMap a,
                         const __grid_constant__ CUtensorMap b, int by_rows)
{
#if __CUDA_ARCH_FEAT_SM90_ALL
    __shared__ alignas(1024) __half as[M * K], bs[N * K];
    __shared__ uint64_t barrier;
    unsigned at = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async.shared::cta;" ::"r"(at)
                     : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at),
                     "r"((int)(sizeof as + sizeof bs))
                     : "memory");
        load(as, &a, at);
        load(bs, &b, at);
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done)
            : "r"(at)
            : "memory");
    float r[4][8] = {};
#define PART(i)                                                                                              \
    "+f"(r[i][0]), "+f"(r[i][1]), "+f"(r[i][2]), "+f"(r[i][3]), "+f"(r[i][4]), "+f"(r[i][5]), "+f"(r[i][6]), \
        "+f"(r[i][7])
#define STEP(trans)                                                                                        \
    asm volatile(                                                                                          \
        "{ .reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "       \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, " \
        "%21, %22, %23, "                                                                                  \
        "%24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, " #trans "; }"                     \
        : PART(0), PART(1), PART(2), PART(3)                                                               \
        : "l"(x), "l"(y), "r"(k))
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int k = 0; k < K; k += 16) {
        uint64_t x = describe(shared_address(as) + k * 2),
                 y = describe(shared_address(bs) + (by_rows ? k * 128 : k * 2));
        if (by_rows)
            STEP(1);
        else
            STEP(0);
    }
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
    for (int i = 0; i < 32; i++)
        d[(row + i / 2 % 2 * 8) * N + i / 4 * 8 + column + i % 2] = r[i / 8][i % 8];
#endif
}

typedef decltype(&cuTensorMapEncodeTiled) encode;

static CUtensorMap map(encode call, __half *at)
{
    CUtensorMap m;
    cuuint64_t size[2] = {64, 64}, stride[1] = {128};
    cuuint32_t box[2] = {64, 64}, step[2] = {1, 1};
    TRY(call(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, at, size, stride, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return m;
}

int main()
{
    __half *a, *b;
    float *d;
    void *entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    TRY(cudaMallocManaged(&a, M * K * sizeof *a));
    TRY(cudaMallocManaged(&b, N * K * sizeof *b));
    TRY(cudaMallocManaged(&d, M * N * sizeof *d));
    TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found));
    for (int by_rows = 0; by_rows < 2; by_rows++) {
        for (int i = 0; i < 64 * 64; i++) {
            a[i] = __float2half((float)((i * 7 + i / 64) % 13 - 6));
            b[i] = __float2half((float)((i * 5 + i / 64 * 3) % 11 - 5));
            d[i] = -1;
        }
        multiply<<<1, 128>>>(d, map((encode)entry, a), map((encode)entry, b), by_rows);
        TRY(cudaGetLastError());
        TRY(cudaDeviceSynchronize());
        for (int i = 0; i < M * N; i++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum +=
                    __half2float(a[i / N * K + k]) * __half2float(b[by_rows ? k * N + i % N : i % N * K + k]);
            if (d[i] != sum)
                return printf("by_rows %d: %g in row %d, column %d, not %g\n", by_rows, d[i], i / N, i % N,
                              sum),
                       1;
        }
    }
    printf("all right\n");
    return 0;
}
