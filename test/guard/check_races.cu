// SPDX-License-Identifier: MIT
// Frees in the order of a stream beside a kernel in another one, which waits until the host lets it go:
// check_races bad|good NAME, or list. Whatever may give the two an order is right.
#include <atomic>

#include "check_cases.cuh"

enum { COUNT = 1000 };

static __global__ void fill(int *a, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[i] = i;
}

// Which element depends on memory.
static __global__ void fill_by(int *a, const int *which, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        a[which[i]] = i;
}

static std::atomic<bool> open;

static void hold(void *)
{
    while (!open)
        usleep(1000);
}

static cudaStream_t s, other;
static int *buffer;

// The stream s waits, and has a kernel behind that.
static void start(unsigned flags)
{
    NEED(cudaStreamCreateWithFlags(&s, flags));
    NEED(cudaStreamCreateWithFlags(&other, flags));
    NEED(cudaMallocAsync(&buffer, COUNT * sizeof *buffer, s));
    // The driver may load a kernel when it is first launched, and wait for all streams then.
    fill<<<1, 1, 0, s>>>(buffer, 0);
    NEED(cudaStreamSynchronize(s));
    NEED(cudaLaunchHostFunc(s, hold, nullptr));
    fill<<<4, 256, 0, s>>>(buffer, COUNT);
}

static void end(void)
{
    open = true;
    NEED(cudaStreamSynchronize(s));
    NEED(cudaStreamSynchronize(other));
}

static void other_stream(bool bad)
{
    start(cudaStreamDefault);
    NEED(cudaFreeAsync(buffer, bad ? other : s));
    end();
}

static void non_blocking(bool bad)
{
    start(cudaStreamNonBlocking);
    NEED(cudaFreeAsync(buffer, bad ? other : s));
    end();
}

// The legacy stream waits for all streams but those that are non-blocking.
static void legacy(bool bad)
{
    start(bad ? cudaStreamNonBlocking : cudaStreamDefault);
    NEED(cudaFreeAsync(buffer, 0));
    end();
}

static void event(bool bad)
{
    cudaEvent_t e;
    start(cudaStreamNonBlocking);
    NEED(cudaEventCreate(&e));
    NEED(cudaEventRecord(e, s));
    if (!bad)
        NEED(cudaStreamWaitEvent(other, e));
    NEED(cudaFreeAsync(buffer, other));
    end();
}

// The event is from before the launch.
static void old_event(bool bad)
{
    cudaEvent_t e;
    start(cudaStreamNonBlocking);
    NEED(cudaEventCreate(&e));
    if (bad)
        NEED(cudaEventRecord(e, s));
    fill<<<4, 256, 0, s>>>(buffer, COUNT);
    if (!bad)
        NEED(cudaEventRecord(e, s));
    NEED(cudaStreamWaitEvent(other, e));
    NEED(cudaFreeAsync(buffer, other));
    end();
}

// The buffer is not the one that is freed, or no thread gets to it.
static void another_buffer(bool bad)
{
    int *b;
    start(cudaStreamNonBlocking);
    NEED(cudaMallocAsync(&b, COUNT * sizeof *b, other));
    fill<<<4, 256, 0, s>>>(b, bad ? 1 : 0);
    NEED(cudaFreeAsync(b, other));
    end();
}

// --- what is never an error --------------------------------------------------------------------------------

static void after_a_wait(bool)
{
    start(cudaStreamNonBlocking);
    open = true;
    NEED(cudaStreamSynchronize(s));
    NEED(cudaFreeAsync(buffer, other));
    end();
}

static void after_a_function(bool)
{
    start(cudaStreamNonBlocking);
    NEED(cudaLaunchHostFunc(s, hold, nullptr));
    NEED(cudaFreeAsync(buffer, other));
    end();
}

// A kernel in the other stream may wait for the first one in its own way.
static void beside_an_unknown_kernel(bool)
{
    int *a, *which;
    NEED(cudaMalloc(&a, COUNT * sizeof *a));
    NEED(cudaMalloc(&which, COUNT * sizeof *which));
    NEED(cudaMemset(which, 0, COUNT * sizeof *which));
    start(cudaStreamNonBlocking);
    fill_by<<<4, 256, 0, other>>>(a, which, COUNT);
    NEED(cudaFreeAsync(buffer, other));
    end();
}

static __global__ void wait_for(const volatile int *flag)
{
    while (!*flag)
        ;
}

static __global__ void set(int *flag)
{
    *flag = 1;
}

static void beside_a_waiting_kernel(bool)
{
    int *flag;
    NEED(cudaMalloc(&flag, sizeof *flag));
    NEED(cudaMemset(flag, 0, sizeof *flag));
    start(cudaStreamNonBlocking);
    set<<<1, 1, 0, s>>>(flag);
    wait_for<<<1, 1, 0, other>>>(flag);
    NEED(cudaFreeAsync(buffer, other));
    end();
}

static void in_pinned_memory(bool)
{
    int *host;
    NEED(cudaMallocHost(&host, COUNT * sizeof *host));
    start(cudaStreamNonBlocking);
    fill<<<4, 256, 0, s>>>(host, COUNT);
    NEED(cudaFreeAsync(buffer, other));
    end();
}

static const check_case cases[] = {
    {"other_stream", other_stream, "heap-use-after-free"},
    {"non_blocking", non_blocking, "heap-use-after-free"},
    {"legacy", legacy, "heap-use-after-free"},
    {"event", event, "heap-use-after-free"},
    {"old_event", old_event, "heap-use-after-free"},
    {"another_buffer", another_buffer, "heap-use-after-free"},
    {"after_a_wait", after_a_wait, ""},
    {"after_a_function", after_a_function, ""},
    {"beside_an_unknown_kernel", beside_an_unknown_kernel, ""},
    {"beside_a_waiting_kernel", beside_a_waiting_kernel, ""},
    {"in_pinned_memory", in_pinned_memory, ""},
};

int main(int argc, char **argv)
{
    return check_main(argc, argv, cases);
}
