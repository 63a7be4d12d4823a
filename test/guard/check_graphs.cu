// SPDX-License-Identifier: MIT
// Kernels in graphs under --mode=check, each case in a program of its own: see check_cases.cuh. Executable
// graphs are launched as they were made, updated node by node and as a whole, after their graph was
// destroyed, and after buffers were freed, which their kernels use or do not use.
#include "check_cases.cuh"

__global__ void scale(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] *= 2;
}

__global__ void gather(float *to, const float *from, const int *index, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[index[i]];
}

static cudaKernelNodeParams params_of(void *function, void **arguments)
{
    cudaKernelNodeParams p = {};
    p.func = function;
    p.gridDim = dim3(2);
    p.blockDim = dim3(128);
    p.kernelParams = arguments;
    return p;
}

static cudaGraphNode_t add_scale(cudaGraph_t g, float *x, int n)
{
    void *arguments[] = {&x, &n};
    cudaKernelNodeParams p = params_of((void *)scale, arguments);
    cudaGraphNode_t node;
    NEED(cudaGraphAddKernelNode(&node, g, nullptr, 0, &p));
    return node;
}

static void set_scale(cudaGraphExec_t e, cudaGraphNode_t node, float *x, int n)
{
    void *arguments[] = {&x, &n};
    cudaKernelNodeParams p = params_of((void *)scale, arguments);
    NEED(cudaGraphExecKernelNodeSetParams(e, node, &p));
}

static cudaGraph_t new_graph(void)
{
    cudaGraph_t g;
    NEED(cudaGraphCreate(&g, 0));
    return g;
}

static cudaGraphExec_t make(cudaGraph_t g)
{
    cudaGraphExec_t e;
    NEED(cudaGraphInstantiate(&e, g, 0));
    return e;
}

static void run(cudaGraphExec_t e)
{
    NEED(cudaGraphLaunch(e, 0));
    wait();
}

static void smaller(bool bad)
{
    cudaGraph_t g = new_graph();
    add_scale(g, take<float>(256), 256);
    add_scale(g, take<float>(256 - bad), 256);
    cudaGraphExec_t e = make(g);
    run(e);
    run(e);
    NEED(cudaGraphExecDestroy(e));
    NEED(cudaGraphDestroy(g));
}

// A buffer is freed between two launches.
static void freed(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraph_t g = new_graph();
    add_scale(g, x, 256);
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

// The graph is gone when the nodes of the executable one have to change.
static void destroyed(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraph_t g = new_graph();
    add_scale(g, x, 256);
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphDestroy(g));
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
    NEED(cudaGraphExecDestroy(e));
}

// Of two executable graphs one is gone, and the graph too.
static void two(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraph_t g = new_graph();
    add_scale(g, x, 256);
    cudaGraphExec_t first = make(g), second = make(g);
    NEED(cudaGraphDestroy(g));
    run(first);
    NEED(cudaGraphExecDestroy(first));
    run(second);
    NEED(cudaFree(bad ? x : spare));
    run(second);
    NEED(cudaGraphExecDestroy(second));
}

static void captured(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaStream_t s;
    cudaGraph_t g;
    NEED(cudaStreamCreate(&s));
    NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    scale<<<2, 128, 0, s>>>(x, 256);
    scale<<<1, 128, 0, s>>>(x, 100);
    NEED(cudaStreamEndCapture(s, &g));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphDestroy(g));
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

static void set(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256 - bad);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node = add_scale(g, x, 256);
    cudaGraphExec_t e = make(g);
    run(e);
    set_scale(e, node, y, 256);
    run(e);
    set_scale(e, node, x, 256);
    run(e);
}

// A node is set to another kernel, and back.
static void other_kernel(bool bad)
{
    float *x = take<float>(256), *from = take<float>(100);
    int *index = take<int>(256), n = 256, far = 100;
    void *arguments[] = {&x, &from, &index, &n};
    cudaKernelNodeParams p = params_of((void *)gather, arguments);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node = add_scale(g, x, 256);
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaGraphExecKernelNodeSetParams(e, node, &p));
    run(e);
    if (bad)
        NEED(cudaMemcpy(index + 17, &far, sizeof far, cudaMemcpyHostToDevice));
    run(e);
    set_scale(e, node, x, 256);
    run(e);
}

