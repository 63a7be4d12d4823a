// SPDX-License-Identifier: MIT
// Bitonic sort: long strides by one launch each over global memory, short ones in shared memory.
#include "program.h"

enum { THREADS = 128, CHUNK = 2 * THREADS };

// Element pair of a thread at a stride: the index with that bit clear; its partner has it set.
__device__ unsigned pair_start(unsigned thread, unsigned stride)
{
    return 2 * thread - (thread & (stride - 1));
}

__device__ void order(unsigned *low, unsigned *high, bool ascending)
{
    unsigned a = *low, b = *high;
    if ((a > b) == ascending) {
        *low = b;
        *high = a;
    }
}

__global__ void merge_global(unsigned *data, unsigned size, unsigned stride)
{
    unsigned i = pair_start(blockIdx.x * THREADS + threadIdx.x, stride);
    order(&data[i], &data[i + stride], !(i & size));
}

// All strides of one chunk for the sorted sizes from first_size to last_size.
__global__ void merge_shared(unsigned *data, unsigned first_size, unsigned last_size)
{
    __shared__ unsigned chunk[CHUNK];
    unsigned first = blockIdx.x * CHUNK;
    for (int i = threadIdx.x; i < CHUNK; i += THREADS)
        chunk[i] = data[first + i];
    for (unsigned size = first_size; size <= last_size; size *= 2)
        for (unsigned stride = min(size, CHUNK) / 2; stride > 0; stride /= 2) {
            __syncthreads();
            unsigned i = pair_start(threadIdx.x, stride);
            order(&chunk[i], &chunk[i + stride], !((first + i) & size));
        }
    __syncthreads();
    for (int i = threadIdx.x; i < CHUNK; i += THREADS)
        data[first + i] = chunk[i];
}

static void sort(unsigned *data, unsigned n)
{
    unsigned blocks = n / CHUNK;
    merge_shared<<<blocks, THREADS>>>(data, 2, CHUNK);
    for (unsigned size = 2 * CHUNK; size <= n; size *= 2) {
        for (unsigned stride = size / 2; stride >= CHUNK; stride /= 2)
            merge_global<<<blocks, THREADS>>>(data, size, stride);
        merge_shared<<<blocks, THREADS>>>(data, size, size);
    }
}

// Equal for two arrays that hold the same numbers, whatever their order.
static uint64_t fingerprint(const std::vector<unsigned> &numbers)
{
    uint64_t sum = 0;
    for (unsigned number : numbers) {
        program_random random = {number};
        sum += (uint64_t)program_next(&random) * program_next(&random);
    }
    return sum;
}

int main(int argc, char **argv)
{
    long exponent = 10, repeats = 1;
    program_arguments(argc, argv,
                      {{"exponent", &exponent, 8, 28}, {"repeats", &repeats, 1, 10000}});
    unsigned n = 1u << exponent;
    std::vector<unsigned> in = program_numbers<unsigned>(n, 0, 1 << 30, 1);
    unsigned *device_in = program_upload(in), *data = program_allocate<unsigned>(n);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemcpy(data, device_in, n * sizeof *data, cudaMemcpyDeviceToDevice));
        sort(data, n);
    }
    program_stop(start);

    std::vector<unsigned> out = program_download(data, n);
    program_free(device_in, data);
    long errors = program_wrong(0, fingerprint(out), fingerprint(in));
    for (unsigned i = 1; i < n; i++)
        errors += out[i - 1] > out[i];
    return program_result("bitonic", errors);
}
