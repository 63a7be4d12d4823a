// SPDX-License-Identifier: MIT
// What the driver-API tests share. They run on any libcuda: on the CPU device, and on a GPU to check that
// they are right. With ON_GPU in the environment they skip what a GPU cannot do. Each returns 0, or 1 after
// printing what was wrong. Run them in the root of the tree: PTX is read from test/cpu.
#ifndef DRIVER_CHECK_H
#define DRIVER_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cuda_api.h"

static int check_wrong;

static inline bool check_on_gpu(void)
{
    return getenv("ON_GPU");
}

static inline const char *check_name(CUresult r)
{
    const char *name = NULL;
    return cuGetErrorName(r, &name) == CUDA_SUCCESS && name ? name : "no CUresult";
}

static inline bool check_result(CUresult got, CUresult expected, const char *call, int line)
{
    if (got == expected)
        return true;
    printf("line %d: %s: %s (%d), expected %s (%d)\n", line, call, check_name(got), got, check_name(expected),
           expected);
    check_wrong++;
    return false;
}

static inline bool check_condition(bool holds, const char *what, int line)
{
    if (!holds) {
        printf("line %d: does not hold: %s\n", line, what);
        check_wrong++;
    }
    return holds;
}

static inline bool check_equal(unsigned long long got, unsigned long long expected, const char *what,
                               int line)
{
    if (got == expected)
        return true;
    printf("line %d: %s is %llu (0x%llx), expected %llu (0x%llx)\n", line, what, got, got, expected,
           expected);
    check_wrong++;
    return false;
}

static inline void check_need(bool good)
{
    if (good)
        return;
    printf("cannot go on\n");
    exit(1);
}

// Reports a wrong result and continues.
#define EXPECT(code, call) check_result((call), (code), #call, __LINE__)
#define TRY(call) check_need(check_result((call), CUDA_SUCCESS, #call, __LINE__))
#define CHECK(condition) check_condition((condition), #condition, __LINE__)
#define EQUAL(got, expected) \
    check_equal((unsigned long long)(got), (unsigned long long)(expected), #got, __LINE__)

static inline int check_end(const char *name)
{
    printf(check_wrong ? "%s: %d wrong\n" : "%s: ok\n", name, check_wrong);
    return check_wrong != 0;
}

static inline CUcontext check_context(void)
{
    CUdevice device;
    CUcontext context;
    TRY(cuInit(0));
    TRY(cuDeviceGet(&device, 0));
    TRY(cuCtxCreate_v2(&context, 0, device));
    return context;
}

// Returns the text of test/cpu/NAME, NUL-terminated; the caller frees it.
static inline char *check_read(const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "test/cpu/%s", name);
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    static const size_t most = 1 << 16;
    char *text = calloc(1, most);
    size_t n = fread(text, 1, most - 1, file);
    fclose(file);
    text[n] = 0;
    return text;
}

static inline CUmodule check_module(const char *name)
{
    char *text = check_read(name);
    CUmodule module;
    TRY(cuModuleLoadData(&module, text));
    free(text);
    return module;
}

static inline CUfunction check_function(CUmodule module, const char *name)
{
    CUfunction function;
    TRY(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUdeviceptr check_zeroed(size_t bytes)
{
    CUdeviceptr p;
    TRY(cuMemAlloc_v2(&p, bytes));
    TRY(cuMemsetD8_v2(p, 0, bytes));
    return p;
}

#define LAUNCH(function, blocks, threads, shared, stream, ...)                                               \
    cuLaunchKernel((function), (blocks), 1, 1, (threads), 1, 1, (shared), (stream), (void *[]){__VA_ARGS__}, \
                   NULL)

#endif
