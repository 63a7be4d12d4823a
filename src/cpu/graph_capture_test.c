// SPDX-License-Identifier: MIT
#include "cpu/graph_testing.h"

#include <pthread.h>
#include <unistd.h>

#include "base/mem.h"

static CUstream stream, side;
static CUevent event, other_event;

static int setup(void **state)
{
    graph_setup(state);
    stream = new_stream();
    side = new_stream();
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&other_event, CU_EVENT_DISABLE_TIMING));
    return 0;
}

static int teardown(void **state)
{
    return graph_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static void begin(CUstreamCaptureMode mode)
{
    OK(cuStreamBeginCapture_v2(stream, mode));
}

// The other stream takes part in the capture.
static void begin_both(CUstreamCaptureMode mode)
{
    begin(mode);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(side, event, 0));
}

static CUgraph end(void)
{
    CUgraph g = NULL;
    OK(cuStreamEndCapture(stream, &g));
    assert_non_null(g);
    return g;
}

static void never(void *arg)
{
    abort();
}

static void count_calls(void *arg)
{
    atomic_fetch_add((atomic_uint *)arg, 1);
}

// Ends a capture that was invalidated.
static void end_spoilt(CUstream s)
{
    CUstreamCaptureStatus status;
    CUgraph g = (CUgraph)1;
    OK(cuStreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(s, never, NULL));
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(s, &g));
    assert_null(g);
    OK(cuStreamIsCapturing(s, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
}

static size_t count_nodes(CUgraph g)
{
    size_t n = 0;
    OK(cuGraphGetNodes(g, NULL, &n));
    return n;
}

static void run_and_destroy(CUgraph g)
{
    run_graph(g);
    OK(cuGraphDestroy(g));
}

// --- what is captured --------------------------------------------------------------------------------------

static void count_call(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

// One node of each kind is captured, and nothing happens before the launch.
static void good_all_kinds(void **state)
{
    atomic_int calls = 0;
    uint32_t *pinned, v = 3;
    CUgraphNode nodes[20];
    size_t n = 20;
    OK(cuMemHostAlloc((void **)&pinned, 4096, 0));
    *pinned = 0;
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuMemsetD32Async(test_words, 1, 2, stream));
    OK(cuMemcpyDtoDAsync_v2(test_words + 8, test_words, 8, stream));
    launch_step(stream, test_words + 8, 2);
    void *params[] = {&test_words, &v};
    OK(cuLaunchCooperativeKernel(test_step, 1, 1, 1, 1, 1, 1, 0, stream, params));
    CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, stream, NULL, 0};
    OK(cuLaunchKernelEx(&config, test_step, params, NULL));
    OK(cuLaunchHostFunc(stream, count_call, &calls));
    OK(cuStreamWriteValue32(stream, test_words + 16, 5, 0));
    OK(cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL));
    OK(cuMemcpyDtoHAsync_v2(pinned, test_words, 20, stream));
    OK(cuMemsetD2D8Async(test_words + 64, 16, 7, 4, 3, stream));
    OK(cuMemsetD8Async(test_words, 0, 0, stream));
    OK(cuMemcpyDtoHAsync_v2(NULL, 0, 0, stream));
    CUgraph g = end();
    assert_int_equal(whole_read(test_words), 0);
    static const CUgraphNodeType want[] = {
        CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_KERNEL,
        CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_HOST,
        CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        CU_GRAPH_NODE_TYPE_MEMCPY,       CU_GRAPH_NODE_TYPE_MEMSET};
    OK(cuGraphGetNodes(g, nodes, &n));
    assert_int_equal(n, sizeof want / sizeof *want);
    for (size_t i = 0; i < n; i++) {
        CUgraphNodeType type;
        CUgraphNode before;
        size_t one = 1;
        OK(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, want[i]);
        OK(cuGraphNodeGetDependencies(nodes[i], &before, &one));
        assert_int_equal(one, i > 0);
        assert_true(!i || before == nodes[i - 1]);
    }
    CUkernelNodeAttrValue value;
    OK(cuGraphKernelNodeGetAttribute(nodes[3], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    assert_int_equal(value.cooperative, 1);
    run_graph(g);
    run_and_destroy(g);
    static const uint32_t words[] = {133, 1, 12, 1, 5};
    assert_memory_equal(pinned, words, sizeof words);
    assert_int_equal(whole_read(test_words + 64 + 32), 0x07070707);
    assert_int_equal(whole_read(test_words + 64 + 36), 0);
    assert_int_equal(calls, 2);
    OK(cuMemFreeHost(pinned));
}

static void good_fork_and_join(void **state)
{
    CUgraphNode nodes[8], before[8];
    size_t n = 8;
    begin_both(CU_STREAM_CAPTURE_MODE_GLOBAL);
    launch_step(stream, test_words, 1);
    launch_step(side, test_words + 4, 2);
    launch_step(side, test_words + 4, 3);
    OK(cuEventRecord(other_event, side));
    OK(cuStreamWaitEvent(stream, other_event, 0));
    launch_step(stream, test_words, 4);
    CUstreamCaptureStatus status;
    OK(cuStreamIsCapturing(side, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CUgraph g = end();
    OK(cuStreamIsCapturing(side, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuGraphGetRootNodes(g, NULL, &n));
    assert_int_equal(n, 2);
    n = 8;
    OK(cuGraphGetNodes(g, nodes, &n));
    assert_int_equal(n, 4);
    assert_null(nodes[4]);
    n = 8;
    OK(cuGraphNodeGetDependencies(nodes[3], before, &n));
    assert_int_equal(n, 2);
    run_and_destroy(g);
    assert_int_equal(whole_read(test_words), 14);
    assert_int_equal(whole_read(test_words + 4), 23);
    launch_step(side, test_words, 1);
}

// Memory that a capture allocates can be used in it, and after its launch.
static void good_memory(void **state)
{
    CUdeviceptr inside, outside;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemAllocAsync(&inside, 4096, stream));
    OK(cuMemAllocAsync(&outside, 64, stream));
    OK(cuMemsetD32Async(inside, 7, 1024, stream));
    OK(cuMemcpyDtoDAsync_v2(outside, inside + 4096 - 64, 64, stream));
    OK(cuMemFreeAsync(inside, stream));
    BAD(cuMemFreeAsync(inside, stream));
    BAD(cuMemFreeAsync(test_words, stream));
    CUgraph g = end();
    CUgraphExec e = instantiate(g);
    BAD(cuMemsetD8_v2(outside, 0, 1));
    OK(cuGraphLaunch(e, stream));
    launch_step(stream, outside, 1);
    OK(cuStreamSynchronize(stream));
    assert_int_equal(whole_read(outside), 71);
    BAD(cuMemFreeAsync(inside, stream));
    OK(cuMemFreeAsync(outside, stream));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

// The destination of a captured memset is not checked; it may write where a kernel's stores may.
static void good_memset_past_end(void **state)
{
    CUdeviceptr p;
    CUgraph explicit = new_graph();
    CUgraphNode n;
    OK(cuMemAlloc_v2(&p, 100));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemsetD8Async(p, 7, 101, stream));
    BAD(cuMemcpyDtoDAsync_v2(p, test_words, 101, stream));
    CUgraph g = end();
    assert_int_equal(count_nodes(g), 1);
    run_and_destroy(g);
    assert_int_equal(whole_read(p + 96), 0x07070707);
    // It may also begin there.
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemsetD8Async(p + 100, 8, 4, stream));
    run_and_destroy(end());
    CUDA_MEMSET_NODE_PARAMS fill = {p, 0, 1, 1, 101, 1};
    BAD(cuGraphAddMemsetNode(&n, explicit, NULL, 0, &fill, test_ctx));
    OK(cuGraphDestroy(explicit));
    OK(cuMemFree_v2(p));
}

// It fails when it runs if nothing is mapped at its destination.
static void memset_fails(CUdeviceptr at, size_t size)
{
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuMemsetD8Async(at, 7, size, stream));
    CUgraphExec e = instantiate(end());
    OK(cuGraphLaunch(e, NULL));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
}

static void bad_memset_past_end(void **state)
{
    memset_fails(test_words, 1 << 30);
}

static void bad_memset_nowhere(void **state)
{
    memset_fails(0x1000, 1);
}

// Pageable memory of the host.
static void bad_memset_pageable(void **state)
{
    static char page[8192];
    memset_fails((uintptr_t)page + 4090, 16);
}

static void good_launch_captured(void **state)
{
    CUgraph inner = new_graph(), child;
    CUgraphNode n;
    size_t one = 1;
    add_step(inner, add_step(inner, NULL, test_words, 2), test_words, 3);
    CUgraphExec e = instantiate(inner);
    OK(cuGraphDestroy(inner));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    launch_step(stream, test_words, 1);
    OK(cuGraphLaunch(e, stream));
    launch_step(stream, test_words, 4);
    CUgraph g = end();
    OK(cuGraphExecDestroy(e));
    assert_int_equal(count_nodes(g), 3);
    OK(cuGraphGetRootNodes(g, &n, &one));
    OK(cuGraphNodeGetDependentNodes(n, &n, &one));
    OK(cuGraphChildGraphNodeGetGraph(n, &child));
    assert_int_equal(count_nodes(child), 2);
    run_and_destroy(g);
    assert_int_equal(whole_read(test_words), 1234);
}

static void good_into_graph(void **state)
{
    CUgraph g = new_graph(), out;
    CUgraphNode first = add_step(g, NULL, test_words, 1), second;
    CUgraphExec e;
    OK(cuStreamBeginCaptureToGraph(stream, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_step(stream, test_words, 2);
    BAD(cuGraphInstantiateWithFlags(&e, g, 0));
    BAD(cuGraphDestroy(g));
    CUstreamCaptureStatus status;
    cuuint64_t id, other;
    CUgraph info;
    const CUgraphNode *nodes;
    const CUgraphEdgeData *edges;
    size_t n;
    OK(cuStreamGetCaptureInfo_v3(stream, &status, &id, &info, &nodes, &edges, &n));
    assert_true(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && info == g && n == 1 && edges[0].type == 0);
    // A node is added by hand beside the capture, then made a dependency of the next captured node.
    second = add_step(g, nodes[0], test_words, 3);
    OK(cuStreamUpdateCaptureDependencies(stream, &second, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
    BAD(cuStreamUpdateCaptureDependencies(stream, &second, 1, 2));
    OK(cuStreamGetCaptureInfo(stream, &status, &other));
    assert_true(id == other);
    launch_step(stream, test_words, 4);
    OK(cuStreamUpdateCaptureDependencies_v2(stream, &first, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
    OK(cuStreamGetCaptureInfo_v2(stream, &status, NULL, NULL, NULL, &n));
    assert_int_equal(n, 2);
    OK(cuStreamEndCapture(stream, &out));
    assert_ptr_equal(out, g);
    run_and_destroy(g);
    assert_int_equal(whole_read(test_words), 1234);
    IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamUpdateCaptureDependencies(stream, NULL, 0, 0));
    BAD(cuStreamBeginCaptureToGraph(stream, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    // The dependencies alone say which graph it is.
    g = new_graph();
    OK(cuStreamBeginCaptureToGraph(stream, g, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
    launch_step(stream, test_words, 5);
    OK(cuStreamEndCapture(stream, NULL));
    run_and_destroy(g);
    assert_int_equal(whole_read(test_words), 12345);
}

// Destroying nodes of its graph invalidates a capture.
static void bad_node_gone(void **state)
{
    CUgraph g = new_graph(), out;
    CUgraphNode first = add_step(g, NULL, test_words, 1);
    OK(cuStreamBeginCaptureToGraph(stream, g, &first, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuGraphDestroyNode(first));
    unsigned v = 1;
    void *params[] = {&test_words, &v};
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
       cuLaunchKernel(test_step, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &out));
    assert_null(out);
    OK(cuGraphDestroy(g));
}

// --- what is forbidden -------------------------------------------------------------------------------------

static void bad_begin_and_end(void **state)
{
    CUgraph g;
    CUstreamCaptureStatus status;
    BAD(cuStreamBeginCapture_v2(stream, (CUstreamCaptureMode)3));
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(NULL, 0));
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamBeginCapture_v2(CU_STREAM_LEGACY, 0));
    IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &g));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamBeginCapture_v2(stream, 0));
    BAD(cuStreamIsCapturing(stream, NULL));
    // The capture has ended, and nobody has the graph.
    launch_step(stream, test_words, 1);
    OK(cuStreamGetCaptureInfo_v2(stream, &status, NULL, &g, NULL, NULL));
    OK(cuStreamEndCapture(stream, NULL));
    BAD(cuGraphGetNodes(g, NULL, &(size_t){0}));
    IS(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(stream, &g));
    begin_both(CU_STREAM_CAPTURE_MODE_GLOBAL);
    launch_step(side, test_words, 1);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &g));
    assert_null(g);
    begin_both(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, cuStreamEndCapture(side, &g));
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(side, never, NULL));
    end_spoilt(stream);
    OK(cuStreamIsCapturing(side, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    // A thread's own stream can be captured.
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuMemsetD8Async(test_words, 1, 1, CU_STREAM_PER_THREAD));
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemsetD8_v2_ptds(test_words, 1, 1));
    end_spoilt(CU_STREAM_PER_THREAD);
}

static void never_called(CUstream s, CUresult r, void *arg)
{
    abort();
}

static void bad_waiting(void **state)
{
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(stream));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuStreamSynchronize(side));
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxSynchronize());
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamAddCallback(stream, never_called, NULL, 0));
    end_spoilt(stream);
    OK(cuCtxSynchronize());
}

