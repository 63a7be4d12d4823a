// SPDX-License-Identifier: MIT
// Thread block clusters: blocks that read and add to each other's shared memory, from sm_90.
#include <cooperative_groups.h>

#include "program.h"

namespace cg = cooperative_groups;

enum { THREADS = 64, CLUSTER = 4 };

// out: each element plus its counterpart in the next block; sums: one for each cluster.
__global__ void exchange(unsigned *out, unsigned *sums, const unsigned *in)
{
#if __CUDA_ARCH__ >= 900
    __shared__ unsigned mine[THREADS], sum;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned i = blockIdx.x * THREADS + threadIdx.x, rank = cluster.block_rank();
    mine[threadIdx.x] = in[i];
    if (threadIdx.x == 0)
        sum = 0;
    cluster.sync();
    const unsigned *other = cluster.map_shared_rank(mine, (rank + 1) % CLUSTER);
    out[i] = mine[threadIdx.x] + other[threadIdx.x];
    atomicAdd(cluster.map_shared_rank(&sum, 0), mine[threadIdx.x]);
    // No block may end, nor the sum be read, before all have done with the others' memory.
    cluster.sync();
    if (rank == 0 && threadIdx.x == 0)
        sums[blockIdx.x / CLUSTER] = sum;
#endif
}

static void launch(unsigned *out, unsigned *sums, const unsigned *in, unsigned clusters)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = CLUSTER;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(clusters * CLUSTER);
    configuration.blockDim = dim3(THREADS);
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    CUDA_TRY(cudaLaunchKernelEx(&configuration, exchange, out, sums, in));
}

int main(int argc, char **argv)
{
    long clusters = 4, repeats = 1;
    program_arguments(argc, argv,
                      {{"clusters", &clusters, 1, 1 << 18}, {"repeats", &repeats, 1, 100000}});
    program_require("cluster", exchange, 90);
    size_t per_cluster = THREADS * CLUSTER, count = clusters * per_cluster;
    std::vector<unsigned> in = program_numbers<unsigned>(count, 0, 1 << 20, 1);
    std::vector<unsigned> expected(count), expected_sums(clusters);
    for (size_t i = 0; i < count; i++) {
        size_t first = i / per_cluster * per_cluster;
        expected[i] = in[i] + in[first + (i - first + THREADS) % per_cluster];
        expected_sums[i / per_cluster] += in[i];
    }
    unsigned *device_in = program_upload(in), *out = program_allocate<unsigned>(count);
    unsigned *sums = program_allocate<unsigned>(clusters);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        launch(out, sums, device_in, clusters);
    program_stop(start);

    long errors = program_compare(program_download(out, count), expected) +
                  program_compare(program_download(sums, clusters), expected_sums);
    program_free(device_in, out, sums);
    return program_result("cluster", errors);
}
