// SPDX-License-Identifier: MIT
#include "cpu/graph_testing.h"

#include <pthread.h>

#include "base/mem.h"

// --- nodes -------------------------------------------------------------------------------------------------

static void count_call(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static CUDA_MEMCPY3D copy_to_host(void *to, CUdeviceptr from, size_t size)
{
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = to,
                           .WidthInBytes = size,
                           .Height = 1,
                           .Depth = 1};
}

static void good_chain(void **state)
{
    uint32_t result = 0;
    atomic_int calls = 0;
    CUgraph g = new_graph();
    CUgraphNode clear, last, copy, tell;
    CUDA_MEMSET_NODE_PARAMS fill = {test_words, 0, 0, 4, 4, 1};
    CUDA_MEMCPY3D c = copy_to_host(&result, test_words, 4);
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls};
    OK(cuGraphAddMemsetNode(&clear, g, NULL, 0, &fill, test_ctx));
    last = clear;
    for (unsigned v = 1; v < 5; v++)
        last = add_step(g, last, test_words, v);
    OK(cuGraphAddMemcpyNode(&copy, g, &last, 1, &c, test_ctx));
    OK(cuGraphAddHostNode(&tell, g, &copy, 1, &host));
    CUgraphExec e = instantiate(g);
    OK(cuGraphUpload(e, NULL));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(result, 1234);
    assert_int_equal(calls, 3);
    // Pending launches survive the destruction of both.
    CUstream s = new_stream();
    OK(cuGraphLaunch(e, s));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamSynchronize(s));
    assert_int_equal(calls, 4);
    OK(cuStreamDestroy_v2(s));
    BAD(cuGraphLaunch(e, NULL));
    BAD(cuGraphDestroy(g));
    BAD(cuGraphExecDestroy(e));
}

// Two branches depend on each other's work.
static void good_branches(void **state)
{
    CUdeviceptr flags[2] = {test_words, test_words + 4};
    CUgraph g = new_graph();
    for (int i = 0; i < 2; i++) {
        CUgraphNode a, b;
        void *set[] = {&flags[i]}, *wait[] = {&flags[1 - i]};
        CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_raise, set), w = kernel_of(test_spin, wait);
        OK(cuGraphAddKernelNode_v2(&a, g, NULL, 0, &k));
        OK(cuGraphAddKernelNode_v2(&b, g, &a, 1, &w));
    }
    run_graph(g);
    assert_int_equal(whole_read(flags[0]) + whole_read(flags[1]), 2);
    OK(cuGraphDestroy(g));
}

// A launch is ordered with work before and after it in the stream, and with the legacy stream.
static void good_in_stream(void **state)
{
    CUstream s;
    CUgraph g = new_graph(), none = new_graph();
    add_step(g, add_step(g, NULL, test_words, 2), test_words, 3);
    CUgraphExec e = instantiate(g), empty = instantiate(none);
    OK(cuStreamCreate(&s, 0));
    launch_step(s, test_words, 1);
    OK(cuGraphLaunch(e, s));
    OK(cuGraphLaunch(empty, s));
    launch_step(s, test_words, 4);
    launch_step(NULL, test_words, 5);
    OK(cuGraphLaunch(e, NULL));
    launch_step(s, test_words, 6);
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(test_words), 12345236);
    // Launches of one executable run one after the other, whatever their streams.
    CUstream t[4];
    put(test_words, 0);
    for (int i = 0; i < 4; i++) {
        t[i] = new_stream();
        OK(cuGraphLaunch(e, t[i]));
    }
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(test_words), 23232323);
    for (int i = 0; i < 4; i++)
        OK(cuStreamDestroy_v2(t[i]));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphExecDestroy(empty));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(none));
    OK(cuStreamDestroy_v2(s));
}

static unsigned seed = 1;

