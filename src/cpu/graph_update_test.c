// SPDX-License-Identifier: MIT
// Graphs as data: nodes, edges, copies, parameters, updates, user objects, Graphviz output.
#include "cpu/graph_testing.h"

#include <unistd.h>

// --- nodes and edges ---------------------------------------------------------------------------------------

static void good_edges(void **state)
{
    CUgraph g = new_graph(), other = new_graph();
    CUgraphNode n[4], from[8], to[8], x;
    CUgraphEdgeData data[8];
    size_t count;
    for (int i = 0; i < 4; i++)
        OK(cuGraphAddEmptyNode(&n[i], g, n, (size_t)i));
    count = 8;
    OK(cuGraphGetEdges(g, NULL, NULL, &count));
    assert_int_equal(count, 6);
    count = 8;
    OK(cuGraphGetEdges_v2(g, from, to, data, &count));
    assert_int_equal(count, 6);
    assert_true(from[0] == n[0] && to[0] == n[1] && from[5] == n[2] && to[5] == n[3]);
    assert_null(from[6]);
    count = 2;
    OK(cuGraphGetEdges(g, from, to, &count));
    assert_int_equal(count, 2);
    count = 8;
    OK(cuGraphNodeGetDependentNodes_v2(n[1], to, data, &count));
    assert_true(count == 2 && to[0] == n[2] && to[1] == n[3]);
    OK(cuGraphRemoveDependencies(g, &n[0], &n[3], 1));
    BAD(cuGraphRemoveDependencies(g, &n[0], &n[3], 1));
    BAD(cuGraphAddDependencies(g, &n[0], &n[1], 1));
    BAD(cuGraphAddDependencies(g, &n[0], &n[0], 1));
    BAD(cuGraphAddDependencies(other, &n[0], &n[3], 1));
    BAD(cuGraphAddDependencies(g, NULL, &n[3], 1));
    OK(cuGraphAddDependencies_v2(g, &n[0], &n[3], NULL, 1));
    OK(cuGraphDestroyNode(n[1]));
    BAD(cuGraphDestroyNode(n[1]));
    count = 8;
    OK(cuGraphGetRootNodes(g, from, &count));
    assert_true(count == 1 && from[0] == n[0]);
    OK(cuGraphGetEdges(g, NULL, NULL, &count));
    assert_int_equal(count, 3);
    // A dependency must not occur twice, belong to another graph, or be NULL.
    CUgraphNode twice[] = {n[0], n[0]};
    BAD(cuGraphAddEmptyNode(&x, g, twice, 2));
    BAD(cuGraphAddEmptyNode(&x, other, n, 1));
    BAD(cuGraphAddEmptyNode(&x, g, NULL, 1));
    BAD(cuGraphAddEmptyNode(NULL, g, NULL, 0));
    BAD(cuGraphAddEmptyNode(&x, (CUgraph)n[0], NULL, 0));
    BAD(cuGraphGetNodes(g, NULL, NULL));
    BAD(cuGraphGetNodes(NULL, NULL, &count));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(other));
    BAD(cuGraphDestroyNode(n[0]));
}

static void good_programmatic_edges(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode a = add_step(g, NULL, test_words, 1), b = add_step(g, NULL, test_words, 2), to[2];
    CUgraphEdgeData data = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            0,
                            CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
                            {0}},
                    got, wrong = {.to_port = 3};
    size_t count = 1;
    BAD(cuGraphAddDependencies_v2(g, &a, &b, &wrong, 1));
    OK(cuGraphAddDependencies_v2(g, &a, &b, &data, 1));
    IS(CUDA_ERROR_LOSSY_QUERY, cuGraphNodeGetDependentNodes(a, to, &count));
    OK(cuGraphNodeGetDependentNodes_v2(a, to, &got, &count));
    assert_memory_equal(&got, &data, sizeof data);
    run_graph(g);
    assert_int_equal(whole_read(test_words), 12);
    OK(cuGraphDestroy(g));
}

