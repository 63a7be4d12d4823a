// SPDX-License-Identifier: MIT
// fill: memory of every family, of which the first and the last byte are printed before anything has written
// them, a line each; then what a kernel, or the host, finds in a buffer of the same size that is made after a
// free.
#include "cases.h"

enum { SIZE = 5000 };

static void tell(const char *what, CUdeviceptr p)
{
    unsigned char bytes[SIZE];
    NEED(d.cuMemcpyDtoH_v2(bytes, p, SIZE));
    printf("%s %d %d\n", what, bytes[0], bytes[SIZE - 1]);
}

int main(void)
{
    CUdeviceptr p;
    void *host;
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuMemAlloc_v2(&p, SIZE));
    tell("plain", p);
    NEED(d.cuMemsetD8_v2(p, 1, SIZE));
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemAlloc_v2(&p, SIZE));
    tell("again", p);
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemAllocManaged(&p, SIZE, CU_MEM_ATTACH_GLOBAL));
    tell("managed", p);
    NEED(d.cuMemFree_v2(p));
    NEED(d.cuMemAllocAsync(&p, SIZE, NULL));
    NEED(d.cuStreamSynchronize(NULL));
    tell("ordered", p);
    NEED(d.cuMemFreeAsync(p, NULL));
    NEED(d.cuMemHostAlloc(&host, SIZE, 0));
    printf("pinned %d %d\n", ((unsigned char *)host)[0], ((unsigned char *)host)[SIZE - 1]);
    NEED(d.cuMemFreeHost(host));
    return 0;
}
