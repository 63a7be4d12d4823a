// SPDX-License-Identifier: MIT
// A graph captured from two streams, with copies and a fork and join, launched again and again.
#include "program.h"

__global__ void scale(unsigned *data, unsigned factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        data[i] *= factor;
}

__global__ void add(unsigned *sum, const unsigned *a, const unsigned *b, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += a[i] + b[i];
}

struct buffers {
    unsigned *in, *a, *b, *sum;
};

// One stream computes 3 * in, the other 5 * in; their sum is added to what is there.
static cudaGraph_t capture(const struct buffers *buffers, int n)
{
    cudaGraph_t graph;
    cudaStream_t main_stream, side_stream;
    cudaEvent_t fork, join;
    size_t bytes = n * sizeof(unsigned);
    unsigned blocks = program_blocks(n, 128);
    CUDA_TRY(cudaStreamCreate(&main_stream));
    CUDA_TRY(cudaStreamCreate(&side_stream));
    CUDA_TRY(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CUDA_TRY(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));

    CUDA_TRY(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
    CUDA_TRY(cudaEventRecord(fork, main_stream));
    CUDA_TRY(cudaStreamWaitEvent(side_stream, fork, 0));
    CUDA_TRY(cudaMemcpyAsync(buffers->a, buffers->in, bytes, cudaMemcpyDeviceToDevice,
                             main_stream));
    scale<<<blocks, 128, 0, main_stream>>>(buffers->a, 3, n);
    CUDA_TRY(cudaMemcpyAsync(buffers->b, buffers->in, bytes, cudaMemcpyDeviceToDevice,
                             side_stream));
    scale<<<blocks, 128, 0, side_stream>>>(buffers->b, 5, n);
    CUDA_TRY(cudaEventRecord(join, side_stream));
    CUDA_TRY(cudaStreamWaitEvent(main_stream, join, 0));
    add<<<blocks, 128, 0, main_stream>>>(buffers->sum, buffers->a, buffers->b, n);
    CUDA_TRY(cudaStreamEndCapture(main_stream, &graph));

    CUDA_TRY(cudaEventDestroy(fork));
    CUDA_TRY(cudaEventDestroy(join));
    CUDA_TRY(cudaStreamDestroy(main_stream));
    CUDA_TRY(cudaStreamDestroy(side_stream));
    return graph;
}

int main(int argc, char **argv)
{
    long n = 1000, launches = 3;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"launches", &launches, 1, 1000000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1), expected(n);
    for (long i = 0; i < n; i++)
        expected[i] = in[i] * 8 * (unsigned)launches;
    struct buffers buffers = {program_upload(in), program_allocate<unsigned>(n),
                              program_allocate<unsigned>(n), program_allocate<unsigned>(n)};
    CUDA_TRY(cudaMemset(buffers.sum, 0, n * sizeof(unsigned)));
    cudaGraph_t graph = capture(&buffers, n);
    cudaGraphExec_t executable;
    cudaStream_t stream;
    CUDA_TRY(cudaStreamCreate(&stream));
    CUDA_TRY(cudaGraphInstantiate(&executable, graph, 0));

    double start = program_start();
    for (long launch = 0; launch < launches; launch++)
        CUDA_TRY(cudaGraphLaunch(executable, stream));
    CUDA_TRY(cudaStreamSynchronize(stream));
    program_stop(start);

    std::vector<unsigned> sum = program_download(buffers.sum, n);
    CUDA_TRY(cudaGraphExecDestroy(executable));
    CUDA_TRY(cudaGraphDestroy(graph));
    CUDA_TRY(cudaStreamDestroy(stream));
    program_free(buffers.in, buffers.a, buffers.b, buffers.sum);
    return program_result("graph_capture", program_compare(sum, expected));
}
