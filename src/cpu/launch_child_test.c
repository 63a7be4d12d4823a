// SPDX-License-Identifier: MIT
// Kernels that launch kernels and graphs: order, waiting, errors.
#include "cpu/whole_testing.h"

// go launches k(p, v) with that many threads into a stream; 99: the launch could not be prepared.
#define CHILDREN_PTX                                                                                         \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                                        \
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 "       \
    "g[12],\n"                                                                                               \
    "    .param .align 4 .b8 b[12], .param .b32 s);\n"                                                       \
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"                \
    ".extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 p, .param .b32 v, .param .b64 n, "      \
    ".param .b64 s);\n"                                                                                      \
    ".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                                              \
    ".extern .func (.param .b32 r) cudaGraphLaunch(.param .b64 g, .param .b64 s);\n"                         \
    ".func (.reg .b32 e) go(.reg .b64 k, .reg .b64 p, .reg .b32 v, .reg .b64 s, .reg .b32 n)\n{\n"           \
    ".reg .b64 at; .reg .pred q; .param .b64 a0; .param .align 4 .b8 a1[12], a2[12]; .param .b32 a3;\n"      \
    ".param .b64 r0, b0, b1; .param .b32 r1;\n"                                                              \
    "st.param.b64 [a0], k; st.param.b32 [a1], 1; st.param.b32 [a1+4], 1; st.param.b32 [a1+8], 1;\n"          \
    "st.param.b32 [a2], n; st.param.b32 [a2+4], 1; st.param.b32 [a2+8], 1; st.param.b32 [a3], 0;\n"          \
    "call (r0), __cudaCDP2GetParameterBufferV2, (a0, a1, a2, a3);\nld.param.b64 at, [r0]; mov.u32 e, 99;\n"  \
    "setp.eq.u64 q, at, 0; @q bra DONE;\nst.u64 [at], p; st.u32 [at+8], v; st.param.b64 [b0], at;\n"         \
    "st.param.b64 [b1], s;\ncall (r1), __cudaCDP2LaunchDeviceV2, (b0, b1);\nld.param.b32 e, [r1];\n"         \
    "DONE: ret;\n}\n"                                                                                        \
    ".visible .entry add(.param .u64 p, .param .u32 v)\n"                                                    \
    "{ .reg .b64 a; .reg .b32 b; ld.param.u64 a, [p]; ld.param.u32 b, [v]; red.global.add.u32 [a], b; ret; " \
    "}\n" /* *p = 2 * *p + v, after a while: what comes too early is seen */                                 \
    ".visible .entry twice(.param .u64 p, .param .u32 v)\n"                                                  \
    "{ .reg .b64 a; .reg .b32 b, c; ld.param.u64 a, [p]; ld.param.u32 b, [v]; ld.volatile.global.u32 c, "    \
    "[a];\n"                                                                                                 \
    "  nanosleep.u32 200000; mad.lo.u32 c, c, 2, b; st.volatile.global.u32 [a], c; ret; }\n"                 \
    ".visible .entry wild(.param .u64 p, .param .u32 v)\n{ st.global.u32 [64], 1; ret; }\n"                  \
    ".visible .entry order(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; ld.param.u64 a, [p];\n"            \
    "  mov.u64 k, twice; call (e), go, (k, a, 1, 0, 1); call (e), go, (k, a, 2, 0, 1);\n"                    \
    "  call (e), go, (k, a, 3, 0, 1); ret; }\n"                                                              \
    ".visible .entry tail(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; ld.param.u64 a, [p];\n"             \
    "  mov.u64 k, twice; call (e), go, (k, a, 1, 3, 1); call (e), go, (k, a, 2, 3, 1);\n"                    \
    "  call (e), go, (k, a, 3, 4, 1); ret; }\n"                                                              \
    ".visible .entry many(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; ld.param.u64 a, [p];\n"             \
    "  mov.u64 k, add; call (e), go, (k, a, 1, 0, 33); add.u64 a, a, 4; red.global.add.u32 [a], e; ret; }\n" \
    ".visible .entry nested(.param .u64 p, .param .u32 v)\n{ .reg .b64 a, k; .reg .b32 n, e; .reg .pred "    \
    "q;\n"                                                                                                   \
    "  ld.param.u64 a, [p]; ld.param.u32 n, [v]; red.global.add.u32 [a], 1; setp.eq.u32 q, n, 0; @q ret;\n"  \
    "  sub.u32 n, n, 1; mov.u64 k, nested; call (e), go, (k, a, n, 0, 1); call (e), go, (k, a, n, 3, 1);\n"  \
    "  ret; }\n"                                                                                             \
    ".visible .entry bad(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; .param .b32 r; ld.param.u64 a, "     \
    "[p];\n"                                                                                                 \
    "  mov.u64 k, add; call (e), go, (k, a, 1, 0, 2000); st.global.u32 [a], e;\n"                            \
    "  call (r), __cudaCDP2GetLastError, (); ld.param.b32 e, [r]; st.global.u32 [a+4], e;\n"                 \
    "  call (r), __cudaCDP2GetLastError, (); ld.param.b32 e, [r]; st.global.u32 [a+8], e; mov.u64 k, "       \
    "12345;\n"                                                                                               \
    "  call (e), go, (k, a, 1, 0, 1); st.global.u32 [a+12], e; ret; }\n"                                     \
    ".visible .entry dies(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; ld.param.u64 a, [p];\n"             \
    "  mov.u64 k, wild; call (e), go, (k, a, 1, 0, 1); ret; }\n"                                             \
    ".visible .entry fills(.param .u64 p)\n{ .reg .b64 a, k; .reg .b32 e; ld.param.u64 a, [p];\n"            \
    "  .param .b64 a0, a2, a3; .param .b32 a1, r; mov.u64 k, twice; call (e), go, (k, a, 5, 0, 1);\n"        \
    "  st.param.b64 [a0], a; st.param.b32 [a1], 1; st.param.b64 [a2], 1; st.param.b64 [a3], 0;\n"            \
    "  call (r), __cudaCDP2MemsetAsync, (a0, a1, a2, a3); call (e), go, (k, a, 7, 0, 1); ret; }\n"           \
    ".visible .entry stuck(.param .u64 p)\n{ .reg .b64 a; .reg .b32 e; .reg .pred q; ld.param.u64 a, [p];\n" \
    "  .param .b64 a0, a2, a3; .param .b32 a1, r; st.param.b64 [a0], 16; st.param.b32 [a1], 1;\n"            \
    "  st.param.b64 [a2], 4; st.param.b64 [a3], 0; call (r), __cudaCDP2MemsetAsync, (a0, a1, a2, a3);\n"     \
    "L: ld.volatile.global.u32 e, [a]; setp.eq.u32 q, e, 0; @q bra L; ret; }\n"                              \
    ".visible .entry spin(.param .u64 p)\n{ .reg .b64 a; .reg .b32 e; .reg .pred q; ld.param.u64 a, [p];\n"  \
    "L: ld.volatile.global.u32 e, [a]; setp.eq.u32 q, e, 0; @q bra L; ret; }\n"                              \
    ".visible .entry waits(.param .u64 p)\n{ .reg .b64 a; .reg .b32 e; .reg .pred q; ld.param.u64 a, [p];\n" \
    "L: ld.volatile.global.u32 e, [a+12]; setp.eq.u32 q, e, 0; @q bra L; red.global.add.u32 [a], 1; ret; "   \
    "}\n" /* launches n times, says how often that went well, and lets what waits go on */                   \
    ".visible .entry floods(.param .u64 p, .param .u64 which, .param .u64 where, .param .u32 n)\n"           \
    "{ .reg .b64 a, g, s; .reg .b32 e, i, m, good; .reg .pred q; .param .b64 a0, a1; .param .b32 r;\n"       \
    "  ld.param.u64 a, [p]; ld.param.u64 g, [which]; ld.param.u64 s, [where]; ld.param.u32 m, [n];\n"        \
    "  mov.u32 i, 0; mov.u32 good, 0;\n"                                                                     \
    "L: st.param.b64 [a0], g; st.param.b64 [a1], s; call (r), cudaGraphLaunch, (a0, a1); ld.param.b32 e, "   \
    "[r];\n"                                                                                                 \
    "  setp.eq.u32 q, e, 0; @q add.u32 good, good, 1; add.u32 i, i, 1; setp.lt.u32 q, i, m; @q bra L;\n"     \
    "  st.global.u32 [a+4], e; st.global.u32 [a+8], good; st.volatile.global.u32 [a+12], 1; ret; }\n"        \
    ".visible .entry starts(.param .u64 p, .param .u64 which, .param .u64 where)\n"                          \
    "{ .reg .b64 a, g, s; .reg .b32 e; .param .b64 a0, a1; .param .b32 r; ld.param.u64 a, [p];\n"            \
    "  ld.param.u64 g, [which]; ld.param.u64 s, [where]; st.param.b64 [a0], g; st.param.b64 [a1], s;\n"      \
    "  call (r), cudaGraphLaunch, (a0, a1); ld.param.b32 e, [r]; st.global.u32 [a+4], e; ret; }\n"           \
    ".visible .entry again(.param .u64 p, .param .u32 v)\n"                                                  \
    "{ .reg .b64 a, g; .reg .b32 n, m; .reg .pred q; .param .b64 a0, a1; .param .b32 r; ld.param.u64 a, "    \
    "[p];\n"                                                                                                 \
    "  ld.param.u32 m, [v]; ld.global.u32 n, [a]; add.u32 n, n, 1; st.global.u32 [a], n;\n"                  \
    "  setp.ge.u32 q, n, m; @q ret; mov.u64 g, %current_graph_exec; st.param.b64 [a0], g;\n"                 \
    "  st.param.b64 [a1], 0x0100000000000000; call (r), cudaGraphLaunch, (a0, a1); ret; }\n"

