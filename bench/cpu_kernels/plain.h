// SPDX-License-Identifier: MIT
// What the plain versions of the suite's kernels share. Each takes the arguments of its program in
// test/programs, makes the same input, does on one core what the program's kernels do, and prints how long
// that took.
#ifndef PLAIN_H
#define PLAIN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Kernels are not inlined into the loop that repeats them, because their results are the same each time.
#define KERNEL static __attribute__((noinline)) void

static double plain_seconds, plain_started;

static inline double plain_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline void plain_start(void)
{
    plain_started = plain_now();
    __asm__ __volatile__("" ::: "memory");
}

static inline void plain_stop(void)
{
    __asm__ __volatile__("" ::: "memory");
    plain_seconds += plain_now() - plain_started;
}

static inline int plain_end(double checksum)
{
    printf("seconds: %.6f checksum: %.9g\n", plain_seconds, checksum);
    return 0;
}

// The i-th argument, from 1.
static inline long plain_argument(int argc, char **argv, int i)
{
    long value = i < argc ? strtol(argv[i], NULL, 10) : 0;
    if (value > 0)
        return value;
    fprintf(stderr, "%s: argument %d must be a whole number above 0\n", argv[0], i);
    exit(3);
}

static inline void *plain_memory(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (p)
        return p;
    fprintf(stderr, "out of memory\n");
    exit(2);
}

// As in program.h.
static inline uint32_t plain_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

static inline uint32_t plain_below(uint64_t *state, uint32_t bound)
{
    return (uint32_t)((uint64_t)plain_next(state) * bound >> 32);
}

#define PLAIN_NUMBERS(T)                                                                 \
    static inline T *plain_numbers_##T(size_t count, int low, int high, uint64_t seed)   \
    {                                                                                    \
        T *numbers = plain_memory(count, sizeof *numbers);                               \
        for (size_t i = 0; i < count; i++)                                               \
            numbers[i] = (T)(low + (int)plain_below(&seed, (uint32_t)(high - low) + 1)); \
        return numbers;                                                                  \
    }
PLAIN_NUMBERS(char)
PLAIN_NUMBERS(int)
PLAIN_NUMBERS(unsigned)
PLAIN_NUMBERS(float)
PLAIN_NUMBERS(double)

// A random sparse matrix as in random_csr.h.
struct plain_csr {
    int *starts, *columns;
};

static inline struct plain_csr plain_csr_make(int rows, int mean, uint64_t seed)
{
    struct plain_csr csr = {plain_memory((size_t)rows + 1, sizeof(int)), NULL};
    for (int row = 0; row < rows; row++)
        csr.starts[row + 1] = csr.starts[row] + (int)plain_below(&seed, 2 * (uint32_t)mean + 1);
    csr.columns = plain_memory((size_t)csr.starts[rows] + 1, sizeof(int));
    for (int i = 0; i < csr.starts[rows]; i++)
        csr.columns[i] = (int)plain_below(&seed, (uint32_t)rows);
    return csr;
}

#endif
