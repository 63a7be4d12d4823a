// SPDX-License-Identifier: MIT
#include "plain.h"

struct partial {
    unsigned long long sum, maximum;
};

KERNEL reduce(struct partial *out, const unsigned *in, int n)
{
    struct partial p = {0, 0};
    for (int i = 0; i < n; i++) {
        p.sum += in[i];
        p.maximum = p.maximum > in[i] ? p.maximum : in[i];
    }
    *out = p;
}

int main(int argc, char **argv)
{
    long n = plain_argument(argc, argv, 1), repeats = plain_argument(argc, argv, 2);
    unsigned *in = plain_numbers_unsigned(n, 0, 1 << 30, 1);
    struct partial total;
    plain_start();
    for (long i = 0; i < repeats; i++)
        reduce(&total, in, n);
    plain_stop();
    return plain_end((double)total.sum + (double)total.maximum);
}
