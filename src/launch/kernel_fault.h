// SPDX-License-Identifier: MIT
// Kernels killed by a fault, detected when a call returns the sticky error of their context.
#ifndef MOAT_LAUNCH_KERNEL_FAULT_H
#define MOAT_LAUNCH_KERNEL_FAULT_H

#include <stdbool.h>

#include "core/guard.h"
#include "driver/driver.h"
#include "driver/driver_fault.h"

// Set by a mode in which out-of-bounds accesses of kernels fault: a report of a fault without an address then
// lists buffers.
extern bool kernel_fault_lists_candidates;

// Set by a mode that knows more of what ended a kernel than the device says, or that ended it itself: returns
// whether it has reported that. illegal: the kernel accessed memory that it may not. fault: as the device
// describes it; NULL: it does not. May be NULL.
extern bool (*kernel_fault_is_explained)(bool illegal, const struct driver_fault *fault);

void kernel_fault_report(CUresult r);

// Set by a mode that contains faults: returns the error that the program's next call must return though the
// driver has none, CUDA_SUCCESS if there is none. NULL: no mode does. launch: the call is a launch. That
// waits for no kernel, so the mode need not look whether kernels have recorded anything since it looked last.
extern CUresult (*kernel_fault_contained)(bool launch);

// Reports the faults that the device has skipped since the last call.
void kernel_fault_report_skipped(void);
static inline void kernel_fault_skipped(void)
{
    if (__builtin_expect(guard.real_skipped != NULL, 0))
        kernel_fault_report_skipped();
}

// Returns the result of a call, or the error of a fault that was contained. The first result that is a fault
// in a context is reported.
static inline CUresult kernel_fault_seen(CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        kernel_fault_report(r);
    else if (__builtin_expect(kernel_fault_contained != NULL, 0))
        return kernel_fault_contained(false);
    return r;
}

// As kernel_fault_seen, for a launch.
static inline CUresult kernel_fault_launched(CUresult r)
{
    if (__builtin_expect(r != CUDA_SUCCESS, 0))
        kernel_fault_report(r);
    else if (__builtin_expect(kernel_fault_contained != NULL, 0))
        return kernel_fault_contained(true);
    return r;
}

// Returns whether a call that returned this found its context ended by a kernel.
bool kernel_fault_ended(CUresult r);

#endif
