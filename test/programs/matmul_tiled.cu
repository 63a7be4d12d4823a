// SPDX-License-Identifier: MIT
// Matrix product of any shape through tiles in static shared memory, partial ones at the edges.
#include "matrix_check.h"

enum { TILE = 16 };

__global__ void multiply(float *product, const float *a, const float *b, int rows, int inner,
                         int columns)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < inner; k += TILE) {
        tile_a[y][x] = row < rows && k + x < inner ? a[row * inner + k + x] : 0;
        tile_b[y][x] = k + y < inner && column < columns ? b[(k + y) * columns + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += tile_a[y][i] * tile_b[i][x];
        __syncthreads();
    }
    if (row < rows && column < columns)
        product[row * columns + column] = sum;
}

int main(int argc, char **argv)
{
    long rows = 40, inner = 50, columns = 60, repeats = 1;
    program_arguments(argc, argv, {{"rows", &rows, 1, 16384}, {"inner", &inner, 1, 16384},
                                   {"columns", &columns, 1, 16384},
                                   {"repeats", &repeats, 1, 100000}});
    std::vector<float> a = program_numbers<float>(rows * inner, -4, 4, 1);
    std::vector<float> b = program_numbers<float>(inner * columns, -4, 4, 2);
    float *device_a = program_upload(a), *device_b = program_upload(b);
    float *device_product = program_allocate<float>(rows * columns);

    dim3 block(TILE, TILE), grid(program_blocks(columns, TILE), program_blocks(rows, TILE));
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        multiply<<<grid, block>>>(device_product, device_a, device_b, rows, inner, columns);
    program_stop(start);

    std::vector<float> product = program_download(device_product, rows * columns);
    program_free(device_a, device_b, device_product);
    return program_result("matmul_tiled", matrix_check(product, a, b, rows, inner, columns));
}
