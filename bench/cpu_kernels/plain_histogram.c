// SPDX-License-Identifier: MIT
#include <string.h>

#include "plain.h"

enum { BINS = 256 };

KERNEL count(unsigned *bins, const unsigned char *data, int n)
{
    for (int i = 0; i < n; i++)
        bins[data[i]]++;
}

// The program counts twice: in global memory, and in shared memory first.
int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    char *data = plain_numbers_char(n, 0, BINS - 1, 1);
    unsigned bins[BINS];
    plain_start();
    for (long i = 0; i < 2 * repeats; i++) {
        memset(bins, 0, sizeof bins);
        count(bins, (const unsigned char *)data, n);
    }
    plain_stop();
    return plain_end(bins[7]);
}
