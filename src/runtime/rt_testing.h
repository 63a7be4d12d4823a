// SPDX-License-Identifier: MIT
// For tests of the runtime over the CPU device, which is part of the same program.
#ifndef MOAT_RUNTIME_RT_TESTING_H
#define MOAT_RUNTIME_RT_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/rt.h"

#define IS(code, call) assert_int_equal(call, code)
#define OK(call) IS(cudaSuccess, call)

// The CPU device's calls, by enum driver_id. The runtime itself knows nothing of that device.
extern const driver_function api_functions[DRIVER_CALLS];

static inline int rt_testing_start(void **state)
{
    for (int i = 0; i < DRIVER_CALLS; i++)
        rt_driver.call[i] = api_functions[i];
    rt_driver.handle = &rt_driver;
    return rt_open() != cudaSuccess;
}

// store: *p = v. die: traps. mark: gv = 5.
static char rt_testing_image[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                                 ".visible .global .align 4 .b8 gv[40];\n"
                                 ".visible .global .attribute(.managed) .align 4 .u32 mv = 11;\n"
                                 ".visible .entry store(.param .u64 p, .param .u32 v)\n"
                                 "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; ld.param.u32 %b, [v]; "
                                 "st.global.u32 [%a], %b; ret; }\n"
                                 ".visible .entry mark()\n{ st.global.u32 [gv], 5; ret; }\n"
                                 ".visible .entry die()\n{ trap; }\n";

static inline void **rt_testing_module(void)
{
    void **module = __cudaRegisterFatBinary(rt_testing_image);
    assert_non_null(module);
    return module;
}

static inline void rt_testing_kernel(void **module, const void *stub, char *name)
{
    __cudaRegisterFunction(module, stub, name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline cudaError_t rt_testing_launch(const void *stub, void **args)
{
    const dim3 one = {1, 1, 1};
    return cudaLaunchKernel(stub, one, one, args, 0, NULL);
}

#endif