static unsigned dice(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

enum { NODES = 60 };

static CUgraphNode add_stamp(CUgraph g, const CUgraphNode *after, size_t n, unsigned index)
{
    CUgraphNode node;
    CUdeviceptr p = test_words + 4 * (1 + index), clock = test_words;
    void *params[] = {&p, &clock};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_stamp, params);
    OK(cuGraphAddKernelNode_v2(&node, g, after, n, &k));
    return node;
}

// Random graphs, with some of their nodes in child graphs: every node runs after its dependencies.
static void good_random(void **state)
{
    static uint32_t at[NODES + 1];
    for (int round = 0; round < 12; round++) {
        CUgraph g = new_graph();
        CUgraphNode nodes[NODES], after[NODES];
        static bool edge[NODES][NODES];
        memset(edge, 0, sizeof edge);
        OK(cuMemsetD8_v2(test_words, 0, sizeof at));
        for (unsigned i = 0; i < NODES; i++) {
            size_t n = 0;
            for (unsigned j = 0; j < i; j++) {
                if (dice(i) < 2) {
                    edge[j][i] = true;
                    after[n++] = nodes[j];
                }
            }
            if (dice(4)) {
                nodes[i] = add_stamp(g, after, n, i);
            } else {
                CUgraph child = new_graph();
                CUgraphNode empty;
                OK(cuGraphAddEmptyNode(&empty, child, NULL, 0));
                add_stamp(child, &empty, 1, i);
                OK(cuGraphAddChildGraphNode(&nodes[i], g, after, n, child));
                OK(cuGraphDestroy(child));
            }
        }
        run_graph(g);
        OK(cuMemcpyDtoH_v2(at, test_words, sizeof at));
        assert_int_equal(at[0], NODES);
        for (unsigned i = 0; i < NODES; i++) {
            for (unsigned j = 0; j < i; j++)
                assert_true(!edge[j][i] || at[1 + j] < at[1 + i]);
        }
        OK(cuGraphDestroy(g));
    }
}

static void good_events(void **state)
{
    CUevent e;
    CUstream s = new_stream(), t = new_stream();
    OK(cuEventCreate(&e, 0));
    CUgraph records = new_graph(), waits = new_graph();
    CUgraphNode n;
    CUdeviceptr go = test_words + 4;
    void *params[] = {&go};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_spin, params);
    OK(cuGraphAddKernelNode_v2(&n, records, NULL, 0, &k));
    n = add_step(records, n, test_words, 1);
    OK(cuGraphAddEventRecordNode(&n, records, &n, 1, e));
    OK(cuGraphAddEventWaitNode(&n, waits, NULL, 0, e));
    add_step(waits, n, test_words, 2);
    CUgraphExec first = instantiate(records), second = instantiate(waits);
    OK(cuGraphLaunch(first, s));
    OK(cuGraphLaunch(second, t));
    IS(CUDA_ERROR_NOT_READY, cuEventQuery(e));
    let_go(go);
    OK(cuEventSynchronize(e));
    OK(cuCtxSynchronize());
    assert_int_equal(whole_read(test_words), 12);
    OK(cuEventDestroy_v2(e));
    IS(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(first, s));
    OK(cuGraphExecDestroy(first));
    OK(cuGraphExecDestroy(second));
    OK(cuGraphDestroy(records));
    OK(cuGraphDestroy(waits));
    OK(cuStreamDestroy_v2(s));
    OK(cuStreamDestroy_v2(t));
}

static void good_memory_words(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n;
    CUstreamBatchMemOpParams ops[2] = {
        {.waitValue =
             {CU_STREAM_MEM_OP_WAIT_VALUE_32, test_words + 4, {.value = 7}, CU_STREAM_WAIT_VALUE_EQ, 0}},
        {.writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, test_words, {.value = 5}, 0, 0}}};
    CUDA_BATCH_MEM_OP_NODE_PARAMS p = {test_ctx, 2, ops, 0}, got;
    OK(cuGraphAddBatchMemOpNode(&n, g, NULL, 0, &p));
    OK(cuGraphBatchMemOpNodeGetParams(n, &got));
    assert_int_equal(got.count, 2);
    assert_int_equal(got.paramArray[1].writeValue.value, 5);
    put(test_words + 4, 7);
    run_graph(g);
    assert_int_equal(whole_read(test_words), 5);
    OK(cuGraphDestroy(g));
}

