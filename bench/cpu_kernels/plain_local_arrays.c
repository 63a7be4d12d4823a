// SPDX-License-Identifier: MIT
#include "plain.h"

enum { LENGTH = 24 };

static __attribute__((noinline)) void insert(int *sorted, int count, int value)
{
    int place = count;
    for (; place > 0 && sorted[place - 1] > value; place--)
        sorted[place] = sorted[place - 1];
    sorted[place] = value;
}

static int summarise(const int *values)
{
    int sorted[LENGTH], most = 0;
    unsigned char digits[10] = {0};
    for (int i = 0; i < LENGTH; i++) {
        insert(sorted, i, values[i]);
        digits[values[i] % 10]++;
    }
    for (int digit = 0; digit < 10; digit++)
        most = digits[digit] > most ? digits[digit] : most;
    return sorted[LENGTH / 2] - most;
}

KERNEL summarise_all(int *out, const int *in, int n)
{
    for (int i = 0; i < n; i++)
        out[i] = summarise(&in[(size_t)i * LENGTH]);
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    int *in = plain_numbers_int(n * LENGTH, 0, 9999, 1), *out = plain_memory(n, sizeof *out);
    plain_start();
    for (long i = 0; i < repeats; i++)
        summarise_all(out, in, n);
    plain_stop();
    return plain_end(out[n / 2]);
}
