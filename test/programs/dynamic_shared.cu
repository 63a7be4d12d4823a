// SPDX-License-Identifier: MIT
// Dynamic shared memory holding two arrays, past the default limit for large chunks: sorts by rank.
#include "program.h"

enum { THREADS = 128 };

// Equal values keep their order, so that no two have the same rank.
__global__ void sort_chunks(unsigned *out, const unsigned *in, int chunk)
{
    extern __shared__ unsigned memory[];
    unsigned *values = memory, *sorted = memory + chunk;
    size_t first = (size_t)blockIdx.x * chunk;
    for (int i = threadIdx.x; i < chunk; i += THREADS)
        values[i] = in[first + i];
    __syncthreads();
    for (int i = threadIdx.x; i < chunk; i += THREADS) {
        unsigned mine = values[i];
        int rank = 0;
        for (int j = 0; j < chunk; j++)
            rank += values[j] < mine || (values[j] == mine && j < i);
        sorted[rank] = mine;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < chunk; i += THREADS)
        out[first + i] = sorted[i];
}

int main(int argc, char **argv)
{
    long chunk = 150, chunks = 4, repeats = 1;
    program_arguments(argc, argv, {{"chunk", &chunk, 1, 8192}, {"chunks", &chunks, 1, 65536},
                                   {"repeats", &repeats, 1, 10000}});
    int bytes = 2 * (int)chunk * (int)sizeof(unsigned);
    if (bytes > program_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin))
        program_skip("dynamic_shared", "too little shared memory");
    CUDA_TRY(cudaFuncSetAttribute(sort_chunks, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    std::vector<unsigned> in = program_numbers<unsigned>(chunk * chunks, 0, 5000, 1);
    unsigned *device_in = program_upload(in), *device_out = program_allocate<unsigned>(in.size());

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        sort_chunks<<<chunks, THREADS, bytes>>>(device_out, device_in, chunk);
    program_stop(start);

    std::vector<unsigned> out = program_download(device_out, in.size());
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(chunks, 32)) {
        std::sort(in.begin() + i * chunk, in.begin() + (i + 1) * chunk);
        for (size_t j = i * chunk; j < (i + 1) * chunk; j++)
            errors += program_wrong(j, out[j], in[j]);
    }
    return program_result("dynamic_shared", errors);
}
