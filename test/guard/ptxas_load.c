// SPDX-License-Identifier: MIT
// ptxas_load CUBIN N [COMMAND]: runs the shell's COMMAND, loads the machine code in CUBIN, and has its kernel
// double N numbers in a buffer of 100. Prints `right`, or which call failed with what.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

#define NEED(call)                                     \
    do {                                               \
        int error_ = (int)(call);                      \
        if (error_) {                                  \
            printf("%.20s gives %d\n", #call, error_); \
            return 2;                                  \
        }                                              \
    } while (0)

static char code[1 << 20];

int main(int argc, char **argv)
{
    struct driver d;
    char why[300];
    CUcontext context;
    CUmodule module;
    CUfunction twice;
    CUdeviceptr p;
    float numbers[100];
    int n = atoi(argv[2]);
    if (argc > 3 && system(argv[3]))
        return 3;
    FILE *f = fopen(argv[1], "rb");
    if (!f || !fread(code, 1, sizeof code, f) || fclose(f))
        return 3;
    if (driver_open(&d, NULL, why, sizeof why))
        return 77;
    for (int i = 0; i < 100; i++)
        numbers[i] = (float)i;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, code));
    NEED(d.cuModuleGetFunction(&twice, module, "twice"));
    NEED(d.cuMemAlloc_v2(&p, sizeof numbers));
    NEED(d.cuMemcpyHtoD_v2(p, numbers, sizeof numbers));
    void *arguments[] = {&p, &n};
    NEED(d.cuLaunchKernel(twice, 1, 1, 1, 128, 1, 1, 0, NULL, arguments, NULL));
    NEED(d.cuMemcpyDtoH_v2(numbers, p, sizeof numbers));
    for (int i = 0; i < 100; i++)
        if (numbers[i] != 2 * (float)i) {
            puts("wrong");
            return 1;
        }
    puts("right");
    return 0;
}
