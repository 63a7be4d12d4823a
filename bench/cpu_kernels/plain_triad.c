// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL triad(float *a, const float *b, const float *c, float scale, int n)
{
    for (int i = 0; i < n; i++)
        a[i] = b[i] + scale * c[i];
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    float *a = plain_memory(n, sizeof *a);
    float *b = plain_numbers_float(n, -1000, 1000, 1), *c = plain_numbers_float(n, -1000, 1000, 2);
    plain_start();
    for (long i = 0; i < repeats; i++)
        triad(a, b, c, 3, n);
    plain_stop();
    return plain_end(a[n / 2]);
}
