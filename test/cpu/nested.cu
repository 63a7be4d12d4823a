// SPDX-License-Identifier: MIT
// Kernels that launch kernels and graphs, as nvcc compiles them (-rdc=true).
#include <cstdio>
#include <cstdlib>

#define TRY(call)                                                                           \
    do {                                                                                    \
        cudaError_t error_ = (call);                                                        \
        if (error_ != cudaSuccess) {                                                        \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_)); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)
#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

// Sorts by splitting: two children for the parts, in streams of their own.
__global__ void sort(int *v, int from, int to, int depth)
{
    int i = from, j = to;
    if (depth > 20 || to - from < 8) {
        for (int a = from + 1; a <= to; a++)
            for (int b = a; b > from && v[b] < v[b - 1]; b--) {
                int t = v[b];
                v[b] = v[b - 1];
                v[b - 1] = t;
            }
        return;
    }
    int pivot = v[(from + to) / 2];
    while (i <= j) {
        while (v[i] < pivot)
            i++;
        while (v[j] > pivot)
            j--;
        if (i <= j) {
            int t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
    }
    cudaStream_t s;
    if (from < j) {
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        sort<<<1, 1, 0, s>>>(v, from, j, depth + 1);
        cudaStreamDestroy(s);
    }
    if (i < to) {
        cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
        sort<<<1, 1, 0, s>>>(v, i, to, depth + 1);
        cudaStreamDestroy(s);
    }
}

__global__ void twice(int *p, int v)
{
    *p = *p * 2 + v;
}

__global__ void parent(int *p, int *error)
{
    twice<<<1, 1, 0, cudaStreamTailLaunch>>>(p, 1);
    twice<<<1, 1>>>(p, 2);
    twice<<<1, 1>>>(p, 3);
    twice<<<1, 4096>>>(p, 4);  // more threads than there can be
    *error = cudaGetLastError();
}

__global__ void start(cudaGraphExec_t graph, int *error)
{
    *error = cudaGraphLaunch(graph, cudaStreamGraphFireAndForget);
}

__global__ void again(int *p, int times)
{
    if (++*p < times)
        cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

__device__ cudaGraphExec_t turns[2];

// Two graphs that launch each other.
__global__ void over_to(int *p, int whom, int times)
{
    if (++*p < times)
        cudaGraphLaunch(turns[whom], cudaStreamGraphTailLaunch);
}

__global__ void copy_count(int *to, const int *from)
{
    *to = *from;
}

static cudaGraphExec_t make(cudaStream_t s, void (*work)(cudaStream_t), unsigned flags)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    TRY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
    work(s);
    TRY(cudaStreamEndCapture(s, &graph));
    TRY(cudaGraphInstantiate(&exec, graph, flags));
    TRY(cudaGraphDestroy(graph));
    return exec;
}

static int *memory;
static cudaGraphExec_t inner;

static void graphs()
{
    cudaStream_t s;
    TRY(cudaStreamCreate(&s));
    inner = make(
        s, [](cudaStream_t to) { twice<<<1, 1, 0, to>>>(memory, 7); }, cudaGraphInstantiateFlagDeviceLaunch);
    TRY(cudaGraphUpload(inner, s));
    cudaGraphExec_t outer = make(
        s, [](cudaStream_t to) { start<<<1, 1, 0, to>>>(inner, memory + 1); }, 0);
    memory[0] = 1;
    memory[1] = -1;
    TRY(cudaGraphLaunch(outer, s));
    TRY(cudaStreamSynchronize(s));
    CHECK(memory[0] == 9 && memory[1] == 0);
    cudaGraphExec_t loop = make(
        s, [](cudaStream_t to) { again<<<1, 1, 0, to>>>(memory, 100); },
        cudaGraphInstantiateFlagDeviceLaunch);
    TRY(cudaGraphUpload(loop, s));
    memory[0] = 0;
    TRY(cudaGraphLaunch(loop, s));
    TRY(cudaStreamSynchronize(s));
    CHECK(memory[0] == 100);
    // What follows the first launch follows all that it launched, though the graph is launched once more at once.
    memory[0] = 90;
    TRY(cudaGraphLaunch(loop, s));
    copy_count<<<1, 1, 0, s>>>(memory + 1, memory);
    TRY(cudaGraphLaunch(loop, s));
    TRY(cudaStreamSynchronize(s));
    CHECK(memory[0] == 101 && memory[1] == 100);
    cudaGraphExec_t both[2] = {
        make(
            s, [](cudaStream_t to) { over_to<<<1, 1, 0, to>>>(memory, 1, 20); },
            cudaGraphInstantiateFlagDeviceLaunch),
        make(
            s, [](cudaStream_t to) { over_to<<<1, 1, 0, to>>>(memory, 0, 20); },
            cudaGraphInstantiateFlagDeviceLaunch)};
    TRY(cudaMemcpyToSymbol(turns, both, sizeof both));
    TRY(cudaGraphUpload(both[0], s));
    TRY(cudaGraphUpload(both[1], s));
    memory[0] = 0;
    TRY(cudaGraphLaunch(both[0], s));
    TRY(cudaStreamSynchronize(s));
    CHECK(memory[0] == 20);
}

int main()
{
    enum { COUNT = 3000 };
    TRY(cudaMallocManaged(&memory, COUNT * sizeof *memory));
    for (int i = 0; i < COUNT; i++)
        memory[i] = i * 7919 % 3001;
    sort<<<1, 1>>>(memory, 0, COUNT - 1, 0);
    TRY(cudaDeviceSynchronize());
    for (int i = 1; i < COUNT; i++)
        CHECK(memory[i - 1] <= memory[i]);
    memory[0] = 1;
    parent<<<1, 1>>>(memory, memory + 1);
    TRY(cudaDeviceSynchronize());
    CHECK(memory[0] == ((1 * 2 + 2) * 2 + 3) * 2 + 1);
    CHECK(memory[1] != 0);
    graphs();
    printf("all right\n");
    return 0;
}
