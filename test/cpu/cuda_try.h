// SPDX-License-Identifier: MIT
// For programs in CUDA C++: calls and conditions that must succeed; otherwise the program prints the failed
// one and exits.
#ifndef CUDA_TRY_H
#define CUDA_TRY_H

#include <cstdio>
#include <cstdlib>

// For the runtime and the driver: their errors have the same numbers.
#define TRY(call)                                                                           \
    do {                                                                                    \
        cudaError_t error_ = (cudaError_t)(int)(call);                                      \
        if (error_ != cudaSuccess) {                                                        \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_)); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

#define CHECK(condition)                                                   \
    do {                                                                   \
        if (!(condition)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

#endif