// Calls that the host may not make beside a strict capture.
static void bad_beside(void **state)
{
    static char page[2 * 4096];
    CUdeviceptr p;
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamQuery(side));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(side));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAllocAsync(&p, 64, side));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemHostRegister_v2(page, sizeof page, 0));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemHostUnregister(page));
    end_spoilt(stream);
    OK(cuMemAllocAsync(&p, 64, side));
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    IS(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemFreeAsync(p, side));
    end_spoilt(stream);
    OK(cuMemFreeAsync(p, side));
    OK(cuStreamSynchronize(side));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuStreamQuery(side));
    OK(cuMemAllocAsync(&p, 64, side));
    OK(cuMemHostRegister_v2(page, sizeof page, 0));
    OK(cuGraphDestroy(end()));
    OK(cuMemHostUnregister(page));
}

// A launch that fails invalidates the capture that it was meant for; other calls with invalid arguments do
// not.
static void bad_work(void **state)
{
    CUlaunchAttribute huge = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1000, 1, 1}};
    CUlaunchConfig config = {1000, 1, 1, 1, 1, 1, 0, stream, &huge, 1};
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    BAD(cuLaunchHostFunc(stream, NULL, NULL));
    BAD(cuMemFreeAsync(test_words, stream));
    IS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    BAD(cuLaunchKernel(test_step, 0, 1, 1, 1, 1, 1, 0, side, NULL, NULL));
    BAD(cuLaunchKernel(test_step, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    OK(cuGraphDestroy(end()));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    BAD(cuLaunchKernel(test_step, 0, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx(&config, test_step, NULL, NULL));
    end_spoilt(stream);
    // More parameters than the kernel has, and no memory for the node.
    uint64_t many[16] = {0};
    size_t size = sizeof many;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, many, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
       cuLaunchKernel(test_step, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
    end_spoilt(stream);
    void *params[] = {&test_words, &(unsigned){1}};
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    mem_fail_after(0);
    CUresult r = cuLaunchKernel(test_step, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
    mem_fail_after(-1);
    IS(CUDA_ERROR_OUT_OF_MEMORY, r);
    end_spoilt(stream);
}

// A query of a captured event invalidates the capture, but one of the elapsed time does not. After that, and
// after the end of the capture, the event is unusable.
static void bad_questions(void **state)
{
    float ms;
    for (int how = 0; how < 2; how++) {
        begin(CU_STREAM_CAPTURE_MODE_RELAXED);
        OK(cuEventRecord(event, stream));
        IS(CUDA_ERROR_CAPTURED_EVENT, cuEventElapsedTime_v2(&ms, event, event));
        IS(CUDA_ERROR_CAPTURED_EVENT, how ? cuEventSynchronize(event) : cuEventQuery(event));
        BAD(cuEventQuery(event));
        BAD(cuEventSynchronize(event));
        BAD(cuEventElapsedTime_v2(&ms, event, event));
        BAD(cuStreamWaitEvent(side, event, 0));
        IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamWaitEvent(stream, event, 0));
        end_spoilt(stream);
        BAD(cuEventQuery(event));
    }
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord(event, stream));
    OK(cuGraphDestroy(end()));
    BAD(cuEventQuery(event));
    BAD(cuCtxWaitEvent(test_ctx, event));
    BAD(cuStreamWaitEvent(side, event, 0));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    BAD(cuStreamWaitEvent(stream, event, 0));
    end_spoilt(stream);
}

static void bad_events(void **state)
{
    CUgraph g;
    OK(cuEventRecord(other_event, side));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    IS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, other_event, 0));
    end_spoilt(stream);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord(event, stream));
    // Two captures cannot be joined.
    OK(cuStreamBeginCapture_v2(side, CU_STREAM_CAPTURE_MODE_RELAXED));
    IS(CUDA_ERROR_STREAM_CAPTURE_MERGE, cuStreamWaitEvent(side, event, 0));
    end_spoilt(side);
    end_spoilt(stream);
    OK(cuEventRecord(event, side));
    OK(cuEventSynchronize(event));
    OK(cuStreamWaitEvent(side, event, 0));
    // An event that was never recorded makes nobody wait.
    CUevent fresh;
    OK(cuEventCreate(&fresh, 0));
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuStreamWaitEvent(stream, fresh, 0));
    IS(CUDA_ERROR_ILLEGAL_STATE, cuEventRecordWithFlags(event, side, CU_EVENT_RECORD_EXTERNAL));
    OK(cuStreamEndCapture(stream, &g));
    OK(cuGraphDestroy(g));
}

