// SPDX-License-Identifier: MIT
// Graphs: nodes whose parameters the runtime converts.
#include "runtime/rt_testing.h"

static char store, mark, gv, stranger;
static void **module;
static cudaGraph_t graph;
static int *device;

static int setup(void **state)
{
    module = rt_testing_module();
    rt_testing_kernel(module, &store, "store");
    rt_testing_kernel(module, &mark, "mark");
    __cudaRegisterVar(module, &gv, "gv", "gv", 0, 40, 0, 0);
    __cudaRegisterFatBinaryEnd(module);
    OK(cudaMalloc((void **)&device, 64));
    OK(cudaMemset(device, 0, 64));
    OK(cudaGraphCreate(&graph, 0));
    return 0;
}

static int teardown(void **state)
{
    OK(cudaGraphDestroy(graph));
    OK(cudaFree(device));
    __cudaUnregisterFatBinary(module);
    cudaGetLastError();
    return 0;
}

static cudaGraphExec_t instantiate(void)
{
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, graph, 0));
    return exec;
}

static void launch(cudaGraphExec_t exec)
{
    OK(cudaGraphLaunch(exec, NULL));
    OK(cudaDeviceSynchronize());
}

static int value_at(int i)
{
    int value;
    OK(cudaMemcpy(&value, device + i, 4, cudaMemcpyDeviceToHost));
    return value;
}

static cudaKernelNodeParams kernel_params(const void *stub, void **args)
{
    return (cudaKernelNodeParams){
        .func = (void *)(uintptr_t)stub, .gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .kernelParams = args};
}

// A kernel is named by its stub, before and after; its arguments are copied when the node is made.
static void good_kernels(void **state)
{
    cudaGraphNode_t node;
    int *p = device, v = 5;
    void *args[] = {&p, &v};
    cudaKernelNodeParams params = kernel_params(&store, args), found;
    OK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
    v = 6;
    OK(cudaGraphKernelNodeGetParams(node, &found));
    assert_ptr_equal(found.func, &store);
    assert_int_equal(found.gridDim.x, 1);
    cudaGraphExec_t exec = instantiate();
    launch(exec);
    assert_int_equal(value_at(0), 5);
    OK(cudaGraphExecKernelNodeSetParams(exec, node, &params));  // this instance only
    launch(exec);
    assert_int_equal(value_at(0), 6);
    OK(cudaGraphExecDestroy(exec));
    exec = instantiate();
    launch(exec);
    assert_int_equal(value_at(0), 5);
    OK(cudaGraphExecDestroy(exec));
    v = 8;
    OK(cudaGraphKernelNodeSetParams(node, &params));
    exec = instantiate();
    launch(exec);
    assert_int_equal(value_at(0), 8);
    OK(cudaGraphExecDestroy(exec));
}

static void bad_kernels(void **state)
{
    cudaGraphNode_t node;
    cudaKernelNodeParams params = kernel_params(&stranger, NULL);
    size_t count = 9;
    IS(cudaErrorInvalidResourceHandle, cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
    IS(cudaErrorInvalidValue, cudaGraphAddKernelNode(&node, graph, NULL, 0, NULL));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 0);
}

// Copies in order: the second takes what the first has brought.
static void good_copies(void **state)
{
    cudaGraphNode_t nodes[2];
    int in[4] = {1, 2, 3, 4}, out[4] = {0};
    cudaMemcpy3DParms found;
    OK(cudaGraphAddMemcpyNode1D(&nodes[0], graph, NULL, 0, device, in, 16, cudaMemcpyHostToDevice));
    OK(cudaGraphAddMemcpyNode1D(&nodes[1], graph, nodes, 1, out, device, 16, cudaMemcpyDeviceToHost));
    OK(cudaGraphMemcpyNodeGetParams(nodes[0], &found));
    assert_int_equal(found.kind, cudaMemcpyHostToDevice);
    assert_ptr_equal(found.srcPtr.ptr, in);
    assert_ptr_equal(found.dstPtr.ptr, device);
    assert_true(found.extent.width == 16 && found.extent.height == 1 && found.extent.depth == 1);
    cudaGraphExec_t exec = instantiate();
    launch(exec);
    assert_memory_equal(out, in, sizeof in);
    OK(cudaGraphExecMemcpyNodeSetParams1D(exec, nodes[1], out, device + 1, 4, cudaMemcpyDeviceToHost));
    in[1] = 22;
    launch(exec);
    assert_int_equal(out[0], 22);
    OK(cudaGraphExecDestroy(exec));
    IS(cudaErrorInvalidMemcpyDirection,
       cudaGraphMemcpyNodeSetParams1D(nodes[1], out, device, 4, (cudaMemcpyKind)9));
    IS(cudaErrorInvalidValue, cudaGraphMemcpyNodeSetParams(nodes[1], NULL));
}

