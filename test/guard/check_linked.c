// SPDX-License-Identifier: MIT
// Links two PTX texts by the driver and launches a kernel of each: check_linked FIRST SECOND good|bad. Each
// kernel touches one element past its buffer if it is bad.
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"

#define NEED(call)                                           \
    do {                                                     \
        CUresult r = (call);                                 \
        if (r) {                                             \
            printf("%d: %s gives %d\n", __LINE__, #call, r); \
            return 2;                                        \
        }                                                    \
    } while (0)

int main(int argc, char **argv)
{
    CUcontext context;
    CUlinkState link;
    CUmodule module;
    CUfunction first, second;
    CUdeviceptr a, b;
    void *image;
    size_t size;
    int n = 100, more = argc == 4 && !strcmp(argv[3], "bad");
    if (argc != 4)
        return 2;
    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&context, 0));
    NEED(cuCtxSetCurrent(context));
    NEED(cuLinkCreate_v2(0, NULL, NULL, &link));
    NEED(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, argv[1], 0, NULL, NULL));
    NEED(cuLinkAddFile_v2(link, CU_JIT_INPUT_PTX, argv[2], 0, NULL, NULL));
    NEED(cuLinkComplete(link, &image, &size));
    NEED(cuModuleLoadData(&module, image));
    NEED(cuLinkDestroy(link));
    NEED(cuModuleGetFunction(&first, module, "first"));
    NEED(cuModuleGetFunction(&second, module, "second"));
    NEED(cuMemAlloc_v2(&a, 400));
    NEED(cuMemAlloc_v2(&b, 400));
    n += more;
    void *of_first[] = {&a, &n}, *of_second[] = {&b, &n};
    NEED(cuLaunchKernel(first, 1, 1, 1, 128, 1, 1, 0, NULL, of_first, NULL));
    NEED(cuLaunchKernel(second, 1, 1, 1, 128, 1, 1, 0, NULL, of_second, NULL));
    NEED(cuCtxSynchronize());
    return 0;
}
