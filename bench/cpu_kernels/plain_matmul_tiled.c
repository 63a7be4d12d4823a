// SPDX-License-Identifier: MIT
// By tiles, as the kernel does it: their purpose, to use near memory, is the same on a CPU.
#include "plain.h"

enum { TILE = 16 };

static int least(int a, int b)
{
    return a < b ? a : b;
}

KERNEL multiply(float *product, const float *a, const float *b, int rows, int inner, int columns)
{
    for (int i = 0; i < rows * columns; i++)
        product[i] = 0;
    for (int top = 0; top < rows; top += TILE)
        for (int left = 0; left < columns; left += TILE)
            for (int first = 0; first < inner; first += TILE)
                for (int row = top; row < least(top + TILE, rows); row++)
                    for (int k = first; k < least(first + TILE, inner); k++)
                        for (int column = left; column < least(left + TILE, columns); column++)
                            product[row * columns + column] += a[row * inner + k] * b[k * columns + column];
}

int main(int argc, char **argv)
{
    long rows = plain_argument(argc, argv, 1), inner = plain_argument(argc, argv, 2);
    long columns = plain_argument(argc, argv, 3), repeats = plain_argument(argc, argv, 4);
    float *a = plain_numbers_float(rows * inner, -4, 4, 1),
          *b = plain_numbers_float(inner * columns, -4, 4, 2);
    float *product = plain_memory(rows * columns, sizeof *product);
    plain_start();
    for (long i = 0; i < repeats; i++)
        multiply(product, a, b, rows, inner, columns);
    plain_stop();
    return plain_end(product[rows * columns / 2]);
}
