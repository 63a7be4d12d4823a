// SPDX-License-Identifier: MIT
// For tests of graphs and of stream capture: kernels whose order can be seen.
#ifndef MOAT_CPU_GRAPH_TESTING_H
#define MOAT_CPU_GRAPH_TESTING_H

#include "cpu/whole_testing.h"

#define BAD(call) IS(CUDA_ERROR_INVALID_VALUE, call)

// step: *p = *p * 10 + v. stamp: *p = ++*clock. spin: waits until *p != 0. raise: *p = 1. count: --*p; sets
// the condition to *p != 0.
#define GRAPH_PTX                                                                                     \
    WHOLE_HEAD                                                                                        \
    ".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"                          \
    ".visible .entry step(.param .u64 p, .param .u32 v)\n"                                            \
    "{ .reg .b64 %a; .reg .b32 %b<3>; ld.param.u64 %a, [p]; ld.param.u32 %b1, [v];\n"                 \
    "  ld.global.u32 %b2, [%a]; mad.lo.u32 %b2, %b2, 10, %b1; st.global.u32 [%a], %b2; ret; }\n"      \
    ".visible .entry stamp(.param .u64 p, .param .u64 clock)\n"                                       \
    "{ .reg .b64 %a<3>; .reg .b32 %b; ld.param.u64 %a1, [p]; ld.param.u64 %a2, [clock];\n"            \
    "  atom.global.add.u32 %b, [%a2], 1; add.u32 %b, %b, 1; st.global.u32 [%a1], %b; ret; }\n"        \
    ".visible .entry spin(.param .u64 p)\n"                                                           \
    "{ .reg .b64 %a; .reg .b32 %b; .reg .pred %q; ld.param.u64 %a, [p];\n"                            \
    "L: atom.global.add.u32 %b, [%a], 0; setp.eq.u32 %q, %b, 0; @%q bra L; ret; }\n"                  \
    ".visible .entry raise(.param .u64 p)\n"                                                          \
    "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; atom.global.exch.b32 %b, [%a], 1; ret; }\n"  \
    ".visible .entry count(.param .u64 p, .param .u64 h)\n"                                           \
    "{ .reg .b64 %a<3>; .reg .b32 %b; .reg .pred %q; ld.param.u64 %a1, [p]; ld.param.u64 %a2, [h];\n" \
    "  ld.global.u32 %b, [%a1]; sub.u32 %b, %b, 1; st.global.u32 [%a1], %b;\n"                        \
    "  setp.ne.u32 %q, %b, 0; selp.u32 %b, 1, 0, %q;\n"                                               \
    "  { .param .b64 h0; .param .b32 v0; st.param.b64 [h0], %a2; st.param.b32 [v0], %b;\n"            \
    "    call.uni cudaGraphSetConditional, (h0, v0); } ret; }\n"                                      \
    ".visible .entry choose(.param .u64 h, .param .u32 v)\n"                                          \
    "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [h]; ld.param.u32 %b, [v];\n"                     \
    "  { .param .b64 h0; .param .b32 v0; st.param.b64 [h0], %a; st.param.b32 [v0], %b;\n"             \
    "    call.uni cudaGraphSetConditional, (h0, v0); } ret; }\n"

static CUcontext test_ctx;
static CUmodule test_module;
static CUfunction test_step, test_stamp, test_spin, test_raise, test_count, test_choose;
static CUdeviceptr test_words;  // 1024 words

static inline int graph_setup(void **state)
{
    test_ctx = whole_context();
    OK(cuModuleLoadData(&test_module, GRAPH_PTX));
    test_step = whole_function(test_module, "step");
    test_stamp = whole_function(test_module, "stamp");
    test_spin = whole_function(test_module, "spin");
    test_raise = whole_function(test_module, "raise");
    test_count = whole_function(test_module, "count");
    test_choose = whole_function(test_module, "choose");
    OK(cuMemAlloc_v2(&test_words, 4096));
    OK(cuMemsetD8_v2(test_words, 0, 4096));
    return 0;
}

static inline int graph_teardown(void **state)
{
    return cuCtxDestroy_v2(test_ctx);
}

#define GRAPH_TEST(f) cmocka_unit_test_setup_teardown(f, graph_setup, graph_teardown)

static inline CUgraph new_graph(void)
{
    CUgraph g;
    OK(cuGraphCreate(&g, 0));
    return g;
}

static inline CUstream new_stream(void)
{
    CUstream s;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    return s;
}

static inline CUDA_KERNEL_NODE_PARAMS kernel_of(CUfunction f, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){f, 1, 1, 1, 1, 1, 1, 0, params, NULL, NULL, NULL};
}

// A node that appends digit v to the number at p.
static inline CUgraphNode add_step(CUgraph g, CUgraphNode after, CUdeviceptr p, unsigned v)
{
    CUgraphNode n;
    void *params[] = {&p, &v};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_step, params);
    OK(cuGraphAddKernelNode_v2(&n, g, &after, after ? 1 : 0, &k));
    return n;
}

static inline CUgraphExec instantiate(CUgraph g)
{
    CUgraphExec e;
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    return e;
}

static inline void launch_step(CUstream s, CUdeviceptr p, unsigned v)
{
    void *params[] = {&p, &v};
    OK(cuLaunchKernel(test_step, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
}

// Launches once and waits.
static inline void run_exec(CUgraphExec e)
{
    OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
}

static inline void run_graph(CUgraph g)
{
    CUgraphExec e = instantiate(g);
    run_exec(e);
    OK(cuGraphExecDestroy(e));
}

// Launches raise on p, which ends a kernel that spins on p.
static inline void let_go(CUdeviceptr p)
{
    CUstream s = new_stream();
    void *params[] = {&p};
    OK(cuLaunchKernel(test_raise, 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
    OK(cuStreamDestroy_v2(s));
}

static inline void put(CUdeviceptr p, uint32_t v)
{
    OK(cuMemcpyHtoD_v2(p, &v, sizeof v));
}

#endif
