// SPDX-License-Identifier: MIT
// guard_pause SECONDS: steps of LAUNCHES empty kernels, a memset, a copy and a wait, in turns of TURN steps
// with moat at work and with moat paused (moat.h), in one process. Prints what moat adds to a paused step, in
// percent: the median of the pairs of turns and its 95 % interval, by their order; then the number of pairs.
// Status 77: moat cannot pause here.
#include <math.h>

#include "bench.h"
#include "moat.h"

enum { LAUNCHES = 460, TURN = 3, MOST = 100000 };

static struct driver d;
static const char text[] = ".version 6.3\n.target sm_70\n.address_size 64\n"
                           ".visible .entry empty()\n{\nret;\n}\n";

static double steps(CUfunction f, CUdeviceptr p)
{
    static char host[4096];
    double start = bench_now();
    for (int n = 0; n < TURN; n++) {
        for (int i = 0; i < LAUNCHES; i++)
            NEED(d.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
        NEED(d.cuMemsetD8Async(p, 0, sizeof host, NULL));
        NEED(d.cuMemcpyDtoHAsync_v2(host, p, sizeof host, NULL));
        NEED(d.cuStreamSynchronize(NULL));
    }
    return (bench_now() - start) / TURN;
}

int main(int argc, char **argv)
{
    static double ratio[MOST];
    char why[300];
    CUcontext context;
    CUmodule module;
    CUfunction f;
    CUdeviceptr p;
    if (driver_open(&d, NULL, why, sizeof why)) {
        fprintf(stderr, "no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&f, module, "empty"));
    NEED(d.cuMemAlloc_v2(&p, 1 << 20));
    if (!moat_pause(1) || !moat_pause(0)) {
        fprintf(stderr, "moat cannot pause here\n");
        return 77;
    }
    steps(f, p);
    int n = 0;
    for (double end = bench_now() + (argc > 1 ? atof(argv[1]) : 10);
         n < MOST && (bench_now() < end || n < 10); n++) {
        double took[2];
        for (int k = 0; k < 2; k++) {  // each of the two comes first in every other pair
            int paused = (k + n) % 2;
            moat_pause(paused);
            took[paused] = steps(f, p);
        }
        ratio[n] = 100 * (took[0] - took[1]) / took[1];
    }
    moat_pause(0);
    double median = bench_median(ratio, (size_t)n);
    int width = (int)(0.98 * sqrt(n)) + 1, low = n / 2 - width, high = n / 2 + width;
    printf("%.2f %.2f %.2f %d\n", median, ratio[low > 0 ? low : 0], ratio[high < n ? high : n - 1], n);
    return 0;
}