static void bad_cycle(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n[3], bad = NULL;
    CUgraphExec e;
    char log[10] = "unchanged";
    for (int i = 0; i < 3; i++)
        OK(cuGraphAddEmptyNode(&n[i], g, i ? &n[i - 1] : NULL, i ? 1 : 0));
    OK(cuGraphAddDependencies(g, &n[2], &n[1], 1));
    BAD(cuGraphInstantiate_v2(&e, g, &bad, log, sizeof log));
    assert_true(bad == n[1] || bad == n[2]);
    assert_string_equal(log, "");
    CUDA_GRAPH_INSTANTIATE_PARAMS p = {.flags = 0};
    BAD(cuGraphInstantiateWithParams(&e, g, &p));
    assert_int_equal(p.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
    assert_true(p.hErrNode_out == n[1] || p.hErrNode_out == n[2]);
    OK(cuGraphDestroy(g));
}

static void good_clone(void **state)
{
    CUgraph g = new_graph(), clone, child = new_graph(), inside;
    CUgraphNode a = add_step(g, NULL, test_words, 1), b = add_step(g, a, test_words, 2), n, c;
    add_step(child, NULL, test_words, 3);
    OK(cuGraphAddChildGraphNode(&c, g, &b, 1, child));
    OK(cuGraphDestroy(child));
    OK(cuGraphClone(&clone, g));
    OK(cuGraphNodeFindInClone(&n, b, clone));
    BAD(cuGraphNodeFindInClone(&n, n, clone));
    BAD(cuGraphNodeFindInClone(&n, b, g));
    size_t count = 1;
    CUgraphNode before;
    OK(cuGraphNodeFindInClone(&n, b, clone));
    OK(cuGraphNodeGetDependencies(n, &before, &count));
    OK(cuGraphNodeFindInClone(&n, a, clone));
    assert_ptr_equal(before, n);
    OK(cuGraphDestroyNode(n));
    BAD(cuGraphNodeFindInClone(&n, a, clone));
    OK(cuGraphChildGraphNodeGetGraph(c, &inside));
    BAD(cuGraphDestroy(inside));
    add_step(inside, NULL, test_words + 4, 4);
    run_graph(g);
    assert_int_equal(whole_read(test_words), 123);
    assert_int_equal(whole_read(test_words + 4), 4);
    put(test_words, 0);
    OK(cuGraphDestroy(g));
    run_graph(clone);
    assert_int_equal(whole_read(test_words), 23);
    OK(cuGraphDestroy(clone));
}

static void good_moved_child(void **state)
{
    CUgraph g = new_graph(), child = new_graph();
    CUgraphNode n;
    CUgraphExec e;
    add_step(child, NULL, test_words, 5);
    CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
                           .graph = {child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}};
    OK(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    BAD(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    BAD(cuGraphDestroy(child));
    BAD(cuGraphInstantiateWithFlags(&e, child, 0));
    p.graph.graph = g;
    BAD(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p));
    BAD(cuGraphAddNode_v2(&n, child, NULL, NULL, 0, &p));
    run_graph(g);
    assert_int_equal(whole_read(test_words), 5);
    OK(cuGraphDestroy(g));
    BAD(cuGraphDestroy(child));
}

// --- parameters --------------------------------------------------------------------------------------------

static void good_kernel_params(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n = add_step(g, NULL, test_words, 7), m;
    CUDA_KERNEL_NODE_PARAMS k;
    CUDA_KERNEL_NODE_PARAMS_v1 old;
    OK(cuGraphKernelNodeGetParams_v2(n, &k));
    assert_true(k.func == test_step && k.gridDimX == 1 && k.ctx == test_ctx && !k.extra);
    assert_int_equal(*(uint32_t *)k.kernelParams[1], 7);
    assert_int_equal(*(CUdeviceptr *)k.kernelParams[0], test_words);
    // Parameters that were read can be set, in another node and in the same one.
    OK(cuGraphAddKernelNode_v2(&m, g, &n, 1, &k));
    OK(cuGraphKernelNodeGetParams(m, &old));
    *(uint32_t *)old.kernelParams[1] = 8;
    OK(cuGraphKernelNodeSetParams(m, &old));
    size_t size = 12;
    char bytes[12];
    uint32_t nine = 9;
    memcpy(bytes, &test_words, 8);
    memcpy(bytes + 8, &nine, 4);
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    k.kernelParams = NULL;
    k.extra = extra;
    OK(cuGraphAddKernelNode_v2(&m, g, &m, 1, &k));
    run_graph(g);
    assert_int_equal(whole_read(test_words), 789);
    k.extra = NULL;
    BAD(cuGraphAddKernelNode_v2(&m, g, NULL, 0, &k));
    k.extra = extra;
    k.blockDimX = 0;
    BAD(cuGraphKernelNodeSetParams_v2(m, &k));
    k.func = NULL;
    IS(CUDA_ERROR_INVALID_HANDLE, cuGraphKernelNodeSetParams_v2(m, &k));
    CUgraphNode empty;
    OK(cuGraphAddEmptyNode(&empty, g, NULL, 0));
    BAD(cuGraphKernelNodeGetParams_v2(empty, &k));
    BAD(cuGraphKernelNodeSetParams_v2(empty, &k));
    BAD(cuGraphKernelNodeGetParams_v2(n, NULL));
    OK(cuGraphDestroy(g));
}

static void good_attributes(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n = add_step(g, NULL, test_words, 1), m = add_step(g, NULL, test_words, 2);
    CUkernelNodeAttrValue v = {.priority = -3}, got;
    OK(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    v.cooperative = 1;
    OK(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
    OK(cuGraphKernelNodeGetAttribute(m, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    assert_int_equal(got.priority, 0);
    OK(cuGraphKernelNodeCopyAttributes(m, n));
    OK(cuGraphKernelNodeGetAttribute(m, CU_LAUNCH_ATTRIBUTE_PRIORITY, &got));
    assert_int_equal(got.priority, -3);
    OK(cuGraphKernelNodeGetAttribute(m, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &got));
    assert_int_equal(got.cooperative, 1);
    BAD(cuGraphKernelNodeGetAttribute(m, (CUlaunchAttributeID)999, &got));
    BAD(cuGraphKernelNodeSetAttribute(m, (CUlaunchAttributeID)999, &got));
    BAD(cuGraphKernelNodeSetAttribute(m, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
    OK(cuGraphAddDependencies(g, &n, &m, 1));
    run_graph(g);
    assert_int_equal(whole_read(test_words), 12);
    OK(cuGraphDestroy(g));
}

static void nothing(void *arg)
{
}

static void good_other_params(void **state)
{
    CUgraph g = new_graph();
    CUgraphNode n;
    uint32_t host = 6;
    CUevent e, f, got;
    OK(cuEventCreate(&e, 0));
    OK(cuEventCreate(&f, 0));
    CUDA_MEMSET_NODE_PARAMS fill = {test_words, 16, 1, 2, 4, 3}, fill_got;
    OK(cuGraphAddMemsetNode(&n, g, NULL, 0, &fill, test_ctx));
    fill.value = 2;
    OK(cuGraphMemsetNodeSetParams(n, &fill));
    OK(cuGraphMemsetNodeGetParams(n, &fill_got));
    assert_memory_equal(&fill, &fill_got, sizeof fill);
    fill.elementSize = 3;
    BAD(cuGraphMemsetNodeSetParams(n, &fill));
    fill.elementSize = 4;
    fill.width = 0;
    BAD(cuGraphMemsetNodeSetParams(n, &fill));
    CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                       .srcHost = &host,
                       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                       .dstDevice = test_words,
                       .WidthInBytes = 4,
                       .Height = 1,
                       .Depth = 1},
                  c_got;
    OK(cuGraphAddMemcpyNode(&n, g, &n, 1, &c, test_ctx));
    c.dstDevice += 4;
    OK(cuGraphMemcpyNodeSetParams(n, &c));
    OK(cuGraphMemcpyNodeGetParams(n, &c_got));
    assert_memory_equal(&c, &c_got, sizeof c);
    c.WidthInBytes = 5000;
    BAD(cuGraphMemcpyNodeSetParams(n, &c));
    CUDA_HOST_NODE_PARAMS h = {nothing, NULL}, h_got;
    OK(cuGraphAddHostNode(&n, g, &n, 1, &h));
    h.userData = &host;
    OK(cuGraphHostNodeSetParams(n, &h));
    OK(cuGraphHostNodeGetParams(n, &h_got));
    assert_ptr_equal(h_got.userData, &host);
    h.fn = NULL;
    BAD(cuGraphHostNodeSetParams(n, &h));
    OK(cuGraphAddEventRecordNode(&n, g, &n, 1, e));
    OK(cuGraphEventRecordNodeSetEvent(n, f));
    OK(cuGraphEventRecordNodeGetEvent(n, &got));
    assert_ptr_equal(got, f);
    BAD(cuGraphEventWaitNodeGetEvent(n, &got));
    OK(cuGraphAddEventWaitNode(&n, g, &n, 1, e));
    OK(cuGraphEventWaitNodeSetEvent(n, f));
    BAD(cuGraphEventWaitNodeSetEvent(n, NULL));
    OK(cuGraphEventWaitNodeGetEvent(n, &got));
    run_graph(g);
    assert_int_equal(whole_read(test_words + 4), 6);
    assert_int_equal(whole_read(test_words + 36), 0x00020002);
    OK(cuGraphDestroy(g));
}

// --- updates -----------------------------------------------------------------------------------------------

static void good_set_in_exec(void **state)
{
    CUgraph g = new_graph(), child = new_graph(), inside;
    CUgraphNode a = add_step(g, NULL, test_words, 1), c, inner;
    size_t one = 1;
    add_step(child, NULL, test_words, 2);
    OK(cuGraphAddChildGraphNode(&c, g, &a, 1, child));
    OK(cuGraphChildGraphNodeGetGraph(c, &inside));
    OK(cuGraphGetNodes(inside, &inner, &one));
    CUDA_MEMSET_NODE_PARAMS fill = {test_words + 4, 0, 1, 4, 1, 1};
    CUgraphNode f;
    OK(cuGraphAddMemsetNode(&f, g, NULL, 0, &fill, test_ctx));
    CUgraphExec e = instantiate(g);
    unsigned v = 5;
    void *params[] = {&test_words, &v};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_step, params);
    OK(cuGraphExecKernelNodeSetParams_v2(e, a, &k));
    v = 6;
    OK(cuGraphExecKernelNodeSetParams_v2(e, inner, &k));
    fill.value = 9;
    OK(cuGraphExecMemsetNodeSetParams(e, f, &fill, test_ctx));
    fill.height = 2;
    BAD(cuGraphExecMemsetNodeSetParams(e, f, &fill, test_ctx));
    BAD(cuGraphExecMemsetNodeSetParams(e, a, &fill, test_ctx));
    run_exec(e);
    assert_int_equal(whole_read(test_words), 56);
    assert_int_equal(whole_read(test_words + 4), 9);
    put(test_words, 0);
    run_graph(g);  // the graph itself is unchanged
    assert_int_equal(whole_read(test_words), 12);
    unsigned enabled = 7;
    OK(cuGraphNodeSetEnabled(e, a, 0));
    OK(cuGraphNodeGetEnabled(e, a, &enabled));
    assert_int_equal(enabled, 0);
    BAD(cuGraphNodeSetEnabled(e, c, 0));
    put(test_words, 0);
    run_exec(e);
    assert_int_equal(whole_read(test_words), 6);
    OK(cuGraphNodeSetEnabled(e, a, 1));
    // Another kernel with other parameters.
    CUdeviceptr clock = test_words + 8;
    void *others[] = {&test_words, &clock};
    k = kernel_of(test_stamp, others);
    OK(cuGraphExecKernelNodeSetParams_v2(e, inner, &k));
    run_exec(e);
    assert_int_equal(whole_read(test_words), 1);
    CUgraph changed = new_graph();
    add_step(changed, NULL, test_words, 4);
    OK(cuGraphExecChildGraphNodeSetParams(e, c, changed));
    put(test_words, 0);
    run_exec(e);
    assert_int_equal(whole_read(test_words), 54);
    OK(cuGraphDestroyNode(a));
    BAD(cuGraphExecKernelNodeSetParams_v2(e, a, &k));
    OK(cuGraphExecDestroy(e));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(child));
    OK(cuGraphDestroy(changed));
}

static CUgraph chain(unsigned digits, bool fork)
{
    CUgraph g = new_graph();
    CUgraphNode n = add_step(g, NULL, test_words, digits / 100), m;
    m = add_step(g, n, test_words, digits / 10 % 10);
    add_step(g, fork ? n : m, fork ? test_words + 4 : test_words, digits % 10);
    return g;
}

static void good_update(void **state)
{
    CUgraph g = chain(123, false), same = chain(456, false), forked = chain(456, true),
            more = chain(1, false), typed = new_graph();
    CUgraphNode n, bad;
    CUgraphExec e = instantiate(g);
    CUgraphExecUpdateResultInfo info;
    CUgraphExecUpdateResult why;
    OK(cuGraphExecUpdate_v2(e, same, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
    run_exec(e);
    assert_int_equal(whole_read(test_words), 456);
    IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(e, forked, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
    assert_non_null(info.errorNode);
    assert_non_null(info.errorFromNode);
    OK(cuGraphAddEmptyNode(&n, more, NULL, 0));
    IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(e, more, &bad, &why));
    assert_true(why == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED && !bad);
    // The first nodes are alike, the last is not: nothing changes.
    n = add_step(typed, NULL, test_words, 7);
    n = add_step(typed, n, test_words, 7);
    OK(cuGraphAddEmptyNode(&n, typed, &n, 1));
    IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(e, typed, &info));
    assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_ptr_equal(info.errorNode, n);
    put(test_words, 0);
    run_exec(e);
    assert_int_equal(whole_read(test_words), 456);
    // The nodes of the first graph still identify those of the executable.
    size_t one = 1;
    unsigned v = 9;
    void *params[] = {&test_words, &v};
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_step, params);
    OK(cuGraphGetNodes(g, &n, &one));
    OK(cuGraphExecKernelNodeSetParams_v2(e, n, &k));
    put(test_words, 0);
    run_exec(e);
    assert_int_equal(whole_read(test_words), 956);
    BAD(cuGraphExecUpdate_v2(e, NULL, &info));
    IS(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate_v2(e, typed, NULL));
    OK(cuGraphExecUpdate_v2(e, g, NULL));
    OK(cuGraphExecDestroy(e));
    CUgraph all[] = {g, same, forked, more, typed};
    for (int i = 0; i < 5; i++)
        OK(cuGraphDestroy(all[i]));
}

// --- user objects ------------------------------------------------------------------------------------------

static void count_destroyed(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void good_objects(void **state)
{
    atomic_int destroyed = 0;
    CUuserObject o, p;
    CUgraph g = new_graph(), clone;
    CUdeviceptr go = test_words + 4;
    void *params[] = {&go};
    CUgraphNode n;
    CUDA_KERNEL_NODE_PARAMS k = kernel_of(test_spin, params);
    OK(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &k));
    BAD(cuUserObjectCreate(&o, &destroyed, nothing, 1, 0));
    BAD(cuUserObjectCreate(&o, &destroyed, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectCreate(&p, &destroyed, count_destroyed, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectRelease(p, 1));
    assert_int_equal(destroyed, 0);
    BAD(cuUserObjectRelease(p, 2));
    OK(cuUserObjectRelease(p, 1));
    assert_int_equal(destroyed, 1);
    BAD(cuUserObjectRelease(p, 1));
    OK(cuUserObjectCreate(&o, &destroyed, count_destroyed, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuUserObjectRetain(o, 2));
    OK(cuGraphRetainUserObject(g, o, 2, 0));
    BAD(cuGraphRetainUserObject(g, o, 4, CU_GRAPH_USER_OBJECT_MOVE));
    OK(cuGraphRetainUserObject(g, o, 3, CU_GRAPH_USER_OBJECT_MOVE));
    BAD(cuUserObjectRelease(o, 1));
    OK(cuGraphReleaseUserObject(g, o, 4));
    OK(cuGraphClone(&clone, g));
    CUgraphExec e = instantiate(g);
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(clone));
    assert_int_equal(destroyed, 1);
    // The launch keeps the object until it has ended.
    CUstream s = new_stream();
    OK(cuGraphLaunch(e, s));
    OK(cuGraphExecDestroy(e));
    assert_int_equal(destroyed, 1);
    let_go(go);
    OK(cuStreamSynchronize(s));
    assert_int_equal(destroyed, 2);
    OK(cuStreamDestroy_v2(s));
}

// Releasing more references than there are releases all of them.
static void good_objects_all(void **state)
{
    atomic_int destroyed = 0;
    CUuserObject o;
    CUgraph g = new_graph();
    OK(cuUserObjectCreate(&o, &destroyed, count_destroyed, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    OK(cuGraphRetainUserObject(g, o, 1, 0));
    OK(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
    BAD(cuGraphReleaseUserObject(g, o, 0));
    OK(cuGraphReleaseUserObject(g, o, 3));
    OK(cuGraphReleaseUserObject(g, o, 1));
    assert_int_equal(destroyed, 0);
    OK(cuUserObjectRelease(o, 1));
    assert_int_equal(destroyed, 1);
    BAD(cuGraphReleaseUserObject(g, o, 1));
    OK(cuGraphDestroy(g));
}

static void good_picture(void **state)
{
    char path[] = "/tmp/graph-XXXXXX", text[4096];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    CUgraph g = chain(123, true), child = chain(456, false);
    CUgraphNode n;
    OK(cuGraphAddChildGraphNode(&n, g, NULL, 0, child));
    OK(cuGraphDebugDotPrint(g, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
    ssize_t len = read(fd, text, sizeof text - 1);
    assert_true(len > 0);
    text[len] = '\0';
    assert_ptr_equal(strstr(text, "digraph {"), text);
    assert_non_null(strstr(text, "0 kernel"));
    assert_non_null(strstr(text, "step\\n<<<(1,1,1), (1,1,1), 0>>>"));
    int edges = 0;
    for (const char *p = text; (p = strstr(p, "->")); p++)
        edges++;
    assert_int_equal(edges, 4);
    close(fd);
    unlink(path);
    IS(CUDA_ERROR_OPERATING_SYSTEM, cuGraphDebugDotPrint(g, "/dev/null/none", 0));
    BAD(cuGraphDebugDotPrint(g, NULL, 0));
    OK(cuGraphDestroy(g));
    OK(cuGraphDestroy(child));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        GRAPH_TEST(good_edges),       GRAPH_TEST(good_programmatic_edges),
        GRAPH_TEST(bad_cycle),        GRAPH_TEST(good_clone),
        GRAPH_TEST(good_moved_child), GRAPH_TEST(good_kernel_params),
        GRAPH_TEST(good_attributes),  GRAPH_TEST(good_other_params),
        GRAPH_TEST(good_set_in_exec), GRAPH_TEST(good_update),
        GRAPH_TEST(good_objects),     GRAPH_TEST(good_objects_all),
        GRAPH_TEST(good_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
