// SPDX-License-Identifier: MIT
// Progress: two kernels, a kernel and the host, blocks of one grid, and lanes of one warp wait for each
// other.
#include <stdatomic.h>
#include <time.h>

#include "driver_check.h"

enum { TURNS = 100 };

static void two_kernels(CUmodule module)
{
    CUstream a, b;
    TRY(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CUdeviceptr flag = check_zeroed(4);
    CUfunction ping = check_function(module, "ping");
    unsigned side[2] = {0, 1}, turns = TURNS, value = 0;
    TRY(cuCtxSynchronize());
    TRY(LAUNCH(ping, 1, 1, 0, a, &flag, &side[1], &turns));
    TRY(LAUNCH(ping, 1, 1, 0, b, &flag, &side[0], &turns));
    TRY(cuStreamSynchronize(a));
    TRY(cuStreamSynchronize(b));
    TRY(cuMemcpyDtoH_v2(&value, flag, 4));
    EQUAL(value, 2 * TURNS);
    TRY(cuMemFree_v2(flag));
    TRY(cuStreamDestroy_v2(a));
    TRY(cuStreamDestroy_v2(b));
}

static void with_the_host(CUmodule module)
{
    atomic_uint *flag;
    CUdeviceptr p;
    unsigned side = 1, turns = TURNS;
    TRY(cuMemHostAlloc((void **)&flag, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    atomic_store(flag, 0);
    TRY(cuMemHostGetDevicePointer_v2(&p, flag, 0));
    TRY(LAUNCH(check_function(module, "ping"), 1, 1, 0, NULL, &p, &side, &turns));
    time_t end = time(NULL) + 60;
    for (unsigned i = 0; i < TURNS; i++) {
        while (atomic_load(flag) != 2 * i && time(NULL) < end) {
        }
        atomic_store(flag, 2 * i + 1);
    }
    TRY(cuCtxSynchronize());
    EQUAL(atomic_load(flag), 2 * TURNS);
    TRY(cuMemFreeHost(flag));
}

static void under_a_lock(CUmodule module)
{
    CUdeviceptr lock = check_zeroed(8), count = lock + 4;
    unsigned value = 0;
    TRY(LAUNCH(check_function(module, "lock_and_count"), 8, 96, 0, NULL, &lock, &count));
    TRY(cuMemcpyDtoH_v2(&value, count, 4));
    EQUAL(value, 8 * 96);
    TRY(cuMemFree_v2(lock));
}

static void whole_grids(CUmodule module)
{
    enum { BLOCKS = 16, BARRIERS = 10 };
    CUfunction f = check_function(module, "grid_barrier");
    CUdeviceptr arrived = check_zeroed(4), out = check_zeroed(BARRIERS * 4);
    unsigned turns = BARRIERS, result[BARRIERS];
    void *args[] = {&arrived, &out, &turns};
    TRY(cuLaunchCooperativeKernel(f, BLOCKS, 1, 1, 64, 1, 1, 0, NULL, args));
    TRY(cuMemcpyDtoH_v2(result, out, sizeof result));
    for (unsigned i = 0; i < BARRIERS; i++)
        CHECK(result[i] >= (i + 1) * BLOCKS && result[i] <= BARRIERS * BLOCKS);
    // More blocks than can be resident could never meet.
    EXPECT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
           cuLaunchCooperativeKernel(f, 1 << 20, 1, 1, 64, 1, 1, 0, NULL, args));
    TRY(cuCtxSynchronize());
    TRY(cuMemFree_v2(arrived));
    TRY(cuMemFree_v2(out));
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("talk.ptx");
    two_kernels(module);
    with_the_host(module);
    under_a_lock(module);
    whole_grids(module);
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_talk");
}
