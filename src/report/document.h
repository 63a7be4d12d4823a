// SPDX-License-Identifier: MIT
// All events of a run, for the formats that are written as a whole when it is over.
#ifndef MOAT_REPORT_DOCUMENT_H
#define MOAT_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/out.h"
#include "report/demangle.h"
#include "report/report.h"

struct document {
    const struct report_line *lines;  // in the order they came; suppressed errors are not among them
    size_t count;
    struct demangle demangle;
    const char *version;      // moat's
    const char *root;         // folder that file names are given relative to; NULL: none
    int argc;                 // 0: not known, e.g. for saved reports
    const char *const *argv;  // of the program
    int exit_code;            // the program's own
    bool exit_known;
};

// How often the error of this line happened in all: its own count, or that of the last repeat of its process and id.
uint64_t document_count(const struct document *d, const struct report_line *line);

// The error in one sentence, as plain bytes.
void document_say(const struct document *d, const struct report *r, struct out *o);

#endif
