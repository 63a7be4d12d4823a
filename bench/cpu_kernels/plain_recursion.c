// SPDX-License-Identifier: MIT
#include "plain.h"

enum { PREFIX = 4 };

static __attribute__((noinline)) unsigned place(unsigned columns, unsigned falling, unsigned rising,
                                                unsigned full)
{
    if (columns == full)
        return 1;
    unsigned count = 0;
    for (unsigned open = full & ~(columns | falling | rising), bit; open; open ^= bit) {
        bit = open & (0u - open);
        count += place(columns | bit, (falling | bit) << 1, (rising | bit) >> 1, full);
    }
    return count;
}

static unsigned place_after(int prefix, int n)
{
    unsigned columns = 0, falling = 0, rising = 0;
    for (int row = 0; row < PREFIX; row++, prefix /= n) {
        unsigned bit = 1u << prefix % n;
        if ((columns | falling | rising) & bit)
            return 0;
        columns |= bit;
        falling = (falling | bit) << 1;
        rising = (rising | bit) >> 1;
    }
    return place(columns, falling, rising, (1u << n) - 1);
}

KERNEL count_all(unsigned *counts, int n, int prefixes)
{
    for (int prefix = 0; prefix < prefixes; prefix++)
        counts[prefix] = place_after(prefix, n);
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2), prefixes = n * n * n * n;
    unsigned *counts = plain_memory(prefixes, sizeof *counts);
    plain_start();
    for (long i = 0; i < repeats; i++)
        count_all(counts, n, prefixes);
    plain_stop();
    double total = 0;
    for (long i = 0; i < prefixes; i++)
        total += counts[i];
    return plain_end(total);
}
