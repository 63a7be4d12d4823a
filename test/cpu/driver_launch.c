// SPDX-License-Identifier: MIT
// Launches through the driver API: arguments in all forms, three-dimensional grids, dynamic shared memory,
// limits.
#include "driver_check.h"

enum { N = 1000 };

static void vector_add(CUmodule module)
{
    static float a[N], b[N], c[N + 1];
    for (int i = 0; i < N; i++) {
        a[i] = (float)i;
        b[i] = (float)(i * 2);
    }
    CUdeviceptr pa, pb, pc;
    TRY(cuMemAlloc_v2(&pa, sizeof a));
    TRY(cuMemAlloc_v2(&pb, sizeof b));
    TRY(cuMemAlloc_v2(&pc, sizeof c));
    TRY(cuMemcpyHtoD_v2(pa, a, sizeof a));
    TRY(cuMemcpyHtoD_v2(pb, b, sizeof b));
    TRY(cuMemsetD32_v2(pc, 0x40000000, N + 1));
    unsigned n = N;
    TRY(LAUNCH(check_function(module, "add"), 8, 128, 0, NULL, &pa, &pb, &pc, &n));
    TRY(cuMemcpyDtoH_v2(c, pc, sizeof c));
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += c[i] != (float)(3 * i);
    EQUAL(wrong, 0);
    CHECK(c[N] == 2.0f);

    // The same with the arguments in one buffer.
    struct {
        CUdeviceptr a, b, c;
        unsigned n;
    } packed = {pa, pb, pc, 10};
    size_t size = sizeof packed - 4;
    TRY(cuMemsetD32_v2(pc, 0, N + 1));
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    TRY(cuLaunchKernel(check_function(module, "add"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
    TRY(cuMemcpyDtoH_v2(c, pc, sizeof c));
    CHECK(c[9] == 27.0f && c[10] == 0.0f);
    TRY(cuMemFree_v2(pa));
    TRY(cuMemFree_v2(pb));
    TRY(cuMemFree_v2(pc));
}

static void three_dimensions(CUmodule module)
{
    enum { GX = 3, GY = 2, GZ = 4, BX = 5, BY = 3, BZ = 2, ALL = GX * GY * GZ * BX * BY * BZ };
    static unsigned out[ALL];
    CUdeviceptr p = check_zeroed(sizeof out);
    TRY(cuLaunchKernel(check_function(module, "indices"), GX, GY, GZ, BX, BY, BZ, 0, NULL, (void *[]){&p},
                       NULL));
    TRY(cuMemcpyDtoH_v2(out, p, sizeof out));
    int wrong = 0, i = 0;
    for (unsigned z = 0; z < GZ; z++)
        for (unsigned y = 0; y < GY; y++)
            for (unsigned x = 0; x < GX; x++)
                for (unsigned t = 0; t < BX * BY * BZ; t++, i++)
                    wrong += out[i] !=
                             (t % BX | t / BX % BY << 5 | t / BX / BY << 10 | x << 15 | y << 20 | z << 25);
    EQUAL(wrong, 0);
    TRY(cuMemFree_v2(p));
}

static void parameters(CUmodule module)
{
    uint8_t p8 = 200;
    uint16_t p16 = 50000;
    double pd = 1.5;
    uint32_t p32 = 4000000000u, whole[5] = {0, 0, 0, 0, 77};
    uint64_t out[5] = {0};
    CUdeviceptr p = check_zeroed(sizeof out);
    TRY(LAUNCH(check_function(module, "parameters"), 1, 1, 0, NULL, &p8, &p, &p16, &pd, &p32, whole));
    TRY(cuMemcpyDtoH_v2(out, p, sizeof out));
    EQUAL(out[0], 200);
    EQUAL(out[1], 50000);
    EQUAL(out[2], 0x3ff8000000000000);
    EQUAL(out[3], 4000000000u);
    EQUAL(out[4], 77);
    TRY(cuMemFree_v2(p));
}

static void dynamic_shared(CUmodule module)
{
    enum { BLOCKS = 7, THREADS = 256 };
    static unsigned in[BLOCKS * THREADS], out[BLOCKS];
    for (unsigned i = 0; i < BLOCKS * THREADS; i++)
        in[i] = i;
    CUdeviceptr pin = check_zeroed(sizeof in), pout = check_zeroed(sizeof out);
    TRY(cuMemcpyHtoD_v2(pin, in, sizeof in));
    CUfunction f = check_function(module, "sums");
    TRY(LAUNCH(f, BLOCKS, THREADS, THREADS * 4, NULL, &pin, &pout));
    TRY(cuMemcpyDtoH_v2(out, pout, sizeof out));
    for (unsigned b = 0; b < BLOCKS; b++)
        EQUAL(out[b], b * THREADS * THREADS + THREADS * (THREADS - 1) / 2);

    // More than 48 KiB must be requested.
    EXPECT(CUDA_ERROR_INVALID_VALUE, LAUNCH(f, 1, 32, 60000, NULL, &pin, &pout));
    TRY(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    EXPECT(CUDA_SUCCESS, LAUNCH(f, 1, 32, 60000, NULL, &pin, &pout));
    TRY(cuCtxSynchronize());
    TRY(cuMemFree_v2(pin));
    TRY(cuMemFree_v2(pout));
}

static void limits(CUmodule module)
{
    CUfunction f = check_function(module, "indices");
    CUdeviceptr p = check_zeroed(1 << 20);
    void *args[] = {&p};
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 0, 1, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 64, 32, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchKernel(f, 0x80000000u, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    EXPECT(CUDA_SUCCESS, cuLaunchKernel(f, 1, 1, 1, 1024, 1, 1, 0, NULL, args, NULL));
    TRY(cuCtxSynchronize());
    TRY(cuMemFree_v2(p));
}

static void attributes(CUmodule module)
{
    CUfunction f = check_function(module, "sums");
    int value = 0, blocks = 0, threads = 0;
    TRY(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
    EQUAL(value, 1024);
    TRY(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, f));
    EQUAL(value, 75);
    TRY(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 1024));
    CHECK(blocks > 0);
    TRY(cuOccupancyMaxPotentialBlockSize(&blocks, &threads, f, NULL, 0, 0));
    CHECK(blocks > 0 && threads > 0 && threads <= 1024);
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("basic.ptx");
    vector_add(module);
    three_dimensions(module);
    parameters(module);
    dynamic_shared(module);
    limits(module);
    attributes(module);
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_launch");
}
