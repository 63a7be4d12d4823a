// SPDX-License-Identifier: MIT
// Seven-point stencil on a 3D grid: each thread walks one column and keeps the planes in registers.
#include "program.h"

// Weights are powers of two, so that a fused multiply-add rounds as a separate one does.
__host__ __device__ float blend(float centre, float west, float east, float north, float south,
                                float below, float above)
{
    return 0.25f * centre + 0.125f * (((west + east) + (north + south)) + (below + above));
}

__host__ __device__ bool on_border(int x, int y, int z, int side)
{
    return x == 0 || y == 0 || z == 0 || x == side - 1 || y == side - 1 || z == side - 1;
}

__global__ void stencil(float *__restrict__ out, const float *__restrict__ in, int side)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= side || y >= side)
        return;
    int plane = side * side, i = y * side + x;
    float below = 0, centre = in[i];
    for (int z = 0; z < side; z++, i += plane) {
        float above = z + 1 < side ? in[i + plane] : 0;
        out[i] = on_border(x, y, z, side) ? centre
                                          : blend(centre, in[i - 1], in[i + 1], in[i - side],
                                                  in[i + side], below, above);
        below = centre;
        centre = above;
    }
}

// By recursion a sampled cell costs 7^steps and needs nothing but the input.
static float reference(const float *in, int x, int y, int z, int side, int steps)
{
    if (steps == 0)
        return in[(z * side + y) * side + x];
    float centre = reference(in, x, y, z, side, --steps);
    if (on_border(x, y, z, side))
        return centre;
    return blend(centre, reference(in, x - 1, y, z, side, steps),
                 reference(in, x + 1, y, z, side, steps), reference(in, x, y - 1, z, side, steps),
                 reference(in, x, y + 1, z, side, steps), reference(in, x, y, z - 1, side, steps),
                 reference(in, x, y, z + 1, side, steps));
}

int main(int argc, char **argv)
{
    long side = 18, steps = 2, repeats = 1;
    program_arguments(argc, argv, {{"side", &side, 1, 1024}, {"steps", &steps, 1, 5},
                                   {"repeats", &repeats, 1, 100000}});
    size_t cells = side * side * side;
    std::vector<float> in = program_numbers<float>(cells, 0, 1000, 1);
    float *device_in = program_upload(in);
    float *buffers[2] = {program_allocate<float>(cells), program_allocate<float>(cells)};

    dim3 grid(program_blocks(side, 32), program_blocks(side, 4)), block(32, 4);
    double start = program_start();
    for (long i = 0; i < repeats * steps; i++) {
        long step = i % steps;
        const float *source = step == 0 ? device_in : buffers[(step - 1) % 2];
        stencil<<<grid, block>>>(buffers[step % 2], source, side);
    }
    program_stop(start);

    std::vector<float> out = program_download(buffers[(steps - 1) % 2], cells);
    program_free(device_in, buffers[0], buffers[1]);
    long errors = 0, plane = side * side;
    for (size_t i : program_sample(cells, 6000))
        errors += program_wrong(
            i, out[i],
            reference(in.data(), i % side, i % plane / side, i / plane, side, steps));
    return program_result("stencil3d", errors);
}
