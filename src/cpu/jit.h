// SPDX-License-Identifier: MIT
// The options of a load or link, and the logs it fills.
#ifndef MOAT_CPU_JIT_H
#define MOAT_CPU_JIT_H

#include <time.h>

#include "base/diag.h"
#include "base/out.h"
#include "cpu/cpu.h"

struct jit_log {
    struct out text;
    char *buffer;  // the application's; NULL: it wants none
    size_t size;
    void **size_out;
};

struct jit {
    struct diag_sink sink;  // errors go to the error log, all else to the other
    struct jit_log error, info;
    void **wall_time;
    struct timespec began;
    bool ours;        // the input is right, but more than we can do
    bool unlinked;    // a symbol is missing, or there are two
    char first[300];  // the first error, for people
};

// CUDA_ERROR_INVALID_VALUE for options that there are not; then nothing is to be finished.
CUresult jit_begin(struct jit *j, unsigned count, const CUjit_option *options, void **values);
// Copies the logs to the application. A failure that the application did not ask a log for, and one that is ours,
// is told in one line on standard error. Returns result.
CUresult jit_end(struct jit *j, CUresult result);
// And callbacks of cuLogs* hear it at once: no lock of ours may be held.
CUresult jit_end_told(struct jit *j, CUresult result);
// A message about nothing that has lines.
void jit_error(struct jit *j, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