static CUcontext ctx;
static CUmodule module;
static CUdeviceptr p;

static int setup(void **state)
{
    ctx = whole_context();
    OK(cuModuleLoadData(&module, CHILDREN_PTX));
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuMemsetD8_v2(p, 0, 64));
    return 0;
}

static int teardown(void **state)
{
    OK(cuCtxDestroy_v2(ctx));
    return 0;
}

static void run(const char *name, unsigned blocks, unsigned threads, void **params)
{
    OK(cuLaunchKernel(whole_function(module, name), blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
}

// Kernels run in the order of the launches, and the host's next kernel after all of them.
static void good_order(void **state)
{
    uint32_t v = 4;
    run("order", 1, 1, (void *[]){&p});
    run("twice", 1, 1, (void *[]){&p, &v});
    assert_int_equal(whole_read(p), 2 * 11 + 4);
}

// Unordered launches run first, then the tail in its own order; the host's later launches run after the tail.
static void good_tail(void **state)
{
    uint32_t v = 5;
    run("tail", 1, 1, (void *[]){&p});
    run("twice", 1, 1, (void *[]){&p, &v});
    assert_int_equal(whole_read(p), ((3 * 2 + 1) * 2 + 2) * 2 + 5);
}

static void good_many(void **state)
{
    run("many", 40, 50, (void *[]){&p});
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(p), 40 * 50 * 33);
    assert_int_equal(whole_read(p + 4), 0);
}

// Each kernel launches two more: a tree.
static void good_nested(void **state)
{
    uint32_t v = 7;
    run("nested", 1, 1, (void *[]){&p, &v});
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(p), (1u << 8) - 1);
}

