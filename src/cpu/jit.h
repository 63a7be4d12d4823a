// SPDX-License-Identifier: MIT
// The options of a load or link, and the logs that it fills.
#ifndef MOAT_CPU_JIT_H
#define MOAT_CPU_JIT_H

#include <time.h>

#include "base/diag.h"
#include "base/out.h"
#include "cpu/cpu.h"

struct jit_log {
    struct out text;
    char *buffer;  // of the application; NULL: none wanted
    size_t size;
    void **size_out;
};

struct jit {
    struct diag_sink sink;  // errors go to the error log, all else to the info log
    struct jit_log error, info;
    void **wall_time;
    struct timespec began;
    bool ours;        // the input is valid, but we do not support it
    bool unlinked;    // a symbol is missing or defined twice
    char first[300];  // the first error, for people
};

// Returns CUDA_ERROR_INVALID_VALUE for options that do not exist; jit_end must not be called then.
CUresult jit_begin(struct jit *j, unsigned count, const CUjit_option *options, void **values);
// Copies the logs to the application and returns result. A failure is also reported in one line on standard
// error if the application did not request an error log, or if the input is valid and we do not support it.
CUresult jit_end(struct jit *j, CUresult result);
// The same, and calls the callbacks of cuLogs* at once. None of our locks may be held.
CUresult jit_end_notify(struct jit *j, CUresult result);
// Adds an error about something that has no lines.
void jit_error(struct jit *j, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