// A refused change leaves the node as it was, and what is known of it.
static void refused(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256), *y = spare;
    int n = 256;
    void *arguments[] = {&y, &n};
    cudaKernelNodeParams p = params_of((void *)scale, arguments);
    p.blockDim = dim3(4096);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node = add_scale(g, x, 256);
    cudaGraphExec_t e = make(g);
    run(e);
    if (cudaGraphExecKernelNodeSetParams(e, node, &p) == cudaSuccess)
        exit(2);
    cudaGetLastError();
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

// A whole graph's parameters: nodes are paired by the driver.
static void updated(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256 - bad);
    cudaGraph_t g = new_graph(), h = new_graph();
    add_scale(g, x, 256);
    add_scale(h, y, 256);
    cudaGraphExec_t e = make(g);
    run(e);
    cudaGraphExecUpdateResultInfo info;
    NEED(cudaGraphExecUpdate(e, h, &info));
    NEED(cudaGraphDestroy(g));
    NEED(cudaGraphDestroy(h));
    run(e);
}

static void update(cudaGraphExec_t e, cudaGraph_t from)
{
    cudaGraphExecUpdateResultInfo info;
    NEED(cudaGraphExecUpdate(e, from, &info));
}

// The second of two graphs with a copy between two kernels, as the same code makes them.
static cudaGraph_t with_copy(float *x, float *y, int n, cudaGraphNode_t *second)
{
    cudaGraph_t g = new_graph();
    cudaGraphNode_t first = add_scale(g, x, 256), copy;
    NEED(cudaGraphAddMemcpyNode1D(&copy, g, &first, 1, y, x, 256, cudaMemcpyDeviceToDevice));
    void *arguments[] = {&y, &n};
    cudaKernelNodeParams p = params_of((void *)scale, arguments);
    NEED(cudaGraphAddKernelNode(second, g, &copy, 1, &p));
    return g;
}

// After an update nodes are set one by one, and buffers of the new graph are freed.
static void updated_set(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256), *z = take<float>(256), *spare = take<float>(256);
    cudaGraphNode_t node, other;
    cudaGraph_t g = with_copy(x, y, 256, &node), h = with_copy(x, z, 256, &other);
    cudaGraphExec_t e = make(g);
    update(e, h);
    NEED(cudaGraphDestroy(g));
    NEED(cudaGraphDestroy(h));
    run(e);
    set_scale(e, node, spare, 256);
    run(e);
    NEED(cudaFree(bad ? spare : y));
    run(e);
}

// A refused update leaves all nodes as they were, and what is known of them.
static void update_refused(bool bad)
{
    float *x = take<float>(256), *to = take<float>(256), *from = take<float>(100);
    float *last = take<float>(256 - bad);
    int *index = take<int>(256), n = 256;
    void *arguments[] = {&to, &from, &index, &n};
    cudaKernelNodeParams p = params_of((void *)gather, arguments);
    cudaGraph_t g = new_graph(), h = new_graph();
    cudaGraphNode_t a = add_scale(g, x, 256), b, d;
    add_scale(h, x, 256);
    NEED(cudaGraphAddKernelNode(&b, g, &a, 1, &p));
    NEED(cudaGraphAddKernelNode(&d, h, nullptr, 0, &p));
    cudaGraphExec_t e = make(g);
    run(e);
    cudaGraphExecUpdateResultInfo info;
    if (cudaGraphExecUpdate(e, h, &info) == cudaSuccess)
        exit(2);
    cudaGetLastError();
    run(e);
    set_scale(e, a, last, 256);
    run(e);
}

// A node of the graph is gone before its buffer is.
static void without_node(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node = add_scale(g, x, 256);
    add_scale(g, spare + 128, 128);
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaGraphDestroyNode(node));
    if (bad)
        NEED(cudaFree(x));
    run(e);
}

static void child(bool bad)
{
    float *x = take<float>(256 - bad);
    cudaGraph_t g = new_graph(), inner = new_graph();
    cudaGraphNode_t node;
    add_scale(g, take<float>(256), 256);
    add_scale(inner, x, 256);
    NEED(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, inner));
    NEED(cudaGraphDestroy(inner));
    run(make(g));
}

static cudaGraph_t graph_of(float *x, cudaGraphNode_t *kernel)
{
    cudaGraph_t g = new_graph();
    *kernel = add_scale(g, x, 256);
    return g;
}

