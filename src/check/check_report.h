// SPDX-License-Identifier: MIT
// Turns what checked kernels write into the ring of errors into reports.
#ifndef MOAT_CHECK_CHECK_REPORT_H
#define MOAT_CHECK_CHECK_REPORT_H

#include <stdbool.h>

// Has the rings read by a thread of moat's own, and at exit, once there is one.
void check_report_start(void);
// Reads the rings of all contexts. `all`: completely; else only where the next record is there already.
void check_report_read(bool all);
// Adds what was counted on the devices since the last call to the summary and to the errors that were
// reported.
void check_report_count(void);
void check_report_after_fork(void);

// All launches have ended well: no access so far has ended a kernel.
void check_report_ended(void);

#endif
