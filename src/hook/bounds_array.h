// SPDX-License-Identifier: MIT
// Whether a transfer stays within an array, whose memory has no addresses.
#ifndef MOAT_HOOK_BOUNDS_ARRAY_H
#define MOAT_HOOK_BOUNDS_ARRAY_H

#include <stdbool.h>

#include "driver/driver.h"
#include "report/report.h"

// x and width in bytes; heights and depths of 0 count as 1.
struct bounds_box {
    uint64_t x, y, z, width, height, depth;
    bool line;  // the call knows no rows: bytes of the first plane, one after another
};

// CUDA_SUCCESS, or what the call must return after a report.
CUresult bounds_array(enum driver_id call, CUarray array, const struct bounds_box *box,
                      enum report_access access);

#endif
