// SPDX-License-Identifier: MIT
// alloc_cost: reads orders, lines of CALL SIZE, makes LIVE such calls and answers with the order and the
// nanoseconds of one. CALL is alloc (cuMemAlloc, which cudaMalloc calls), free, alloc_async or free_async;
// the calls that belong to them are made before or afterwards, and are not timed. `slowest` answers with the
// nanoseconds of the slowest single call since it was asked last. A kernel that reads memory is loaded, since
// a mode that checks kernels keeps a table of buffers for those.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

enum { LIVE = 16 };

static struct driver d;
static CUstream stream;
static CUdeviceptr p[LIVE];
static double slowest;

static void take(size_t i, size_t size)
{
    NEED(d.cuMemAlloc_v2(&p[i], size));
}

static void give(size_t i, size_t size)
{
    (void)size;
    NEED(d.cuMemFree_v2(p[i]));
}

static void take_async(size_t i, size_t size)
{
    NEED(d.cuMemAllocAsync(&p[i], size, stream));
}

static void give_async(size_t i, size_t size)
{
    (void)size;
    NEED(d.cuMemFreeAsync(p[i], stream));
}

typedef void call_fn(size_t i, size_t size);

static const struct {
    const char *name;
    call_fn *before, *timed, *after;
} calls[] = {
    {"alloc", NULL, take, give},
    {"free", take, give, NULL},
    {"alloc_async", NULL, take_async, give_async},
    {"free_async", take_async, give_async, NULL},
};

static void each(call_fn *call, size_t size)
{
    for (size_t i = 0; call && i < LIVE; i++)
        call(i, size);
}

static double nanoseconds(call_fn *call, size_t size)
{
    double begin = bench_now(), from = begin;
    for (size_t i = 0; i < LIVE; i++) {
        call(i, size);
        double to = bench_now();
        slowest = to - from > slowest ? to - from : slowest;
        from = to;
    }
    return (from - begin) * 1e9 / LIVE;
}

static bool obey(const char *name, size_t size)
{
    if (!strcmp(name, "slowest")) {
        printf("slowest %.2f\n", slowest * 1e9);
        slowest = 0;
        return !fflush(stdout);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (strcmp(calls[i].name, name) != 0)
            continue;
        each(calls[i].before, size);
        double result = nanoseconds(calls[i].timed, size);
        each(calls[i].after, size);
        NEED(d.cuStreamSynchronize(stream));
        printf("%s %zu %.2f\n", name, size, result);
        return !fflush(stdout);
    }
    fprintf(stderr, "alloc_cost: there is no call '%s'\n", name);
    return false;
}

static void run_kernel(void)
{
    static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry add(.param .u64 p)\n{\n\t.reg .u64 %a;\n\t.reg .u32 %v;\n"
                               "\tld.param.u64 %a, [p];\n\tcvta.to.global.u64 %a, %a;\n"
                               "\tld.global.u32 %v, [%a];\n\tadd.u32 %v, %v, 1;\n"
                               "\tst.global.u32 [%a], %v;\n\tret;\n}\n";
    CUmodule module;
    CUfunction add;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&add, module, "add"));
    take(0, 256);
    NEED(d.cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, (void *[]){&p[0]}, NULL));
    NEED(d.cuStreamSynchronize(stream));
    give(0, 256);
}

int main(void)
{
    char why[300], line[100], name[64];
    unsigned long long size;
    CUcontext context;
    CUmemoryPool pool;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "alloc_cost: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    // Else the pool gives its memory back each time that the stream is waited for.
    NEED(d.cuDeviceGetDefaultMemPool(&pool, 0));
    NEED(d.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &(uint64_t){UINT64_MAX}));
    run_kernel();
    while (fgets(line, sizeof line, stdin)) {
        size = 0;
        if (sscanf(line, "%63s %llu", name, &size) < 1 || !obey(name, (size_t)size))
            return 1;
    }
    return 0;
}
