// SPDX-License-Identifier: MIT
// Copies and kernels that overlap in several streams, ordered by events, with a host callback.
#include "program.h"

enum { STREAMS = 4 };

__global__ void mix(unsigned *out, const unsigned *in, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned value = in[i];
    for (int round = 0; round < rounds; round++)
        value = value * 1664525u + 1013904223u;
    out[i] = value;
}

__global__ void combine(unsigned *out, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned sum = 0;
    for (int part = 0; i < n && part < STREAMS; part++)
        sum += in[part * n + i];
    if (i < n)
        out[i] = sum;
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

struct lanes {
    cudaStream_t streams[STREAMS];
    cudaEvent_t begin, ready[STREAMS], end;
};

static void lanes_open(struct lanes *lanes)
{
    for (int i = 0; i < STREAMS; i++) {
        CUDA_TRY(cudaStreamCreateWithFlags(&lanes->streams[i], cudaStreamNonBlocking));
        CUDA_TRY(cudaEventCreateWithFlags(&lanes->ready[i], cudaEventDisableTiming));
    }
    CUDA_TRY(cudaEventCreate(&lanes->begin));
    CUDA_TRY(cudaEventCreate(&lanes->end));
}

static void lanes_close(struct lanes *lanes)
{
    for (int i = 0; i < STREAMS; i++) {
        CUDA_TRY(cudaStreamDestroy(lanes->streams[i]));
        CUDA_TRY(cudaEventDestroy(lanes->ready[i]));
    }
    CUDA_TRY(cudaEventDestroy(lanes->begin));
    CUDA_TRY(cudaEventDestroy(lanes->end));
}

// Stream 0 starts the others and waits for them; buffers holds in and mixed, STREAMS parts each.
static void run(struct lanes *lanes, unsigned *host_out, const unsigned *host_in,
                unsigned *buffers, int n, int rounds, int *calls)
{
    unsigned *mixed = buffers + STREAMS * n, *sums = mixed + STREAMS * n, blocks = (n + 127) / 128;
    size_t bytes = n * sizeof(unsigned);
    CUDA_TRY(cudaEventRecord(lanes->begin, lanes->streams[0]));
    for (int part = 0; part < STREAMS; part++) {
        cudaStream_t stream = lanes->streams[part];
        CUDA_TRY(cudaStreamWaitEvent(stream, lanes->begin, 0));
        CUDA_TRY(cudaMemcpyAsync(buffers + part * n, host_in + part * n, bytes,
                                 cudaMemcpyHostToDevice, stream));
        mix<<<blocks, 128, 0, stream>>>(mixed + part * n, buffers + part * n, n, rounds);
        CUDA_TRY(cudaEventRecord(lanes->ready[part], stream));
        CUDA_TRY(cudaStreamWaitEvent(lanes->streams[0], lanes->ready[part], 0));
    }
    combine<<<blocks, 128, 0, lanes->streams[0]>>>(sums, mixed, n);
    CUDA_TRY(cudaMemcpyAsync(host_out, sums, bytes, cudaMemcpyDeviceToHost, lanes->streams[0]));
    CUDA_TRY(cudaLaunchHostFunc(lanes->streams[0], count_call, calls));
    CUDA_TRY(cudaEventRecord(lanes->end, lanes->streams[0]));
}

static unsigned reference(const unsigned *in, long n, int rounds, size_t i)
{
    unsigned sum = 0;
    for (int part = 0; part < STREAMS; part++) {
        unsigned value = in[part * n + i];
        for (int round = 0; round < rounds; round++)
            value = value * 1664525u + 1013904223u;
        sum += value;
    }
    return sum;
}

int main(int argc, char **argv)
{
    long n = 500, rounds = 16, repeats = 2;
    program_arguments(argc, argv, {{"elements", &n, 1, 1 << 24}, {"rounds", &rounds, 1, 10000},
                                   {"repeats", &repeats, 1, 10000}});
    std::vector<unsigned> numbers = program_numbers<unsigned>(STREAMS * n, 0, 1 << 30, 1);
    unsigned *in, *out, *buffers = program_allocate<unsigned>((2 * STREAMS + 1) * n);
    CUDA_TRY(cudaMallocHost(&in, STREAMS * n * sizeof *in));
    CUDA_TRY(cudaMallocHost(&out, n * sizeof *out));
    memcpy(in, numbers.data(), STREAMS * n * sizeof *in);
    struct lanes lanes;
    lanes_open(&lanes);

    int calls = 0;
    float milliseconds = -1;
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        run(&lanes, out, in, buffers, n, rounds, &calls);
    CUDA_TRY(cudaEventSynchronize(lanes.end));
    program_stop(start);

    CUDA_TRY(cudaEventElapsedTime(&milliseconds, lanes.begin, lanes.end));
    long errors = program_wrong(0, (long)calls, repeats) + !(milliseconds >= 0);
    for (size_t i : program_sample(n, 1 + 1000000 / rounds))
        errors += program_wrong(i, out[i], reference(in, n, rounds, i));
    lanes_close(&lanes);
    CUDA_TRY(cudaFreeHost(in));
    CUDA_TRY(cudaFreeHost(out));
    program_free(buffers);
    return program_result("streams", errors);
}