// The kernel of a child graph in a child graph, and its buffer, which is freed between two launches.
static void grandchild(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraphNode_t node, kernel;
    cudaGraph_t g = new_graph(), inner = new_graph(), most = graph_of(x, &kernel);
    NEED(cudaGraphAddChildGraphNode(&node, inner, nullptr, 0, most));
    NEED(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, inner));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphDestroy(most));
    NEED(cudaGraphDestroy(inner));
    NEED(cudaGraphDestroy(g));
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

// The kernel of a child graph is set by its node there.
static void child_kernel(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256 - bad);
    cudaGraphNode_t node, kernel;
    cudaGraph_t g = new_graph(), own;
    size_t n = 1;
    NEED(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, graph_of(x, &kernel)));
    NEED(cudaGraphChildGraphNodeGetGraph(node, &own));
    NEED(cudaGraphGetNodes(own, &kernel, &n));
    cudaGraphExec_t e = make(g);
    run(e);
    set_scale(e, kernel, y, 256);
    run(e);
}

// A child graph gets the parameters of another graph; what stands beside it stays.
static void child_set(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256), *beside = take<float>(256), *spare = take<float>(256);
    cudaGraphNode_t node, kernel;
    cudaGraph_t g = graph_of(beside, &kernel);
    NEED(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, graph_of(x, &kernel)));
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaGraphExecChildGraphNodeSetParams(e, node, graph_of(y, &kernel)));
    run(e);
    NEED(cudaFree(bad ? y : spare));
    run(e);
}

// The same, and a buffer beside it is freed.
static void child_beside(bool bad)
{
    float *x = take<float>(256), *y = take<float>(256), *beside = take<float>(256), *spare = take<float>(256);
    cudaGraphNode_t node, kernel;
    cudaGraph_t g = graph_of(beside, &kernel);
    NEED(cudaGraphAddChildGraphNode(&node, g, nullptr, 0, graph_of(x, &kernel)));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphExecChildGraphNodeSetParams(e, node, graph_of(y, &kernel)));
    NEED(cudaFree(bad ? beside : spare));
    run(e);
}

static void cooperative(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    int n = 256;
    void *arguments[] = {&x, &n};
    cudaStream_t s;
    cudaGraph_t g;
    NEED(cudaStreamCreate(&s));
    NEED(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    NEED(cudaLaunchCooperativeKernel((void *)scale, dim3(2), dim3(128), arguments, 0, s));
    NEED(cudaStreamEndCapture(s, &g));
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

// The index comes from memory: that access is checked, the others are proved.
static void in_part(bool bad)
{
    float *to = take<float>(256), *from = take<float>(100), *spare = take<float>(256);
    int *index = take<int>(256), n = 256, far = 100;
    void *arguments[] = {&to, &from, &index, &n};
    cudaKernelNodeParams p = params_of((void *)gather, arguments);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node;
    NEED(cudaGraphAddKernelNode(&node, g, nullptr, 0, &p));
    cudaGraphExec_t e = make(g);
    run(e);
    if (bad)
        NEED(cudaMemcpy(index + 17, &far, sizeof far, cudaMemcpyHostToDevice));
    NEED(cudaFree(spare));
    run(e);
}

// A buffer that only the checked access uses: its bounds are renewed.
static void in_part_freed(bool bad)
{
    float *to = take<float>(256), *from = take<float>(100), *spare = take<float>(100);
    int *index = take<int>(256), n = 256;
    void *arguments[] = {&to, &from, &index, &n};
    cudaKernelNodeParams p = params_of((void *)gather, arguments);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node;
    NEED(cudaGraphAddKernelNode(&node, g, nullptr, 0, &p));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphDestroy(g));
    run(e);
    NEED(cudaFree(bad ? from : spare));
    run(e);
}

// A kernel beside memory of a graph; the kernel that uses that memory looks up every root.
static void memory(bool bad)
{
    cudaGraph_t g = new_graph();
    cudaMemAllocNodeParams a = {};
    a.poolProps.allocType = cudaMemAllocationTypePinned;
    a.poolProps.location.type = cudaMemLocationTypeDevice;
    a.bytesize = 1024;
    cudaGraphNode_t node, freed;
    NEED(cudaGraphAddMemAllocNode(&node, g, nullptr, 0, &a));
    float *x = (float *)a.dptr, *y = take<float>(256 - bad);
    int n = 256;
    void *arguments[] = {&y, &n};
    cudaKernelNodeParams p = params_of((void *)scale, arguments);
    cudaGraphNode_t kernel;
    NEED(cudaGraphAddKernelNode(&kernel, g, &node, 1, &p));
    NEED(cudaGraphAddMemFreeNode(&freed, g, &kernel, 1, x));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphDestroy(g));
    run(e);
    run(e);
}

