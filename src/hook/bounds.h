// SPDX-License-Identifier: MIT
// Checks whether a transfer stays within the memory that it names. One that does not is reported, and the
// call is refused with the code that the driver itself returns for such arguments.
#ifndef MOAT_HOOK_BOUNDS_H
#define MOAT_HOOK_BOUNDS_H

#include <stdbool.h>

#include "driver/driver.h"
#include "track/track.h"
#include "report/report.h"

// Bytes that a call accesses. In host memory that moat did not see allocated every access is allowed, except
// at address 0.
struct bounds_range {
    uint64_t start, bytes;
    enum report_access access;
    bool device;  // the call takes it for a device address
};

// Returns CUDA_SUCCESS, or what the call must return.
CUresult bounds_check(enum driver_id call, const struct bounds_range *range);

// Checks rows of first->bytes bytes, `pitch` apart, in planes that are `plane` apart; returns as bounds_check
// does.
CUresult bounds_check_rows(enum driver_id call, const struct bounds_range *first, uint64_t pitch,
                           uint64_t rows, uint64_t plane, uint64_t planes);

// Returns the driver's result of a checked call. Memory unknown to moat is an error only if the driver says
// so, and that is reported here.
CUresult bounds_done(CUresult r);

// Returns what a call refused with r must return. The driver checks the context before it checks memory: if
// none is current, if it is destroyed, or if a kernel has ended it, that error is returned instead. stream:
// the call's; NULL: it has none.
CUresult bounds_refused(CUresult r, CUstream stream);
// For calls that have two variants: the stream of those whose second is _ptsz, which have a parameter q, and
// of those with _ptds.
#define BOUNDS_STREAM_ptsz q
#define BOUNDS_STREAM_ptds NULL

// Reports what is wrong with a pointer that the driver refused to free.
void bounds_bad_free(enum driver_id call, uint64_t pointer, enum track_way way);

#endif
