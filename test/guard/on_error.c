// SPDX-License-Identifier: MIT
// on_error: a kernel reads, writes and adds outside of memory at three instructions, many times, and then
// does its work. Prints what it computed, and what the program's calls returned.
#include "cases.h"

static const char text[] = ".version 6.3\n"
                           ".target sm_70\n"
                           ".address_size 64\n"
                           ".visible .entry wrong(.param .u64 out, .param .u64 wild)\n"
                           "{\n"
                           "    .reg .u64 %o, %w;\n"
                           "    .reg .u32 %a, %b, %i;\n"
                           "    .reg .pred %p;\n"
                           "    ld.param.u64 %o, [out];\n"
                           "    ld.param.u64 %w, [wild];\n"
                           "    mov.u32 %a, 1;\n"
                           "    mov.u32 %b, 1;\n"
                           "    mov.u32 %i, 0;\n"
                           "loop:\n"
                           "    ld.global.u32 %a, [%w];\n"
                           "    st.global.u32 [%w+4], %i;\n"
                           "    atom.global.add.u32 %b, [%w+8], 7;\n"
                           "    add.u32 %i, %i, 1;\n"
                           "    setp.lt.u32 %p, %i, 10;\n"
                           "    @%p bra loop;\n"
                           "    add.u32 %a, %a, %b;\n"
                           "    add.u32 %a, %a, 42;\n"
                           "    st.global.u32 [%o], %a;\n"
                           "    ret;\n"
                           "}\n";

int main(void)
{
    char why[300];
    if (driver_open(&d, NULL, why, sizeof why)) {
        printf("no driver: %s\n", why);
        return 77;
    }
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr out, wild = (CUdeviceptr)0x7000 << 32;
    unsigned value = 0;
    NEED(d.cuInit(0));
    NEED(d.cuDevicePrimaryCtxRetain(&context, 0));
    NEED(d.cuCtxSetCurrent(context));
    NEED(d.cuModuleLoadData(&module, text));
    NEED(d.cuModuleGetFunction(&kernel, module, "wrong"));
    NEED(d.cuMemAlloc_v2(&out, 4));
    void *arguments[] = {&out, &wild};
    int launched = d.cuLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL);
    int waited = d.cuCtxSynchronize();
    int copied = d.cuMemcpyDtoH_v2(&value, out, sizeof value);
    printf("launched %d, waited %d, copied %d, value %u\n", launched, waited, copied, value);
    return 0;
}
