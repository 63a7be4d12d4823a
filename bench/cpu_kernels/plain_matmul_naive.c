// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL multiply(float *product, const float *a, const float *b, int n)
{
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++) {
            float sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[row * n + k] * b[k * n + column];
            product[row * n + column] = sum;
        }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    float *a = plain_numbers_float(n * n, -4, 4, 1), *b = plain_numbers_float(n * n, -4, 4, 2);
    float *product = plain_memory(n * n, sizeof *product);
    plain_start();
    for (long i = 0; i < repeats; i++)
        multiply(product, a, b, n);
    plain_stop();
    return plain_end(product[n * n / 2]);
}
