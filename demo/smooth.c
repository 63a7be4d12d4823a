// SPDX-License-Identifier: MIT
// smooth FILE.ptx: runs the kernel of smooth.cu on 256 numbers and checks the result. Plain C on the CUDA
// driver API: built by any C compiler, without a CUDA toolkit, linked with the machine's libcuda or moat's.
#include <stdio.h>
#include <stdlib.h>

#include "driver/cuda_api.h"

enum { N = 256 };

static void try(CUresult result, const char *what)
{
    const char *name = "no name", *text = "no text";
    if (!result)
        return;
    cuGetErrorName(result, &name);
    cuGetErrorString(result, &text);
    printf("%s: %s (%s)\n", what, name, text);
    exit(1);
}

static CUfunction load(const char *path)
{
    CUmodule module;
    CUfunction kernel;
    try(cuModuleLoad(&module, path), path);
    try(cuModuleGetFunction(&kernel, module, "_Z6smoothPf"), "smooth");
    return kernel;
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr x;
    char name[100];
    float before[N], after[N];
    for (int i = 0; i < N; i++)
        before[i] = (float)(i * i % 100);

    try(cuInit(0), "cuInit");
    try(cuDeviceGet(&device, 0), "cuDeviceGet");
    try(cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName");
    try(cuCtxCreate_v2(&context, 0, device), "cuCtxCreate");
    CUfunction kernel = load(argc > 1 ? argv[1] : "demo/smooth.ptx");
    try(cuMemAlloc_v2(&x, sizeof before), "cuMemAlloc");
    try(cuMemcpyHtoD_v2(x, before, sizeof before), "copy");
    try(cuLaunchKernel(kernel, 1, 1, 1, N, 1, 1, 0, NULL, (void *[]){&x}, NULL), "launch");
    try(cuMemcpyDtoH_v2(after, x, sizeof after), "the kernel smooth failed");

    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += after[i] != (before[i] + before[(i + 1) % N]) / 2;
    printf("%d of %d results are wrong; %g and %g became %g\n", wrong, N, before[1], before[2], after[1]);
    try(cuMemFree_v2(x), "cuMemFree");
    try(cuCtxDestroy_v2(context), "cuCtxDestroy");
    return wrong != 0;
}
