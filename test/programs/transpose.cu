// SPDX-License-Identifier: MIT
// Matrix transpose through a padded shared tile, so that reads and writes are both coalesced.
#include "program.h"

enum { TILE = 32, LINES = 8 };

__global__ void transpose(uint32_t *out, const uint32_t *in, int rows, int columns)
{
    __shared__ uint32_t tile[TILE][TILE + 1];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += LINES)
        if (row + i < rows && column < columns)
            tile[threadIdx.y + i][threadIdx.x] = in[(size_t)(row + i) * columns + column];
    __syncthreads();
    row = blockIdx.y * TILE + threadIdx.x;
    column = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += LINES)
        if (row < rows && column + i < columns)
            out[(size_t)(column + i) * rows + row] = tile[threadIdx.x][threadIdx.y + i];
}

int main(int argc, char **argv)
{
    long rows = 70, columns = 90, repeats = 1;
    program_arguments(argc, argv, {{"rows", &rows, 1, 65536}, {"columns", &columns, 1, 65536},
                                   {"repeats", &repeats, 1, 100000}});
    size_t count = rows * columns;
    std::vector<uint32_t> in = program_numbers<uint32_t>(count, 0, 1 << 30, 1);
    uint32_t *device_in = program_upload(in), *device_out = program_allocate<uint32_t>(count);

    dim3 block(TILE, LINES), grid(program_blocks(columns, TILE), program_blocks(rows, TILE));
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        transpose<<<grid, block>>>(device_out, device_in, rows, columns);
    program_stop(start);

    std::vector<uint32_t> out = program_download(device_out, count);
    program_free(device_in, device_out);
    long errors = 0;
    for (size_t i : program_sample(count, 1 << 20))
        errors += program_wrong(i, out[i], in[i % rows * columns + i / rows]);
    return program_result("transpose", errors);
}
