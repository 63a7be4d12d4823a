// SPDX-License-Identifier: MIT
// For programs in CUDA C++: calls and conditions that must go well, or the program says which did not and ends.
#ifndef CUDA_TRY_H
#define CUDA_TRY_H

#include <cstdio>
#include <cstdlib>

// Of the runtime and of the driver: their errors have the same numbers.
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