static void bad_legacy(void **state)
{
    CUstream blocking;
    CUstreamCaptureStatus status;
    CUgraph g;
    uint32_t word;
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamIsCapturing(NULL, &status));
    OK(cuStreamIsCapturing(blocking, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
    IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuMemcpyDtoH_v2(&word, test_words, 4));
    end_spoilt(blocking);
    OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    unsigned v = 1;
    void *params[] = {&test_words, &v};
    IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, whole_launch(test_step, params));
    end_spoilt(blocking);
    OK(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuEventRecord(event, blocking));
    IS(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, cuStreamWaitEvent(NULL, event, 0));
    end_spoilt(blocking);
    // Streams that are not ordered with the legacy stream do not affect it.
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(whole_launch(test_step, params));
    OK(cuMemcpyDtoH_v2(&word, test_words, 4));
    OK(cuStreamEndCapture(stream, &g));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy_v2(blocking));
}

// --- modes -------------------------------------------------------------------------------------------------

static CUstreamCaptureMode mode_of_thread;

static void *try_unsafe(void *arg)
{
    CUdeviceptr p = 0;
    CUstreamCaptureMode mode = mode_of_thread;
    OK(cuCtxSetCurrent(test_ctx));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    CUresult r = cuMemAlloc_v2(&p, 16);
    if (!r)
        OK(cuMemFree_v2(p));
    return (void *)(intptr_t)r;
}

