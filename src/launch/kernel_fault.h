// SPDX-License-Identifier: MIT
// Kernels that died of an access: seen when a call returns the error that sticks to their context.
#ifndef MOAT_LAUNCH_KERNEL_FAULT_H
#define MOAT_LAUNCH_KERNEL_FAULT_H

#include <stdbool.h>

#include "driver/driver.h"

// A mode sets it in which kernels fault that leave buffers: a report of a fault without an address lists
// buffers then.
extern bool kernel_fault_lists_candidates;

void kernel_fault_report(CUresult r);

// Passes the result of a call on. The first that tells of a fault in a context makes a report.
static inline CUresult kernel_fault_seen(CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        kernel_fault_report(r);
    return r;
}

#endif
