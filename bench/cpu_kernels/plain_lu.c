// SPDX-License-Identifier: MIT
#include <string.h>

#include "plain.h"

KERNEL factor(double *a, int n)
{
    for (int k = 0; k < n - 1; k++)
        for (int row = k + 1; row < n; row++) {
            a[row * n + k] /= a[k * n + k];
            for (int column = k + 1; column < n; column++)
                a[row * n + column] -= a[row * n + k] * a[k * n + column];
        }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    double *a = plain_numbers_double(n * n, -9, 9, 1), *lu = plain_memory(n * n, sizeof *lu);
    for (long i = 0; i < n; i++)
        a[i * n + i] = 10.0 * (double)n;
    for (long i = 0; i < repeats; i++) {
        memcpy(lu, a, n * n * sizeof *lu);
        plain_start();
        factor(lu, n);
        plain_stop();
    }
    return plain_end(lu[n * n - 1]);
}
