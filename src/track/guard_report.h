// SPDX-License-Identifier: MIT
// From what the guard found to a report on its way out. Errors that are equal (kind, call, place in the program,
// origin of the buffer, client) are told once and counted.
//
// An error belongs to the client that the calling thread acts for (track_client_set). Where the thread acts
// for nobody, as a monitor of moat's does, the error belongs to the client whose buffer it is about.
#ifndef MOAT_TRACK_GUARD_REPORT_H
#define MOAT_TRACK_GUARD_REPORT_H

#include "core/guard.h"
#include "driver/driver.h"
#include "driver/driver_fault.h"
#include "track/track.h"
#include "report/report.h"

enum { GUARD_REPORT_BUFFERS = 8 };

struct guard_finding {
    enum report_type type;
    enum driver_id call;
    const char *call_name;  // instead of call's symbol, where it is not NULL
    bool in_kernel;         // no call did it: a kernel, and a call only brought the news
    bool nowhere;           // it has no address: an array's memory has none
    bool device_known;      // `device` is it, whatever context is current
    int device;
    bool client_known;  // `client` is it, whoever the calling thread acts for
    uint32_t client;
    bool stackless;  // found by a thread of our own: where that stands says nothing
    uint64_t address, bytes;
    enum report_access access;
    unsigned nbuffers;
    struct track_copy buffers[GUARD_REPORT_BUFFERS];
    const struct driver_fault *fault;  // on the device; NULL: found in the call itself
    bool thread_known;                 // the fault's block and thread are, whatever the device
    const char *const *suspects;       // kernels one of which did it; may be NULL
    unsigned nsuspects;
    const char *note;               // a further sentence; may be NULL
    struct report_bytes corrupted;  // count 0: nothing to show
};

// before_end is called before the summary is put together, to add to the guard's counts; it may be NULL.
void guard_report_init(void (*before_end)(void));
void guard_report_after_fork(void);

// Sentences for the banner before it is out, notes of their own afterwards.
void guard_report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

void guard_report_start(void);
void guard_report_finding(const struct guard_finding *finding);
void guard_report_counts(const struct report_counts *counts);
// The summary calls a count by this name in place of the one in stats.def. The text must stay.
void guard_report_relabel(enum guard_count count, const char *label);
void guard_report_end(void);

uint64_t guard_report_errors(void);  // so far

#endif
