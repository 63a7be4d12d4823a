// SPDX-License-Identifier: MIT
// What fenced kernels have recorded becomes reports, and the error that the program's calls return from then
// on, as after a fault: until its context is destroyed.
#ifndef MOAT_FENCE_FENCE_REPORT_H
#define MOAT_FENCE_FENCE_REPORT_H

#include <stdbool.h>

#include "driver/driver.h"

void fence_report_start(void);
// Reads the rings of all contexts; `all`: also behind a record that is not complete, and waiting for locks.
void fence_report_read(bool all);
// Adds what was counted on the devices since the last call to the summary.
void fence_report_count(void);
// The error that the program's next call returns; CUDA_SUCCESS: none. Reads the rings first, but not for a
// launch if a thread reads them anyway.
CUresult fence_report_error(bool launch);
// How many records were read so far: no more than fence_report_count has counted, and known earlier.
uint64_t fence_report_records(void);
void fence_report_forget(void);  // the context with the error has ended
void fence_report_after_fork(void);

#endif
