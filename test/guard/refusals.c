// SPDX-License-Identifier: MIT
// What wrong transfers return in every state of a program: `refusals STATE` prints the results, `refusals
// list` the states. With moat they must be the driver's own.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static struct driver d;
static CUcontext context;
static CUdeviceptr freed;
static CUstream stream;
static char host[4096];

#define NEED(call)                                \
    do {                                          \
        CUresult need = d.call;                   \
        if (need) {                               \
            printf("%s gives %d\n", #call, need); \
            exit(2);                              \
        }                                         \
    } while (0)
#define ASK(call) printf("%s: %s\n", #call, driver_result_name(d.call))

static void healthy(void)
{
}

static void no_context(void)
{
    NEED(cuCtxSetCurrent(NULL));
}

// Current twice, so that one is left when it is destroyed.
static void destroyed(void)
{
    CUcontext other;
    NEED(cuCtxCreate_v2(&other, 0, 0));
    NEED(cuCtxPushCurrent_v2(other));
    NEED(cuCtxDestroy_v2(other));
}

static void primary_released(void)
{
    NEED(cuDevicePrimaryCtxRelease_v2(0));
    stream = NULL;  // destroyed with it
}

static const char store[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                            ".visible .entry store()\n{\n"
                            "\t.reg .b64 %rd<2>;\n"
                            "\tmov.u64 %rd1, 16;\n"
                            "\tst.global.u32 [%rd1], 7;\n"
                            "\tret;\n}\n";

static void after_a_fault(void)
{
    CUmodule module;
    CUfunction f;
    NEED(cuModuleLoadData(&module, store));
    NEED(cuModuleGetFunction(&f, module, "store"));
    NEED(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    ASK(cuCtxSynchronize());
}

static void ask(void)
{
    CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 64,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = freed,
                          .dstPitch = 64,
                          .WidthInBytes = 64,
                          .Height = 4};
    CUDA_MEMCPY3D slices = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = freed,
                            .srcPitch = 64,
                            .srcHeight = 4,
                            .dstMemoryType = CU_MEMORYTYPE_HOST,
                            .dstHost = host,
                            .dstPitch = 64,
                            .dstHeight = 4,
                            .WidthInBytes = 64,
                            .Height = 4,
                            .Depth = 2};
    ASK(cuMemcpyHtoD_v2(freed, host, 64));
    ASK(cuMemcpyDtoH_v2(host, freed, 64));
    ASK(cuMemcpyDtoD_v2(freed, freed + 512, 64));
    ASK(cuMemcpyHtoDAsync_v2(freed, host, 64, NULL));
    ASK(cuMemcpyHtoDAsync_v2(freed, host, 64, CU_STREAM_PER_THREAD));
    ASK(cuMemcpyHtoDAsync_v2(freed, host, 64, stream));
    ASK(cuMemcpy2D_v2(&rows));
    ASK(cuMemcpy3D_v2(&slices));
    ASK(cuMemsetD8_v2(freed, 1, 64));
    ASK(cuMemsetD32Async(freed, 1, 16, NULL));
    ASK(cuMemsetD2D8_v2(freed, 64, 1, 64, 4));
    ASK(cuMemFree_v2(freed));
}

static const struct {
    const char *name;
    void (*enter)(void);
} states[] = {
    {"healthy", healthy},
    {"no_context", no_context},
    {"destroyed", destroyed},
    {"primary_released", primary_released},
    {"after_a_fault", after_a_fault},
};

static void start(void)
{
    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&context, 0));
    NEED(cuCtxSetCurrent(context));
    NEED(cuMemAlloc_v2(&freed, 4 << 20));
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    NEED(cuMemFree_v2(freed));
}

int main(int argc, char **argv)
{
    char why[300];
    bool list = argc == 2 && strcmp(argv[1], "list") == 0;
    if (argc != 2 || (!list && driver_open(&d, NULL, why, sizeof why)))
        return 2;
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        if (list)
            puts(states[i].name);
        else if (strcmp(argv[1], states[i].name) == 0) {
            start();
            states[i].enter();
            ask();
            return 0;
        }
    }
    return list ? 0 : 2;
}