// --- memory ------------------------------------------------------------------------------------------------

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_of(size_t size)
{
    CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = size};
    p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    return p;
}

static cuuint64_t graph_memory_now(void)
{
    cuuint64_t used;
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used));
    return used;
}

static void good_memory_inside(void **state)
{
    uint32_t result = 0;
    CUgraph g = new_graph(), clone;
    CUgraphNode a, n, f;
    CUgraphExec second;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100), got;
    OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
    assert_true(p.dptr);
    OK(cuGraphMemAllocNodeGetParams(a, &got));
    assert_true(got.dptr == p.dptr && got.bytesize == 100);
    // Before a launch there is no allocation, but its bounds are known.
    CUDA_MEMSET_NODE_PARAMS fill = {p.dptr, 0, 7, 4, 25, 1};
    CUDA_MEMCPY3D c = copy_to_host(&result, p.dptr + 96, 4);
    OK(cuGraphAddMemsetNode(&n, g, &a, 1, &fill, test_ctx));
    OK(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, test_ctx));
    fill.width = 26;
    BAD(cuGraphAddMemsetNode(&f, g, &a, 1, &fill, test_ctx));
    OK(cuGraphAddMemFreeNode(&f, g, &n, 1, p.dptr));
    BAD(cuGraphAddMemFreeNode(&f, g, &n, 1, p.dptr));
    BAD(cuGraphAddMemFreeNode(&f, g, &n, 1, p.dptr + 4));
    BAD(cuGraphAddMemFreeNode(&f, g, &n, 1, test_words));
    CUgraphExec e = instantiate(g);
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphInstantiateWithFlags(&second, g, 0));
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphClone(&clone, g));
    IS(CUDA_ERROR_NOT_SUPPORTED, cuGraphDestroyNode(n));
    for (int i = 0; i < 3; i++)
        OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(result, 7);
    BAD(cuMemcpyDtoH_v2(&result, p.dptr, 4));
    BAD(cuMemFree_v2(p.dptr));
    assert_int_equal(graph_memory_now(), 0);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphInstantiateWithFlags(&second, g, 0));
    OK(cuGraphExecDestroy(second));
    OK(cuGraphDestroy(g));
}

// A free is added to a graph after it was instantiated. The older executable does not free, so its allocation
// is the application's to free; a newer one frees.
static void good_memory_freed_by_a_newer_graph(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode a, f;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100);
    OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
    CUgraphExec e = instantiate(g);
    OK(cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr));
    OK(cuGraphLaunch(e, NULL));
    OK(cuCtxSynchronize());
    assert_int_equal(graph_memory_now(), 100);
    OK(cuMemsetD8_v2(p.dptr, 1, 100));
    BAD(cuGraphLaunch(e, NULL));
    OK(cuMemFree_v2(p.dptr));
    BAD(cuMemFree_v2(p.dptr));
    OK(cuGraphLaunch(e, NULL));
    OK(cuGraphExecDestroy(e));
    e = instantiate(g);
    BAD(cuGraphLaunch(e, NULL));
    OK(cuMemFree_v2(p.dptr));
    CUgraphExecUpdateResultInfo info;
    for (int i = 0; i < 3; i++) {
        run_exec(e);
        assert_int_equal(graph_memory_now(), 0);
        BAD(cuMemFree_v2(p.dptr));
        OK(cuGraphExecUpdate_v2(e, g, &info));
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    CUdeviceptr other;
    OK(cuMemAlloc_v2(&other, 100));
    BAD(cuMemFree_v2(p.dptr));
    OK(cuMemFree_v2(other));
}