static CUresult elsewhere(CUstreamCaptureMode mode)
{
    pthread_t t;
    void *r;
    mode_of_thread = mode;
    assert_int_equal(pthread_create(&t, NULL, try_unsafe, NULL), 0);
    pthread_join(t, &r);
    return (CUresult)(intptr_t)r;
}

static void good_modes(void **state)
{
    enum {
        GLOBAL = CU_STREAM_CAPTURE_MODE_GLOBAL,
        LOCAL = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        RELAXED = CU_STREAM_CAPTURE_MODE_RELAXED
    };
    // Whether the capture's mode forbids the call to its own thread, and to others in each mode.
    static const struct {
        int capture, thread;
        bool own, other;
    } rows[] = {
        {GLOBAL, GLOBAL, true, true},    {GLOBAL, LOCAL, true, false},   {GLOBAL, RELAXED, false, false},
        {LOCAL, GLOBAL, true, false},    {LOCAL, LOCAL, true, false},    {LOCAL, RELAXED, false, false},
        {RELAXED, GLOBAL, false, false}, {RELAXED, LOCAL, false, false}, {RELAXED, RELAXED, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CUdeviceptr p;
        CUresult no = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        begin((CUstreamCaptureMode)rows[i].capture);
        IS(rows[i].other ? no : CUDA_SUCCESS, elsewhere((CUstreamCaptureMode)rows[i].thread));
        if (rows[i].other)
            end_spoilt(stream);
        else
            OK(cuGraphDestroy(end()));
        CUstreamCaptureMode mode = (CUstreamCaptureMode)rows[i].thread;
        OK(cuThreadExchangeStreamCaptureMode(&mode));
        assert_int_equal(mode, GLOBAL);
        begin((CUstreamCaptureMode)rows[i].capture);
        IS(rows[i].own ? no : CUDA_SUCCESS, cuMemAlloc_v2(&p, 16));
        if (rows[i].own)
            end_spoilt(stream);
        else
            OK(cuGraphDestroy(end()));
        OK(cuThreadExchangeStreamCaptureMode(&mode));
        assert_int_equal(mode, rows[i].thread);
        if (!rows[i].own)
            OK(cuMemFree_v2(p));
    }
}

// An unknown mode is accepted, too.
static void good_odd_mode(void **state)
{
    CUstreamCaptureMode mode = (CUstreamCaptureMode)7;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, 7);
    BAD(cuThreadExchangeStreamCaptureMode(NULL));
}

