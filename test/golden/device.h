// SPDX-License-Identifier: MIT
// A libcuda that runs the kernels of combinations.
#ifndef MOAT_TEST_GOLDEN_DEVICE_H
#define MOAT_TEST_GOLDEN_DEVICE_H

#include <stdio.h>

#include "driver/driver.h"
#include "kernel.h"

struct device {
    struct driver api;
    CUdevice number;
    CUcontext context;
    CUmodule module;
    CUdeviceptr in, out, mem;
    char name[64];
    int version;
    char log[4096];  // messages of the last module load
};

static int device_error(const char *what, CUresult result)
{
    fprintf(stderr, "golden: %s: %s\n", what, driver_result_name(result) ? driver_result_name(result) : "?");
    return -EIO;
}

#define DEVICE_TRY(call)                         \
    do {                                         \
        CUresult result_ = (call);               \
        if (result_ != CUDA_SUCCESS)             \
            return device_error(#call, result_); \
    } while (0)

// A context with three buffers. After a fault it is closed and opened again.
static int device_open_context(struct device *d)
{
    size_t bytes = (size_t)INPUT_COUNT * KERNEL_WORDS * 8;
    DEVICE_TRY(d->api.cuCtxCreate_v2(&d->context, 0, d->number));
    DEVICE_TRY(d->api.cuMemAlloc_v2(&d->in, bytes));
    DEVICE_TRY(d->api.cuMemAlloc_v2(&d->out, bytes));
    DEVICE_TRY(d->api.cuMemAlloc_v2(&d->mem, (size_t)INPUT_COUNT * COMBO_CELL));
    return 0;
}

static int device_open(struct device *d, const char *libcuda)
{
    char why[256];
    *d = (struct device){0};
    if (driver_open(&d->api, libcuda, why, sizeof why)) {
        fprintf(stderr, "golden: %s\n", why);
        return -ENOENT;
    }
    DEVICE_TRY(d->api.cuInit(0));
    DEVICE_TRY(d->api.cuDeviceGet(&d->number, 0));
    DEVICE_TRY(d->api.cuDeviceGetName(d->name, sizeof d->name, d->number));
    DEVICE_TRY(d->api.cuDriverGetVersion(&d->version));
    return device_open_context(d);
}

static void device_unload(struct device *d)
{
    if (d->module)
        d->api.cuModuleUnload(d->module);
    d->module = NULL;
}

static void device_close(struct device *d)
{
    device_unload(d);
    if (d->context)
        d->api.cuCtxDestroy_v2(d->context);
    d->context = NULL;
    driver_close(&d->api);
}

static int device_reopen(struct device *d)
{
    d->module = NULL;
    d->api.cuCtxDestroy_v2(d->context);
    return device_open_context(d);
}

static CUresult device_load(struct device *d, const char *text)
{
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {d->log, (void *)(uintptr_t)(sizeof d->log - 1)};
    device_unload(d);
    memset(d->log, 0, sizeof d->log);
    CUresult result = d->api.cuModuleLoadDataEx(&d->module, text, 2, options, values);
    if (result != CUDA_SUCCESS)
        d->module = NULL;
    return result;
}

// in: INPUT_COUNT rows of nin words; out: as many of nout.
static CUresult device_run(struct device *d, const char *kernel, const uint64_t *in, unsigned nin,
                           uint64_t *out, unsigned nout)
{
    unsigned char bytes[KERNEL_PARAM];
    CUfunction function;
    CUresult result = d->api.cuModuleGetFunction(&function, d->module, kernel);
    if (result)
        return result;
    for (unsigned i = 0; i < KERNEL_PARAM; i++)
        bytes[i] = (unsigned char)kernel_byte(i + 77);
    if (nin && (result = d->api.cuMemcpyHtoD_v2(d->in, in, (size_t)INPUT_COUNT * nin * 8)))
        return result;
    if ((result = d->api.cuMemsetD8_v2(d->out, 0, (size_t)INPUT_COUNT * nout * 8)))
        return result;
    void *params[] = {&d->in, &d->out, &d->mem, bytes};
    result = d->api.cuLaunchKernel(function, INPUT_COUNT / KERNEL_BLOCK, 1, 1, KERNEL_BLOCK, 1, 1, 0, NULL,
                                   params, NULL);
    if (!result)
        result = d->api.cuCtxSynchronize();
    return result ? result : d->api.cuMemcpyDtoH_v2(out, d->out, (size_t)INPUT_COUNT * nout * 8);
}

#endif
