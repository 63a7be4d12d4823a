// SPDX-License-Identifier: MIT
// app [FILE.ptx]: runs the kernel of scale.cu on 1 MiB of numbers. Plain C on the CUDA driver API, so that
// any C compiler builds it without a CUDA toolkit.
#include <stdio.h>
#include <stdlib.h>

#include "driver/cuda_api.h"

enum { N = 1 << 18, BLOCK = 256 };

static void try(CUresult result, const char *what)
{
    const char *name = "no name";
    if (!result)
        return;
    cuGetErrorName(result, &name);
    printf("%s: %s\n", what, name);
    exit(1);
}

static CUdeviceptr make_numbers(int n)
{
    CUdeviceptr x;
    try(cuMemAlloc_v2(&x, n * sizeof(float)), "cuMemAlloc");
    try(cuMemsetD32_v2(x, 0, n), "cuMemsetD32");
    return x;
}

static void scale(const char *path, CUdeviceptr x, float factor, int n)
{
    CUmodule module;
    CUfunction kernel;
    void *arguments[] = {&x, &factor, &n};
    try(cuModuleLoad(&module, path), path);
    try(cuModuleGetFunction(&kernel, module, "_Z5scalePffi"), "scale");
    try(cuLaunchKernel(kernel, n / BLOCK + 1, 1, 1, BLOCK, 1, 1, 0, NULL, arguments, NULL), "launch");
    try(cuCtxSynchronize(), "scale");
}

int main(int argc, char **argv)
{
    CUcontext context;
    try(cuInit(0), "cuInit");
    try(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    CUdeviceptr x = make_numbers(N);
    scale(argc > 1 ? argv[1] : "demo/scale.ptx", x, 2, N);
    try(cuMemFree_v2(x), "cuMemFree");
    puts("done");
    return 0;
}