static void *end_elsewhere(void *arg)
{
    CUgraph g;
    OK(cuCtxSetCurrent(test_ctx));
    CUresult r = cuStreamEndCapture(stream, &g);
    if (!r)
        OK(cuGraphDestroy(g));
    return (void *)(intptr_t)r;
}

static void bad_thread(void **state)
{
    for (int mode = 0; mode <= CU_STREAM_CAPTURE_MODE_RELAXED; mode++) {
        pthread_t t;
        void *r;
        begin((CUstreamCaptureMode)mode);
        assert_int_equal(pthread_create(&t, NULL, end_elsewhere, NULL), 0);
        pthread_join(t, &r);
        bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_int_equal((intptr_t)r, relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
        if (!relaxed)
            OK(cuGraphDestroy(end()));
    }
}

// --- destruction meanwhile ---------------------------------------------------------------------------------

static void good_streams_go(void **state)
{
    begin_both(CU_STREAM_CAPTURE_MODE_RELAXED);
    launch_step(side, test_words, 1);
    OK(cuStreamDestroy_v2(side));
    CUgraph g;
    IS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(stream, &g));
    // A stream that was joined may be destroyed: its nodes stay.
    side = new_stream();
    begin_both(CU_STREAM_CAPTURE_MODE_RELAXED);
    launch_step(side, test_words, 1);
    OK(cuEventRecord(event, side));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuStreamDestroy_v2(side));
    launch_step(stream, test_words, 2);
    run_and_destroy(end());
    assert_int_equal(whole_read(test_words), 12);
    begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    OK(cuEventRecord(event, stream));
    launch_step(stream, test_words, 1);
    OK(cuStreamDestroy_v2(stream));
    BAD(cuEventQuery(event));
    OK(cuCtxSynchronize());
    // The context may be destroyed during a capture.
    stream = new_stream();
    begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    OK(cuEventRecord(event, stream));
}

