// SPDX-License-Identifier: MIT
// Whether a transfer stays within the memory it names. What does not is reported, and the call is refused with the code
// that the driver itself has for such arguments.
#ifndef MOAT_HOOK_BOUNDS_H
#define MOAT_HOOK_BOUNDS_H

#include <stdbool.h>

#include "driver/driver.h"
#include "track/track.h"
#include "report/report.h"

// Bytes that a call touches. In memory of the host's that moat did not see allocated anything goes, but for address 0.
struct bounds_range {
    uint64_t start, bytes;
    enum report_access access;
    bool device;  // the call takes it for an address of the device's
};

// CUDA_SUCCESS, or what the call must return.
CUresult bounds_check(enum driver_id call, const struct bounds_range *range);

// The same for rows of `width` bytes, `pitch` apart; rows and planes of at least 1.
CUresult bounds_check_rows(enum driver_id call, const struct bounds_range *first, uint64_t pitch,
                           uint64_t rows, uint64_t plane, uint64_t planes);

// What a checked call returns when the driver has answered: the same. Memory that moat knows nothing of is an error only
// if the driver says so, and that is reported here.
CUresult bounds_done(CUresult r);

// What a call returns that was refused with r. The driver looks at the context before it looks at memory: that none is
// current, that it is gone, or that a kernel has ended it is its answer then. stream: the call's; NULL: it has none.
CUresult bounds_refused(CUresult r, CUstream stream);
// For calls that come in two variants: the stream of those whose second is _ptsz, which have a parameter q, and of _ptds.
#define BOUNDS_STREAM_ptsz q
#define BOUNDS_STREAM_ptds NULL

// A pointer that the driver refused to free: reports what is wrong with it.
void bounds_bad_free(enum driver_id call, uint64_t pointer, enum track_way way);

#endif
