// SPDX-License-Identifier: MIT
// api_errors bad|good: calls that fail and that the program passes over, by every way to the driver; good:
// only such failures as are a call's usual answer.
#include "cases.h"

static const char text[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n";

static void fail(void)
{
    CUdevice device;
    CUdeviceptr p;
    __typeof__(cuDeviceGetName) *name = NULL;
    char said[8];
    d.cuMemAlloc_v2(&p, (size_t)1 << 60);  // a hook sees it
    for (int i = 0; i < 3; i++)
        d.cuDeviceGet(&device, 99);  // goes straight to the driver
    NEED(d.cuGetProcAddress_v2("cuDeviceGetName", (void **)&name, 12000, 0, NULL));
    name(said, 0, 98);
    d.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void ask(void)
{
    const char *found;
    unsigned type;
    void *none;
    int local;
    d.cuGetErrorName((CUresult)12345, &found);
    d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&local);
    d.cuGetProcAddress_v2("cuNoSuchCall", &none, 12000, 0, NULL);
}

int main(int argc, char **argv)
{
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction kernel;
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&kernel, module, "nothing"));
    NEED(d.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    NEED(d.cuCtxSynchronize());
    ask();
    if (argc > 1 && strcmp(argv[1], "bad") == 0)
        fail();
    return 0;
}