// A node that kernels may update is not exchanged: it looks up every root. Only GPUs have such nodes.
static void updatable(bool bad)
{
    float *x = take<float>(256), *spare = take<float>(256);
    cudaGraph_t g = new_graph();
    cudaGraphNode_t node = add_scale(g, x, 256);
    cudaLaunchAttributeValue value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    NEED(cudaGraphKernelNodeSetAttribute(node, cudaLaunchAttributeDeviceUpdatableKernelNode, &value));
    cudaGraphExec_t e = make(g);
    run(e);
    NEED(cudaFree(bad ? x : spare));
    run(e);
}

// The body of a conditional node: its kernel looks up every root.
static void conditional(bool bad)
{
    cudaGraph_t g = new_graph();
    cudaGraphConditionalHandle handle;
    NEED(cudaGraphConditionalHandleCreate(&handle, g, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeConditional;
    p.conditional.handle = handle;
    p.conditional.type = cudaGraphCondTypeIf;
    p.conditional.size = 1;
    cudaGraphNode_t node;
    NEED(cudaGraphAddNode(&node, g, nullptr, nullptr, 0, &p));
    add_scale(p.conditional.phGraph_out[0], take<float>(256 - bad), 256);
    run(make(g));
}

// The calls for nodes of any type, and a copy of a graph.
static void any_node(bool bad)
{
    float *x = take<float>(256);
    int n = 256, more = 256 + bad;
    void *arguments[] = {&x, &n};
    cudaGraphNodeParams p = {};
    p.type = cudaGraphNodeTypeKernel;
    p.kernel.func = (void *)scale;
    p.kernel.gridDim = dim3(3);
    p.kernel.blockDim = dim3(128);
    p.kernel.kernelParams = arguments;
    cudaGraph_t g = new_graph(), copy;
    cudaGraphNode_t node;
    NEED(cudaGraphAddNode(&node, g, nullptr, nullptr, 0, &p));
    cudaGraphExec_t e = make(g);
    NEED(cudaGraphClone(&copy, g));
    NEED(cudaGraphDestroy(g));
    run(e);
    run(make(copy));
    arguments[1] = &more;
    NEED(cudaGraphExecNodeSetParams(e, node, &p));
    run(e);
}

// What the correct twin's launches are: "N M L", N kernels proved, M in part, L with all checks and bounds.
static const struct check_case cases[] = {
    {"smaller", smaller, "heap-buffer-overflow 4 0 0"},
    {"freed", freed, "heap-use-after-free 2 0 0"},
    {"destroyed", destroyed, "heap-use-after-free 2 0 0"},
    {"two", two, "heap-use-after-free 3 0 0"},
    {"captured", captured, "heap-use-after-free 4 0 0"},
    {"set", set, "heap-buffer-overflow 3 0 0"},
    {"other_kernel", other_kernel, "heap-buffer-overflow 2 2 0"},
    {"refused", refused, "heap-use-after-free 2 0 0"},
    {"updated", updated, "heap-buffer-overflow 2 0 0"},
    {"updated_set", updated_set, "heap-use-after-free 6 0 0"},
    {"update_refused", update_refused, "heap-buffer-overflow 3 3 0"},
    {"without_node", without_node, "heap-use-after-free 3 0 0"},
    {"child", child, "heap-buffer-overflow 2 0 0"},
    {"grandchild", grandchild, "heap-use-after-free 2 0 0"},
    {"child_kernel", child_kernel, "heap-buffer-overflow 2 0 0"},
    {"child_set", child_set, "heap-use-after-free 6 0 0"},
    {"child_beside", child_beside, "heap-use-after-free 2 0 0"},
    {"cooperative", cooperative, "heap-use-after-free 2 0 0"},
    {"in_part", in_part, "heap-buffer-overflow 0 2 0"},
    {"in_part_freed", in_part_freed, "heap-use-after-free 0 2 0"},
    {"memory", memory, "heap-buffer-overflow 2 0 0"},
    {"conditional", conditional, "heap-buffer-overflow 0 0 0"},
    {"any_node", any_node, "heap-buffer-overflow 3 0 0"},
    {"updatable", updatable, "heap-use-after-free 0 0 0"},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
