// SPDX-License-Identifier: MIT
// Graphs through the CUDA runtime, as programs use them: nodes of all kinds, captured work, updates,
// conditional nodes. Each part checks its own results; the exit status is the number of those that are wrong,
// or 1 if a call fails.
#include <cstring>

#include "cuda_try.h"

static int wrong;

static void check(const char *what, long got, long want)
{
    if (got != want) {
        printf("%s: %ld instead of %ld\n", what, got, want);
        wrong++;
    }
}

__device__ int variable[4];

// Appends a digit.
__global__ void digit(int *p, int d)
{
    *p = *p * 10 + d;
}

__global__ void loop(int *left, int *rounds, cudaGraphConditionalHandle handle)
{
    ++*rounds;
    cudaGraphSetConditional(handle, --*left > 0);
}

static int *words;

static int word(int i)
{
    int value;
    TRY(cudaMemcpy(&value, words + i, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

static void clear()
{
    TRY(cudaMemset(words, 0, 1024));
}

static void run(cudaGraph_t graph, int launches = 1)
{
    cudaGraphExec_t exec;
    TRY(cudaGraphInstantiate(&exec, graph));
    for (int i = 0; i < launches; i++)
        TRY(cudaGraphLaunch(exec, 0));
    TRY(cudaDeviceSynchronize());
    TRY(cudaGraphExecDestroy(exec));
}

static cudaGraphNode_t add_digit(cudaGraph_t graph, const cudaGraphNode_t *after, int *p, int d)
{
    cudaGraphNode_t node;
    void *args[] = {&p, &d};
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeKernel;
    params.kernel.func = (void *)digit;
    params.kernel.gridDim = params.kernel.blockDim = dim3(1);
    params.kernel.kernelParams = args;
    TRY(cudaGraphAddNode(&node, graph, after, nullptr, after ? 1 : 0, &params));
    return node;
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

static void nodes()
{
    cudaGraph_t graph, child;
    cudaGraphNode_t node, first;
    cudaEvent_t event;
    int host[4] = {5, 6, 7, 8}, back[4] = {}, calls = 0;
    clear();
    TRY(cudaEventCreate(&event));
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphCreate(&child, 0));
    cudaMemsetParams fill = {};
    fill.dst = words;
    fill.elementSize = 4;
    fill.width = 2;
    fill.height = 1;
    fill.value = 1;
    TRY(cudaGraphAddMemsetNode(&first, graph, nullptr, 0, &fill));
    TRY(cudaGraphAddMemcpyNodeToSymbol(&node, graph, &first, 1, variable, host, sizeof host, 0,
                                       cudaMemcpyHostToDevice));
    TRY(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, &node, 1, words + 2, variable, 8, 8,
                                         cudaMemcpyDeviceToDevice));
    add_digit(child, nullptr, words, 2);
    TRY(cudaGraphAddChildGraphNode(&node, graph, &node, 1, child));
    TRY(cudaGraphAddEventRecordNode(&node, graph, &node, 1, event));
    TRY(cudaGraphAddEventWaitNode(&node, graph, &node, 1, event));
    TRY(cudaGraphAddEmptyNode(&node, graph, &node, 1));
    TRY(cudaGraphAddMemcpyNode1D(&node, graph, &node, 1, back, words, sizeof back, cudaMemcpyDeviceToHost));
    cudaHostNodeParams tell = {count_call, &calls};
    TRY(cudaGraphAddHostNode(&node, graph, &node, 1, &tell));
    size_t count;
    TRY(cudaGraphGetNodes(graph, nullptr, &count));
    check("nodes", count, 9);
    TRY(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &count));
    check("edges", count, 8);
    run(graph, 2);
    check("memset and child", back[0], 12);
    check("memset", back[1], 1);
    check("symbol", back[2] * 10 + back[3], 78);
    check("host", calls, 2);
    TRY(cudaEventQuery(event));
    cudaGraph_t clone;
    TRY(cudaGraphClone(&clone, graph));
    TRY(cudaGraphDestroy(graph));
    run(clone);
    check("clone", calls, 3);
    TRY(cudaGraphDestroy(clone));
    TRY(cudaGraphDestroy(child));
    TRY(cudaEventDestroy(event));
}

// Captured memory, a fork and a join; then the executable is updated from another capture.
static cudaGraph_t capture(cudaStream_t stream, cudaStream_t side, int d)
{
    cudaGraph_t graph;
    cudaEvent_t fork, join;
    int *memory;
    TRY(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    TRY(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    if (d < 0) {
        TRY(cudaMallocAsync(&memory, 4096, stream));
        TRY(cudaMemsetAsync(memory, 0, 4096, stream));
        digit<<<1, 1, 0, stream>>>(memory + 1023, 9);
        TRY(cudaMemcpyAsync(words + 8, memory + 1023, 4, cudaMemcpyDeviceToDevice, stream));
        TRY(cudaFreeAsync(memory, stream));
        d = -d;
    }
    TRY(cudaEventRecord(fork, stream));
    TRY(cudaStreamWaitEvent(side, fork, 0));
    digit<<<1, 1, 0, stream>>>(words, d);
    digit<<<1, 1, 0, side>>>(words + 1, d + 1);
    TRY(cudaEventRecord(join, side));
    TRY(cudaStreamWaitEvent(stream, join, 0));
    digit<<<1, 1, 0, stream>>>(words, d + 2);
    TRY(cudaStreamEndCapture(stream, &graph));
    TRY(cudaEventDestroy(fork));
    TRY(cudaEventDestroy(join));
    return graph;
}

static void captures()
{
    cudaStream_t stream, side;
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    clear();
    TRY(cudaStreamCreate(&stream));
    TRY(cudaStreamCreate(&side));
    cudaGraph_t graph = capture(stream, side, 1);
    TRY(cudaGraphInstantiate(&exec, graph));
    TRY(cudaGraphDestroy(graph));
    for (int d = 2; d < 5; d++) {
        TRY(cudaGraphLaunch(exec, stream));
        graph = capture(stream, side, d);
        TRY(cudaGraphExecUpdate(exec, graph, &info));
        TRY(cudaGraphDestroy(graph));
    }
    TRY(cudaStreamSynchronize(stream));
    check("updated", word(0), 132435);
    check("updated, side", word(1), 234);
    TRY(cudaGraphExecDestroy(exec));
    graph = capture(stream, side, -1);
    run(graph, 2);
    check("captured memory", word(8), 9);
    TRY(cudaGraphDestroy(graph));
    // What must not be done, and that it does no harm.
    TRY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    int *p;
    check("malloc while capturing", cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported);
    check("spoilt", cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    cudaGetLastError();
    TRY(cudaStreamDestroy(stream));
    TRY(cudaStreamDestroy(side));
}

static void conditions()
{
    cudaGraph_t graph;
    cudaGraphConditionalHandle handle;
    cudaGraphNode_t node;
    int *left = words, *rounds = words + 1, start = 7;
    clear();
    TRY(cudaMemcpy(left, &start, sizeof start, cudaMemcpyHostToDevice));
    TRY(cudaGraphCreate(&graph, 0));
    TRY(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
    cudaGraphNodeParams params = {};
    params.type = cudaGraphNodeTypeConditional;
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeWhile;
    params.conditional.size = 1;
    TRY(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &params));
    cudaGraph_t body = params.conditional.phGraph_out[0];
    cudaStream_t stream;
    TRY(cudaStreamCreate(&stream));
    TRY(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed));
    loop<<<1, 1, 0, stream>>>(left, rounds, handle);
    TRY(cudaStreamEndCapture(stream, &body));
    add_digit(graph, &node, words + 2, 4);
    run(graph);
    check("rounds of the loop", word(1), 7);
    check("behind the loop", word(2), 4);
    TRY(cudaGraphDestroy(graph));
    TRY(cudaStreamDestroy(stream));
}

int main()
{
    TRY(cudaMalloc(&words, 1024));
    nodes();
    captures();
    conditions();
    TRY(cudaFree(words));
    printf("%s\n", wrong ? "wrong" : "all right");
    return wrong;
}
