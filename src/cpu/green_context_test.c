// SPDX-License-Identifier: MIT
#include "cpu/whole_testing.h"

int moat_driver_fault(CUcontext context, struct driver_fault *out);  // other code finds it by its name

static CUdevResource all;

static int setup(void **state)
{
    OK(cuInit(0));
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    return 0;
}

static void test_split(void **state)
{
    CUdevResource parts[4], rest;
    unsigned n = 0;
    assert_int_equal(all.type, CU_DEV_RESOURCE_TYPE_SM);
    assert_int_equal(all.sm.smCount, 5);
    OK(cuDevSmResourceSplitByCount(NULL, &n, &all, NULL, 0, 2));
    assert_int_equal(n, 2);
    n = 4;
    OK(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 2));
    assert_int_equal(n, 2);
    assert_int_equal(parts[0].sm.smCount, 2);
    assert_int_equal(parts[1].sm.smCount, 2);
    assert_int_equal(rest.sm.smCount, 1);
    n = 1;
    OK(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 2));
    assert_int_equal(n, 1);
    assert_int_equal(rest.sm.smCount, 3);
    n = 1;
    OK(cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 5));
    assert_int_equal(rest.type, CU_DEV_RESOURCE_TYPE_INVALID);
    IS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 0, 6));
    IS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(parts, &n, &all, &rest, 4, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(parts, NULL, &all, &rest, 0, 1));
    IS(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevSmResourceSplitByCount(parts, &n, &rest, NULL, 0, 1));
    IS(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &rest, CU_DEV_RESOURCE_TYPE_INVALID));
    IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource(7, &rest, CU_DEV_RESOURCE_TYPE_SM));
    CUdevResource forged = {.type = CU_DEV_RESOURCE_TYPE_SM, .sm = {.smCount = 2}};
    IS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(parts, &n, &forged, NULL, 0, 1));
}

