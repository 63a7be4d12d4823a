// SPDX-License-Identifier: MIT
// pause_calls: launches, copies and waits, some of them while moat pauses (moat.h), through the symbols and
// through cuGetProcAddress. Prints how many calls moat should have seen, or `not paused`.
#include "cases.h"
#include "moat.h"

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                           ".visible .entry nothing() {\nret;\n}\n";

static CUfunction nothing;
static CUdeviceptr p;

static unsigned calls(unsigned n)
{
    __typeof__(d.cuLaunchKernel) launch;
    CUdriverProcAddressQueryResult found;
    NEED(d.cuGetProcAddress_v2("cuLaunchKernel", (void **)&launch, 12000, 0, &found));
    for (unsigned i = 0; i < n; i++) {
        NEED((i % 2 ? launch : d.cuLaunchKernel)(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        NEED(d.cuMemsetD8_v2(p, 0, 100));
        NEED(d.cuCtxSynchronize());
    }
    return n;
}

int main(void)
{
    CUcontext primary;
    CUmodule module;
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&primary, 0));
    NEED(d.cuCtxSetCurrent(primary));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&nothing, module, "nothing"));
    NEED(d.cuMemAlloc_v2(&p, 1000));
    unsigned seen = calls(5);
    bool paused = moat_pause(1);
    unsigned unseen = calls(7);
    seen += moat_pause(0) == paused ? calls(3) : 1000;
    NEED(d.cuMemFree_v2(p));
    if (paused)
        printf("seen %u\n", seen);
    else
        printf("not paused, seen %u\n", seen + unseen);
    return 0;
}