// An allocation that a launch frees automatically is freed once even if the graph also frees it; it stays
// live if the launch fails.
static void good_memory_auto_freed(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode a, f;
    CUgraphExec e;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100);
    const unsigned flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    OK(cuGraphAddMemAllocNode(&a, g, NULL, 0, &p));
    OK(cuGraphInstantiateWithFlags(&e, g, flags));
    run_exec(e);
    bool failed = false;
    for (long n = 0; n < 20; n++) {
        mem_fail_after(n);
        failed |= cuGraphLaunch(e, NULL) == CUDA_ERROR_OUT_OF_MEMORY;
        mem_fail_after(-1);
        OK(cuCtxSynchronize());
        assert_int_equal(graph_memory_now(), 100);
    }
    assert_true(failed);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphAddMemFreeNode(&f, g, &a, 1, p.dptr));
    OK(cuGraphInstantiateWithFlags(&e, g, flags));
    mem_fail_after(0);
    IS(CUDA_ERROR_OUT_OF_MEMORY, cuGraphLaunch(e, NULL));
    mem_fail_after(-1);
    assert_int_equal(graph_memory_now(), 100);
    OK(cuMemsetD8_v2(p.dptr, 1, 100));
    for (int i = 0; i < 3; i++) {
        run_exec(e);
        assert_int_equal(graph_memory_now(), 0);
        BAD(cuMemFree_v2(p.dptr));
    }
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

static CUgraphNode move_child(CUgraph g, CUgraph child)
{
    CUgraphNode n;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                           .graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
    OK(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    return n;
}

// A graph and its child free the same memory: the launch fails and nothing is freed.
static void bad_memory_freed_twice(void **state)
{
    CUgraph g = new_graph(), twice = new_graph(), child = new_graph();
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100);
    OK(cuGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    CUgraphExec make = instantiate(g), e;
    OK(cuGraphAddMemFreeNode(&n, twice, NULL, 0, p.dptr));
    OK(cuGraphAddMemFreeNode(&n, child, NULL, 0, p.dptr));
    move_child(twice, child);
    e = instantiate(twice);
    for (int i = 0; i < 2; i++) {
        run_exec(make);
        BAD(cuGraphLaunch(e, NULL));
        OK(cuCtxSynchronize());
        assert_int_equal(graph_memory_now(), 100);
        OK(cuMemFree_v2(p.dptr));
        BAD(cuGraphLaunch(e, NULL));
    }
    OK(cuGraphExecDestroy(make));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(twice));
    OK(cuGraphDestroy(g));
    assert_int_equal(graph_memory_now(), 0);
}

// A body of a conditional node cannot free memory.
static void bad_memory_in_body(void **state)
{
    CUgraph g = new_graph(), child = new_graph();
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100);
    CUgraphNodeParams choice = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                                .conditional = {.type = CU_GRAPH_COND_TYPE_IF, .size = 1}};
    OK(cuGraphConditionalHandleCreate(&choice.conditional.handle, g, NULL, 1, 1));
    OK(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &choice));
    OK(cuGraphAddMemAllocNode(&n, child, NULL, 0, &p));
    CUgraphNodeParams move = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                              .graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
    BAD(cuGraphAddNode_v2(&n, choice.conditional.phGraph_out[0], NULL, NULL, 0, &move));
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(g));
}

// A launch and a call free the same memory at the same time: exactly one succeeds.
static struct {
    CUdeviceptr p;
    CUstream stream;
    atomic_uint begun, ended;  // rounds
    CUresult result;
} rival;

enum { RACES = 400 };

static void *free_beside(void *arg)
{
    OK(cuCtxSetCurrent(test_ctx));
    for (unsigned i = 1; i <= RACES; i++) {
        while (atomic_load(&rival.begun) < i)
            continue;
        for (volatile unsigned k = 0; k < i * 97 % 20000; k++)
            continue;
        rival.result = cuMemFreeAsync(rival.p, rival.stream);
        atomic_store(&rival.ended, i);
    }
    return NULL;
}