// Threads capture, update and launch; all share one executable.
static CUgraphExec shared_exec;

static void *capture_and_run(void *arg)
{
    CUdeviceptr p = test_words + 4 * (uintptr_t)arg;
    CUstream s, t;
    CUevent fork, join;
    OK(cuCtxSetCurrent(test_ctx));
    s = new_stream();
    t = new_stream();
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    CUgraphExec e = NULL;
    for (unsigned i = 1; i < 20; i++) {
        CUgraph g;
        CUgraphExecUpdateResultInfo info;
        OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        OK(cuMemsetD32Async(p, 0, 2, s));
        OK(cuEventRecord(fork, s));
        OK(cuStreamWaitEvent(t, fork, 0));
        launch_step(s, p, i);
        launch_step(t, p + 4, i + 1);
        OK(cuEventRecord(join, t));
        OK(cuStreamWaitEvent(s, join, 0));
        launch_step(s, p + 4, 1);
        OK(cuStreamEndCapture(s, &g));
        if (!e)
            e = instantiate(g);
        else
            OK(cuGraphExecUpdate_v2(e, g, &info));
        OK(cuGraphDestroy(g));
        OK(cuGraphLaunch(e, s));
        OK(cuGraphLaunch(shared_exec, s));
        OK(cuStreamSynchronize(s));
        uint32_t got[2];
        OK(cuMemcpyDtoHAsync_v2(got, p, 8, t));
        assert_true(got[0] == i && got[1] == 10 * (i + 1) + 1);
    }
    OK(cuGraphExecDestroy(e));
    OK(cuEventDestroy_v2(fork));
    OK(cuEventDestroy_v2(join));
    OK(cuStreamDestroy_v2(s));
    OK(cuStreamDestroy_v2(t));
    return NULL;
}

