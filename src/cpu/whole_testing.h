// SPDX-License-Identifier: MIT
// For tests that drive the whole device through its calls.
#ifndef MOAT_CPU_WHOLE_TESTING_H
#define MOAT_CPU_WHOLE_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/whole.h"

#define IS(code, call) assert_int_equal(call, code)
#define OK(call) IS(CUDA_SUCCESS, call)

#define WHOLE_HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"

// store: *p = v. spin: waits until *p != 0. die: traps. mixed: adds up parameters of several sizes.
#define WHOLE_PTX                                                                                    \
    WHOLE_HEAD                                                                                       \
    ".visible .global .align 4 .b8 gv[40];\n"                                                        \
    ".visible .global .align 4 .u32 seven = 7;\n"                                                    \
    ".visible .const .align 4 .u32 cv = 9;\n"                                                        \
    ".visible .global .attribute(.managed) .align 4 .u32 mv = 11;\n"                                 \
    ".visible .entry store(.param .u64 p, .param .u32 v)\n"                                          \
    "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; ld.param.u32 %b, [v];\n"                    \
    "  atom.global.exch.b32 %b, [%a], %b; ret; }\n"                                                  \
    ".visible .entry empty()\n{ ret; }\n"                                                            \
    ".visible .entry die()\n{ trap; }\n"                                                             \
    ".visible .entry read()\n"                                                                       \
    "{ .reg .b32 %b<4>; ld.global.u32 %b1, [seven]; ld.const.u32 %b2, [cv];\n"                       \
    "  ld.global.u32 %b3, [mv]; add.u32 %b1, %b1, %b2; add.u32 %b1, %b1, %b3;\n"                     \
    "  st.global.u32 [gv], %b1; st.global.u32 [mv], %b2; ret; }\n"                                   \
    ".visible .entry spin(.param .u64 p)\n"                                                          \
    "{ .reg .b64 %a; .reg .b32 %b; .reg .pred %q; ld.param.u64 %a, [p];\n"                           \
    "L: ld.volatile.global.u32 %b, [%a]; setp.eq.u32 %q, %b, 0; @%q bra L; ret; }\n"                 \
    ".visible .entry mixed(.param .u64 a, .param .u32 b, .param .u8 c, .param .align 8 .b8 d[12])\n" \
    "{ .reg .b64 %a; .reg .b32 %b<4>; ld.param.u64 %a, [a]; ld.param.u32 %b1, [b];\n"                \
    "  ld.param.u8 %b2, [c]; ld.param.u32 %b3, [d+8]; add.u32 %b1, %b1, %b2;\n"                      \
    "  add.u32 %b1, %b1, %b3; st.global.u32 [%a], %b1; ret; }\n"                                     \
    ".visible .entry required() .reqntid 32, 2, 1\n{ ret; }\n"                                       \
    ".visible .entry most() .maxntid 64\n{ ret; }\n"                                                 \
    ".visible .entry shared(.param .u64 p)\n"                                                        \
    "{ .shared .align 16 .b8 s[1024]; .reg .b64 %a; .reg .b32 %b;\n"                                 \
    "  st.shared.u32 [s+1020], 5; ld.shared.u32 %b, [s+1020]; ld.param.u64 %a, [p];\n"               \
    "  st.global.u32 [%a], %b; ret; }\n"

enum { WHOLE_KERNELS = 9 };

static inline CUcontext whole_context(void)
{
    CUcontext ctx;
    OK(cuInit(0));
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    return ctx;
}

static inline CUmodule whole_module(void)
{
    CUmodule m;
    OK(cuModuleLoadData(&m, WHOLE_PTX));
    return m;
}

static inline CUfunction whole_function(CUmodule m, const char *name)
{
    CUfunction f;
    OK(cuModuleGetFunction(&f, m, name));
    return f;
}

static inline uint32_t whole_read(CUdeviceptr p)
{
    uint32_t v = 0;
    OK(cuMemcpyDtoH_v2(&v, p, sizeof v));
    return v;
}

static inline CUresult whole_launch(CUfunction f, void **params)
{
    return cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

#endif
