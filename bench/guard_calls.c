// SPDX-License-Identifier: MIT
// guard_calls [LIVE]: reads names of driver API calls, one a line, makes CALLS such calls and answers with
// the name and the nanoseconds of one. With LIVE, so many more buffers are alive meanwhile. It finds the
// driver as programs do, so that moat can be put before it.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"

enum { CALLS = 400 };

static struct driver d;
static CUfunction kernel;
static CUdeviceptr buffer;
static char *pinned;
static CUstream stream;

static void try(CUresult r, const char *call)
{
    if (!r)
        return;
    fprintf(stderr, "guard_calls: %s: error %d\n", call, r);
    exit(1);
}
#define TRY(call) try((call), #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void launch(void)
{
    void *arguments[] = {&buffer};
    TRY(d.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL));
}

static void copy_async(void)
{
    TRY(d.cuMemcpyHtoDAsync_v2(buffer, pinned, 256, stream));
}

static void copy(void)
{
    TRY(d.cuMemcpyHtoD_v2(buffer, pinned, 256));
}

static void set_async(void)
{
    TRY(d.cuMemsetD32Async(buffer, 0, 64, stream));
}

static void alloc_free(void)
{
    CUdeviceptr p;
    TRY(d.cuMemAlloc_v2(&p, 4096));
    TRY(d.cuMemFree_v2(p));
}

static void alloc_free_in_order(void)
{
    CUdeviceptr p;
    TRY(d.cuMemAllocAsync(&p, 4096, stream));
    TRY(d.cuMemFreeAsync(p, stream));
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"launch", launch},          {"copy_async", copy_async}, {"copy", copy},
    {"memset_async", set_async}, {"alloc_free", alloc_free}, {"alloc_free_in_order", alloc_free_in_order},
};

static double nanoseconds(void (*call)(void))
{
    double start = now();
    for (int j = 0; j < CALLS; j++)
        call();
    double each = (now() - start) / CALLS;
    TRY(d.cuStreamSynchronize(stream));
    return each;
}

static bool obey(const char *order)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!strcmp(calls[i].name, order)) {
            printf("%s %.2f\n", order, nanoseconds(calls[i].call));
            return !fflush(stdout);
        }
    }
    fprintf(stderr, "guard_calls: there is no call '%s'\n", order);
    return false;
}

int main(int argc, char **argv)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry nothing(.param .u64 p)\n{\n\tret;\n}\n";
    char why[300];
    CUcontext context;
    CUmodule module;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "guard_calls: %s\n", why);
        return 77;
    }
    TRY(d.cuInit(0));
    TRY(d.cuDevicePrimaryCtxRetain(&context, 0));
    TRY(d.cuCtxSetCurrent(context));
    TRY(d.cuModuleLoadData(&module, text));
    TRY(d.cuModuleGetFunction(&kernel, module, "nothing"));
    TRY(d.cuMemAlloc_v2(&buffer, 4096));
    TRY(d.cuMemHostAlloc((void **)&pinned, 4096, 0));
    TRY(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (long i = argc > 1 ? atol(argv[1]) : 0; i > 0; i--) {
        CUdeviceptr p;
        TRY(d.cuMemAlloc_v2(&p, 256));
    }
    char order[64];
    while (fgets(order, sizeof order, stdin)) {
        order[strcspn(order, "\n")] = '\0';
        if (!obey(order))
            return 1;
    }
    return 0;
}
