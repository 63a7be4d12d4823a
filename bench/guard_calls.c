// SPDX-License-Identifier: MIT
// guard_calls [LIVE]: nanoseconds per call of the driver API, one line for each kind: name, median over batches. With LIVE,
// so many further buffers are alive meanwhile. It finds the driver as programs do, so that moat can stand before it.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver/driver.h"

enum { BATCHES = 60, CALLS = 400, WARM = 10 };

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

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void measure(const char *name, void (*call)(void))
{
    double ns[BATCHES];
    for (int i = -WARM; i < BATCHES; i++) {
        double start = now();
        for (int j = 0; j < CALLS; j++)
            call();
        double each = (now() - start) / CALLS;
        TRY(d.cuStreamSynchronize(stream));
        if (i >= 0)
            ns[i] = each;
    }
    qsort(ns, BATCHES, sizeof *ns, compare);
    printf("%s %.2f\n", name, ns[BATCHES / 2]);
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
    measure("launch", launch);
    measure("copy_async", copy_async);
    measure("copy", copy);
    measure("memset_async", set_async);
    measure("alloc_free", alloc_free);
    measure("alloc_free_in_order", alloc_free_in_order);
    return 0;
}
