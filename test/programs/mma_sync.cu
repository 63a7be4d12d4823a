// SPDX-License-Identifier: MIT
// Matrix product by the mma.sync instruction in inline assembly, fragments filled by hand.
#include <cuda_fp16.h>

#include "matrix_check.h"

enum { ROWS = 16, COLUMNS = 8, INNER = 16 };

__device__ unsigned load_pair(const __half *halves)
{
    return *(const unsigned *)halves;
}

// One warp makes a tile of 16 x 8. Lane 4 * group + member holds pairs of halves of rows group and
// group + 8 of a, and of column group of b, which is stored by columns to keep its pairs together.
__global__ void multiply(float *product, const __half *a, const __half *b_columns, int inner,
                         int columns)
{
#if __CUDA_ARCH__ >= 800
    int group = threadIdx.x / 4, pair = threadIdx.x % 4 * 2;
    size_t row = blockIdx.y * ROWS + group, column = blockIdx.x * COLUMNS;
    float sum[4] = {};
    for (int k = 0; k < inner; k += INNER) {
        const __half *upper = &a[row * inner + k + pair], *lower = upper + 8 * inner;
        const __half *line = &b_columns[(column + group) * inner + k + pair];
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(load_pair(upper)), "r"(load_pair(lower)), "r"(load_pair(upper + 8)),
              "r"(load_pair(lower + 8)), "r"(load_pair(line)), "r"(load_pair(line + 8)));
    }
    float *out = &product[row * columns + column + pair];
    out[0] = sum[0];
    out[1] = sum[1];
    out[8 * columns] = sum[2];
    out[8 * columns + 1] = sum[3];
#endif
}

int main(int argc, char **argv)
{
    long rows = 2, inner = 3, columns = 5, repeats = 1;
    program_arguments(argc, argv, {{"row_tiles", &rows, 1, 1024}, {"inner_tiles", &inner, 1, 1024},
                                   {"column_tiles", &columns, 1, 2048},
                                   {"repeats", &repeats, 1, 100000}});
    program_require("mma_sync", multiply, 80);
    rows *= ROWS, inner *= INNER, columns *= COLUMNS;
    std::vector<float> a = program_numbers<float>(rows * inner, -4, 4, 1);
    std::vector<float> b = program_numbers<float>(inner * columns, -4, 4, 2);
    std::vector<__half> a_halves(a.size()), b_halves(b.size());
    for (size_t i = 0; i < a.size(); i++)
        a_halves[i] = __float2half(a[i]);
    for (size_t i = 0; i < b.size(); i++)
        b_halves[i % columns * inner + i / columns] = __float2half(b[i]);
    __half *device_a = program_upload(a_halves), *device_b = program_upload(b_halves);
    float *device_product = program_allocate<float>(rows * columns);

    dim3 grid(columns / COLUMNS, rows / ROWS);
    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        multiply<<<grid, 32>>>(device_product, device_a, device_b, inner, columns);
    program_stop(start);

    std::vector<float> product = program_download(device_product, rows * columns);
    program_free(device_a, device_b, device_product);
    return program_result("mma_sync", matrix_check(product, a, b, rows, inner, columns));
}
