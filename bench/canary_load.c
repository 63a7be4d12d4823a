// SPDX-License-Identifier: MIT
// What the number of live buffers costs a program: run it with and without `moat --mode=canary`.
//   canary_load LIVE SECONDS [MIB]
// LIVE buffers of 1,000 bytes; then for SECONDS in turns: a kernel that reads and writes MIB mebibytes (256
// by default), a kernel that computes, an empty kernel that is waited for, an allocation with its free.
// Prints "NAME SECONDS" for each: the median.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

enum { MOST = 100000, SIZE = 1000, PARTS = 4 };

static struct driver d;
static CUdeviceptr data;
static size_t bytes = 256 << 20;
static CUfunction copy, compute, empty;

static const char text[] = ".version 6.3\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry copy(.param .u64 p, .param .u32 n)\n"
                           "{\n"
                           "    .reg .u64 %p, %a;\n"
                           "    .reg .u32 %i, %n, %t, %s, %v;\n"
                           "    .reg .pred %q;\n"
                           "    ld.param.u64 %p, [p];\n"
                           "    ld.param.u32 %n, [n];\n"
                           "    mov.u32 %i, %ctaid.x;\n"
                           "    mov.u32 %s, %ntid.x;\n"
                           "    mov.u32 %t, %tid.x;\n"
                           "    mad.lo.u32 %i, %i, %s, %t;\n"
                           "    mov.u32 %t, %nctaid.x;\n"
                           "    mul.lo.u32 %s, %s, %t;\n"
                           "loop:\n"
                           "    setp.ge.u32 %q, %i, %n;\n"
                           "    @%q ret;\n"
                           "    mad.wide.u32 %a, %i, 4, %p;\n"
                           "    ld.u32 %v, [%a];\n"
                           "    add.u32 %v, %v, 1;\n"
                           "    st.u32 [%a], %v;\n"
                           "    add.u32 %i, %i, %s;\n"
                           "    bra loop;\n"
                           "}\n"
                           ".visible .entry compute(.param .u64 p, .param .u32 n)\n"
                           "{\n"
                           "    .reg .u64 %p;\n"
                           "    .reg .u32 %i, %n;\n"
                           "    .reg .f32 %f;\n"
                           "    .reg .pred %q;\n"
                           "    ld.param.u64 %p, [p];\n"
                           "    ld.param.u32 %n, [n];\n"
                           "    mov.f32 %f, 0f3f800000;\n"
                           "    mov.u32 %i, 0;\n"
                           "loop:\n"
                           "    fma.rn.f32 %f, %f, 0f3f800001, 0f34000000;\n"
                           "    add.u32 %i, %i, 1;\n"
                           "    setp.lt.u32 %q, %i, %n;\n"
                           "    @%q bra loop;\n"
                           "    setp.gt.f32 %q, %f, 0f00000000;\n"
                           "    @%q ret;\n"
                           "    st.f32 [%p], %f;\n"
                           "    ret;\n"
                           "}\n"
                           ".visible .entry empty()\n"
                           "{\n"
                           "    ret;\n"
                           "}\n";

static void launch(CUfunction f, unsigned blocks, uint32_t n)
{
    void *arguments[] = {&data, &n};
    NEED(d.cuLaunchKernel(f, blocks, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL));
}

static void run_copy(void)
{
    launch(copy, 2048, (uint32_t)(bytes / 4));
    NEED(d.cuCtxSynchronize());
}

static void run_compute(void)
{
    launch(compute, 264, (uint32_t)(bytes >> 12));
    NEED(d.cuCtxSynchronize());
}

static void run_empty(void)
{
    NEED(d.cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    NEED(d.cuCtxSynchronize());
}

static void run_allocate(void)
{
    CUdeviceptr p;
    NEED(d.cuMemAlloc_v2(&p, SIZE));
    NEED(d.cuMemFree_v2(p));
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[PARTS] = {
    {"memory", run_copy}, {"arithmetic", run_compute}, {"launch", run_empty}, {"allocate", run_allocate}};

static void prepare(unsigned live)
{
    CUmodule module;
    CUdeviceptr p;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&copy, module, "copy"));
    NEED(d.cuModuleGetFunction(&compute, module, "compute"));
    NEED(d.cuModuleGetFunction(&empty, module, "empty"));
    NEED(d.cuMemAlloc_v2(&data, bytes));
    NEED(d.cuMemsetD8_v2(data, 0, bytes));
    for (unsigned i = 0; i < live; i++)
        NEED(d.cuMemAlloc_v2(&p, SIZE));
}

int main(int argc, char **argv)
{
    static double took[PARTS][MOST];
    char why[300];
    CUcontext context;
    unsigned count = 0;
    if (argc != 3 && argc != 4)
        return 2;
    if (argc == 4)
        bytes = (size_t)atoi(argv[3]) << 20;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "no driver: %s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    prepare((unsigned)atoi(argv[1]));
    for (unsigned i = 0; i < PARTS; i++)
        parts[i].run();
    for (double end = bench_now() + atof(argv[2]); count < MOST && (bench_now() < end || count < 3); count++)
        for (unsigned i = 0; i < PARTS; i++) {
            double start = bench_now();
            parts[i].run();
            took[i][count] = bench_now() - start;
        }
    for (unsigned i = 0; i < PARTS; i++) {
        printf("%s %.9f\n", parts[i].name, bench_median(took[i], count));
    }
    return 0;
}
