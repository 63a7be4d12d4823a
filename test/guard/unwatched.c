// SPDX-License-Identifier: MIT
// A program of which little or nothing can be watched: unwatched WHAT [STATUS]
//   init     starts the driver and ends                refused  allocates; the driver refuses its module
//   launch   allocates and launches a kernel
// Ends with STATUS, 0 if none is given.
#include "cases.h"

#define ENTRY ".address_size 64\n.visible .entry k() { ret; }\n"

int main(int argc, char **argv)
{
    char why[300];
    CUdeviceptr p;
    CUmodule module;
    CUfunction f;
    if (argc < 2 || driver_open(&d, NULL, why, sizeof why))
        return 77;
    NEED(d.cuInit(0));
    if (strcmp(argv[1], "init") != 0) {
        NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
        NEED(d.cuCtxSetCurrent(context));
        NEED(d.cuMemAlloc_v2(&p, 1000));
        NEED(d.cuMemFree_v2(p));
    }
    if (strcmp(argv[1], "refused") == 0 &&
        !d.cuModuleLoadData(&module, ".version 8.8\n.target sm_121\n" ENTRY))
        return 2;
    // The driver refuses it; moat must not stumble over the missing operand before.
    if (strcmp(argv[1], "malformed") == 0 &&
        d.cuModuleLoadData(&module, ".version 6.3\n.target sm_70\n.address_size 64\n"
                                    ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r;\n.reg .b64 %a<4>;\n"
                                    "ld.param.u64 %a1, [a];\nmov.u32 %r;\nmul.wide.u32 %a2, %r, 4;\n"
                                    "add.s64 %a3, %a1, %a2;\nst.global.u32 [%a3], %r;\nret;\n}\n") !=
            CUDA_ERROR_INVALID_PTX)
        return 2;
    if (strcmp(argv[1], "launch") == 0) {
        NEED(d.cuModuleLoadData(&module, ".version 6.3\n.target sm_70\n" ENTRY));
        NEED(d.cuModuleGetFunction(&f, module, "k"));
        NEED(d.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        // Refused: it is no launch.
        if (!d.cuLaunchKernel(f, 1, 1, 1, 5000, 1, 1, 0, NULL, NULL, NULL))
            return 2;
        NEED(d.cuCtxSynchronize());
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
