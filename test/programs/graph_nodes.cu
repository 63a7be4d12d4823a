// SPDX-License-Identifier: MIT
// A graph of explicit nodes: memset, kernels, a copy, a host function; one kernel is updated.
#include "program.h"

__global__ void accumulate(unsigned *sum, const unsigned *in, unsigned factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] += in[i] * factor;
}

static void count_call(void *calls)
{
    ++*(int *)calls;
}

struct plan {
    unsigned *in, *sum, *host_sum; // the last in page-locked memory
    int n, calls;
    cudaGraph_t graph;
    cudaGraphNode_t first_kernel;
};

// The driver copies the arguments before the function that names them returns.
static void add_kernel(struct plan *plan, cudaGraphNode_t *node, cudaGraphNode_t after,
                       cudaGraphExec_t executable, unsigned factor)
{
    void *arguments[] = {&plan->sum, &plan->in, &factor, &plan->n};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)accumulate;
    parameters.gridDim = dim3(program_blocks(plan->n, 128));
    parameters.blockDim = dim3(128);
    parameters.kernelParams = arguments;
    if (executable)
        CUDA_TRY(cudaGraphExecKernelNodeSetParams(executable, *node, &parameters));
    else
        CUDA_TRY(cudaGraphAddKernelNode(node, plan->graph, &after, 1, &parameters));
}

// sum = 0; sum += 2 * in; sum += 3 * in; then sum is copied to the host, and a host function runs.
static void plan_build(struct plan *plan)
{
    cudaGraphNode_t clear, second_kernel, copy, tell;
    cudaMemsetParams memset_parameters = {};
    cudaHostNodeParams host_parameters = {count_call, &plan->calls};
    memset_parameters.dst = plan->sum;
    memset_parameters.elementSize = sizeof(unsigned);
    memset_parameters.width = plan->n;
    memset_parameters.height = 1;
    CUDA_TRY(cudaGraphCreate(&plan->graph, 0));
    CUDA_TRY(cudaGraphAddMemsetNode(&clear, plan->graph, nullptr, 0, &memset_parameters));
    add_kernel(plan, &plan->first_kernel, clear, nullptr, 2);
    add_kernel(plan, &second_kernel, plan->first_kernel, nullptr, 3);
    CUDA_TRY(cudaGraphAddMemcpyNode1D(&copy, plan->graph, &second_kernel, 1, plan->host_sum,
                                      plan->sum, plan->n * sizeof(unsigned),
                                      cudaMemcpyDeviceToHost));
    CUDA_TRY(cudaGraphAddHostNode(&tell, plan->graph, &copy, 1, &host_parameters));
}

static long check(const struct plan *plan, const std::vector<unsigned> &in, unsigned factor)
{
    long errors = 0;
    for (size_t i = 0; i < in.size(); i++)
        errors += program_wrong(i, plan->host_sum[i], in[i] * factor);
    return errors;
}

int main(int argc, char **argv)
{
    long n = 1000, launches = 3;
    program_arguments(argc, argv,
                      {{"elements", &n, 1, 1 << 28}, {"launches", &launches, 1, 1000000}});
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1);
    struct plan plan = {};
    plan.n = n;
    plan.in = program_upload(in);
    plan.sum = program_allocate<unsigned>(n);
    CUDA_TRY(cudaMallocHost(&plan.host_sum, n * sizeof(unsigned)));
    plan_build(&plan);
    cudaGraphExec_t executable;
    CUDA_TRY(cudaGraphInstantiate(&executable, plan.graph, 0));

    double start = program_start();
    for (long launch = 0; launch < launches; launch++)
        CUDA_TRY(cudaGraphLaunch(executable, 0));
    program_stop(start);
    long errors = check(&plan, in, 5);

    add_kernel(&plan, &plan.first_kernel, nullptr, executable, 10);
    CUDA_TRY(cudaGraphLaunch(executable, 0));
    CUDA_TRY(cudaDeviceSynchronize());
    errors += check(&plan, in, 13) + program_wrong(0, (long)plan.calls, launches + 1);

    CUDA_TRY(cudaGraphExecDestroy(executable));
    CUDA_TRY(cudaGraphDestroy(plan.graph));
    CUDA_TRY(cudaFreeHost(plan.host_sum));
    program_free(plan.in, plan.sum);
    return program_result("graph_nodes", errors);
}
