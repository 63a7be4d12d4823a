// SPDX-License-Identifier: MIT
#include "runtime/rt.h"

struct error {
    cudaError_t value;
    const char *name, *text;
};

static const struct error errors[] = {
#define ERROR(name, value, text) {name, #name, text},
#include "driver/cudart_errors.def"
};

static const char unknown[] = "unrecognized error code";

static const struct error *find(cudaError_t value)
{
    size_t low = 0, high = sizeof errors / sizeof *errors;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (errors[middle].value == value)
            return &errors[middle];
        if (errors[middle].value < value)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const char *cudaGetErrorName(cudaError_t error)
{
    const struct error *found = find(error);
    return found ? found->name : unknown;
}

const char *cudaGetErrorString(cudaError_t error)
{
    const struct error *found = find(error);
    const char *text = found ? found->text : unknown;

    if (!text)
        text = driver_result_text((CUresult)error);
    return text ? text : unknown;
}

cudaError_t cudaGetLastError(void)
{
    cudaError_t last = rt_thread.last;

    rt_thread.last = cudaSuccess;
    return last;
}

cudaError_t cudaPeekAtLastError(void)
{
    return rt_thread.last;
}
