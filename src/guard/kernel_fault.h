// SPDX-License-Identifier: MIT
// Kernels that died of an access: seen when a call returns the error that sticks to their context.
#ifndef MOAT_GUARD_KERNEL_FAULT_H
#define MOAT_GUARD_KERNEL_FAULT_H

#include "driver/driver.h"

void kernel_fault_report(CUresult r);

// Passes the result of a call on. The first that tells of a fault in a context makes a report.
static inline CUresult kernel_fault_seen(CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        kernel_fault_report(r);
    return r;
}

#endif
