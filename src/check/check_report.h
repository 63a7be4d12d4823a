// SPDX-License-Identifier: MIT
// Turns what checked kernels write into the ring of errors into reports.
#ifndef MOAT_CHECK_CHECK_REPORT_H
#define MOAT_CHECK_CHECK_REPORT_H

#include <stdbool.h>

struct context;
struct error_ring_record;

// Has the rings read by a thread of moat's own, and at exit, once there is one.
void check_report_start(void);
void check_report_moved(void);  // a call of the program has ended
// Reads the rings of all contexts. `all`: completely; else only where the next record is there already.
void check_report_read(bool all);
// Reads them where the next record is there already, unless a thread does.
void check_report_poll(void);
// Adds what was counted on the devices since the last call to the summary and to the errors that were
// reported.
void check_report_count(void);
void check_report_after_fork(void);

// Reports an error that a launch is certain to make, by the record that the kernel will write, which is then
// no report of its own. The lock of check_host.c is held. thread_known: block and thread of the record are
// valid. nowhere: its address is not.
void check_report_before(const struct error_ring_record *r, struct context *ctx, bool thread_known,
                         bool nowhere);

// All launches have ended well: no access so far has ended a kernel.
void check_report_ended(void);

#endif
