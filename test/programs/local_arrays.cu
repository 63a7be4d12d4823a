// SPDX-License-Identifier: MIT
// Arrays of each thread, indexed by data and passed by pointer: local memory and device calls.
#include "program.h"

enum { LENGTH = 24 };

__host__ __device__ __noinline__ void insert(int *sorted, int count, int value)
{
    int place = count;
    for (; place > 0 && sorted[place - 1] > value; place--)
        sorted[place] = sorted[place - 1];
    sorted[place] = value;
}

// The median, minus how often the most frequent last digit occurs.
__host__ __device__ int summarise(const int *values)
{
    int sorted[LENGTH];
    unsigned char digits[10] = {};
    for (int i = 0; i < LENGTH; i++) {
        insert(sorted, i, values[i]);
        digits[values[i] % 10]++;
    }
    int most = 0;
    for (int digit = 0; digit < 10; digit++)
        most = digits[digit] > most ? digits[digit] : most;
    return sorted[LENGTH / 2] - most;
}

__global__ void summarise_all(int *out, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = summarise(&in[(size_t)i * LENGTH]);
}

int main(int argc, char **argv)
{
    long n = 200, repeats = 1;
    program_arguments(argc, argv, {{"rows", &n, 1, 1 << 23}, {"repeats", &repeats, 1, 100000}});
    std::vector<int> in = program_numbers<int>(n * LENGTH, 0, 9999, 1);
    int *device_in = program_upload(in), *device_out = program_allocate<int>(n);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        summarise_all<<<program_blocks(n, 128), 128>>>(device_out, device_in, n);
    program_stop(start);

    std::vector<int> out = program_download(device_out, n);
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(n, 50000))
        errors += program_wrong(i, out[i], summarise(&in[i * LENGTH]));
    return program_result("local_arrays", errors);
}
