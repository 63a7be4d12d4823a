// SPDX-License-Identifier: MIT
// Kernels that died of an access: seen when a call returns the error that sticks to their context.
#ifndef MOAT_LAUNCH_KERNEL_FAULT_H
#define MOAT_LAUNCH_KERNEL_FAULT_H

#include <stdbool.h>

#include "core/guard.h"
#include "driver/driver.h"

// A mode sets it in which kernels fault that leave buffers: a report of a fault without an address lists
// buffers then.
extern bool kernel_fault_lists_candidates;

void kernel_fault_report(CUresult r);

// Reports the faults that the device has skipped since the last call.
void kernel_fault_report_skipped(void);
static inline void kernel_fault_skipped(void)
{
    if (__builtin_expect(guard.real_skipped != NULL, 0))
        kernel_fault_report_skipped();
}

// Passes the result of a call on. The first that tells of a fault in a context makes a report.
static inline CUresult kernel_fault_seen(CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        kernel_fault_report(r);
    return r;
}

#endif
