// SPDX-License-Identifier: MIT
// Streams: order within and between them, events, functions of the host, what the legacy stream waits for.
#include <stdatomic.h>

#include "driver_check.h"

enum { N = 256 };
static CUfunction step;

static void push(CUstream stream, CUdeviceptr p, unsigned k, unsigned turns)
{
    TRY(LAUNCH(step, N / 64, 64, 0, stream, &p, &k, &turns));
}

static unsigned first(CUdeviceptr p)
{
    unsigned value;
    TRY(cuMemcpyDtoH_v2(&value, p, 4));
    return value;
}

static void order_within(void)
{
    CUstream stream;
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr p = check_zeroed(N * 4);
    TRY(cuCtxSynchronize());
    unsigned expected = 0;
    for (unsigned k = 1; k <= 20; k++) {
        push(stream, p, k, 50);
        expected = expected * 3 + k;
    }
    static unsigned out[N];
    TRY(cuMemcpyDtoHAsync_v2(out, p, sizeof out, stream));
    TRY(cuStreamSynchronize(stream));
    EQUAL(out[0], expected);
    EQUAL(out[N - 1], expected);
    TRY(cuMemsetD32Async(p, 5, N, stream));
    push(stream, p, 1, 0);
    TRY(cuStreamSynchronize(stream));
    EXPECT(CUDA_SUCCESS, cuStreamQuery(stream));
    EQUAL(first(p), 16);
    TRY(cuMemFree_v2(p));
    TRY(cuStreamDestroy_v2(stream));
}

// One stream waits for an event of another.
static void order_between(void)
{
    CUstream a, b;
    CUevent event, begin, end;
    TRY(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    TRY(cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, 0));
    TRY(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    TRY(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    TRY(cuEventCreate(&end, CU_EVENT_DEFAULT));
    EXPECT(CUDA_SUCCESS, cuEventQuery(event));  // never recorded: complete
    CUdeviceptr p = check_zeroed(N * 4);
    TRY(cuCtxSynchronize());
    unsigned expected = 0;
    TRY(cuEventRecord(begin, a));
    for (unsigned k = 1; k <= 10; k++) {
        push(a, p, k, 200);
        TRY(cuEventRecord(event, a));
        TRY(cuStreamWaitEvent(b, event, 0));
        push(b, p, k + 100, 200);
        TRY(cuEventRecord(event, b));
        TRY(cuStreamWaitEvent(a, event, 0));
        expected = (expected * 3 + k) * 3 + k + 100;
    }
    TRY(cuEventRecord(end, a));
    TRY(cuEventSynchronize(end));
    EXPECT(CUDA_SUCCESS, cuEventQuery(end));
    EQUAL(first(p), expected);
    float ms = -1;
    TRY(cuEventElapsedTime(&ms, begin, end));
    CHECK(ms > 0 && ms < 60000);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, event, end));
    TRY(cuEventDestroy_v2(event));
    TRY(cuEventDestroy_v2(begin));
    TRY(cuEventDestroy_v2(end));
    TRY(cuMemFree_v2(p));
    TRY(cuStreamDestroy_v2(a));
    TRY(cuStreamDestroy_v2(b));
}

// The legacy stream waits for blocking streams, and they for it.
static void legacy(void)
{
    CUstream a, b;
    TRY(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    TRY(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    CUdeviceptr p = check_zeroed(N * 4);
    unsigned expected = 0;
    for (unsigned k = 1; k <= 10; k++) {
        push(a, p, k, 100);
        push(NULL, p, k + 1, 100);
        push(b, p, k + 2, 100);
        push(CU_STREAM_LEGACY, p, k + 3, 100);
        for (unsigned j = 0; j < 4; j++)
            expected = expected * 3 + k + j;
    }
    EQUAL(first(p), expected);
    TRY(cuMemFree_v2(p));
    TRY(cuStreamDestroy_v2(a));
    TRY(cuStreamDestroy_v2(b));
}

static atomic_uint calls;
static CUdeviceptr host_memory;

static void from_stream(void *arg)
{
    // Runs after the kernel before it and before the next.
    unsigned *p = arg;
    if (p[0] == 1)
        p[0] = 100;
    atomic_fetch_add(&calls, 1);
}

static void old_callback(CUstream stream, CUresult status, void *arg)
{
    if (status == CUDA_SUCCESS && arg == &calls)
        atomic_fetch_add(&calls, 10);
}

static void host_functions(void)
{
    CUstream stream;
    unsigned *p;
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemHostAlloc((void **)&p, N * 4, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(p, 0, N * 4);
    TRY(cuMemHostGetDevicePointer_v2(&host_memory, p, 0));
    push(stream, host_memory, 1, 100);
    TRY(cuLaunchHostFunc(stream, from_stream, p));
    push(stream, host_memory, 1, 100);
    TRY(cuStreamAddCallback(stream, old_callback, &calls, 0));
    TRY(cuStreamSynchronize(stream));
    EQUAL(p[0], 301);
    EQUAL(p[1], 4);
    EQUAL(atomic_load(&calls), 11);
    TRY(cuMemFreeHost(p));
    TRY(cuStreamDestroy_v2(stream));
}

static void pools(void)
{
    CUstream stream;
    CUdeviceptr p, q;
    unsigned value = 0;
    TRY(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    TRY(cuMemAllocAsync(&p, N * 4, stream));
    TRY(cuMemsetD32Async(p, 7, N, stream));
    push(stream, p, 2, 100);
    TRY(cuMemcpyDtoHAsync_v2(&value, p, 4, stream));
    TRY(cuMemFreeAsync(p, stream));
    TRY(cuMemAllocAsync(&q, N * 4, stream));
    push(stream, q, 2, 100);
    TRY(cuMemFreeAsync(q, stream));
    TRY(cuStreamSynchronize(stream));
    EQUAL(value, 23);
    TRY(cuStreamDestroy_v2(stream));
}

int main(void)
{
    CUcontext context = check_context();
    CUmodule module = check_module("basic.ptx");
    step = check_function(module, "step");
    order_within();
    order_between();
    legacy();
    host_functions();
    pools();
    TRY(cuModuleUnload(module));
    TRY(cuCtxDestroy_v2(context));
    return check_end("driver_streams");
}