static void good_memory_freed_once(void **state)
{
    CUgraph g = new_graph(), frees = new_graph();
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(100);
    pthread_t t;
    OK(cuGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    for (int i = 0; i < 200; i++)
        OK(cuGraphAddEmptyNode(&n, frees, NULL, 0));
    OK(cuGraphAddMemFreeNode(&n, frees, NULL, 0, p.dptr));
    CUgraphExec make = instantiate(g), e = instantiate(frees);
    rival.p = p.dptr;
    rival.stream = new_stream();
    assert_int_equal(pthread_create(&t, NULL, free_beside, NULL), 0);
    for (unsigned i = 1; i <= RACES; i++) {
        run_exec(make);
        atomic_store(&rival.begun, i);
        CUresult r = cuGraphLaunch(e, NULL);
        while (atomic_load(&rival.ended) < i)
            continue;
        assert_true((r == CUDA_SUCCESS) + (rival.result == CUDA_SUCCESS) == 1);
        assert_true(r + rival.result == CUDA_ERROR_INVALID_VALUE);
        OK(cuCtxSynchronize());
        assert_int_equal(graph_memory_now(), 0);
    }
    pthread_join(t, NULL);
    OK(cuGraphExecDestroy(make));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(frees));
    OK(cuGraphDestroy(g));
}

// A stream-ordered free comes after the launch, however early it is called; a launch behind it allocates
// again.
static void good_memory_freed_later(void **state)
{
    uint32_t *got;
    CUstream s;
    OK(cuMemAllocHost_v2((void **)&got, 8));
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    CUgraph g = new_graph();
    CUgraphNode n;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(64);
    OK(cuGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    CUDA_MEMSET_NODE_PARAMS fill = {p.dptr, 0, 9, 4, 16, 1};
    OK(cuGraphAddMemsetNode(&n, g, &n, 1, &fill, test_ctx));
    CUgraphExec e = instantiate(g);
    OK(cuMemsetD32_v2(test_words, 0, 1));
    OK(cuStreamWaitValue32_v2(s, test_words, 1, CU_STREAM_WAIT_VALUE_EQ));
    for (int i = 0; i < 2; i++) {
        OK(cuGraphLaunch(e, s));
        OK(cuMemcpyDtoHAsync_v2(&got[i], p.dptr + 60, 4, s));
        OK(cuMemFreeAsync(p.dptr, s));
        BAD(cuMemFreeAsync(p.dptr, s));
    }
    OK(cuStreamWriteValue32_v2(NULL, test_words, 1, 0));
    OK(cuStreamSynchronize(s));
    assert_true(got[0] == 9 && got[1] == 9);
    assert_int_equal(graph_memory_now(), 0);
    OK(cuMemFreeHost(got));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy_v2(s));
}

