// SPDX-License-Identifier: MIT
// Launches kernels whose counts are known: some before a context ends, one after, and one that never runs
// because its context is in error.
#include "driver_check.h"

static void launch(CUmodule module, unsigned launches)
{
    CUdeviceptr memory = check_zeroed(4096);
    for (unsigned i = 0; i < launches; i++)
        TRY(LAUNCH(check_function(module, "counted"), 3, 64, 0, NULL, &memory));
    TRY(cuCtxSynchronize());
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("counted.ptx");
    launch(module, 2);
    TRY(LAUNCH(check_function(module, "idle"), 1, 1, 0, NULL, NULL));
    TRY(cuCtxDestroy_v2(context));

    context = check_context();
    module = check_module("counted.ptx");
    launch(module, 1);
    CUdeviceptr nowhere = 64;
    EXPECT(CUDA_SUCCESS, LAUNCH(check_function(module, "counted"), 1, 32, 0, NULL, &nowhere));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    return check_end("count_kernels");
}
