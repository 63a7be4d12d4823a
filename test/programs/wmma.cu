// SPDX-License-Identifier: MIT
// Matrix product on tensor cores through the warp matrix functions, half precision into single.
#include <cuda_fp16.h>
#include <mma.h>

#include "matrix_check.h"

using namespace nvcuda;

enum { TILE = 16, WARPS = 4 };

// Each warp makes one tile of the product; the sides are multiples of the tile.
__global__ void multiply(float *product, const __half *a, const __half *b, int inner, int columns)
{
    int tile_column = blockIdx.x * WARPS + threadIdx.x / 32, row = blockIdx.y * TILE;
    int column = tile_column * TILE;
    if (column >= columns)
        return;
    wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> sum;
    wmma::fill_fragment(sum, 0);
    for (int k = 0; k < inner; k += TILE) {
        wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, __half, wmma::row_major> tile_a;
        wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, __half, wmma::row_major> tile_b;
        wmma::load_matrix_sync(tile_a, &a[(size_t)row * inner + k], inner);
        wmma::load_matrix_sync(tile_b, &b[(size_t)k * columns + column], columns);
        wmma::mma_sync(sum, tile_a, tile_b, sum);
    }
    wmma::store_matrix_sync(&product[(size_t)row * columns + column], sum, columns,
                            wmma::mem_row_major);
}

static __half *upload_halves(const std::vector<float> &numbers)
{
    std::vector<__half> halves(numbers.size());
    for (size_t i = 0; i < numbers.size(); i++)
        halves[i] = __float2half(numbers[i]);
    return program_upload(halves);
}

int main(int argc, char **argv)
{
    long rows = 2, inner = 3, columns = 5, repeats = 1;
    program_arguments(argc, argv, {{"row_tiles", &rows, 1, 1024}, {"inner_tiles", &inner, 1, 1024},
                                   {"column_tiles", &columns, 1, 1024},
                                   {"repeats", &repeats, 1, 100000}});
    rows *= TILE, inner *= TILE, columns *= TILE;
    std::vector<float> a = program_numbers<float>(rows * inner, -4, 4, 1);
    std::vector<float> b = program_numbers<float>(inner * columns, -4, 4, 2);
    __half *device_a = upload_halves(a), *device_b = upload_halves(b);
    float *device_product = program_allocate<float>(rows * columns);

    dim3 grid(program_blocks(columns, TILE * WARPS), rows / TILE);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        multiply<<<grid, WARPS * 32>>>(device_product, device_a, device_b, inner, columns);
    program_stop(start);

    std::vector<float> product = program_download(device_product, rows * columns);
    program_free(device_a, device_b, device_product);
    return program_result("wmma", matrix_check(product, a, b, rows, inner, columns));
}
