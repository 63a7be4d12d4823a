// SPDX-License-Identifier: MIT
#include "plain.h"

static unsigned count_hits(uint64_t thread, long samples)
{
    uint64_t random = (thread + 1) * 0x9e3779b97f4a7c15u;
    unsigned hits = 0;
    for (long i = 0; i < samples; i++) {
        uint64_t x = plain_next(&random) >> 1, y = plain_next(&random) >> 1;
        hits += x * x + y * y < (uint64_t)1 << 62;
    }
    return hits;
}

KERNEL estimate(unsigned *hits, unsigned long long *total, long samples, int threads)
{
    *total = 0;
    for (int i = 0; i < threads; i++) {
        hits[i] = count_hits((uint64_t)i, samples);
        *total += hits[i];
    }
}

int main(int argc, char **argv)
{
    long threads = plain_argument(argc, argv, 1), samples = plain_argument(argc, argv, 2);
    long repeats = plain_argument(argc, argv, 3);
    unsigned *hits = plain_memory(threads, sizeof *hits);
    unsigned long long total;
    plain_start();
    for (long i = 0; i < repeats; i++)
        estimate(hits, &total, samples, threads);
    plain_stop();
    return plain_end((double)total);
}
