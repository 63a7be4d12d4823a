// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL multiply(float *y, const int *starts, const int *columns, const float *values, const float *x,
                int rows)
{
    for (int row = 0; row < rows; row++) {
        float sum = 0;
        for (int entry = starts[row]; entry < starts[row + 1]; entry++)
            sum += values[entry] * x[columns[entry]];
        y[row] = sum;
    }
}

int main(int argc, char **argv)
{
    long rows = plain_argument(argc, argv, 1), mean = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    struct plain_csr matrix = plain_csr_make(rows, mean, 1);
    float *values = plain_numbers_float(matrix.starts[rows], -8, 8, 2);
    float *x = plain_numbers_float(rows, -100, 100, 3), *y = plain_memory(rows, sizeof *y);
    plain_start();
    for (long i = 0; i < repeats; i++)
        multiply(y, matrix.starts, matrix.columns, values, x, rows);
    plain_stop();
    return plain_end(y[rows / 2]);
}
