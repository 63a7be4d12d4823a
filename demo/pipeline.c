// SPDX-License-Identifier: MIT
// pipeline FILE.ptx overflow|freed|good: host code with one mistake, or none, around the kernel of smooth.cu.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_api.h"

enum { N = 256 };

static void try(CUresult result, const char *what)
{
    const char *name = "no name";
    if (!result)
        return;
    cuGetErrorName(result, &name);
    printf("%s: %s\n", what, name);
    exit(1);
}

static CUdeviceptr upload(const float *numbers, size_t count)
{
    CUdeviceptr x;
    try(cuMemAlloc_v2(&x, N * sizeof *numbers), "cuMemAlloc");
    try(cuMemcpyHtoD_v2(x, numbers, count * sizeof *numbers), "upload");
    return x;
}

static void smooth(const char *path, CUdeviceptr x)
{
    CUmodule module;
    CUfunction kernel;
    try(cuModuleLoad(&module, path), path);
    try(cuModuleGetFunction(&kernel, module, "_Z6smoothPf"), "smooth");
    try(cuLaunchKernel(kernel, 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&x}, NULL), "launch");
    try(cuCtxSynchronize(), "smooth");
}

int main(int argc, char **argv)
{
    static float numbers[N + 1];
    const char *mistake = argc > 2 ? argv[2] : "good";
    CUcontext context;
    try(cuInit(0), "cuInit");
    try(cuCtxCreate_v2(&context, 0, 0), "cuCtxCreate");
    CUdeviceptr x = upload(numbers, strcmp(mistake, "overflow") == 0 ? N + 1 : N);
    if (strcmp(mistake, "freed") == 0)
        try(cuMemFree_v2(x), "cuMemFree");
    smooth(argv[1], x);
    puts("done");
    return 0;
}