// Destroying a context ends the captures in its threads' own streams, which nobody could end.
static CUcontext going;
static pthread_barrier_t meeting;

static void *capture_own(void *arg)
{
    OK(cuCtxSetCurrent(going));
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuLaunchHostFunc(CU_STREAM_PER_THREAD, never, NULL));
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return NULL;
}

static void good_contexts_go(void **state)
{
    pthread_t t;
    CUdeviceptr p;
    CUstream mine;
    CUstreamCaptureStatus status;
    pthread_barrier_init(&meeting, NULL, 2);
    OK(cuCtxCreate_v2(&going, 0, 0));
    OK(cuStreamCreate(&mine, 0));
    assert_int_equal(pthread_create(&t, NULL, capture_own, NULL), 0);
    pthread_barrier_wait(&meeting);
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuStreamBeginCapture_v2(mine, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuCtxDestroy_v2(going));
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemFree_v2(p));
    // Nothing of the captures is left in the context's next life.
    OK(cuCtxCreate_v2(&going, 0, 0));
    OK(cuCtxSynchronize());
    OK(cuStreamIsCapturing(CU_STREAM_PER_THREAD, &status));
    assert_int_equal(status, CU_STREAM_CAPTURE_STATUS_NONE);
    OK(cuCtxDestroy_v2(going));
    // The same with a primary context.
    OK(cuDevicePrimaryCtxRetain(&going, 0));
    OK(cuCtxPushCurrent_v2(going));
    OK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuCtxPopCurrent_v2(&going));
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemFree_v2(p));
    OK(cuDevicePrimaryCtxRelease_v2(0));
    pthread_barrier_wait(&meeting);
    pthread_join(t, NULL);
}

// User objects of captures that nobody ends are destroyed.
static void destroyed(void *arg)
{
    ++*(int *)arg;
}

static int destructions(bool of_context)
{
    int calls = 0;
    CUstream s = CU_STREAM_PER_THREAD;
    CUcontext ctx;
    CUgraph g;
    CUuserObject o;
    CUstreamCaptureStatus status;
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    if (!of_context)
        s = new_stream();
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    OK(cuStreamGetCaptureInfo_v2(s, &status, NULL, &g, NULL, NULL));
    OK(cuUserObjectCreate(&o, &calls, destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    if (of_context) {
        OK(cuCtxDestroy_v2(ctx));
        return calls;
    }
    OK(cuStreamDestroy_v2(s));
    int now = calls;
    OK(cuCtxDestroy_v2(ctx));
    return now;
}

static void good_objects_go(void **state)
{
    assert_int_equal(destructions(false), 1);
    assert_int_equal(destructions(true), 1);
}

// A capture without its origin is left in a stream of another context. It forbids nothing.
static void good_origin_goes(void **state)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUstream s;
    CUevent e;
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    s = new_stream();
    OK(cuEventCreate(&e, 0));
    OK(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cuEventRecord(e, s));
    OK(cuCtxSetCurrent(test_ctx));
    OK(cuStreamWaitEvent(side, e, 0));
    OK(cuCtxDestroy_v2(ctx));
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemFree_v2(p));
    IS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuLaunchHostFunc(side, never, NULL));
    OK(cuStreamDestroy_v2(side));
}

