// SPDX-License-Identifier: MIT
// Groups of answers.c: stream capture and graphs.
#ifndef ANSWERS_GRAPHS_H
#define ANSWERS_GRAPHS_H

#include "answers.h"

static const char graphs_text[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry store(.param .u64 p, .param .u32 v)\n"
    "{ .reg .b64 %a; .reg .b32 %b; ld.param.u64 %a, [p]; ld.param.u32 %b, [v];\n"
    "st.global.u32 [%a], %b; ret; }\n.visible .entry empty() { ret; }\n";

static CUfunction graphs_store, graphs_empty;
static CUstream graphs_stream, graphs_side;
static CUevent graphs_event, graphs_recorded;
static CUgraph graphs_result;

static void graphs_call(void *arg)
{
    ++*(int *)arg;
}

static void graphs_start(void)
{
    CUmodule module;
    answers_start();
    NEED(cuModuleLoadData(&module, graphs_text));
    NEED(cuModuleGetFunction(&graphs_store, module, "store"));
    NEED(cuModuleGetFunction(&graphs_empty, module, "empty"));
    graphs_stream = answers_stream();
    graphs_side = answers_stream();
    NEED(cuEventCreate(&graphs_event, 0));
    NEED(cuEventCreate(&graphs_recorded, 0));
    NEED(cuEventRecord(graphs_recorded, graphs_side));
    NEED(cuCtxSynchronize());
}

static void graphs_begin(CUstreamCaptureMode mode)
{
    NEED(cuStreamBeginCapture_v2(graphs_stream, mode));
}

// Prints the state of the capture, and ends it.
static void graphs_end(CUstream s)
{
    CUstreamCaptureStatus status = 77;
    graphs_result = NULL;
    ASK(cuStreamIsCapturing(s, &status));
    SHOW(status);
    ASK(cuStreamEndCapture(s, &graphs_result));
    SHOW(graphs_result != NULL);
}

// A driver dereferences the pointer to the mode without a check, so NULL is not tried.
static void group_captures(void)
{
    CUstreamCaptureMode mode = 7;
    graphs_start();
    ASK(cuStreamBeginCapture_v2(graphs_stream, (CUstreamCaptureMode)3));
    ASK(cuStreamBeginCapture_v2(NULL, 0));
    ASK(cuStreamBeginCapture_v2(CU_STREAM_LEGACY, 0));
    ASK(cuStreamEndCapture(graphs_stream, &graphs_result));
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
}

static void group_captures_rest(void)
{
    CUstreamCaptureStatus status = 77;
    CUstreamCaptureMode mode = 7;
    cuuint64_t id = 0;
    const CUgraphNode *nodes = NULL;
    size_t count = 77;
    graphs_start();
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    SHOW(mode);
    ASK(cuThreadExchangeStreamCaptureMode(&mode));
    SHOW(mode);
    ASK(cuStreamGetCaptureInfo_v2(graphs_stream, &status, &id, &graphs_result, &nodes, &count));
    SHOW(status);
    ASK(cuStreamUpdateCaptureDependencies(graphs_stream, NULL, 0, 0));
    ASK(cuStreamBeginCapture_v2(graphs_stream, 0));
    ASK(cuStreamBeginCapture_v2(graphs_stream, 0));
    ASK(cuStreamIsCapturing(graphs_stream, NULL));
    ASK(cuStreamEndCapture(graphs_stream, NULL));
    ASK(cuStreamEndCapture(graphs_side, &graphs_result));
    ASK(cuStreamGetCaptureInfo_v2(graphs_stream, &status, &id, &graphs_result, &nodes, &count));
    SHOW(status);
    SHOW(count);
    ASK(cuStreamUpdateCaptureDependencies(graphs_stream, NULL, 0, 2));
    ASK(cuStreamUpdateCaptureDependencies(graphs_stream, NULL, 1, 0));
    graphs_end(graphs_stream);
    ASK(cuGraphGetNodes(graphs_result, NULL, &count));
    SHOW(count);
    ASK(cuStreamBeginCapture_v2(CU_STREAM_PER_THREAD, CU_STREAM_CAPTURE_MODE_RELAXED));
    graphs_end(CU_STREAM_PER_THREAD);
    NEED(cuStreamBeginCapture_v2(graphs_stream, 0));
    ASK(cuStreamDestroy_v2(graphs_stream));
    ASK(cuCtxSynchronize());
}

static void group_capture_joins(void)
{
    CUstreamCaptureStatus status = 77;
    graphs_start();
    graphs_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    ASK(cuStreamEndCapture(graphs_side, &graphs_result));
    ASK(cuLaunchKernel(graphs_empty, 1, 1, 1, 1, 1, 1, 0, graphs_side, NULL, NULL));
    graphs_end(graphs_stream);
    ASK(cuStreamIsCapturing(graphs_side, &status));
    SHOW(status);
    // A fork without work needs no join.
    graphs_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    graphs_end(graphs_stream);
    // Two captures.
    graphs_begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
    ASK(cuStreamBeginCapture_v2(graphs_side, CU_STREAM_CAPTURE_MODE_GLOBAL));
    ASK(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    graphs_end(graphs_side);
    graphs_end(graphs_stream);
}

static void group_capture_events(void)
{
    float ms;
    CUevent fresh;
    graphs_start();
    NEED(cuEventCreate(&fresh, 0));
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuStreamWaitEvent(graphs_stream, fresh, 0));
    graphs_end(graphs_stream);
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuStreamWaitEvent(graphs_stream, graphs_recorded, 0));
    graphs_end(graphs_stream);
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuEventQuery(graphs_event));
    ASK(cuEventSynchronize(graphs_event));
    ASK(cuEventElapsedTime_v2(&ms, graphs_event, graphs_recorded));
    ASK(cuEventElapsedTime_v2(&ms, graphs_recorded, graphs_event));
    graphs_end(graphs_stream);
    ASK(cuEventQuery(graphs_event));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    ASK(cuEventRecord(graphs_event, graphs_side));
    ASK(cuEventSynchronize(graphs_event));
    ASK(cuEventRecordWithFlags(graphs_event, graphs_side, CU_EVENT_RECORD_EXTERNAL));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, CU_EVENT_WAIT_EXTERNAL));
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    ASK(cuEventRecordWithFlags(graphs_event, graphs_stream, CU_EVENT_RECORD_EXTERNAL));
    ASK(cuStreamWaitEvent(graphs_stream, graphs_recorded, CU_EVENT_WAIT_EXTERNAL));
    ASK(cuEventRecordWithFlags(graphs_event, graphs_stream, 2));
    ASK(cuStreamWaitEvent(graphs_stream, graphs_recorded, 2));
    graphs_end(graphs_stream);
}

