// SPDX-License-Identifier: MIT
#include "plain.h"

KERNEL scan(unsigned *out, const unsigned *in, int n)
{
    unsigned sum = 0;
    for (int i = 0; i < n; i++) {
        out[i] = sum;
        sum += in[i];
    }
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    unsigned *in = plain_numbers_unsigned(n, 0, 1 << 30, 1), *out = plain_memory(n, sizeof *out);
    plain_start();
    for (long i = 0; i < repeats; i++)
        scan(out, in, n);
    plain_stop();
    return plain_end(out[n / 2]);
}
