// SPDX-License-Identifier: MIT
// Monte Carlo estimate of pi: random numbers made in the kernel, 64-bit multiplies, few loads.
#include "program.h"

// Points with whole coordinates, so that the host can repeat a thread's count exactly.
__host__ __device__ unsigned count_hits(uint64_t thread, long samples)
{
    program_random random = {(thread + 1) * 0x9e3779b97f4a7c15u};
    unsigned hits = 0;
    for (long i = 0; i < samples; i++) {
        uint64_t x = program_next(&random) >> 1, y = program_next(&random) >> 1;
        hits += x * x + y * y < (uint64_t)1 << 62;
    }
    return hits;
}

__global__ void estimate(unsigned *hits, unsigned long long *total, long samples, int threads)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads)
        return;
    hits[i] = count_hits(i, samples);
    atomicAdd(total, hits[i]);
}

int main(int argc, char **argv)
{
    long threads = 512, samples = 40, repeats = 1;
    program_arguments(argc, argv, {{"threads", &threads, 1, 1 << 24},
                                   {"samples", &samples, 1, 1 << 20},
                                   {"repeats", &repeats, 1, 100000}});
    unsigned *device_hits = program_allocate<unsigned>(threads);
    unsigned long long *device_total = program_allocate<unsigned long long>(1);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++) {
        CUDA_TRY(cudaMemset(device_total, 0, sizeof *device_total));
        estimate<<<program_blocks(threads, 128), 128>>>(device_hits, device_total, samples,
                                                        threads);
    }
    program_stop(start);

    std::vector<unsigned> hits = program_download(device_hits, threads);
    unsigned long long total = program_download(device_total, 1)[0], sum = 0;
    program_free(device_hits, device_total);
    long errors = 0;
    for (size_t i : program_sample(threads, 1 + 4000000 / samples))
        errors += program_wrong(i, hits[i], count_hits(i, samples));
    for (unsigned count : hits)
        sum += count;
    errors += program_wrong(0, total, sum);
    // Six standard deviations of a mean of hits that are 0 or 4.
    double points = (double)threads * samples, pi = 4 * (double)total / points;
    errors += !(fabs(pi - acos(-1.0)) <= 6 * 1.65 / sqrt(points));
    return program_result("montecarlo", errors);
}
