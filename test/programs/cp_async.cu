// SPDX-License-Identifier: MIT
// A double-buffered pipeline of cp.async copies into shared memory; plain copies before sm_80.
#include "program.h"

enum { THREADS = 64, CHUNK = 4 * THREADS };

__device__ void copy_async(uint4 *shared, const uint4 *global)
{
#if __CUDA_ARCH__ >= 800
    unsigned address = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global)
                 : "memory");
#else
    *shared = *global;
#endif
}

__device__ void commit(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the newest group of this thread is still on its way.
__device__ void wait_all_but_one(void)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group 1;" ::: "memory");
#endif
}

// Reverses each chunk. A group is committed for each turn, empty at the end, to keep the count.
__global__ void reverse_chunks(uint4 *out, const uint4 *in, int chunks)
{
    __shared__ uint4 stages[2][THREADS];
    int thread = threadIdx.x;
    if (blockIdx.x < chunks)
        copy_async(&stages[0][thread], &in[blockIdx.x * THREADS + thread]);
    commit();
    int turn = 0;
    for (int chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x, turn ^= 1) {
        int next = chunk + gridDim.x;
        if (next < chunks)
            copy_async(&stages[turn ^ 1][thread], &in[next * THREADS + thread]);
        commit();
        wait_all_but_one();
        __syncthreads();
        uint4 words = stages[turn][THREADS - 1 - thread];
        out[chunk * THREADS + thread] = make_uint4(words.w, words.z, words.y, words.x);
        __syncthreads();
    }
}

int main(int argc, char **argv)
{
    long chunks = 30, blocks = 4, repeats = 1;
    program_arguments(argc, argv, {{"chunks", &chunks, 1, 1 << 20}, {"blocks", &blocks, 1, 65535},
                                   {"repeats", &repeats, 1, 100000}});
    std::vector<unsigned> in = program_numbers<unsigned>(chunks * CHUNK, 0, 1 << 30, 1);
    std::vector<unsigned> expected(in);
    for (long chunk = 0; chunk < chunks; chunk++)
        std::reverse(&expected[chunk * CHUNK], &expected[chunk * CHUNK] + CHUNK);
    unsigned *device_in = program_upload(in), *device_out = program_allocate<unsigned>(in.size());

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        reverse_chunks<<<blocks, THREADS>>>((uint4 *)device_out, (uint4 *)device_in, chunks);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, in.size());
    program_free(device_in, device_out);
    return program_result("cp_async", program_compare(out, expected));
}
