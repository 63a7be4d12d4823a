// SPDX-License-Identifier: MIT
// Turns findings of the guard into reports and sends them. Errors that are equal (kind, call, place in the
// program, origin of the buffer, client) are reported once and counted.
//
// An error belongs to the client that the calling thread acts for (track_client_set). If the thread acts for
// no client, as moat's own monitor threads do, the error belongs to the client whose buffer it is about.
#ifndef MOAT_TRACK_GUARD_REPORT_H
#define MOAT_TRACK_GUARD_REPORT_H

#include "core/guard.h"
#include "driver/driver.h"
#include "driver/driver_fault.h"
#include "track/track.h"
#include "report/report.h"

enum { GUARD_REPORT_BUFFERS = 8, GUARD_REPORT_NOTES = 8 };

struct guard_finding {
    enum report_type type;
    enum driver_id call;
    const char *call_name;  // replaces the symbol of `call`; NULL: it does not
    bool in_kernel;         // a kernel did it; `call` only returned the error
    bool nowhere;           // it has no address, because memory of arrays has none
    bool device_known;      // `device` is valid, whatever context is current
    int device;
    bool client_known;  // `client` is valid, whoever the calling thread acts for
    uint32_t client;
    bool stackless;        // found by a thread of moat's own, whose stack is meaningless
    uint32_t launched_at;  // stack of the launch, by `call`, of the kernel that did it; 0: unknown
    uint64_t address, bytes;
    enum report_access access;
    unsigned nbuffers;
    struct track_copy buffers[GUARD_REPORT_BUFFERS];
    const struct driver_fault *fault;  // what the device recorded; NULL: found in the call itself
    bool thread_known;                 // block and thread of the fault are valid
    bool in_function;  // the fault's kernel is a function that kernels call; which one did is not known
    bool foretold;     // it has not happened yet: when it does, it is not counted for a second time
    bool by_source;    // errors of one line of the source are equal, whatever instructions it became
    const char *const *suspects;  // kernels one of which caused the error; may be NULL
    unsigned nsuspects;
    const char *note;                      // one more sentence; may be NULL
    const char *more[GUARD_REPORT_NOTES];  // and these behind it; each may be NULL
    struct report_bytes corrupted;         // count 0: none
};

// before_end is called before the summary is assembled, to add to the guard's counts; it may be NULL.
void guard_report_init(void (*before_end)(void));
void guard_report_after_fork(void);

// Adds a sentence to the banner; once the banner is out, sends it as a note of its own.
void guard_report_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

// Explains errors in the terms of an interpreter. The function writes lines into text, of at most size bytes
// with their NUL: "@FUNCTION\tFILE\tLINE" for a frame of the calling thread's stack, innermost first, and
// any other line as a sentence. address is 0 if the error has none, kernel NULL if no kernel made it. It is
// called without any lock of moat's, by the thread that found the error; NULL: none.
typedef void guard_report_explain_fn(uint64_t address, uint64_t bytes, const char *kernel, char *text,
                                     size_t size);
void guard_report_explain_with(guard_report_explain_fn *explain);

void guard_report_start(void);
void guard_report_finding(const struct guard_finding *finding);
// Does the same, and returns a key that equal errors share; never 0.
uint64_t guard_report_keyed(const struct guard_finding *finding);
// Counts an error that was reported before, by its key, n more times.
void guard_report_again(uint64_t key, uint64_t n);
void guard_report_counts(const struct report_counts *counts);
void guard_report_proofs(const struct report_proofs *proofs);
void guard_report_unchecked(const struct report_unchecked *kernels);
// The summary calls a count by this name in place of the one in stats.def. The text must stay.
void guard_report_relabel(enum guard_count count, const char *label);
void guard_report_end(void);

uint64_t guard_report_errors(void);  // so far

#endif
