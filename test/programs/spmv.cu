// SPDX-License-Identifier: MIT
// Sparse matrix times vector, compressed rows, one thread per row: indirect and irregular loads.
#include "random_csr.h"

__global__ void multiply(float *y, const int *starts, const int *columns, const float *values,
                         const float *x, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0;
    for (int entry = starts[row]; entry < starts[row + 1]; entry++)
        sum += values[entry] * x[columns[entry]];
    y[row] = sum;
}

static std::vector<float> reference(const random_csr &matrix, const float *values, const float *x)
{
    std::vector<float> y(matrix.starts.size() - 1);
    const int *starts = matrix.starts.data(), *columns = matrix.columns.data();
    for (size_t row = 0; row < y.size(); row++)
        for (int entry = starts[row]; entry < starts[row + 1]; entry++)
            y[row] += values[entry] * x[columns[entry]];
    return y;
}

int main(int argc, char **argv)
{
    long rows = 1500, mean = 8, repeats = 1;
    program_arguments(argc, argv, {{"rows", &rows, 1, 1 << 24}, {"entries_per_row", &mean, 1, 60},
                                   {"repeats", &repeats, 1, 100000}});
    random_csr matrix = random_csr_make(rows, mean, 1);
    std::vector<float> values = program_numbers<float>(matrix.columns.size(), -8, 8, 2);
    std::vector<float> x = program_numbers<float>(rows, -100, 100, 3);
    int *starts = program_upload(matrix.starts), *columns = program_upload(matrix.columns);
    float *device_values = program_upload(values), *device_x = program_upload(x);
    float *device_y = program_allocate<float>(rows);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        multiply<<<program_blocks(rows, 128), 128>>>(device_y, starts, columns, device_values,
                                                     device_x, rows);
    program_stop(start);

    std::vector<float> y = program_download(device_y, rows);
    program_free(starts, columns, device_values, device_x, device_y);
    return program_result("spmv", program_compare(y, reference(matrix, values.data(), x.data())));
}