// An allocation that outlives the launch is freed by a call, by another graph, or by the next launch.
static void good_memory_outside(void **state)
{
    CUgraph g = new_graph(), frees = new_graph();
    CUgraphNode n;
    CUgraphExec again;
    CUDA_MEM_ALLOC_NODE_PARAMS p = alloc_of(64);
    OK(cuGraphAddMemAllocNode(&n, g, NULL, 0, &p));
    CUDA_MEMSET_NODE_PARAMS fill = {p.dptr, 0, 9, 4, 16, 1};
    OK(cuGraphAddMemsetNode(&n, g, &n, 1, &fill, test_ctx));
    OK(cuGraphAddMemFreeNode(&n, frees, NULL, 0, p.dptr));
    CUgraphExec e = instantiate(g), f = instantiate(frees);
    BAD(cuGraphLaunch(f, NULL));
    BAD(cuMemFreeAsync(p.dptr, NULL));
    OK(cuGraphLaunch(e, NULL));
    assert_int_equal(whole_read(p.dptr + 60), 9);
    BAD(cuGraphLaunch(e, NULL));
    assert_int_equal(graph_memory_now(), 64);
    OK(cuMemFreeAsync(p.dptr, NULL));
    OK(cuCtxSynchronize());
    BAD(cuMemsetD8_v2(p.dptr, 0, 1));
    for (int i = 0; i < 3; i++) {
        OK(cuGraphLaunch(e, NULL));
        BAD(cuGraphLaunch(e, NULL));
        OK(cuGraphLaunch(f, NULL));
        BAD(cuGraphLaunch(f, NULL));
    }
    OK(cuGraphLaunch(e, NULL));
    OK(cuMemFree_v2(p.dptr));
    BAD(cuMemFree_v2(p.dptr));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphInstantiateWithFlags(&again, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    OK(cuGraphLaunch(again, NULL));
    OK(cuGraphLaunch(again, NULL));
    // It outlives the graphs, too.
    OK(cuGraphExecDestroy(again));
    OK(cuGraphExecDestroy(f));
    OK(cuGraphDestroy(frees));
    OK(cuGraphDestroy(g));
    assert_int_equal(whole_read(p.dptr), 9);
    OK(cuMemFree_v2(p.dptr));
    assert_int_equal(graph_memory_now(), 0);
    cuuint64_t value = 0;
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    assert_true(value >= 64);
    value = 0;
    OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
    OK(cuDeviceGraphMemTrim(0));
    OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
    assert_int_equal(value, 0);
}

// --- conditional nodes -------------------------------------------------------------------------------------

static CUgraphNode add_choice(CUgraph g, CUgraphNode after, CUgraphConditionalHandle h,
                              CUgraphConditionalNodeType type, unsigned size, CUgraph **bodies)
{
    CUgraphNode n;
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL,
                           .conditional = {.handle = h, .type = type, .size = size, .ctx = test_ctx}};
    OK(cuGraphAddNode_v2(&n, g, &after, NULL, after ? 1 : 0, &p));
    *bodies = p.conditional.phGraph_out;
    return n;
}

static CUgraphNode add_choose(CUgraph g, CUgraphConditionalHandle h, unsigned v)
{
    CUgraphNode n;
    void *params[] = {&h, &v};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_choose, params);
    OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    return n;
}

static void good_if_and_switch(void **state)
{
    for (unsigned v = 0; v < 4; v++) {
        CUgraph g = new_graph(), *bodies;
        CUgraphConditionalHandle h, k;
        OK(cuGraphConditionalHandleCreate(&h, g, test_ctx, 0, 0));
        OK(cuGraphConditionalHandleCreate(&k, g, test_ctx, v, CU_GRAPH_COND_ASSIGN_DEFAULT));
        CUgraphNode n = add_choice(g, add_choose(g, h, v), h, CU_GRAPH_COND_TYPE_IF, 2, &bodies);
        add_step(bodies[0], add_step(bodies[0], NULL, test_words, 1), test_words, 2);
        add_step(bodies[1], NULL, test_words, 3);
        n = add_step(g, n, test_words, 4);
        n = add_choice(g, n, k, CU_GRAPH_COND_TYPE_SWITCH, 3, &bodies);
        for (unsigned i = 0; i < 3; i++)
            add_step(bodies[i], NULL, test_words, 5 + i);
        add_step(g, n, test_words, 9);
        static const unsigned want[] = {3459, 12469, 12479, 1249};
        CUgraphExec e = instantiate(g);
        for (int i = 0; i < 2; i++) {
            put(test_words, 0);
            run_exec(e);
            assert_int_equal(whole_read(test_words), want[v]);
        }
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
    }
}