static CUgreenCtx make(CUdevice device, unsigned sms)
{
    CUdevResource whole, part;
    CUdevResourceDesc desc;
    CUgreenCtx g;
    unsigned n = 1;
    OK(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevSmResourceSplitByCount(&part, &n, &whole, NULL, 0, sms));
    OK(cuDevResourceGenerateDesc(&desc, &part, 1));
    OK(cuGreenCtxCreate(&g, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
    return g;
}

// Streams without a handle belong to the current green context.
static void expect_default_streams(CUgreenCtx g)
{
    const CUstream streams[] = {NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD};
    CUgreenCtx got;
    for (int i = 0; i < 3; i++) {
        got = (CUgreenCtx)&got;
        OK(cuStreamGetGreenCtx(streams[i], &got));
        assert_ptr_equal(got, g);
        got = (CUgreenCtx)&got;
        OK(cuStreamGetCtx_v2(streams[i], NULL, &got));
        assert_ptr_equal(got, g);
    }
}

// Objects made while a green context is current belong to the primary context; memory stays when the green
// context is destroyed.
static void test_current(void **state)
{
    CUgreenCtx g = make(0, 2);
    CUcontext as, got, primary, s_ctx;
    CUdevResource r;
    CUdeviceptr p;
    CUstream s, plain;
    CUgreenCtx s_green;
    unsigned flags;
    int active;
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_true(active);
    OK(cuCtxFromGreenCtx(&as, g));
    OK(cuCtxSetCurrent(as));
    OK(cuCtxGetCurrent(&got));
    assert_ptr_equal(got, as);
    expect_default_streams(g);
    OK(cuCtxGetDevResource(as, &r, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(r.sm.smCount, 2);
    OK(cuCtxGetDevResource(NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(r.sm.smCount, 2);
    CUmodule m = whole_module();
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuStreamGetCtx_v2(s, &s_ctx, &s_green));
    assert_ptr_equal(s_green, g);
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    assert_ptr_equal(s_ctx, primary);
    OK(cuCtxGetDevResource(primary, &r, CU_DEV_RESOURCE_TYPE_SM));
    assert_int_equal(r.sm.smCount, 5);
    uint32_t v = 42;
    OK(cuLaunchKernel(whole_function(m, "store"), 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&p, &v}, NULL));
    OK(cuCtxSynchronize_v2(as));
    assert_int_equal(whole_read(p), 42);
    OK(cuCtxPopCurrent_v2(&got));
    assert_ptr_equal(got, as);
    OK(cuCtxPushCurrent_v2(primary));
    expect_default_streams(NULL);
    OK(cuStreamCreate(&plain, 0));
    OK(cuStreamGetGreenCtx(plain, &s_green));
    assert_null(s_green);
    OK(cuGreenCtxDestroy(g));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamGetGreenCtx(s, &s_green));
    OK(cuStreamSynchronize(plain));
    assert_int_equal(whole_read(p), 42);
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent_v2(as));
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevResource(as, &r, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_false(active);
    OK(cuCtxPopCurrent_v2(&got));
}

static void test_streams_and_events(void **state)
{
    CUgreenCtx g[2] = {make(0, 2), make(0, 3)};
    unsigned long long id[2];
    CUcontext as;
    CUstream s[2];
    CUevent e;
    CUdeviceptr p;
    uint32_t v = 7;
    for (int i = 0; i < 2; i++) {
        OK(cuGreenCtxStreamCreate(&s[i], g[i], CU_STREAM_NON_BLOCKING, 0));
        OK(cuGreenCtxGetId(g[i], &id[i]));
    }
    assert_true(id[0] != id[1]);
    IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&s[0], g[0], 0, 0));
    OK(cuCtxFromGreenCtx(&as, g[0]));
    OK(cuCtxPushCurrent_v2(as));
    CUmodule m = whole_module();
    OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
    OK(cuMemAllocManaged(&p, 8, CU_MEM_ATTACH_GLOBAL));
    volatile uint32_t *words = (volatile uint32_t *)(uintptr_t)p;
    words[0] = words[1] = 0;
    CUdeviceptr second = p + 4;
    // The second green context's stream waits for the work of the first one's.
    OK(cuLaunchKernel(whole_function(m, "spin"), 1, 1, 1, 1, 1, 1, 0, s[0], (void *[]){&p}, NULL));
    OK(cuGreenCtxRecordEvent(g[0], e));
    OK(cuGreenCtxWaitEvent(g[1], e));
    OK(cuLaunchKernel(whole_function(m, "store"), 1, 1, 1, 1, 1, 1, 0, s[1], (void *[]){&second, &v}, NULL));
    IS(CUDA_ERROR_NOT_READY, cuStreamQuery(s[1]));
    assert_int_equal(words[1], 0);
    words[0] = 1;
    OK(cuStreamSynchronize(s[1]));
    assert_int_equal(words[1], 7);
    OK(cuCtxPopCurrent_v2(NULL));
    for (int i = 0; i < 2; i++)
        OK(cuGreenCtxDestroy(g[i]));
}

// After a green context is destroyed, its streams and the threads it was current in do not use a new one,
// even if that has the same address.
static void test_destroyed(void **state)
{
    CUgreenCtx other = make(0, 1), g = make(0, 2), got;
    CUcontext as;
    CUstream s[2];
    CUdevResource r;
    CUdeviceptr p;
    OK(cuCtxFromGreenCtx(&as, g));
    OK(cuCtxPushCurrent_v2(as));
    OK(cuStreamCreate(&s[0], 0));
    OK(cuGreenCtxStreamCreate(&s[1], g, CU_STREAM_NON_BLOCKING, 0));
    OK(cuMemAlloc_v2(&p, 4));
    OK(cuGreenCtxDestroy(g));  // the other one keeps the primary context
    g = make(0, 3);
    for (int i = 0; i < 2; i++) {
        IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamQuery(s[i]));
        IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamSynchronize(s[i]));
        IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemsetD8Async(p, 0, 4, s[i]));
        IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamGetGreenCtx(s[i], &got));
        IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy_v2(s[i]));
    }
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc_v2(&p, 4));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamCreate(&s[0], 0));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamGetGreenCtx(NULL, &got));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetDevResource(NULL, &r, CU_DEV_RESOURCE_TYPE_SM));
    OK(cuCtxPopCurrent_v2(NULL));
    OK(cuGreenCtxDestroy(g));
    OK(cuGreenCtxDestroy(other));
}

