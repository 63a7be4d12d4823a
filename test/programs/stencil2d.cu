// SPDX-License-Identifier: MIT
// Five-point stencil on a 2D grid: a shared tile with halo, block barriers, fixed borders.
#include "program.h"

enum { TILE = 16, SPAN = TILE + 2 };

// Weights are powers of two, so that a fused multiply-add rounds as a separate one does.
__host__ __device__ float blend(float centre, float north, float south, float west, float east)
{
    return 0.5f * centre + 0.125f * ((north + south) + (west + east));
}

__host__ __device__ bool on_border(int x, int y, int width, int height)
{
    return x == 0 || y == 0 || x == width - 1 || y == height - 1;
}

__global__ void stencil(float *out, const float *in, int width, int height)
{
    __shared__ float tile[SPAN][SPAN];
    int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    for (int i = threadIdx.y * TILE + threadIdx.x; i < SPAN * SPAN; i += TILE * TILE) {
        int x = min(max(left + i % SPAN - 1, 0), width - 1);
        int y = min(max(top + i / SPAN - 1, 0), height - 1);
        tile[i / SPAN][i % SPAN] = in[y * width + x];
    }
    __syncthreads();
    int x = left + threadIdx.x, y = top + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int row = threadIdx.y + 1, column = threadIdx.x + 1;
    float centre = tile[row][column];
    if (!on_border(x, y, width, height))
        centre = blend(centre, tile[row - 1][column], tile[row + 1][column], tile[row][column - 1],
                       tile[row][column + 1]);
    out[y * width + x] = centre;
}

// By recursion a sampled cell costs 5^steps and needs nothing but the input.
static float reference(const float *in, int x, int y, int width, int height, int steps)
{
    if (steps == 0)
        return in[y * width + x];
    float centre = reference(in, x, y, width, height, steps - 1);
    if (on_border(x, y, width, height))
        return centre;
    return blend(centre, reference(in, x, y - 1, width, height, steps - 1),
                 reference(in, x, y + 1, width, height, steps - 1),
                 reference(in, x - 1, y, width, height, steps - 1),
                 reference(in, x + 1, y, width, height, steps - 1));
}

int main(int argc, char **argv)
{
    long width = 50, height = 40, steps = 3, repeats = 1;
    program_arguments(argc, argv, {{"width", &width, 1, 32768}, {"height", &height, 1, 32768},
                                   {"steps", &steps, 1, 6}, {"repeats", &repeats, 1, 100000}});
    size_t cells = width * height;
    std::vector<float> in = program_numbers<float>(cells, 0, 1000, 1);
    float *device_in = program_upload(in);
    float *buffers[2] = {program_allocate<float>(cells), program_allocate<float>(cells)};

    dim3 grid(program_blocks(width, TILE), program_blocks(height, TILE)), block(TILE, TILE);
    double start = program_start();
    for (long i = 0; i < repeats * steps; i++) {
        long step = i % steps;
        const float *source = step == 0 ? device_in : buffers[(step - 1) % 2];
        stencil<<<grid, block>>>(buffers[step % 2], source, width, height);
    }
    program_stop(start);

    std::vector<float> out = program_download(buffers[(steps - 1) % 2], cells);
    program_free(device_in, buffers[0], buffers[1]);
    long errors = 0;
    for (size_t i : program_sample(cells, 4096))
        errors += program_wrong(
            i, out[i], reference(in.data(), i % width, i / width, width, height, steps));
    return program_result("stencil2d", errors);
}
