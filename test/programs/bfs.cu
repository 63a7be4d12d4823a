// SPDX-License-Identifier: MIT
// Breadth-first search by frontiers: data-dependent launches, compare-and-swap to claim a vertex.
#include "random_csr.h"

__global__ void expand(int *distances, const int *starts, const int *neighbours,
                       const int *frontier, int frontier_size, int *next, int *next_size, int level)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= frontier_size)
        return;
    int vertex = frontier[i];
    for (int edge = starts[vertex]; edge < starts[vertex + 1]; edge++)
        if (atomicCAS(&distances[neighbours[edge]], -1, level) == -1)
            next[atomicAdd(next_size, 1)] = neighbours[edge];
}

struct device_graph {
    int *starts, *neighbours, *distances, *queues[2], *next_size;
};

static void search(const struct device_graph *graph, long vertices)
{
    int size = 1, zero = 0;
    CUDA_TRY(cudaMemset(graph->distances, -1, vertices * sizeof(int)));
    CUDA_TRY(cudaMemcpy(graph->distances, &zero, sizeof zero, cudaMemcpyHostToDevice));
    CUDA_TRY(cudaMemcpy(graph->queues[0], &zero, sizeof zero, cudaMemcpyHostToDevice));
    for (int level = 1; size > 0; level++) {
        CUDA_TRY(cudaMemset(graph->next_size, 0, sizeof size));
        expand<<<program_blocks(size, 128), 128>>>(
            graph->distances, graph->starts, graph->neighbours, graph->queues[(level - 1) % 2],
            size, graph->queues[level % 2], graph->next_size, level);
        CUDA_TRY(cudaMemcpy(&size, graph->next_size, sizeof size, cudaMemcpyDeviceToHost));
    }
}

static std::vector<int> reference(const random_csr &graph)
{
    std::vector<int> distances(graph.starts.size() - 1, -1), queue(1, 0);
    distances[0] = 0;
    for (size_t head = 0; head < queue.size(); head++) {
        int vertex = queue[head];
        for (int edge = graph.starts[vertex]; edge < graph.starts[vertex + 1]; edge++)
            if (distances[graph.columns[edge]] < 0) {
                distances[graph.columns[edge]] = distances[vertex] + 1;
                queue.push_back(graph.columns[edge]);
            }
    }
    return distances;
}

int main(int argc, char **argv)
{
    long vertices = 1500, mean = 4, repeats = 1;
    program_arguments(argc, argv, {{"vertices", &vertices, 1, 1 << 24},
                                   {"edges_per_vertex", &mean, 1, 60},
                                   {"repeats", &repeats, 1, 100000}});
    random_csr host = random_csr_make(vertices, mean, 2);
    struct device_graph graph = {
        program_upload(host.starts),
        program_upload(host.columns),
        program_allocate<int>(vertices),
        {program_allocate<int>(vertices), program_allocate<int>(vertices)},
        program_allocate<int>(1)};

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        search(&graph, vertices);
    program_stop(start);

    std::vector<int> distances = program_download(graph.distances, vertices);
    program_free(graph.starts, graph.neighbours, graph.distances, graph.queues[0], graph.queues[1],
                 graph.next_size);
    return program_result("bfs", program_compare(distances, reference(host)));
}