// Contexts are destroyed while other threads use their own streams of them: calls may fail, but nothing else
// may go wrong.
static struct {
    _Atomic(CUcontext) ctx;
    atomic_bool over;
    atomic_uint captures;
} moving;

static void *use_own(void *arg)
{
    while (!atomic_load(&moving.over)) {
        CUcontext ctx = atomic_load(&moving.ctx);
        CUgraph g;
        CUgraphExec e;
        if (!ctx || cuCtxSetCurrent(ctx) ||
            cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED))
            continue;
        cuLaunchHostFunc(CU_STREAM_PER_THREAD, count_calls, &moving.captures);
        if (cuStreamEndCapture(CU_STREAM_PER_THREAD, &g))
            continue;
        if (!cuGraphInstantiateWithFlags(&e, g, 0)) {
            cuGraphLaunch(e, CU_STREAM_PER_THREAD);
            cuGraphExecDestroy(e);
        }
        cuLaunchHostFunc(CU_STREAM_PER_THREAD, count_calls, &moving.captures);
        cuGraphDestroy(g);
    }
    return NULL;
}

static void good_contexts_go_meanwhile(void **state)
{
    pthread_t t[3];
    CUdeviceptr p;
    atomic_store(&moving.over, false);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&t[i], NULL, use_own, NULL), 0);
    for (unsigned i = 0; i < 500; i++) {
        CUcontext ctx;
        OK(cuCtxCreate_v2(&ctx, 0, 0));
        atomic_store(&moving.ctx, ctx);
        usleep(i * 37 % 1000);
        atomic_store(&moving.ctx, NULL);
        OK(cuCtxDestroy_v2(ctx));
    }
    // The last context stays, which shows that something is captured at all.
    CUcontext last;
    OK(cuCtxCreate_v2(&last, 0, 0));
    atomic_store(&moving.ctx, last);
    for (unsigned i = 0; i < 60000 && !atomic_load(&moving.captures); i++)
        usleep(1000);
    atomic_store(&moving.ctx, NULL);
    OK(cuCtxDestroy_v2(last));
    atomic_store(&moving.over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    assert_true(atomic_load(&moving.captures) > 0);
    // No capture is left, and none is counted.
    OK(cuMemAlloc_v2(&p, 16));
    OK(cuMemFree_v2(p));
    OK(cuCtxSynchronize());
    CUcontext ctx;
    OK(cuCtxCreate_v2(&ctx, 0, 0));
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(ctx));
}

static void good_threads(void **state)
{
    pthread_t t[4];
    CUgraph g = new_graph();
    void *params[] = {&(CUdeviceptr){test_words + 4000}, &test_words};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_stamp, params);
    CUgraphNode n;
    OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    shared_exec = instantiate(g);
    OK(cuGraphDestroy(g));
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, capture_and_run, (void *)(1 + i * 32)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    OK(cuGraphExecDestroy(shared_exec));
    assert_int_equal(whole_read(test_words), 4 * 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_all_kinds),
        TEST(good_fork_and_join),
        TEST(good_memory),
        TEST(good_launch_captured),
        TEST(good_into_graph),
        TEST(bad_node_gone),
        TEST(bad_begin_and_end),
        TEST(bad_waiting),
        TEST(bad_events),
        TEST(bad_legacy),
        TEST(good_modes),
        TEST(bad_thread),
        TEST(good_streams_go),
        TEST(good_contexts_go),
        TEST(good_objects_go),
        TEST(good_origin_goes),
        TEST(good_contexts_go_meanwhile),
        TEST(good_threads),
        TEST(bad_beside),
        TEST(bad_work),
        TEST(bad_questions),
        TEST(good_memset_past_end),
        cmocka_unit_test_setup(bad_memset_past_end, setup),
        cmocka_unit_test_setup(bad_memset_nowhere, setup),
        cmocka_unit_test_setup(bad_memset_pageable, setup),
        TEST(good_odd_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
