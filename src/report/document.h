// SPDX-License-Identifier: MIT
// All events of a run, for formats that are written as a whole at its end.
#ifndef MOAT_REPORT_DOCUMENT_H
#define MOAT_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/out.h"
#include "report/demangle.h"
#include "report/report.h"

struct document {
    const struct report_line *lines;  // in order of arrival, without suppressed errors
    size_t count;
    struct demangle demangle;
    const char *version;      // moat's
    const char *root;         // file names are written relative to this folder; NULL: unchanged
    int argc;                 // 0: not known, e.g. for saved reports
    const char *const *argv;  // of the program
    int exit_code;            // the program's own
    bool exit_known;
};

// Returns how often the error of this line happened in all: its own count, or that of the last repeat with
// its process and id.
uint64_t document_count(const struct document *d, const struct report_line *line);

// Writes the error as one sentence, in plain bytes.
void document_say(const struct document *d, const struct report *r, struct out *o);

#endif
