// SPDX-License-Identifier: MIT
// k-means clustering of whole-number points: nearest centres, 64-bit shared and global atomics.
#include "program.h"

enum { DIMENSIONS = 4, CLUSTERS = 8, WIDTH = DIMENSIONS + 1, THREADS = 128 };

__host__ __device__ int nearest(const int *point, const int *centres)
{
    int best = 0, best_distance = INT32_MAX;
    for (int cluster = 0; cluster < CLUSTERS; cluster++) {
        int distance = 0;
        for (int d = 0; d < DIMENSIONS; d++) {
            int difference = point[d] - centres[cluster * DIMENSIONS + d];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = cluster;
        }
    }
    return best;
}

// sums has a row for each cluster: the sum of its points, then their number.
__global__ void assign(unsigned char *labels, unsigned long long *sums, const int4 *points,
                       const int *centres, int n)
{
    __shared__ int near_centres[CLUSTERS * DIMENSIONS];
    __shared__ unsigned long long near_sums[CLUSTERS * WIDTH];
    for (int i = threadIdx.x; i < CLUSTERS * DIMENSIONS; i += THREADS)
        near_centres[i] = centres[i];
    for (int i = threadIdx.x; i < CLUSTERS * WIDTH; i += THREADS)
        near_sums[i] = 0;
    __syncthreads();
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) {
        int4 packed = points[i];
        int point[DIMENSIONS] = {packed.x, packed.y, packed.z, packed.w};
        int label = nearest(point, near_centres);
        labels[i] = label;
        for (int d = 0; d < DIMENSIONS; d++)
            atomicAdd(&near_sums[label * WIDTH + d], (unsigned long long)point[d]);
        atomicAdd(&near_sums[label * WIDTH + DIMENSIONS], 1);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < CLUSTERS * WIDTH; i += THREADS)
        atomicAdd(&sums[i], near_sums[i]);
}

__global__ void move_centres(int *moved, const int *centres, const unsigned long long *sums)
{
    int i = threadIdx.x;
    const unsigned long long *row = &sums[i / DIMENSIONS * WIDTH];
    moved[i] = row[DIMENSIONS] ? (int)(row[i % DIMENSIONS] / row[DIMENSIONS]) : centres[i];
}

// Each point must have the label of its nearest old centre, each new centre be its points' mean.
static long check(const std::vector<int> &points, const std::vector<unsigned char> &labels,
                  const std::vector<int> &centres, const std::vector<int> &moved)
{
    long errors = 0;
    unsigned long long sums[CLUSTERS][WIDTH] = {};
    for (size_t i : program_sample(labels.size(), 100000))
        errors += program_wrong(i, (int)labels[i],
                                nearest(&points[i * DIMENSIONS], centres.data()));
    for (size_t i = 0; i < labels.size(); i++) {
        unsigned long long *row = sums[labels[i] % CLUSTERS];
        for (int d = 0; d < DIMENSIONS; d++)
            row[d] += points[i * DIMENSIONS + d];
        row[DIMENSIONS]++;
    }
    for (int i = 0; i < CLUSTERS * DIMENSIONS; i++) {
        const unsigned long long *row = sums[i / DIMENSIONS];
        int mean = row[DIMENSIONS] ? (int)(row[i % DIMENSIONS] / row[DIMENSIONS]) : centres[i];
        errors += program_wrong(i, moved[i], mean);
    }
    return errors;
}

int main(int argc, char **argv)
{
    long n = 2000, rounds = 3;
    program_arguments(argc, argv, {{"points", &n, 1, 1 << 26}, {"rounds", &rounds, 1, 100000}});
    std::vector<int> points = program_numbers<int>(n * DIMENSIONS, 0, 9999, 1);
    int *device_points = program_upload(points);
    unsigned char *labels = program_allocate<unsigned char>(n);
    unsigned long long *sums = program_allocate<unsigned long long>(CLUSTERS * WIDTH);
    int *centres[2];
    centres[0] = program_upload(program_numbers<int>(CLUSTERS * DIMENSIONS, 0, 9999, 2));
    centres[1] = program_allocate<int>(CLUSTERS * DIMENSIONS);

    unsigned blocks = std::min(program_blocks(n, THREADS), 1024u);
    double start = program_start();
    for (long i = 0; i < rounds; i++) {
        CUDA_TRY(cudaMemset(sums, 0, CLUSTERS * WIDTH * sizeof *sums));
        assign<<<blocks, THREADS>>>(labels, sums, (int4 *)device_points, centres[i % 2], n);
        move_centres<<<1, CLUSTERS * DIMENSIONS>>>(centres[(i + 1) % 2], centres[i % 2], sums);
    }
    program_stop(start);

    long errors = check(points, program_download(labels, n),
                        program_download(centres[(rounds - 1) % 2], CLUSTERS * DIMENSIONS),
                        program_download(centres[rounds % 2], CLUSTERS * DIMENSIONS));
    program_free(device_points, labels, sums, centres[0], centres[1]);
    return program_result("kmeans", errors);
}
