// SPDX-License-Identifier: MIT
// What programs that measure the driver's calls share. `d` is the driver, opened by the program.
#ifndef MOAT_BENCH_BENCH_H
#define MOAT_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "driver/driver.h"

// Ends the program with status 2 if the call fails.
#define NEED(call) bench_need((call), #call)

static inline void bench_need(CUresult r, const char *call)
{
    if (!r)
        return;
    fprintf(stderr, "%s gives %d\n", call, r);
    exit(2);
}

// Seconds.
static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int bench_by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the values.
static inline double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, bench_by_value);
    return values[n / 2];
}

#endif