static void good_event_behind(void **state)
{
    CUevent e;
    OK(cuEventCreate(&e, 0));
    run("order", 1, 1, (void *[]){&p});
    OK(cuEventRecord(e, NULL));
    OK(cuEventSynchronize(e));
    assert_int_equal(whole_read(p), 11);
    OK(cuEventDestroy_v2(e));
}

static void good_fill(void **state)
{
    run("fills", 1, 1, (void *[]){&p});
    assert_int_equal(whole_read(p), 2 * 1 + 7);
}

static void bad_launches(void **state)
{
    run("bad", 1, 1, (void *[]){&p});
    assert_int_equal(whole_read(p), 99);
    assert_int_equal(whole_read(p + 4), 701);
    assert_int_equal(whole_read(p + 8), 0);
    assert_int_equal(whole_read(p + 12), 99);
}

static void bad_child(void **state)
{
    run("dies", 1, 1, (void *[]){&p});
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    assert_true(str_eq(ctx->fault.kernel->name, STR("wild")));
}

// The kernel waits for something that never comes: the failure of its child ends it.
static void bad_copy_ends_parent(void **state)
{
    run("stuck", 1, 1, (void *[]){&p});
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    assert_int_equal(ctx->fault.address, 16);
}

// --- graphs ------------------------------------------------------------------------------------------------

