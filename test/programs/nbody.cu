// SPDX-License-Identifier: MIT
// Gravity between all pairs of bodies: vector loads, tiles in shared memory, inverse roots.
#include "program.h"

enum { THREADS = 128 };
static const float SOFTENING = 0.01f;

__global__ void accelerate(float4 *accelerations, const float4 *bodies, int n)
{
    __shared__ float4 tile[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float4 me = bodies[min(i, n - 1)];
    float3 sum = {0, 0, 0};
    for (int first = 0; first < n; first += THREADS) {
        int size = min(THREADS, n - first);
        __syncthreads();
        if (threadIdx.x < size)
            tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < size; j++) {
            float x = tile[j].x - me.x, y = tile[j].y - me.y, z = tile[j].z - me.z;
            float inverse = rsqrtf(x * x + y * y + z * z + SOFTENING);
            float pull = tile[j].w * inverse * inverse * inverse;
            sum.x += pull * x;
            sum.y += pull * y;
            sum.z += pull * z;
        }
    }
    if (i < n)
        accelerations[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

__global__ void advance(float4 *bodies, float4 *velocities, const float4 *accelerations, float time,
                        int n)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n)
        return;
    float4 body = bodies[i], velocity = velocities[i], acceleration = accelerations[i];
    velocity.x += acceleration.x * time;
    velocity.y += acceleration.y * time;
    velocity.z += acceleration.z * time;
    body.x += velocity.x * time;
    body.y += velocity.y * time;
    body.z += velocity.z * time;
    bodies[i] = body;
    velocities[i] = velocity;
}

// A term is wrong by under 32 roundings and a sum of n adds one for each term, so n + 32 roundings
// of the sum of the terms' sizes bound the error.
static long check_body(const std::vector<float4> &bodies, float4 actual, size_t index)
{
    double sum[3] = {}, size[3] = {};
    float4 me = bodies[index];
    for (const float4 &other : bodies) {
        double x = (double)other.x - me.x, y = (double)other.y - me.y, z = (double)other.z - me.z;
        double square = x * x + y * y + z * z + SOFTENING, pull = other.w / (square * sqrt(square));
        double terms[3] = {pull * x, pull * y, pull * z};
        for (int d = 0; d < 3; d++) {
            sum[d] += terms[d];
            size[d] += fabs(terms[d]);
        }
    }
    long errors = 0;
    const float results[3] = {actual.x, actual.y, actual.z};
    for (int d = 0; d < 3; d++)
        if (!(fabs(results[d] - sum[d]) <= ldexp((double)bodies.size() + 32, -24) * size[d]))
            errors += program_wrong<double>(index, results[d], sum[d]);
    return errors;
}

int main(int argc, char **argv)
{
    long n = 150, steps = 2;
    program_arguments(argc, argv, {{"bodies", &n, 1, 1 << 20}, {"steps", &steps, 1, 10000}});
    std::vector<float4> bodies(n), rest(n);
    std::vector<float> numbers = program_numbers<float>(4 * n, 0, 1 << 20, 1);
    for (float &number : numbers)
        number /= 1 << 20;
    memcpy(bodies.data(), numbers.data(), n * sizeof(float4));
    float4 *device_bodies = program_upload(bodies), *velocities = program_upload(rest);
    float4 *accelerations = program_allocate<float4>(n);

    unsigned blocks = program_blocks(n, THREADS);
    double start = program_start();
    for (long step = 0; step < steps; step++) {
        if (step > 0)
            advance<<<blocks, THREADS>>>(device_bodies, velocities, accelerations, 1e-5f, n);
        accelerate<<<blocks, THREADS>>>(accelerations, device_bodies, n);
    }
    program_stop(start);

    bodies = program_download(device_bodies, n);
    std::vector<float4> results = program_download(accelerations, n);
    program_free(device_bodies, velocities, accelerations);
    long errors = 0;
    for (size_t i : program_sample(n, n > 10000 ? 64 : 256))
        errors += check_body(bodies, results[i], i);
    return program_result("nbody", errors);
}
