// SPDX-License-Identifier: MIT
// launch_cost: reads names of launches, one a line, makes LAUNCHES such launches twice and answers with the
// name and the nanoseconds of the median one, the second time: a process that was stopped first has to wake
// its threads and to fill its caches again. Two readings of the clock are among them. bench/launch_cost.py
// compares them with and without --mode=check.
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bench.h"

enum { LAUNCHES = 64, N = 32, MOST = 1 << 20 };

static struct driver d;
static CUfunction empty, many, add, gather;
static CUdeviceptr a, b, c, ten[10];
static CUstream stream;

// What the kernels that access something have in common: i, and whether it is below n.
#define INDEX                                                                                          \
    "\t.reg .b64 %d<8>;\n\t.reg .b32 %r<8>;\n\t.reg .f32 %f<4>;\n\t.reg .pred %p;\n"                   \
    "\tmov.u32 %r1, %ctaid.x;\n\tmov.u32 %r2, %ntid.x;\n\tmov.u32 %r3, %tid.x;\n"                      \
    "\tmad.lo.s32 %r1, %r1, %r2, %r3;\n\tld.param.u32 %r4, [n];\n\tsetp.ge.s32 %p, %r1, %r4;\n"        \
    "\t@%p bra end;\n\tld.param.u64 %d1, [a];\n\tld.param.u64 %d2, [b];\n\tld.param.u64 %d3, [c];\n"   \
    "\tcvta.to.global.u64 %d1, %d1;\n\tcvta.to.global.u64 %d2, %d2;\n\tcvta.to.global.u64 %d3, %d3;\n" \
    "\tmul.wide.s32 %d4, %r1, 4;\n\tadd.s64 %d1, %d1, %d4;\n\tadd.s64 %d3, %d3, %d4;\n"
#define PARAMETERS "(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)"
static const char text[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry empty" PARAMETERS "\n{\n\tret;\n}\n"
    ".visible .entry many(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e,\n"
    "\t.param .u64 f, .param .u64 g, .param .u64 h, .param .u64 i, .param .u64 j)\n{\n\tret;\n}\n"
    ".visible .entry add" PARAMETERS "\n{\n" INDEX "\tadd.s64 %d2, %d2, %d4;\n\tld.global.f32 %f1, [%d2];\n"
    "\tld.global.f32 %f2, [%d3];\n\tadd.f32 %f1, %f1, %f2;\n"
    "\tst.global.f32 [%d1], %f1;\nend:\n\tret;\n}\n"
    ".visible .entry gather" PARAMETERS "\n{\n" INDEX
    "\tld.global.u32 %r5, [%d3];\n\tmul.wide.s32 %d4, %r5, 4;\n"
    "\tadd.s64 %d2, %d2, %d4;\n\tld.global.f32 %f1, [%d2];\n"
    "\tst.global.f32 [%d1], %f1;\nend:\n\tret;\n}\n";

static void launch(CUfunction f, int n)
{
    void *arguments[] = {&a, &b, &c, &n};
    NEED(d.cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, stream, arguments, NULL));
}

// Nothing is accessed: there is nothing to check.
static void launch_empty(void)
{
    launch(empty, N);
}

static void launch_many(void)
{
    void *arguments[] = {&ten[0], &ten[1], &ten[2], &ten[3], &ten[4],
                         &ten[5], &ten[6], &ten[7], &ten[8], &ten[9]};
    NEED(d.cuLaunchKernel(many, 1, 1, 1, N, 1, 1, 0, stream, arguments, NULL));
}

// Everything is proved; the answer is remembered.
static void launch_proved(void)
{
    launch(add, N);
}

// The proof is evaluated anew, since n was never seen.
static void launch_evaluated(void)
{
    static int n = N;
    launch(add, ++n);
}

// The index is loaded, and checked.
static void launch_in_part(void)
{
    launch(gather, N);
}

static const struct {
    const char *name;
    void (*call)(void);
} launches[] = {
    {"empty", launch_empty},         {"many", launch_many},       {"proved", launch_proved},
    {"evaluated", launch_evaluated}, {"in_part", launch_in_part},
};

static double timed[MOST];
static size_t ntimed;

static double nanoseconds(void (*call)(void))
{
    double each[LAUNCHES];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < LAUNCHES; i++) {
            double start = bench_now();
            call();
            each[i] = bench_now() - start;
        }
        NEED(d.cuStreamSynchronize(stream));
    }
    for (int i = 0; i < LAUNCHES && ntimed < MOST; i++)
        timed[ntimed++] = each[i];
    return bench_median(each, LAUNCHES) * 1e9;
}

// Of all launches that were timed. Sorts them.
static double tail(void)
{
    qsort(timed, ntimed, sizeof *timed, bench_by_value);
    return ntimed ? timed[(ntimed * 99 - 1) / 100] * 1e9 : 0;
}

static bool answer(const char *order, double ns)
{
    printf("%s %.2f\n", order, ns);
    return !fflush(stdout);
}

static bool obey(const char *order)
{
    if (!strcmp(order, "99"))
        return answer(order, tail());
    if (!strcmp(order, "forget"))
        return answer(order, (double)(ntimed = 0));
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        if (!strcmp(launches[i].name, order))
            return answer(order, nanoseconds(launches[i].call));
    fprintf(stderr, "launch_cost: there is no launch '%s'\n", order);
    return false;
}

int main(void)
{
    char why[300], order[64];
    CUcontext context;
    CUmodule module;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "launch_cost: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&empty, module, "empty"));
    NEED(d.cuModuleGetFunction(&many, module, "many"));
    NEED(d.cuModuleGetFunction(&add, module, "add"));
    NEED(d.cuModuleGetFunction(&gather, module, "gather"));
    NEED(d.cuMemAlloc_v2(&a, 4 * N));
    NEED(d.cuMemAlloc_v2(&b, 4 * N));
    NEED(d.cuMemAlloc_v2(&c, 4 * N));
    for (size_t i = 0; i < sizeof ten / sizeof *ten; i++)
        NEED(d.cuMemAlloc_v2(&ten[i], 4 * N));
    NEED(d.cuMemsetD8_v2(c, 0, 4 * N));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    while (fgets(order, sizeof order, stdin)) {
        order[strcspn(order, "\n")] = '\0';
        if (!obey(order))
            return 1;
    }
    return 0;
}
