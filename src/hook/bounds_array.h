// SPDX-License-Identifier: MIT
// Checks whether a transfer stays within an array, whose memory has no addresses.
#ifndef MOAT_HOOK_BOUNDS_ARRAY_H
#define MOAT_HOOK_BOUNDS_ARRAY_H

#include <stdbool.h>

#include "driver/driver.h"
#include "report/report.h"

// A box in an array. x and width are in bytes; heights and depths of 0 count as 1.
struct bounds_box {
    uint64_t x, y, z, width, height, depth;
    bool line;  // the call has no rows: its bytes are consecutive in the first plane
};

// Returns CUDA_SUCCESS, or what the call must return; an error has been reported then.
CUresult bounds_array(enum driver_id call, CUarray array, const struct bounds_box *box,
                      enum report_access access);

#endif
