// SPDX-License-Identifier: MIT
#include <stdbool.h>
#include <string.h>

#include "plain.h"

KERNEL merge(unsigned *data, unsigned n, unsigned size, unsigned stride)
{
    for (unsigned k = 0; k < n / 2; k++) {
        unsigned i = 2 * k - (k & (stride - 1)), a = data[i], b = data[i + stride];
        if ((a > b) == !(i & size)) {
            data[i] = b;
            data[i + stride] = a;
        }
    }
}

int main(int argc, char **argv)
{
    long exponent = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    unsigned n = 1u << exponent, *in = plain_numbers_unsigned(n, 0, 1 << 30, 1);
    unsigned *data = plain_memory(n, sizeof *data);
    for (long i = 0; i < repeats; i++) {
        memcpy(data, in, n * sizeof *data);
        plain_start();
        for (unsigned size = 2; size <= n; size *= 2)
            for (unsigned stride = size / 2; stride > 0; stride /= 2)
                merge(data, n, size, stride);
        plain_stop();
    }
    return plain_end(data[n / 2]);
}
