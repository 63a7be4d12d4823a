// SPDX-License-Identifier: MIT
// Diagnostics: what is wrong with an input, and where. Libraries report into a sink; only the command prints.
#ifndef MOAT_BASE_DIAG_H
#define MOAT_BASE_DIAG_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include "base/str.h"

enum diag_severity { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR };

// The text that offsets point into. Binary inputs have no text: text.ptr is NULL and offsets are printed as
// numbers.
struct diag_source {
    const char *name;  // the user's name for it, e.g. "a.ptx" or "a.out: module 3"
    struct str text;
};

struct diag {
    enum diag_severity severity;
    struct diag_source source;
    size_t offset, len;  // the place, and how many bytes to underline
    char message[240];
};

struct diag_sink {
    void (*emit)(struct diag_sink *, const struct diag *);
    unsigned errors, warnings;
};

struct diag_place {
    uint32_t line, column;  // from 1; columns count bytes
    struct str line_text;
};

struct diag_place diag_locate(struct str text, size_t offset);

void diag_report(struct diag_sink *sink, enum diag_severity severity, const struct diag_source *source,
                 size_t offset, size_t len, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void diag_vreport(struct diag_sink *sink, enum diag_severity severity, const struct diag_source *source,
                  size_t offset, size_t len, const char *fmt, va_list args);

// Prints "a.ptx:3:7: error: message", the line, and a caret below it.
void diag_print(FILE *to, const struct diag *d);

// A sink that prints to stderr at most `most` errors and `most` warnings, each with its notes, and counts all
// of them.
struct diag_printer {
    struct diag_sink sink;
    unsigned most, dropped;
    bool dropping;  // the last error or warning was not printed, so its notes are not either
};
void diag_printer_init(struct diag_printer *p, unsigned most);
void diag_printer_finish(struct diag_printer *p);  // prints how many were not printed, if any

#endif
