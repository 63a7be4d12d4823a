// SPDX-License-Identifier: MIT
// What an allocation and a free cost, by size: run it with and without `moat --mode=pages`.
//   pages_alloc [LABEL]: lines of LABEL, kind, bytes, microseconds for an allocation and for a free; the
//   median of ROUNDS
// LIVE buffers of one size are alive at once, and are freed in the order in which they were allocated.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

enum { ROUNDS = 15, LIVE = 20 };

static struct driver d;

// Microseconds.
static double now(void)
{
    return 1e6 * bench_now();
}

static void measure(const char *label, size_t size, CUstream stream)
{
    double take[ROUNDS], give[ROUNDS];
    CUdeviceptr p[LIVE];
    for (int round = -1; round < ROUNDS; round++) {
        double start = now();
        for (int i = 0; i < LIVE; i++)
            NEED(stream ? d.cuMemAllocAsync(&p[i], size, stream) : d.cuMemAlloc_v2(&p[i], size));
        double between = now();
        for (int i = 0; i < LIVE; i++)
            NEED(stream ? d.cuMemFreeAsync(p[i], stream) : d.cuMemFree_v2(p[i]));
        double end = now();
        NEED(d.cuCtxSynchronize());
        // The first one warms up.
        if (round >= 0) {
            take[round] = (between - start) / LIVE;
            give[round] = (end - between) / LIVE;
        }
    }
    printf("%s\t%s\t%zu\t%.2f\t%.2f\n", label, stream ? "in order" : "plain", size,
           bench_median(take, ROUNDS), bench_median(give, ROUNDS));
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {100, 10000, 1000000, 2 << 20, 3000000, 64 << 20, 256 << 20};
    const char *label = argc > 1 ? argv[1] : "plain";
    char why[300];
    CUcontext context;
    CUstream stream;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "no driver: %s\n", why);
        return 2;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    size_t available, all;
    NEED(d.cuMemGetInfo_v2(&available, &all));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i] > available / (2 * LIVE))
            continue;
        measure(label, sizes[i], NULL);
        measure(label, sizes[i], stream);
    }
    return 0;
}
