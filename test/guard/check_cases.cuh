// SPDX-License-Identifier: MIT
// For programs of cases, each with an error and a correct twin: PROGRAM bad|good NAME, or list; NAME all: one
// after the other, where no case ends the program.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

#define NEED(call) need((call), #call, __LINE__)

static void need(cudaError_t r, const char *call, int line)
{
    if (r == cudaSuccess)
        return;
    printf("%d: %s: %s\n", line, call, cudaGetErrorString(r));
    exit(2);
}

template <typename T> static T *take(size_t n)
{
    T *p;
    NEED(cudaMalloc(&p, n * sizeof(T)));
    NEED(cudaMemset(p, 0, n * sizeof(T)));
    return p;
}

static void wait(void)
{
    NEED(cudaDeviceSynchronize());
}

struct check_case {
    const char *name;
    void (*run)(bool bad);
    const char *types;  // of the errors that are reported, as a pattern
};

template <unsigned N> static int check_main(int argc, char **argv, const check_case (&cases)[N])
{
    for (const auto &c : cases) {
        if (argc == 2)
            printf("%s\t%s\n", c.name, c.types);
        else if (argc == 3 && !strcmp(argv[2], c.name)) {
            c.run(!strcmp(argv[1], "bad"));
            return 0;
        } else if (argc == 3 && !strcmp(argv[2], "all")) {
            c.run(!strcmp(argv[1], "bad"));
        }
    }
    return argc == 2 || (argc == 3 && !strcmp(argv[2], "all")) ? 0 : 2;
}