// A loop in a loop.
static void good_while(void **state)
{
    CUgraph g = new_graph(), *outer, *inner;
    CUgraphConditionalHandle h, k;
    CUgraphNode n;
    CUdeviceptr rounds = test_words + 4, turns = test_words + 8;
    OK(cuGraphConditionalHandleCreate(&h, g, test_ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    OK(cuGraphConditionalHandleCreate(&k, g, test_ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    add_choice(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1, &outer);
    CUDA_MEMSET_NODE_PARAMS again = {turns, 0, 5, 4, 1, 1};
    OK(cuGraphAddMemsetNode(&n, outer[0], NULL, 0, &again, test_ctx));
    unsigned one = 1;
    void *set[] = {&k, &one};
    CUDA_KERNEL_NODE_PARAMS p = kernel_of(test_choose, set);
    OK(cuGraphAddKernelNode_v2(&n, outer[0], &n, 1, &p));
    n = add_choice(outer[0], n, k, CU_GRAPH_COND_TYPE_WHILE, 1, &inner);
    void *count_inner[] = {&turns, &k}, *count_outer[] = {&rounds, &h};
    CUgraphNode m;
    CUdeviceptr total = test_words + 16, clock = test_words;
    void *stamp[] = {&total, &clock};
    p = kernel_of(test_stamp, stamp);
    OK(cuGraphAddKernelNode_v2(&m, inner[0], NULL, 0, &p));
    p = kernel_of(test_count, count_inner);
    OK(cuGraphAddKernelNode_v2(&m, inner[0], &m, 1, &p));
    p = kernel_of(test_count, count_outer);
    OK(cuGraphAddKernelNode_v2(&n, outer[0], &n, 1, &p));
    CUgraphExec e = instantiate(g);
    put(rounds, 20);
    CUstream s = new_stream();
    OK(cuGraphLaunch(e, s));
    OK(cuGraphExecDestroy(e));
    OK(cuStreamSynchronize(s));
    assert_int_equal(whole_read(clock), 100);
    assert_int_equal(whole_read(rounds), 0);
    // Nodes that a body cannot have.
    CUDA_HOST_NODE_PARAMS host = {count_call, NULL};
    BAD(cuGraphAddHostNode(&n, inner[0], NULL, 0, &host));
    BAD(cuGraphDestroy(inner[0]));
    CUgraphConditionalHandle unused;
    OK(cuGraphConditionalHandleCreate(&unused, g, test_ctx, 0, 0));
    CUDA_GRAPH_INSTANTIATE_PARAMS how = {.flags = 0};
    BAD(cuGraphInstantiateWithParams(&e, g, &how));
    assert_int_equal(how.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    OK(cuGraphDestroy(g));
    OK(cuStreamDestroy_v2(s));
}

// --- errors ------------------------------------------------------------------------------------------------

// A copy from freed memory puts the context into error, and the work behind it is dropped.
static void bad_freed_memory(void **state)
{
    uint32_t result = 77;
    atomic_int calls = 0;
    CUdeviceptr p;
    CUgraph g = new_graph();
    CUgraphNode n;
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls};
    OK(cuMemAlloc_v2(&p, 4096));
    CUDA_MEMCPY3D c = copy_to_host(&result, p, 4);
    OK(cuGraphAddMemcpyNode(&n, g, NULL, 0, &c, test_ctx));
    OK(cuGraphAddHostNode(&n, g, &n, 1, &host));
    CUgraphExec e = instantiate(g);
    OK(cuMemFree_v2(p));
    OK(cuGraphLaunch(e, NULL));
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
    IS(CUDA_ERROR_ILLEGAL_ADDRESS, cuGraphLaunch(e, NULL));
    assert_int_equal(result, 77);
    assert_int_equal(calls, 0);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

static void bad_module_gone(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n;
    add_step(g, NULL, test_words, 1);
    CUgraphExec e = instantiate(g);
    OK(cuModuleUnload(test_module));
    IS(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(e, NULL));
    void *params[] = {&test_words, &n};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_step, params);
    IS(CUDA_ERROR_INVALID_HANDLE, cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

// Destroying a context drops the work of a graph, but not the graph.
static void bad_context_gone(void **state)
{
    CUcontext other;
    CUgraph g = new_graph();
    OK(cuCtxCreate_v2(&other, 0, 0));
    CUdeviceptr p;
    CUgraphNode n;
    OK(cuMemAlloc_v2(&p, 16));
    CUDA_MEMSET_NODE_PARAMS fill = {p, 0, 1, 4, 4, 1};
    OK(cuGraphAddMemsetNode(&n, g, NULL, 0, &fill, other));
    CUgraphExec e = instantiate(g);
    OK(cuCtxDestroy_v2(other));
    IS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGraphLaunch(e, NULL));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
}

// Whichever allocation fails, the call returns an error and everything is as before.
static void bad_no_memory(void **state)
{
    CUgraph g = new_graph(), child = new_graph(), *bodies;
    CUgraphNode n, m;
    CUgraphConditionalHandle h;
    uint32_t result;
    atomic_int calls = 0;
    CUDA_HOST_NODE_PARAMS host = {count_call, &calls};
    CUDA_MEMCPY3D c = copy_to_host(&result, test_words, 4);
    OK(cuGraphAddHostNode(&n, child, NULL, 0, &host));
    add_step(child, NULL, test_words, 1);
    n = add_step(g, NULL, test_words, 1);
    OK(cuGraphAddChildGraphNode(&n, g, &n, 1, child));
    OK(cuGraphAddMemcpyNode(&m, g, &n, 1, &c, test_ctx));
    OK(cuGraphConditionalHandleCreate(&h, g, test_ctx, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    add_choice(g, m, h, CU_GRAPH_COND_TYPE_IF, 1, &bodies);
    add_step(bodies[0], NULL, test_words, 2);
    CUgraphExec e;
    long i;
    for (i = 0;; i++) {
        mem_fail_after(i);
        CUresult r = cuGraphInstantiateWithFlags(&e, g, 0);
        mem_fail_after(-1);
        if (!r)
            break;
        IS(CUDA_ERROR_OUT_OF_MEMORY, r);
    }
    assert_true(i > 20);
    for (i = 0;; i++) {
        mem_fail_after(i);
        CUresult r = cuGraphLaunch(e, NULL);
        mem_fail_after(-1);
        if (!r)
            break;
        IS(CUDA_ERROR_OUT_OF_MEMORY, r);
    }
    assert_true(i > 8);
    CUresult r = cuCtxSynchronize();
    assert_true(!r || r == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(child));
}

// --- threads -----------------------------------------------------------------------------------------------

static void *build_and_run(void *arg)
{
    CUdeviceptr p = test_words + 4 * (uintptr_t)arg;
    OK(cuCtxSetCurrent(test_ctx));
    CUstream s = new_stream();
    for (int i = 0; i < 20; i++) {
        CUgraph g = new_graph();
        CUgraphNode n = NULL;
        uint32_t zero = 0;
        for (unsigned v = 1; v < 6; v++)
            n = add_step(g, n, p, v);
        CUgraphExec e = instantiate(g);
        OK(cuMemcpyHtoDAsync_v2(p, &zero, 4, s));
        OK(cuGraphLaunch(e, s));
        OK(cuGraphExecDestroy(e));
        OK(cuGraphDestroy(g));
        uint32_t got = 0;
        OK(cuMemcpyDtoHAsync_v2(&got, p, 4, s));
        OK(cuStreamSynchronize(s));
        assert_int_equal(got, 12345);
    }
    OK(cuStreamDestroy_v2(s));
    return NULL;
}

static void good_threads(void **state)
{
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&t[i], NULL, build_and_run, (void *)(i * 32)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GRAPH_TEST(good_chain),
        GRAPH_TEST(good_branches),
        GRAPH_TEST(good_in_stream),
        GRAPH_TEST(good_random),
        GRAPH_TEST(good_events),
        GRAPH_TEST(good_memory_words),
        GRAPH_TEST(good_memory_inside),
        GRAPH_TEST(good_memory_freed_by_a_newer_graph),
        GRAPH_TEST(good_memory_outside),
        GRAPH_TEST(good_memory_freed_later),
        GRAPH_TEST(good_if_and_switch),
        GRAPH_TEST(good_while),
        GRAPH_TEST(bad_freed_memory),
        GRAPH_TEST(bad_module_gone),
        GRAPH_TEST(bad_context_gone),
        GRAPH_TEST(bad_no_memory),
        GRAPH_TEST(good_threads),
        GRAPH_TEST(good_memory_auto_freed),
        GRAPH_TEST(bad_memory_freed_twice),
        GRAPH_TEST(bad_memory_in_body),
        GRAPH_TEST(good_memory_freed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
