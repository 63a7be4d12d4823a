// SPDX-License-Identifier: MIT
// Kernels that launch kernels and graphs, as nvcc compiles them (-rdc=true).
#include <cstring>

#include "cuda_try.h"

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

__global__ void slow_twice(int *p, int v)
{
    int old = *(volatile int *)p;
    for (int i = 0; i < 100; i++)
        __nanosleep(1000);
    *p = old * 2 + v;
}

enum { WIDTH = 5, HEIGHT = 4, PITCH = 32 };

__global__ void draw(char *plane)
{
    plane[threadIdx.y * PITCH + threadIdx.x] = 3;
}

// Two streams and an event between them; copies and fills of planes and boxes; what a kernel may ask.
__global__ void helper(int *p, char *plane, char *box, char *filled, cudaMemcpy3DParms copy, int *answers)
{
    cudaStream_t first, second;
    cudaEvent_t event;
    answers[0] = cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    answers[1] = cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    answers[2] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    slow_twice<<<1, 1, 0, first>>>(p, 1);
    answers[3] = cudaEventRecord(event, first);
    answers[4] = cudaStreamWaitEvent(second, event, 0);
    slow_twice<<<1, 1, 0, second>>>(p, 2);
    cudaEventDestroy(event);
    answers[5] = cudaMemset2DAsync(filled, PITCH, 3, WIDTH, HEIGHT, second);
    draw<<<1, dim3(WIDTH, HEIGHT), 0, second>>>(plane);
    answers[6] =
        cudaMemcpy2DAsync(box, PITCH, plane, PITCH, WIDTH - 1, HEIGHT, cudaMemcpyDeviceToDevice, second);
    answers[7] = cudaMemcpy3DAsync(&copy, second);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaFuncAttributes a;
    answers[8] = cudaFuncGetAttributes(&a, (const void *)sort);
    answers[9] = a.maxThreadsPerBlock;
    answers[10] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&answers[11], (const void *)twice, 128, 0);
    answers[12] = cudaGetDevice(&answers[13]);
    answers[14] = cudaDeviceGetAttribute(&answers[15], cudaDevAttrWarpSize, answers[13]);
}

static void help()
{
    int *p, *answers, blocks;
    char *bytes;
    TRY(cudaMallocManaged(&p, sizeof *p));
    TRY(cudaMallocManaged(&answers, 16 * sizeof *answers));
    TRY(cudaMallocManaged(&bytes, 5 * HEIGHT * PITCH));
    char *box = bytes + HEIGHT * PITCH, *filled = box + HEIGHT * PITCH, *far = filled + HEIGHT * PITCH;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(bytes, PITCH, PITCH, HEIGHT);
    copy.dstPtr = make_cudaPitchedPtr(far, PITCH, PITCH, HEIGHT);
    copy.dstPos = make_cudaPos(1, 1, 0);
    copy.extent = make_cudaExtent(2, 2, 1);
    copy.kind = cudaMemcpyDeviceToDevice;
    memset(bytes, 0, 5 * HEIGHT * PITCH);
    memset(answers, -1, 16 * sizeof *answers);
    *p = 0;
    helper<<<1, 1>>>(p, bytes, box, filled, copy, answers);
    TRY(cudaDeviceSynchronize());
    CHECK(*p == 4);
    // An H200 says yes to a kernel's memset, of any kind, and sets nothing (CUDA 13.0, driver 580).
    bool sets = filled[0] != 0;
    if (!sets)
        printf("a memset by a kernel sets nothing\n");
    for (int i = 0; i < HEIGHT * PITCH; i++) {
        int x = i % PITCH, y = i / PITCH;
        CHECK(bytes[i] == (x < WIDTH ? 3 : 0));
        CHECK(filled[i] == (sets && x < WIDTH ? 3 : 0));
        CHECK(box[i] == (x < WIDTH - 1 ? 3 : 0));
        CHECK(far[i] == (x >= 1 && x <= 2 && y >= 1 && y <= 2 ? 3 : 0));
    }
    for (int i : {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14})
        CHECK(answers[i] == 0);
    TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, twice, 128, 0));
    CHECK(answers[9] == 1024 && answers[11] == blocks && answers[13] == 0 && answers[15] == 32);
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
    // What follows the first launch follows all that it launched, though the graph is launched once more at
    // once.
    memory[0] = 90;
    TRY(cudaGraphLaunch(loop, s));
    copy_count<<<1, 1, 0, s>>>(memory + 1, memory);
    TRY(cudaGraphLaunch(loop, s));
    TRY(cudaStreamSynchronize(s));
    CHECK(memory[0] == 101 && memory[1] == 100);
    cudaGraphExec_t both[2] = {make(
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
    help();
    graphs();
    printf("all right\n");
    return 0;
}
