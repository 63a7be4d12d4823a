// SPDX-License-Identifier: MIT
// What the groups of answers.c share: the driver under test, how a call and its answer are printed, and what
// each group starts with. The output must not depend on addresses.
#ifndef ANSWERS_H
#define ANSWERS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"

static struct driver cu;

static inline void answers_call(const char *text)
{
    printf("%s: ", text);
    fflush(stdout);  // the call may crash this process
}

static inline void answers_result(CUresult r)
{
    const char *name = driver_result_name(r);
    printf("%s\n", name ? name : "no CUresult");
    fflush(stdout);
}

static inline void answers_need(CUresult r, const char *text)
{
    if (!r)
        return;
    answers_call(text);
    answers_result(r);
    exit(1);
}

#define ASK(...) (answers_call(#__VA_ARGS__), answers_result(cu.__VA_ARGS__))
#define ASK_AS(text, ...) (answers_call(text), answers_result(cu.__VA_ARGS__))
#define NEED(...) answers_need(cu.__VA_ARGS__, #__VA_ARGS__)
#define SHOW(number) printf("  %s: %lld\n", #number, (long long)(number))

#define MIB ((size_t)1 << 20)
#define AS_POINTER(address) ((void *)(uintptr_t)(address))
#define AS_ADDRESS(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUmemLocation this_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
static CUmemLocation no_device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 5};
static CUmemLocation the_host = {.type = CU_MEM_LOCATION_TYPE_HOST};

static CUcontext context;        // the primary one, current
static CUdeviceptr small, next;  // 100 bytes each
static CUdeviceptr large;        // 3000000 bytes
static char pageable[4 << 20];   // unknown to the driver

static inline CUdeviceptr answers_alloc(size_t size)
{
    CUdeviceptr p = 0;
    NEED(cuMemAlloc_v2(&p, size));
    return p;
}

static inline void answers_start(void)
{
    NEED(cuInit(0));
    NEED(cuDevicePrimaryCtxRetain(&context, 0));
    NEED(cuCtxSetCurrent(context));
    small = answers_alloc(100);
    next = answers_alloc(100);
    large = answers_alloc(3000000);
}

static inline CUstream answers_stream(void)
{
    CUstream stream = NULL;
    NEED(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

#endif
