// SPDX-License-Identifier: MIT
// Several devices through the CUDA runtime: a thread for each, variables of each, copies and kernels between
// them. Says "all right", or what was wrong.
#include <cstring>
#include <thread>
#include <vector>

#include "cuda_try.h"

enum { COUNT = 4096 };

__device__ int offset = 7;

__global__ void add_offset(int *out, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + offset;
}

static void properties(int devices)
{
    cudaDeviceProp p, q;
    int current = -1;
    CHECK(devices == 3);
    TRY(cudaGetDevice(&current));
    CHECK(current == 0);
    TRY(cudaGetDeviceProperties(&p, 0));
    TRY(cudaGetDeviceProperties(&q, 2));
    CHECK(memcmp(&p.uuid, &q.uuid, sizeof p.uuid) != 0 && p.pciBusID != q.pciBusID);
    CHECK(cudaSetDevice(devices) == cudaErrorInvalidDevice);
    CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
    TRY(cudaGetDevice(&current));
    CHECK(current == 0);
}

// Each thread has its own device, and finds its own offset there.
static void work(int device, std::vector<int> *result)
{
    int *in, *out, mine = 100 * (device + 1), now = -1;
    std::vector<int> numbers(COUNT);
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i;
    TRY(cudaSetDevice(device));
    TRY(cudaGetDevice(&now));
    CHECK(now == device);
    TRY(cudaMemcpyToSymbol(offset, &mine, sizeof mine));
    TRY(cudaMalloc(&in, COUNT * sizeof *in));
    TRY(cudaMalloc(&out, COUNT * sizeof *out));
    cudaPointerAttributes a;
    TRY(cudaPointerGetAttributes(&a, in));
    CHECK(a.device == device && a.type == cudaMemoryTypeDevice);
    TRY(cudaMemcpy(in, numbers.data(), COUNT * sizeof *in, cudaMemcpyHostToDevice));
    add_offset<<<COUNT / 128, 128>>>(out, in, COUNT);
    TRY(cudaGetLastError());
    result->resize(COUNT);
    TRY(cudaMemcpy(result->data(), out, COUNT * sizeof *out, cudaMemcpyDeviceToHost));
    TRY(cudaFree(in));
    TRY(cudaFree(out));
}

static void side_by_side(int devices)
{
    std::vector<std::vector<int>> results(devices);
    std::vector<std::thread> threads;
    for (int i = 0; i < devices; i++)
        threads.emplace_back(work, i, &results[i]);
    for (auto &t : threads)
        t.join();
    for (int d = 0; d < devices; d++)
        for (int i = 0; i < COUNT; i++)
            CHECK(results[d][i] == i + 100 * (d + 1));
}

static void together(int devices)
{
    int can = 0, *p[3], first[COUNT], back[COUNT];
    cudaStream_t s;
    TRY(cudaDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 1);
    for (int i = 0; i < devices; i++) {
        TRY(cudaSetDevice(i));
        TRY(cudaMalloc(&p[i], sizeof back));
        TRY(cudaMemset(p[i], 0, sizeof back));
        for (int j = 0; j < devices; j++)
            if (i != j)
                TRY(cudaDeviceEnablePeerAccess(j, 0));
    }
    CHECK(cudaDeviceEnablePeerAccess(0, 0) == cudaErrorPeerAccessAlreadyEnabled);
    cudaGetLastError();
    for (int i = 0; i < COUNT; i++)
        first[i] = 3 * i;
    TRY(cudaMemcpy(p[0], first, sizeof first, cudaMemcpyDefault));
    TRY(cudaMemcpyPeer(p[1], 1, p[0], 0, sizeof first));
    TRY(cudaSetDevice(2));
    TRY(cudaStreamCreate(&s));
    // On the third, from the second's memory to the first's.
    add_offset<<<COUNT / 128, 128, 0, s>>>(p[0], p[1], COUNT);
    TRY(cudaGetLastError());
    TRY(cudaMemcpyPeerAsync(p[2], 2, p[0], 0, sizeof first, s));
    TRY(cudaMemcpyAsync(back, p[2], sizeof back, cudaMemcpyDeviceToHost, s));
    TRY(cudaStreamSynchronize(s));
    for (int i = 0; i < COUNT; i++)
        CHECK(back[i] == 3 * i + 300);
    TRY(cudaSetDevice(0));
    add_offset<<<1, 1, 0, s>>>(p[0], p[1], 1);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    TRY(cudaDeviceDisablePeerAccess(1));
    CHECK(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
    cudaGetLastError();
    TRY(cudaStreamDestroy(s));
    for (int i = 0; i < devices; i++)
        TRY(cudaFree(p[i]));
}

// What is reset is gone on that device alone.
static void reset()
{
    int *p, *q, value = 5;
    cudaPointerAttributes a;
    TRY(cudaSetDevice(1));
    TRY(cudaMalloc(&q, sizeof *q));
    TRY(cudaSetDevice(0));
    TRY(cudaMalloc(&p, sizeof *p));
    TRY(cudaMemcpy(q, &value, sizeof value, cudaMemcpyDefault));
    TRY(cudaDeviceReset());
    value = 0;
    TRY(cudaSetDevice(1));
    TRY(cudaMemcpy(&value, q, sizeof value, cudaMemcpyDefault));
    CHECK(value == 5);
    CHECK(cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeUnregistered);
    TRY(cudaFree(q));
}

int main()
{
    int devices = 0;
    TRY(cudaGetDeviceCount(&devices));
    properties(devices);
    side_by_side(devices);
    together(devices);
    reset();
    puts("all right");
    return 0;
}
