// SPDX-License-Identifier: MIT
// shadow_replay TRACE FACTOR: makes the allocations of a trace (shadow_trace.c), of FACTOR times their sizes,
// and prints how many bytes it had at most at a time, and how much less memory of the device was free then:
// PEAK TAKEN; of an empty trace, what a context takes. A kernel runs first, so that all is in place that
// kernels need.
#include <string.h>

#include "bench.h"

enum { MOST = 1 << 20 };

static struct driver d;
static const char text[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                           ".visible .entry touch(.param .u64 at)\n{\n.reg .u64 %p; .reg .u32 %v;\n"
                           "ld.param.u64 %p, [at]; mov.u32 %v, 1; st.global.u32 [%p], %v; ret;\n}\n";

static struct block {
    unsigned long long id, bytes, at;
    char kind;
} blocks[MOST];
static size_t nblocks;

static size_t taken(size_t before)
{
    size_t now, all;
    NEED(d.cuMemGetInfo_v2(&now, &all));
    return before > now ? before - now : 0;
}

static void touch(void)
{
    CUmodule module;
    CUfunction f;
    CUdeviceptr at;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&f, module, "touch"));
    NEED(d.cuMemAlloc_v2(&at, 4));
    void *params[] = {&at};
    NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    NEED(d.cuCtxSynchronize());
    NEED(d.cuMemFree_v2(at));
}

static unsigned long long make(char kind, unsigned long long bytes)
{
    CUdeviceptr at = 0;
    void *host = NULL;
    if (kind == 'p')
        NEED(d.cuMemAllocHost_v2(&host, bytes));
    else if (kind == 'm')
        NEED(d.cuMemAllocManaged(&at, bytes, CU_MEM_ATTACH_GLOBAL));
    else
        NEED(d.cuMemAlloc_v2(&at, bytes));
    return host ? (unsigned long long)(uintptr_t)host : at;
}

static void release(const struct block *b)
{
    if (b->kind == 'p')
        NEED(d.cuMemFreeHost((void *)(uintptr_t)b->at));
    else
        NEED(d.cuMemFree_v2(b->at));
}

static size_t find(unsigned long long id)
{
    size_t i = 0;
    while (i < nblocks && blocks[i].id != id)
        i++;
    return i;
}

int main(int argc, char **argv)
{
    char line[200], kind[20], why[300] = "";
    unsigned long long id, bytes, live = 0, peak = 0, most = 0;
    size_t before, all;
    CUdevice device;
    CUcontext context;
    FILE *trace = argc == 3 ? fopen(argv[1], "r") : NULL;
    unsigned long long factor = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (!trace || !factor || driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "usage: shadow_replay TRACE FACTOR; %s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDeviceGet(&device, 0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, device));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemGetInfo_v2(&before, &all));
    touch();
    most = taken(before);
    while (fgets(line, sizeof line, trace)) {
        if (sscanf(line, "a %llx %llu %19s", &id, &bytes, kind) == 3 && bytes && nblocks < MOST) {
            bytes *= factor;
            blocks[nblocks++] = (struct block){id, bytes, make(*kind, bytes), *kind};
            live += bytes;
        } else if (sscanf(line, "f %llx", &id) == 1) {
            size_t i = find(id);
            if (i == nblocks)
                continue;
            release(&blocks[i]);
            live -= blocks[i].bytes;
            blocks[i] = blocks[--nblocks];
        }
        if (live >= peak) {
            peak = live;
            most = taken(before);
        }
    }
    printf("%llu %llu\n", peak, most);
    return 0;
}