// The primary context is destroyed, though it is retained.
static void test_reset(void **state)
{
    CUgreenCtx g = make(0, 2);
    CUcontext own, as;
    CUstream s;
    CUevent e;
    unsigned long long id;
    OK(cuCtxFromGreenCtx(&as, g));
    OK(cuCtxCreate_v2(&own, 0, 0));
    OK(cuEventCreate(&e, 0));
    OK(cuDevicePrimaryCtxReset_v2(0));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxWaitEvent(g, e));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxRecordEvent(g, e));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxStreamCreate(&s, g, CU_STREAM_NON_BLOCKING, 0));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize_v2(as));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxGetId(as, &id));
    OK(cuGreenCtxDestroy(g));
    OK(cuCtxDestroy_v2(own));
}

// Green contexts are accepted wherever a call takes a context.
static void test_named(void **state)
{
    CUgreenCtx g[2] = {make(0, 2), make(1, 2)};
    CUcontext as[2];
    CUdeviceptr p;
    CUgraph graph;
    CUgraphNode n;
    struct driver_fault fault;
    for (int i = 0; i < 2; i++)
        OK(cuCtxFromGreenCtx(&as[i], g[i]));
    OK(cuCtxPushCurrent_v2(as[0]));
    OK(cuMemAlloc_v2(&p, 64));
    OK(cuGraphCreate(&graph, 0));
    CUDA_MEMSET_NODE_PARAMS m = {.dst = p, .elementSize = 1, .width = 16, .height = 1};
    OK(cuGraphAddMemsetNode(&n, graph, NULL, 0, &m, as[0]));
    OK(cuMemcpyPeer(p, as[0], p + 32, as[0], 16));
    CUDA_MEMCPY3D_PEER c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = p,
                            .srcContext = as[0],
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = p + 32,
                            .dstContext = as[0],
                            .WidthInBytes = 16,
                            .Height = 1,
                            .Depth = 1};
    OK(cuMemcpy3DPeer(&c));
    OK(cuCtxEnablePeerAccess(as[1], 0));
    OK(cuCtxDisablePeerAccess(as[1]));
    IS(CUDA_ERROR_NOT_FOUND, moat_driver_fault(as[0], &fault));
    IS(CUDA_ERROR_INVALID_CONTEXT, moat_driver_fault((CUcontext)&fault, &fault));
    OK(cuGraphDestroy(graph));
    OK(cuCtxPopCurrent_v2(NULL));
    for (int i = 0; i < 2; i++)
        OK(cuGreenCtxDestroy(g[i]));
}

static void test_wrong(void **state)
{
    CUgreenCtx g = make(0, 1), other;
    CUdevResource one, many[3];
    CUdevResourceDesc desc;
    CUcontext as;
    unsigned n = 1;
    unsigned long long id;
    OK(cuDevSmResourceSplitByCount(&one, &n, &all, NULL, 0, 4));
    for (int i = 0; i < 3; i++)
        many[i] = one;
    IS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, many, 3));
    IS(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc(&desc, many, 0));
    OK(cuDeviceGetDevResource(1, &many[1], CU_DEV_RESOURCE_TYPE_SM));
    IS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(&desc, many, 2));
    OK(cuDevResourceGenerateDesc(&desc, &one, 1));
    IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&other, desc, 0, 0));
    IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&other, desc, 1, CU_GREEN_CTX_DEFAULT_STREAM));
    IS(CUDA_ERROR_INVALID_VALUE,
       cuGreenCtxCreate(&other, (CUdevResourceDesc)&one, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    IS(CUDA_ERROR_INVALID_VALUE, cuCtxFromGreenCtx(&as, (CUgreenCtx)&one));
    OK(cuCtxFromGreenCtx(&as, g));
    // cuCtxDestroy does not accept it.
    IS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2(as));
    OK(cuGreenCtxDestroy(g));
    IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxDestroy(g));
    IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxGetId(g, &id));
}

int main(void)
{
    setenv("MOAT_OPTIONS", "cpu-devices=2:cpu-threads=5", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_current),
        cmocka_unit_test(test_streams_and_events),
        cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_named),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
