// SPDX-License-Identifier: MIT
// explain_cases CASE: launches that `moat explain` must judge. test/guard/explain.sh knows the answers.
#include <cstdio>
#include <cstring>
#include <thread>

#define MUST(call)                                                                    \
    do {                                                                              \
        cudaError_t e = (call);                                                       \
        if (e != cudaSuccess) {                                                       \
            printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e));         \
            return 1;                                                                 \
        }                                                                             \
    } while (0)

__global__ void scale(float *a, float f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] *= f;
}

__global__ void before(float *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i - 1] = 1;
}

__global__ void gather(float *to, const float *from, const int *index, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = from[index[i]];
}

__global__ void flagged(float *a, const int *flag, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && flag[0])
        a[i] = 1;
}

__device__ __forceinline__ void put(float *a, int i)
{
    a[i] = 2;
}

__global__ void inlined(float *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        put(a, i);
}

__global__ void tile(float *a)
{
    __shared__ float t[64];
    t[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = t[63 - threadIdx.x % 64];
}

__global__ void dynamic(float *a)
{
    extern __shared__ float d[];
    d[threadIdx.x] = a[threadIdx.x];
    __syncthreads();
    a[threadIdx.x] = d[0];
}

struct View {
    int width, height;
    float *pixels;
};

__global__ void fill(View v)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < v.width)
        v.pixels[y * v.width + x] = 1;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int run(const char *what, float *a, int *ix)
{
    if (is(what, "good") || is(what, "bad"))
        scale<<<4, 256>>>(a, 2, is(what, "good") ? 1000 : 1001);
    else if (is(what, "good_inner") || is(what, "bad_inner"))
        scale<<<4, 256>>>(a + 10, 2, is(what, "good_inner") ? 990 : 991);
    else if (is(what, "good_before") || is(what, "bad_before"))
        before<<<1, 64>>>(is(what, "good_before") ? a + 1 : a, 64);
    else if (is(what, "gather"))
        gather<<<1, 128>>>(a, a, ix, 100);
    else if (is(what, "flagged"))
        flagged<<<4, 256>>>(a, ix, 1001);
    else if (is(what, "bad_inlined"))
        inlined<<<4, 256>>>(a, 1001);
    else if (is(what, "good_tile") || is(what, "bad_tile"))
        tile<<<1, is(what, "good_tile") ? 64 : 65>>>(a);
    else if (is(what, "good_dynamic") || is(what, "bad_dynamic"))
        dynamic<<<1, 64, is(what, "good_dynamic") ? 256 : 252>>>(a);
    else if (is(what, "good_view") || is(what, "wide_view"))
        fill<<<dim3(1, is(what, "good_view") ? 10 : 11), 128>>>(View{100, 10, a});
    else
        return 2;
    return 0;
}

static int run_captured(float *a)
{
    cudaStream_t q;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    MUST(cudaStreamCreate(&q));
    MUST(cudaStreamBeginCapture(q, cudaStreamCaptureModeGlobal));
    scale<<<4, 256, 0, q>>>(a, 2, 1000);
    MUST(cudaStreamEndCapture(q, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    for (int i = 0; i < 3; i++)
        MUST(cudaGraphLaunch(exec, q));
    MUST(cudaStreamSynchronize(q));
    return 0;
}

static void launch_many(float *a)
{
    for (int i = 0; i < 200; i++)
        scale<<<4, 256>>>(a, 2, i % 1000);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "good";
    float *a;
    int *ix, status = 0;
    MUST(cudaMalloc(&a, 4000));
    MUST(cudaMalloc(&ix, 400));
    MUST(cudaMemset(ix, 0, 400));
    if (is(what, "graph")) {
        status = run_captured(a);
    } else if (is(what, "threads")) {
        std::thread one(launch_many, a), two(launch_many, a);
        one.join();
        two.join();
    } else if (is(what, "bad_freed")) {
        float *other;
        MUST(cudaMalloc(&other, 4000));
        MUST(cudaFree(other));
        scale<<<4, 256>>>(other, 2, 1000);
    } else {
        status = run(what, a, ix);
    }
    cudaDeviceSynchronize();
    return status;
}
