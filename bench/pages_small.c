// SPDX-License-Identifier: MIT
// What random reads over many small buffers cost, by how many there are: run it with and without
// `moat --mode=pages`.
//   pages_small COUNT...: lines of COUNT, nanoseconds for each read of a thread (the median of ROUNDS)
// Every thread follows a chain of its own: the next buffer depends on what it has read.
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

enum { ROUNDS = 9, BYTES = 4096, READS = 4000, BLOCKS = 132, THREADS = 128, MOST = 1 << 16 };

static struct driver d;

// x follows a linear congruence whose upper bits choose the buffer and the word in it. Buffers hold zeros,
// which are added, so that a read waits for the one before.
static const char text[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry chase(.param .u64 table, .param .u32 count, .param .u32 reads, .param .u64 out)\n{\n"
    ".reg .u64 %t, %p, %q, %o; .reg .u32 %n, %i, %x, %b, %w, %v, %c; .reg .pred %k;\n"
    "ld.param.u64 %t, [table]; ld.param.u32 %n, [count]; ld.param.u32 %i, [reads]; ld.param.u64 %o, [out];\n"
    "mov.u32 %x, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %x, %c, 7919, %x; mul.lo.u32 %x, %x, 2654435761;\n"
    "loop:\n"
    "mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
    "mul.hi.u32 %b, %x, %n; mul.wide.u32 %q, %b, 8; add.u64 %q, %t, %q; ld.global.u64 %p, [%q];\n"
    "shr.u32 %w, %x, 4; and.b32 %w, %w, 1023; mul.wide.u32 %q, %w, 4; add.u64 %p, %p, %q;\n"
    "ld.global.cg.u32 %v, [%p]; add.u32 %x, %x, %v;\n"
    "sub.u32 %i, %i, 1; setp.ne.u32 %k, %i, 0; @%k bra loop;\n"
    "setp.ne.u32 %k, %x, 12345; @%k bra end; st.global.u32 [%o], %x;\n"
    "end: ret;\n}\n";

static double chase(CUfunction f, CUdeviceptr table, unsigned count, CUdeviceptr out, CUevent event[2])
{
    double took[ROUNDS];
    float ms;
    unsigned reads = READS;
    void *parameters[] = {&table, &count, &reads, &out};
    for (int i = -1; i < ROUNDS; i++) {
        NEED(d.cuEventRecord(event[0], NULL));
        NEED(d.cuLaunchKernel(f, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, parameters, NULL));
        NEED(d.cuEventRecord(event[1], NULL));
        NEED(d.cuEventSynchronize(event[1]));
        NEED(d.cuEventElapsedTime(&ms, event[0], event[1]));
        took[i < 0 ? 0 : i] = (double)ms;
    }
    return bench_median(took, ROUNDS) * 1e6 / READS;
}

int main(int argc, char **argv)
{
    static CUdeviceptr p[MOST];
    char why[300];
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUevent event[2];
    CUdeviceptr table, out;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&f, module, "chase"));
    NEED(d.cuEventCreate(&event[0], 0));
    NEED(d.cuEventCreate(&event[1], 0));
    NEED(d.cuMemAlloc_v2(&table, sizeof p));
    NEED(d.cuMemAlloc_v2(&out, 4));
    for (int a = 1; a < argc; a++) {
        unsigned count = (unsigned)atoi(argv[a]);
        if (!count || count > MOST)
            return 2;
        for (unsigned i = 0; i < count; i++) {
            NEED(d.cuMemAlloc_v2(&p[i], BYTES));
            NEED(d.cuMemsetD8_v2(p[i], 0, BYTES));
        }
        NEED(d.cuMemcpyHtoD_v2(table, p, count * sizeof *p));
        printf("%u %.1f\n", count, chase(f, table, count, out, event));
        fflush(stdout);
        for (unsigned i = 0; i < count; i++)
            NEED(d.cuMemFree_v2(p[i]));
    }
    return 0;
}