// Each in a capture of its own.
#define IN_CAPTURE(mode, ...)                         \
    do {                                              \
        graphs_begin(CU_STREAM_CAPTURE_MODE_##mode);  \
        ASK_AS(#mode ": " #__VA_ARGS__, __VA_ARGS__); \
        graphs_end(graphs_stream);                    \
    } while (0)

static void group_capture_unsafe(void)
{
    CUdeviceptr p = 0, q;
    void *host;
    size_t pitch;
    CUmodule module;
    CUstream fresh;
    CUevent made;
    unsigned v = 1;
    graphs_start();
    q = answers_alloc(64);
    NEED(cuMemHostAlloc(&host, 64, 0));
    IN_CAPTURE(GLOBAL, cuMemAlloc_v2(&p, 64));
    IN_CAPTURE(GLOBAL, cuMemAllocPitch_v2(&p, &pitch, 64, 4, 4));
    IN_CAPTURE(GLOBAL, cuMemAllocManaged(&p, 64, CU_MEM_ATTACH_GLOBAL));
    IN_CAPTURE(GLOBAL, cuMemFree_v2(q));
    IN_CAPTURE(GLOBAL, cuMemHostRegister_v2(pageable, 4096, 0));
    IN_CAPTURE(GLOBAL, cuMemFreeHost(host));
    IN_CAPTURE(GLOBAL, cuMemHostAlloc(&host, 64, 0));
    IN_CAPTURE(GLOBAL, cuMemAllocAsync(&p, 64, graphs_side));
    IN_CAPTURE(GLOBAL, cuMemcpyHtoD_v2(small, pageable, 4));
    IN_CAPTURE(GLOBAL, cuMemcpyHtoDAsync_v2(small, pageable, 4, graphs_side));
    IN_CAPTURE(GLOBAL, cuMemcpyHtoDAsync_v2(small, pageable, 4, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemsetD8_v2(small, 0, 4));
    IN_CAPTURE(GLOBAL, cuEventQuery(graphs_recorded));
    IN_CAPTURE(GLOBAL, cuEventSynchronize(graphs_recorded));
    IN_CAPTURE(GLOBAL, cuEventCreate(&made, 0));
    IN_CAPTURE(GLOBAL, cuStreamQuery(graphs_side));
    IN_CAPTURE(GLOBAL, cuStreamSynchronize(graphs_side));
    IN_CAPTURE(GLOBAL, cuStreamCreate(&fresh, CU_STREAM_NON_BLOCKING));
    IN_CAPTURE(GLOBAL, cuCtxSynchronize());
    IN_CAPTURE(GLOBAL, cuModuleLoadData(&module, graphs_text));
    IN_CAPTURE(GLOBAL, cuLaunchKernel(graphs_empty, 1, 1, 1, 1, 1, 1, 0, graphs_side, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuLaunchKernel(graphs_empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuLaunchKernel(graphs_empty, 0, 1, 1, 1, 1, 1, 0, graphs_stream, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuLaunchHostFunc(graphs_stream, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuMemsetD8Async(small, 0, 101, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemsetD8Async(small, 0, 0, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemFreeAsync(small, graphs_stream));
    IN_CAPTURE(GLOBAL, cuStreamWriteValue32_v2(graphs_stream, small, v, 0));
    IN_CAPTURE(RELAXED, cuMemAlloc_v2(&p, 64));
    IN_CAPTURE(RELAXED, cuStreamQuery(graphs_stream));
    IN_CAPTURE(RELAXED, cuStreamSynchronize(graphs_stream));
    IN_CAPTURE(RELAXED, cuCtxSynchronize());
}

// How general the answers above are: the same with other addresses, streams and parameters.
static void group_capture_more(void)
{
    CUdeviceptr p = 0, freed = 0;
    float ms;
    graphs_start();
    NEED(cuMemAllocAsync(&p, 64, graphs_side));
    NEED(cuMemAllocAsync(&freed, 64, graphs_side));
    NEED(cuStreamSynchronize(graphs_side));
    IN_CAPTURE(GLOBAL, cuMemFreeAsync(freed, graphs_side));
    IN_CAPTURE(GLOBAL, cuMemHostUnregister(pageable));
    IN_CAPTURE(GLOBAL, cuEventElapsedTime_v2(&ms, graphs_recorded, graphs_recorded));
    IN_CAPTURE(GLOBAL, cuStreamQuery(NULL));
    IN_CAPTURE(GLOBAL, cuMemsetD8Async(0x1000, 0, 1, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemsetD8Async(small, 0, 4 * MIB, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemcpyDtoDAsync_v2(small, large, 101, graphs_stream));
    IN_CAPTURE(GLOBAL, cuMemcpyDtoDAsync_v2(small, 0x1000, 4, graphs_stream));
    IN_CAPTURE(GLOBAL, cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, graphs_stream, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuLaunchKernel(graphs_store, 1, 1, 1, 1, 1, 1, 0, graphs_stream, NULL, NULL));
    IN_CAPTURE(GLOBAL, cuMemAllocAsync(NULL, 64, graphs_stream));
    // A captured event that is queried once, in each way.
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuEventQuery(graphs_event));
    graphs_end(graphs_stream);
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuEventSynchronize(graphs_event));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    ASK(cuStreamWaitEvent(graphs_stream, graphs_event, 0));
    graphs_end(graphs_stream);
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(graphs_event, graphs_stream));
    ASK(cuEventElapsedTime_v2(&ms, graphs_event, graphs_recorded));
    graphs_end(graphs_stream);
    // And one whose capture ended well.
    graphs_begin(CU_STREAM_CAPTURE_MODE_RELAXED);
    NEED(cuEventRecord(graphs_event, graphs_stream));
    graphs_end(graphs_stream);
    ASK(cuEventQuery(graphs_event));
    ASK(cuEventSynchronize(graphs_event));
    ASK(cuStreamWaitEvent(graphs_side, graphs_event, 0));
    IN_CAPTURE(RELAXED, cuStreamWaitEvent(graphs_stream, graphs_event, 0));
}

static void group_capture_legacy(void)
{
    CUstreamCaptureStatus status = 77;
    CUstream plain = NULL;
    graphs_start();
    NEED(cuStreamCreate(&plain, 0));
    ASK(cuStreamBeginCapture_v2(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuStreamIsCapturing(NULL, &status));
    ASK(cuStreamQuery(NULL));
    graphs_end(plain);
    ASK(cuStreamBeginCapture_v2(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuMemcpyHtoD_v2(small, pageable, 4));
    graphs_end(plain);
    ASK(cuStreamBeginCapture_v2(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuLaunchKernel(graphs_empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    graphs_end(plain);
    ASK(cuStreamBeginCapture_v2(plain, CU_STREAM_CAPTURE_MODE_RELAXED));
    ASK(cuEventRecord(graphs_event, plain));
    ASK(cuStreamWaitEvent(NULL, graphs_event, 0));
    graphs_end(plain);
}

static void group_graph_edges(void)
{
    CUgraph other, clone;
    CUgraphNode n[3], many[8], x;
    CUgraphExec e;
    size_t count = 77;
    graphs_start();
    ASK(cuGraphCreate(NULL, 0));
    ASK(cuGraphCreate(&graphs_result, 1));
    ASK(cuGraphCreate(&graphs_result, 0));
    NEED(cuGraphCreate(&other, 0));
    NEED(cuGraphAddEmptyNode(&n[0], graphs_result, NULL, 0));
    NEED(cuGraphAddEmptyNode(&n[1], graphs_result, n, 1));
    NEED(cuGraphAddEmptyNode(&n[2], graphs_result, n, 2));
    CUgraphNode twice[] = {n[0], n[0]};
    ASK(cuGraphAddEmptyNode(&x, graphs_result, twice, 2));
    ASK(cuGraphAddEmptyNode(&x, other, n, 1));
    ASK(cuGraphAddEmptyNode(&x, graphs_result, NULL, 1));
    ASK(cuGraphAddEmptyNode(NULL, graphs_result, NULL, 0));
    ASK(cuGraphGetNodes(graphs_result, NULL, NULL));
    ASK(cuGraphGetNodes(graphs_result, NULL, &count));
    SHOW(count);
    count = 8;
    ASK(cuGraphGetNodes(graphs_result, many, &count));
    SHOW(count);
    count = 1;
    ASK(cuGraphGetNodes(graphs_result, many, &count));
    SHOW(count);
    ASK(cuGraphGetEdges(graphs_result, NULL, NULL, &count));
    SHOW(count);
    ASK(cuGraphAddDependencies(graphs_result, &n[0], &n[1], 1));
    ASK(cuGraphAddDependencies(graphs_result, &n[0], &n[0], 1));
    ASK(cuGraphRemoveDependencies(graphs_result, &n[0], &n[2], 1));
    ASK(cuGraphRemoveDependencies(graphs_result, &n[0], &n[2], 1));
    ASK(cuGraphAddDependencies(graphs_result, &n[2], &n[0], 1));
    ASK(cuGraphInstantiateWithFlags(&e, graphs_result, 0));
    ASK(cuGraphClone(&clone, graphs_result));
    ASK(cuGraphNodeFindInClone(&x, n[1], clone));
    ASK(cuGraphNodeFindInClone(&x, n[1], other));
    ASK(cuGraphDestroyNode(n[1]));
    ASK(cuGraphInstantiateWithFlags(&e, other, 64));
    ASK(cuGraphInstantiateWithFlags(&e, other, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
    ASK(cuGraphInstantiateWithFlags(&e, other, 0));
    ASK(cuGraphLaunch(e, graphs_stream));
    ASK(cuGraphDestroy(graphs_result));
}

static void group_graph_params(void)
{
    CUgraphNode n, m;
    CUgraphExec e;
    unsigned v = 5, enabled = 7;
    void *params[] = {&small, &v};
    CUDA_KERNEL_NODE_PARAMS k = {graphs_store, 1, 1, 1, 1, 1, 1, 0, params, NULL, NULL, NULL}, got;
    graphs_start();
    k.func = graphs_store;
    NEED(cuGraphCreate(&graphs_result, 0));
    ASK(cuGraphAddKernelNode_v2(&n, graphs_result, NULL, 0, &k));
    ASK(cuGraphKernelNodeGetParams_v2(n, &got));
    SHOW(got.func == graphs_store);
    SHOW(got.kern != NULL);
    SHOW(got.ctx == context);
    SHOW(got.extra != NULL);
    SHOW(*(unsigned *)got.kernelParams[1]);
    k.blockDimX = 0;
    ASK(cuGraphAddKernelNode_v2(&m, graphs_result, NULL, 0, &k));
    k.blockDimX = 2000;
    ASK(cuGraphKernelNodeSetParams_v2(n, &k));
    k.blockDimX = 1;
    k.kernelParams = NULL;
    ASK(cuGraphAddKernelNode_v2(&m, graphs_result, NULL, 0, &k));
    k.kernelParams = params;
    CUDA_MEMSET_NODE_PARAMS fill = {small, 0, 1, 4, 25, 1};
    ASK(cuGraphAddMemsetNode(&m, graphs_result, NULL, 0, &fill, context));
    ASK(cuGraphKernelNodeGetParams_v2(m, &got));
    fill.width = 26;
    ASK(cuGraphMemsetNodeSetParams(m, &fill));
    fill.width = 0;
    ASK(cuGraphMemsetNodeSetParams(m, &fill));
    fill.width = 25;
    fill.elementSize = 3;
    ASK(cuGraphMemsetNodeSetParams(m, &fill));
    fill.elementSize = 4;
    ASK(cuGraphInstantiateWithFlags(&e, graphs_result, 0));
    fill.width = 10;
    ASK(cuGraphExecMemsetNodeSetParams(e, m, &fill, context));
    fill.pitch = 40;
    fill.height = 2;
    ASK(cuGraphExecMemsetNodeSetParams(e, m, &fill, context));
    ASK(cuGraphExecKernelNodeSetParams_v2(e, n, &k));
    ASK(cuGraphExecKernelNodeSetParams_v2(e, m, &k));
    ASK(cuGraphNodeSetEnabled(e, n, 0));
    ASK(cuGraphNodeGetEnabled(e, n, &enabled));
    SHOW(enabled);
    ASK(cuGraphAddHostNode(&m, graphs_result, NULL, 0, &(CUDA_HOST_NODE_PARAMS){NULL, NULL}));
    ASK(cuGraphAddEventRecordNode(&m, graphs_result, NULL, 0, graphs_event));
    ASK(cuGraphAddMemFreeNode(&m, graphs_result, NULL, 0, small));
}

static CUgraph graphs_chain(unsigned nodes, bool memory_too)
{
    CUgraph g = NULL;
    CUgraphNode last = NULL;
    NEED(cuGraphCreate(&g, 0));
    for (unsigned i = 0; i < nodes; i++) {
        CUDA_KERNEL_NODE_PARAMS k = {graphs_empty, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL};
        if (memory_too && i + 1 == nodes)
            NEED(cuGraphAddEmptyNode(&last, g, &last, i ? 1 : 0));
        else
            NEED(cuGraphAddKernelNode_v2(&last, g, &last, i ? 1 : 0, &k));
    }
    return g;
}

static void group_graph_updates(void)
{
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info = {0};
    graphs_start();
    NEED(cuGraphInstantiateWithFlags(&e, graphs_chain(3, false), 0));
    ASK(cuGraphExecUpdate_v2(e, graphs_chain(3, false), &info));
    SHOW(info.result);
    ASK(cuGraphExecUpdate_v2(e, graphs_chain(4, false), &info));
    SHOW(info.result);
    SHOW(info.errorNode != NULL);
    ASK(cuGraphExecUpdate_v2(e, graphs_chain(3, true), &info));
    SHOW(info.result);
    SHOW(info.errorNode != NULL);
    ASK(cuGraphExecUpdate_v2(e, graphs_chain(3, true), NULL));
}

static void group_graph_memory(void)
{
    CUgraph clone, frees;
    CUgraphNode n, m;
    CUgraphExec e, f, again;
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = 64};
    p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.poolProps.location = this_device;
    graphs_start();
    NEED(cuGraphCreate(&graphs_result, 0));
    NEED(cuGraphCreate(&frees, 0));
    p.bytesize = 0;
    ASK(cuGraphAddMemAllocNode(&n, graphs_result, NULL, 0, &p));
    p.bytesize = 64;
    ASK(cuGraphAddMemAllocNode(&n, graphs_result, NULL, 0, &p));
    CUDA_MEMSET_NODE_PARAMS fill = {p.dptr, 0, 1, 4, 16, 1};
    ASK(cuGraphAddMemsetNode(&m, graphs_result, &n, 1, &fill, context));
    ASK(cuGraphClone(&clone, graphs_result));
    ASK(cuGraphDestroyNode(m));
    ASK(cuGraphRemoveDependencies(graphs_result, &n, &m, 1));
    ASK(cuGraphAddChildGraphNode(&m, frees, NULL, 0, graphs_result));
    ASK(cuGraphAddMemFreeNode(&n, frees, NULL, 0, p.dptr));
    ASK(cuGraphAddMemFreeNode(&n, frees, NULL, 0, p.dptr));
    ASK(cuGraphInstantiateWithFlags(&e, graphs_result, 0));
    ASK(cuGraphInstantiateWithFlags(&again, graphs_result, 0));
    ASK(cuGraphInstantiateWithFlags(&f, frees, 0));
    ASK(cuMemFreeAsync(p.dptr, graphs_stream));
    ASK(cuMemsetD8_v2(p.dptr, 0, 1));
    ASK(cuGraphLaunch(e, graphs_stream));
    ASK(cuGraphLaunch(e, graphs_stream));
    ASK(cuMemsetD8Async(p.dptr, 0, 1, graphs_stream));
    ASK(cuMemFreeAsync(p.dptr, graphs_stream));
    ASK(cuGraphLaunch(e, graphs_stream));
    ASK(cuGraphLaunch(f, graphs_stream));
    ASK(cuGraphLaunch(f, graphs_stream));
    ASK(cuStreamSynchronize(graphs_stream));
    ASK(cuMemFree_v2(p.dptr));
}

static void group_user_objects(void)
{
    CUuserObject o;
    int destroyed = 0;
    graphs_start();
    NEED(cuGraphCreate(&graphs_result, 0));
    ASK(cuUserObjectCreate(&o, &destroyed, graphs_call, 1, 0));
    ASK(cuUserObjectCreate(&o, &destroyed, graphs_call, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASK(cuUserObjectCreate(&o, &destroyed, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASK(cuUserObjectCreate(&o, &destroyed, graphs_call, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    ASK(cuUserObjectRetain(o, 0));
    ASK(cuGraphRetainUserObject(graphs_result, o, 0, 0));
    ASK(cuGraphRetainUserObject(graphs_result, o, 1, 2));
    ASK(cuGraphRetainUserObject(graphs_result, o, 1, 0));
    ASK(cuGraphRetainUserObject(graphs_result, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    ASK(cuGraphReleaseUserObject(graphs_result, o, 3));
    ASK(cuGraphReleaseUserObject(graphs_result, o, 1));
    ASK(cuUserObjectRelease(o, 1));
    SHOW(destroyed);
}

#endif