static CUDA_KERNEL_NODE_PARAMS kernel_of(const char *name, unsigned threads, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = whole_function(module, name),
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = threads,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static CUgraphExec make(const char *name, void **params, unsigned count, unsigned flags)
{
    CUgraph g;
    CUgraphNode n, before = NULL;
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    for (unsigned i = 0; i < count; i++) {
        CUDA_KERNEL_NODE_PARAMS k = kernel_of(name, 1, params);
        OK(cuGraphAddKernelNode_v2(&n, g, &before, before != NULL, &k));
        before = n;
    }
    OK(cuGraphInstantiateWithFlags(&e, g, flags));
    OK(cuGraphDestroy(g));
    return e;
}

static void launch_by_kernel(uint64_t stream)
{
    uint32_t v = 3, w = 5;
    uint64_t to = stream;
    CUgraphExec inner = make("twice", (void *[]){&p, &v}, 3, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    CUgraphExec outer = make("starts", (void *[]){&p, &inner, &to}, 1, 0);
    OK(cuGraphLaunch(outer, NULL));
    OK(cuGraphLaunch(outer, NULL));
    run("twice", 1, 1, (void *[]){&p, &w});
    assert_int_equal(whole_read(p), (63 * 3) * 2 + 5);
    assert_int_equal(whole_read(p + 4), 0);
    OK(cuGraphExecDestroy(outer));
    OK(cuGraphExecDestroy(inner));
}

static void good_graph_beside(void **state)
{
    launch_by_kernel(UINT64_C(0x0200000000000000));
}

static void good_graph_sibling(void **state)
{
    launch_by_kernel(UINT64_C(0x0300000000000000));
}

static void good_graph_behind(void **state)
{
    launch_by_kernel(UINT64_C(0x0100000000000000));
}

static void good_graph_again(void **state)
{
    uint32_t times = 500, v = 1;
    CUgraphExec e = make("again", (void *[]){&p, &times}, 1, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    OK(cuGraphLaunch(e, NULL));
    run("add", 1, 1, (void *[]){&p, &v});
    assert_int_equal(whole_read(p), times + 1);
    OK(cuGraphExecDestroy(e));
}

// CUDA allows no more than 255 tail launches.
static void bad_graph_tails(void **state)
{
    uint32_t v = 1;
    uint64_t to = UINT64_C(0x0100000000000000);
    CUgraphExec inner = make("add", (void *[]){&p, &v}, 1, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    CUgraph g;
    CUgraphNode n;
    for (unsigned threads = 255; threads <= 256; threads++) {
        CUgraphExec e;
        CUDA_KERNEL_NODE_PARAMS k = kernel_of("starts", threads, (void *[]){&p, &inner, &to});
        OK(cuMemsetD8_v2(p, 0, 64));
        OK(cuGraphCreate(&g, 0));
        OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
        OK(cuGraphInstantiateWithFlags(&e, g, 0));
        OK(cuGraphLaunch(e, NULL));
        assert_int_equal(whole_read(p), 255);
        assert_int_equal(whole_read(p + 4), threads > 255 ? EXEC_TOO_MANY_PENDING : 0);
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
    }
    OK(cuGraphExecDestroy(inner));
}

// A node that fails ends one beside it that would wait for ever.
static void bad_node_ends_others(void **state)
{
    CUgraph g;
    CUgraphNode n;
    CUgraphExec e;
    CUdeviceptr q;
    CUDA_KERNEL_NODE_PARAMS k = kernel_of("spin", 1, (void *[]){&p});
    OK(cuMemAlloc_v2(&q, 64));
    OK(cuGraphCreate(&g, 0));
    OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    CUDA_MEMSET_NODE_PARAMS m = {.dst = q, .elementSize = 1, .width = 64, .height = 1};
    OK(cuGraphAddMemsetNode(&n, g, NULL, 0, &m, ctx));
    OK(cuGraphInstantiateWithFlags(&e, g, 0));
    OK(cuMemFree_v2(q));
    OK(cuGraphLaunch(e, NULL));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

enum { FEW = 32, MORE = 40 };  // the least possible limit, and what a kernel requests

static void expect_flood(void)
{
    assert_int_equal(whole_read(p), FEW);
    assert_int_equal(whole_read(p + 4), EXEC_TOO_MANY_PENDING);
    assert_int_equal(whole_read(p + 8), FEW);
    assert_int_equal(atomic_load(&ctx->pending), 0);
}

static void bad_graph_flood(void **state)
{
    uint32_t n = MORE;
    OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, FEW));
    CUgraphExec inner = make("waits", (void *[]){&p}, 1, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    for (uint64_t to = UINT64_C(0x0200000000000000); to <= UINT64_C(0x0300000000000000);
         to += (uint64_t)1 << 56) {
        OK(cuMemsetD8_v2(p, 0, 64));
        CUgraphExec outer = make("floods", (void *[]){&p, &inner, &to, &n}, 1, 0);
        OK(cuGraphLaunch(outer, NULL));
        OK(cuCtxSynchronize());
        expect_flood();
        OK(cuGraphExecDestroy(outer));
    }
    OK(cuGraphExecDestroy(inner));
}

// Tail launches of a graph that is a tail launch itself.
static void bad_graph_flood_behind(void **state)
{
    uint32_t n = MORE;
    uint64_t to = UINT64_C(0x0100000000000000);
    CUdeviceptr other = p + 32;  // the first graph stores its result there
    OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, FEW));
    CUgraphExec inner = make("waits", (void *[]){&p}, 1, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    CUgraphExec middle =
        make("floods", (void *[]){&p, &inner, &to, &n}, 1, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    CUgraphExec outer = make("starts", (void *[]){&other, &middle, &to}, 1, 0);
    OK(cuGraphLaunch(outer, NULL));
    OK(cuCtxSynchronize());
    expect_flood();
    OK(cuGraphExecDestroy(outer));
    OK(cuGraphExecDestroy(middle));
    OK(cuGraphExecDestroy(inner));
}

static void bad_graphs(void **state)
{
    uint32_t v = 3;
    uint64_t to = UINT64_C(0x0200000000000000);
    CUgraphExec plain = make("twice", (void *[]){&p, &v}, 1, 0), outer, none = (CUgraphExec)0x1230;
    outer = make("starts", (void *[]){&p, &plain, &to}, 1, 0);
    OK(cuGraphLaunch(outer, NULL));
    assert_int_equal(whole_read(p + 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(outer));
    outer = make("starts", (void *[]){&p, &none, &to}, 1, 0);
    OK(cuGraphLaunch(outer, NULL));
    assert_int_equal(whole_read(p + 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphExecDestroy(outer));
    // Only kernels of graphs launch graphs.
    run("starts", 1, 1, (void *[]){&p, &plain, &to});
    assert_int_equal(whole_read(p + 4), CUDA_ERROR_NOT_SUPPORTED);
    assert_int_equal(whole_read(p), 0);
    OK(cuGraphExecDestroy(plain));
    CUgraph g;
    CUgraphExec e;
    OK(cuGraphCreate(&g, 0));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuGraphInstantiateWithFlags(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
    OK(cuGraphDestroy(g));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(good_order),           TEST(good_tail),          TEST(good_many),
        TEST(good_nested),          TEST(good_event_behind),  TEST(good_fill),
        TEST(bad_launches),         TEST(bad_child),          TEST(good_graph_beside),
        TEST(good_graph_behind),    TEST(good_graph_sibling), TEST(good_graph_again),
        TEST(bad_graphs),           TEST(bad_graph_tails),    TEST(bad_copy_ends_parent),
        TEST(bad_node_ends_others), TEST(bad_graph_flood),    TEST(bad_graph_flood_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
