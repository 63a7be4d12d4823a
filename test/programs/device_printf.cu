// SPDX-License-Identifier: MIT
// printf and assert in a kernel: a few lines of every kind of argument, and assertions that hold.
#include <cassert>

#include "program.h"

enum { LINES = 3 };

// A kernel's printf returns how many arguments it was given.
__global__ void talk(int *arguments, unsigned *counts, int n, int rounds, int lines)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    assert(blockDim.x % 32 == 0);
    unsigned length = 0;
    for (unsigned long long value = i + 1; value != 1 && length < rounds; length++) {
        value = value % 2 ? 3 * value + 1 : value / 2;
        assert(value > 0);
    }
    counts[i] = length;
    if (i < lines)
        arguments[i] = printf("thread %d of %s: %5.2f %c %#x %lld%%\n", i, "printf", i * 0.25,
                              'a' + i, i + 255, -1234567890123LL * i);
}

static unsigned reference(unsigned long long value, unsigned rounds)
{
    unsigned length = 0;
    for (; value != 1 && length < rounds; length++)
        value = value % 2 ? 3 * value + 1 : value / 2;
    return length;
}

int main(int argc, char **argv)
{
    long n = 400, rounds = 200, repeats = 1;
    program_arguments(argc, argv, {{"threads", &n, LINES, 1 << 24}, {"rounds", &rounds, 1, 10000},
                                   {"repeats", &repeats, 1, 10000}});
    int *arguments = program_allocate<int>(LINES);
    unsigned *device_counts = program_allocate<unsigned>(n);

    double start = program_start();
    for (long repeat = 0; repeat < repeats; repeat++)
        talk<<<program_blocks(n, 64), 64>>>(arguments, device_counts, n, rounds,
                                            repeat == 0 ? LINES : 0);
    program_stop(start);

    long errors = program_compare(program_download(arguments, LINES), std::vector<int>(LINES, 6));
    std::vector<unsigned> counts = program_download(device_counts, n);
    program_free(arguments, device_counts);
    for (size_t i : program_sample(n, 20000))
        errors += program_wrong(i, counts[i], reference(i + 1, rounds));
    return program_result("device_printf", errors);
}
