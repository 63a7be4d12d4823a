// SPDX-License-Identifier: MIT
// Events as people read them. The first line of a report is in the manner of AddressSanitizer and compute-sanitizer.
//
// No heap, no stdio: it runs inside the watched process too, where nobody listens to its channel.
#ifndef MOAT_REPORT_TEXT_H
#define MOAT_REPORT_TEXT_H

#include <stdbool.h>

#include "report/demangle.h"
#include "report/report.h"
#include "report/text_buffer.h"

// All zero: plain text, names and paths as they are.
struct text_style {
    bool colour;
    struct demangle demangle;
    const char *root;  // a folder: files below it are called by what follows; NULL: as they are
};

// TEXT_LEAST bytes hold any report but the most excessive; what does not fit is cut at the end of a line.
#define TEXT_LEAST (64 << 10)

// Appends the event's lines. style may be NULL. Nothing that would steer a terminal gets through but our own colours.
void text_render(struct text_buffer *b, const struct report_line *line, const struct text_style *style);

#endif