static void good_variables(void **state)
{
    cudaGraphNode_t nodes[3];
    cudaKernelNodeParams params = kernel_params(&mark, NULL);
    int three = 3, out[2] = {0};
    OK(cudaGraphAddMemcpyNodeToSymbol(&nodes[0], graph, NULL, 0, &gv, &three, 4, 4, cudaMemcpyHostToDevice));
    OK(cudaGraphAddKernelNode(&nodes[1], graph, nodes, 1, &params));  // gv[0] = 5
    OK(cudaGraphAddMemcpyNodeFromSymbol(&nodes[2], graph, nodes + 1, 1, out, &gv, 8, 0,
                                        cudaMemcpyDeviceToHost));
    cudaGraphExec_t exec = instantiate();
    launch(exec);
    assert_int_equal(out[0], 5);
    assert_int_equal(out[1], 3);
    OK(cudaGraphExecDestroy(exec));
    IS(cudaErrorInvalidValue,
       cudaGraphAddMemcpyNodeToSymbol(&nodes[0], graph, NULL, 0, &gv, &three, 4, 37, cudaMemcpyHostToDevice));
}

static void good_memsets(void **state)
{
    cudaGraphNode_t node;
    cudaMemsetParams params = {
        .dst = rt_ptr(device), .elementSize = 4, .value = 0x01020304, .width = 2, .height = 1, .pitch = 8};
    OK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &params));
    cudaGraphExec_t exec = instantiate();
    launch(exec);
    assert_int_equal(value_at(1), 0x01020304);
    assert_int_equal(value_at(2), 0);
    params.dst = rt_ptr(device + 4);
    OK(cudaGraphExecMemsetNodeSetParams(exec, node, &params));
    launch(exec);
    assert_int_equal(value_at(5), 0x01020304);
    OK(cudaGraphExecDestroy(exec));
}

// Nodes of any type through one call.
static void good_any_node(void **state)
{
    cudaGraphNode_t nodes[2];
    int *p = device, v = 31, in = 77;
    void *args[] = {&p, &v};
    cudaGraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
    params.memcpy.copyParams = (cudaMemcpy3DParms){.srcPtr = {&in, 4, 4, 1},
                                                   .dstPtr = {device + 1, 4, 4, 1},
                                                   .extent = {4, 1, 1},
                                                   .kind = cudaMemcpyHostToDevice};
    OK(cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, &params));
    params = (cudaGraphNodeParams){.type = CU_GRAPH_NODE_TYPE_KERNEL};
    cudaKernelNodeParams kernel = kernel_params(&store, args);
    memcpy(&params.kernel, &kernel, sizeof kernel);
    OK(cudaGraphAddNode(&nodes[1], graph, nodes, NULL, 1, &params));
    cudaGraphExec_t exec = instantiate();
    launch(exec);
    assert_int_equal(value_at(0), 31);
    assert_int_equal(value_at(1), 77);
    OK(cudaGraphExecDestroy(exec));
    IS(cudaErrorInvalidValue, cudaGraphAddNode(&nodes[0], graph, NULL, NULL, 0, NULL));
}

// Work that a stream captures becomes the same nodes.
static void good_captured(void **state)
{
    cudaStream_t stream;
    cudaGraph_t captured;
    cudaGraphNode_t nodes[2];
    cudaGraphNodeType type;
    size_t count = 2;
    int *p = device, v = 12;
    OK(cudaStreamCreate(&stream));
    OK(cudaStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    OK(cudaMemsetAsync(device, 0xff, 16, stream));
    OK(cudaLaunchKernel(&store, (dim3){1, 1, 1}, (dim3){1, 1, 1}, (void *[]){&p, &v}, 0, stream));
    OK(cudaStreamEndCapture(stream, &captured));
    assert_int_equal(value_at(0), 0);  // nothing has run
    OK(cudaGraphGetNodes(captured, nodes, &count));
    assert_int_equal(count, 2);
    OK(cudaGraphNodeGetType(nodes[0], &type));
    assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEMSET);
    cudaGraphExec_t exec;
    OK(cudaGraphInstantiate(&exec, captured, 0));
    launch(exec);
    assert_int_equal(value_at(0), 12);
    assert_int_equal(value_at(1), -1);
    OK(cudaGraphExecDestroy(exec));
    OK(cudaGraphDestroy(captured));
    OK(cudaStreamDestroy(stream));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(good_kernels), TEST(bad_kernels),   TEST(good_copies),   TEST(good_variables),
        TEST(good_memsets), TEST(good_any_node), TEST(good_captured),
    };
    return cmocka_run_group_tests(tests, rt_testing_start, NULL);
}
