// SPDX-License-Identifier: MIT
// Reports what our CUDA runtime refuses before it calls the driver.
#include "driver/driver_refused.h"
#include "hook/bounds.h"

#define EXPORTED __attribute__((visibility("default")))
driver_refused_fn moat_runtime_refused;

// The range begins with the variable: what lies at the offset may be another one.
EXPORTED void moat_runtime_refused(CUdeviceptr variable, size_t offset, size_t bytes, bool writes)
{
    struct bounds_range r = {
        .start = variable, .access = writes ? REPORT_WRITE : REPORT_READ, .device = true};
    if (__builtin_add_overflow(offset, bytes, &r.bytes))
        r.bytes = UINT64_MAX;
    bounds_check(writes ? DRIVER_cuMemcpyHtoD_v2 : DRIVER_cuMemcpyDtoH_v2, &r);
}
